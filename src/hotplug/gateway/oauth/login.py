"""Logging in at a remote server, with a person at a browser; and logging out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull
from pydantic import ValidationError

from hotplug.connect.launch import HttpLaunch, launch_of
from hotplug.connect.masking import mask_url, neutral
from hotplug.connect.secrets import Secrets
from hotplug.errors import AuthError, ConfigError, ConnectError, HotplugError, StoreError
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.oauth.address import remote_target
from hotplug.gateway.oauth.flow import (
    ByHand,
    Memory,
    Unanswered,
    Untrusted,
    configured_client,
    first_request,
    our_metadata,
    safe_address,
    table,
    token_method,
)
from hotplug.gateway.oauth.kept import Login, LoginKeeper, bound_to, keeper_of
from hotplug.gateway.oauth.loopback import Loopback, PortTaken, listening
from hotplug.gateway.oauth.renewing import provider_for

__all__ = ["LoggedOut", "log_in", "log_out"]

_LIMIT: Final = 300.0


async def log_in(
    config: ServerConfig,
    secrets: Secrets,
    *,
    show: Callable[[str], Awaitable[None]],
    scopes: tuple[str, ...] = (),
    limit: float = _LIMIT,
    folder: Path | None = None,
    clock: Callable[[], float] = time.time,
) -> tuple[Login, LoginKeeper]:
    """Log in at a server: metadata, registration, consent in a browser, tokens; what came of it is kept.

    Args:
        show: Opens the address where the person decides, or shows it.
        scopes: What to ask for, in place of what the entry or the server names.
        limit: Seconds that the person has.
        folder: Where logins are kept; default: `default_login_folder()`.
        clock: Seconds since 1970.

    Raises:
        ConfigError: It is no remote server, a port isn't free, or a secret has no value.
        AuthError: It was denied, took too long, or the server or its authorization server doesn't take part.
        ConnectError: One of them can't be reached, or its certificate isn't trusted.
        StoreError: The login can't be kept.
    """
    url, fixed = await _endpoint(config, secrets)
    keeper = keeper_of(config.name, url, config.oauth_settings.keep, folder)
    try:
        async with listening(config.oauth_settings.port) as loopback:
            trying = _Trying(config, url, fixed, secrets, loopback, show, scopes or config.oauth_settings.scopes, limit)
            login = await trying.login(clock)
    except PortTaken as error:
        raise ConfigError(
            f"{config.name}: the browser couldn't come back, its port is taken: {error}", hint="oauth.port names it"
        ) from None
    await asyncio.to_thread(_keep, keeper, login)
    return login, keeper


@dataclass(frozen=True)
class LoggedOut:
    """What became of a login.

    Args:
        was: Whether there was one.
        revoked: Whether the authorization server was told, and agreed.
        problem: Why not, where it could have been.
    """

    was: bool
    revoked: bool = False
    problem: str | None = None


async def log_out(config: ServerConfig, secrets: Secrets, *, folder: Path | None = None) -> LoggedOut:
    """Revoke a login where its authorization server can (RFC 7009), and forget it in any case.

    Raises:
        ConfigError: It is no remote server.
        StoreError: The login can't be removed.
    """
    url, _ = await _endpoint(config, None)
    keeper = keeper_of(config.name, url, config.oauth_settings.keep, folder)
    login, was = await asyncio.to_thread(_forget, keeper)
    if login is None:
        return LoggedOut(was)
    return await _revoked(config, url, secrets, login)


async def _endpoint(config: ServerConfig, secrets: Secrets | None) -> tuple[str, dict[str, str]]:
    """The server's address, and the headers of its entry where its secrets are given."""
    target = remote_target(config)
    if target is None:
        raise ConfigError(f"{config.name} has no URL: there is nothing to log in at")
    if secrets is None:
        return target.url, {}
    launch = await launch_of(config.target, secrets=secrets, name=config.name)
    assert isinstance(launch, HttpLaunch)
    headers = {name: value for name, value in launch.headers.items() if name.lower() != "authorization"}
    return target.url, headers


class _Trying:
    """One try to log in."""

    def __init__(
        self,
        config: ServerConfig,
        url: str,
        fixed: dict[str, str],
        secrets: Secrets,
        loopback: Loopback,
        show: Callable[[str], Awaitable[None]],
        scopes: tuple[str, ...],
        limit: float,
    ) -> None:
        self._config = config
        self._url = url
        self._fixed = fixed
        self._secrets = secrets
        self._loopback = loopback
        self._show = show
        self._scopes = scopes
        self._limit = limit
        self._hand: ByHand
        self._provider: OAuthClientProvider

    async def login(self, clock: Callable[[], float]) -> Login:
        """The whole way. A client is registered each time: one that was forgotten would end in the browser."""
        name = self._config.name
        client = await configured_client(self._config.oauth_settings, self._secrets, name, None)
        memory = Memory(client=client, registered=self._registered)
        self._provider = OAuthClientProvider(
            self._url, our_metadata(self._loopback.address), memory, self._ask, self._come_back
        )
        request = first_request(self._url)
        request.headers.update(self._fixed)
        async with ByHand(self._url, tuple(self._fixed.values())) as self._hand:
            try:
                async with self._hand.flow(self._provider, request) as flow:
                    await flow.until(request)
                    flow.answered(self._challenge(await self._hand.send(request)))
                    await flow.until(request)
            except Untrusted as error:
                raise ConnectError(f"{name}: {error}", transport="http", cause="tls", hint=_TLS) from None
            except Unanswered as error:
                raise ConnectError(f"{name}: {error}", transport="http", cause="unreachable") from None
            except OAuthRegistrationError:
                raise self._not_registered() from None
            except OAuthTokenError:
                said = self._hand.last_words()
                raise self._failed(f"its authorization server gives no token: {said}", "try again") from None
            except (OAuthFlowError, ValidationError, ValueError) as error:
                raise self._failed(self._flow_words(error), "its operator has to mend that") from None
        return self._got(memory, clock())

    def _challenge(self, response: httpx2.Response) -> httpx2.Response:
        """What the SDK goes on from: the refusal, asking for the scopes that were chosen."""
        if response.status_code == 404:
            raise ConnectError(
                f"{self._config.name}: HTTP 404", cause="wrong_url", hint="is the path right? it is often /mcp"
            )
        challenge = response.headers.get("www-authenticate", "") if response.status_code == 401 else ""
        if self._scopes:
            kept = _resource_metadata(challenge)
            challenge = "Bearer " + ", ".join([*kept, f'scope="{" ".join(self._scopes)}"'])
        headers = {"www-authenticate": challenge} if challenge else {}
        return httpx2.Response(401, headers=headers, request=response.request)

    def _registered(self, client: OAuthClientInformationFull) -> None:
        if client.client_secret is not None and client.token_endpoint_auth_method is None:
            client.token_endpoint_auth_method = token_method(client, self._provider.context.oauth_metadata)

    async def _ask(self, address: str) -> None:
        context = self._provider.context
        if self._config.oauth_settings.client_id is not None and context.client_info is not None:
            context.client_info.token_endpoint_auth_method = token_method(context.client_info, context.oauth_metadata)
        safe_address(httpx2.URL(address), httpx2.URL(self._url))
        self._loopback.expect(parse_qs(urlsplit(address).query)["state"][0])
        await self._show(address)

    async def _come_back(self) -> AuthorizationCodeResult:
        try:
            async with asyncio.timeout(self._limit):
                given = await self._loopback.answer()
        except TimeoutError:
            strays = self._loopback.strays
            also = f"; {strays} answer{'s' if strays > 1 else ''} came with a wrong state, and counted for nothing"
            raise self._failed(
                f"nobody logged in within {self._limit:g} s{also if strays else ''}", "try again; --timeout gives more"
            ) from None
        error = given.get("error")
        if error == "access_denied":
            raise self._failed("the login was denied", "it was refused in the browser: try again, and allow it")
        if error is not None:
            said = neutral(": ".join([error, *filter(None, [given.get("error_description")])]), limit=300)
            raise self._failed(f"its authorization server refuses the login: {said}", None)
        return AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))

    def _not_registered(self) -> AuthError:
        if self._provider.context.oauth_metadata is None:
            return self._failed(
                "it says nothing of how to log in (no OAuth metadata)",
                'is it a server that asks for OAuth? else headers = { Authorization = "Bearer secret:NAME" }',
            )
        return self._failed(
            f"its authorization server registers no client: {self._hand.last_words()}",
            'register one by hand with it, then oauth = { client_id = "…", client_secret = "secret:NAME", port = … } '
            f"with the address to come back to http://127.0.0.1:PORT{urlsplit(self._loopback.address).path}",
        )

    def _flow_words(self, error: Exception) -> str:
        """What is wrong with metadata or answers. The SDK's own words may hold what a server sent."""
        words = str(error)
        if isinstance(error, OAuthFlowError) and ("issuer mismatch" in words or "does not match expected" in words):
            return f"its metadata doesn't fit: {self._hand.masker.line(words)[:300]}"
        if isinstance(error, OAuthFlowError) and "iss" in words:
            return "the answer came from another authorization server than was asked"
        return f"its OAuth can't be used ({type(error).__name__}): the last answer was {self._hand.last_words()}"

    def _failed(self, message: str, hint: str | None) -> AuthError:
        return AuthError(f"{self._config.name}: {message}", transport="http", cause="auth", hint=hint)

    def _got(self, memory: Memory, now: float) -> Login:
        tokens, context = memory.tokens, self._provider.context
        assert tokens is not None
        client = context.client_info
        kept: dict[str, Any] | None = None
        if client is not None:
            # A configured secret stays where it is.
            kept = {"client_id": client.client_id} if self._config.oauth_settings.client_id else table(client)
        resource, authorization = context.protected_resource_metadata, context.oauth_metadata
        return Login(
            server=self._config.name,
            url=mask_url(self._url),
            bound=bound_to(self._url),
            tokens=table(tokens),
            obtained_at=now,
            expires_at=None if tokens.expires_in is None else now + tokens.expires_in,
            client=kept,
            resource=None if resource is None else table(resource),
            authorization=None if authorization is None else table(authorization),
        )


_TLS: Final = "where its issuer is a private one, SSL_CERT_FILE names the file with the issuer's certificate"


def _resource_metadata(challenge: str) -> list[str]:
    mark = 'resource_metadata="'
    _, found, rest = challenge.partition(mark)
    return [f"{mark}{rest.partition(chr(34))[0]}{chr(34)}"] if found else []


def _keep(keeper: LoginKeeper, login: Login) -> None:
    with keeper.alone():
        keeper.write(login)


def _forget(keeper: LoginKeeper) -> tuple[Login | None, bool]:
    """Alone, so that none is left that another process renews meanwhile."""
    with keeper.alone():
        try:
            login = keeper.read()
        except StoreError:
            # It can't be read, so it can't be revoked; it goes all the same.
            login = None
        return login, keeper.remove()


async def _revoked(config: ServerConfig, url: str, secrets: Secrets, login: Login) -> LoggedOut:
    endpoint = (login.authorization or {}).get("revocation_endpoint")
    if not isinstance(endpoint, str):
        return LoggedOut(True)
    try:
        provider = await provider_for(login, url, config.oauth_settings, secrets)
        async with ByHand(url, login.secret_values) as hand:
            for kind in ("refresh_token", "access_token"):
                token = login.tokens.get(kind)
                client = provider.context.client_info
                if not token or client is None:
                    continue
                form = {"token": str(token), "token_type_hint": kind, "client_id": client.client_id}
                form, headers = provider.context.prepare_token_auth(form, {})
                if client.client_secret is not None and "client_secret" not in form and not headers:
                    form["client_secret"] = client.client_secret
                response = await hand.send(httpx2.Request("POST", endpoint, data=form, headers=headers))
                if response.status_code != 200:
                    return LoggedOut(True, problem=f"its authorization server answers {hand.last_words()}")
    except (Unanswered, HotplugError) as error:
        return LoggedOut(True, problem=str(error))
    except (OAuthFlowError, ValueError) as error:
        # What was kept can't be used; its text may hold what stands there.
        return LoggedOut(True, problem=type(error).__name__)
    return LoggedOut(True, revoked=True)
