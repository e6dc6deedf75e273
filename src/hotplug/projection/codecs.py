"""Named codecs: a tool's text becomes data that an expression can map.

A text that doesn't fit its codec is `Internal` with the raw text (cut to 4 KiB) in the details. It is never taken for
an empty result: an empty list comes only from a text that says so by itself (`[]`), or that `empty` matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, Literal, NoReturn, cast

from hotplug.errors import Internal, ProjectionError
from hotplug.projection import patterns
from hotplug.projection.mapping import exact

__all__ = ["CODECS", "MAX_TEXT", "RAW_TEXT", "Codec"]

MAX_TEXT: Final = 8 * 1024 * 1024
"""Characters a codec reads."""

MAX_REGEX_TEXT: Final = 256 * 1024
"""Characters the `regex` codec reads."""

RAW_TEXT: Final = 4096
"""Bytes of the raw text kept in the details of a failure."""

_MAX_NODES: Final = 100_000

CODECS: Final = ("aria-snapshot", "ical", "json", "lines", "markdown-table", "regex")
"""The names of the codecs."""


@dataclass(frozen=True)
class Codec:
    r"""A codec with its options, ready to parse.

    Args:
        name: One of `CODECS`.
        where: The place in the projection, for messages.
        pattern: `regex` only: a pattern of Python's `re` with named groups; `^` and `$` match at lines.
        each: `regex` only. `one`: the first place where the pattern fits, as an object of the groups (null where a
            group took no part). `all`: a list of them; together the matches must cover the text, apart from white
            space and lines that `skip` matches, so that a record of another form is a failure and not lost.
        skip: A pattern for whole lines that carry nothing (a footer), for `lines` and `regex`.
        empty: A pattern for the whole text (stripped) that means "nothing": the result is then an empty list.

    Raises:
        ProjectionError: An unknown name, a pattern that doesn't compile or has no named group, an option that the
            codec doesn't know.
    """

    name: str
    where: str
    pattern: str | None = None
    each: Literal["one", "all"] = "one"
    skip: str | None = None
    empty: str | None = None

    def __post_init__(self) -> None:
        if self.name not in CODECS:
            raise ProjectionError(f"{self.where}: no codec {self.name!r}", hint=f"codecs are {', '.join(CODECS)}")
        if (self.pattern is not None) != (self.name == "regex"):
            raise ProjectionError(f"{self.where}: codec {self.name!r} and `pattern` don't go together")
        if self.skip is not None and self.name not in ("lines", "regex"):
            raise ProjectionError(f"{self.where}: codec {self.name!r} has no lines to `skip`")
        if self.pattern is not None and not self._groups(self.pattern):
            raise ProjectionError(f"{self.where}: the pattern {self.pattern!r} has no named group (?P<name>...)")
        for option in (self.skip, self.empty):
            if option is not None:
                self._groups(option)

    def parse(self, text: str) -> Any:
        """The data in a tool's text.

        Raises:
            Internal: The text doesn't fit, or is larger than the codec reads; `details` has `where`, `codec`, `cause`
                and the raw text as `text`.
        """
        limit = MAX_REGEX_TEXT if self.name == "regex" else MAX_TEXT
        if len(text) > limit:
            self._fail(text, f"the text has {len(text)} characters, more than {limit}")
        if self.empty is not None and patterns.fits(self.empty, text.strip()):
            return []
        try:
            return _PARSERS[self.name](self, text)
        except _UnfitError as error:
            self._fail(text, str(error))
        except RecursionError:
            self._fail(text, "it is nested too deep")

    def _groups(self, pattern: str) -> frozenset[str]:
        try:
            patterns.checked(pattern)
        except ValueError as error:
            raise ProjectionError(f"{self.where}: {pattern!r} is {error}") from None
        return patterns.groups(pattern)

    def _fail(self, text: str, cause: str) -> NoReturn:
        raw = text.encode(errors="replace")
        raise Internal(
            f"{self.where}: the answer is not {self.name}: {cause}",
            details={
                "where": self.where,
                "codec": self.name,
                "cause": cause,
                "text": raw[:RAW_TEXT].decode(errors="ignore"),
                "cut": len(raw) > RAW_TEXT,
            },
        )


class _UnfitError(Exception):
    """The text doesn't fit; the message says where."""


def _no_number(name: str) -> NoReturn:
    raise _UnfitError(f"{name} is not JSON")


def _integer(digits: str) -> Any:
    # int() refuses more than 4300 digits; such a thing is an identifier in any case.
    return digits if len(digits) > 40 else exact(int(digits))


_DECODER: Final = json.JSONDecoder(parse_constant=_no_number, parse_int=_integer)


def _json(_: Codec, text: str) -> Any:
    try:
        if text.startswith("\ufeff"):
            raise json.JSONDecodeError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0)
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _UnfitError(f"{error.msg} at line {error.lineno}, column {error.colno}") from error


def _regex(codec: Codec, text: str) -> Any:
    pattern = codec.pattern or ""
    if codec.each == "one":
        found = patterns.search(pattern, text)
        if found is None:
            raise _UnfitError(f"nothing fits {codec.pattern!r}")
        return found.groupdict()
    records: list[dict[str, Any]] = []
    rest: list[str] = []
    end = 0
    for found in patterns.finditer(pattern, text):
        if found.end() == found.start():
            continue
        rest.append(text[end : found.start()])
        records.append(found.groupdict())
        end = found.end()
    rest.append(text[end:])
    for part in rest:
        for line in _wanted(codec, part):
            raise _UnfitError(f"the line {line[:200]!r} fits neither `pattern` nor `skip`")
    if not records:
        raise _UnfitError(f"nothing fits {codec.pattern!r}")
    return records


def _lines(codec: Codec, text: str) -> list[str]:
    lines = list(_wanted(codec, text))
    if not lines:
        raise _UnfitError("there is no line")
    return lines


def _wanted(codec: Codec, text: str) -> Iterator[str]:
    for line in text.splitlines():
        line = line.strip()
        if line and not (codec.skip is not None and patterns.fits(codec.skip, line)):
            yield line


_CELL_BREAK: Final = re.compile(r"(?<!\\)\|")
_RULE_CELL: Final = re.compile(r":?-+:?")


def _markdown_table(_: Codec, text: str) -> list[dict[str, str]]:
    lines = [line.strip() for line in text.splitlines()]
    for at in range(1, len(lines)):
        rule = _cells(lines[at])
        if "|" in lines[at - 1] and rule and all(_RULE_CELL.fullmatch(cell) for cell in rule):
            break
    else:
        raise _UnfitError("there is no table: no header with a line of dashes below it")
    header = _cells(lines[at - 1])
    if len(header) != len(rule) or len(set(header)) != len(header):
        raise _UnfitError(f"the header {lines[at - 1][:200]!r} doesn't fit its line of dashes, or names a column twice")
    rows: list[dict[str, str]] = []
    for number, line in enumerate(lines[at + 1 :], at + 2):
        if "|" not in line:
            break
        cells = _cells(line)
        if len(cells) != len(header):
            raise _UnfitError(f"line {number} has {len(cells)} cells, the header {len(header)}: {line[:200]!r}")
        rows.append(dict(zip(header, cells, strict=True)))
    return rows


def _cells(line: str) -> list[str]:
    inner = line.removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL_BREAK.split(inner)]


def _ical(_: Codec, text: str) -> list[dict[str, Any]]:
    """Components (RFC 5545) as `{name, properties: {NAME: [{value, params}]}, components}`.

    Dates and times are ISO 8601: `2026-10-27`, `2026-10-23T09:00:00` (local; the zone is in `params.TZID`, or it is
    floating), `2026-10-23T07:00:00Z`. Other values are as in iCalendar, texts unescaped.
    """
    import icalendar  # 100 ms to import; only projections of calendars need it

    if len(re.findall(r"^BEGIN:", text, re.MULTILINE)) != len(re.findall(r"^END:", text, re.MULTILINE)):
        raise _UnfitError("a component is not closed")
    try:
        parsed = icalendar.Calendar.from_ical(text, multiple=True)
    except (ValueError, KeyError, IndexError) as error:
        raise _UnfitError(str(error)[:500]) from error
    components = cast("list[Any]", parsed)
    if not components:
        raise _UnfitError("there is no component")
    return [_component(component) for component in components]


def _component(component: Any) -> dict[str, Any]:
    for name, message in component.errors:
        raise _UnfitError(f"{component.name}: {name or 'a line'}: {str(message)[:300]}")
    properties: dict[str, list[dict[str, Any]]] = {}
    for name, value in component.property_items(recursive=False, sorted=False):
        if name in ("BEGIN", "END"):
            continue
        params = {str(key): _text(item) for key, item in dict(getattr(value, "params", None) or {}).items()}
        properties.setdefault(str(name), []).append({"value": _value(value), "params": params})
    return {
        "name": component.name,
        "properties": properties,
        "components": [_component(child) for child in component.subcomponents],
    }


def _value(value: Any) -> Any:
    moment = getattr(value, "dt", None)
    if moment is None and hasattr(value, "dts"):
        return [_value(item) for item in value.dts]
    if isinstance(moment, datetime):
        if moment.tzinfo is UTC or str(moment.tzinfo) in ("UTC", "Etc/UTC"):
            return f"{moment.replace(tzinfo=None).isoformat()}Z"
        return moment.replace(tzinfo=None).isoformat()
    if isinstance(moment, date):
        return moment.isoformat()
    if isinstance(value, str):
        return str(value)
    return _text(value.to_ical() if hasattr(value, "to_ical") else value)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


_SECTION: Final = re.compile(r"^### (.+)$", re.MULTILINE)
_FENCE: Final = re.compile(r"^```(?:yaml)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NODE: Final = re.compile(
    r"""(?P<role>[A-Za-z][\w-]*)(?:\s+(?P<name>"(?:\\.|[^"\\])*"))?(?P<attributes>(?:\s+\[[^\]]*\])*)\s*"""
)
_ATTRIBUTE: Final = re.compile(r"\[([^\]=]+)(?:=([^\]]*))?\]")


def _aria_snapshot(_: Codec, text: str) -> dict[str, Any]:
    """Playwright's tree: `{url?, title?, modal: [...], nodes: [{role, name?, ref?, text?, states, attributes, ...}]}`.

    `states` are the attributes without value (`disabled`, `checked`), `attributes` the others (`level`), `properties`
    the lines that begin with a slash (`/url`), `text` the value after the colon.
    """
    import yaml

    parts = _SECTION.split(text)  # what stands before the first head, then head and body in turn
    sections = {head.strip(): body.strip() for head, body in zip(parts[1::2], parts[2::2], strict=True)}
    tree = text if not sections else sections.get("Snapshot")
    if tree is None:
        raise _UnfitError(f"there is no section `Snapshot` among {', '.join(sections)}")
    fenced = _FENCE.search(f"{tree}\n")
    source = fenced.group(1) if fenced else tree
    if not fenced and sections:
        raise _UnfitError("the section `Snapshot` has no tree in it")
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        # A base loader makes texts, lists and maps only: no tags are resolved, nothing is constructed.
        items: Any = yaml.load(source, Loader=loader)  # noqa: S506
    except yaml.YAMLError as error:
        raise _UnfitError(" ".join(str(error).split())[:300]) from error
    budget = [_MAX_NODES]
    if not sections and not items:
        raise _UnfitError("there is no node")
    result: dict[str, Any] = {"nodes": [] if not items else _nodes(items, budget)}
    page = sections.get("Page", "")
    for key, label in (("url", "Page URL"), ("title", "Page Title")):
        found = re.search(rf"^- {label}: (.*)$", page, re.MULTILINE)
        if found:
            result[key] = found.group(1)
    result["modal"] = [line.removeprefix("- ") for line in sections.get("Modal state", "").splitlines() if line]
    return result


def _nodes(items: Any, budget: list[int]) -> list[dict[str, Any]]:
    if not isinstance(items, list):
        raise _UnfitError(f"{str(items)[:100]!r} stands where a list of nodes should be")
    nodes: list[dict[str, Any]] = []
    for item in cast("list[Any]", items):
        budget[0] -= 1
        if budget[0] < 0:
            raise _UnfitError(f"the tree has more than {_MAX_NODES} nodes")
        pairs: dict[Any, Any] = cast("dict[Any, Any]", item) if isinstance(item, dict) else {str(item): None}
        if len(pairs) != 1:
            raise _UnfitError(f"{str(cast('object', item))[:100]!r} is not one node")
        key, value = next(iter(pairs.items()))
        nodes.append(_node(str(key), value, budget))
    return nodes


def _node(key: str, value: Any, budget: list[int]) -> dict[str, Any]:
    head = _NODE.fullmatch(key)
    if head is None:
        raise _UnfitError(f"{key[:200]!r} is not a node")
    states: list[str] = []
    attributes: dict[str, str] = {}
    node: dict[str, Any] = {"role": head["role"]}
    if head["name"] is not None:
        try:
            node["name"] = json.loads(head["name"])
        except json.JSONDecodeError as error:
            raise _UnfitError(f"{key[:200]!r} has a name that is not a JSON text") from error
    for name, given in _ATTRIBUTE.findall(head["attributes"]):
        if name == "ref":
            node["ref"] = given
        elif given:
            attributes[name] = given
        else:
            states.append(name)
    node |= {"states": states, "attributes": attributes}
    if isinstance(value, list):
        children: list[Any] = []
        properties: dict[str, Any] = {}
        for item in cast("list[Any]", value):
            entry = cast("dict[Any, Any]", item) if isinstance(item, dict) else {}
            name = next(iter(entry), None)
            if len(entry) == 1 and isinstance(name, str) and name.startswith("/"):
                properties[name[1:]] = entry[name]
            else:
                children.append(item)
        if properties:
            node["properties"] = properties
        if children:
            node["children"] = _nodes(children, budget)
    elif isinstance(value, str) and value:
        node["text"] = value
    elif isinstance(value, dict):
        raise _UnfitError(f"{key[:200]!r} has a map where its text or its children should be")
    return node


_PARSERS: Final[dict[str, Callable[[Codec, str], Any]]] = {
    "aria-snapshot": _aria_snapshot,
    "ical": _ical,
    "json": _json,
    "lines": _lines,
    "markdown-table": _markdown_table,
    "regex": _regex,
}
