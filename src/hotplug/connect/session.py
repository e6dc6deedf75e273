"""A live MCP client session on a target: either era, any transport, usable from any task.

Nothing is ever sent twice here: what became of a call whose connection ended is for the caller to find out (FR-23).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

from hotplug.connect.connection import Connection, ExitedAtProbe, Transport, end_task
from hotplug.connect.launch import Launch, ObjectLaunch, launch_of
from hotplug.connect.negotiation import Era, EraChoice, remember_era, remembered_era
from hotplug.connect.outcome import raise_if_gone
from hotplug.connect.results import LIST_LIMIT, TOOLS_LIMIT, RawResult, RpcError, ToolList, UpstreamTool, read_tools
from hotplug.connect.secrets import Secrets
from hotplug.connect.serversfile import ServersFile
from hotplug.connect.target import Target, parse_target
from hotplug.errors import ConnectError, Disconnected, Internal, NotFound, Timeout

if TYPE_CHECKING:
    from mcp import ClientSession, MCPError
    from pydantic import TypeAdapter

    from hotplug.connect.http import Exchange

__all__ = ["McpSession", "Progress"]

Progress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
"""Called with progress, total and message of a running call."""

_logger = logging.getLogger("hotplug.connect")
_PAGES: Final = 1000
_LISTEN_LIMIT: Final = 2.0
_RELISTEN: Final = (1.0, 2.0, 5.0, 15.0, 30.0)
_TIMEOUT_CODE: Final = -32001
_METHOD_NOT_FOUND: Final = -32601


class McpSession:
    """A session with one server. Use it as an async context manager, or `start()` and `aclose()` it.

    Args:
        target: What to connect to: a `Target`, or anything that `parse_target` takes.
        era: `auto` (probe, or what was found before for this target), `legacy` or `modern`.
        secrets: Where the secrets that the target names come from.
        files: Configuration files in which names are looked up.
        name: What the server is called in messages, and for secrets where its entry has no name; default: the target.
        thread: For whom, where a secret's places ask for it.
        probe_limit: Seconds of silence after which the new era's probe counts as unanswered.
        start_timeout: Seconds until the handshake must be done; a package may have to be downloaded first.
        call_timeout: Seconds that a call may take when it doesn't say; `None` for no limit.
        on_notification: Called with method and params of each of the server's notifications; in process it must not
            wait for calls of this session.
        on_log: Called with each line of a child's standard error, masked.
    """

    def __init__(
        self,
        target: object,
        *,
        era: EraChoice = "auto",
        secrets: Secrets | None = None,
        files: tuple[ServersFile, ...] = (),
        name: str | None = None,
        thread: str | None = None,
        probe_limit: float = 3.0,
        start_timeout: float = 60.0,
        call_timeout: float | None = 60.0,
        on_notification: Callable[[str, Mapping[str, Any]], Awaitable[None]] | None = None,
        on_log: Callable[[str], None] | None = None,
    ) -> None:
        self.target: Target = parse_target(target)
        self.name = name or str(self.target)
        self._given_name = name
        self._era: EraChoice = era
        self._secrets = secrets
        self._files = files
        self._thread = thread
        self._probe_limit = probe_limit
        self._start_timeout = start_timeout
        self._call_timeout = call_timeout
        self._on_notification = on_notification
        self._on_log = on_log
        self._live: Connection | None = None
        self._mask: Callable[[str], str] = str
        self._opening: Connection | None = None
        self._watching: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._listing = asyncio.Lock()
        self._closed = False
        self._tools: ToolList | None = None
        self._tool_names: frozenset[str] = frozenset()
        self._tools_stale = False
        self._tools_until: float | None = None
        self.generation = 0
        """How often it has connected: volatile refs of an earlier one are dead."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Starting and ending

    async def start(self) -> None:
        """Connects; does nothing where it is connected.

        Raises:
            ConfigError: The target can't be started as it stands.
            PermissionDenied: It needs a secret that may not go to it.
            ConnectError: It can't be reached or isn't MCP; says cause, transport, protocol and last lines.
            AuthError: It refused the credential.
        """
        async with self._starting:
            if self._closed:
                raise ConnectError("this session was closed", target=self.name, hint="make a new one")
            if self.connected:
                return
            await self._end_live()
            launch = await launch_of(
                self.target, secrets=self._secrets, files=self._files, name=self._given_name, thread=self._thread
            )
            key = None if isinstance(launch, ObjectLaunch) else self._key()
            era = self._era
            if era == "auto" and key is not None:
                era = remembered_era(key) or "auto"
            try:
                live = await self._connect(launch, era)
            except ExitedAtProbe:
                # It can't bear a request that it doesn't know: a fresh process, and the old handshake first.
                live = await self._connect(launch, "legacy")
            if key is not None and live.era is not None:
                remember_era(key, live.era)
            self._live = live
            self._mask = live.mask
            self._tools, self._tools_stale, self._tools_until = None, False, None
            self.generation += 1

    async def reconnect(self) -> None:
        """Connects again after the connection ended, with a fresh process or session; sends nothing again.

        Raises:
            ConnectError: As `start()`.
        """
        await self.start()

    async def aclose(self) -> None:
        """Ends the session and its child, from any task, any number of times; returns when both have ended."""
        self._closed = True
        if self._opening is not None:
            self._opening.abort()
        async with self._starting:
            await self._end_live()

    @property
    def connected(self) -> bool:
        """Whether calls can be sent."""
        return self._live is not None and not self._live.lost

    async def ended(self) -> str:
        """Waits until the present connection has ended, and says how: for who restarts it.

        Over HTTP a connection ends only when the server says so or it is closed; what breaks are single requests.
        """
        if self._live is None:
            return "it is not connected"
        live = self._live
        await live.stop.wait()
        return live.ending()

    async def _connect(self, launch: Launch, era: EraChoice) -> Connection:
        live = Connection(
            self.name,
            launch,
            probe_limit=self._probe_limit,
            start_timeout=self._start_timeout,
            on_message=self._on_message,
            on_log=self._on_log,
        )
        self._opening = live
        try:
            await live.open(era)
        finally:
            self._opening = None
        return live

    async def _end_live(self) -> None:
        live, self._live = self._live, None
        if self._watching is not None:
            await end_task(self._watching)
            self._watching = None
        if live is not None:
            await live.end()

    def _key(self) -> str:
        """The target's identity for what is remembered about it; its description holds no credential."""
        return json.dumps(self.target.describe(), sort_keys=True, default=str)

    # What the server says of itself

    @property
    def transport(self) -> Transport | None:
        """The transport of the present connection."""
        return self._live.transport if self._live else None

    @property
    def era(self) -> Era | None:
        """The era that was negotiated."""
        return self._live.era if self._live else None

    @property
    def protocol(self) -> str | None:
        """The protocol revision that was negotiated (`2026-07-28`, `2025-11-25`, ...)."""
        return self._live.session.protocol_version if self._live and self._live.session else None

    @property
    def server_info(self) -> dict[str, Any]:
        """Name, version and the like as the server gives them, which identifies nothing for certain; may be empty."""
        server = self._live.session.server_info if self._live and self._live.session else None
        return server.model_dump(by_alias=True, mode="json", exclude_none=True) if server else {}

    @property
    def instructions(self) -> str | None:
        """The server's instructions: foreign text."""
        return self._live.session.instructions if self._live and self._live.session else None

    @property
    def capabilities(self) -> dict[str, Any]:
        """The server's capabilities in the shape of the wire."""
        found = self._live.session.server_capabilities if self._live and self._live.session else None
        return found.model_dump(by_alias=True, mode="json", exclude_none=True) if found else {}

    def capabilities_extensions(self) -> dict[str, Any]:
        """What the server declares under `extensions`, else under `experimental` (2025-11-25 knows only that)."""
        found = self._live.session.server_capabilities if self._live and self._live.session else None
        if found is None:
            return {}
        return dict(found.extensions or found.experimental or {})

    def mask(self, text: str) -> str:
        """A text without the secrets that the session was started with."""
        return self._mask(text)

    def log(self, count: int = 20) -> tuple[str, ...]:
        """The last lines that a child wrote to standard error, masked."""
        return self._live.log.tail(count) if self._live else ()

    def describe(self) -> dict[str, Any]:
        """Target, transport, era, revision and server, for `-v` and JSON documents."""
        return {
            "target": self.target.describe(),
            "transport": self.transport,
            "era": self.era,
            "protocol": self.protocol,
            "server": self.server_info,
        }

    # Tools

    async def list_tools(
        self,
        *,
        refresh: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - a late page is a problem of the list, no error
    ) -> ToolList:
        """All tools of all pages; kept until the server says that they changed, or their lifetime is over (FR-24).

        A page that fails makes the list incomplete, and `problem` says why; such a list isn't kept. So do more than
        10,000 tools, more than 16 MiB of them, and pages without an end.

        Args:
            timeout: Seconds for all pages together; default: the session's for a call.

        Raises:
            Disconnected: The connection ended; nothing was changed by asking.
            TooLarge: A page was larger than a message may be.
        """
        async with self._listing:
            if self._tools is not None and self._tools.complete and not refresh and not self._outdated():
                return self._tools
            session, live = self._sendable()
            limit = self._call_timeout if timeout is None else timeout
            until = None if limit is None else asyncio.get_running_loop().time() + limit
            await self._watch_tools(live, session, until)
            # Before the first page: a notice that comes while the pages are read makes the list stale again.
            self._tools_stale = False
            listed, ttl_ms = await self._read_pages(live, session, until)
            self._tools = listed
            self._tool_names = frozenset(tool.name for tool in listed.tools)
            self._tools_until = time.monotonic() + ttl_ms / 1000 if ttl_ms else None
            return listed

    def _outdated(self) -> bool:
        return self._tools_stale or (self._tools_until is not None and time.monotonic() >= self._tools_until)

    async def _read_pages(self, live: Connection, session: ClientSession, until: float | None) -> tuple[ToolList, int]:
        from mcp import MCPError
        from mcp_types import PaginatedRequestParams
        from pydantic import ValidationError

        tools: dict[str, UpstreamTool] = {}
        unusable: dict[str, str] = {}
        cursor: str | None = None
        seen: set[str] = set()
        size = 0
        ttl_ms = 0
        problem: str | None = None
        for number in range(1, _PAGES + 1):
            with self._noting(live) as noted:
                dropped: set[str] = set()
                try:
                    params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
                    async with asyncio.timeout_at(until):
                        page = await session.list_tools(params=params)
                    raw = noted.captured[-1] if noted.captured else page.model_dump(by_alias=True, mode="json")
                    # The SDK leaves out what the revision forbids (an x-mcp-header that can't be sent).
                    dropped = {str(name) for name in _names(raw)} - {tool.name for tool in page.tools}
                except ValidationError as error:
                    if not noted.captured:
                        problem = f"page {number} of the tools isn't one: {live.mask.line(_first_line(error))}"
                        break
                    raw = noted.captured[-1]
                except (MCPError, TimeoutError) as error:
                    if isinstance(error, MCPError):
                        raise_if_gone(error, live, noted.exchange, "tools/list", read=True)
                        if error.code == _METHOD_NOT_FOUND and number == 1 and "tools" not in self.capabilities:
                            break  # it has none, and says so
                    words = live.mask.line(_first_line(error)) if isinstance(error, MCPError) else "no answer in time"
                    problem = f"page {number} of the tools failed: {words}"
                    break
            if not isinstance(raw.get("tools"), list):
                problem = f"page {number} of the tools holds no list of them"
                break
            found, bad = read_tools(raw, start=len(tools) + len(unusable))
            unusable.update(bad)
            unusable.update(dict.fromkeys(dropped, "its x-mcp-header is invalid"))
            for tool in found:
                if tool.name in dropped:
                    continue
                if tool.name in tools:
                    unusable[tool.name] = "is listed more than once, and only the first one is taken"
                    continue
                size += tool.size
                if len(tools) == TOOLS_LIMIT or size > LIST_LIMIT:
                    problem = f"the list of tools is over a limit: {TOOLS_LIMIT} tools, {LIST_LIMIT // 2**20} MiB"
                    break
                tools[tool.name] = tool
            if problem is not None:
                break
            ttl = raw.get("ttlMs")
            if isinstance(ttl, int) and ttl > 0:
                # Each page may be the one that expires first.
                ttl_ms = min(ttl_ms or ttl, ttl)
            following = raw.get("nextCursor")
            if not isinstance(following, str) or not following:
                break
            if following in seen:
                problem = f"page {number} of the tools names a page that was read already: the list has no end"
                break
            seen.add(following)
            cursor = following
        else:
            problem = f"the list of tools has more than {_PAGES} pages"
        return ToolList(tuple(tools.values()), problem is None, problem, unusable), ttl_ms

    async def _watch_tools(self, live: Connection, session: ClientSession, until: float | None) -> None:
        """In the new era notices come only to who listens; the first list is read with the ear already open."""
        capabilities = session.server_capabilities
        tools = capabilities.tools if capabilities else None
        if live.era != "modern" or self._watching is not None or tools is None or not tools.list_changed:
            return
        listening = asyncio.Event()
        self._watching = asyncio.create_task(self._watch(live, session, listening), name=f"hotplug listen {self.name}")
        with contextlib.suppress(TimeoutError):
            last = asyncio.get_running_loop().time() + _LISTEN_LIMIT
            async with asyncio.timeout_at(last if until is None else min(last, until)):
                await listening.wait()

    async def _watch(self, live: Connection, session: ClientSession, listening: asyncio.Event) -> None:
        from mcp.client.subscriptions import listen

        failures = 0
        while not live.lost:
            try:
                async with listen(session, tools_list_changed=True) as events:
                    # What changed while nobody listened is unknown.
                    self._tools_stale = self._tools_stale or listening.is_set()
                    listening.set()
                    failures = 0
                    async for _ in events:
                        self._tools_stale = True
            except Exception as error:  # whatever it was, it costs only the notices
                _logger.debug("listening to %s failed: %s", self.name, live.mask.line(str(error)))
                if not listening.is_set():
                    # It declared notices and refuses to send them: that is off, its tools are not (FR-27).
                    listening.set()
                    return
            self._tools_stale = True
            await asyncio.sleep(_RELISTEN[min(failures, len(_RELISTEN) - 1)])
            failures += 1

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, Exception):
            return
        method: str = message.method
        if method == "notifications/tools/list_changed":
            self._tools_stale = True
        if self._on_notification is not None:
            body: dict[str, Any] = message.model_dump(by_alias=True, mode="json", exclude_none=True)
            await self._on_notification(method, body.get("params", {}))

    # Calls

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the server is told of it too
        progress: Progress | None = None,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> RawResult:
        """Calls a tool once and gives the answer as it stood on the wire; an answered error is a result too.

        Where the tools were listed before, a tool that is no longer among them is refused here (FR-24). The output
        isn't checked against its schema, and no other request is made for that. Cancelling the task cancels the call.

        Args:
            meta: `_meta` of the request, any keys.
            timeout: Seconds; default: the session's.
            input_responses: With `request_state`, what an answer with `input_required` asked for.

        Raises:
            NotFound: The tool isn't in the server's list any more; nothing was sent.
            Disconnected: `details["state"]` is `not_sent`, or `unknown` where it may have been done.
            Timeout: It may have been done (`details["state"]` is `unknown`); the server was asked to stop.
            AuthError: The server refused the credential; the call wasn't done.
            RateLimited, Unavailable, TooLarge, Internal: HTTP said so; `details["status"]` is its status.
        """
        session, live = self._sendable()
        if self._tools is not None:
            if self._outdated():
                await self.list_tools()
                session, live = self._sendable()
            if self._tools.complete and tool not in self._tool_names:
                raise NotFound(f"{self.name} has no tool {tool!r} any more", hint="list its tools again")
        request, adapter = _call_request(tool, arguments, meta, input_responses, request_state)
        limit = self._call_timeout if timeout is None else timeout
        started = time.monotonic()
        with self._noting(live) as noted:
            try:
                raw = await session.send_request(request, adapter, limit, None, cast("Any", progress))
            except _mcp_error() as error:
                if error.code == _TIMEOUT_CODE and limit is not None and time.monotonic() - started >= limit * 0.99:
                    details = {"state": "unknown", "timeoutMs": round(limit * 1000)}
                    raise Timeout(f"{tool} gave no answer within {limit:g} s", details=details) from None
                raise_if_gone(error, live, noted.exchange, tool)
                return RawResult({}, RpcError(error.code, live.mask(error.message), error.data))
            except _validation_error() as error:
                if not noted.captured:
                    text = live.mask.line(_first_line(error))
                    details = {"state": "unknown", "problem": text}
                    raise Internal(f"the answer to {tool} is not a tool's result: {text}", details=details) from None
                # It was done and answered: an item of a kind that the SDK doesn't know is no reason to lose the rest.
                raw = noted.captured[-1]
        return RawResult(cast("dict[str, Any]", noted.captured[-1] if noted.captured else raw))

    def _sendable(self) -> tuple[ClientSession, Connection]:
        live = self._live
        if live is None or live.session is None or live.lost:
            raise Disconnected(
                f"{self.name} is not connected{self._ending(live)}",
                details={"state": "not_sent"},
                hint="reconnect() starts it again" if not self._closed else None,
            )
        return live.session, live

    @contextlib.contextmanager
    def _noting(self, live: Connection) -> Generator[_Noted]:
        """Notes the raw answers to what is sent in this block, and what HTTP says to it."""
        noted = _Noted()
        if live.transport == "memory":
            yield noted
            return
        from hotplug.connect.capture import CAPTURED

        captured = CAPTURED.set(noted.captured)
        try:
            if live.transport == "http":
                from hotplug.connect.http import EXCHANGE, Exchange

                noted.exchange = Exchange()
                token = EXCHANGE.set(noted.exchange)
                try:
                    yield noted
                finally:
                    EXCHANGE.reset(token)
            else:
                yield noted
        finally:
            CAPTURED.reset(captured)

    def _ending(self, live: Connection | None) -> str:
        if self._closed:
            return ": it was closed"
        if live is None:
            return ""
        return f": {live.ending()}"


class _Noted:
    """What came of the requests of one block: raw answers, and HTTP's."""

    __slots__ = ("captured", "exchange")

    def __init__(self) -> None:
        self.captured: list[dict[str, Any]] = []
        self.exchange: Exchange | None = None


def _call_request(
    tool: str,
    arguments: Mapping[str, Any] | None,
    meta: Mapping[str, Any] | None,
    input_responses: Mapping[str, Any] | None,
    request_state: str | None,
) -> tuple[Any, Any]:
    """The request, and an adapter that keeps its answer as it is: the SDK checks it by the revision's own schema."""
    from mcp_types import CallToolRequest, CallToolRequestParams

    params = CallToolRequestParams(
        name=tool,
        arguments=dict(arguments or {}),
        input_responses=cast("Any", input_responses),
        request_state=request_state,
        _meta=cast("Any", dict(meta)) if meta else None,
    )
    return CallToolRequest(params=params), _raw_adapter()


_adapter: TypeAdapter[dict[str, Any]] | None = None


def _raw_adapter() -> TypeAdapter[dict[str, Any]]:
    global _adapter
    if _adapter is None:
        from pydantic import TypeAdapter

        _adapter = TypeAdapter(dict[str, Any])
    return _adapter


def _mcp_error() -> type[MCPError]:
    from mcp import MCPError

    return MCPError


def _validation_error() -> type[Exception]:
    from pydantic import ValidationError

    return ValidationError


def _names(page: Mapping[str, Any]) -> list[Any]:
    return [tool.name for tool in read_tools(page)[0]]


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
