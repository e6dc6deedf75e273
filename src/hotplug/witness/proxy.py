"""A reverse proxy as a witness: every request passes through it on its way to the server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import anyio
import httpx2

from hotplug.connect.masking import mask_url
from hotplug.errors import ConfigError, ConnectError
from hotplug.evidence.channels import ChannelDescriptor
from hotplug.evidence.coverage import BlindSpot
from hotplug.evidence.vocabulary import CloseCondition, ProvenanceClass
from hotplug.profile.summaries import net_summary
from hotplug.witness.watching import CannotLook, Session, Watching, now, spot

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

__all__ = ["HttpProxy"]

_KEPT: Final = 50_000
_START_SECONDS: Final = 10.0
# Of one connection, not of the exchange (RFC 9110, section 7.6.1).
_HOP: Final = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)


@dataclass(slots=True)
class _Exchange:
    """A request on its way: `done` when an answer came, or none will."""

    number: int
    method: str
    path: str
    status: int | None = None
    done: bool = False
    broke_off: bool = False


class HttpProxy(Watching):
    """A proxy on loopback before a server; `POST /orders 201` for each request that got an answer.

    Use it as an async context manager, and let the client use `proxy.url` instead of the server's own address:

        async with HttpProxy("http://127.0.0.1:8000") as proxy:
            ...

    Its `net` is independent and of consequence grade: what went over the wire, and what came back. Requests and
    answers are streamed, not kept; the observation's value has method, path and status, no header and no body.
    `failed` stands for a request that got no answer. One that was under way at the opening isn't counted. Blind spots
    are requests that are still without an answer, and web sockets, which are not forwarded. What reaches the server
    by another way is not seen.

    Args:
        upstream: The server's address, `http://` or `https://`; a path in it is put before each request's.
        host: Where it listens.
        port: 0 for any free one.
        patience: Seconds that a close waits for answers that are still out; at most the window's budget.

    Raises:
        ConfigError: The address can't be used.
    """

    closes: CloseCondition = "ack"

    def __init__(
        self,
        upstream: str,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        patience: float = 2.0,
        name: str = "http-proxy",
        timeout: float = 10.0,
    ) -> None:
        parts = urlsplit(upstream)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ConfigError(
                "a proxy stands before an http:// or https:// address", hint="such as http://127.0.0.1:8000"
            )
        super().__init__(name, mask_url(upstream), timeout=timeout)
        self._upstream = httpx2.URL(upstream)
        self._prefix = self._upstream.raw_path.rstrip(b"/")
        self._host = host
        self._port = port
        self._patience = patience
        self._exchanges: list[_Exchange] = []
        self._counted = 0
        self._web_sockets = 0
        self._answered = asyncio.Event()
        self._http: httpx2.AsyncClient | None = None
        self._stop: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self.url = ""

    @property
    def describe(self) -> str:
        """How it looks, for a report."""
        return f"a proxy before {self.locator}"

    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """`net`, independent, consequence."""
        return (ChannelDescriptor(id="net", independence="independent", grade="consequence"),)

    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        """The proxy; requests and answers that it forwarded."""
        del channel
        return f"proxy before {self.locator}", "requests and answers that passed through it", "observed"

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            ConnectError: The port can't be had.
        """
        if self._task is not None:
            return self
        listener = socket.socket(socket.AF_INET6 if ":" in self._host else socket.AF_INET)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self._host, self._port))
        except OSError as error:
            listener.close()
            raise ConnectError(f"the proxy can't listen on {self._host}:{self._port}: {error.strerror}") from None
        port = listener.getsockname()[1]
        self.url = f"http://[{self._host}]:{port}" if ":" in self._host else f"http://{self._host}:{port}"
        self._stop, started = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._serve(listener, self._stop, started), name=f"hotplug {self.name}")
        with anyio.move_on_after(_START_SECONDS):
            await started.wait()
        if not started.is_set() or self._task.done():
            await self.aclose()
            raise ConnectError(f"the proxy before {self.locator} didn't start")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening, and let go of everything."""
        await self.aclose()

    async def aclose(self) -> None:
        """Stop listening, and let go of everything."""
        await super().aclose()
        task, self._task = self._task, None
        if task is not None and self._stop is not None:
            self._stop.set()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task}, timeout=_START_SECONDS)
                if not task.done():
                    task.cancel()
                    await asyncio.wait({task}, timeout=1)

    async def _serve(self, listener: socket.socket, stop: asyncio.Event, started: asyncio.Event) -> None:
        import uvicorn

        class Server(uvicorn.Server):
            @contextmanager
            def capture_signals(self) -> Generator[None]:
                yield  # signals are for the program that we are in

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                started.set()

        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        timeout = httpx2.Timeout(None, connect=self.timeout)
        config = uvicorn.Config(
            self._forward,
            log_config=None,
            lifespan="off",
            http="h11",
            ws="none",
            interface="asgi3",
            proxy_headers=False,
            access_log=False,
            timeout_graceful_shutdown=1,
            server_header=False,
            date_header=False,
        )
        server = Server(config)
        async with httpx2.AsyncClient(limits=limits, timeout=timeout, trust_env=False) as self._http:
            serving = asyncio.create_task(server.serve([listener]))
            try:
                stopping = asyncio.create_task(stop.wait())
                await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
                stopping.cancel()
            finally:
                server.should_exit = True
                await asyncio.wait({serving})
                listener.close()

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._http is None:
            return
        if any(name == b"upgrade" and value.lower() == b"websocket" for name, value in scope["headers"]):
            from starlette.responses import PlainTextResponse

            self._web_sockets += 1
            await PlainTextResponse("web sockets are not forwarded", status_code=501)(scope, receive, send)
            return
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        exchange = _Exchange(self._counted, scope["method"], raw_path.decode("latin-1"))
        self._counted += 1
        self._exchanges.append(exchange)
        del self._exchanges[:-_KEPT]
        try:
            await self._pass_on(exchange, scope, receive, send)
        finally:
            self._done(exchange)

    def _done(self, exchange: _Exchange) -> None:
        exchange.done = True
        self._answered.set()
        self._answered = asyncio.Event()

    async def _pass_on(self, exchange: _Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import ClientDisconnect, Request
        from starlette.responses import PlainTextResponse, StreamingResponse

        assert self._http is not None
        names = {name for name, _ in scope["headers"]}
        has_body = b"content-length" in names or b"transfer-encoding" in names
        target = self._prefix + (scope.get("raw_path") or b"/")
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        request = self._http.build_request(
            scope["method"],
            self._upstream.copy_with(raw_path=target, username=None, password=None),
            headers=[*self._theirs(_kept(scope["headers"], b"host", b"expect")), (b"host", self._upstream.netloc)],
            content=Request(scope, receive).stream() if has_body else None,
        )
        # Those of our client's own that the caller didn't send.
        for name in ("accept", "accept-encoding", "user-agent"):
            if name.encode() not in names:
                request.headers.pop(name, None)
        try:
            answer = await self._http.send(request, stream=True)
        except ClientDisconnect:
            return
        except httpx2.HTTPError:
            await PlainTextResponse("the server did not answer", status_code=502)(scope, receive, send)
            return
        exchange.status = answer.status_code
        self._done(exchange)
        async with _closing(answer):
            response = StreamingResponse(self._body(answer, exchange), status_code=answer.status_code)
            response.raw_headers = [
                (name.lower(), self._ours(value) if name.lower() == b"location" else value)
                for name, value in _kept(answer.headers.raw)
            ]
            await response(scope, receive, send)

    async def _body(self, answer: httpx2.Response, exchange: _Exchange) -> AsyncGenerator[bytes]:
        try:
            async for chunk in answer.aiter_raw():
                yield chunk
        except httpx2.HTTPError:
            exchange.broke_off = True
            raise

    def _theirs(self, headers: Sequence[tuple[bytes, bytes]]) -> Generator[tuple[bytes, bytes]]:
        """The headers as if the caller had used the server's own address."""
        proxy, own = self.url.encode(), f"{self._upstream.scheme}://{self._upstream.netloc.decode()}".encode()
        for name, value in headers:
            is_place = name.lower() in (b"origin", b"referer") and value.startswith(proxy)
            yield name, own + value.removeprefix(proxy) if is_place else value

    def _ours(self, location: bytes) -> bytes:
        """A redirect to the server itself leads to the proxy, so that the next request is seen too."""
        own = f"{self._upstream.scheme}://{self._upstream.netloc.decode()}".encode()
        rest = location.removeprefix(own)
        if rest != location and rest[:1] in (b"", b"/", b"?", b"#"):
            return self.url.encode() + rest.removeprefix(self._prefix)
        if location.startswith(b"/") and self._prefix:
            return location.removeprefix(self._prefix)
        return location

    async def _begin(self, session: Session) -> None:
        if self._task is None or self._task.done():
            raise CannotLook("the proxy is not running", remedy="enter it first: async with HttpProxy(…) as proxy")
        session.state = {"next": self._counted, "web_sockets": self._web_sockets, "told": set[int](), "lost": False}

    async def _look(self, session: Session) -> Sequence[BlindSpot]:
        state: dict[str, Any] | None = session.state
        if state is None:
            return ()
        if self._task is None or self._task.done():
            raise CannotLook("the proxy is not running any more")
        told: set[int] = state["told"]
        earliest = self._exchanges[0].number if self._exchanges else self._counted
        state["lost"] = state["lost"] or any(
            number not in told for number in range(state["next"], min(earliest, self._counted))
        )
        out: list[str] = []
        for one in self._exchanges[max(0, state["next"] - earliest) :]:
            if one.number in told:
                continue
            if not one.done:
                out.append(_shown(one).rpartition(" ")[0])
                continue
            told.add(one.number)
            summary = _shown(one)
            method, path, _ = summary.split(" ")
            value = {"method": method, "path": path, "status": one.status}
            session.seen.append(session.observation("net", summary, value))
        gaps: list[BlindSpot] = []
        if out:
            gaps.append(spot("still-in-flight", "net", f"no answer yet: {', '.join(out[:5])}"))
        if state["lost"]:
            gaps.append(
                spot("buffer-truncated", "net", f"more than {_KEPT} requests came, and only the last were kept")
            )
        if self._web_sockets > state["web_sockets"]:
            gaps.append(spot("boundary-uncrossable", "net", "web sockets were asked for, and are not forwarded"))
        return gaps

    async def _settle(self, session: Session) -> bool:
        """Wait for the answers that are still out."""
        state: dict[str, Any] | None = session.state
        if state is None:
            return True
        left = (session.window.opened_at + session.window.budget_ms - now()) / 1000
        with anyio.move_on_after(min(max(left, 0), self._patience)):
            while any(not one.done and one.number >= state["next"] for one in self._exchanges):
                await self._answered.wait()
        return True


def _shown(exchange: _Exchange) -> str:
    path = f"/.{exchange.path}" if exchange.path.startswith("//") else exchange.path
    try:
        return net_summary(exchange.method, path, exchange.status)
    except ValueError:
        return net_summary("GET" if not exchange.method.isascii() else exchange.method, "/", exchange.status)


def _kept(headers: Sequence[tuple[bytes, bytes]], *others: bytes) -> list[tuple[bytes, bytes]]:
    """The headers that go on: not those of the one connection, nor those that it names."""
    named = {
        part.strip().lower() for name, value in headers if name.lower() == b"connection" for part in value.split(b",")
    }
    dropped = _HOP | named | set(others)
    return [(name, value) for name, value in headers if name.lower() not in dropped]


@asynccontextmanager
async def _closing(answer: httpx2.Response) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await answer.aclose()
