"""Finding tools that aren't listed: `hotplug.search`, and `hotplug.call` for what it finds.

A list may not change because of a call, so what is found isn't listed afterwards either: it is called through
`hotplug.call`. Ranking is BM25 over words of names, descriptions and arguments; nothing in it learns or varies, and the
same question gets the same answer. The caller's rights are decided before: only what it may use comes in here.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, cast

from msgspec import Raw

from hotplug.errors import InvalidArgument
from hotplug.gateway.message import Object, dumps, loads, split

__all__ = [
    "CALL",
    "DEFAULT_LIMIT",
    "LONGEST_ANSWER",
    "LONGEST_QUERY",
    "MOST_FOUND",
    "SEARCH",
    "Found",
    "Index",
    "Searchable",
    "call_arguments",
    "call_tool",
    "search_arguments",
    "search_result",
    "search_tool",
    "words_of",
]

SEARCH: Final = "hotplug.search"
CALL: Final = "hotplug.call"
DEFAULT_LIMIT: Final = 10
MOST_FOUND: Final = 50
LONGEST_ANSWER: Final = 48 * 1024
"""Bytes of tools in one answer: a model has to read it. The best match is in it, whatever its size."""
LONGEST_QUERY: Final = 1000

_K1: Final = 1.2
_B: Final = 0.5
_PREFIX: Final = 0.4
"""What a word is worth of which only the beginning was asked for (`cal` of `calendar`)."""
_SHORTEST_PREFIX: Final = 3
_MOST_WORDS: Final = 32
_NAME: Final = 4
_SERVER: Final = 2
_ARGUMENT: Final = 1
_TEXT: Final = 1
_LONGEST_TEXT: Final = 4000
_MOST_ARGUMENTS: Final = 100

_WORD: Final = re.compile(r"[^\W_]+")
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d+")
_COMMON: Final = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "do",
        "for",
        "from",
        "how",
        "i",
        "in",
        "into",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "with",
        "you",
        "your",
    }
)


@dataclass(frozen=True)
class Searchable:
    """A tool that may be found. Its words are counted once: keep it for as long as the tool stays the same.

    Args:
        name: As the client calls it.
        server: Whose it is; empty for a profile's operation.
        tool: As it would be listed: `description`, `inputSchema`, `annotations` and all else.
    """

    name: str
    server: str
    tool: Object = field(repr=False)

    @cached_property
    def weights(self) -> Mapping[str, int]:
        """What each word of it counts for."""
        return _weigh(self)


@dataclass(frozen=True, slots=True)
class Found:
    """A tool that was found.

    Args:
        name: As the client calls it.
        score: Above 0; comparable within one answer only.
        description: As it would be listed, raw JSON; None where there is none.
        input_schema: As it would be listed, raw JSON.
        server: Whose it is; empty for a profile's operation.
        tool: The whole as it would be listed.
    """

    name: str
    score: float
    description: Raw | None = field(repr=False)
    input_schema: Raw = field(repr=False)
    server: str
    tool: Object = field(repr=False)


def words_of(text: str) -> list[str]:
    """The words of a text or a name, in lower case and without a plural's s: `listCalendar_events` has three.

    Words that are in every text (`the`, `of`) are left out.
    """
    found: list[str] = []
    for one in _WORD.findall(text):
        parts: list[str] = _PARTS.findall(one) if one.isascii() else [one]
        found += (_stem(part.lower()) for part in parts)
        if len(parts) > 1:
            found.append(_stem(one.lower()))
    return [word for word in found if word not in _COMMON]


class Index:
    """Tools, made ready to be searched. Make it anew when they change; searching changes nothing in it."""

    def __init__(self, tools: Iterable[Searchable]) -> None:
        self._tools = sorted(tools, key=lambda one: one.name)
        self._weights = [one.weights for one in self._tools]
        self._lengths = [sum(weights.values()) for weights in self._weights]
        self._mean = max(1.0, sum(self._lengths) / max(1, len(self._lengths)))
        places: dict[str, list[int]] = {}
        for at, weights in enumerate(self._weights):
            for word in weights:
                places.setdefault(word, []).append(at)
        self._places = places
        self._words = sorted(places)

    def __len__(self) -> int:
        return len(self._tools)

    def search(self, query: str, limit: int = DEFAULT_LIMIT) -> tuple[Found, ...]:
        """The tools that fit best, the best first; equal ones by name. An exact name comes before all else.

        Args:
            query: Words in any order, or a name.
            limit: How many at most, 1 to 50.
        """
        scores: dict[int, float] = {}
        for word in [*dict.fromkeys(words_of(query[:LONGEST_QUERY]))][:_MOST_WORDS]:
            for at, score in self._of_word(word).items():
                scores[at] = scores.get(at, 0.0) + score
        exact = query.strip()
        at = bisect_left(self._tools, exact, key=lambda one: one.name)
        if at < len(self._tools) and self._tools[at].name == exact:
            scores[at] = max(scores.get(at, 0.0), 1.0)
        ranked = sorted(scores.items(), key=lambda one: (self._tools[one[0]].name != exact, -one[1], one[0]))
        return tuple(self._found(at, score) for at, score in ranked[: max(1, min(limit, MOST_FOUND))])

    def _of_word(self, word: str) -> dict[int, float]:
        """For each tool that has the word, or one that begins with it: what that is worth. The best one counts."""
        best: dict[int, float] = {}
        for known in self._beginning(word):
            share = 1.0 if known == word else _PREFIX
            places = self._places[known]
            rarity = math.log(1 + (len(self._tools) - len(places) + 0.5) / (len(places) + 0.5))
            for at in places:
                weight = self._weights[at][known]
                long = 1 - _B + _B * self._lengths[at] / self._mean
                score = share * rarity * weight * (_K1 + 1) / (weight + _K1 * long)
                best[at] = max(best.get(at, 0.0), score)
        return best

    def _beginning(self, word: str) -> list[str]:
        exact = [word] if word in self._places else []
        if len(word) < _SHORTEST_PREFIX:
            return exact
        first = bisect_left(self._words, word)
        longer = itertools.takewhile(lambda known: known.startswith(word), itertools.islice(self._words, first, None))
        return exact + [known for known in longer if known != word]

    def _found(self, at: int, score: float) -> Found:
        one = self._tools[at]
        return Found(
            one.name,
            score,
            _of_kind(one.tool.get("description"), b'"'),
            _of_kind(one.tool.get("inputSchema"), b"{") or Raw(b'{"type":"object"}'),
            one.server,
            one.tool,
        )


def search_tool(exposed: str, call: str) -> Object:
    """`hotplug.search` as it is listed.

    Args:
        exposed: Its name in the client's style.
        call: That of `hotplug.call`.
    """
    return _tool(
        exposed,
        "Find more tools",
        "Not all tools that you may use are in your tool list. This finds further ones by what they do. Search before "
        "you say that something can't be done. Give a few words in English for the action and the thing "
        '("create calendar event", "merge pull request"), or a part of a tool\'s name. The answer lists the best '
        f"matches with name, description and input schema. Call one with `{call}`.",
        {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": LONGEST_QUERY,
                    "description": "What the tool shall do, in a few words; or its name.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MOST_FOUND,
                    "default": DEFAULT_LIMIT,
                    "description": "How many tools at most.",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "tools": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "description": {"type": "string"},
                            "inputSchema": {"type": "object"},
                            "server": {"type": "string", "description": "The server that offers it."},
                        },
                        "required": ["name", "inputSchema"],
                    },
                },
                "of": {"type": "integer", "description": "How many tools can be found in all."},
                "leftOut": {
                    "type": "integer",
                    "description": "Further matches that would have made this too long: ask more exactly.",
                },
            },
            "required": ["tools", "of"],
        },
        {"readOnlyHint": True, "openWorldHint": False},
    )


def call_tool(exposed: str, search: str) -> Object:
    """`hotplug.call` as it is listed; it has no output schema, since the answer is that of the tool that is called.

    Args:
        exposed: Its name in the client's style.
        search: That of `hotplug.search`.
    """
    return _tool(
        exposed,
        "Call a found tool",
        f"Calls a tool that `{search}` found and that isn't in your tool list, and gives its answer. `arguments` has "
        f"to fit the `inputSchema` that `{search}` gave for it. Tools in your list are to be called directly.",
        {
            "type": "object",
            "properties": {
                "name": {
                    "type": "string",
                    "minLength": 1,
                    "description": f"The tool's name exactly as `{search}` gave it.",
                },
                "arguments": {
                    "type": "object",
                    "description": "The tool's arguments, as its inputSchema says; {} where it takes none.",
                },
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        None,
        {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    )


def search_arguments(arguments: Raw | None) -> tuple[str, int]:
    """The query and the limit of a call of `hotplug.search`.

    Raises:
        InvalidArgument: They don't fit.
    """
    fields = _fields(arguments, ("query", "limit"), "query")
    query = _value(fields, "query")
    if not isinstance(query, str) or not query.strip():
        raise InvalidArgument(f"query is {_shown(query)}", hint="say in a few words what the tool shall do")
    if len(query) > LONGEST_QUERY:
        raise InvalidArgument(f"query has {len(query)} characters", hint=f"{LONGEST_QUERY} are the most")
    limit = _value(fields, "limit") if "limit" in fields else DEFAULT_LIMIT
    if isinstance(limit, float) and limit.is_integer():
        limit = int(limit)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_FOUND:
        raise InvalidArgument(f"limit is {_shown(limit)}", hint=f"give a whole number from 1 to {MOST_FOUND}")
    return query, limit


def call_arguments(arguments: Raw | None) -> tuple[str, Raw]:
    """The name and the arguments (raw, as they came) of a call of `hotplug.call`.

    Raises:
        InvalidArgument: They don't fit. `arguments` given as a string of JSON is refused, too: nothing is guessed.
    """
    fields = _fields(arguments, ("name", "arguments"), "name")
    name = _value(fields, "name")
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"name is {_shown(name)}", hint="give the tool's name as the search gave it")
    inner = fields.get("arguments", Raw(b"{}"))
    if _of_kind(inner, b"{") is None:
        raise InvalidArgument(f"arguments is {_shown(_value(fields, 'arguments'))}", hint="give an object")
    return name, inner


def search_result(found: Iterable[Found], of: int) -> Object:
    """The result of a call of `hotplug.search`: structured, and the same as text. Descriptions and schemas stay raw.

    Args:
        found: The matches, the best first; as many as fit into 48 KiB are in it.
        of: How many tools could be found.
    """
    tools: list[Object] = []
    size = left_out = 0
    for one in found:
        entry: Object = {"name": Raw(dumps(one.name))}
        if one.description is not None:
            entry["description"] = one.description
        entry["inputSchema"] = one.input_schema
        if one.server:
            entry["server"] = Raw(dumps(one.server))
        size += sum(len(bytes(value)) for value in entry.values())
        if tools and size > LONGEST_ANSWER:
            left_out += 1
        else:
            tools.append(entry)
    structured = dumps({"tools": tools, "of": of, **({"leftOut": left_out} if left_out else {})})
    return {
        "content": Raw(dumps([{"type": "text", "text": structured.decode()}])),
        "structuredContent": Raw(structured),
        "isError": Raw(b"false"),
    }


def _of_kind(raw: Raw | None, start: bytes) -> Raw | None:
    return raw if raw is not None and bytes(raw).lstrip()[:1] == start else None


def _tool(
    name: str,
    title: str,
    description: str,
    schema: Mapping[str, Any],
    output: Mapping[str, Any] | None,
    hints: Mapping[str, bool],
) -> Object:
    fields: dict[str, Any] = {"name": name, "title": title, "description": description, "inputSchema": schema}
    if output is not None:
        fields["outputSchema"] = output
    fields["annotations"] = hints
    return {key: Raw(dumps(value)) for key, value in fields.items()}


def _fields(arguments: Raw | None, known: tuple[str, ...], needed: str) -> Object:
    try:
        fields = split(arguments) if arguments is not None else {}
    except ValueError:
        fields = None
    if fields is None:
        raise InvalidArgument("the arguments are no object", hint=f"give at least {needed}")
    if unknown := sorted(fields.keys() - set(known)):
        raise InvalidArgument(f"there is no argument {_shown(unknown[0])}", hint=f"there are {' and '.join(known)}")
    if needed not in fields:
        raise InvalidArgument(f"{needed} is missing")
    return fields


def _value(fields: Object, name: str) -> Any:
    try:
        return loads(fields[name])
    except ValueError:
        raise InvalidArgument(f"{name} can't be read") from None


def _shown(value: Any) -> str:
    """What a caller gave, as far as it helps: no long texts, which may be secrets."""
    if isinstance(value, str | list | dict):
        kind = {str: "text", list: "a list", dict: "an object"}[type(cast("Any", value))]
        return json.dumps(value) if isinstance(value, str) and len(value) <= 40 else kind
    return json.dumps(value)


def _weigh(one: Searchable) -> Counter[str]:
    weights: Counter[str] = Counter()
    for text, weight in ((one.name, _NAME), (one.server, _SERVER), (_text(one.tool, "title"), _NAME)):
        for word in words_of(text):
            weights[word] = max(weights[word], weight)
    texts: Counter[str] = Counter(words_of(_text(one.tool, "description")))
    texts.update(word for argument in _arguments(one.tool) for word in words_of(argument))
    for word, count in texts.items():
        weights[word] += min(count, 3) * _TEXT
    return weights


def _text(tool: Object, name: str) -> str:
    raw = tool.get(name)
    if raw is None:
        return ""
    try:
        value = loads(raw)
    except ValueError:
        return ""
    return value[:_LONGEST_TEXT] if isinstance(value, str) else ""


def _arguments(tool: Object) -> list[str]:
    """Names of a tool's arguments."""
    try:
        schema = split(tool["inputSchema"]) if "inputSchema" in tool else None
        properties = split(schema["properties"]) if schema and "properties" in schema else None
    except ValueError:
        return []
    return list(properties or ())[:_MOST_ARGUMENTS]


def _stem(word: str) -> str:
    """Without a plural's s, so that `event` finds `events`."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
