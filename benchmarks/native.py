"""A native server against plain SDK tools over the same engine, and our typed client against the SDK's."""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, cast

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

from benchmarks.measure import Counts, Row, Side, compare, row
from benchmarks.plain_calendar import plain_calendar
from hotplug.catalog.calendar import Calendar
from hotplug.door import connect
from hotplug.serve import build
from hotplug.servers.calendar.server import SqliteCalendar
from hotplug.store import open_store

__all__ = ["measure_client", "measure_native"]

EVENTS = 20
"""What a search finds."""
EVENT: Mapping[str, Any] = {
    "calendar": "calendar",
    "title": "Planning",
    "start": "2026-06-11T15:00:00Z",
    "duration": "PT1H",
    "description": "The usual round, and then the budget.",
    "location": "Room 4",
}
FROM, TO = "2026-06-01T00:00:00Z", "2026-06-30T00:00:00Z"
ELSEWHEN: Mapping[str, Any] = {**EVENT, "start": "2026-09-11T15:00:00Z"}
"""What is created while measuring: outside the range that is searched."""

_keys = itertools.count()


class _Call(Protocol):
    """Calls a tool through the SDK's client."""

    async def __call__(
        self, client: Client, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]: ...


async def _checked(
    client: Client, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """As people do it: the client checks the result against the tool's output schema."""
    return _content(tool, await client.call_tool(tool, dict(arguments), meta=cast("Any", meta)))


async def _unchecked(
    client: Client, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The request alone, so that the schemas that the two servers list make no difference."""
    params = CallToolRequestParams(name=tool, arguments=dict(arguments), _meta=cast("Any", meta))
    return _content(tool, await client.session.send_request(CallToolRequest(params=params), CallToolResult))


def _content(tool: str, result: CallToolResult) -> dict[str, Any]:
    if result.is_error or result.structured_content is None:
        raise RuntimeError(f"{tool} failed: {result.content}")
    return result.structured_content


def _ours(client: Client, event: str, calendar: str, call: _Call = _checked) -> dict[str, Side]:
    made = {**ELSEWHEN, "calendar": calendar}
    return {
        "get": lambda: call(client, "calendar.get", {"event": event}),
        "search": lambda: call(client, "calendar.search", {"from": FROM, "to": TO}),
        "create": lambda: call(client, "calendar.create", made),
        "create with a key": lambda: call(
            client, "calendar.create", made, {"tools.noetic/idempotency-key": f"k{next(_keys)}"}
        ),
    }


def _plain(client: Client, event: str, call: _Call = _checked) -> dict[str, Side]:
    return {
        "get": lambda: call(client, "get", {"event": event}),
        "search": lambda: call(client, "search", {"from_": FROM, "to": TO}),
        "create": lambda: call(client, "create", ELSEWHEN),
    }


async def _filled(ours: Client, plain: Client) -> tuple[str, str, str]:
    """The same events in both; a ref and the calendar's of ours, and an id of the plain one."""
    calendar = (await _checked(ours, "calendar.calendars", {}))["calendars"][0]["calendar"]
    event = other = ""
    for _ in range(EVENTS):
        event = (await _checked(ours, "calendar.create", {**EVENT, "calendar": calendar}))["event"]
        other = (await _checked(plain, "create", EVENT))["event"]
    found = await _checked(ours, "calendar.search", {"from": FROM, "to": TO})
    if len(found["events"]) != EVENTS:
        raise RuntimeError(f"a search finds {len(found['events'])} events, not {EVENTS}")
    return event, calendar, other


@asynccontextmanager
async def _in_process(folder: Path) -> AsyncGenerator[tuple[Client, Client]]:
    async with AsyncExitStack() as stack:
        file = folder / "ours.sqlite3"
        store = await stack.enter_async_context(open_store(f"sqlite:///{file}"))
        server, _ = build(SqliteCalendar(file), store=store)
        ours = await stack.enter_async_context(Client(server, cache=None))
        plain = await stack.enter_async_context(Client(plain_calendar(str(folder / "plain.sqlite3")), cache=None))
        yield ours, plain


@asynccontextmanager
async def _children(folder: Path) -> AsyncGenerator[tuple[Client, Client]]:
    def child(module: str, file: str) -> StdioServerParameters:
        return StdioServerParameters(
            command=sys.executable,
            args=["-m", f"benchmarks.{module}", str(folder / file)],
            cwd=str(Path(__file__).parents[1]),
            env={"PYTHONPATH": "src"},
        )

    async with (
        Client(child("our_calendar", "ours.sqlite3"), cache=None) as ours,
        Client(child("plain_calendar", "plain.sqlite3"), cache=None) as plain,
    ):
        yield ours, plain


async def measure_native(counts: Counts) -> list[Row]:
    """Our server against plain tools, the SDK's client on both sides."""
    rows: list[Row] = []
    for transport, opened in (("in process", _in_process), ("stdio", _children)):
        with tempfile.TemporaryDirectory() as folder:
            async with opened(Path(folder)) as (ours, plain):
                event, calendar, other = await _filled(ours, plain)
                for how, call in (("", _checked), (", results unchecked by the client", _unchecked)):
                    mine, theirs = _ours(ours, event, calendar, call), _plain(plain, other, call)
                    for name, side in mine.items():
                        base = name.removesuffix(" with a key")
                        times = await compare({"hotplug": side, "plain SDK": theirs[base]}, counts)
                        aim = 1.15 if base == name else None
                        rows.append(row(f"native, {transport}{how}", name, times, "hotplug", "plain SDK", aim))
    return rows


async def measure_client(counts: Counts) -> list[Row]:
    """Our typed client against the SDK's, both on one server of ours."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            file = Path(folder) / "calendar.sqlite3"
            store = await stack.enter_async_context(open_store(f"sqlite:///{file}"))
            server, _ = build(SqliteCalendar(file), store=store)
            sdk = await stack.enter_async_context(Client(server, cache=None))
            cal = await stack.enter_async_context(connect(Calendar, server))
            here = await stack.enter_async_context(connect(Calendar, SqliteCalendar(file), store=store))
            calendar = (await cal.calendars()).calendars[0].calendar
            own = (await here.calendars()).calendars[0].calendar
            for _ in range(EVENTS - 1):
                await cal.create(**{**EVENT, "calendar": calendar})  # pyright: ignore
            made = await cal.create(**{**EVENT, "calendar": calendar})  # pyright: ignore
            mine = (await here.create(**{**EVENT, "calendar": own})).event  # pyright: ignore
            theirs = _ours(sdk, str(made.event), str(calendar))
            typed: dict[str, Side] = {
                "get": lambda: cal.get(made.event),
                "search": lambda: cal.search(FROM, TO),
                "create with a key": lambda: cal.create(**{**ELSEWHEN, "calendar": calendar}),  # pyright: ignore
            }
            without: dict[str, Side] = {
                "get": lambda: here.get(mine),
                "search": lambda: here.search(FROM, TO),
                "create with a key": lambda: here.create(**{**ELSEWHEN, "calendar": own}),  # pyright: ignore
            }
            for name, side in typed.items():
                sides = {"typed client": side, "typed, without MCP": without[name], "SDK client": theirs[name]}
                times = await compare(sides, counts)
                rows.append(row("client, in process", name, times, "typed client", "SDK client"))
                rows.append(row("client, in process", name, times, "typed, without MCP", "SDK client"))
    return rows
