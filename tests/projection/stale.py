"""Fakes of two published servers whose answers are briefly stale after a write, on the real SDK with the real tools.

What they keep and answer has the form of the real ones'; that one way of reading lags behind another is what a cache or
a replica behind a real one does, which no test could provoke there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from mcp.server.lowlevel import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

from hotplug.projection import named

__all__ = ["FakeAgentsCalendar", "FakeCaldavBlade"]

HOME = "https://dav.example/ada/home/"


class _Fake:
    """Events with all versions that they had.

    Args:
        stale: How many of the next calls of a tool show each event as it was before its last write. It counts down.
        fails: Answers that the next calls of a tool give instead, as they stand.
    """

    package: str

    def __init__(self) -> None:
        self.versions: dict[str, list[dict[str, Any] | None]] = {}
        self.stale: Counter[str] = Counter()
        self.fails: dict[str, list[str]] = {}
        self.calls: list[str] = []
        self.server: Server[Any] = Server(self.package, on_list_tools=self._tools, on_call_tool=self._call)

    async def _tools(self, ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool.model_validate(dict(tool)) for tool in named(self.package).tools])

    async def _call(self, ctx: Any, params: Any) -> CallToolResult:
        self.calls.append(params.name)
        waiting = self.fails.get(params.name)
        text = waiting.pop(0) if waiting else getattr(self, params.name)(**(params.arguments or {}))
        return CallToolResult(content=[TextContent(type="text", text=text)])

    def shown(self, tool: str) -> dict[str, dict[str, Any]]:
        """The events as a tool shows them now."""
        old = self.stale[tool] > 0
        if old:
            self.stale[tool] -= 1
        found: dict[str, dict[str, Any]] = {}
        for name, versions in self.versions.items():
            version = (versions[-2] if len(versions) > 1 else None) if old else versions[-1]
            if version is not None:
                found[name] = version
        return found

    def write(self, name: str, event: Mapping[str, Any] | None) -> None:
        self.versions.setdefault(name, []).append(None if event is None else dict(event))


class FakeAgentsCalendar(_Fake):
    """A fake of agents-calendar 0.1.2, with one calendar."""

    package = "agents-calendar"

    def calendar_calendars(self) -> str:
        return json.dumps([{"href": HOME, "displayname": "Home", "components": ["VEVENT"]}])

    def calendar_list(self, start: str, end: str, calendar: str, timezone: str) -> str:
        shown = self.shown("calendar_list").values()
        return json.dumps([one for one in shown if one["dtstart"] < end and one["dtend"] > start])

    def calendar_get(self, href: str, timezone: str) -> str:
        found = self.shown("calendar_get").get(href)
        return json.dumps(found or {"error": "CalDAV GET 404: Not Found"})

    def calendar_add(self, **fields: Any) -> str:
        name = f"/ada/home/e{len(self.versions) + 1}.ics"
        self._put(name, {}, fields)
        return self._made(name)

    def calendar_update(self, href: str, etag: str, **fields: Any) -> str:
        now = self.versions[href][-1]
        if now is None:
            return json.dumps({"error": "CalDAV PUT 404: Not Found"})
        if now["etag"] != etag:
            return json.dumps({"error": "precondition failed"})
        self._put(href, now, fields)
        return self._made(href)

    def calendar_delete(self, href: str, etag: str) -> str:
        now = self.versions[href][-1]
        if now is None:
            return json.dumps({"error": "CalDAV DELETE 404: Not Found"})
        if now["etag"] != etag:
            return json.dumps({"error": "precondition failed"})
        self.write(href, None)
        return json.dumps({"deleted": href})

    def _put(self, name: str, now: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        texts = {key: fields.get(key) or now.get(key, "") for key in ("summary", "location", "description", "status")}
        times = {key: fields[key] for key in ("dtstart", "dtend")}
        local = {f"{key}_local": value for key, value in times.items()}
        revision = f'"{name[-5]}-{len(self.versions.get(name, ())) + 1}"'
        rest = {"href": name, "etag": revision, "all_day": fields.get("all_day", False)}
        self.write(name, {**texts, **times, **local, **rest})

    def _made(self, name: str) -> str:
        now = self.versions[name][-1]
        assert now is not None
        return json.dumps({"href": name, "etag": now["etag"]})


class FakeCaldavBlade(_Fake):
    """A fake of caldav-blade-mcp 0.4.0, with one calendar."""

    package = "caldav-blade-mcp"

    def cal_calendars(self) -> str:
        return 'Home | uid=home\n\n_meta: {"matched_total": 1}'

    def cal_events(self, calendar: str, start: str, end: str) -> str:
        found = {uid: one for uid, one in self.shown("cal_events").items() if one["start"] < end and one["end"] > start}
        lines = [f"13:00-14:00 {one['title']} | uid={uid}" for uid, one in found.items()]
        return "\n".join(lines) + f'\n\n_meta: {{"matched_total": {len(found)}}}'

    def cal_event(self, event_uid: str, calendar: str) -> str:
        found = self.shown("cal_event").get(event_uid)
        if found is None:
            return f"Error: Event '{event_uid}' not found in {calendar}"
        return self._text(event_uid, found)

    def cal_create(self, calendar: str, **fields: Any) -> str:
        uid = f"u{len(self.versions) + 1}"
        self.write(uid, fields)
        return f"Created: {self._text(uid, fields)}"

    def cal_update(self, event_uid: str, calendar: str, **fields: Any) -> str:
        now = self.versions[event_uid][-1]
        assert now is not None
        self.write(event_uid, {**now, **fields})
        return "Updated"

    def _text(self, uid: str, event: Mapping[str, Any]) -> str:
        start, end = (event[name].replace("Z", "+00:00") for name in ("start", "end"))
        place = f"\nLocation: {event['location']}" if event.get("location") else ""
        return f"Title: {event['title']}\nTime: 13:00-14:00\nStart: {start}\nEnd: {end}{place}\nUID: {uid}"
