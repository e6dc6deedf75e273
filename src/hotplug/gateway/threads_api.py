"""Threads over HTTP, for hosts that open one for each conversation and each sub-agent.

```
POST   /threads        opens a thread: a root for an opener, a child of its own for a thread
GET    /threads/{id}   what a thread is
DELETE /threads/{id}   closes it, with all below it
```

Every request carries a token in its `Authorization: Bearer` header. A thread's token is good for that thread and all
below it, an opener's for what it opened and all below that. Everything else is one answer, `401`, byte for byte: no
token, a wrong one, another thread's, an unknown id, a closed thread. `Host` and `Origin` are checked in front of this.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final, NamedTuple, cast

from hotplug.errors import StoreError
from hotplug.gateway.threads import ThreadRecord, ThreadRefused, Threads, thread_document
from hotplug.gateway.tokens import bearer_of, opener_of

__all__ = ["Reply", "ThreadsApi", "authorization_of", "unauthorized"]

_log: Final = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_ROOT: Final = "/threads"
_LARGEST: Final = 16 * 1024
_PATIENCE: Final = 10.0
_FIELDS: Final = ("delegated", "project", "title")
_STATUS: Final[Mapping[str, int]] = {"limit": 429, "depth": 409}


class Reply(NamedTuple):
    """An answer of HTTP."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]

    async def send(self, send: Send) -> None:
        """Send it as an ASGI application does."""
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        await send({"type": "http.response.body", "body": self.body})


def _reply(status: int, document: Mapping[str, Any], *headers: tuple[bytes, bytes]) -> Reply:
    body = json.dumps(document).encode() + b"\n"
    shared = (
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    )
    return Reply(status, body, (*shared, *headers))


def _error(status: int, code: str, message: str, *headers: tuple[bytes, bytes]) -> Reply:
    return _reply(status, {"error": {"code": code, "message": message}}, *headers)


_UNAUTHORIZED: Final = _error(
    401, "unauthorized", "this needs the token of an open thread that may do it", (b"www-authenticate", b"Bearer")
)


def unauthorized() -> Reply:
    """The one answer to a request without the right token, here and at a thread's endpoint."""
    return _UNAUTHORIZED


def authorization_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The bearer token in the headers of an ASGI scope; None where there is none, or more than one header of it."""
    found = [value for name, value in headers if name.lower() == b"authorization"]
    return bearer_of(found[0].decode("latin-1")) if len(found) == 1 else None


class _Caller(NamedTuple):
    """Whose token came: a thread's, or an opener's."""

    thread: ThreadRecord | None
    opener: str | None


class _BadRequest(Exception):
    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class ThreadsApi:
    """An ASGI application for `/threads` and `/threads/{id}`.

    Args:
        threads: The gateway's.
        openers: SHA-256 (hex) of the token of each opener, by its name.
    """

    def __init__(self, threads: Threads, openers: Mapping[str, str]) -> None:
        self._threads = threads
        self._openers = openers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"a scope of type {scope['type']!r} isn't one of HTTP")
        try:
            reply = await self._answer(scope, receive)
        except _BadRequest as error:
            reply = error.reply
        except StoreError as error:
            _log.warning("threads can't be had over HTTP: %s", error.message)
            reply = _error(503, "unavailable", "the gateway can't read or write its threads now")
        except _GoneError:
            return
        await reply.send(send)

    async def _answer(self, scope: Scope, receive: Receive) -> Reply:
        caller = self._caller(authorization_of(scope["headers"]))
        if caller is None:
            return unauthorized()
        path = str(scope["path"]).removeprefix(str(scope.get("root_path") or ""))
        method = scope["method"]
        if path == _ROOT:
            if method != "POST":
                return _error(405, "method_not_allowed", "threads are opened by POST", (b"allow", b"POST"))
            return await self._open(caller, await _document(scope, receive))
        id_ = path.removeprefix(f"{_ROOT}/")
        if id_ == path or "/" in id_:
            return _error(404, "not_found", "there are /threads and /threads/{id}")
        if not self._may(caller, id_):
            return unauthorized()
        if method == "GET":
            thread = self._threads.get(id_)
            if thread is None:
                return unauthorized()
            below = [one.id for one in self._threads.children(id_)]
            return _reply(200, {"thread": thread_document(thread), "below": below})
        if method == "DELETE":
            closed = await self._threads.close(id_)
            return _reply(200, {"closed": list(closed)}) if closed else unauthorized()
        return _error(405, "method_not_allowed", "a thread is got or deleted", (b"allow", b"GET, DELETE"))

    def _caller(self, token: str | None) -> _Caller | None:
        if token is None:
            return None
        caller = _Caller(self._threads.of_token(token), opener_of(self._openers, token))
        return caller if caller.thread is not None or caller.opener is not None else None

    def _may(self, caller: _Caller, id_: str) -> bool:
        if caller.thread is not None and self._threads.is_within(id_, caller.thread.id):
            return True
        root = self._threads.root(id_)
        return caller.opener is not None and root is not None and root.opener == caller.opener

    async def _open(self, caller: _Caller, asked: Mapping[str, Any]) -> Reply:
        try:
            thread, token = await self._threads.open(
                parent=None if caller.thread is None else caller.thread.id,
                delegated=asked.get("delegated") or False,
                project=asked.get("project"),
                title=asked.get("title"),
                opener=caller.opener,
            )
        except ThreadRefused as error:
            if error.why == "parent":
                # Its own thread was closed in this moment.
                return unauthorized()
            return _error(_STATUS.get(error.why, 400), error.why, str(error))
        where = f"{_ROOT}/{thread.id}"
        document = {"thread": thread_document(thread), "token": token, "path": f"{where}/mcp"}
        return _reply(201, document, (b"location", where.encode()))


class _GoneError(Exception):
    """Who asked went away."""


async def _document(scope: Scope, receive: Receive) -> Mapping[str, Any]:
    """The body of a request: an object of the fields that there are, or nothing."""
    kind = next((value for name, value in scope["headers"] if name.lower() == b"content-type"), b"")
    body = await _body(receive)
    if not body:
        return {}
    if kind.partition(b";")[0].strip().lower() != b"application/json":
        raise _BadRequest(_error(415, "unsupported_media_type", "the body is application/json"))
    try:
        document = json.loads(body, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise _BadRequest(_error(400, "invalid_body", "the body is a JSON object, each of its keys given once"))
    asked = cast("dict[str, Any]", document)
    for name, value in asked.items():
        wanted = bool if name == "delegated" else str
        if name not in _FIELDS:
            raise _BadRequest(_error(400, "invalid_body", f"a thread is opened with {', '.join(_FIELDS)}: no others"))
        if value is not None and not isinstance(value, wanted):
            what = "true or false" if wanted is bool else "a string, or null"
            raise _BadRequest(_error(400, "invalid_body", f"{name} is {what}"))
    return asked


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _GoneError
                part = message.get("body", b"")
                size += len(part)
                if size > _LARGEST:
                    raise _BadRequest(_error(413, "too_large", f"the body has at most {_LARGEST} bytes"))
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise _BadRequest(_error(408, "timeout", f"the body didn't come within {_PATIENCE:.0f} seconds")) from None
