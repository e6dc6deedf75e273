"""Field reports about tools' names and definitions (FR-22, 54, 55, 57), as far as no server is asked."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from hotplug.gateway.catalog import Item
from hotplug.gateway.config import SearchConfig
from hotplug.gateway.limits import Candidate, show
from hotplug.gateway.message import Object, split
from hotplug.gateway.names import Wanted, assign
from hotplug.gateway.names_store import Names
from hotplug.gateway.pins import Pins
from hotplug.gateway.references import unusable_schemas
from hotplug.store import memory

VALID = r"[a-zA-Z0-9_-]{1,64}"


def fields(definition: dict[str, Any]) -> Object:
    raw = split(json.dumps(definition).encode())
    assert raw is not None
    return raw


def item(name: str, **more: Any) -> Item:
    return Item(name, fields({"name": name, "description": "Does it.", "inputSchema": {"type": "object"}, **more}))


def test_fr_22_a_missing_definition_costs_its_tool_alone_and_a_dialects_label_nothing() -> None:
    labelled = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    missing = {"type": "object", "properties": {"a": {"$ref": "#/definitions/Gone"}}}
    assert unusable_schemas(fields({"name": "a", "inputSchema": labelled})) is None
    reason = unusable_schemas(fields({"name": "b", "inputSchema": missing}))
    assert reason == 'its inputSchema refers to what isn\'t there: "#/definitions/Gone"'


@pytest.mark.anyio
async def test_fr_54_servers_with_one_tools_name_have_the_same_names_in_any_order_of_start() -> None:
    servers = ("files", "notes", "web")
    seen: list[dict[tuple[str, str], str]] = []
    for order in itertools.permutations(servers):
        async with memory() as store:
            names = Names(store, client_prefix=14)
            up: list[Wanted] = []
            for server in order:
                up.append(Wanted(server, "search", server))
                found = await names.tools(up, "underscored")
            seen.append(dict(found.exposed))
    assert all(one == seen[0] for one in seen)
    assert len(set(seen[0].values())) == 3


def test_fr_54_a_new_server_cannot_take_an_existing_name_nor_one_of_ours() -> None:
    first = assign([Wanted("old", "search")], style="dotted", client_prefix=0, known={})
    evil = [Wanted("new", own) for own in ("search", "hotplug.search", "calendar.create")]
    profile = Wanted("any", "calendar.create", kind="member")
    found = assign([*evil, profile], style="dotted", client_prefix=0, known=first.new)
    taken = {"search", "hotplug.search", "calendar.create"}
    assert not taken & {found.exposed["new", one.own] for one in evil}
    assert found.exposed["", "calendar.create"] == "calendar.create"


def test_fr_55_dotted_and_underscored_twins_and_a_long_name_fit_the_consumers() -> None:
    owns = ("calendar.events.list", "calendar_events_list", "l" * 130, "bad\nname")
    found = assign([Wanted("s", own) for own in owns], style="underscored", client_prefix=0, known={})
    assert len(set(found.exposed.values())) == 3
    assert all(re.fullmatch(VALID, one) for one in found.exposed.values())
    assert re.search(r"-[0-9a-f]{8}$", found.exposed["s", "l" * 130])
    assert all(found.back()[exposed] == holder for holder, exposed in found.exposed.items())
    assert found.left_out == {("s", "bad\nname"): "its name has control characters"}


def test_fr_55_what_is_sent_is_counted_and_what_is_left_out_is_said() -> None:
    found = show([Candidate(f"t{number}") for number in range(130)], SearchConfig(128))
    assert found.sent == 2
    assert "130 tools are left to hotplug.search, so that 2 are sent" in (found.words() or "")


@pytest.mark.anyio
async def test_fr_57_a_destructive_hint_that_turns_closes_the_tool_until_it_is_accepted() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [item("wipe", annotations={"destructiveHint": True})])
        turned = [item("wipe", annotations={"destructiveHint": False})]
        found = await pins.check("s", turned)
        assert list(found.closed) == ["wipe"]
        await pins.accept(found, ["wipe"])
        assert not (await pins.check("s", turned)).closed


@pytest.mark.anyio
async def test_fr_57_a_similar_tool_in_the_place_of_one_that_went_is_new() -> None:
    async with memory() as store:
        pins = Pins(store)
        await pins.check("s", [item("find-page")])
        found = await pins.check("s", [item("lookup-page")])
        assert found.tools["lookup-page"].state == "new"
        assert found.gone == ("find-page",)
