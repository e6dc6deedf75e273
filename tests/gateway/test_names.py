"""Names that clients see: distinct, valid, the same in any order, and never another tool's."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotplug.catalog import PROFILES, profile_class
from hotplug.errors import ConfigError
from hotplug.gateway.config import NameStyle
from hotplug.gateway.names import (
    LONGEST_NAME,
    NAMES_PER_SERVER,
    PROFILE_PARTS,
    Assigned,
    Holder,
    NamesCollide,
    Wanted,
    assign,
    assign_prompts,
)

CORPUS: dict[str, list[str]] = json.loads(Path(__file__).with_name("corpus_names.json").read_text(encoding="utf-8"))
STYLES: tuple[NameStyle, ...] = ("dotted", "underscored")
VALID = {"dotted": r"[a-zA-Z0-9_.-]{1,50}", "underscored": r"[a-zA-Z0-9_-]{1,50}"}
PARTS = ("calendar.create", "calendar.update", "calendar.calendars", "connection.describe", "com.example.focus.block")


def raw(server: str, *owns: str, prefix: str | None = None) -> list[Wanted]:
    return [Wanted(server, own, server if prefix is None else prefix) for own in owns]


def members(*parts: str) -> list[Wanted]:
    return [Wanted("some", part, kind="member") for part in parts]


def name(wanted: Iterable[Wanted], style: NameStyle = "dotted", known: dict[str, Holder] | None = None) -> Assigned:
    return assign(wanted, style=style, client_prefix=14, known=known or {})


def everything() -> list[Wanted]:
    tools = [one for server, owns in CORPUS.items() for one in raw(server, *owns)]
    return [
        *tools,
        *members(*PARTS),
        Wanted("", "hotplug.search", kind="ours"),
        Wanted("", "hotplug.call", kind="ours"),
    ]


@pytest.mark.parametrize("style", STYLES)
def test_every_tool_of_the_corpus_gets_a_valid_name_of_its_own(style: NameStyle) -> None:
    found = name(everything(), style)
    assert not found.left_out
    assert len(found.exposed) == len({one.holder for one in everything()}) > 2800
    assert len(set(found.exposed.values())) == len(found.exposed)
    assert [one for one in found.exposed.values() if not re.fullmatch(VALID[style], one)] == []
    assert found.back() == found.new


@pytest.mark.parametrize("style", STYLES)
def test_the_order_of_servers_and_tools_counts_for_nothing(style: NameStyle) -> None:
    shuffled = everything()
    random.Random(5).shuffle(shuffled)
    assert name(shuffled, style) == name(everything(), style)


@pytest.mark.parametrize("style", STYLES)
def test_servers_that_come_one_by_one_get_the_names_that_they_get_together(style: NameStyle) -> None:
    together = name(everything(), style).exposed
    for seed in (1, 2):
        servers = sorted(CORPUS)
        random.Random(seed).shuffle(servers)
        known: dict[str, Holder] = {}
        for server in servers:
            known |= name(raw(server, *CORPUS[server]), style, known).new
        known |= name([one for one in everything() if one.kind != "raw"], style, known).new
        assert {holder: one for one, holder in known.items()} == together


@pytest.mark.parametrize("style", STYLES)
def test_servers_that_go_and_come_leave_the_names_of_others_alone(style: NameStyle) -> None:
    before = name(everything(), style)
    known = dict(before.new)
    some = [one for one in everything() if not one.server.startswith(("mcp", "c"))]
    less = name(some, style, known)
    assert not less.new
    assert all(before.exposed[holder] == one for holder, one in less.exposed.items())
    assert name(everything(), style, known) == Assigned(before.exposed)


def test_most_names_of_the_corpus_are_as_a_person_would_write_them() -> None:
    found = name(everything(), "underscored").exposed
    plain = [holder for holder, one in found.items() if one == f"{holder[0]}__{holder[1]}"]
    assert len(plain) > 0.8 * len(found)
    assert name(everything()).exposed["playwright-mcp", "browser_click"] == "playwright-mcp.browser_click"


def test_every_part_that_is_a_tool_of_the_catalogs_profiles_is_reserved() -> None:
    parts = {
        name: part.kind for profile in PROFILES for name, part in profile_class(profile).definition.all_parts.items()
    }
    tools = {name for name, kind in parts.items() if kind != "event"}
    assert {name for name in tools if not name.startswith("connection.")} == PROFILE_PARTS


def test_a_profile_operation_has_its_parts_name_in_either_style() -> None:
    assert name(members("calendar.create")).exposed == {("", "calendar.create"): "calendar.create"}
    assert name(members("calendar.create"), "underscored").exposed == {("", "calendar.create"): "calendar_create"}


def test_two_servers_that_offer_one_operation_share_its_name() -> None:
    two = [Wanted("home", "calendar.create", kind="member"), Wanted("work", "calendar.create", kind="member")]
    assert name(two).exposed == {("", "calendar.create"): "calendar.create"}


@pytest.mark.parametrize("style", STYLES)
def test_dots_and_underscores_in_one_view_are_two_names(style: NameStyle) -> None:
    found = name(raw("google", "calendar.events.list", "calendar_events_list", prefix=""), style).exposed
    assert len(set(found.values())) == 2
    assert found["google", "calendar_events_list"] == "calendar_events_list"
    assert all(re.fullmatch(VALID[style], one) for one in found.values())


@pytest.mark.parametrize("style", STYLES)
def test_a_long_name_is_shortened_with_a_digest_and_stays_its_own(style: NameStyle) -> None:
    owns = ["x" * 130, "x" * 129, "x" * 131]
    found = name(raw("server", *owns), style)
    assert len(set(found.exposed.values())) == 3
    assert {len(one) for one in found.exposed.values()} == {50}
    assert all(one.startswith("server") for one in found.exposed.values())
    assert found.back()[found.exposed["server", "x" * 130]] == ("server", "x" * 130)


def test_a_long_prefix_leaves_room_for_the_name() -> None:
    found = name(raw("p" * 60, "find_the_thing", "y" * 60)).exposed
    assert "find_the_thing" in found["p" * 60, "find_the_thing"]
    assert found["p" * 60, "y" * 60].count("y") > found["p" * 60, "y" * 60].count("p") >= 10


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ("", "it has an empty name"),
        ("  ", "it has an empty name"),
        ("a\nb", "its name has control characters"),
        ("a\x1b[2J", "its name has control characters"),
        ("a\ud800", "its name has control characters"),
        ("x" * (LONGEST_NAME + 1), "its name has 1025 characters, and 1024 are the most"),
    ],
)
def test_an_unusable_name_costs_that_one_tool(own: str, reason: str) -> None:
    found = name(raw("server", own, "other"))
    assert found.exposed == {("server", "other"): "server.other"}
    assert found.left_out == {("server", own): reason}


@pytest.mark.parametrize("own", ["поиск", "a b", "a/b", "%", "$ref", "💥"])
@pytest.mark.parametrize("style", STYLES)
def test_odd_signs_make_no_invalid_name(own: str, style: NameStyle) -> None:
    found = name(raw("server", own, own + "%"), style)
    assert len(set(found.exposed.values())) == 2
    assert all(re.fullmatch(VALID[style], one) for one in found.exposed.values())


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("own", ["hotplug.search", "hotplug_search", "connection.describe", "Hotplug.call", "hotplug."])
def test_a_raw_tool_takes_no_name_of_ours(own: str, style: NameStyle) -> None:
    for wanted in (raw("evil", own, prefix=""), raw("evil", own.partition(".")[2] or "x", prefix="hotplug")):
        (exposed,) = name(wanted, style).exposed.values()
        assert not re.match(r"(?i)(hotplug|connection)" + (r"\." if style == "dotted" else "_"), exposed)


@pytest.mark.parametrize("style", STYLES)
def test_a_raw_tool_takes_no_name_of_a_profiles_operation(style: NameStyle) -> None:
    evil = [
        *raw("evil", "calendar.create", "calendar_create", "Calendar.Create", "CALENDAR_CREATE", prefix=""),
        *raw("calendar", "create"),
    ]
    alone = assign(evil, style=style, client_prefix=14, known={}, reserved=PARTS)
    beside = name([*evil, *members("calendar.create")], style)
    theirs = {one.lower() for holder, one in beside.exposed.items() if holder[0]}
    assert beside.exposed["", "calendar.create"] not in theirs
    assert not {one.lower() for one in alone.exposed.values()} & {
        "calendar.create" if style == "dotted" else "calendar_create"
    }
    assert {holder: one for holder, one in beside.exposed.items() if holder[0]} == alone.exposed


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("client_prefix", range(41))
def test_no_cut_makes_a_name_one_of_ours(style: NameStyle, client_prefix: int) -> None:
    wanted = [
        *raw("evil", "hotplug.search" + "x" * 60, "connection.describe" + "y" * 60, prefix=""),
        *(one for server in ("connectionpool", "hotplug__", "hotplugged") for one in raw(server, "a", "z" * 60)),
    ]
    found = assign(wanted, style=style, client_prefix=client_prefix, known={}).exposed
    assert len(set(found.values())) == len(wanted)
    ours = re.compile(r"(hotplug|connection)" + (r"\." if style == "dotted" else "_"))
    assert [one for one in found.values() if ours.match(one)] == []
    assert max(map(len, found.values())) <= 64 - client_prefix


def test_a_name_that_looks_like_a_shortened_one_is_not_taken_as_it_stands() -> None:
    victim = name(raw("s", "a b")).exposed["s", "a b"]
    found = name(raw("s", "a b", victim.removeprefix("s."))).exposed
    assert found["s", "a b"] == victim
    assert len(set(found.values())) == 2


@pytest.mark.parametrize("style", STYLES)
def test_prefixes_that_run_into_names_stay_apart(style: NameStyle) -> None:
    wanted = [
        *raw("a", "b_c", "b.c", "b__c", "_b_c", "__c"),
        *raw("a_b", "c", "_c"),
        *raw("a.b", "c"),
        *raw("a_", "_b_c", "b_c"),
        *raw("a__b", "c"),
    ]
    found = name(wanted, style).exposed
    assert len(found) == len(set(found.values())) == len(wanted)


@pytest.mark.parametrize("style", STYLES)
def test_two_servers_that_keep_their_tools_names_collide(style: NameStyle) -> None:
    with pytest.raises(NamesCollide, match=r"'one' and 'two' both have a tool .* 'echo'.*prefix") as caught:
        name([*raw("two", "echo", "b", prefix=""), *raw("one", "echo", "a", prefix="")], style)
    assert caught.value.holders == (("one", "echo"), ("two", "echo"))
    assert isinstance(caught.value, ConfigError)


def test_a_kept_name_collides_with_a_prefixed_one() -> None:
    with pytest.raises(NamesCollide, match="'bare' and 'math'"):
        name([*raw("math", "add"), *raw("bare", "math.add", prefix="")])


def test_in_a_running_gateway_a_collision_costs_the_newcomer() -> None:
    first = name(raw("one", "echo", prefix=""))
    both = [*raw("two", "echo", "b", prefix=""), *raw("one", "echo", "a", prefix="")]
    found = assign(both, style="dotted", client_prefix=14, known=first.new, collisions="leave_out")
    assert found.exposed == {("one", "echo"): "echo", ("one", "a"): "a", ("two", "b"): "b"}
    assert "'one' and 'two' both have" in found.left_out["two", "echo"]


def test_in_a_running_gateway_a_collision_of_newcomers_gives_the_name_to_nobody() -> None:
    both = [*raw("two", "echo", prefix=""), *raw("one", "echo", prefix="")]
    found = assign(both, style="dotted", client_prefix=14, known={}, collisions="leave_out")
    assert not found.exposed
    assert set(found.left_out) == {("one", "echo"), ("two", "echo")}


def test_a_name_never_goes_to_another_tool_after_its_own_is_gone() -> None:
    known = dict(name(raw("one", "echo", prefix="")).new)
    later = name(raw("two", "echo", prefix=""), known=known)
    assert later.exposed["two", "echo"] != "echo"
    known |= later.new
    again = name(raw("one", "echo", prefix=""), known=known)
    assert again == Assigned({("one", "echo"): "echo"})


def test_a_tool_that_had_to_take_another_name_keeps_it() -> None:
    known = {"echo": ("gone", "echo"), "s.t": ("s", "t")}
    first = name(raw("two", "echo", prefix=""), known=known)
    assert name(raw("two", "echo", prefix=""), known=known | dict(first.new)).exposed == first.exposed


def test_a_raw_tool_that_had_a_name_first_keeps_it_when_a_profile_wants_it() -> None:
    known = dict(name(raw("calendar", "move")).new)
    found = name([*raw("calendar", "move"), *members("calendar.move")], known=known)
    assert found.exposed["calendar", "move"] == "calendar.move"
    assert re.fullmatch(r"calendar\.move-[0-9a-f]{8}", found.exposed["", "calendar.move"])


def test_styles_know_nothing_of_each_other() -> None:
    dotted, underscored = (name(raw("s", "a.b"), style) for style in STYLES)
    assert dotted.exposed["s", "a.b"] == "s.a.b"
    assert re.fullmatch(r"s__a_b-[0-9a-f]{8}", underscored.exposed["s", "a.b"])


@pytest.mark.parametrize("client_prefix", [-1, 41, 64])
def test_a_clients_prefix_has_to_leave_room(client_prefix: int) -> None:
    with pytest.raises(ConfigError, match="client_prefix"):
        assign([], style="dotted", client_prefix=client_prefix, known={})


def test_a_server_that_invents_names_without_end_is_stopped() -> None:
    known: dict[str, Holder] = {f"s.{number}": ("s", str(number)) for number in range(NAMES_PER_SERVER)}
    found = name([*raw("s", "new", "7"), *raw("other", "new")], known=known)
    assert found.exposed == {("s", "7"): "s.7", ("other", "new"): "other.new"}
    assert "100000 names" in found.left_out["s", "new"]


SOME_TEXT = st.one_of(
    st.text(alphabet="ab_.-", min_size=1, max_size=8),
    st.text(max_size=6),
    st.sampled_from(["hotplug.search", "calendar.create", "calendar_create", "a__b", "x" * 70, "x" * 71, "A", "a"]),
)
SERVERS = st.text(alphabet="aA_.-b", min_size=1, max_size=5)
TOOLS = st.dictionaries(SERVERS, st.lists(SOME_TEXT, max_size=6, unique=True), max_size=5)


@settings(max_examples=300, deadline=None)
@given(TOOLS, st.sampled_from(STYLES), st.integers(0, 40), st.lists(st.sampled_from(PARTS)), st.randoms())
def test_names_are_valid_and_distinct_whatever_servers_call_their_tools(
    tools: dict[str, list[str]], style: NameStyle, client_prefix: int, parts: list[str], chance: random.Random
) -> None:
    wanted = [*members(*parts), *(one for server, owns in tools.items() for one in raw(server, *owns))]
    found = assign(wanted, style=style, client_prefix=client_prefix, known={}, reserved=PARTS)
    assert found.exposed.keys() | found.left_out.keys() == {one.holder for one in wanted}
    assert len(found.back()) == len(found.exposed)
    assert all(re.fullmatch(VALID[style].replace("50", "64"), one) for one in found.exposed.values())
    assert max(map(len, found.back()), default=0) <= 64 - client_prefix

    known: dict[str, Holder] = {}
    servers = [*tools, None]
    chance.shuffle(servers)
    for server in servers:
        some = members(*parts) if server is None else raw(server, *tools[server])
        known |= assign(some, style=style, client_prefix=client_prefix, known=known, reserved=PARTS).new
    assert known == found.back()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TOOLS, st.booleans()), max_size=4), st.sampled_from(STYLES))
def test_no_name_ever_moves_whatever_comes_and_goes(
    history: list[tuple[dict[str, list[str]], bool]], style: NameStyle
) -> None:
    known: dict[str, Holder] = {}
    for tools, bare in history:
        wanted = [one for s, owns in tools.items() for one in raw(s, *owns, prefix="" if bare else None)]
        found = assign(wanted, style=style, client_prefix=0, known=known, collisions="leave_out")
        for exposed, holder in found.new.items():
            assert known.setdefault(exposed, holder) == holder
        assert all(known[exposed] == holder for holder, exposed in found.exposed.items())


def prompts(*wanted: tuple[str, str], known: dict[str, Holder] | None = None) -> Assigned:
    return assign_prompts([Wanted(*one) for one in wanted], style="dotted", client_prefix=14, known=known or {})


def test_a_prompt_keeps_its_name() -> None:
    found = prompts(("a", "Explain this, please"), ("b", "hotplug.search"), ("b", "x\ty"))
    assert found.exposed["a", "Explain this, please"] == "Explain this, please"
    assert found.exposed["b", "hotplug.search"] == "b.hotplug.search"
    assert found.left_out == {("b", "x\ty"): "its name has control characters"}


def test_prompts_of_one_name_get_their_servers_in_front() -> None:
    found = prompts(("b", "sum"), ("a", "sum"), ("a", "b.sum"))
    assert found.exposed["a", "sum"] == "a.sum"
    assert found.exposed["a", "b.sum"] == "b.sum"
    assert re.fullmatch(r"b\.sum-[0-9a-f]{8}", found.exposed["b", "sum"])


def test_a_prompt_that_had_its_name_first_keeps_it() -> None:
    first = prompts(("b", "sum"))
    found = prompts(("a", "sum"), ("b", "sum"), known=dict(first.new))
    assert found.exposed == {("b", "sum"): "sum", ("a", "sum"): "a.sum"}
