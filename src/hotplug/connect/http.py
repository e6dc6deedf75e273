"""The HTTP side of a session: one pool for all, and what each request's answer was on the level of HTTP.

The SDK's transport folds HTTP failures into a few JSON-RPC codes and lets a broken connection end the whole session.
The client here notes status and headers per request, and turns a broken connection into the failure of that request
alone.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import ssl
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final
from weakref import WeakKeyDictionary

import httpx2
from mcp_types import CONNECTION_CLOSED

from hotplug.connect.masking import mask_url

__all__ = ["EXCHANGE", "Exchange", "target_client"]

_CONNECT_TIMEOUT: Final = 10.0
_DELETE_TIMEOUT: Final = 2.0
_VERIFICATION: Final = {
    10: "expired",
    18: "unknown_issuer",
    19: "unknown_issuer",
    20: "unknown_issuer",
    21: "unknown_issuer",
    62: "wrong_host",
    64: "wrong_host",
}
"""OpenSSL's codes of what a certificate lacks (x509_vfy.h)."""


class _MaskUrls(logging.Filter):
    """The client logs each request's URL, and some servers take their key in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Masks the URLs among the arguments; lets every record through."""
        if isinstance(record.args, tuple):
            record.args = tuple(mask_url(str(each)) if isinstance(each, httpx2.URL) else each for each in record.args)
        return True


logging.getLogger("httpx2").addFilter(_MaskUrls())


@dataclass(slots=True)
class Exchange:
    """What HTTP said to the requests of one call (or of the handshake).

    Args:
        status: The last answer's status.
        challenge: Its `WWW-Authenticate`.
        retry_after_ms: Its `Retry-After`, in milliseconds.
        failure: Why no complete answer came.
        unsent: The request surely didn't reach the server: no connection was made.
        certificate: What is wrong with TLS, if that is why: `unknown_issuer`, `wrong_host`, `expired`, `other`.
    """

    status: int | None = None
    challenge: str | None = None
    retry_after_ms: int | None = None
    content_type: str = ""
    failure: str | None = None
    unsent: bool = False
    certificate: str | None = None


EXCHANGE: Final[ContextVar[Exchange | None]] = ContextVar("hotplug_exchange", default=None)
"""The exchange that requests of the current context are noted in; the SDK's transport carries the context along."""

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()


class _Pool:
    """The connections of one event loop, kept while any session uses them."""

    def __init__(self) -> None:
        # No cookie is ever kept: two accounts on one host must not meet in a shared jar.
        jar = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
        self.client = httpx2.AsyncClient(
            cookies=jar,
            timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=30),
        )
        self.users = 0


class _NoTransport(httpx2.AsyncBaseTransport):
    """Stands where a client wants a transport, since the pool's is used."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise httpx2.UnsupportedProtocol("requests go through the pool", request=request)


class _TargetClient(httpx2.AsyncClient):
    """One target's headers over the shared pool; notes each exchange."""

    def __init__(self, pool: httpx2.AsyncClient, headers: Mapping[str, str]) -> None:
        super().__init__(transport=_NoTransport(), headers=dict(headers), timeout=pool.timeout)
        self._pool = pool

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Sends through the pool; a POST whose connection breaks gets an answer that says so."""
        if request.method == "DELETE":
            async with asyncio.timeout(_DELETE_TIMEOUT):
                return await self._pool.send(request, **options)
        if request.method != "POST":
            return await self._pool.send(request, **options)
        exchange = EXCHANGE.get() or Exchange()
        try:
            response = await self._pool.send(request, **options)
            _note(exchange, response)
            if not exchange.content_type.startswith("text/event-stream"):
                # Read here, where a break is this request's; the SDK would let it end the session.
                await response.aread()
        except httpx2.TransportError as error:
            exchange.failure = _explain(error)
            exchange.certificate = _certificate(error)
            exchange.unsent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
            body = {
                "jsonrpc": "2.0",
                "id": None,
                "error": {"code": CONNECTION_CLOSED, "message": f"Connection closed: {exchange.failure}"},
            }
            return httpx2.Response(502, json=body, request=request)
        return response


@asynccontextmanager
async def target_client(headers: Mapping[str, str]) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client with a target's headers over the event loop's pool of connections."""
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is None:
        pool = _pools[loop] = _Pool()
    pool.users += 1
    try:
        async with _TargetClient(pool.client, headers) as client:
            yield client
    finally:
        pool.users -= 1
        if pool.users == 0:
            _pools.pop(loop, None)
            await pool.client.aclose()


def _note(exchange: Exchange, response: httpx2.Response) -> None:
    exchange.status = response.status_code
    exchange.content_type = response.headers.get("content-type", "").lower()
    exchange.challenge = response.headers.get("www-authenticate")
    exchange.retry_after_ms = _milliseconds(response.headers.get("retry-after"))


def _milliseconds(retry_after: str | None) -> int | None:
    """`Retry-After` in milliseconds: seconds or a date (RFC 9110, 10.2.3)."""
    if not retry_after:
        return None
    if retry_after.strip().isdigit():
        return int(retry_after) * 1000
    try:
        then = email.utils.parsedate_to_datetime(retry_after).timestamp()
    except (TypeError, ValueError):
        return None
    return max(0, int((then - time.time()) * 1000))


def _certificate(error: BaseException) -> str | None:
    """Which kind of fault of TLS an error comes from; none where it is another."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    for each in chain:
        if isinstance(each, ssl.SSLCertVerificationError):
            return _VERIFICATION.get(each.verify_code, "other")
    return "other" if any(isinstance(each, ssl.SSLError) for each in chain) else None


def _explain(error: httpx2.TransportError) -> str:
    """The cause in words; the innermost one has the reason (refused, DNS, certificate)."""
    cause: BaseException = error
    while cause.__cause__ is not None or cause.__context__ is not None:
        cause = cause.__cause__ or cause.__context__ or cause
    words = str(error) or str(cause) or type(error).__name__
    reason = str(cause)
    return words if not reason or reason in words else f"{words} ({reason})"
