import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.catalog.connection import Connection
from hotplug.declare import MEMBER_META, Alias, Card, Code, Declaration, Finding, available, check
from hotplug.profile.canonical import digest
from hotplug.profile.schema import error_or

Json = dict[str, Any]

TEXT: Json = {"type": "string"}


def obj(required: str, /, **properties: Json) -> Json:
    # Copies, because a lie about one field would otherwise change every field that was written with the same dict.
    return {"type": "object", "properties": copy.deepcopy(properties), "required": required.split()}


PAGE: Json = {
    "schema": "hotplug.profile/1",
    "name": "page",
    "version": "1.1.0",
    "description": "Pages.",
    "operations": {
        "page.find": {
            "description": "Find.",
            "input": obj("text", text=TEXT),
            "output": obj("", at={"type": "integer"}),
        }
    },
    "determinism": {
        "reset": "cheap",
        "replayPrefix": "free",
        "time": "wall",
        "observation": "exact",
        "actions": "reversible",
    },
}
SHOP: Json = {
    "schema": "hotplug.profile/1",
    "name": "shop",
    "version": "1.2.0",
    "description": "Shops.",
    "extends": {"page": "^1.1"},
    "facets": {
        "gifts": {"version": "1.0.0", "description": "Gifts.", "without": "No gifts."},
        "notes": {"version": "2.0.0", "description": "Notes.", "without": "No notes."},
    },
    "operations": {
        "shop.buy": {
            "description": "Buy.",
            "effects": True,
            "input": {
                **obj(
                    "item count wrapping",
                    item=TEXT,
                    count={"type": "integer", "minimum": 1},
                    coupon={"anyOf": [TEXT, {"type": "null"}], "default": None},
                    wrapping={**TEXT, "x-facet": "gifts"},
                    note={**TEXT, "x-facet": "notes"},
                ),
                "additionalProperties": False,
            },
            "output": obj("order", order=TEXT, state={"enum": ["open", "paid"]}, note={**TEXT, "x-facet": "notes"}),
        },
        "shop.wrap": {"description": "Wrap.", "facet": "gifts", "input": obj("order", order=TEXT), "output": obj("")},
        "shop.scribble": {"description": "Scribble.", "facet": "notes", "input": obj(""), "output": obj("")},
        "shop.refund": {
            "description": "Refund.",
            "required": False,
            "without": "…",
            "input": obj("order", order=TEXT),
            "output": obj(""),
        },
    },
    "reads": {
        "shop.cart": {
            "description": "Cart.",
            "sense": "x-till",
            "input": obj(""),
            "output": obj("items", items={"type": "array", "items": TEXT}),
        }
    },
    "events": {"shop.sold": {"description": "Sold.", "sense": "net", "payload": obj("")}},
    "senses": {"net": {"independence": "independent", "grade": "presence"}},
    "determinism": {
        "reset": "costly",
        "replayPrefix": "costly",
        "time": "wall",
        "observation": "exact",
        "actions": "irreversible",
    },
}
LOYALTY: Json = {
    "id": "com.example.loyalty",
    "version": "1.0.0",
    "requires": {"shop": "^1.2"},
    "operations": {
        "com.example.loyalty.points": {"input": obj(""), "output": obj("points", points={"type": "integer"})}
    },
}


def tool(name: str, member: str | list[str] | None, given: Json, result: Json | None) -> Json:
    listed: Json = {"name": name, "inputSchema": given}
    if result is not None:
        listed["outputSchema"] = error_or(result)
    if member is not None:
        listed["_meta"] = {MEMBER_META: member}
    return listed


@dataclass
class Server:
    """A server as the check sees it: every member may be changed into a lie."""

    cards: dict[str, Json] = field(default_factory=dict[str, Json])
    rest: Json = field(default_factory=dict[str, Any])
    tools: dict[str, Json] = field(default_factory=dict[str, Json])
    definitions: Json = field(default_factory=dict[str, Any])

    def declaration(self) -> Declaration:
        return Declaration.of(cards=[Card(name, **card) for name, card in self.cards.items()], **self.rest)

    def findings(self) -> tuple[Finding, ...]:
        return check(self.declaration(), self.definitions, list(self.tools.values()))


def good() -> Server:
    buy = obj(
        "item count",
        item=TEXT,
        count={"type": "integer", "minimum": 0},
        coupon=TEXT,
        wrapping=TEXT,
        dry={"type": "boolean"},
    )
    tools = [
        tool("buy_it", "shop@1/shop.buy", buy, obj("order extra", order=TEXT, state={"const": "paid"}, extra=TEXT)),
        tool("shop.wrap", None, obj("order", order=TEXT), obj("")),
        tool(
            "look",
            ["shop@1/shop.cart", "page@1/page.find"],
            obj("", text=TEXT),
            obj("items", items={"type": "array", "items": TEXT}),
        ),
        tool("probe", None, obj("action", action={"enum": ["refund"]}, order=TEXT), obj("")),
        tool("points", "com.example.loyalty@1/com.example.loyalty.points", obj(""), obj("points", points={"const": 3})),
        tool("unrelated", None, {"type": "object"}, None),
    ]
    return Server(
        cards={
            "shop": {"version": "1.2.0", "digest": digest(SHOP), "facets": {"gifts": "1.0.0"}},
            "page": {"version": "1.1.0", "digest": digest(PAGE)},
        },
        rest={
            "extensions": {"com.example.loyalty": "1.0.0", "org.other.thing": "9.0.0"},
            "senses": {
                "net": {"independence": "actuation-derived", "grade": "presence"},
                "x-till": {"independence": "independent", "grade": "consequence"},
            },
            "determinism": {"reset": "costly", "replayPrefix": "unsafe"},
            "aliases": {"shop.refund": Alias("probe", {"action": "refund"})},
            "instances": [{"id": "ctx-1", "title": "First"}],
        },
        tools={listed["name"]: listed for listed in tools},
        definitions={"shop": SHOP, "page": PAGE, "com.example.loyalty": LOYALTY},
    )


def fields(server: Server, name: str = "buy_it") -> Json:
    return server.tools[name]["inputSchema"]["properties"]


def answers(server: Server, name: str = "buy_it") -> Json:
    return server.tools[name]["outputSchema"]["anyOf"][0]


def older_parent(server: Server) -> None:
    server.cards["page"] = {"version": "1.0.0"}


def another_major(server: Server) -> None:
    server.cards["page"]["version"] = "2.0.0"
    server.definitions["shop"]["extends"]["page"] = ">=1"
    del server.cards["shop"]["digest"]


Lie = Callable[[Server], object]

LIES: list[tuple[str, str, str | None, str, Lie]] = [
    (
        "a profile that nobody knows",
        "unknown_profile",
        "bank",
        "bank 1.0.0",
        lambda s: s.cards.update(bank={"version": "1.0.0"}),
    ),
    ("another major", "unknown_profile", "page", "only 1.1.0", another_major),
    ("no parent", "missing_parent", "shop", "page", lambda s: s.cards.pop("page")),
    ("an old parent", "parent_out_of_range", "shop", "1.0.0", older_parent),
    (
        "another digest",
        "digest_mismatch",
        "shop",
        "sha256:" + "0" * 64,
        lambda s: s.cards["shop"].update(digest="sha256:" + "0" * 64),
    ),
    ("no tool for a core part", "missing_part", "shop.buy", "shop.buy", lambda s: s.tools.pop("buy_it")),
    (
        "a tool of another major",
        "missing_part",
        "shop.buy",
        "no tool",
        lambda s: s.tools["buy_it"].update(_meta={MEMBER_META: "shop@2/shop.buy"}),
    ),
    (
        "the right name for another member",
        "missing_part",
        "shop.buy",
        "no tool",
        lambda s: s.tools["buy_it"].update(name="shop.buy", _meta={MEMBER_META: "bank@1/bank.buy"}),
    ),
    (
        "no tool for a part of an extension",
        "missing_part",
        "com.example.loyalty.points",
        "no tool",
        lambda s: s.tools.pop("points"),
    ),
    ("half a facet", "facet_incomplete", "shop.wrap", "gifts", lambda s: s.tools.pop("shop.wrap")),
    (
        "a facet of another version",
        "facet_incomplete",
        "shop",
        "1.1.0",
        lambda s: s.cards["shop"]["facets"].update(gifts="1.1.0"),
    ),
    (
        "a facet that isn't one",
        "facet_incomplete",
        "shop",
        "'barter'",
        lambda s: s.cards["shop"]["facets"].update(barter="1.0.0"),
    ),
    ("a range of an argument", "input_narrower", "shop.buy", "$.count", lambda s: fields(s)["count"].update(minimum=2)),
    ("an argument that it drops", "input_narrower", "shop.buy", "'coupon'", lambda s: fields(s).pop("coupon")),
    (
        "an argument of a facet that it drops",
        "input_narrower",
        "shop.buy",
        "'wrapping'",
        lambda s: fields(s).pop("wrapping"),
    ),
    (
        "an argument more that it requires",
        "input_narrower",
        "shop.buy",
        "'dry'",
        lambda s: s.tools["buy_it"]["inputSchema"]["required"].append("dry"),
    ),
    (
        "an argument of another type",
        "input_narrower",
        "shop.buy",
        "$.item",
        lambda s: fields(s)["item"].update(type="integer"),
    ),
    (
        "an alias that fixes what the tool refuses",
        "input_narrower",
        "shop.refund",
        "refund",
        lambda s: fields(s, "probe")["action"].update(enum=["buy"]),
    ),
    (
        "a value that isn't in the profile",
        "output_wider",
        "shop.buy",
        "lost",
        lambda s: answers(s)["properties"].update(state={"enum": ["paid", "lost"]}),
    ),
    ("a result that may be missing", "output_wider", "shop.buy", "'order'", lambda s: answers(s).update(required=[])),
    (
        "any result at all",
        "output_wider",
        "shop.buy",
        "'order'",
        lambda s: s.tools["buy_it"].update(outputSchema={"type": "object"}),
    ),
    (
        "a read of another shape",
        "output_wider",
        "shop.cart",
        "items",
        lambda s: answers(s, "look")["properties"].update(items=TEXT),
    ),
    (
        "a result of an extension",
        "output_wider",
        "com.example.loyalty.points",
        "$.points",
        lambda s: answers(s, "points")["properties"].update(points=TEXT),
    ),
    (
        "a sense above the profile's",
        "sense_overclaimed",
        None,
        "by shop",
        lambda s: s.rest["senses"].update(net={"independence": "independent", "grade": "consequence"}),
    ),
    (
        "a sense above the table",
        "sense_overclaimed",
        None,
        "ui",
        lambda s: s.rest["senses"].update(ui={"independence": "independent", "grade": "context"}),
    ),
    (
        "a worth that there isn't",
        "sense_overclaimed",
        None,
        "certain",
        lambda s: s.rest["senses"].update(log={"independence": "independent", "grade": "certain"}),
    ),
    (
        "determinism above the profile's",
        "determinism_overclaimed",
        None,
        "replayPrefix",
        lambda s: s.rest["determinism"].update(replayPrefix="free"),
    ),
    (
        "a determinism value that there isn't",
        "determinism_overclaimed",
        None,
        "'never'",
        lambda s: s.rest["determinism"].update(time="never"),
    ),
    (
        "a determinism field that there isn't",
        "determinism_overclaimed",
        None,
        "speed",
        lambda s: s.rest["determinism"].update(speed="cheap"),
    ),
    (
        "a sense of its own without a worth",
        "x_sense_undeclared",
        "shop.cart",
        "x-till",
        lambda s: s.rest["senses"].pop("x-till"),
    ),
    (
        "an alias to no tool",
        "alias_tool_missing",
        "shop.refund",
        "'prob'",
        lambda s: s.rest["aliases"].update({"shop.refund": Alias("prob", {"action": "refund"})}),
    ),
    (
        "an alias of a core part to no tool",
        "alias_tool_missing",
        "shop.buy",
        "'buy'",
        lambda s: s.rest["aliases"].update({"shop.buy": Alias("buy")}),
    ),
    (
        "a card's member to no tool",
        "alias_tool_missing",
        "com.example.gift.send",
        "'gift'",
        lambda s: s.cards["shop"].update(members={"com.example.gift.send": "gift"}),
    ),
    (
        "an alias that fixes what isn't an argument",
        "alias_fixed_unknown",
        "com.example.gift.send",
        "'act'",
        lambda s: s.rest["aliases"].update({"com.example.gift.send": Alias("probe", {"act": "refund"})}),
    ),
    (
        "an extension of a later profile",
        "extension_requires_unmet",
        "com.example.loyalty",
        "^1.3",
        lambda s: s.definitions["com.example.loyalty"]["requires"].update(shop="^1.3"),
    ),
    (
        "an extension of a profile that isn't there",
        "extension_requires_unmet",
        "com.example.loyalty",
        "chat",
        lambda s: s.definitions["com.example.loyalty"]["requires"].update(chat="^1"),
    ),
    (
        "a tool of an instance that isn't there",
        "unknown_instance",
        None,
        "'ctx-2'",
        lambda s: s.tools["unrelated"].update(_meta={"tools.noetic/instance": "ctx-2"}),
    ),
    (
        "an extension's name of two labels",
        "bad_name",
        "example.loyalty",
        "example.loyalty",
        lambda s: s.rest["extensions"].update({"example.loyalty": "1.0.0"}),
    ),
    (
        "a sense that is none",
        "bad_name",
        "smell",
        "smell",
        lambda s: s.rest["senses"].update(smell={"independence": "independent", "grade": "context"}),
    ),
    (
        "a part without a profile",
        "bad_name",
        "refund",
        "refund",
        lambda s: s.rest["aliases"].update(refund=Alias("probe")),
    ),
]


def lying(lie: Lie) -> Server:
    server = copy.deepcopy(good())
    lie(server)
    return server


def test_a_server_that_keeps_its_word_has_no_findings() -> None:
    assert good().findings() == ()
    assert available(good().findings())


@pytest.mark.parametrize(("code", "part", "words", "lie"), [row[1:] for row in LIES], ids=[row[0] for row in LIES])
def test_one_lie_is_one_finding_that_names_it(code: str, part: str | None, words: str, lie: Lie) -> None:
    (finding,) = lying(lie).findings()
    assert (finding.code, finding.part) == (code, part)
    assert words in finding.message
    assert finding.fix
    assert not available([finding])


def test_every_code_has_a_lie() -> None:
    told_elsewhere = {"dialects_disagree", "unproven"}
    assert {code for _, code, *_ in LIES} | told_elsewhere == set(get_args(Code))


DOUBTS: list[tuple[str, str, Lie]] = [
    ("a pattern", "shop.buy", lambda s: fields(s)["item"].update(pattern=r"^(?s:.)*$")),
    ("a tool without an output schema", "shop.cart", lambda s: s.tools["look"].pop("outputSchema")),
    ("a reference to nowhere", "shop.buy", lambda s: fields(s)["item"].update({"$ref": "#/$defs/none"})),
]


@pytest.mark.parametrize(("part", "doubt"), [row[1:] for row in DOUBTS], ids=[row[0] for row in DOUBTS])
def test_what_cant_be_decided_is_unproven_and_makes_nothing_unavailable(part: str, doubt: Lie) -> None:
    findings = lying(doubt).findings()
    assert {finding.code for finding in findings} == {"unproven"}
    assert part in {finding.part for finding in findings}
    assert available(findings)


def test_an_older_server_is_not_called_a_liar_by_a_newer_definition() -> None:
    def older(server: Server) -> None:
        server.definitions["shop"].update(version="1.3.0")
        server.definitions["shop"]["operations"]["shop.buy"]["input"]["properties"]["gift"] = TEXT

    findings = lying(older).findings()
    assert [(finding.code, finding.part) for finding in findings] == [("unproven", "shop.buy")]


def test_a_newer_server_may_have_more_than_the_definition_at_hand() -> None:
    def newer(server: Server) -> None:
        server.cards["shop"].update(version="1.9.0", digest="sha256:" + "1" * 64)
        server.cards["shop"]["facets"]["subscriptions"] = "1.0.0"

    assert lying(newer).findings() == ()


def test_what_was_wrong_in_reading_is_among_the_findings() -> None:
    read = Declaration.from_extensions({"tools.noetic/profiles": {"profiles": {"shop": "one"}}})
    assert [finding.code for finding in check(read, {}, [])] == ["bad_name"]


def real(facets: tuple[str, ...]) -> tuple[Declaration, Json, list[Json]]:
    definitions = (Calendar.definition, Connection.definition)
    tools = [
        tool(name, f"{one.identity}/{name}", part.input.schema, part.output.schema)
        for one in definitions
        for name, part in one.parts.items()
        if part.kind != "event" and (part.flags.facet is None or part.flags.facet in facets)
    ]
    cards = [
        Card(
            one.name, one.version, one.digest, {name: one.facets[name].version for name in facets if name in one.facets}
        )
        for one in definitions
    ]
    declaration = Declaration.of(cards=cards, determinism=Calendar.definition.determinism.document())
    return declaration, {one.name: one.document() for one in definitions}, tools


@pytest.mark.parametrize("facets", [(), ("recurrence",), tuple(Calendar.definition.facets)])
def test_a_calendar_that_lists_the_profiles_own_schemas_keeps_its_word(facets: tuple[str, ...]) -> None:
    assert check(*real(facets)) == ()


def test_a_calendar_without_facets_may_leave_out_their_fields_but_not_a_core_one() -> None:
    declaration, definitions, tools = real(())
    tools = copy.deepcopy(tools)
    (create,) = [one for one in tools if one["name"] == "calendar.create"]
    properties = create["inputSchema"]["properties"]
    for name in [name for name, one in properties.items() if "x-facet" in one]:
        del properties[name]
    assert check(declaration, definitions, tools) == ()
    del properties["location"]
    (finding,) = check(declaration, definitions, tools)
    assert (finding.code, finding.part) == ("input_narrower", "calendar.create")
    assert "'location'" in finding.message
