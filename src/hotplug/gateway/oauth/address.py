"""What a server's entry says of its address and of credentials."""

from __future__ import annotations

from hotplug.connect.target import EntryTarget, HttpTarget, NamedTarget, Target
from hotplug.gateway.config import ServerConfig

__all__ = ["address_of", "authorization_in", "remote_target"]


def remote_target(config: ServerConfig) -> HttpTarget | None:
    """What is reached over HTTP; None where nothing is.

    Raises:
        ConfigError: It is another file's server, and that can't be found.
    """
    target: Target = config.target
    if isinstance(target, NamedTarget):
        from hotplug.connect.serversfile import find_server

        target = find_server(target)
    launch = target.launch if isinstance(target, EntryTarget) else target
    return launch if isinstance(launch, HttpTarget) else None


def address_of(config: ServerConfig) -> str | None:
    """The URL of a remote server; None of one that is no remote one.

    Raises:
        ConfigError: As `remote_target`.
    """
    target = remote_target(config)
    return None if target is None else target.url


def authorization_in(config: ServerConfig) -> bool:
    """Whether the entry's headers hold a credential."""
    target = remote_target(config)
    return target is not None and any(name.lower() == "authorization" for name in target.headers)
