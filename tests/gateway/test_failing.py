"""What was found by the soak, each by itself: what a caller is told while something behind it, or its thread, goes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect import CommandTarget
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.upstream import LinkKey

from .roads import hall, only, until
from .upstreams import Fake

pytestmark = pytest.mark.anyio
PLAIN = Path(__file__).parent / "children" / "plain.py"


def child(folder: Path, **more: Any) -> ServerConfig:
    return ServerConfig("child", CommandTarget((sys.executable, str(PLAIN), str(folder / "record"))), **more)


async def test_a_call_under_way_when_its_session_is_ended_is_told_that_it_is_gone(tmp_path: Path) -> None:
    fake = Fake(tools=["hold"])
    async with hall(tmp_path, {"fake": fake}) as place:
        thread = await place.thread()
        session = await thread.session()
        calling = asyncio.create_task(session.request("tools/call", {"name": "fake.hold", "arguments": {}}))
        await fake.holding.wait()
        assert (await place.raw("DELETE", thread.path, session.headers)).status == 200
        reply = await calling
        fake.held.set()
        assert reply.status == 404
        assert reply.message["error"]["message"] == "Session not found"


async def test_what_a_closed_thread_had_of_its_own_has_ended(tmp_path: Path) -> None:
    async with hall(tmp_path, {"child": child(tmp_path)}) as place:
        one, other = await place.thread(), await place.thread()
        for thread in (one, other):
            assert "content" in await thread.call("child.echo")
            assert "content" in await (await thread.session()).call("child.echo")
        upstream = place.gateway.pool.upstreams["child"]
        assert upstream.threads() == {one.id, other.id}
        await place.gateway.threads.close(one.id)
        await until(lambda: upstream.threads() == {other.id})
        assert upstream.state.running == 2
        assert "content" in await other.call("child.echo")


async def test_a_tool_that_is_not_given_is_refused_alike_while_its_server_is_down(tmp_path: Path) -> None:
    fake = Fake(tools=["open", "shut"])
    settings = only("fake", fake={"deny": ["shut"]})
    async with hall(tmp_path, {"fake": fake}, settings) as place:
        thread = await place.thread()
        assert await thread.tools() == ["fake.open"]
        await place.gateway.pool.update({})
        assert (await thread.call("fake.open"))["data"]["code"] == "unavailable"
        shut, none = await thread.call("fake.shut"), await thread.call("fake.none")
        assert shut["message"].replace("shut", "none") == none["message"]
        assert {**shut, "message": ""} == {**none, "message": ""}


async def test_a_list_that_cannot_be_read_is_not_a_tool_that_is_not_there(tmp_path: Path) -> None:
    fake = Fake(tools=["open"])
    async with hall(tmp_path, {"fake": fake}) as place:
        thread = await place.thread()
        assert await thread.tools() == ["fake.open"]

        def failing(params: dict[str, Any]) -> Any:
            raise LookupError(-32603, "not now")

        upstream = place.gateway.pool.upstreams["fake"]
        fake.others["tools/list"] = failing
        upstream.stale(await upstream.link("modern", LinkKey(thread.id)))
        failed = await thread.call("fake.open")
        assert failed["data"]["code"] == "unavailable"
        assert failed["message"] == "fake can't tell now which tools it has"


async def test_children_that_say_the_same_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hall(tmp_path, {"child": child(tmp_path)}) as place:
        looked: list[str] = []
        closed = place.gateway.pins.check

        async def check(server: str, items: Any) -> Any:
            looked.append(server)
            return await closed(server, items)

        monkeypatch.setattr(place.gateway.pins, "check", check)
        threads = [await place.thread() for _ in range(3)]
        for _ in range(2):
            for thread in threads:
                assert "content" in await thread.call("child.echo")
        assert looked == ["child"]
