import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hotplug.profile.compare import No, Schema, Unproven, Yes, accepts_all, restrict, seal

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}


def obj(required: str = "", rest: dict[str, Any] | None = None, /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split(), **(rest or {})}


def closed(required: str = "", /, **properties: Any) -> dict[str, Any]:
    return obj(required, {"additionalProperties": False}, **properties)


TREE: Schema = {
    "$ref": "#/$defs/tree",
    "$defs": {"tree": closed("value", value=NUMBER, children={"type": "array", "items": {"$ref": "#/$defs/tree"}})},
}
WHOLE_TREE: Schema = {
    "$ref": "#/$defs/node",
    "$defs": {"node": closed("value", value=WHOLE, children={"type": "array", "items": {"$ref": "#/$defs/node"}})},
}
BY_KIND: Schema = {
    "oneOf": [obj("kind", kind={"const": "a"}, x=TEXT), obj("kind", kind={"const": "b"}, x=WHOLE)],
}

ACCEPTED: list[tuple[str, Schema, Schema]] = [
    ("anything", True, {"type": "object"}),
    ("nothing comes", False, False),
    ("a number takes whole numbers", NUMBER, WHOLE),
    ("a multiple of one takes whole numbers", {"type": "number", "multipleOf": 1}, WHOLE),
    ("null or text in two spellings", {"anyOf": [TEXT, {"type": "null"}]}, {"type": ["string", "null"]}),
    ("a listed value", TEXT, {"enum": ["a", "b"]}),
    ("fewer listed values", {"enum": ["a", "b", None]}, {"const": None}),
    ("listed values over alternatives", {"anyOf": [{"const": 1}, {"const": 2}]}, {"enum": [1, 2]}),
    ("booleans over alternatives", {"enum": [True, False, 3]}, {"type": "boolean"}),
    ("listed objects", {"type": "object"}, {"enum": [{"a": 1}]}),
    ("one is one point nought", {"enum": [1]}, {"enum": [1.0]}),
    ("a wider range", {"type": "integer", "minimum": 0}, {"type": "integer", "exclusiveMinimum": -1, "maximum": 9}),
    ("an open bound", {"type": "number", "exclusiveMinimum": 0}, {"type": "number", "minimum": 0.1}),
    ("a length", {"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 8}),
    ("the same pattern", {"pattern": "^a"}, {"type": "string", "pattern": "^a", "maxLength": 3}),
    ("the same format", {"format": "date"}, {"type": "string", "format": "date"}),
    ("keywords of another type", {"minLength": 5}, WHOLE),
    ("a field less", closed(a=TEXT, b=TEXT), closed("a", a=TEXT)),
    ("a map of named fields", obj("", {"additionalProperties": NUMBER}), closed(a=WHOLE)),
    (
        "the same fields through allOf",
        closed("a b", a=TEXT, b=TEXT),
        {"allOf": [obj("a", a=TEXT), closed("b", a=True, b=TEXT)]},
    ),
    ("recursive", TREE, WHOLE_TREE),
    (
        "alternatives by kind",
        BY_KIND,
        {"anyOf": [obj("kind", kind={"const": "b"}, x=WHOLE), obj("kind", kind={"const": "a"}, x=TEXT)]},
    ),
    ("a list of at most one has no equal items", {"uniqueItems": True}, {"type": "array", "maxItems": 1}),
    (
        "a tuple in a list",
        {"type": "array", "items": NUMBER},
        {"type": "array", "prefixItems": [WHOLE], "items": NUMBER},
    ),
    ("prefixes", {"prefixItems": [TEXT, TEXT]}, {"type": "array", "items": TEXT}),
    ("annotations and x- keywords", {"type": "string", "title": "A", "x-ref": "a"}, {"type": "string", "default": ""}),
    ("a property that is called title", closed(title=TEXT), closed(title={"type": "string", "title": "Title"})),
    (
        "the same not",
        {"type": "string", "not": {"const": "x"}},
        {"type": "string", "not": {"const": "x"}, "maxLength": 3},
    ),
    ("names of members", obj("", {"propertyNames": {"maxLength": 2}}), closed(ab=TEXT)),
    ("a pattern of members", {"patternProperties": {"^a": NUMBER}}, closed(ab=WHOLE, c=TEXT)),
    ("escaped references", {"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": TEXT}}, TEXT),
    (
        "an older dialect ignores what stands beside a reference",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/a",
            "maxLength": 1,
            "definitions": {"a": TEXT},
        },
        TEXT,
    ),
]

REFUSED: list[tuple[str, Schema, Schema, str]] = [
    ("nothing is accepted", False, TEXT, "$"),
    ("whole numbers only", WHOLE, NUMBER, "$"),
    ("another type", TEXT, WHOLE, "$"),
    ("null isn't accepted", TEXT, {"type": ["string", "null"]}, "$"),
    ("a listed value is missing", {"enum": ["a", "b"]}, {"enum": ["a", "c"]}, "$"),
    ("listed values only", {"enum": ["a"]}, TEXT, "$"),
    ("true isn't one", {"const": 1}, {"const": True}, "$"),
    ("a lower bound", {"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 0}, "$"),
    ("an open bound", {"type": "number", "exclusiveMaximum": 10}, {"type": "number", "maximum": 10}, "$"),
    ("a length", {"type": "string", "maxLength": 50}, {"type": "string", "maxLength": 100}, "$"),
    ("a format", obj(at={"type": "string", "format": "date-time"}), obj(at=TEXT), "$.at"),
    ("a required field", obj("a", a=TEXT), obj(a=TEXT), "$"),
    ("a field that isn't there", closed(a=TEXT), closed(a=TEXT, b=TEXT), "$"),
    ("unnamed fields", closed(a=TEXT), obj(a=TEXT), "$"),
    ("an optional field of the wider that may come as anything", obj(a=TEXT, b=TEXT), obj(a=TEXT), "$.b"),
    (
        "deep inside",
        obj(a={"type": "array", "items": obj(b=WHOLE)}),
        obj(a={"type": "array", "items": obj(b=TEXT)}),
        "$.a[].b",
    ),
    ("a longer list", {"type": "array", "maxItems": 3}, {"type": "array", "maxItems": 5}, "$"),
    ("equal items", {"type": "array", "uniqueItems": True}, {"type": "array", "items": TEXT}, "$"),
    ("recursive", WHOLE_TREE, TREE, "$.value"),
    ("two alternatives at once", {"oneOf": [NUMBER, WHOLE]}, WHOLE, "$"),
    ("a not", {"not": {"const": "a"}}, TEXT, "$"),
    ("more members", obj("", {"maxProperties": 1}), closed("a b", a=TEXT, b=TEXT), "$"),
]

UNDECIDED: list[tuple[str, Schema, Schema]] = [
    ("a format that isn't known", {"type": "string", "format": "x-zone"}, TEXT),
    (
        "two ranges that only together cover",
        {"anyOf": [{"type": "integer", "maximum": 4}, {"type": "integer", "minimum": 5}]},
        WHOLE,
    ),
    ("two patterns that mean the same", {"pattern": "^[0-9]$"}, {"type": "string", "pattern": r"^[0123456789]$"}),
    ("a reference to nowhere", {"$ref": "#/$defs/none"}, TEXT),
    ("a reference elsewhere", {"$ref": "https://example.com/schema"}, TEXT),
    ("a reference to itself", {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}, TEXT),
    ("required as servers wrote it once", {"type": "object", "required": True}, obj(a=TEXT)),
    ("an if", {"if": TEXT, "then": {"minLength": 0}}, TEXT),
]


@pytest.mark.parametrize(("wider", "narrower"), [case[1:] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
def test_a_wider_schema_is_proven_to_accept(wider: Schema, narrower: Schema) -> None:
    assert accepts_all(wider, narrower) == Yes()


@pytest.mark.parametrize(
    ("wider", "narrower", "path"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_a_narrower_schema_is_refuted_by_an_example(wider: Schema, narrower: Schema, path: str) -> None:
    answer = accepts_all(wider, narrower)
    assert isinstance(answer, No), answer
    assert answer.path == path
    assert Draft202012Validator(narrower).is_valid(answer.example)


@pytest.mark.parametrize(("wider", "narrower"), [case[1:] for case in UNDECIDED], ids=[case[0] for case in UNDECIDED])
def test_what_structure_doesnt_decide_is_unproven(wider: Schema, narrower: Schema) -> None:
    assert isinstance(accepts_all(wider, narrower), Unproven)


def test_arguments_of_our_own_client_have_only_named_fields() -> None:
    tool, profile = obj(a=TEXT, mode=WHOLE), obj(a=TEXT)
    assert isinstance(accepts_all(tool, profile), No)
    assert accepts_all(tool, profile, named_only=True) == Yes()
    assert isinstance(accepts_all(closed(a=TEXT), obj(a=TEXT, b=TEXT), named_only=True), No)
    assert accepts_all(closed(), obj(), named_only=True) == Yes()


def test_a_map_stays_a_map_where_only_named_fields_come() -> None:
    free = obj(more=obj("", {"additionalProperties": True}))
    assert isinstance(accepts_all(closed(more=closed()), free, named_only=True), No)


def test_a_lenient_reader_ignores_fields_that_it_doesnt_know() -> None:
    profile, tool = closed("a", a=closed(b=TEXT)), closed("a c", a=closed(b=TEXT, z=TEXT), c=TEXT)
    assert isinstance(accepts_all(profile, tool), No)
    assert accepts_all(profile, tool, lenient=True) == Yes()
    assert isinstance(accepts_all(profile, closed(a=closed(b=TEXT)), lenient=True), No)


def test_comparing_changes_neither_schema() -> None:
    wider, narrower = closed("a", a=TEXT), obj("b a", b=TEXT, a=TEXT)
    before = json.dumps([wider, narrower])
    accepts_all(wider, narrower, lenient=True)
    restrict(wider, ())
    assert json.dumps([wider, narrower]) == before


def test_too_many_alternatives_are_unproven_rather_than_slow() -> None:
    many = {"allOf": [{"anyOf": [obj(str(n), **{str(n): TEXT}), obj(f"{n}x")]} for n in range(12)]}
    assert isinstance(accepts_all(obj("zz"), many), Unproven)


def test_fields_of_facets_that_arent_declared_are_dropped() -> None:
    schema = closed(
        "a rule",
        a=TEXT,
        rule={"type": "object", "x-facet": "recurrence"},
        alert={"$ref": "#/$defs/alert", "x-facet": "reminders"},
        changes=closed("scope", scope={"type": "string", "x-facet": "recurrence"}, title=TEXT),
    )
    dropped = restrict(schema, ["reminders"])
    assert isinstance(dropped, dict)
    assert list(dropped["properties"]) == ["a", "alert", "changes"]
    assert dropped["required"] == ["a"]
    assert dropped["properties"]["changes"]["required"] == []
    assert list(dropped["properties"]["changes"]["properties"]) == ["title"]
    assert restrict(schema, ["reminders", "recurrence"]) == schema


NAMES = st.sampled_from(["a", "b", "title"])
SCALARS: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-2, 6) | st.sampled_from(["", "a", "bb", "ccc", 0.5])
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    objects = st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(0, 3),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "t"]), inner, max_size=1),
            "propertyNames": st.just({"maxLength": 1}),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": several,
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 3),
            "uniqueItems": st.booleans(),
            "contains": inner,
        },
    )
    alternatives = st.fixed_dictionaries(
        {}, optional={"anyOf": several, "oneOf": several, "allOf": several, "not": inner, "if": inner, "then": inner}
    )
    return objects | arrays | alternatives | st.just({"$ref": "#/$defs/d"})


NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={
        "minimum": st.integers(-1, 4),
        "maximum": st.integers(0, 5),
        "exclusiveMinimum": st.integers(-1, 4),
        "exclusiveMaximum": st.integers(0, 5),
        "multipleOf": st.integers(1, 3),
    },
)
STRINGS = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={"minLength": st.integers(0, 2), "maxLength": st.integers(0, 3), "pattern": st.sampled_from(["^a", "b"])},
)
TYPES = st.lists(
    st.sampled_from(["null", "boolean", "string", "number", "integer", "object", "array"]),
    min_size=1,
    max_size=3,
    unique=True,
)
LEAVES = (
    st.booleans()
    | NUMBERS
    | STRINGS
    | st.builds(lambda types: {"type": types}, TYPES)
    | st.builds(lambda values: {"enum": values}, st.lists(VALUES, min_size=1, max_size=3))
    | st.builds(lambda value: {"const": value}, VALUES)
)
NODES = st.recursive(LEAVES, _schemas, max_leaves=8)


@st.composite
def roots(draw: st.DrawFn) -> Any:
    node = draw(NODES)
    if isinstance(node, bool):
        return node
    return {**node, "$defs": {"d": draw(st.recursive(LEAVES, _schemas, max_leaves=3))}}


def fits(schema: Any, value: Any) -> bool | None:
    """None where checking never ends: a reference that leads back to itself without taking a step into the value."""
    try:
        return Draft202012Validator(schema).is_valid(value)
    except RecursionError:
        return None


RELAXED = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@RELAXED
@given(roots())
def test_every_schema_accepts_what_it_allows(schema: Any) -> None:
    assert accepts_all(schema, schema) == Yes()
    assert accepts_all(json.loads(json.dumps(schema)), schema) == Yes()


def _check(wider: Any, narrower: Any, values: list[Any]) -> None:
    answer = accepts_all(wider, narrower)
    if isinstance(answer, No):
        assert fits(narrower, answer.example) is True
        assert fits(wider, answer.example) is False
    if isinstance(answer, Yes):
        for value in values:
            assert fits(wider, value) is not False or fits(narrower, value) is not True, (value, wider, narrower)


@RELAXED
@given(
    roots(),
    roots(),
    st.lists(VALUES, min_size=20, max_size=40),
)
def test_yes_is_never_wrong_about_two_schemas(wider: Any, narrower: Any, values: list[Any]) -> None:
    _check(wider, narrower, values)


@RELAXED
@given(
    st.data(),
    roots().filter(lambda schema: isinstance(schema, dict)),
    st.lists(VALUES, min_size=20, max_size=40),
)
def test_yes_is_never_wrong_about_a_schema_and_a_changed_one(
    data: st.DataObject, schema: Any, values: list[Any]
) -> None:
    changed = json.loads(json.dumps(schema))
    key = data.draw(st.sampled_from(sorted(changed)))
    if data.draw(st.booleans()):
        del changed[key]
    else:
        changed.update(data.draw(STRINGS | NUMBERS | NODES.filter(lambda node: isinstance(node, dict))))
    changed.setdefault("$defs", {"d": True})
    _check(schema, changed, values)
    _check(changed, schema, values)


@RELAXED
@given(
    roots().filter(lambda schema: "allOf" not in json.dumps(schema)),
    roots().filter(lambda schema: "allOf" not in json.dumps(schema)),
    st.lists(VALUES, min_size=20, max_size=40),
)
def test_yes_is_never_wrong_about_named_fields_only(wider: Any, narrower: Any, values: list[Any]) -> None:
    for left, right in ((wider, narrower), (wider, wider), (seal(wider), wider)):
        if accepts_all(left, right, named_only=True) == Yes():
            for value in values:
                assert fits(left, value) is not False or fits(seal(right), value) is not True, (value, left, right)


def test_sealing_refuses_what_isnt_named_and_leaves_maps_open() -> None:
    schema = obj(
        a=obj(b=TEXT),
        free={"type": "object"},
        table=obj("", {"additionalProperties": TEXT}, c=TEXT),
        both={"allOf": [obj(d=TEXT), obj(e=TEXT)]},
    )
    sealed = Draft202012Validator(seal(schema))
    for value in ({"a": {"b": ""}}, {"free": {"x": 1}}, {"table": {"x": ""}}, {"both": {"d": "", "e": "", "f": 1}}):
        assert sealed.is_valid(value), value
    for value in ({"x": 1}, {"a": {"x": 1}}):
        assert not sealed.is_valid(value), value
