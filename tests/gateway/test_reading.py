"""Lists as servers give them: pages, cursors, items that can't be used, and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from hotplug.gateway import reading
from hotplug.gateway.catalog import KINDS, Listing, ListKind
from hotplug.gateway.link import LinkLost
from hotplug.gateway.message import Message
from hotplug.gateway.reading import catalog_of, read_listing

pytestmark = pytest.mark.anyio


def tool(name: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


async def read(*pages: Any, kind: ListKind = "tools", page_limit: float = 5.0) -> Listing:
    """The listing of a server that gives these pages, each for the cursor that is its number."""

    async def ask(method: str, params: Mapping[str, Any] | None) -> Message:
        assert method == KINDS[kind][0]
        page = pages[int((params or {}).get("cursor", "0"))]
        if isinstance(page, Exception):
            raise page
        if page is None:
            await asyncio.sleep(3600)
        return page if isinstance(page, Message) else Message.parse(Message.result_of(b"1", page).encode())

    return await read_listing(ask, kind, page_limit=page_limit)


def names(listing: Listing) -> list[str]:
    return [item.name for item in listing.items]


async def test_pages_are_joined_in_order() -> None:
    listing = await read(
        {"tools": [tool("b")], "nextCursor": "1", "ttlMs": 5000, "x": 1}, {"tools": [tool("a", big=2**70)], "y": 2}
    )
    assert names(listing) == ["b", "a"]
    assert listing.problem is None
    assert listing.ttl_ms == 5000
    assert set(listing.extra) == {"ttlMs", "x"}
    assert bytes(listing.items[1].raw["big"]) == b"1180591620717411303424"


async def test_half_of_a_surrogate_pair_in_a_description_costs_nothing() -> None:
    page = Message.parse(
        rb'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"\ud800"},{"name":"b"}]}}'
    )
    listing = await read(page)
    assert names(listing) == ["a", "b"]
    assert listing.problem is None
    assert bytes(listing.items[0].raw["description"]) == rb'"\ud800"'


@pytest.mark.parametrize("cursor", ["", None])
async def test_an_empty_cursor_is_none(cursor: str | None) -> None:
    listing = await read({"tools": [tool("a")], "nextCursor": cursor})
    assert names(listing) == ["a"]
    assert listing.problem is None


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        (({"tools": [tool("a")], "nextCursor": "0"},), None),
        (({"tools": [tool("a")], "nextCursor": 7},), "page 1 of tools/list: its nextCursor is no string"),
        (({"tools": [tool("a")], "nextCursor": "1"}, {"things": []}), "page 2 of tools/list: it holds no list 'tools'"),
        (({"tools": [tool("a")], "nextCursor": "1"}, {"tools": {}}), "page 2 of tools/list: it holds no list 'tools'"),
        (
            ({"tools": [tool("a")], "nextCursor": "1"}, LinkLost("HTTP 502", sent=True)),
            "page 2 of tools/list failed: HTTP 502",
        ),
        (
            ({"tools": [tool("a")], "nextCursor": "1"}, Message.error_of(b"1", -32602, "what\n cursor?")),
            "page 2 of tools/list failed: what cursor? (-32602)",
        ),
        (
            ({"tools": [tool("a")], "nextCursor": "1"}, Message.error_of(b"1", -32601, "gone")),
            "page 2 of tools/list failed: gone (-32601)",
        ),
    ],
)
async def test_what_is_wrong_with_a_page_is_said_and_the_others_are_kept(pages: Any, problem: str | None) -> None:
    listing = await read(*pages)
    assert names(listing) == ["a"]
    assert listing.problem == (problem or "page 2 of tools/list goes on with a cursor that it gave before")


async def test_a_page_that_isnt_answered_is_waited_for_so_long() -> None:
    listing = await read({"tools": [tool("a")], "nextCursor": "1"}, None, page_limit=0.05)
    assert names(listing) == ["a"]
    assert listing.problem == "page 2 of tools/list wasn't answered in 0.05 s"


async def test_items_that_cant_be_used_cost_themselves_alone() -> None:
    listing = await read({"tools": [tool("a"), tool(""), {"title": "x"}, 7, tool(9), tool("a", twice=True), tool("b")]})
    assert names(listing) == ["a", "b"]
    assert "twice" not in listing.items[0].raw
    assert listing.problem is None
    assert listing.unusable == {
        "#2": "it has no name",
        "#3": "it has no name",
        "#4": "it is no object",
        "#5": "it has no name",
        "#6": "'a' is there twice; the first is used",
    }


async def test_each_kind_has_its_method_its_key_and_its_names() -> None:
    listing = await read({"resourceTemplates": [{"uriTemplate": "x://{a}", "name": "n"}]}, kind="templates")
    assert names(listing) == ["x://{a}"]


@pytest.mark.parametrize(("kind", "said"), [("resources", True), ("templates", False)])
async def test_a_method_that_is_unknown_is_a_kind_that_isnt_offered(kind: ListKind, said: bool) -> None:
    listing = await read(Message.error_of(b"1", -32601, "no"), kind=kind)
    assert not listing.offered
    assert (listing.problem is not None) == said


async def test_a_link_that_is_lost_at_once_gives_no_listing() -> None:
    with pytest.raises(LinkLost):
        await read(LinkLost("gone", sent=True))


async def test_a_list_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ITEMS", 5)
    listing = await read(
        {"tools": [tool(f"a{n}") for n in range(4)], "nextCursor": "1"}, {"tools": [tool(f"b{n}") for n in range(4)]}
    )
    assert len(listing.items) == 5
    assert listing.problem == "page 2 of tools/list: there are more than 5 tools"
    monkeypatch.setattr(reading, "BYTES", 100)
    listing = await read({"tools": [tool("a"), tool("b", description="x" * 200), tool("c")]})
    assert names(listing) == ["a"]
    assert "are more than" in (listing.problem or "")


async def test_pages_without_end_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGES", 3)
    listing = await read(*({"tools": [], "nextCursor": str(n + 1)} for n in range(9)))
    assert listing.problem == "tools/list has more than 3 pages"


@pytest.mark.parametrize(("ttl", "read_as"), [(0, 0), (-1, None), ("5", None), (True, None), (1.5, None)])
async def test_only_a_whole_number_of_milliseconds_is_a_lifetime(ttl: Any, read_as: int | None) -> None:
    assert (await read({"tools": [], "ttlMs": ttl})).ttl_ms == read_as


async def test_the_version_changes_with_anything_and_only_then() -> None:
    none = Listing(offered=False)

    def version(tools: Listing) -> int:
        return catalog_of({"tools": tools, "prompts": none, "resources": none, "templates": none}).version

    first = await read({"tools": [tool("a"), tool("b")]})
    same = await read({"tools": [tool("a")], "nextCursor": "1"}, {"tools": [tool("b")]})
    assert version(first) == version(same)
    others = [
        await read({"tools": [tool("b"), tool("a")]}),
        await read({"tools": [tool("a")]}),
        await read({"tools": [tool("a"), tool("b", title="B")]}),
        await read({"tools": [tool("a"), tool("b")], "_meta": {}}),
        await read({"tools": [tool("a"), tool("b"), 7]}),
        await read({"tools": [tool("a"), tool("b")], "nextCursor": "1"}, {}),
        none,
    ]
    assert len({version(listing) for listing in [first, *others]}) == len(others) + 1
