"""What of arguments and results may be kept where the owner turned that on: without what is secret, and not too much.

Out go the values of fields that a schema marks as sensitive (`x-sensitive`) and of credential-like names, at any depth
and inside of text that is JSON; what was taken out in one place, wherever else it is repeated; known secrets; and what
looks like a credential in running text. Long texts are cut, and what is large as a whole is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, cast

from hotplug.connect.masking import Masker, mask_url
from hotplug.gateway.message import loads
from hotplug.profile.credentials import REDACTED, USERINFO, credential_name

__all__ = ["kept_values", "sensitive_names"]

Mask = Callable[[str], str]

_LARGEST: Final = 256 * 1024
_LONGEST_KEPT: Final = 64 * 1024
_LONGEST_TEXT: Final = 2000
_DEEPEST: Final = 100
_SHORTEST_ECHO: Final = 4
_MOST_ECHOES: Final = 200
_NO_SCHEMAS: Final = ("default", "examples", "const", "enum", "$defs", "definitions", "properties")
_SCHEME: Final = re.compile(r"\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_OUR_TOKEN: Final = re.compile(r"hp[to]_[A-Za-z0-9_-]{20,}")
_NAMED: Final = re.compile(r"([A-Za-z][\w.-]{1,60})([\"']?\s{0,4}[=:]\s{0,4}[\"']?)([^\s\"'&,;{}\[\]]+)")


def kept_values(
    arguments: bytes | None,
    result: bytes | None,
    *,
    schemas: Iterable[bytes],
    mask: Mask,
) -> tuple[str | None, str | None]:
    """Arguments and result as JSON text that may be kept; None where there is none.

    Args:
        arguments: Raw JSON.
        result: Raw JSON.
        schemas: The tool's schemas, raw JSON: what either marks as sensitive is taken out of both.
        mask: Replaces secrets that are known.
    """
    names: frozenset[str] | None = frozenset()
    for schema in schemas:
        found = sensitive_names(schema)
        names = None if names is None or found is None else names | found
    # Once to learn what is sensitive, and once to take it out wherever it is repeated.
    walk = _Walk(names, mask)
    walk.text(arguments)
    walk.text(result)
    if len(walk.echoes) > _MOST_ECHOES:
        sizes = [None if one is None else _omitted(len(one)) for one in (arguments, result)]
        return sizes[0], sizes[1]
    echoes = Masker(walk.echoes)
    again = _Walk(names, lambda text: mask(echoes(text)))
    return again.text(arguments), again.text(result)


class _Walk:
    """One walk through a value. Without names, everything in it is sensitive."""

    def __init__(self, names: frozenset[str] | None, mask: Mask) -> None:
        self._names = names
        self._mask = mask
        self.echoes: set[str] = set()

    def text(self, raw: bytes | None) -> str | None:
        if raw is None:
            return None
        if len(raw) > _LARGEST:
            return _omitted(len(raw))
        try:
            value = loads(raw)
            kept = json.dumps(self._value(value, 0) if self._names is not None else self._redacted(value))
        except (ValueError, RecursionError):
            return _omitted(len(raw))
        return kept if len(kept) <= _LONGEST_KEPT else _omitted(len(raw))

    def _value(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            return REDACTED
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {self._mask(name): self._member(name, one, depth) for name, one in members.items()}
        if isinstance(value, list):
            return [self._value(one, depth + 1) for one in cast("list[Any]", value)]
        return self._string(value, depth) if isinstance(value, str) else value

    def _member(self, name: str, value: Any, depth: int) -> Any:
        assert self._names is not None
        if name in self._names or (credential_name(name) and value not in (None, True, False)):
            return self._redacted(value)
        return self._value(value, depth + 1)

    def _redacted(self, value: Any) -> str:
        self.echoes |= {one for one in _leaves(value) if len(one) >= _SHORTEST_ECHO}
        return REDACTED

    def _string(self, text: str, depth: int) -> str:
        if text[:1] in "{[" and text.strip()[-1:] in ("}", "]"):
            try:
                inner = json.loads(text)
            except (ValueError, RecursionError):
                pass
            else:
                return _cut(json.dumps(self._value(inner, depth + 1)))
        text = _OUR_TOKEN.sub(REDACTED, _SCHEME.sub(rf"\1\2{REDACTED}", self._mask(text)))
        if "://" in text:
            text = USERINFO.sub(f"{REDACTED}@", text)
            if not any(one.isspace() for one in text):
                text = mask_url(text)
        return _cut(_NAMED.sub(self._by_name, text))

    def _by_name(self, found: re.Match[str]) -> str:
        name, between, value = found.groups()
        secret = credential_name(name) or (self._names is not None and name in self._names)
        return f"{name}{between}{REDACTED}" if secret and REDACTED not in value else found[0]


def _leaves(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += cast("dict[str, Any]", one).values()
        elif isinstance(one, list):
            waiting += cast("list[Any]", one)
        elif one not in (None, True, False):
            yield str(one)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(text)} characters)"


def _omitted(size: int) -> str:
    return json.dumps({"omitted": f"{size} bytes"})


@lru_cache(maxsize=1024)
def sensitive_names(schema: bytes) -> frozenset[str] | None:
    """The names of properties that a JSON Schema marks with `x-sensitive`, at any depth; None: it marks the whole.

    A schema that can't be read marks the whole: what it would have said isn't known.
    """
    try:
        root = loads(schema)
        found = _Marks(root)
        return None if found.own(root, ()) else frozenset(found.names(root))
    except (ValueError, RecursionError):
        return None


class _Marks:
    """Reads marks out of a schema of any shape: it is a stranger's."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def own(self, node: Any, seen: tuple[str, ...]) -> bool:
        """Whether the value itself is marked, or any of its items or members without a name."""
        if isinstance(node, list):
            return any(self.own(one, seen) for one in cast("list[Any]", node))
        if not isinstance(node, Mapping):
            return False
        body = cast("Mapping[str, Any]", node)
        if body.get("x-sensitive") is True:
            return True
        reference = body.get("$ref")
        if isinstance(reference, str) and reference not in seen and self.own(self._at(reference), (*seen, reference)):
            return True
        return any(self.own(one, seen) for key, one in body.items() if key not in _NO_SCHEMAS)

    def names(self, node: Any) -> Iterator[str]:
        """The names of marked properties, wherever in the document they are defined."""
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, list):
                waiting += cast("list[Any]", one)
            elif isinstance(one, Mapping):
                body = cast("Mapping[str, Any]", one)
                properties = body.get("properties")
                if isinstance(properties, Mapping):
                    for name, child in cast("Mapping[str, Any]", properties).items():
                        if self.own(child, ()):
                            yield name
                waiting += body.values()

    def _at(self, reference: str) -> Any:
        if reference == "#":
            return None
        node = self._root
        for step in reference.removeprefix("#/").split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping):
                return None
            node = cast("Mapping[str, Any]", node).get(key)
        return node
