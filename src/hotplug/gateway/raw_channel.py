"""The conversation with a server in which the gateway itself asks: for a projection, or to pass an operation on.

A projection speaks to the same process as the raw tools beside it, over the pool's links; nothing here starts one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from hotplug.connect import Reply
from hotplug.connect.mcp_channel import reply_of
from hotplug.connect.results import RawResult, RpcError
from hotplug.errors import (
    ConnectError,
    Disconnected,
    HotplugError,
    Internal,
    RateLimited,
    Timeout,
    TooLarge,
    Unavailable,
    Unsupported,
)
from hotplug.gateway.bridge.headers import mirrored, routing
from hotplug.gateway.catalog import Catalog
from hotplug.gateway.link import Answer, Era, Frame, Link, LinkLost, Outgoing
from hotplug.gateway.links.handshake import own_meta
from hotplug.gateway.message import METHOD_NOT_FOUND, Message, loads
from hotplug.gateway.upstream import LinkKey, Upstream
from hotplug.serve import current_call

__all__ = ["Conversation", "LinkConversation", "RawChannel", "conversation_with", "raw_result_of"]

_TIMEOUT: Final = 60.0
"""Seconds that a projection waits for one tool, where nothing says how long that may take."""


class Conversation(Protocol):
    """What the gateway needs of one upstream to speak to it in its own name."""

    @property
    def target(self) -> str:
        """What it leads to, as a person would say it; no credential in it."""
        ...

    @property
    def instance(self) -> str:
        """Changes whenever the process or the session behind is replaced; empty before there was one."""
        ...

    @property
    def lost(self) -> str | None:
        """Why nothing can be sent at the moment, masked; None while it can."""
        ...

    @property
    def extensions(self) -> Mapping[str, Any]:
        """What the server advertised when it was reached last; nothing before."""
        ...

    def mask(self, text: str) -> str:
        """A text without the secrets that the server was started with."""
        ...

    async def edition(self) -> str:
        """What is behind at this moment: changes with the instance and with its list of tools. Starts what is needed.

        Raises:
            Unavailable: It can't be reached, and why.
        """
        ...

    async def tools(self) -> Sequence[Mapping[str, Any]]:
        """Every tool that it lists.

        Raises:
            Unavailable: It can't be reached, or the list is incomplete.
        """
        ...

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        thread: str = "",
        timeout: float | None = None,  # noqa: ASYNC109 - the server is told to stop, too
    ) -> Message:
        """Send a request once and give its answer, a result or an error.

        Args:
            thread: For whom, where each thread has a process of its own.
            timeout: Seconds; None for no limit: what is silent for too long, the pool finds out.

        Raises:
            Disconnected, Timeout: `details["state"]` is `not_sent`, or `unknown` where it may have been done.
            Unavailable: It can't be reached; nothing was sent.
        """
        ...


def raw_result_of(answer: Message) -> RawResult:
    """A tool's result from the answer to `tools/call`."""
    if answer.kind == "result":
        result = loads(answer.fields["result"])
        return RawResult(cast("dict[str, Any]", result) if isinstance(result, dict) else {})
    error: Any = loads(answer.fields["error"])
    table = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    code = table.get("code")
    return RawResult(
        {}, RpcError(code if isinstance(code, int) else 0, str(table.get("message", "")), table.get("data"))
    )


class RawChannel:
    """A conversation as the channel of a projection, for whichever thread's call runs at the moment.

    Args:
        timeout: Seconds for a call that says nothing of it.
    """

    def __init__(self, conversation: Conversation, *, timeout: float = _TIMEOUT) -> None:
        self.conversation = conversation
        self._timeout = timeout

    @property
    def target(self) -> str:
        return self.conversation.target

    @property
    def extensions(self) -> Mapping[str, Any]:
        return self.conversation.extensions

    def mask(self, text: str) -> str:
        """A text without the secrets that the server was started with."""
        return self.conversation.mask(text)

    async def tools(self) -> Sequence[Mapping[str, Any]]:
        return await self.conversation.tools()

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109 - as the conversation's
    ) -> Reply:
        params: dict[str, Any] = {"name": tool, "arguments": dict(arguments)}
        if meta:
            params["_meta"] = dict(meta)
        limit = self._timeout if timeout is None else timeout
        answer = await self.conversation.request("tools/call", params, thread=_thread(), timeout=limit)
        result = raw_result_of(answer)
        if result.input_required:
            # It wants to ask a person. A projection has nobody to ask, and the question is no outcome.
            raise Unsupported(f"{tool} of {self.target} asks for input in the middle of a call", details={"tool": tool})
        return reply_of(result)

    async def restore(self) -> None:
        """Nothing to do: a link that was lost is replaced with the next request."""

    async def aclose(self) -> None:
        """The links are the pool's."""


def _thread() -> str:
    try:
        return current_call().principal
    except HotplugError:
        return ""


class LinkConversation:
    """A conversation over the pool's links.

    Args:
        name: The server's.
        reach: Gives a link that can be used, for a thread (empty: for the gateway itself); starts what is needed.
        catalog: Gives all that a link's server offers, as the pool keeps it.
        instance: The id of the process or session behind a link; new when it is replaced.
        mask: Takes the server's secrets out of a text.
    """

    def __init__(
        self,
        name: str,
        reach: Callable[[str], Awaitable[Link]],
        catalog: Callable[[Link], Awaitable[Catalog]],
        *,
        instance: Callable[[Link], str],
        mask: Callable[[str], str] = str,
    ) -> None:
        self._name = name
        self._reach = reach
        self._catalog = catalog
        self._instance = instance
        self._mask = mask
        self._ids = itertools.count(1)
        self._extensions: Mapping[str, Any] = {}
        self._schemas: Mapping[str, Any] = {}
        self._link: Link | None = None

    @property
    def target(self) -> str:
        return self._name

    @property
    def instance(self) -> str:
        return self._instance(self._link) if self._link is not None else ""

    @property
    def lost(self) -> str | None:
        return self._link.lost if self._link is not None else None

    @property
    def extensions(self) -> Mapping[str, Any]:
        return self._extensions

    def mask(self, text: str) -> str:
        return self._mask(text)

    async def edition(self) -> str:
        link = await self._usable("")
        catalog = await self._catalog_of(link)
        return f"{self._instance(link)}:{catalog.version}"

    async def tools(self) -> Sequence[Mapping[str, Any]]:
        link = await self._usable("")
        listing = (await self._catalog_of(link)).tools
        if listing.problem is not None:
            raise Unavailable(f"the tool list of {self._name} is incomplete: {self._mask(listing.problem)}")
        tools = [{key: loads(value) for key, value in item.raw.items()} for item in listing.items]
        self._schemas = {str(tool.get("name")): tool.get("inputSchema") for tool in tools}
        return tools

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        thread: str = "",
        timeout: float | None = None,  # noqa: ASYNC109 - as the protocol's
    ) -> Message:
        try:
            async with asyncio.timeout(timeout):
                try:
                    return await self._sent(await self._usable(thread), method, params)
                except LinkLost as error:
                    if error.sent:
                        raise
                # Nothing was sent, so this is the first try.
                return await self._sent(await self._usable(thread), method, params)
        except LinkLost as error:
            state = "unknown" if error.sent else "not_sent"
            done = "may or may not have been done" if error.sent else "wasn't sent"
            raise Disconnected(
                self._mask(f"the connection to {self._name} ended ({error.reason}): {method} {done}"),
                details={"state": state},
            ) from None
        except TimeoutError:
            raise Timeout(
                f"{self._name} gave no answer to {method} within {timeout or 0:g} s", details={"state": "unknown"}
            ) from None

    async def _usable(self, thread: str) -> Link:
        try:
            link = await self._reach(thread)
        except LinkLost as error:
            raise Unavailable(self._mask(f"{self._name} can't be reached: {error.reason}")) from None
        except ConnectError as error:
            raise Unavailable(self._mask(f"{self._name} can't be reached: {error.message}"), hint=error.hint) from None
        if not thread and link is not self._link:
            self._link = link
            self._extensions = _extensions_of(link)
        return link

    async def _catalog_of(self, link: Link) -> Catalog:
        try:
            return await self._catalog(link)
        except LinkLost as error:
            raise Unavailable(self._mask(f"{self._name} went away: {error.reason}")) from None

    async def _sent(self, link: Link, method: str, params: Mapping[str, Any]) -> Message:
        headers: dict[str, str] = {}
        if link.era == "modern":
            meta = cast("Mapping[str, Any]", params.get("_meta") or {})
            params = {**params, "_meta": {**meta, **own_meta()}}
            headers = mirrored(self._schemas.get(str(params.get("name"))), params.get("arguments"))
        request = Message.request(f"hotplug-call-{next(self._ids)}", method, params)
        if link.era == "modern":
            headers |= routing(request)
        outgoing = Outgoing(request, headers, scope=f"hotplug:{self._name}")
        async with link.exchange(outgoing) as answer:
            if answer.message is not None:
                return answer.message
            if answer.frames is not None:
                return await self._answer_in(link, answer.frames, outgoing.scope)
        raise self._refused(answer, method)

    async def _answer_in(self, link: Link, frames: AsyncIterator[Frame], scope: str) -> Message:
        async for frame in frames:
            message = frame.message
            if message is None or message.kind == "notification":
                continue
            if message.is_answer:
                return message
            # The server asks something. The gateway has no person and no model: it says so.
            asked = message.id or b"null"
            said = (
                Message.result_of(asked, {})
                if message.method == "ping"
                else Message.error_of(asked, METHOD_NOT_FOUND, "nobody here can answer that")
            )
            try:
                await link.send(said, scope=scope)
            except LinkLost as error:
                # The request itself has been read.
                raise LinkLost(error.reason, sent=True) from None
        raise LinkLost("the stream ended without an answer", sent=True)

    def _refused(self, answer: Answer, method: str) -> HotplugError:
        status = answer.status
        words = f"{self._name} answered {method} with HTTP {status}"
        match status:
            case 401 | 403:
                return Unavailable(f"{self._name} refused the gateway's credential (HTTP {status})")
            case 413:
                return TooLarge(f"{self._name} refused the size of {method}", details={"status": status})
            case 429:
                details: dict[str, Any] = {"status": status}
                seconds = answer.headers.get("retry-after", "")
                if seconds.isdigit():
                    details["retryAfterMs"] = int(seconds) * 1000
                return RateLimited(f"{self._name} has had too many calls", details=details)
            case 502 | 504:
                return Disconnected(words, details={"status": status, "state": "unknown"})
            case 503:
                return Unavailable(words, details={"status": status, "state": "unknown"})
            case _:
                return Internal(words, details={"status": status, "state": "unknown"})


def conversation_with(upstream: Upstream, *, era: Era = "modern") -> LinkConversation:
    """The gateway's own conversation with one of the pool's upstreams.

    Args:
        era: In which it is spoken to; the pool puts a bridge between where it speaks only the other one.
    """

    def reach(thread: str) -> Awaitable[Link]:
        return upstream.link(era, LinkKey(thread))

    return LinkConversation(upstream.name, reach, upstream.catalog, instance=upstream.instance_of, mask=upstream.mask)


def _extensions_of(link: Link) -> Mapping[str, Any]:
    raw = link.hello.result.get("capabilities")
    capabilities: Any = loads(raw) if raw is not None else None
    if not isinstance(capabilities, dict):
        return {}
    for key in ("extensions", "experimental"):
        found = cast("dict[str, Any]", capabilities).get(key)
        if isinstance(found, dict) and found:
            return cast("dict[str, Any]", found)
    return {}
