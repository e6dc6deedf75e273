"""A login as a secret of its server's entry: for commands that reach a server by themselves (`doctor`, `call`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from hotplug.connect.secrets import Destination, SecretName, Secrets, SecretValue
from hotplug.connect.target import EntryTarget, HttpTarget, Target
from hotplug.errors import AuthError
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.link import LinkLost
from hotplug.gateway.oauth.address import remote_target
from hotplug.gateway.oauth.credentials import OAuthCredentials

__all__ = ["LoginSecrets", "is_login", "with_login"]

_NAME: Final = "login:"
"""What no name of a configured secret begins with: they have no colon."""


class LoginSecrets:
    """The secrets of a configuration, and the token of one server's login, renewed where it has ended."""

    def __init__(self, inner: Secrets, config: ServerConfig, credentials: OAuthCredentials) -> None:
        self._inner = inner
        self._config = config
        self._credentials = credentials

    async def get(self, name: str, to: Destination) -> SecretValue:
        """See `Secrets`.

        Raises:
            AuthError: Nobody is logged in, or the login can't be renewed.
        """
        if name != _NAME + self._config.name:
            return await self._inner.get(name, to)
        headers, _ = self._credentials.of(self._config)
        assert headers is not None
        try:
            value = (await headers())["authorization"]
        except LinkLost as error:
            raise AuthError(f"{self._config.name}: {error.reason}", cause="auth", transport="http") from None
        finally:
            await self._credentials.aclose()
        return SecretValue(name, value.removeprefix("Bearer "))


def with_login(
    config: ServerConfig,
    target: Target,
    secrets: Secrets,
    *,
    folder: Path | None = None,
    clock: Callable[[], float] = time.time,
) -> tuple[Target, Secrets]:
    """A server's target whose headers carry its login, and where that comes from; both as they are without OAuth."""
    if not config.oauth or remote_target(config) is None:
        return target, secrets
    login = SecretName(_NAME + config.name, "Bearer ")
    if isinstance(target, EntryTarget) and isinstance(target.launch, HttpTarget):
        target = replace(target, launch=_carrying(target.launch, login))
    elif isinstance(target, HttpTarget):
        target = _carrying(target, login)
    return target, LoginSecrets(secrets, config, OAuthCredentials(secrets, folder=folder, clock=clock))


def is_login(value: object) -> bool:
    """Whether a header's value is a login, as `with_login` put it there."""
    return isinstance(value, SecretName) and value.name.startswith(_NAME)


def _carrying(target: HttpTarget, login: SecretName) -> HttpTarget:
    others = {name: value for name, value in target.headers.items() if name.lower() != "authorization"}
    return replace(target, headers={**others, "Authorization": login})
