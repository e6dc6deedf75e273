"""What is wrong with arguments, by place: never the value of a sensitive field, nor one that holds such a field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_core import to_json

from hotplug.errors import InvalidArgument

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["invalid", "invalid_document", "json_texts", "read_json_texts", "wants_structure", "without_nulls"]

_SHOWN: Final = 80
"""Characters of a wrong value that an error message repeats."""

_LABEL: Final = re.compile(
    r"(str|int|float|bool|bytes|none|list|dict|tuple|any)|.*[\[(].*"
    r"|(function|tagged|constrained|nullable|lax|json|is|model|typed)-.*"
)
"""How pydantic names the alternatives of a union in the place of a fault: no step of the value."""

_WANTS_STRUCTURE: Final = frozenset({"model_type", "dict_type", "list_type", "tuple_type", "model_attributes_type"})


def without_nulls(value: Any, keep: frozenset[str] = frozenset()) -> Any:
    """The value with every member that is null left out: models send null for what they mean to leave out.

    Args:
        keep: Names of members whose content is left as it is: patches, in which null means "without".

    Raises:
        InvalidArgument: It is nested deeper than anything that is meant.
    """
    try:
        return _without_nulls(value, keep)
    except RecursionError:
        raise InvalidArgument("the arguments are nested too deeply") from None


def _without_nulls(value: Any, keep: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: item if type(item) is str or key in keep else _without_nulls(item, keep)
            for key, item in cast("dict[Any, Any]", value).items()
            if item is not None
        }
    if isinstance(value, list):
        return [_without_nulls(item, keep) for item in cast("list[Any]", value)]
    return value


def read_json_texts(value: Any, places: Iterable[Sequence[int | str]]) -> tuple[Any, list[str]] | None:
    """The value with the strings at some places replaced by the objects and lists that they hold, and those places.

    None where one of them holds no such thing. Only places at which the schema allows no string may be asked for.
    """
    copy = json.loads(to_json(value))
    paths: list[str] = []
    for steps in places:
        if not steps:
            return None
        holder = copy
        try:
            for step in steps[:-1]:
                holder = holder[step]
            parsed = without_nulls(json.loads(holder[steps[-1]], parse_constant=_no_number))
        except (ValueError, LookupError, TypeError, RecursionError, InvalidArgument):
            return None
        if not isinstance(parsed, dict | list):
            return None
        holder[steps[-1]] = parsed
        paths.append(".".join(map(str, steps)))
    return (copy, paths) if paths else None


def _no_number(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def json_texts(value: Any, faults: Sequence[ErrorDetails]) -> tuple[Any, list[str]] | None:
    """`read_json_texts` where every fault of pydantic's is a string in the place of an object or list.

    A string where the schema allows one raised no fault, so it is never touched.
    """
    if any(fault["type"] not in _WANTS_STRUCTURE or not isinstance(fault["input"], str) for fault in faults):
        return None
    return read_json_texts(value, [fault["loc"] for fault in faults])


def invalid(faults: Sequence[ErrorDetails], schema: Mapping[str, Any], sensitive: frozenset[str]) -> InvalidArgument:
    """The refusal that says pydantic's faults.

    Args:
        schema: Tells the steps of a place from the names of alternatives in it.
        sensitive: Names of fields whose values are never shown.
    """
    found: list[dict[str, str]] = []
    for fault in faults:
        hidden = any(step in sensitive for step in fault["loc"]) or (
            bool(sensitive) and (isinstance(fault["input"], dict | list) or fault["type"] in _WANTS_STRUCTURE)
        )
        entry = {"path": ".".join(_steps(schema, fault["loc"])), "problem": _problem(fault, hidden=hidden)}
        if entry not in found:
            found.append(entry)
    return _refusal(found)


def invalid_document(errors: Sequence[Any], sensitive: frozenset[str]) -> InvalidArgument:
    """The refusal that says faults of jsonschema's."""
    found: list[dict[str, str]] = []
    for error in errors:
        steps = [str(step) for step in error.absolute_path]
        hidden = any(step in sensitive for step in steps) or (
            bool(sensitive) and not isinstance(error.instance, int | float | None)
        )
        # Its message repeats the value; what was asked for is enough.
        problem = f"doesn't fit {error.validator}" if hidden else str(error.message)[:200]
        found.append({"path": ".".join(steps), "problem": problem})
    return _refusal(found)


def wants_structure(schema: Mapping[str, Any], error: Any) -> bool:
    """Whether a fault of jsonschema's is a string where an object or a list can stand and no string can.

    Args:
        schema: The root, in which references are looked up.
    """
    if not isinstance(error.instance, str) or error.validator not in {"type", "anyOf", "oneOf"}:
        return False
    kinds: set[str] = set()
    for node in _alternatives(schema, error.schema):
        kind = node.get("type")
        if kind is None:
            return False  # it may be a string
        kinds.update([kind] if isinstance(kind, str) else cast("list[str]", kind))
    return "string" not in kinds and bool(kinds & {"object", "array"})


def _refusal(found: list[dict[str, str]]) -> InvalidArgument:
    text = "; ".join(f"{fault['path'] or 'arguments'}: {fault['problem']}" for fault in found[:5])
    return InvalidArgument(text, details={"errors": found})


def _steps(schema: Mapping[str, Any], place: Sequence[int | str]) -> list[str]:
    """The steps of a place, without pydantic's names of the alternatives in a union."""
    steps: list[str] = []
    nodes = list(_alternatives(schema, schema))
    for step in place:
        if isinstance(step, int):
            children = [node.get("items") for node in nodes]
        else:
            children = [node["properties"][step] for node in nodes if step in node.get("properties", {})]
            choices = [node for node in nodes if node.get("type") != "null"]
            if not children and len(choices) > 1 and (_LABEL.fullmatch(step) or step in schema.get("$defs", {})):
                continue
            children = children or [node.get("additionalProperties") for node in nodes]
        steps.append(str(step))
        nodes = [one for child in children for one in _alternatives(schema, child)]
    return steps


def _alternatives(root: Mapping[str, Any], node: Any) -> Iterator[Mapping[str, Any]]:
    """What a schema may be, its references followed."""
    if not isinstance(node, Mapping):
        return
    body = cast("Mapping[str, Any]", node)
    reference = body.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        yield from _alternatives(root, root.get("$defs", {}).get(reference.removeprefix("#/$defs/")))
    options = [*body.get("anyOf", ()), *body.get("oneOf", ())]
    if not options and reference is None:
        yield body
    for option in options:
        yield from _alternatives(root, option)


def _problem(fault: ErrorDetails, *, hidden: bool) -> str:
    if fault["type"] == "missing":
        return "is required and missing"
    if fault["type"] == "extra_forbidden":
        return "is not an argument here"
    message = str(fault["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if hidden:
        return f"{message} (the value is sensitive and not shown)"
    shown = repr(fault["input"])
    return f"{message}, not {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"
