import json
from typing import Any

import pytest

from hotplug.declare import CARDS, NOETIC, Alias, Card, Declaration, Instance, Route, available, members_of, routes
from hotplug.profile.senses import Sense

DIGEST = "sha256:" + "a" * 64

LONE_NOETIC: dict[str, Any] = {
    "profiles": {"browser": "1.2.0", "ui": "1.1.0"},
    "extensions": {"com.example.probe": "1.0.0"},
    "senses": {"net": {"independence": "independent", "grade": "consequence"}},
    "determinism": {
        "reset": "cheap",
        "replayPrefix": "free",
        "time": "wall",
        "observation": "exact",
        "actions": "reversible",
    },
    "setup": {"$ref": "#/setup"},
    "aliases": {"ui.find": {"tool": "probe_look", "fixed": {"action": "find"}}},
    "instances": [{"id": "ctx-1", "title": "Chromium · localhost:5173"}],
}
LONE_CARDS: dict[str, Any] = {
    "profiles": [
        {
            "profile": "calendar",
            "version": "1.0.0",
            "digest": DIGEST,
            "facets": {"recurrence": "1.0.0"},
            "members": {"com.example.focus.block": {"tool": "focus_block"}},
            "via": "projected",
            "projection": {"id": "dev.hotplug.caldav-mcp", "version": "1.0.0", "digest": DIGEST},
        }
    ]
}


def test_the_noetic_dialect_alone_is_read_whole() -> None:
    read = Declaration.from_extensions({NOETIC: LONE_NOETIC})
    assert read.problems == ()
    assert [(card.profile, card.version) for card in read.cards] == [("browser", "1.2.0"), ("ui", "1.1.0")]
    assert read.extensions == {"com.example.probe": "1.0.0"}
    assert read.senses == {"net": Sense("independent", "consequence")}
    assert read.determinism["replayPrefix"] == "free"
    assert read.setup == {"$ref": "#/setup"}
    assert read.aliases["ui.find"] == Alias("probe_look", {"action": "find"})
    assert read.instances == (Instance("ctx-1", "Chromium · localhost:5173"),)


def test_what_the_noetic_dialect_cant_say_has_the_default() -> None:
    card = Declaration.from_extensions({NOETIC: LONE_NOETIC}).card("ui")
    assert card is not None
    assert (card.digest, dict(card.facets), card.via, card.projection) == (None, {}, "native", None)


def test_cards_alone_are_read_whole() -> None:
    read = Declaration.from_extensions({CARDS: LONE_CARDS})
    assert read.problems == ()
    card = read.card("calendar")
    assert card is not None
    assert (card.version, card.digest, card.via) == ("1.0.0", DIGEST, "projected")
    assert card.facets == {"recurrence": "1.0.0"}
    assert card.projection == {"id": "dev.hotplug.caldav-mcp", "version": "1.0.0", "digest": DIGEST}
    assert read.aliases["com.example.focus.block"] == Alias("focus_block")
    assert read.senses == {}


def test_nothing_declared_is_a_declaration_of_nothing() -> None:
    assert Declaration.from_extensions({}) == Declaration.of()
    assert Declaration.from_extensions({"other/extension": 3}).cards == ()


def test_what_each_dialect_adds_is_brought_together() -> None:
    read = Declaration.from_extensions(
        {
            NOETIC: {
                "profiles": {"calendar": "1.0.0"},
                "aliases": {"calendar.create": {"tool": "add"}},
                "determinism": {"reset": "none"},
            },
            CARDS: LONE_CARDS,
        }
    )
    assert read.problems == ()
    card = read.card("calendar")
    assert card is not None
    assert card.digest == DIGEST
    assert card.members == {"com.example.focus.block": "focus_block", "calendar.create": "add"}
    assert {part: alias.tool for part, alias in read.aliases.items()} == {
        "calendar.create": "add",
        "com.example.focus.block": "focus_block",
    }
    assert read.determinism == {"reset": "none"}


@pytest.mark.parametrize(
    ("noetic", "part", "words"),
    [
        ({"profiles": {"calendar": "1.1.0"}}, "calendar", "1.1.0"),
        ({"profiles": {}}, "calendar", "not declared"),
        ({"profiles": {"calendar": "1.0.0", "chat": "1.0.0"}}, "chat", "chat is 1.0.0"),
        (
            {"profiles": {"calendar": "1.0.0"}, "aliases": {"com.example.focus.block": {"tool": "other"}}},
            "com.example.focus.block",
            "'focus_block'",
        ),
    ],
)
def test_dialects_that_disagree_make_the_server_unavailable_and_say_where(noetic: Any, part: str, words: str) -> None:
    read = Declaration.from_extensions({NOETIC: noetic, CARDS: LONE_CARDS})
    (finding,) = read.problems
    assert (finding.code, finding.part) == ("dialects_disagree", part)
    assert words in finding.message
    assert not available(read.problems)


def test_a_profile_with_two_cards_is_a_disagreement() -> None:
    twice = {"profiles": [{"profile": "ui", "version": "1.0.0"}, {"profile": "ui", "version": "1.1.0"}]}
    read = Declaration.from_extensions({CARDS: twice})
    assert [finding.code for finding in read.problems] == ["dialects_disagree"]
    assert len(read.cards) == 1


def whole() -> Declaration:
    return Declaration.of(
        cards=[
            Card("calendar", "1.0.0", DIGEST, {"recurrence": "1.0.0"}, {"com.example.focus.block": "focus_block"}),
            Card("connection", "1.0.0"),
            Card("connection", "1.0.0"),
        ],
        extensions={"com.example.focus": "1.0.0"},
        senses={"state": {"independence": "actuation-derived", "grade": "presence"}},
        determinism={"reset": "none"},
        setup={"$ref": "#/setup"},
        aliases={"calendar.get": Alias("read"), "calendar.create": Alias("write", {"mode": "new"})},
        instances=[{"id": "a"}, Instance("b", "B")],
    )


def test_what_is_written_reads_back_the_same() -> None:
    declaration = whole()
    assert Declaration.from_extensions(json.loads(json.dumps(declaration.to_extensions()))) == declaration


def test_both_dialects_are_written_and_say_the_same() -> None:
    written = whole().to_extensions()
    assert written[NOETIC]["profiles"] == {"calendar": "1.0.0", "connection": "1.0.0"}
    assert written[NOETIC]["aliases"]["calendar.create"] == {"tool": "write", "fixed": {"mode": "new"}}
    assert written[NOETIC]["senses"] == {"state": {"independence": "actuation-derived", "grade": "presence"}}
    assert written[NOETIC]["instances"] == [{"id": "a"}, {"id": "b", "title": "B"}]
    assert written[CARDS]["profiles"] == [
        {
            "profile": "calendar",
            "version": "1.0.0",
            "digest": DIGEST,
            "facets": {"recurrence": "1.0.0"},
            "members": {"com.example.focus.block": {"tool": "focus_block"}, "calendar.get": {"tool": "read"}},
            "via": "native",
        },
        {"profile": "connection", "version": "1.0.0", "via": "native"},
    ]


def test_cards_alone_carry_what_a_reader_of_cards_needs() -> None:
    read = Declaration.from_extensions({CARDS: whole().to_extensions()[CARDS]})
    assert read.aliases["calendar.get"] == Alias("read")
    assert "calendar.create" not in read.aliases


MALFORMED: list[tuple[str, dict[str, Any]]] = [
    ("a text", {NOETIC: "browser"}),
    ("profiles as a list", {NOETIC: {"profiles": ["browser"]}}),
    ("a version of two numbers", {NOETIC: {"profiles": {"browser": "1.2"}}}),
    ("a version that is a number", {NOETIC: {"profiles": {"browser": 1}}}),
    ("a name in capitals", {NOETIC: {"profiles": {"Browser": "1.2.0"}}}),
    ("an extension of two labels", {NOETIC: {"extensions": {"example.probe": "1.0.0"}}}),
    ("an alias without a tool", {NOETIC: {"aliases": {"ui.find": {}}}}),
    ("an alias that is a text", {NOETIC: {"aliases": {"ui.find": "probe"}}}),
    ("an alias of no part", {NOETIC: {"aliases": {"find it": {"tool": "probe"}}}}),
    ("fixed arguments in a list", {NOETIC: {"aliases": {"ui.find": {"tool": "probe", "fixed": ["a"]}}}}),
    ("a sense that is none", {NOETIC: {"senses": {"X-Smell": {}}}}),
    ("determinism that isn't text", {NOETIC: {"determinism": {"reset": 1}}}),
    ("an instance without an id", {NOETIC: {"instances": [{"title": "A"}]}}),
    ("two instances of one id", {NOETIC: {"instances": [{"id": "a"}, {"id": "a"}]}}),
    ("cards as an object", {CARDS: {"profiles": {"ui": "1.0.0"}}}),
    ("a card that is a text", {CARDS: {"profiles": ["ui"]}}),
    ("a card without a version", {CARDS: {"profiles": [{"profile": "ui"}]}}),
    ("a digest that is a number", {CARDS: {"profiles": [{"profile": "ui", "version": "1.0.0", "digest": 5}]}}),
    ("a provenance that there isn't", {CARDS: {"profiles": [{"profile": "ui", "version": "1.0.0", "via": "magic"}]}}),
    ("facets in a list", {CARDS: {"profiles": [{"profile": "ui", "version": "1.0.0", "facets": ["a"]}]}}),
]


@pytest.mark.parametrize("extensions", [row[1] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_what_a_stranger_wrote_wrongly_is_a_finding_and_never_an_exception(extensions: dict[str, Any]) -> None:
    read = Declaration.from_extensions(extensions)
    assert {finding.code for finding in read.problems} == {"bad_name"}
    assert all(finding.message and finding.fix for finding in read.problems)
    assert not available(read.problems)


MEMBERS = {"ui.find": "ui@1/ui.find", "ui.click": "ui@1/ui.click", "ui.type": "ui@1/ui.type"}
META = "org.classprofiles/member"


def test_an_alias_goes_before_a_member_and_a_member_before_a_name() -> None:
    tools = [
        {"name": "act", "_meta": {META: ["ui@1/ui.click", "ui@1/ui.find"]}},
        {"name": "ui.click"},
        {"name": "ui.type"},
        {"name": "probe"},
    ]
    declaration = Declaration.of(aliases={"ui.find": Alias("probe", {"action": "find"})})
    assert routes(declaration, MEMBERS, tools) == {
        "ui.find": Route("probe", {"action": "find"}),
        "ui.click": Route("act"),
        "ui.type": Route("ui.type"),
    }


def test_a_renamed_tool_is_found_and_a_namesake_of_another_major_isnt() -> None:
    tools = [
        {"name": "s1__ui_click", "_meta": {META: "ui@1/ui.click"}},
        {"name": "ui.find", "_meta": {META: "ui@2/ui.find"}},
    ]
    assert routes(Declaration.of(), MEMBERS, tools) == {"ui.click": Route("s1__ui_click")}


@pytest.mark.parametrize("meta", [None, {}, {META: 3}, {META: None}, "text"])
def test_a_tool_that_says_nothing_readable_of_its_member_says_nothing(meta: object) -> None:
    assert members_of({"name": "a", "_meta": meta}) is None
