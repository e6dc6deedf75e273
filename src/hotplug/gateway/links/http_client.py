"""The one HTTP client of the gateway, and one server's end of it: its URL, its credentials, its failures in words."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import select
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from hotplug.connect.failures import refusal
from hotplug.connect.launch import HttpLaunch
from hotplug.connect.masking import mask_url
from hotplug.gateway.link import LinkLost

__all__ = ["Endpoint", "Headers", "HttpPool", "Refused", "read_whole"]

Headers: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]
"""The headers that authorize the next request; asked before each, so quick where nothing has to be renewed."""

Refused: TypeAlias = Callable[[int, str | None], Awaitable[bool]]
"""Told of a 401 or 403 with its `WWW-Authenticate`; True: the credential is renewed, try once more."""

_KEPT: Final = 4.0
"""Seconds that a connection is kept unused: servers close theirs after 5 (uvicorn, Node)."""
_BODY_LIMIT: Final = 64 * 1024 * 1024
_FINISHING: Final = 1.0
_ATTEMPTS: Final = 3
_REDIRECTS: Final = 3
_BUFFER: Final = 256 * 1024
_HEADER_LIMIT: Final = 64 * 1024


class HttpPool:
    """One client session, one TLS context, for all upstreams: `async with HttpPool() as pool`, or `pool.aclose()`.

    No cookies, no compression, no total timeout; connections are kept 4 s unused. It belongs to one event loop.

    Args:
        connect_timeout: Seconds for name, connection and TLS.
    """

    def __init__(self, *, connect_timeout: float = 10.0) -> None:
        self._connect_timeout = connect_timeout
        self._session: aiohttp.ClientSession | None = None
        self._finishing: dict[aiohttp.ClientResponse, asyncio.TimerHandle] = {}
        self._closed = False

    async def __aenter__(self) -> HttpPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes every connection. May be called twice."""
        self._closed = True
        for response, timer in self._finishing.items():
            timer.cancel()
            response.close()
        self._finishing.clear()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        """The client session, made when first used.

        Raises:
            LinkLost: The pool is closed.
        """
        if self._session is None:
            if self._closed:
                raise LinkLost("the gateway is stopping", sent=False)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT, ssl=_trust()),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers={"User-Agent": "hotplug", "Accept-Encoding": "identity"},
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=self._connect_timeout, sock_connect=self._connect_timeout, sock_read=None
                ),
                read_bufsize=_BUFFER,
                max_line_size=_HEADER_LIMIT,
                max_field_size=_HEADER_LIMIT,
            )
        return self._session

    def finish(self, response: aiohttp.ClientResponse) -> None:
        """Lets an answer end by itself, so that its connection can be used again; closes it after a second."""
        if response.closed or response.content.at_eof():
            response.release()
            return
        if self._closed:
            response.close()
            return
        timer = asyncio.get_running_loop().call_later(_FINISHING, self._give_up, response)
        self._finishing[response] = timer
        response.content.on_eof(lambda: self._finished(response))

    def _finished(self, response: aiohttp.ClientResponse) -> None:
        timer = self._finishing.pop(response, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self, response: aiohttp.ClientResponse) -> None:
        self._finishing.pop(response, None)
        response.close()


def _trust() -> ssl.SSLContext:
    """The machine's trust, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name now; aiohttp's own is from its import."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Body(aiohttp.Payload):
    """A request's bytes; knows whether any of them may have been read."""

    _autoclose = True

    def __init__(self, data: bytes) -> None:
        super().__init__(data, content_type="application/json")
        self._size = len(data)
        self.sent = False

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The bytes as text."""
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Writes all of it."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Writes it, unless the connection has been closed by the server already."""
        transport = writer.transport
        if transport is None or transport.is_closing() or _closed_by_peer(transport):
            raise aiohttp.ClientConnectionResetError("closed before anything was sent")
        self.sent = True
        await writer.write(self._value)


def _closed_by_peer(transport: asyncio.WriteTransport) -> bool:
    """Whether a connection that nothing was asked on has something to read: its end."""
    sock: Any = transport.get_extra_info("socket")
    # A TLS server may send session tickets unasked.
    if sock is None or transport.get_extra_info("ssl_object") is not None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    try:
        poll.register(sock.fileno(), select.POLLIN)
        return bool(poll.poll(0))
    except (OSError, ValueError):
        return True


class Endpoint:
    """One server's URL, with what authorizes us there.

    Args:
        headers: Headers of each request, over those of `launch`.
        refused: Asked when the credential is refused.
    """

    def __init__(
        self, pool: HttpPool, launch: HttpLaunch, headers: Headers | None = None, refused: Refused | None = None
    ) -> None:
        self.pool = pool
        self.masker = launch.masker()
        self._url = URL(launch.url)
        self._fixed = {name.lower(): value for name, value in launch.headers.items()}
        if self._url.user is not None and "authorization" in self._fixed:
            self._url = self._url.with_user(None)
        self._headers = headers
        self._refused = refused
        self._proxy = _proxy_for(self._url)

    async def request(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> aiohttp.ClientResponse:
        """Sends a request and gives its answer as soon as its headers are there; whoever asks closes it.

        A refused credential is renewed once. A connection that was closed before anything was sent is replaced; what
        may have been read is never sent again.

        Raises:
            LinkLost: No answer came, or it refuses the credential (401), or it points to another origin.
        """
        response = await self._authorized(method, headers, body)
        if response.status not in (401, 403):
            return response
        status, challenge = response.status, response.headers.get("www-authenticate")
        if self._refused is not None and await self._renewed(response, status, challenge):
            response = await self._authorized(method, headers, body)
            if response.status not in (401, 403):
                return response
            status, challenge = response.status, response.headers.get("www-authenticate")
        if status == 403 and _content_type(response) == "application/json":
            # It may be a message for the caller.
            return response
        response.close()
        raise LinkLost(self.masker.line(refusal(status, challenge)), sent=False)

    async def _renewed(self, response: aiohttp.ClientResponse, status: int, challenge: str | None) -> bool:
        assert self._refused is not None
        if status == 403 and (challenge is None or "insufficient_scope" not in challenge):
            return False
        try:
            renewed = await self._refused(status, challenge)
        except BaseException:
            response.close()
            raise
        if renewed:
            self.pool.finish(response)
        return renewed

    async def _authorized(self, method: str, headers: Mapping[str, str], body: bytes | None) -> aiohttp.ClientResponse:
        all_headers = {**headers, **self._fixed}
        if self._headers is not None:
            for name, value in (await self._headers()).items():
                all_headers[name.lower()] = value
                if name.lower() == "authorization":
                    self.masker.learn(value.partition(" ")[2] or value)
        url = self._url
        for _ in range(_REDIRECTS + 1):
            response = await self._send(method, url, all_headers, body)
            if response.status not in (301, 302, 303, 307, 308):
                return response
            location = response.headers.get("location", "")
            status = response.status
            self.pool.finish(response)
            try:
                target = url.join(URL(location))
            except ValueError:
                target = url
            if status in (307, 308) and target.origin() == url.origin() and target != url:
                url = target
                continue
            where = self.masker.line(mask_url(str(target))[:200])
            raise LinkLost(f"HTTP {status}, it points to {where}: set that address, if it is the right one", sent=False)
        raise LinkLost("it redirects in a circle", sent=False)

    async def _send(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        session = self.pool.session
        for attempt in range(_ATTEMPTS):
            payload = _Body(body) if body is not None else None
            try:
                return await session.request(
                    method, url, headers=headers, data=payload, allow_redirects=False, proxy=self._proxy
                )
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
                raise self.lost(error, sent=False) from None
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                sent = payload.sent if payload is not None else True
                if not sent and isinstance(error, aiohttp.ClientConnectionError) and attempt < _ATTEMPTS - 1:
                    continue
                raise self.lost(error, sent=sent) from None
        raise AssertionError("unreachable")

    def lost(self, error: BaseException, *, sent: bool) -> LinkLost:
        """A failure of HTTP in words."""
        return LinkLost(self.masker.line(_words(error)), sent=sent)


def _proxy_for(url: URL) -> str | None:
    """The proxy that the environment names for this address (`HTTPS_PROXY`, `NO_PROXY`); never one for loopback."""
    host = url.host or ""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return None
    proxies = getproxies_environment()
    if host == "localhost" or proxy_bypass(host):
        return None
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return proxy if proxy and proxy.startswith(("http://", "https://")) else None


def _words(error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate isn't trusted: {_reason(error.certificate_error)}"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy refuses to reach it: HTTP {error.status}"
        case aiohttp.ClientProxyConnectionError():
            return f"no connection to the proxy: {_reason(error)}"
        case aiohttp.ClientConnectorDNSError():
            return f"its name can't be resolved: {_reason(error)}"
        case aiohttp.ClientConnectorSSLError():
            return f"TLS failed: {_reason(error)}"
        case aiohttp.ClientConnectorError():
            return f"no connection: {_reason(error)}"
        case aiohttp.ConnectionTimeoutError():
            return "no connection in time"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return "the connection broke within an answer"
        case aiohttp.ClientResponseError():
            return f"its answer is no HTTP: {error.message}"
        case aiohttp.InvalidURL():
            return "its address is no URL"
        case aiohttp.ClientOSError():
            return f"the connection broke: {_reason(error)}"
        case _:
            return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _content_type(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_whole(endpoint: Endpoint, response: aiohttp.ClientResponse, *, limit: int = _BODY_LIMIT) -> bytes:
    """An answer's whole body.

    Raises:
        LinkLost: It broke off, or is larger than allowed.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := await response.content.readany():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise LinkLost(f"its answer has more than {limit // 1024 // 1024} MiB", sent=True)
    except (aiohttp.ClientError, OSError) as error:
        raise endpoint.lost(error, sent=True) from None
    finally:
        with contextlib.suppress(RuntimeError):
            response.release() if response.content.at_eof() else response.close()
    return b"".join(pieces)
