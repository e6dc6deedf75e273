"""A protected server and its authorization server, each on an origin of its own, made of the SDK's own parts."""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import build_resource_metadata_url, create_auth_routes, create_protected_resource_routes
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from hotplug.connect.target import HttpTarget
from hotplug.gateway.config import OAuthSettings, ServerConfig
from hotplug.testing.odd import odd_app


class Accounts(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Who may do what, in memory."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refreshers: dict[str, RefreshToken] = {}
        self.renewals = 0
        self.revoked: list[str] = []
        self.lifetime: int | None = 3600
        self.deny = False
        self.refuse_clients = False
        self.refuse_renewals = False
        self.rotates = True
        self.gate: asyncio.Event | None = None
        self.asked: list[AuthorizationParams] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        if self.refuse_clients:
            raise RegistrationError("invalid_client_metadata", "only known clients")
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.asked.append(params)
        back = str(params.redirect_uri)
        if self.deny:
            return construct_redirect_uri(back, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issued(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refreshers.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.renewals += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.refuse_renewals:
            raise TokenError("invalid_grant", "it was taken back")
        if self.rotates:
            del self.refreshers[refresh_token.token]
        issued = self._issued(client, refresh_token.scopes, refresh_token.resource)
        if not self.rotates:
            issued.refresh_token = None
        return issued

    def _issued(self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None) -> OAuthToken:
        token, refresher = f"at-{secrets.token_urlsafe(24)}", f"rt-{secrets.token_urlsafe(24)}"
        self.tokens[token] = AccessToken(token=token, client_id=client.client_id, scopes=scopes, resource=resource)
        self.refreshers[refresher] = RefreshToken(
            token=refresher, client_id=client.client_id, scopes=scopes, resource=resource
        )
        return OAuthToken(
            access_token=token, refresh_token=refresher, expires_in=self.lifetime, scope=" ".join(scopes) or None
        )

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked.append(token.token)
        self.tokens.pop(token.token, None)
        self.refreshers.pop(token.token, None)

    def take_back(self) -> None:
        """No token that was issued counts any more; what renews them does."""
        self.tokens.clear()


@dataclass
class Seen:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Recorder:
    """Writes down what an app is asked."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.requests: list[Seen] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        seen = Seen(scope["method"], scope["path"], headers, b"")
        self.requests.append(seen)

        async def received() -> Any:
            message = await receive()
            seen.body += message.get("body", b"")
            return message

        await self.app(scope, received, send)


@dataclass
class Guarded:
    """Both servers, running."""

    accounts: Accounts
    url: str
    issuer: str
    resource: Recorder
    authorization: Recorder
    required: list[str] = field(default_factory=list[str])
    folder: Path = Path()

    def config(self, name: str = "remote", **settings: Any) -> ServerConfig:
        return ServerConfig(name, HttpTarget(self.url), oauth=True, oauth_settings=OAuthSettings(**settings))

    def paths(self) -> list[str]:
        return [one.path for one in self.authorization.requests]


@asynccontextmanager
async def serving(app: Any, sock: socket.socket, tls: Any = None) -> AsyncGenerator[None]:
    config = uvicorn.Config(app, log_level="critical", lifespan="auto", http="h11", ws="none")
    config.load()
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.configure_cert(context)
        config.ssl = context
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
        yield
    finally:
        server.force_exit = True
        server.should_exit = True
        await task


@asynccontextmanager
async def guarded(
    *,
    app: Any = None,
    scopes: list[str] | None = None,
    required: list[str] | None = None,
    registration: bool = True,
    metadata: bool = True,
    tls: Any = None,
    issuer: str | None = None,
) -> AsyncGenerator[Guarded]:
    """A server that wants a token, and who gives it.

    Args:
        app: What is protected; default: the odd server.
        scopes: That clients may ask for.
        required: That every request needs.
        registration: Whether clients may register themselves.
        metadata: Whether the protected server says who gives tokens.
        tls: A `trustme` certificate for both.
        issuer: What the protected server names, in place of the right one.
    """
    scheme = "https" if tls is not None else "http"
    first, second = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    theirs = f"{scheme}://127.0.0.1:{first.getsockname()[1]}"
    url = f"{scheme}://127.0.0.1:{second.getsockname()[1]}/mcp"
    accounts = Accounts()
    authorization = Recorder(
        Starlette(
            routes=create_auth_routes(
                accounts,
                AnyHttpUrl(theirs),
                client_registration_options=ClientRegistrationOptions(enabled=registration, valid_scopes=scopes),
                revocation_options=RevocationOptions(enabled=True),
            )
        )
    )
    where = AnyHttpUrl(url)
    needs = required or []
    odd = app or odd_app()
    named = build_resource_metadata_url(where) if metadata else None
    for route in odd.routes:
        route.app = RequireAuthMiddleware(route.app, needs, named)
    odd.user_middleware.append(Middleware(AuthenticationMiddleware, backend=_backend(accounts, where)))
    if metadata:
        odd.router.routes += create_protected_resource_routes(where, [AnyHttpUrl(issuer or theirs)], scopes)
    resource = Recorder(odd)
    async with serving(authorization, first, tls), serving(resource, second, tls):
        yield Guarded(accounts, url, theirs, resource, authorization, needs)


def _backend(accounts: Accounts, where: AnyHttpUrl) -> BearerAuthBackend:
    return BearerAuthBackend(ProviderTokenVerifier(accounts), resource_server_url=where)


async def browser(address: str) -> None:
    """A person who allows everything: follows redirects to the end."""
    async with httpx2.AsyncClient(verify=ssl.create_default_context(), trust_env=False) as client:
        response = await client.get(address, follow_redirects=True)
        await response.aread()


class Hour:
    """Seconds since 1970, as a test says."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now
