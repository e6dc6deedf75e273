"""What an owner changes while clients are connected: access settings, and hotplug.toml itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mcp import MCPError

from .hearing import Hearing, hearing
from .home import CALENDAR, CHILDREN, Home, RoadName, child, running, text_of

pytestmark = [pytest.mark.anyio]

WAYS: tuple[tuple[RoadName, str], ...] = (("stdio", "legacy"), ("http", "legacy"), ("http", "auto"))


async def refusal(heard: Hearing, tool: str) -> tuple[int, str, object]:
    with pytest.raises(MCPError) as refused:
        await heard.client.call_tool(tool, {})
    error = refused.value.error
    return error.code, error.message.replace(tool, "TOOL"), error.data


@pytest.mark.parametrize(("road_name", "mode"), WAYS)
async def test_access_holds_at_the_next_call_and_is_told(tmp_path: Path, road_name: RoadName, mode: str) -> None:
    home = Home(tmp_path, child("plain", tmp_path) + CALENDAR)
    with home.road(road_name) as road:
        async with hearing(road, mode) as heard:
            assert {"plain.echo", "plain.count", "calendar.delete"} <= await heard.names()
            unknown = await refusal(heard, "plain.nothing")

            def tighten() -> None:
                rules = ("--deny", "plain/echo", "--deny", "home/calendar.delete")
                home.run("access", "profile", "add", "tight", "--servers", "all", "--groups", "none", *rules)
                home.run("access", "set", "mcpProfile", "tight")

            left = await heard.told(tighten, lambda names: "plain.echo" not in names)
            assert {"plain.count", "calendar.create"} <= left
            assert "calendar.delete" not in left
            assert await refusal(heard, "plain.echo") == unknown
            # Of a profile that it has something of: as what no server here does.
            gone = await heard.client.call_tool("calendar.delete", {"event": "any"})
            assert gone.structured_content is not None
            assert (gone.is_error, gone.structured_content["code"]) == (True, "unsupported")
            assert text_of((await heard.client.call_tool("plain.count", {})).content) == "1"

            shut = await heard.told(
                lambda: home.run("access", "set", "mcpProfile", "host-only"), lambda names: not names
            )
            assert shut == set()
            assert await refusal(heard, "plain.count") == unknown
            assert await refusal(heard, "calendar.create") == unknown

            await heard.told(
                lambda: home.run("access", "set", "mcpProfile", "--unset"), lambda names: "plain.echo" in names
            )
            assert not (await heard.client.call_tool("plain.echo", {"a": 1})).is_error


@pytest.mark.parametrize(("road_name", "mode"), WAYS)
async def test_servers_come_and_go(tmp_path: Path, road_name: RoadName, mode: str) -> None:
    home = Home(tmp_path, child("plain", tmp_path))
    with home.road(road_name) as road:
        async with hearing(road, mode) as heard:
            assert "plain.pid" in await heard.names()
            pid = text_of((await heard.client.call_tool("plain.pid", {})).content)
            record = str(tmp_path / "more.record")

            def add() -> None:
                home.run("server", "add", "more", "--", sys.executable, str(CHILDREN / "plain.py"), record)
                home.run("server", "add", "home", f"sqlite:///{tmp_path / 'home.db'}", "--profile", "calendar")

            await heard.told(add, lambda names: {"more.echo", "calendar.create"} <= names)
            assert not (await heard.client.call_tool("more.echo", {})).is_error
            assert not (await heard.client.call_tool("calendar.calendars", {})).is_error
            # Whoever was there before runs on.
            assert text_of((await heard.client.call_tool("plain.pid", {})).content) == pid

            def remove() -> None:
                home.run("server", "remove", "more")
                home.run("server", "remove", "home")

            left = await heard.told(remove, lambda names: not names & {"more.echo", "calendar.create"})
            assert "plain.echo" in left
            unknown = await refusal(heard, "plain.nothing")
            assert await refusal(heard, "more.echo") == unknown
            assert await refusal(heard, "calendar.create") == unknown
            assert running(tmp_path) == [int(pid)]


async def test_a_changed_entry_and_another_style_hold_at_once(tmp_path: Path) -> None:
    plain = child("plain", tmp_path)
    home = Home(tmp_path, plain)
    with home.road("http") as road:
        async with hearing(road, "auto") as heard:
            assert "plain.pid" in await heard.names()
            pid = text_of((await heard.client.call_tool("plain.pid", {})).content)

            await heard.told(lambda: home.write(plain + 'prefix = "p"\n'), lambda names: "p.pid" in names)
            assert text_of((await heard.client.call_tool("p.pid", {})).content) == pid

            underscored = plain + '[serve]\nnames = "underscored"\n'
            await heard.told(lambda: home.write(underscored), lambda names: "plain__pid" in names)
            assert text_of((await heard.client.call_tool("plain__pid", {})).content) == pid

            other = child("plain", tmp_path, "plain", "modern")
            await heard.told(lambda: home.write(other), lambda names: "plain.pid" in names)
            assert text_of((await heard.client.call_tool("plain.pid", {})).content) != pid

            await heard.told(lambda: home.write(other + "disabled = true\n"), lambda names: not names)
            assert running(tmp_path) == []


async def test_a_broken_file_changes_nothing_and_is_told(tmp_path: Path) -> None:
    home = Home(tmp_path, child("plain", tmp_path))
    with home.watched() as (base, errors):
        async with hearing(home.over_http(base), "auto") as heard:
            names = await heard.names()
            home.write("[servers.plain")
            await errors.wait_for("is not TOML")
            assert await heard.names() == names
            home.config.unlink()
            await errors.wait_for("the file is gone")
            assert await heard.names() == names
            both = child("plain", tmp_path) + child("more", tmp_path) + "[servers.bad]\nx = 1\n"
            assert "more.echo" in await heard.told(lambda: home.write(both), lambda names: "more.echo" in names)
            await errors.wait_for("the server bad can't be used")
