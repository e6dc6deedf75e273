"""Puts a runtime behind the official SDK's servers: `MCPServer`, the low-level `Server`, and FastMCP.

One middleware on the wire does it, the same for all three: it answers `tools/call` for our tools, adds them to
`tools/list`, and adds the declarations to `initialize` and `server/discover`. So schemas arrive exactly as the profile
has them (FastMCP inlines references, the SDK derives schemas from signatures), arguments aren't validated by an SDK
whose error repeats them, and the old era gets the `extensions` that its filter would drop.
`Server.middleware` is marked provisional in the SDK; what depends on it stands in this module only, pinned to a minor.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
from pydantic_core import to_json

from hotplug.errors import ConfigError, HotplugError, Unavailable
from hotplug.profile import Profile
from hotplug.serve.provider import Provider
from hotplug.serve.runtime import Answer, Runtime
from hotplug.store import Store

if TYPE_CHECKING:
    from mcp.server.context import CallNext, ServerRequestContext

__all__ = ["Attached", "attach", "principal_of", "result_of"]

_MODERN_SINCE: Final = "2026-07-28"
_INTERNAL_ERROR: Final = -32603

_log = logging.getLogger(__name__)


class Attached:
    """A runtime that answers behind a server.

    Args:
        runtime: What answers.
        principal: Says on whose behalf a request is made; by default everybody who connects is one principal, except
            where the transport authenticates (then the token's client and subject).
        own_tools: Lists the server's own tools, where it can be asked.
    """

    def __init__(
        self,
        runtime: Runtime,
        principal: Callable[[Any], str] | None = None,
        own_tools: Callable[[], Awaitable[Iterable[Any]]] | None = None,
    ) -> None:
        self.runtime = runtime
        self._own_tools = own_tools
        self._principal = principal or principal_of
        self._listed: list[dict[str, Any]] | None = None
        self._lock = anyio.Lock()
        self._opened = False

    async def middleware(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
        """`(ctx, call_next) -> result`, as the SDK calls it for each message."""
        method = ctx.method
        if method == "tools/call":
            params = cast("Mapping[str, Any]", ctx.params or {})
            name = params.get("name")
            if isinstance(name, str) and (name in self.runtime.bound or name in self.runtime.missing):
                result = result_of(await self._answer(name, params, ctx))
                return {**result, "resultType": "complete"} if _modern(ctx) else result
        answer = await call_next(ctx)
        if method == "tools/list":
            return self._list(cast("dict[str, Any]", answer), first=not (ctx.params or {}).get("cursor"))
        if method in {"initialize", "server/discover"}:
            return self._declare(cast("dict[str, Any]", answer), legacy=method == "initialize")
        return answer

    def _declare(self, result: dict[str, Any], *, legacy: bool) -> dict[str, Any]:
        ours = self.runtime.declaration.to_extensions()
        capabilities = dict(cast("dict[str, Any]", result.get("capabilities") or {}))
        capabilities["extensions"] = {**(capabilities.get("extensions") or {}), **ours}
        if legacy:
            capabilities["experimental"] = {**(capabilities.get("experimental") or {}), **ours}
        capabilities.setdefault("tools", {})
        return {**result, "capabilities": capabilities}

    async def _answer(self, name: str, params: Mapping[str, Any], ctx: Any) -> Answer:
        try:
            await self._open()
        except HotplugError as error:
            return Answer(Unavailable(str(error)).as_wire(), is_error=True)
        except Exception as error:
            # Its text may repeat anything, and the SDK would hand it on.
            _log.error("the server behind %s can't be opened (%s)", name, type(error).__name__)
            failed = Unavailable(f"the server behind {name} can't be opened ({type(error).__name__})")
            return Answer(failed.as_wire(), is_error=True)
        return await self.runtime.call(
            name,
            params.get("arguments"),
            meta=cast("Mapping[str, Any]", params.get("_meta") or {}),
            principal=self._principal(ctx),
        )

    def _list(self, result: dict[str, Any], *, first: bool) -> dict[str, Any]:
        theirs = cast("list[dict[str, Any]]", result.get("tools", []))
        try:
            self.check_names(tool.get("name") for tool in theirs)
        except ConfigError as error:
            from mcp import MCPError

            raise MCPError(code=_INTERNAL_ERROR, message=str(error)) from None
        if not first:
            return result
        if self._listed is None:
            self._listed = [tool.listed() for tool in self.runtime.tools.values()]
        return {**result, "tools": [*self._listed, *theirs]}

    def check_names(self, names: Iterable[Any]) -> None:
        """Refuse tools of the server's own that are called as a part is.

        Raises:
            ConfigError: There is one.
        """
        taken = sorted({name for name in names if name in self.runtime.bound or name in self.runtime.missing})
        if taken:
            raise ConfigError(
                f"the server has tools of its own that are called as parts are: {', '.join(taken)}",
                hint="rename them: which of the two was meant could not be told",
            )

    async def _open(self) -> None:
        """Open the providers with the first call, for servers whose life isn't ours; see `opened`."""
        if self._opened:
            return
        async with self._lock:
            if self._opened:
                return
            if self._own_tools is not None:
                self.check_names(getattr(tool, "name", None) for tool in await self._own_tools())
            for provider in self.runtime.providers:
                await provider.aopen()
            self._opened = True

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Attached]:
        """The providers opened now and closed at the end: put it into the server's lifespan."""
        async with self.runtime.opened():
            self._opened = True
            try:
                yield self
            finally:
                self._opened = False


def attach(
    server: Any,
    *servers: Profile | Provider,
    store: Store | None = None,
    identity: str | None = None,
    principal: Callable[[Any], str] | None = None,
) -> Attached:
    """Make an `MCPServer`, a low-level `Server` or a FastMCP 4 server speak profiles.

    Args:
        server: The server; its own tools stay.
        servers: Instances of native servers, `MyCalendar()`.
        store: Keeps idempotency records, receipts, durable events and the sealing key. By default a SQLite file of
            this server in the user's state folder, so that `once` holds over restarts.
        identity: What refs belong to; by default the server's name.
        principal: Says on whose behalf a request is made; see `Attached`.

    Raises:
        ConfigError: It is no server of these kinds, or has a tool that is called as a part is (one that is added later
            is refused when tools are listed).
    """
    chain = _chain(server)
    name = str(getattr(server, "name", "") or "")
    if store is None:
        from hotplug.store import default_store

        store = default_store(name)
    runtime = Runtime(*servers, store=store, identity=identity or name, name=name)
    attached = Attached(runtime, principal, getattr(server, "list_tools", None))
    manager = getattr(server, "_tool_manager", None)  # an MCPServer's, which can be asked without waiting
    if manager is not None:
        attached.check_names(tool.name for tool in manager.list_tools())
    chain.append(attached.middleware)
    return attached


def _chain(server: Any) -> list[Any]:
    """The list of wire middlewares of a server."""
    chain = getattr(server, "middleware", None)
    if type(server).__module__.partition(".")[0] == "fastmcp":
        # FastMCP's own `middleware` works on its typed models; the wire's is that of the server inside.
        inner = getattr(server, "_mcp_server", None)
        chain = getattr(inner, "middleware", None)
    if not isinstance(chain, list):
        raise ConfigError(
            f"{type(server).__module__}.{type(server).__qualname__} is no server that profiles can be attached to",
            hint="pass an mcp MCPServer, an mcp low-level Server, or a FastMCP 4 server",
        )
    return cast("list[Any]", chain)


def principal_of(ctx: Any) -> str:
    """On whose behalf a request is made: the token's client and subject, or `local` where nothing authenticates."""
    from mcp.server.auth.middleware.auth_context import get_access_token

    token = get_access_token()
    if token is None:
        return "local"
    return f"{token.client_id}/{getattr(token, 'subject', None) or ''}"


def _modern(ctx: Any) -> bool:
    version = getattr(ctx, "protocol_version", None) or getattr(ctx.session, "protocol_version", None)
    return isinstance(version, str) and version >= _MODERN_SINCE


def result_of(answer: Answer) -> dict[str, Any]:
    """An answer as a tool's result: its content as it is, and as JSON in a text item."""
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": to_json(answer.content).decode()}],
        "structuredContent": answer.content,
        "isError": answer.is_error,
    }
    if answer.meta:
        result["_meta"] = dict(answer.meta)
    return result
