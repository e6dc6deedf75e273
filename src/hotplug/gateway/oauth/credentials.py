"""What authorizes the gateway at remote servers: the token of a login, renewed before it ends or when it is refused."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hotplug.connect.failures import refusal
from hotplug.connect.masking import Masker, neutral
from hotplug.connect.secrets import NoSecrets, Secrets
from hotplug.errors import HotplugError
from hotplug.gateway.config import OAuthSettings, ServerConfig
from hotplug.gateway.link import LinkLost
from hotplug.gateway.links.refusal import LoginNeeded
from hotplug.gateway.oauth.address import address_of, authorization_in
from hotplug.gateway.oauth.kept import Login, LoginKeeper, keeper_of
from hotplug.gateway.oauth.outcome import RenewalFailed, RenewalRefused

if TYPE_CHECKING:
    from hotplug.gateway.links.http_client import Headers, Refused

__all__ = ["Bearer", "OAuthCredentials", "login_command"]

_logger = logging.getLogger("hotplug.gateway")

_LOOK: Final = 1.0
"""Seconds after which it is seen that another process logged in, renewed or logged out."""
_EARLY: Final = 60.0
"""Seconds before its end that a token is renewed, beside the calls; a tenth of its life, if that is less."""
_PAUSE: Final = 5.0
"""Seconds until a renewal that failed is tried again."""
_ONCE: Final = 10.0
"""Seconds in which a token isn't renewed for a second refusal: a server that refuses every token would never end."""
_LIMIT: Final = 30.0
_SCOPE: Final = re.compile(r'scope="([^"]*)"')

_USED: Final[ContextVar[tuple[object, str] | None]] = ContextVar("hotplug_bearer_used", default=None)
"""Which token of which server the request of the current task carries: the one that a refusal is about."""


def login_command(server: str) -> str:
    """What a person types to log in."""
    return f"hotplug server login {server}"


class OAuthCredentials:
    """`opening.Credentials` over the logins that are kept; one renewal at a time for each server.

    Args:
        secrets: Where the secrets of configured clients come from.
        folder: Where logins are kept; default: `default_login_folder()`.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        secrets: Secrets | None = None,
        *,
        folder: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._secrets = secrets or NoSecrets()
        self._folder = folder
        self._clock = clock
        self._bearers: dict[tuple[str, str, OAuthSettings], Bearer] = {}

    def of(self, config: ServerConfig) -> tuple[Headers | None, Refused | None]:
        """See `opening.Credentials`.

        Raises:
            ConfigError: The keyring is asked for, and its package isn't installed.
        """
        url = address_of(config)
        if url is None:
            return None, None
        if not config.oauth:
            return None, _without_login(config)
        bearer = self.bearer(config, url)
        return bearer.headers, bearer.refused

    def bearer(self, config: ServerConfig, url: str) -> Bearer:
        """The one that authorizes at a server; the same for every link."""
        key = (config.name, url, config.oauth_settings)
        found = self._bearers.get(key)
        if found is None:
            keeper = keeper_of(config.name, url, config.oauth_settings.keep, self._folder)
            found = Bearer(config.name, url, config.oauth_settings, keeper, self._secrets, self._clock)
            self._bearers[key] = found
        return found

    def mask(self, text: str) -> str:
        """A text without the tokens that were used last."""
        for bearer in self._bearers.values():
            text = bearer.masker(text)
        return text

    async def aclose(self) -> None:
        """Wait for renewals that are under way: what a server rotated has to be kept. May be called twice."""
        await asyncio.gather(*(bearer.finish() for bearer in self._bearers.values()))


class Bearer:
    """The login at one server, as its requests need it."""

    def __init__(
        self,
        server: str,
        url: str,
        settings: OAuthSettings,
        keeper: LoginKeeper,
        secrets: Secrets,
        clock: Callable[[], float],
    ) -> None:
        self._server = server
        self._url = url
        self._settings = settings
        self._keeper = keeper
        self._secrets = secrets
        self._clock = clock
        self.masker = Masker()
        """Knows the last tokens that were used."""
        self._login: Login | None = None
        self._mark: Hashable = None
        self._looked = float("-inf")
        self._renewing: asyncio.Task[None] | None = None
        self._refused: tuple[str, str] | None = None
        self._paused: tuple[float, str] | None = None
        self._renewed_for_refusal = float("-inf")

    def __repr__(self) -> str:
        return f"<Bearer for {self._server}>"

    async def headers(self) -> Mapping[str, str]:
        """The header of the next request; a token that is about to end is renewed meanwhile.

        Raises:
            LinkLost: Nobody is logged in, or the login has ended and can't be renewed.
        """
        login = await self._current()
        now = self._clock()
        if login.expires_at is not None:
            early = min(_EARLY, max(0.0, login.expires_at - login.obtained_at) / 10)
            if now >= login.expires_at:
                login = await self._renewed(login)
            elif now >= login.expires_at - early and login.renewable and self._may_renew(login):
                self._begin(login.access_token)
        _USED.set((self, login.access_token))
        self.masker.learn(login.access_token)
        return {"authorization": f"Bearer {login.access_token}"}

    async def refused(self, status: int, challenge: str | None) -> bool:
        """Renew what was refused; True: try once more.

        Raises:
            LinkLost: It can't be renewed, or doesn't reach far enough: a person has to log in again.
        """
        if status != 401:
            raise LoginNeeded(f"HTTP {status}, the login doesn't reach far enough: {self._further(challenge)}")
        using = _USED.get()
        self._looked = float("-inf")
        login = await self._current()
        token = using[1] if using is not None and using[0] is self else login.access_token
        if login.access_token != token:
            return True
        if not login.renewable:
            raise self._again(f"HTTP {status}, the login isn't taken any more")
        if self._renewing is None:
            now = self._clock()
            if now - self._renewed_for_refusal < _ONCE:
                raise self._again(f"HTTP {status}, although the login was just renewed")
            self._renewed_for_refusal = now
        await self._renewed(login)
        return True

    async def finish(self) -> None:
        """Wait for a renewal that is under way."""
        if self._renewing is not None:
            await asyncio.wait({self._renewing})

    # What there is

    async def _current(self) -> Login:
        now = self._clock()
        if self._login is None or self._refused is not None or not 0 <= now - self._looked < _LOOK:
            self._looked = now
            mark = self._keeper.mark()
            if self._login is None or mark != self._mark or self._refused is not None:
                self._mark = mark
                try:
                    self._login = await asyncio.to_thread(self._keeper.read)
                except HotplugError as error:
                    self._login = None
                    raise LoginNeeded(f"its login can't be used: {error}") from None
        login = self._login
        if login is None:
            raise LoginNeeded(f"it asks for OAuth, and nobody is logged in: {login_command(self._server)}")
        if self._refused is not None:
            token, reason = self._refused
            if token == login.access_token:
                raise self._again(reason)
            self._refused = None
        return login

    def _again(self, reason: str) -> LoginNeeded:
        return LoginNeeded(f"{reason}: log in again ({login_command(self._server)})")

    def _further(self, challenge: str | None) -> str:
        found = _SCOPE.search(challenge or "")
        scopes = neutral(found[1], limit=200) if found else ""
        wanted = f"it wants the scopes {scopes}: " if scopes else ""
        return f"{wanted}log in again ({login_command(self._server)})"

    # Renewal

    def _may_renew(self, login: Login) -> bool:
        return self._renewing is None and (self._paused is None or self._clock() >= self._paused[0])

    async def _renewed(self, login: Login) -> Login:
        """The login after it, from whoever renews it first."""
        if not login.renewable:
            raise self._again("its login has ended")
        if self._renewing is None and self._paused is not None and self._clock() < self._paused[0]:
            raise LinkLost(f"its login can't be renewed now: {self._paused[1]}", sent=False)
        # Whoever leaves doesn't end it: a token that was rotated and not kept would end the login.
        await asyncio.shield(self._begin(login.access_token))
        return await self._current()

    def _begin(self, token: str) -> asyncio.Task[None]:
        if self._renewing is None:
            self._renewing = asyncio.get_running_loop().create_task(self._renew(token))
            self._renewing.add_done_callback(self._done)
        return self._renewing

    def _done(self, task: asyncio.Task[None]) -> None:
        self._renewing = None
        if not task.cancelled() and task.exception() is not None:
            _logger.warning("%s: %s", self._server, task.exception())

    async def _renew(self, token: str) -> None:
        try:
            async with asyncio.timeout(_LIMIT):
                await self._renew_alone(token)
        except RenewalRefused as error:
            self._refused = (token, f"its login can't be renewed, {error}")
            raise self._again(self._refused[1]) from None
        except TimeoutError:
            raise self._pause("its authorization server doesn't answer") from None
        except (RenewalFailed, HotplugError) as error:
            raise self._pause(str(error)) from None
        self._paused = None

    def _pause(self, reason: str) -> LinkLost:
        self._paused = (self._clock() + _PAUSE, reason)
        return LinkLost(f"its login can't be renewed now: {reason}", sent=False)

    async def _renew_alone(self, token: str) -> None:
        alone = self._keeper.alone()
        entering = asyncio.ensure_future(asyncio.to_thread(alone.__enter__))
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError:
            entering.add_done_callback(lambda done: _let_go(done, alone))
            raise
        try:
            login = await asyncio.to_thread(self._keeper.read)
            if login is not None and login.access_token == token:
                renew = await asyncio.to_thread(_sdk)
                login = await renew(login, self._url, self._settings, self._secrets, self._keeper.write, self._clock)
            self._login, self._mark = login, self._keeper.mark()
        finally:
            alone.__exit__(None, None, None)


def _let_go(entered: asyncio.Future[None], alone: AbstractContextManager[None]) -> None:
    """What was got after nobody waited for it any more."""
    if not entered.cancelled() and entered.exception() is None:
        alone.__exit__(None, None, None)


def _sdk() -> Callable[..., Awaitable[Login]]:
    """Loads the SDK, which takes a second: beside the calls."""
    from hotplug.gateway.oauth.renewing import renewed

    return renewed


def _without_login(config: ServerConfig) -> Refused:
    """Says what to do about a refusal where the entry asks for no OAuth."""

    async def refused(status: int, challenge: str | None) -> bool:
        if status != 401:
            return False
        said = refusal(status, challenge)
        if authorization_in(config):
            raise LinkLost(f"{said}: the one in its headers isn't taken, renew it", sent=False)
        login = f"oauth = true in its entry, then {login_command(config.name)}"
        bearer = 'headers = { Authorization = "Bearer secret:NAME" }'
        if challenge is not None and "resource_metadata" in challenge:
            raise LinkLost(f"{said}, and it asks for OAuth: {login}", sent=False)
        raise LinkLost(f"{said}: {bearer}; or if it asks for OAuth: {login}", sent=False)

    return refused
