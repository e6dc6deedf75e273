"""Canonical JSON and digests: RFC 8785 bytes, SHA-256, and the strict reader that both rest on.

Two documents are the same when their digests are. So whatever two readers could take differently (a key given twice, a
number that doesn't fit, half of a surrogate pair) is refused with its place, and nothing is repaired or normalised:
`é` in two spellings gives two digests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

import rfc8785

from hotplug.errors import CanonicalError

__all__ = ["canonical", "digest", "parse"]

_SAFE: Final = 2**53 - 1
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN: Final = 40
_BOM: Final = "\ufeff"
_NO_STRING: Final = "leave the value out, or write it as a string"
_BIG: Final = "write it as a string: numbers here are doubles, exact to 9007199254740991"
_PAIR: Final = "write the whole pair, as in \\ud83d\\ude00"


class _Refused(NamedTuple):
    """Stands in a parsed tree for a number that can't be one, until its path is known."""

    message: str
    hint: str | None


class _Twice(NamedTuple):
    """Stands in a parsed tree for an object with a key given twice: its members as they were written."""

    members: list[tuple[str, Any]]


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of a JSON value: no white space, keys by UTF-16 units, numbers as ECMAScript prints them.

    Raises:
        CanonicalError: NaN, an infinity, an integer beyond 2^53 - 1, half a surrogate pair, a key that isn't a string,
            a type that JSON doesn't have, or nesting too deep. Its `path` names the place.
    """
    try:
        return rfc8785.dumps(value)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        for message, path, hint in _faults(value):
            raise CanonicalError(message, path=path, hint=hint) from None
        raise CanonicalError(f"the value has no canonical form: {error}") from None


def digest(value: Any) -> str:
    """The SHA-256 of a value's canonical form, written `sha256:<hex>`. Raises as `canonical` does."""
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def parse(text: str | bytes) -> Any:
    """Reads one JSON text strictly (RFC 8259 with unique keys); bytes must be UTF-8 without a byte order mark.

    An integer beyond 2^53 - 1 comes back as a double where its digits are those of that double's canonical form, so
    that canonical text can be read again; otherwise as an `int`, which `canonical` refuses.

    Raises:
        CanonicalError: not JSON, or a duplicate key (nested or spelled with escapes too), NaN or an infinity, a number
            that overflows, half a surrogate pair, bytes that aren't UTF-8. Its `path` names the place.
    """
    text = _text(text)
    refused = False

    def members(pairs: list[tuple[str, Any]]) -> Any:
        nonlocal refused
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        refused = True
        return _Twice(pairs)

    def constant(name: str) -> _Refused:
        nonlocal refused
        refused = True
        return _Refused(f"{name} isn't a JSON number", _NO_STRING)

    def real(digits: str) -> float | _Refused:
        nonlocal refused
        number = float(digits)
        if number - number == 0:
            return number
        refused = True
        return _Refused(f"the number {_short(digits)} overflows a double", _NO_STRING)

    def integer(digits: str) -> float | _Refused:
        if len(digits) < 16:
            return int(digits)
        number = real(digits)
        if isinstance(number, _Refused):
            return number
        exact = int(digits)
        if abs(exact) > _SAFE and rfc8785.dumps(number).decode() == digits:
            return number
        return exact

    try:
        value = json.loads(
            text, object_pairs_hook=members, parse_constant=constant, parse_float=real, parse_int=integer
        )
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise CanonicalError(f"not JSON: {error.msg.removesuffix(' at')}", path=place) from None
    if refused or _ESCAPED_SURROGATE.search(text):
        for message, path, hint in _unreadable(value):
            raise CanonicalError(message, path=path, hint=hint)
    return value


def _text(text: str | bytes) -> str:
    """Decodes, refusing what isn't plain UTF-8 text."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            shown = f"0x{text[error.start]:02x}"
            raise CanonicalError(
                f"the bytes aren't UTF-8 ({shown})", path=f"byte {error.start}", hint="save the document as UTF-8"
            ) from None
    if text.startswith(_BOM):
        raise CanonicalError(
            "the text starts with a byte order mark", path="byte 0", hint="save the document as UTF-8 without one"
        )
    if found := _SURROGATE.search(text):
        raise CanonicalError(
            f"half of a surrogate pair (U+{ord(found[0]):04X})", path=f"character {found.start()}", hint=_PAIR
        )
    return text


def _unreadable(value: Any, path: str = "$") -> Iterator[tuple[str, str, str | None]]:
    """What the reader has to refuse in a parsed tree, in the order of the text."""
    if isinstance(value, _Refused):
        yield value.message, path, value.hint
    elif isinstance(value, str):
        yield from _surrogates(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _unreadable(item, f"{path}[{index}]")
    elif isinstance(value, (dict, _Twice)):
        members = value.members if isinstance(value, _Twice) else list(cast("dict[str, Any]", value).items())
        seen: set[str] = set()
        for key, member in members:
            place = _member(path, key)
            yield from _surrogates(key, place)
            if key in seen:
                yield f"the key {json.dumps(_short(key))} is given twice", place, "keep one of the two"
            seen.add(key)
            yield from _unreadable(member, place)


def _faults(value: Any, path: str = "$") -> Iterator[tuple[str, str, str | None]]:
    """What has no canonical form in a Python value, in its own order."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, str):
        yield from _surrogates(value, path)
    elif isinstance(value, int):
        if abs(value) > _SAFE:
            shown = str(value) if value.bit_length() < 128 else f"of {value.bit_length()} bits"
            yield f"the integer {shown} is beyond 2^53 - 1", path, _BIG
    elif isinstance(value, float):
        if value - value != 0:
            yield f"{value} isn't a JSON number", path, _NO_STRING
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _faults(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, member in cast("dict[Any, Any]", value).items():
            if not isinstance(key, str):
                yield f"the key {_short(repr(key))} is a {type(key).__name__}, not a string", path, None
                continue
            place = _member(path, key)
            yield from _surrogates(key, place)
            yield from _faults(member, place)
    else:
        yield f"a {type(value).__name__} isn't a JSON value", path, "turn it into one before taking the digest"


def _surrogates(text: str, path: str) -> Iterator[tuple[str, str, str | None]]:
    if found := _SURROGATE.search(text):
        yield f"half of a surrogate pair (U+{ord(found[0]):04X})", path, _PAIR


def _member(path: str, key: str) -> str:
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{json.dumps(_short(key))}]"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _too_deep() -> CanonicalError:
    return CanonicalError("the value is nested too deeply", hint="a value that holds itself is never a document")
