"""The SDK's OAuth client driven by hand: it says which request comes next, and it is sent here.

So its metadata, registration and token requests go out without the request to the server that they are for, within
our limits, and every answer is seen before the SDK turns it into an exception.
"""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Final, Self

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel

from hotplug.connect.masking import Masker, mask_url
from hotplug.connect.secrets import Destination, Secrets, resolve
from hotplug.connect.version import own_version
from hotplug.errors import ConfigError
from hotplug.gateway.config import OAuthSettings
from hotplug.gateway.oauth.kept import Login

__all__ = [
    "ByHand",
    "Flow",
    "Memory",
    "Unanswered",
    "Untrusted",
    "client_of",
    "configured_client",
    "first_request",
    "our_metadata",
    "safe_address",
    "table",
    "token_method",
]

_ANSWER_LIMIT: Final = 1024 * 1024
_PROTOCOL: Final = "2025-11-25"
_LOOPBACK: Final = {f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")}
"""No proxy leads there."""
_driven: ContextVar[bool] = ContextVar("hotplug_oauth_driven", default=False)


class _Quiet(logging.Filter):
    """The SDK logs exceptions that hold whole answers of token endpoints: what we drive is told by us, without them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets through what isn't ours."""
        return not _driven.get()


for _name in ("mcp.client.auth.oauth2", "mcp.client.auth.utils"):
    logging.getLogger(_name).addFilter(_Quiet())


class Unanswered(Exception):
    """A request of a flow got no usable answer; says where it went and why."""


class Untrusted(Unanswered):
    """TLS: the certificate isn't trusted."""


class Memory:
    """The SDK's `TokenStorage` for one flow.

    Args:
        save: Called with tokens when they are got.
        registered: Called with the client when it is registered.
    """

    def __init__(
        self,
        tokens: OAuthToken | None = None,
        client: OAuthClientInformationFull | None = None,
        *,
        save: Callable[[OAuthToken], Awaitable[None]] | None = None,
        registered: Callable[[OAuthClientInformationFull], None] | None = None,
    ) -> None:
        self.tokens = tokens
        self.client = client
        self._save = save
        self._registered = registered

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keeps the tokens."""
        self.tokens = tokens
        if self._save is not None:
            await self._save(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keeps the client."""
        self.client = client_info
        if self._registered is not None:
            self._registered(client_info)


class ByHand:
    """Sends what flows ask for: `async with`.

    No cookies, no redirects but those that the SDK follows, TLS by the machine's trust as links have it, answers of at
    most 1 MiB. What isn't encrypted goes nowhere but to where the server itself is reached so: `safe_address`.

    Args:
        url: The server's own address.
        secrets: What must stand in no text.
    """

    def __init__(self, url: str, secrets: tuple[str, ...] = (), *, timeout: float = 20.0) -> None:
        self._url = httpx2.URL(url)
        self.masker = Masker(secrets)
        self.last: httpx2.Response | None = None
        """The last answer."""
        self._client = httpx2.AsyncClient(
            verify=ssl.create_default_context(),
            timeout=httpx2.Timeout(timeout),
            follow_redirects=False,
            mounts=dict(_LOOPBACK),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    @property
    def last_status(self) -> int | None:
        """The status of the last answer."""
        return None if self.last is None else self.last.status_code

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request.

        Raises:
            Unanswered: No connection, no answer, one that is too large, or an address that isn't encrypted.
        """
        where = self.masker.line(mask_url(str(request.url.copy_with(query=None))))[:200]
        safe_address(request.url, self._url)
        request.headers.setdefault("User-Agent", "hotplug")
        try:
            got = await self._client.send(request, stream=True)
            try:
                body = bytearray()
                async for piece in got.aiter_raw():
                    body += piece
                    if len(body) > _ANSWER_LIMIT:
                        raise Unanswered(f"{where}: its answer has more than {_ANSWER_LIMIT // 1024} KiB")
            finally:
                await got.aclose()
        except httpx2.TimeoutException:
            raise Unanswered(f"{where}: no answer in time") from None
        except httpx2.HTTPError as error:
            certificate = _certificate(error)
            if certificate is not None:
                raise Untrusted(f"{where}: its certificate isn't trusted: {self.masker.line(certificate)}") from None
            raise Unanswered(f"{where}: {self.masker.line(str(error) or type(error).__name__)[:300]}") from None
        headers = [(name, value) for name, value in got.headers.multi_items() if name.lower() not in _FRAMING]
        response = httpx2.Response(got.status_code, headers=headers, content=bytes(body), request=request)
        response.next_request = got.next_request
        self.last = response
        return response

    def last_words(self) -> str:
        """The last answer in words: its status, and the error that it names (RFC 6749, 5.2)."""
        if self.last is None:
            return "nothing"
        words = f"HTTP {self.last.status_code}"
        try:
            said: Any = json.loads(self.last.content)
            named = [str(said[key]) for key in ("error", "error_description") if isinstance(said.get(key), str)]
        except (ValueError, AttributeError, TypeError):
            named = []
        return words + (f" ({self.masker.line(': '.join(named))[:300]})" if named else "")

    @asynccontextmanager
    async def flow(self, provider: OAuthClientProvider, request: httpx2.Request) -> AsyncGenerator[Flow]:
        """A flow of the SDK's for a request."""
        mark = _driven.set(True)
        steps = provider.async_auth_flow(request)
        try:
            yield Flow(self, steps)
        finally:
            await steps.aclose()
            _driven.reset(mark)


class Flow:
    """One flow, under way."""

    def __init__(self, hand: ByHand, steps: AsyncGenerator[httpx2.Request, httpx2.Response]) -> None:
        self._hand = hand
        self._steps = steps
        self._answer: httpx2.Response | None = None

    async def until(self, request: httpx2.Request) -> None:
        """Send what it asks for, until it comes to the request that all is for; that isn't sent.

        Raises:
            Unanswered: A request got no usable answer.
        """
        while True:
            if self._answer is None:
                wanted = await anext(self._steps)
            else:
                wanted = await self._steps.asend(self._answer)
            if wanted is request:
                return
            self._answer = await self._hand.send(wanted)

    def answered(self, response: httpx2.Response) -> None:
        """What the request got that all is for: the flow goes on with it."""
        self._answer = response


_FRAMING: Final = frozenset({"content-length", "content-encoding", "transfer-encoding"})


def safe_address(url: httpx2.URL, server: httpx2.URL) -> None:
    """Whether requests may go there: encrypted; or to the server's own host, or on loopback, where the server's aren't.

    Raises:
        Unanswered: They may not.
    """
    if url.scheme == "https":
        return
    # A server elsewhere could else have requests sent to what listens on this machine.
    near = url.host == server.host or (_is_loopback(url.host) and _is_loopback(server.host))
    if url.scheme == server.scheme == "http" and near:
        return
    shown = mask_url(str(url.copy_with(query=None)))[:200]
    raise Unanswered(f"{shown} isn't encrypted: no credential goes there")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _certificate(error: BaseException) -> str | None:
    """What is wrong with a certificate, where that is why."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        cause = cause.__cause__ or cause.__context__
    return "certificate verify failed" if "CERTIFICATE_VERIFY_FAILED" in str(error) else None


def first_request(url: str) -> httpx2.Request:
    """A request that any server of either era answers without doing anything; 401 where it wants a credential."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "hotplug", "version": own_version()},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": _PROTOCOL}
    return httpx2.Request("POST", url, json=body, headers=headers)


def our_metadata(redirect: str = "http://127.0.0.1/callback") -> OAuthClientMetadata:
    """How we register: a program on its user's machine (RFC 8252)."""
    return OAuthClientMetadata(
        client_name="Hotplug",
        redirect_uris=[AnyUrl(redirect)],
        software_id="hotplug",
        software_version=own_version(),
    )


def client_of(login: Login) -> OAuthClientInformationFull | None:
    """The client that a login was got with."""
    return OAuthClientInformationFull.model_validate(login.client) if login.client is not None else None


async def configured_client(
    settings: OAuthSettings, secrets: Secrets, server: str, authorization: OAuthMetadata | None
) -> OAuthClientInformationFull | None:
    """The client that the entry names, with its secret; None where it names none.

    Raises:
        PermissionDenied: The secret may not go to this server.
        ConfigError: It has no value.
    """
    if settings.client_id is None:
        if settings.client_secret is not None:
            raise ConfigError(f"{server}: oauth has a client_secret and no client_id", hint="name both, or neither")
        return None
    secret: str | None = None
    if settings.client_secret is not None:
        plain, _ = await resolve({"secret": settings.client_secret}, secrets, Destination(server=server))
        secret = plain["secret"]
    client = OAuthClientInformationFull(client_id=settings.client_id, client_secret=secret)
    client.token_endpoint_auth_method = token_method(client, authorization)
    return client


def token_method(client: OAuthClientInformationFull, authorization: OAuthMetadata | None) -> str:
    """How a client shows itself at the token endpoint, where nobody said (RFC 7591, 2; RFC 8414, 2)."""
    if client.client_secret is None:
        return "none"
    known = (authorization.token_endpoint_auth_methods_supported if authorization is not None else None) or []
    return "client_secret_post" if "client_secret_post" in known else "client_secret_basic"


def table(model: BaseModel) -> dict[str, Any]:
    """A model as it is kept."""
    return model.model_dump(mode="json", exclude_none=True)
