"""`oauth` in a server's entry: true, or a table that says how to log in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from hotplug.connect.secrets import SecretName, held
from hotplug.errors import ConfigError
from hotplug.gateway.config import OAuthSettings

__all__ = ["read_oauth"]

_KEYS: Final = ("client_id", "client_secret", "scopes", "port", "keep")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""RFC 6749, 3.3."""


def read_oauth(value: object, where: str) -> OAuthSettings | None:
    """How to log in; None where no OAuth is asked for. Pure.

    Args:
        where: What an error begins with: the file and the server.

    Raises:
        ConfigError: It can't be used; never with a secret in it.
    """
    if value is None or value is False:
        return None
    if value is True:
        return OAuthSettings()
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}oauth is true or false, not {_kind(value)}", hint="or a table: client_id, scopes, …")
    table = cast("Mapping[str, Any]", value)
    for key in table:
        if key not in _KEYS:
            raise ConfigError(f"{where}oauth has the unknown key {key!r}", hint=f"it has {', '.join(_KEYS)}")
    secret = table.get("client_secret")
    client_secret = None if secret is None else held(secret, f"{where}oauth.client_secret")
    if client_secret is not None and not isinstance(client_secret, SecretName):
        raise ConfigError(
            f"{where}oauth.client_secret stands there in plain",
            hint='write "secret:NAME", with a table [secrets.NAME]',
        )
    client_id = table.get("client_id")
    if client_id is not None and not (isinstance(client_id, str) and client_id):
        raise ConfigError(f"{where}oauth.client_id is a string, not {_kind(client_id)}")
    if client_secret is not None and client_id is None:
        raise ConfigError(f"{where}oauth has a client_secret and no client_id", hint="name both, or neither")
    return OAuthSettings(client_id, client_secret, _scopes(table, where), _port(table, where), _keep(table, where))


def _scopes(table: Mapping[str, Any], where: str) -> tuple[str, ...]:
    value = table.get("scopes", [])
    found = cast("list[Any]", value) if isinstance(value, list) else None
    if found is None or not all(isinstance(one, str) and _SCOPE.fullmatch(one) for one in found):
        raise ConfigError(f"{where}oauth.scopes is a list of scopes", hint='as in scopes = ["read", "write"]')
    return tuple(dict.fromkeys(found))


def _port(table: Mapping[str, Any], where: str) -> int | None:
    port = table.get("port")
    if port is None or (isinstance(port, int) and not isinstance(port, bool) and 0 < port < 65536):
        return port
    raise ConfigError(f"{where}oauth.port is a port, 1 to 65535")


def _keep(table: Mapping[str, Any], where: str) -> Literal["file", "keyring"]:
    keep = table.get("keep", "file")
    if keep in ("file", "keyring"):
        return keep
    raise ConfigError(f'{where}oauth.keep is "file" or "keyring"')


def _kind(value: object) -> str:
    from hotplug.gateway.server_entry import kind_of

    return kind_of(value)
