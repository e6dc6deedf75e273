"""Documents of every noun, made from its published schema, and documents that are wrong in one place."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hotplug.evidence import EvidenceError, schema_of

__all__ = ["JSON", "attempt", "documents", "lenient", "spoiled"]

T = TypeVar("T")
Schema = Mapping[str, Any]

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
JUNK = st.sampled_from([True, 0, -1, 1.5, 2.0, "", " ", "x-", "X-a", "x-a\n", "x_b", "net", "a/../b", [], {}, ["net"]])


def attempt(read: Callable[[Any], T], given: Any) -> T | EvidenceError:
    """What reading gives, or the refusal."""
    try:
        return read(given)
    except EvidenceError as error:
        return error


def documents(name: str) -> st.SearchStrategy[Any]:
    """Documents that fit the published schema of that name."""
    schema = schema_of(name)
    return _values(schema, schema)


@st.composite
def spoiled(draw: st.DrawFn, name: str) -> Any:
    """A document that fitted until one member of it was replaced, taken out or put in."""
    document = copy.deepcopy(draw(documents(name)))
    places = list(_places(document))
    container, key = draw(st.sampled_from(places))
    if isinstance(container, dict) and draw(st.booleans()):
        del container[key]
    else:
        container[key] = draw(JUNK)
    return document


def lenient(schema: Any) -> Any:
    """The schema as a reader applies it: unknown members pass."""
    if isinstance(schema, list):
        return [lenient(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: lenient(one) for key, one in schema.items() if (key, one) != ("additionalProperties", False)}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _places(inner)


def _values(schema: Schema, root: Schema) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        return st.deferred(lambda: _values(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root))
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for choice in ("anyOf", "oneOf"):
        if choice in schema and "properties" not in schema:
            return st.one_of(*(_values(one, root) for one in schema[choice]))
    match schema.get("type"):
        case "object":
            return _objects(schema, root)
        case "array":
            return _fitting(
                st.lists(
                    _values(schema["items"], root),
                    min_size=schema.get("minItems", 0),
                    max_size=schema.get("maxItems", 3),
                    unique_by=_declared if schema["items"] == {"$ref": "#/$defs/ChannelDescriptor"} else None,
                ),
                {key: one for key, one in schema.items() if key == "allOf"},
            )
        case "string":
            return _texts(schema)
        case "integer":
            low = schema["exclusiveMinimum"] + 1 if "exclusiveMinimum" in schema else schema.get("minimum", -100)
            return st.integers(low, low + 10**13) | st.integers(low, low + 10**6).map(float)
        case "number":
            bounds = schema.get("minimum", -1e6), schema.get("maximum", 1e6)
            return st.floats(*bounds) | st.integers(0, 1)
        case "boolean":
            return st.booleans()
        case _:
            return JSON


def _declared(descriptor: dict[str, Any]) -> str:
    return descriptor["id"]


def _texts(schema: Schema) -> st.SearchStrategy[str]:
    pattern = schema.get("pattern", "")
    if "x-" in pattern:
        return st.sampled_from(["x-artifact", "x-0-9", "x--"])
    if "/" in pattern:
        return st.sampled_from(["a", "shop/order", "..a/b.", "a\n"])
    if pattern:
        return st.sampled_from(["gone", " no ", "\ty"])
    return WORDS.filter(lambda text: len(text) >= schema.get("minLength", 0))


def _objects(schema: Schema, root: Schema) -> st.SearchStrategy[dict[str, Any]]:
    required = {name: _values(one, root) for name, one in schema["properties"].items() if name in schema["required"]}
    optional = {name: _values(one, root) for name, one in schema["properties"].items() if name not in required}
    return _fitting(
        st.fixed_dictionaries(required, optional=optional),
        {key: one for key, one in schema.items() if key == "allOf"},
    )


def _fitting(values: st.SearchStrategy[Any], rules: Schema) -> st.SearchStrategy[Any]:
    return values.filter(Draft202012Validator(rules).is_valid) if rules else values
