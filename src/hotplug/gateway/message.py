"""A JSON-RPC message, read only as far as somebody has to look: what nobody changes stays the bytes that came.

Fields, params and `_meta` are split one level at a time into raw JSON, so that big integers, odd floats, every escape
and unknown fields leave as they arrived. A message from a caller is written anew before it goes on (`settled`): where
a key was given twice, both sides of the gateway then read the same one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Raw

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "Message",
    "NotAMessage",
    "Object",
    "dumps",
    "loads",
    "split",
    "split_list",
]

Object = dict[str, Raw]
"""One level of a JSON object: each value as raw JSON."""

Kind = Literal["request", "notification", "result", "error"]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

_decoder: Final = msgspec.json.Decoder(Object)
_list_decoder: Final = msgspec.json.Decoder(list[Raw])
_encode: Final = msgspec.json.Encoder().encode
_BLANK: Final = re.compile(r"[ \t\n\r]*")


class NotAMessage(Exception):
    """What came is no JSON-RPC message.

    Args:
        code: The JSON-RPC error to answer with.
        id: The raw id, where one could be read.
    """

    def __init__(self, code: int, message: str, id: bytes | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id


def split(data: bytes | Raw) -> Object | None:
    """One level of a JSON object as raw values; None where it is another kind of JSON.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError):
        # Half of a surrogate pair, written as an escape, is JSON too; the fast reader refuses it.
        return _split_slowly(bytes(data).decode())


def split_list(data: bytes | Raw) -> list[Raw] | None:
    """The elements of a JSON array as raw values; None where it is another kind of JSON.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return _list_decoder.decode(data)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError):
        return _split_list_slowly(bytes(data).decode())


def _slow_decoder(text: str, kind: type) -> json.JSONDecoder | None:
    """What reads a text that the fast reader refuses; None where it is JSON of another kind."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON")

    decoder = json.JSONDecoder(parse_constant=refuse, parse_int=_integer)
    try:
        return decoder if isinstance(decoder.decode(text), kind) else None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _after_blanks(text: str, at: int = 0) -> int:
    return cast("re.Match[str]", _BLANK.match(text, at)).end()


def _split_slowly(text: str) -> Object | None:
    decoder = _slow_decoder(text, dict)
    if decoder is None:
        return None
    found: Object = {}
    at = _after_blanks(text) + 1
    while True:
        at = _after_blanks(text, at)
        if text[at] == "}":
            return found
        if text[at] == ",":
            at += 1
            continue
        key, at = decoder.raw_decode(text, at)
        start = _after_blanks(text, _after_blanks(text, at) + 1)
        _, at = decoder.raw_decode(text, start)
        found[cast("str", key)] = Raw(text[start:at].encode())


def _split_list_slowly(text: str) -> list[Raw] | None:
    decoder = _slow_decoder(text, list)
    if decoder is None:
        return None
    found: list[Raw] = []
    at = _after_blanks(text) + 1
    while True:
        start = _after_blanks(text, at)
        if text[start] == "]":
            return found
        if text[start] == ",":
            at = start + 1
            continue
        _, at = decoder.raw_decode(text, start)
        found.append(Raw(text[start:at].encode()))


def loads(data: bytes | Raw) -> Any:
    """JSON as Python values, for what has to be looked into.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return json.loads(bytes(data))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        # It has an integer of more digits than Python reads (4,300): JSON it is all the same.
        return _HUGE.decode(bytes(data).decode())


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


_HUGE: Final = json.JSONDecoder(parse_int=_integer)


def dumps(value: Any) -> bytes:
    """Python values as compact JSON; raw values inside stay as they are."""
    try:
        return _encode(value)
    except (TypeError, UnicodeEncodeError, OverflowError):
        # Integers over 64 bits and halves of surrogate pairs.
        return _dumps_slowly(value)


def _dumps_slowly(value: Any) -> bytes:
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return b"{" + b",".join(_dumps_slowly(name) + b":" + _dumps_slowly(one) for name, one in fields) + b"}"
    if isinstance(value, list | tuple):
        return b"[" + b",".join(_dumps_slowly(one) for one in cast("list[Any]", value)) + b"]"
    return json.dumps(value).encode()


class Message:
    """One JSON-RPC message.

    Immutable: the `with_…` methods give a new one, in which only what they name is written anew.
    """

    __slots__ = ("_bytes", "_meta", "_params", "fields", "kind", "method")

    def __init__(self, fields: Object, data: bytes | None = None) -> None:
        self.fields = fields
        self._bytes = data
        self._params: Object | None = None
        self._meta: Object | None = None
        raw_method = fields.get("method")
        self.method: str | None = None
        self.kind: Kind
        if raw_method is not None:
            method = _text(raw_method)
            if method is None:
                raise NotAMessage(INVALID_REQUEST, "the method is not a string", self.id)
            self.method = method
            self.kind = "request" if "id" in fields else "notification"
        elif "error" in fields:
            self.kind = "error"
        elif "result" in fields:
            self.kind = "result"
        else:
            raise NotAMessage(INVALID_REQUEST, "neither a method, a result nor an error is in it", self.id)

    @classmethod
    def parse(cls, data: bytes) -> Message:
        """The message in these bytes.

        Raises:
            NotAMessage: It is no JSON (-32700), or no JSON-RPC 2.0 message (-32600).
        """
        try:
            if not data.isascii():
                data.decode()
            fields = split(data)
        except ValueError as error:
            raise NotAMessage(PARSE_ERROR, f"Parse error: {error}"[:300]) from None
        if fields is None:
            raise NotAMessage(INVALID_REQUEST, "a message is a JSON object")
        id_ = fields.get("id")
        if _text(fields.get("jsonrpc", Raw(b"null"))) != "2.0":
            raise NotAMessage(INVALID_REQUEST, 'a message has "jsonrpc": "2.0"', bytes(id_) if id_ else None)
        if id_ is not None and bytes(id_)[:1] not in b'"-0123456789' and "method" in fields:
            raise NotAMessage(INVALID_REQUEST, "the id is neither a string nor a number")
        return cls(fields, data)

    @classmethod
    def request(cls, id_: Any, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """A request of our own; `id_` may be raw."""
        return cls(_fields(id=id_, method=method, params=params))

    @classmethod
    def notification(cls, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """A notification of our own."""
        return cls(_fields(method=method, params=params))

    @classmethod
    def result_of(cls, id_: bytes, result: Any) -> Message:
        """The answer to a request, by its raw id."""
        return cls(_fields(id=Raw(id_), result=result))

    @classmethod
    def error_of(cls, id_: bytes | None, code: int, message: str, data: Any = None) -> Message:
        """The error that answers a request, by its raw id; without one, the id is null."""
        error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        return cls(_fields(id=Raw(id_ or b"null"), error=error))

    @property
    def id(self) -> bytes | None:
        """The id as raw JSON: `1` and `"1"` are two."""
        raw = self.fields.get("id")
        return bytes(raw) if raw is not None else None

    @property
    def is_answer(self) -> bool:
        """Whether it answers a request: a result or an error."""
        return self.kind in ("result", "error")

    @property
    def params(self) -> Object:
        """The params' fields; empty where there are none, or where they are no object."""
        if self._params is None:
            raw = self.fields.get("params")
            self._params = (split(raw) if raw is not None else None) or {}
        return self._params

    @property
    def meta(self) -> Object:
        """The fields of the params' `_meta`; empty where there is none."""
        if self._meta is None:
            raw = self.params.get("_meta")
            self._meta = (split(raw) if raw is not None else None) or {}
        return self._meta

    @property
    def result(self) -> Object:
        """The result's fields; empty where there is none, or where it is no object."""
        raw = self.fields.get("result")
        return (split(raw) if raw is not None else None) or {}

    @property
    def error_code(self) -> int | None:
        """The error's code, where it is one with a code."""
        raw = self.fields.get("error")
        error = (split(raw) if raw is not None else None) or {}
        try:
            code = loads(error["code"])
        except (KeyError, ValueError):
            return None
        return code if isinstance(code, int) else None

    def text(self, name: str) -> str | None:
        """A parameter that is a string; None where it is missing or something else."""
        raw = self.params.get(name)
        return _text(raw) if raw is not None else None

    def value(self, name: str) -> Any:
        """A parameter as Python values; None where it is missing."""
        raw = self.params.get(name)
        return loads(raw) if raw is not None else None

    def with_id(self, id_: Any) -> Message:
        """The same with another id; raw, or a value."""
        return self._with({"id": id_})

    def with_param(self, name: str, value: Any) -> Message:
        """The same with a parameter set; None takes it out."""
        return self._with({"params": _set(self.params, {name: value})})

    def with_params(self, changes: Mapping[str, Any]) -> Message:
        """The same with several parameters set; None takes one out."""
        return self._with({"params": _set(self.params, changes)})

    def with_meta(self, changes: Mapping[str, Any]) -> Message:
        """The same with keys of `_meta` set; None takes one out, and an empty `_meta` goes."""
        return self.with_param("_meta", _set(self.meta, changes) or None)

    def with_result(self, result: Any) -> Message:
        """The same answer with another result."""
        return self._with({"result": result})

    def settled(self) -> Message:
        """The same, written anew down to `_meta`: a key that was given twice is there once, as it was read here."""
        if "params" not in self.fields or not self.params:
            return Message(self.fields)
        return self.with_meta({}) if self.meta else self._with({"params": self.params})

    def encode(self) -> bytes:
        """The message's bytes: those that came, where nothing was changed."""
        if self._bytes is None:
            self._bytes = dumps(self.fields)
        return self._bytes

    def line(self) -> bytes:
        """The bytes as one line with its end, for standard streams."""
        data = self.encode()
        # A line break inside JSON is white space between tokens: in a string it has to be escaped.
        if b"\n" in data or b"\r" in data:
            data = data.replace(b"\n", b" ").replace(b"\r", b" ")
        return data + b"\n"

    def _with(self, changes: Mapping[str, Any]) -> Message:
        return Message(_set(self.fields, changes))

    def __repr__(self) -> str:
        # No values: they may be secrets.
        return f"<{self.kind} {self.method or ''} id={self.id!r}>"


def _fields(**given: Any) -> Object:
    fields: Object = {"jsonrpc": Raw(b'"2.0"')}
    for name, value in given.items():
        if value is not None:
            fields[name] = value if isinstance(value, Raw) else Raw(dumps(value))
    return fields


def _set(fields: Object, changes: Mapping[str, Any]) -> Object:
    changed = dict(fields)
    for name, value in changes.items():
        if value is None:
            changed.pop(name, None)
        elif isinstance(value, bytes | Raw):
            changed[name] = Raw(bytes(value))
        else:
            changed[name] = Raw(dumps(value))
    return changed


def _text(raw: Raw) -> str | None:
    data = bytes(raw)
    if data[:1] != b'"':
        return None
    if b"\\" not in data and data[-1:] == b'"':
        return data[1:-1].decode()
    value = loads(data)
    return value if isinstance(value, str) else None
