"""What the owner's `hotplug.toml` sets up for the gateway, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hotplug.access import Profile
from hotplug.connect import Target
from hotplug.connect.secrets import Held, NoSecrets, Secrets
from hotplug.errors import ConfigError

__all__ = [
    "GatewayConfig",
    "NameStyle",
    "Narrowing",
    "Notice",
    "OAuthSettings",
    "RecordsConfig",
    "SearchConfig",
    "ServerConfig",
    "ThreadsConfig",
]

NameStyle = Literal["dotted", "underscored"]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something in a file that is odd and stops nothing.

    Args:
        place: Where: the file, and the key as it is written there.
        message: What; never a secret's value.
        fix: What to do about it.
        secret: Whether it is about a secret that stands there in plain.
    """

    place: str
    message: str
    fix: str | None = None
    secret: bool = False

    def __str__(self) -> str:
        text = f"{self.place} {self.message}" + (f" ({self.fix})" if self.fix else "")
        # Keys are foreign text: a line break in one must not begin a line of ours.
        return " ".join(text.splitlines())


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a project's file, once trusted, leaves of everybody's access: `Access.narrowed(profile, str(path))`.

    Args:
        path: The file.
        profile: What it would give at most; nothing where its `[access]` can't be read.
    """

    path: Path
    profile: Profile


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """How the gateway logs in at a remote server, where that isn't left to the server.

    Args:
        client_id: Of a client that was registered by hand; None: one is registered at login.
        client_secret: Its secret, by name; None: it has none.
        scopes: What to ask for; empty: what the server names.
        port: Of the address on this machine that the browser comes back to; None: any free one.
        keep: Where the login is kept: a file that only its owner can read, or the system's keyring.
    """

    client_id: str | None = None
    client_secret: Held | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    port: int | None = None
    keep: Literal["file", "keyring"] = "file"


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server behind the gateway.

    Args:
        name: Its name in the file: `a-z A-Z 0-9 - _ .`, not one of ours.
        target: What its entry starts or reaches.
        profiles: The profiles that it must speak; empty: what it declares, or what a shipped projection gives it.
        projection: A projection by name or file; None: a shipped one is found by package or tool list.
        prefix: Stands before its raw tools' names; None: its name. Empty: they keep their own names.
        share: Who shares one child of it: `thread` (each thread has its own), `all`. None: `all` where it speaks a
            profile, else `thread`.
        start_timeout: Seconds until it has to be ready.
        call_timeout: Seconds without any message of it after which a call is given up; None: never.
        idle: Seconds without use after which its child is stopped; None: never.
        oauth: Whether a remote server asks for OAuth: its tokens are kept, `hotplug server login` gets them.
        oauth_settings: How, where the entry says more of it.
        disabled: Set up, and not offered.
        file: The file that its entry stands in.
    """

    name: str
    target: Target
    profiles: tuple[str, ...] = ()
    projection: str | None = None
    prefix: str | None = None
    share: Literal["thread", "all"] | None = None
    start_timeout: float = 30.0
    call_timeout: float | None = None
    idle: float | None = 600.0
    oauth: bool = False
    oauth_settings: OAuthSettings = field(default_factory=OAuthSettings)
    disabled: bool = False
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class ThreadsConfig:
    """Who may open a thread over HTTP besides a thread's own token.

    Args:
        openers: SHA-256 (hex) of each token that may open root threads, by the opener's name.
    """

    openers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True)
class RecordsConfig:
    """What is kept of calls.

    Args:
        days: How long; 0 keeps none.
        arguments: Whether arguments and results are kept too, sensitive fields masked.
    """

    days: int = 30
    arguments: bool = False


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """When tools are found by search instead of being listed.

    Args:
        over: With more tools than this for a thread, those that aren't eager are left to `hotplug.search`; None: never.
    """

    over: int | None = 100


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """Everything that one gateway is set up with.

    Args:
        path: The owner's file; None where there is none.
        servers: Those that can be used, by name, in the file's order.
        broken: Entries that can't be used as they stand: each costs itself alone.
        narrowing: What files of a project that were trusted leave of everybody's access.
        secrets: Where the servers' secrets are held: the owner's alone.
        warnings: What is odd in the files, and stops nothing.
        settings: The access settings' file.
        store_url: Where threads, records and receipts are kept; None: in the user's state folder.
        names: How names are written for clients.
        client_prefix: How many of the 64 characters the client's own prefix takes (`mcp__hotplug__` is 14).
        host: Of the HTTP endpoint.
        port: Of the HTTP endpoint; 0 is any free one.
        hosts: Values of `Host` that are taken besides loopback's.
        origins: Values of `Origin` that are taken besides loopback's.
    """

    path: Path | None = None
    servers: Mapping[str, ServerConfig] = field(default_factory=dict[str, ServerConfig])
    broken: Mapping[str, ConfigError] = field(default_factory=dict[str, ConfigError])
    narrowing: tuple[Narrowing, ...] = ()
    secrets: Secrets = field(default_factory=NoSecrets, repr=False)
    warnings: tuple[Notice, ...] = ()
    settings: Path | None = None
    store_url: str | None = None
    names: NameStyle = "dotted"
    client_prefix: int = 14
    threads: ThreadsConfig = field(default_factory=ThreadsConfig)
    records: RecordsConfig = field(default_factory=RecordsConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    host: str = "127.0.0.1"
    port: int = 0
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
