"""The gateway as its user sets it up and uses it: names, instances, search, threads, log, store and settings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

from .hearing import hearing
from .home import CALENDAR, JUNE, ZONED, Home, child, text_of
from .sdk import connected

pytestmark = [pytest.mark.anyio]

FITS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CLIENT_PREFIX = "mcp__hotplug__"
SECOND = CALENDAR.replace("[servers.home]", "[servers.work]").replace("home.db", "work.db")


async def answer(client: Client, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    said = await client.call_tool(tool, arguments or {})
    assert said.structured_content is not None
    return said.structured_content


async def test_from_an_empty_home_to_an_event(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.run("init", "--yes")
    home.run("server", "add", "home", f"sqlite:///{tmp_path / 'home.db'}", "--profile", "calendar")
    async with connected(home.over_stdio()) as client:
        found = await answer(client, "calendar.calendars")
        made = await answer(
            client, "calendar.create", {"calendar": found["calendars"][0]["calendar"], "title": "Dentist", **ZONED}
        )
        assert made["receipt"]["dispatched"] is True
    calls = home.answer("log")["calls"]
    mine = [(one["thread"], one.get("server"), one.get("member"), one["outcome"]) for one in calls]
    assert ("owner", "home", "calendar@1/calendar.create", "ok") in mine
    # What was put into the calendar is in no record.
    assert "Dentist" not in json.dumps(calls)


async def test_underscored_names_fit_every_client_with_its_prefix(tmp_path: Path) -> None:
    long = "a-server-with-a-name-that-alone-is-about-as-long-as-all-may-be"
    raw = child("plain", tmp_path) + child(long, tmp_path) + child("dotted.name", tmp_path)
    home = Home(tmp_path, raw + CALENDAR + '[serve]\nnames = "underscored"\n')
    async with connected(home.over_stdio(), "legacy") as client:
        names = [one.name for one in (await client.list_tools()).tools]
        assert len(names) == len(set(names)) == 3 * 8 + 7
        assert [name for name in names if not FITS.fullmatch(CLIENT_PREFIX + name)] == []
        assert {"plain__echo", "calendar_create"} <= set(names)
        for name in names:
            if name.endswith("echo") or "echo-" in name:
                assert text_of((await client.call_tool(name, {"a": 1})).content) == '{"a": 1}'
        again = [one.name for one in (await client.list_tools()).tools]
    assert again == names
    async with connected(home.over_stdio(), "auto") as client:
        assert [one.name for one in (await client.list_tools()).tools] == names


async def test_of_several_calendars_a_call_says_which(tmp_path: Path) -> None:
    home = Home(tmp_path, CALENDAR + SECOND)
    async with connected(home.over_stdio()) as client:
        tools = {one.name: one for one in (await client.list_tools()).tools}
        schema = tools["calendar.calendars"].input_schema
        assert schema["properties"]["instance"]["enum"] == ["home", "work"]
        assert schema["required"] == ["instance"]

        unsaid = await client.call_tool("calendar.calendars", {})
        assert unsaid.is_error
        assert unsaid.structured_content is not None
        assert unsaid.structured_content["code"] == "ambiguous"
        assert [one["id"] for one in unsaid.structured_content["details"]["instances"]] == ["home", "work"]

        found = await answer(client, "calendar.calendars", {"instance": "work"})
        event = {"calendar": found["calendars"][0]["calendar"], "title": "Review", **ZONED}
        await answer(client, "calendar.create", {"instance": "work", **event})
        assert len((await answer(client, "calendar.search", {"instance": "work", **JUNE}))["events"]) == 1
        assert (await answer(client, "calendar.search", {"instance": "home", **JUNE}))["events"] == []

        elsewhere = await client.call_tool("calendar.create", {"instance": "home", **event})
        assert elsewhere.is_error
        third = await client.call_tool("calendar.calendars", {"instance": "third"})
        assert third.is_error
        assert third.structured_content is not None
        assert third.structured_content["code"] == "invalid_argument"


@pytest.mark.parametrize("style", ["dotted", "underscored"])
async def test_what_is_not_listed_is_found_and_called(tmp_path: Path, style: str) -> None:
    serve = f'[search]\nover = 5\n[serve]\nnames = "{style}"\n'
    home = Home(tmp_path, child("plain", tmp_path) + CALENDAR + serve)
    between, inside = (".", ".") if style == "dotted" else ("_", "__")
    search, call, echo = f"hotplug{between}search", f"hotplug{between}call", f"plain{inside}echo"
    async with connected(home.over_stdio()) as client:
        names = {one.name for one in (await client.list_tools()).tools}
        assert {search, call} <= names
        assert echo not in names

        found = await answer(client, search, {"query": "echo"})
        assert echo in [one["name"] for one in found["tools"]]
        said = await client.call_tool(call, {"name": echo, "arguments": {"a": 1}})
        assert text_of(said.content) == '{"a": 1}'

        home.run("access", "profile", "add", "tight", "--servers", "all", "--groups", "none", "--deny", "plain/echo")
        home.run("access", "set", "mcpProfile", "tight")
        found = await answer(client, search, {"query": "echo"})
        assert echo not in [one["name"] for one in found["tools"]]
        with pytest.raises(MCPError, match=f"^Unknown tool: {re.escape(echo)}$"):
            await client.call_tool(call, {"name": echo, "arguments": {}})


async def test_threads_are_opened_forked_and_closed(tmp_path: Path) -> None:
    home = Home(tmp_path, child("plain", tmp_path) + CALENDAR)
    root = home.answer("thread", "open", "--project", "shop", "--title", "Shop")
    below = json.loads(
        home.run(
            "thread",
            "fork",
            root["thread"]["id"],
            "--delegated",
            "--json",
            env={"HOTPLUG_THREAD_TOKEN": root["token"]},
        ).out
    )
    ids = [root["thread"]["id"], below["thread"]["id"]]
    home.run("access", "profile", "add", "days", "--servers", "home", "--groups", "none")
    home.run("access", "pick", ids[1], "days")
    settings = home.config.parent / "settings.json"
    with home.serving() as base:
        async with connected(home.over_http(base, root)) as client:
            assert "plain.echo" in {one.name for one in (await client.list_tools()).tools}
            await client.call_tool("plain.echo", {})
        async with connected(home.over_http(base, below)) as client:
            names = {one.name for one in (await client.list_tools()).tools}
            assert "calendar.search" in names
            assert not any(name.startswith("plain") for name in names)
            closed = home.answer("thread", "close", ids[0])
            assert sorted(closed["closed"]) == sorted(ids)
            with pytest.raises(MCPError):
                await client.call_tool("calendar.calendars", {})
        with pytest.raises(BaseExceptionGroup):
            async with connected(home.over_http(base, root), "legacy"):
                pass
    assert "mcpThreadProfiles" not in settings.read_text() or ids[1] not in settings.read_text()
    assert "tok" not in json.dumps(home.answer("thread", "show", ids[0]))
    calls = home.answer("log", "--thread", ids[0])["calls"]
    assert [(one["server"], one["member"], one["outcome"]) for one in calls if one["kind"] == "tools/call"] == [
        ("plain", "echo", "ok")
    ]
    assert home.answer("log", "--thread", ids[1], "--server", "plain")["calls"] == []


async def test_a_thread_over_stdio_needs_its_token(tmp_path: Path) -> None:
    home = Home(tmp_path, child("plain", tmp_path))
    opened = home.answer("thread", "open")
    id_ = opened["thread"]["id"]
    refused = home.run("serve", "--thread", id_, code=3, env={"HOTPLUG_THREAD_TOKEN": "hpt_wrong"})
    assert refused.out == ""
    road = home.over_stdio("--thread", id_, env={"HOTPLUG_THREAD_TOKEN": opened["token"]})
    async with connected(road, "legacy") as client:
        await client.call_tool("plain.echo", {})
        home.run("thread", "close", id_)
        with pytest.raises(MCPError, match="no thread is open here"):
            await client.call_tool("plain.echo", {})


async def test_a_named_file_brings_its_own_settings_and_store(tmp_path: Path) -> None:
    home = Home(tmp_path, child("everyday", tmp_path))
    other = tmp_path / "other" / "hotplug.toml"
    other.parent.mkdir()
    other.write_text(child("plain", tmp_path) + '[store]\nurl = "sqlite:///own.sqlite3"\n')
    home.run("access", "set", "mcpProfile", "host-only")
    (other.parent / "settings.json").write_text("{}")
    named = ("--config", str(other))
    opened = home.answer("thread", "open", *named)
    assert (other.parent / "own.sqlite3").exists()
    assert home.answer("thread", "list")["threads"] == []
    with home.serving(*named) as base:
        async with connected(home.over_http(base, opened)) as client:
            assert "plain.echo" in {one.name for one in (await client.list_tools()).tools}
            await client.call_tool("plain.echo", {})
    assert "echo" in [one.get("member") for one in home.answer("log", *named)["calls"]]
    assert home.answer("log")["calls"] == []
    road = home.over_stdio(*named, env={"HOTPLUG_SETTINGS": str(home.config.parent / "settings.json")})
    async with connected(road) as client:
        assert (await client.list_tools()).tools == []


def test_two_servers_that_want_the_same_bare_name_are_refused_at_the_start(tmp_path: Path) -> None:
    bare = 'prefix = ""\n'
    unasked = child("unasked", tmp_path)
    home = Home(tmp_path, child("one", tmp_path) + bare + child("two", tmp_path) + bare + unasked)
    for words in ((), ("--http", "0")):
        refused = home.run("serve", *words, code=2)
        assert refused.out == ""
        assert "the servers 'one' and 'two' both have a tool that would be named" in refused.err
        assert "prefix" in refused.err
    assert not (tmp_path / "unasked.record").exists()


async def test_a_server_that_comes_late_is_announced(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    home = Home(tmp_path, child("plain", tmp_path) + child("late", tmp_path, "slow_to_start", str(ready), "legacy"))
    async with hearing(home.over_stdio(), "legacy") as heard:
        # The hello didn't wait for it, and may have promised what it could have.
        assert heard.client.server_capabilities.prompts is not None
        assert (await heard.client.list_prompts()).prompts == []
        found = await heard.told(ready.touch, lambda names: "late.echo" in names)
        assert "plain.echo" in found
