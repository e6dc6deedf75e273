"""A light client of the gateway over HTTP, in either era: what it is sent is kept as it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp

Era = Literal["modern", "legacy"]
_ACCEPT = {"accept": "application/json, text/event-stream"}
_CLIENT = {"name": "soak", "version": "1"}
_NAMED = {"tools/call": "name", "prompts/get": "name"}


class Gone(Exception):
    """The gateway knows the thread, or the session, no more."""


@dataclass
class Reply:
    """What came for one request: the answer, and the notes before it."""

    answer: Mapping[str, Any]
    notes: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def result(self) -> Mapping[str, Any] | None:
        return self.answer.get("result")

    @property
    def error(self) -> Mapping[str, Any]:
        return self.answer["error"]


class Client:
    """One client. Ids and progress tokens are the same for all clients, so that one that strays is seen."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str, era: Era) -> None:
        self.era = era
        self.strays: list[Mapping[str, Any]] = []
        """Whatever came on the general stream."""
        self._http = http
        self._url = url
        self._headers = {**_ACCEPT, "authorization": f"Bearer {token}"}
        self._id = 0
        self._general: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """The handshake of the legacy era."""
        if self.era == "modern":
            self._headers["mcp-protocol-version"] = "2026-07-28"
            return
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}
        async with self._post(self._message("initialize", params), {}) as response:
            await _read(response, 1)
            self._headers["mcp-session-id"] = response.headers["mcp-session-id"]
        self._headers["mcp-protocol-version"] = "2025-11-25"
        async with self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {}) as response:
            _check(response)
        self._general = asyncio.create_task(self._listen())

    async def request(self, method: str, params: Mapping[str, Any], *, progress: str | None = None) -> Reply:
        """One request.

        Raises:
            Gone: The thread is closed, or the session has ended.
        """
        meta: dict[str, Any] = {"progressToken": progress} if progress is not None else {}
        headers: dict[str, str] = {}
        if self.era == "modern":
            meta |= {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": _CLIENT,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers["mcp-method"] = method
            if method in _NAMED:
                headers["mcp-name"] = params[_NAMED[method]]
        message = self._message(method, {**params, "_meta": meta} if meta else params)
        async with self._post(message, headers) as response:
            return await _read(response, message["id"])

    async def leave(self, *, politely: bool) -> None:
        """Go: with a DELETE, or without a word."""
        if self._general is not None:
            self._general.cancel()
            await asyncio.gather(self._general, return_exceptions=True)
            if politely:
                async with self._http.delete(self._url, headers=self._headers):
                    pass

    def _message(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._id += 1
        return {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}

    def _post(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        return self._http.post(self._url, json=message, headers={**self._headers, **headers})

    async def _listen(self) -> None:
        async with self._http.get(self._url, headers=self._headers) as response:
            if response.status == 200:
                async for message in _events(response):
                    if not message["method"].endswith("/list_changed"):
                        self.strays.append(message)


def _check(response: aiohttp.ClientResponse) -> None:
    if response.status in (401, 404):
        raise Gone(response.status)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    async for line in response.content:
        if line.startswith(b"data: ") and line[6:].strip():
            yield json.loads(line[6:])


async def _read(response: aiohttp.ClientResponse, id_: int) -> Reply:
    if response.status == 401:
        raise Gone("401")
    if response.content_type == "application/json":
        answer = json.loads(await response.read())
        if response.status == 404 and answer.get("id") is None:
            raise Gone("404")
        reply = Reply(answer)
    else:
        assert response.content_type == "text/event-stream", (response.status, await response.read())
        reply = Reply({})
        async for message in _events(response):
            if "method" in message:
                reply.notes.append(message)
            else:
                assert not reply.answer, f"a second answer: {message}"
                reply.answer = message
        if not reply.answer:
            raise AssertionError("the stream ended without an answer")
    assert reply.answer.get("id") == id_, (response.status, reply.answer)
    return reply
