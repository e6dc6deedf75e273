"""One life of a connection: opened, brought up in its era, held, ended.

The SDK's connection scope belongs to the task that entered it. So each connection lives in a task of its own, and is
signalled to end; callers in any task only send through it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from hotplug.connect.failures import advice, explain, refusal, unpacked
from hotplug.connect.launch import HttpLaunch, Launch, ObjectLaunch, StdioLaunch
from hotplug.connect.negotiation import Era, EraChoice, negotiate
from hotplug.connect.upstream_log import UpstreamLog
from hotplug.connect.version import own_version
from hotplug.errors import AuthError, ConfigError, ConnectError

if TYPE_CHECKING:
    from mcp import ClientSession

    from hotplug.connect.http import Exchange
    from hotplug.connect.stdio import Child

__all__ = ["Connection", "ExitedAtProbe", "Transport", "end_task"]

Transport: TypeAlias = Literal["stdio", "http", "memory"]

_CLOSE_LIMIT: Final = 10.0
_CERTIFICATE_HINTS: Final = {
    "unknown_issuer": "trust whoever issued its certificate: SSL_CERT_FILE=ISSUER.pem in our environment",
    "wrong_host": "its certificate is for other names: write one of them in the URL",
    "expired": "its certificate has to be renewed, or this machine's clock is wrong",
    "other": "is it HTTPS that is spoken at this port?",
}


class ExitedAtProbe(Exception):
    """The child ended at the first request that it didn't know."""


class Connection:
    """One connection from its start to its end; a later one to the same target is another.

    Args:
        name: What the server is called in messages.
        on_message: Takes the server's notifications.
        on_log: Takes each line of a child's standard error, masked.
    """

    def __init__(
        self,
        name: str,
        launch: Launch,
        *,
        probe_limit: float,
        start_timeout: float,
        on_message: Callable[[Any], Awaitable[None]],
        on_log: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.launch = launch
        self.transport: Transport = (
            "stdio" if isinstance(launch, StdioLaunch) else "http" if isinstance(launch, HttpLaunch) else "memory"
        )
        self.mask = launch.masker()
        self.log = UpstreamLog(name, self.mask, on_line=on_log)
        self.stop = asyncio.Event()
        self.session: ClientSession | None = None
        self.child: Child | None = None
        self.era: Era | None = None
        self.cause: BaseException | None = None
        self._probe_limit = probe_limit
        self._start_timeout = start_timeout
        self._on_message = on_message
        self._handshake: Exchange | None = None
        self._up = asyncio.Event()
        self._died = False
        self._tried: str | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def lost(self) -> bool:
        """Whether nothing can be sent over it any more."""
        if self._task is None or self._task.done() or self.stop.is_set():
            return True
        return self.child is not None and self.child.lost

    def ending(self) -> str:
        """How it ended, for a message."""
        if self.child is not None:
            return self.child.ending()
        if self.cause is not None:
            return self.mask.line(str(unpacked(self.cause)) or type(self.cause).__name__)
        return "it ended"

    async def open(self, era: EraChoice) -> None:
        """Opens it; returns when calls can be sent.

        Raises:
            ConnectError: It can't be reached or isn't MCP.
            AuthError: It refused the credential.
            ConfigError: An object in process is no server.
            ExitedAtProbe: It ended without an answer to the new era's probe.
        """
        self._task = asyncio.create_task(self._live(era), name=f"hotplug connection {self.name}")
        up = asyncio.create_task(self._up.wait())
        try:
            # The handshake has its own limit; this one holds what comes before it (an object's own start).
            limit = self._start_timeout + _CLOSE_LIMIT
            await asyncio.wait({self._task, up}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await end_task(self._task)
            raise
        finally:
            up.cancel()
        if self._up.is_set() and not self.lost:
            return
        if not self._task.done() and not self._up.is_set():
            self.cause = TimeoutError(self._silence())
        await end_task(self._task)
        cause = self.cause or ConnectError("the connection ended during the handshake")
        found = unpacked(cause)
        if isinstance(found, ConfigError):
            raise found
        at_probe = self._died and self.child is not None and not self.child.answered and era != "legacy"
        # A cause that is known and has nothing to do with the probe would only come again, and starts are slow.
        if at_probe and advice(self.log) is None:
            raise ExitedAtProbe
        raise self._failure(found) from cause

    def abort(self) -> None:
        """Ends it at once, also while it is still being opened."""
        self.stop.set()
        if self._task is not None:
            self._task.cancel()

    async def end(self) -> None:
        """Ends it, from any task; returns when its child has ended too."""
        self.stop.set()
        if self._task is None:
            return
        import anyio

        with anyio.CancelScope(shield=True):
            await asyncio.wait({self._task}, timeout=_CLOSE_LIMIT)
        if not self._task.done():
            await end_task(self._task)

    async def _live(self, era: EraChoice) -> None:
        import anyio

        try:
            async with AsyncExitStack() as stack:
                session = await self._open(stack, era)
                if self.era is None:
                    try:
                        # A server that is known to answer the probe is waited for: it may only be slow to start.
                        limit = self._probe_limit if era == "auto" else self._start_timeout
                        with anyio.move_on_after(self._start_timeout) as scope:
                            self.era = await negotiate(
                                session, era, probe_limit=limit, halt=self._halt, trying=self._trying
                            )
                    finally:
                        # Before it is asked to end: whether it ended by itself.
                        self._died = self.child is not None and self.child.lost
                    if scope.cancelled_caught:
                        raise TimeoutError(self._silence())
                self.session = session
                self._up.set()
                await self.stop.wait()
        except Exception as error:
            # Groups too: what a task group of the SDK's lets out here is the end of this connection, and only of it.
            self.cause = error
        finally:
            self.stop.set()

    async def _open(self, stack: AsyncExitStack, era: EraChoice) -> ClientSession:
        from mcp import ClientSession
        from mcp_types import Implementation

        from hotplug.connect.capture import CapturingDispatcher

        client = Implementation(name="hotplug", version=own_version())
        if isinstance(self.launch, ObjectLaunch):
            from hotplug.connect.memory import open_object

            session, self.era = await open_object(stack, self.launch.server, era, client, cast("Any", self._on_message))
            return session
        if isinstance(self.launch, StdioLaunch):
            from hotplug.connect.stdio import Child, child_streams

            self.child = Child(self.log, self.stop.set)
            read, write = await stack.enter_async_context(child_streams(self.launch, self.child))
        else:
            from mcp.client.streamable_http import streamable_http_client

            from hotplug.connect.http import EXCHANGE, Exchange, target_client

            self._handshake = Exchange()
            EXCHANGE.set(self._handshake)
            http = await stack.enter_async_context(target_client(self.launch.headers))
            read, write = await stack.enter_async_context(streamable_http_client(self.launch.url, http_client=http))
        from hotplug.declare import CARDS, NOETIC

        return await stack.enter_async_context(
            ClientSession(
                dispatcher=CapturingDispatcher(read, write),
                client_info=client,
                message_handler=cast("Any", self._on_message),
                # So that a gateway shows us what it shows only to clients that know profiles.
                extensions={NOETIC: {}, CARDS: {}},
            )
        )

    def _trying(self, version: str) -> None:
        self._tried = version

    def _halt(self, last: bool) -> None:
        """Ends the negotiation where no other handshake could do better."""
        exchange = self._handshake
        if exchange is None:
            return
        if exchange.failure is not None:
            raise ConnectError(
                exchange.failure,
                hint=_CERTIFICATE_HINTS.get(exchange.certificate or ""),
                cause="tls" if exchange.certificate else "unreachable" if exchange.unsent else None,
            )
        if exchange.status == 401 or (last and exchange.status == 403):
            raise AuthError(refusal(exchange.status, exchange.challenge), cause="auth")

    def _silence(self) -> str:
        return f"no answer to the handshake within {self._start_timeout:g} s"

    def _failure(self, cause: BaseException) -> ConnectError:
        text, hint, kind = explain(cause, self.child, self._handshake, self.log, died=self._died)
        cls = AuthError if isinstance(cause, AuthError) else ConnectError
        return cls(
            self.mask(f"can't connect to {self.name}: {text}"),
            target=self.name,
            transport=self.transport,
            protocol=(cause.protocol if isinstance(cause, ConnectError) else None) or self._tried,
            log=self.log.tail(),
            hint=hint,
            cause=kind,
        )


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancels a task and waits for its end."""
    import anyio

    task.cancel()
    # Bounded, so it may hold against a cancellation of the caller: what it waits for is the end of a child.
    with anyio.CancelScope(shield=True):
        await asyncio.wait({task}, timeout=_CLOSE_LIMIT)
    if task.done() and not task.cancelled():
        task.exception()
