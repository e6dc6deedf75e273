"""Arguments of a call: `title=Lunch changes.start=2026-06-11T17:00:00Z`, typed by the schema of what is called."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from hotplug.cli.printing import did_you_mean
from hotplug.cli.schema_text import type_name
from hotplug.errors import ConfigError, InvalidArgument

__all__ = ["arguments_of", "check_names"]

Schema = Mapping[str, Any]

_DEPTH: Final = 100
"""Objects and lists in one another: what walks arguments may recurse."""
_WHOLE: Final = 2**53
"""JSON numbers beyond it are not exact everywhere."""


def arguments_of(words: Iterable[str], args: str | None, schema: Schema, *, what: str) -> dict[str, Any]:
    """The arguments of a call.

    Args:
        words: `field=value`, nested with dots; a later one wins, and all win over `args`.
        args: JSON, `@FILE`, or `-` for stdin.
        schema: Of the input. A text field takes the value as it is; an object or a list takes JSON; what may be text or
            something else is read as JSON where it is JSON of another kind.
        what: What is called, for messages.

    Raises:
        ConfigError: A word isn't `field=value`, or `args` isn't a JSON object.
        InvalidArgument: There is no such field (with the nearest), or its value isn't of its type.
    """
    found = _given(args) if args is not None else {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise ConfigError(
                f"{word!r} is no argument", hint="write field=value, nested fields with dots: changes.title=Lunch"
            )
        # A raw tool may have an argument with a dot in its name.
        path = [name] if name in _properties(_branches(schema, schema)) else name.split(".")
        _put(found, path, _value(text, _field(schema, path, what), schema, name), name)
    check_names(found, schema, what=what)
    return found


def check_names(value: Mapping[str, Any], schema: Schema, *, what: str, path: str = "") -> None:
    """Check that every name in arguments is one of the schema's, down through objects; where it is open, all are.

    Raises:
        InvalidArgument: One isn't; the nearest is named.
    """
    _check(value, _branches(schema, schema), schema, what, path)


def _check(value: Mapping[str, Any], branches: list[Schema], root: Schema, what: str, path: str) -> None:
    known = _properties(branches)
    for name, child in value.items():
        here = f"{path}{name}"
        if name not in known:
            if branches and all(_closed(branch) for branch in branches):
                raise _unknown(here, name, known, what)
            continue
        if isinstance(child, dict):
            _check(cast("dict[str, Any]", child), _branches(known[name], root), root, what, f"{here}.")


def _given(args: str) -> dict[str, Any]:
    if args == "-":
        text, where = sys.stdin.read(), "stdin"
    elif args.startswith("@"):
        where = args[1:]
        try:
            text = Path(where).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{where} can't be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    else:
        text, where = args, "--args"
    try:
        value: Any = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_distinct)
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply to be read", hint=f"at most {_DEPTH} levels") from None
    except ValueError as error:
        raise ConfigError(f"{where} is not JSON: {error}", hint="--args takes JSON, @FILE, or - for stdin") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{where} holds {_word(value)}, not an object", hint='write {"field": value}')
    if _deep(value):
        raise ConfigError(f"{where} is nested too deeply", hint=f"at most {_DEPTH} levels")
    return cast("dict[str, Any]", value)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} stands in one object twice")
        found[name] = value
    return found


def _deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(_DEPTH):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (cast("dict[str, Any]", one).values() if isinstance(one, dict) else cast("list[Any]", one))
        ]
        if not level:
            return False
    return any(isinstance(one, (dict, list)) for one in level)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _field(schema: Schema, path: list[str], what: str) -> Schema:
    at: Schema = schema
    for depth, name in enumerate(path):
        branches = _branches(at, schema)
        known = _properties(branches)
        if name in known:
            at = known[name]
            continue
        if branches and not known and not any(_is(branch, "object") for branch in branches):
            raise InvalidArgument(
                f"{'.'.join(path[:depth])} of {what} is {type_name(at, _definitions(schema))}: it has no field {name!r}"
            )
        if branches and all(_closed(branch) for branch in branches):
            raise _unknown(".".join(path[: depth + 1]), name, known, what)
        return {}
    return at


def _unknown(where: str, name: str, known: Iterable[str], what: str) -> InvalidArgument:
    listed = ", ".join(known)
    return InvalidArgument(
        f"{what} has no argument {where!r}",
        details={"argument": where},
        hint=did_you_mean(name, known) or (f"it has {listed}" if listed else "it has none"),
    )


def _put(target: dict[str, Any], path: list[str], value: Any, name: str) -> None:
    for part in path[:-1]:
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{name} is given as a field of a value that is none with fields")
        target = cast("dict[str, Any]", inner)
    target[path[-1]] = value


def _value(text: str, field: Schema, root: Schema, name: str) -> Any:
    """The value that a text means for a field: by its type; where it takes only text, the look decides nothing."""
    branches = _branches(field, root)
    kinds = {kind for branch in branches for kind in _kinds(branch)}
    read = _json(text)
    if not kinds:
        return text if read is _NOT_JSON else read
    if "string" in kinds:
        words = {
            one for branch in branches for one in cast("list[Any]", branch.get("enum", [])) if isinstance(one, str)
        }
        if kinds == {"string"} or text in words or read is _NOT_JSON or _kind(read) not in kinds:
            return text
        return read
    if read is not _NOT_JSON and (
        _kind(read) in kinds or (_kind(read) in {"integer", "big"} and kinds & {"integer", "number"})
    ):
        return read
    if kinds == {"array"} and (read is _NOT_JSON or _kind(read) not in {"object", "array"}):
        items = [one for branch in branches if (one := _schema(branch.get("items"))) is not None]
        if items and all("string" in _kinds(one) for item in items for one in _branches(item, root)):
            # A list of texts is written with commas, as `accept=timeZone,location`.
            return [part.strip() for part in text.split(",") if part.strip()]
    if kinds == {"boolean"} and text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    wanted = type_name(field, _definitions(root))
    raise InvalidArgument(
        f"{name} is {wanted}, not {text!r}",
        details={"argument": name},
        hint="write it as JSON" if kinds & {"object", "array"} else None,
    )


_TRUTH: Final = {"true": True, "yes": True, "false": False, "no": False}
_NOT_JSON: Final = object()


def _json(text: str) -> Any:
    try:
        read = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        return _NOT_JSON
    return _NOT_JSON if _deep(read) else read


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    for kind, cls in (("integer", int), ("number", float), ("string", str), ("array", list), ("object", dict)):
        if isinstance(value, cls):
            # 2^53 and above go as texts where a text may stand: doubles lose their last digits.
            return "big" if kind == "integer" and abs(cast("int", value)) >= _WHOLE else kind
    return "null"


def _word(value: Any) -> str:
    return {"array": "a list", "string": "a text", "null": "null"}.get(_kind(value), f"a {_kind(value)}")


def _definitions(root: Schema) -> Schema:
    return cast("Schema", root.get("$defs") or root.get("definitions") or {})


def _branches(schema: Any, root: Schema, depth: int = 0) -> list[Schema]:
    """The alternatives of a schema with local references followed; `null` is left out."""
    if not isinstance(schema, Mapping) or depth > 12:
        return []
    node = cast("Schema", schema)
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        at: Any = root
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            at = cast("Schema", at).get(key) if isinstance(at, Mapping) else None
        return _branches(at, root, depth + 1)
    for key in ("anyOf", "oneOf"):
        options = node.get(key)
        if isinstance(options, list) and "properties" not in node:
            return [one for option in cast("list[Any]", options) for one in _branches(option, root, depth + 1)]
    return [] if node.get("type") == "null" else [node]


def _kinds(schema: Schema) -> set[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return {str(one) for one in cast("list[Any]", kind)} - {"null"}
    if "properties" in schema:
        return {"object"}
    if "enum" in schema or "const" in schema:
        values = cast("list[Any]", schema.get("enum", [schema.get("const")]))
        return {_kind(value) for value in values} - {"null"}
    return set()


def _is(schema: Schema, kind: str) -> bool:
    kinds = _kinds(schema)
    return not kinds or kind in kinds


def _closed(schema: Schema) -> bool:
    return (
        "properties" in schema
        and schema.get("additionalProperties") in (False, None)
        and not schema.get("patternProperties")
    )


def _properties(branches: list[Schema]) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    for branch in branches:
        for name, child in cast("dict[str, Any]", branch.get("properties") or {}).items():
            found.setdefault(name, _schema(child) or {})
    return found


def _schema(value: Any) -> Schema | None:
    return cast("Schema", value) if isinstance(value, Mapping) else None
