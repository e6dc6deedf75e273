"""Compares a tool's listed schemas with those of the part that it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, cast

from hotplug.profile.branches import rewrite
from hotplug.profile.compare import Answer, Schema, Unproven, accepts_all, restrict, seal

__all__ = ["input_fits", "output_fits"]

_ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}


def input_fits(
    tool: Mapping[str, Any], part: Mapping[str, Any], facets: Collection[str], fixed: Mapping[str, Any]
) -> Answer:
    """Whether a tool takes everything that the part's input allows, with an alias's fixed arguments beside it.

    Fields of facets that aren't declared never come, and null, which reads as left out, isn't sent. An argument that
    the tool doesn't name is dropped there, whatever its schema lets pass.
    """
    wanted = rewrite(restrict(part.get("input", _ANY_OBJECT), facets), _without_nulls)
    if fixed:
        properties = {**wanted.get("properties", {}), **{name: {"const": value} for name, value in fixed.items()}}
        required = [*wanted.get("required", []), *(name for name in fixed if name not in wanted.get("required", []))]
        wanted = {**wanted, "properties": properties, "required": required}
    return accepts_all(seal(tool.get("inputSchema", _ANY_OBJECT)), wanted, named_only=True)


def output_fits(tool: Mapping[str, Any], part: Mapping[str, Any], facets: Collection[str]) -> Answer:
    """Whether all that a tool gives in a success fits the part's output, members that it doesn't name aside."""
    listed = tool.get("outputSchema")
    if not isinstance(listed, Mapping):
        return Unproven("the tool lists no output schema", "$")
    success = _success(cast("Mapping[str, Any]", listed))
    wanted = restrict(part.get("output", _ANY_OBJECT), facets)
    return accepts_all(wanted, success, named_only=True, lenient=True)


def _success(listed: Mapping[str, Any]) -> Schema:
    """A listed output schema without the alternatives that are the wire's error."""
    options = listed.get("anyOf")
    if not isinstance(options, list):
        return listed
    kept = [option for option in cast("list[Any]", options) if not _is_error(option)]
    return {**listed, "anyOf": kept} if kept else False


def _is_error(option: Any) -> bool:
    """Whether an alternative is `{code, message, details?}`: both required, and nothing else in it."""
    if not isinstance(option, Mapping):
        return False
    schema = cast("Mapping[str, Any]", option)
    names, required = set(schema.get("properties", ())), set(schema.get("required", ()))
    return names <= {"code", "message", "details"} and {"code", "message"} <= required


def _without_nulls(node: dict[str, Any]) -> dict[str, Any]:
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        required = node.get("required", [])
        node["properties"] = {
            name: field if name in required else _not_null(field)
            for name, field in cast("Mapping[str, Any]", properties).items()
        }
    return node


def _not_null(field: Any) -> Any:
    if not isinstance(field, Mapping):
        return field
    changed = dict(cast("Mapping[str, Any]", field))
    for keyword in ("anyOf", "oneOf"):
        options = changed.get(keyword)
        if isinstance(options, list):
            kept = [option for option in cast("list[Any]", options) if not _is_null(option)]
            changed[keyword] = kept or options
    if isinstance(changed.get("type"), list):
        changed["type"] = [name for name in changed["type"] if name != "null"] or changed["type"]
    if isinstance(changed.get("enum"), list):
        changed["enum"] = [value for value in changed["enum"] if value is not None] or changed["enum"]
    return changed


def _is_null(option: Any) -> bool:
    return isinstance(option, Mapping) and cast("Mapping[str, Any]", option).get("type") == "null"
