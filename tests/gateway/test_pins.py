"""Pinned tools: open as they were first seen, closed when they change, and opened by their owner alone."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hotplug.errors import Conflict, NotFound
from hotplug.gateway import pins as module
from hotplug.gateway.catalog import Item
from hotplug.gateway.message import split
from hotplug.gateway.pins import Checked, Pins
from hotplug.store import memory, open_store

pytestmark = pytest.mark.anyio

TOOL_LISTS = sorted((Path(__file__).parents[1] / "projection" / "tool_lists").glob("*.json"))


def tool(name: str, description: str = "Does it.", **fields: Any) -> Item:
    return item({"name": name, "description": description, "inputSchema": {"type": "object"}, **fields})


def item(definition: dict[str, Any]) -> Item:
    raw = split(json.dumps(definition).encode())
    assert raw is not None
    return Item(definition["name"], raw)


def states(checked: Checked) -> dict[str, str]:
    return {name: one.state for name, one in checked.tools.items()}


HARMLESS = tool("delete", annotations={"destructiveHint": True})
TURNED = tool("delete", annotations={"destructiveHint": False})


async def test_what_is_seen_first_is_recorded_and_open() -> None:
    async with memory() as store:
        first = await Pins(store).check("s", [tool("a"), tool("b")])
        assert states(first) == {"a": "new", "b": "new"}
        assert first.first
        assert not first.closed
        again = await Pins(store).check("s", [tool("b"), tool("a")])
        assert states(again) == {"b": "open", "a": "open"}
        assert not again.first


async def test_a_hint_that_turns_with_equal_text_closes_the_tool() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [HARMLESS, tool("other")])
        found = await pins.check("s", [TURNED, tool("other")])
        assert states(found) == {"delete": "changed", "other": "open"}
        state = found.closed["delete"]
        assert state.reason == "its definition changed (annotation) since it was pinned"
        assert state.difference is not None
        assert state.difference.words() == "annotations.destructiveHint changed (annotation): was true, is false"
        assert states(await pins.check("s", [HARMLESS])) == {"delete": "open"}


async def test_a_change_of_wording_closes_or_shows() -> None:
    async with memory() as store:
        await Pins(store).check("s", [tool("a")])
        assert states(await Pins(store).check("s", [tool("a", "Sends it.")])) == {"a": "changed"}
        shows = Pins(store, wording="shows")
        found = await shows.check("s", [tool("a", "Sends it.")])
        assert states(found) == {"a": "reworded"}
        assert not found.closed
        assert found.tools["a"].difference
        assert states(await shows.check("s", [tool("a", "Sends it.", outputSchema={})])) == {"a": "changed"}
        assert await shows.accept(found) == ("a",)
        assert states(await Pins(store).check("s", [tool("a", "Sends it.")])) == {"a": "open"}


async def test_a_tool_removed_and_a_similar_one_added_is_new() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [tool("find-page")])
        found = await pins.check("s", [tool("lookup-page")])
        assert states(found) == {"lookup-page": "new"}
        assert found.gone == ("find-page",)
        assert states(await pins.check("s", [tool("find-page", "Other.")])) == {"find-page": "changed"}


async def test_pins_of_two_servers_are_apart() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("one", [HARMLESS])
        assert states(await pins.check("two", [TURNED])) == {"delete": "new"}


async def test_the_owner_accepts_one_tool() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [tool("a"), tool("b")])
        found = await pins.check("s", [tool("a", "x"), tool("b", "x")])
        before = await pins.versions()
        assert await pins.accept(found, ["a"]) == ("a",)
        assert (await pins.versions())["s"] != before.get("s")
        assert states(await pins.check("s", [tool("a", "x"), tool("b", "x")])) == {"a": "open", "b": "changed"}
        assert states(await pins.check("s", [tool("a")])) == {"a": "changed"}
        assert await pins.accept(found, ["a"]) == ()


async def test_the_owner_accepts_all_that_changed() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [tool("a"), tool("b"), tool("c")])
        found = await pins.check("s", [tool("a", "x"), tool("b", "x"), tool("c"), tool("d")])
        assert await pins.accept(found) == ("a", "b")
        later = await pins.check("s", [tool("a", "x"), tool("b", "x"), tool("c"), tool("d")])
        assert set(states(later).values()) == {"open"}
        assert await pins.accept(later) == ()


async def test_what_the_owner_was_not_shown_is_not_accepted() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [tool("a")])
        shown = await pins.check("s", [tool("a", "shown")])
        assert states(await pins.check("s", [tool("a", "other")])) == {"a": "changed"}
        await pins.accept(shown)
        assert states(await pins.check("s", [tool("a", "other")])) == {"a": "changed"}
        with pytest.raises(NotFound, match='no tool "b"'):
            await pins.accept(shown, ["b"])


async def test_two_owners_who_looked_at_the_same_time_are_told() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [tool("a")])
        one, two = await pins.check("s", [tool("a", "one")]), await pins.check("s", [tool("a", "two")])
        await pins.accept(one)
        with pytest.raises(Conflict, match="changed meanwhile"):
            await pins.accept(two)
        assert states(await pins.check("s", [tool("a", "one")])) == {"a": "open"}


async def test_accepting_several_is_whole_or_not_at_all() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [tool("a"), tool("b")])
        both = await pins.check("s", [tool("a", "x"), tool("b", "x")])
        await pins.accept(await pins.check("s", [tool("b", "y")]))
        with pytest.raises(Conflict):
            await pins.accept(both)
        assert states(await pins.check("s", [tool("a")])) == {"a": "open"}


@pytest.mark.parametrize("body", ["{", "[]", "{}", '{"digest": 1}', "null"])
async def test_an_unreadable_pin_closes_its_tool_alone(tmp_path: Path, body: str) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with open_store(url) as store:
        await Pins(store).check("s", [tool("a"), tool("b")])
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE store_memory SET body = ? WHERE scope = 'pins:s' AND name = 'a'", (body,))
    connection.close()
    async with open_store(url) as store:
        pins = Pins(store)
        found = await pins.check("s", [tool("a"), tool("b")])
        assert states(found) == {"a": "unreadable", "b": "open"}
        assert found.closed["a"].reason == "its pin can't be read"
        assert await pins.accept(found, ["a"]) == ("a",)
        assert states(await pins.check("s", [tool("a")])) == {"a": "open"}


async def test_pins_that_cannot_be_read_at_all_close_every_tool(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        await Pins(store).check("s", [tool("a")])
    found = await Pins(store).check("s", [tool("a"), tool("b")])
    assert states(found) == {"a": "unreadable", "b": "unreadable"}
    assert "the pins can't be read" in (found.tools["a"].reason or "")


async def test_a_definition_that_was_not_kept_closes_without_saying_where(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    large = tool("large", "x" * module.LONGEST_KEPT)
    async with open_store(url) as store:
        pins = Pins(store)
        await pins.check("s", [large, tool("a")])
        await store.forget_all("definitions:s")
        found = await pins.check("s", [tool("large", "y"), tool("a", "y")])
        assert states(found) == {"large": "changed", "a": "changed"}
        assert [one.difference is not None and one.difference.told for one in found.tools.values()] == [False, False]
        assert states(await pins.check("s", [large])) == {"large": "open"}


async def test_what_is_kept_of_a_server_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PINS", 5)
    monkeypatch.setattr(module, "MOST_KEPT", 300)
    async with memory() as store:
        pins = Pins(store)
        found = await pins.check("s", [tool(f"t{number}") for number in range(8)])
        assert list(states(found).values()) == ["new"] * 5 + ["unreadable"] * 3
        assert "that is the most" in (found.tools["t7"].reason or "")
        assert 1 <= len(await store.recall_all("definitions:s")) <= 3
        assert states(await pins.check("s", [tool("t8"), tool("t0")])) == {"t8": "unreadable", "t0": "open"}


async def test_old_definitions_are_dropped_when_new_ones_are_accepted() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [tool("a"), tool("b")])
        for number in range(5):
            await pins.accept(await pins.check("s", [tool("a", str(number)), tool("b")]))
        assert len(await store.recall_all("definitions:s")) == 2


async def test_a_tool_that_is_listed_twice_is_closed() -> None:
    async with memory() as store:
        pins = Pins(store)
        found = await pins.check("s", [tool("a"), tool("a", "other"), tool("b")])
        assert states(found) == {"a": "unreadable", "b": "new"}
        assert found.tools["a"].reason == "it is listed 2 times"
        with pytest.raises(Conflict, match="listed 2 times"):
            await pins.accept(found, ["a"])
        assert await pins.accept(found) == ()


async def test_what_the_owner_has_to_know_is_said_in_words() -> None:
    async with memory() as store:
        pins = Pins(store)
        first = await pins.check("s", [HARMLESS, tool("find-page"), tool("same")])
        assert first.words() is None
        found = await pins.check("s", [TURNED, tool("lookup\x1b-page"), tool("same")])
        assert found.words() == (
            '"delete" is closed: its definition changed (annotation) since it was pinned\n'
            "  annotations.destructiveHint changed (annotation): was true, is false\n"
            '"lookup\\u001b-page" is new, and open: no right of another tool is carried over to it\n'
            '"find-page" is gone'
        )


async def test_forgotten_pins_make_a_server_new() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [tool("a")])
        assert await pins.forget("s") == 1
        found = await pins.check("s", [tool("a", "x")])
        assert found.first
        assert states(found) == {"a": "new"}


async def test_of_two_processes_that_see_a_tool_first_one_decides(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with open_store(url) as here, open_store(url) as there:

        class Late(Pins):
            async def _keep(self, *given: Any) -> dict[str, int]:
                await Pins(there).check("s", [tool("a")])
                return await super()._keep(*given)

        found = await Late(here).check("s", [tool("a", "other")])
        assert states(found) == {"a": "changed"}
        assert states(await Pins(here).check("s", [tool("a")])) == {"a": "open"}


@pytest.mark.parametrize("file", TOOL_LISTS, ids=lambda path: path.stem)
async def test_real_servers_stay_open_over_a_restart(tmp_path: Path, file: Path) -> None:
    listed = [item(one) for one in json.loads(file.read_text(encoding="utf-8"))["tools"]]
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with open_store(url) as store:
        assert set(states(await Pins(store).check("s", listed)).values()) == {"new"}
    async with open_store(url) as store:
        assert set(states(await Pins(store).check("s", listed)).values()) == {"open"}
