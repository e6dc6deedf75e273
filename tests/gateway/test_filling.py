"""A secret that a caller names is filled in for the server, and nobody else ever has its value."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect.secrets import ConfiguredSecrets
from hotplug.errors import Unavailable
from hotplug.profile import reveal

from .roads import Thread
from .shops import WHERE, shop

pytestmark = pytest.mark.anyio

VALUE = 'c4rd-"4711"-value'
NAMED = {"secret": "card"}


def secrets(**places: Any) -> dict[str, Any]:
    listed = {"members": ["shop@1/shop.buy"], "servers": ["shop"], "threads": ["*"], **places}
    table = {"card": {"env": "SHOP_CARD", **listed}, "gone": {"env": "SHOP_GONE", **listed}}
    return {"secrets": ConfiguredSecrets.of_table(table)}


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_CARD", VALUE)
    monkeypatch.delenv("SHOP_GONE", raising=False)


async def item(thread: Thread) -> str:
    return (await thread.call("shop.items"))["structuredContent"]["items"][0]


async def bought(thread: Thread, card: Any, **more: Any) -> Any:
    """The whole answer to a purchase, as text and as it reads."""
    arguments = {"item": await item(thread), "count": 1, "card": card, **more}
    reply = await thread.modern("tools/call", {"name": "shop.buy", "arguments": arguments})
    return reply.body.decode(), reply.message["result"]


@pytest.mark.parametrize("where", WHERE)
async def test_the_server_gets_the_value_and_the_caller_never_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    async with shop(tmp_path, monkeypatch, where, **secrets()) as (h, there):
        thread = await h.thread()
        text, result = await bought(thread, NAMED)
        assert not result.get("isError"), result
        assert reveal(there.log[-1][1]["card"]) == VALUE
        assert "c4rd" not in text
        # What a server says again of it is taken out, too.
        there.failure = Unavailable(f"the card {VALUE} was refused", details={"said": VALUE})
        text, result = await bought(thread, NAMED)
        assert result["structuredContent"]["code"] == "unavailable"
        assert "[secret] was refused" in result["structuredContent"]["message"]
        assert "c4rd" not in text
        assert "4711" not in text


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(
    "places",
    [
        {"threads": []},
        {"threads": ["t_other"]},
        {"members": ["shop@1/shop.ring"]},
        {"servers": ["other"]},
        {"members": []},
    ],
)
async def test_a_secret_that_may_not_go_there_is_refused_and_nothing_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, places: dict[str, Any]
) -> None:
    async with shop(tmp_path, monkeypatch, where, **secrets(**places)) as (h, there):
        thread = await h.thread()
        text, result = await bought(thread, NAMED)
        assert result["structuredContent"]["code"] == "permission_denied"
        unknown, _ = await bought(thread, {"secret": "nobodys"})
        assert unknown.replace("nobodys", "card") == text
        assert not there.done("buy")


async def test_a_secret_without_a_value_is_the_owners_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with shop(tmp_path, monkeypatch, "here", **secrets()) as (h, there):
        text, result = await bought(await h.thread(), {"secret": "gone"})
        assert result["structuredContent"]["code"] == "unavailable"
        assert "SHOP_GONE" not in text
        assert "SHOP_GONE" in caplog.text
        assert not there.done("buy")


async def test_only_a_sensitive_field_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with shop(tmp_path, monkeypatch, "here", **secrets()) as (h, there):
        thread = await h.thread()
        _, result = await bought(thread, "4444", anything=NAMED)
        assert not result.get("isError"), result
        assert there.log[-1][1]["anything"] == NAMED
        assert VALUE not in json.dumps(str(there.log))


async def test_a_thread_that_its_owner_lists_may_name_it_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shop(tmp_path, monkeypatch, "here", **secrets(threads=[])) as (h, there):
        mine, other = await h.thread(), await h.thread()
        await h.gateway.reconfigure(replace(h.gateway.config, **secrets(threads=[mine.id])))
        assert not (await bought(mine, NAMED))[1].get("isError")
        assert (await bought(other, NAMED))[1]["structuredContent"]["code"] == "permission_denied"
        assert there.done("buy") == 1
