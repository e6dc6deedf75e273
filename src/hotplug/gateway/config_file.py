"""Reads `hotplug.toml`: what stands in the file, checked, as `GatewayConfig`.

A server's entry takes what a client's `mcpServers` entry takes, unchanged, or `target` with anything of the grammar of
targets; and keys of ours. What is wrong with one entry costs that entry alone (`GatewayConfig.broken`), what is odd
costs nothing and is told (`GatewayConfig.warnings`); no message repeats a secret's value. Paths in the file are taken
from where the file lies, since a client starts the gateway wherever it likes.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast, get_args

from hotplug.access import Profile
from hotplug.access.profiles import Fault
from hotplug.connect import CommandTarget, EntryTarget, NamedTarget, PythonTarget
from hotplug.connect.secrets import ConfiguredSecrets, Destination, SecretName
from hotplug.errors import ConfigError
from hotplug.gateway.config import (
    GatewayConfig,
    NameStyle,
    Narrowing,
    Notice,
    RecordsConfig,
    SearchConfig,
    ServerConfig,
    ThreadsConfig,
)
from hotplug.gateway.narrowing import NOTHING, read_access
from hotplug.gateway.server_entry import beside, held_by, kind_of, near_words, read_server

__all__ = [
    "CONFIG_NAME",
    "CONFIG_VARIABLE",
    "SECTIONS",
    "Project",
    "access_of",
    "default_config_path",
    "narrowing_of",
    "parse_config",
    "parse_project",
    "read_config",
    "read_text",
]

CONFIG_NAME: Final = "hotplug.toml"
CONFIG_VARIABLE: Final = "HOTPLUG_CONFIG"
"""The environment variable that names another file than the user's own."""

_LIMIT: Final = 8 * 1024 * 1024
_DIGEST: Final = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "servers": (),
    "secrets": (),
    "access": ("servers", "groups", "tools"),
    "threads": ("openers",),
    "store": ("url",),
    "serve": ("host", "port", "names", "client_prefix", "hosts", "origins"),
    "records": ("days", "arguments"),
    "search": ("over",),
}
"""The tables of the file, each with its keys; none where the keys are names."""


def default_config_path() -> Path:
    """The owner's file where nobody names one: what `HOTPLUG_CONFIG` says, else `hotplug.toml` in the user's folder."""
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_config_dir("hotplug", appauthor=False)) / CONFIG_NAME


def read_config(path: Path, *, settings: Path | None = None) -> GatewayConfig:
    """The owner's file; one that isn't there reads as empty.

    Args:
        settings: The access settings' file; None: `default_settings_path()`.

    Raises:
        ConfigError: It can't be read, or isn't TOML (with the line).
    """
    from hotplug.store.settings import default_settings_path

    settings = settings or default_settings_path()
    text = read_text(path)
    if text is None:
        return GatewayConfig(settings=settings)
    config = parse_config(text, path=path)
    notices = (*config.warnings, *_open_to_others(path, config))
    return replace(config, settings=settings, warnings=notices)


def read_text(path: Path) -> str | None:
    """The text of a file, or None where there is none.

    Raises:
        ConfigError: It can't be read, is no text, or is larger than 8 MiB.
    """
    try:
        if path.stat().st_size > _LIMIT:
            raise ConfigError(f"{path} is larger than {_LIMIT // 1024 // 1024} MiB; that is no configuration file")
        return path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8") from None


def _open_to_others(path: Path, config: GatewayConfig) -> tuple[Notice, ...]:
    if os.name != "posix":
        return ()
    try:
        mode = path.stat().st_mode
    except OSError:
        return ()
    if mode & 0o022:
        text = "can be written by other users, and it names commands that are run"
        return (Notice(str(path), text, f"chmod go-w {path}"),)
    if mode & 0o044 and any(one.secret for one in config.warnings):
        return (Notice(str(path), "holds secrets and can be read by other users", f"chmod 600 {path}"),)
    return ()


def parse_config(text: str, *, path: Path) -> GatewayConfig:
    """What the owner's file says. Pure.

    Args:
        path: Where it lies: for messages, and for the relative paths in it.

    Raises:
        ConfigError: It isn't TOML at all; the message has the line.
    """
    reading = _Reading(path, _document(text, path))
    reading.unknown_sections()
    if "access" in reading.document:
        reading.notice("access", "narrows nothing here", "in your own file access is set by: hotplug access")
    secrets = reading.secrets()
    servers = reading.servers()
    reading.check_secrets(servers, secrets)
    store = reading.section("store")
    serve = reading.section("serve")
    return GatewayConfig(
        path=path,
        servers=servers,
        broken=reading.broken,
        secrets=secrets,
        store_url=reading.store_url(store),
        names=cast("NameStyle", reading.choice("serve", serve, "names", get_args(NameStyle), "dotted")),
        client_prefix=reading.whole("serve", serve, "client_prefix", 14, 0, 40),
        threads=reading.threads(),
        records=RecordsConfig(
            days=reading.whole("records", reading.section("records"), "days", 30, 0, 36500),
            arguments=reading.switch("records", reading.section("records"), "arguments", default=False),
        ),
        search=reading.search(),
        host=reading.host(serve),
        port=reading.whole("serve", serve, "port", 0, 0, 65535),
        hosts=reading.names("serve", serve, "hosts"),
        origins=reading.names("serve", serve, "origins"),
        warnings=tuple(reading.notices),
    )


@dataclass(frozen=True, slots=True)
class Project:
    """What a project's file says.

    Args:
        narrowing: None where it has no `[access]`.
    """

    servers: Mapping[str, ServerConfig]
    broken: Mapping[str, ConfigError]
    narrowing: Narrowing | None
    warnings: tuple[Notice, ...]


def parse_project(text: str, *, path: Path) -> Project:
    """What a project's file says: servers, and an `[access]` table that narrows. Everything else is the owner's. Pure.

    Raises:
        ConfigError: It isn't TOML at all.
    """
    reading = _Reading(path, _document(text, path))
    reading.unknown_sections()
    for name in SECTIONS:
        if name in reading.document and name not in ("servers", "access"):
            reading.notice(name, "counts only in your own file, and is ignored here")
    narrowing = None
    if "access" in reading.document:
        narrowing, fault = narrowing_of(reading.document["access"], path)
        if fault is not None:
            where = ".".join(("access", *fault.path))
            reading.notice(where, f"{fault.message}, so the file leaves nothing to anybody", fault.fix)
    servers: dict[str, ServerConfig] = {}
    for name, one in reading.servers().items():
        problem = _beyond_trust(one)
        if problem is None:
            servers[name] = _from_folder(one, path.absolute().parent)
        else:
            reading.broken[name] = ConfigError(f"{path}: server {name!r}: {problem[0]}", hint=problem[1])
    return Project(servers, reading.broken, narrowing, tuple(reading.notices))


def narrowing_of(table: object, path: Path) -> tuple[Narrowing, Fault | None]:
    """What an `[access]` table narrows; with a fault it leaves nothing. Pure.

    Args:
        path: The file that it stands in.
    """
    found = read_access(table, name=str(path))
    return (Narrowing(path, found), None) if isinstance(found, Profile) else (Narrowing(path, NOTHING), found)


def access_of(text: str, *, path: Path) -> Any:
    """The `[access]` of a project's file as JSON; None where it has none. Pure.

    Raises:
        ConfigError: It isn't TOML at all.
    """
    table = _document(text, path).get("access")
    try:
        return json.loads(json.dumps(table))
    except TypeError:
        # Times are no JSON, and no names: such a table can't be read either way.
        return False


def _beyond_trust(config: ServerConfig) -> tuple[str, str] | None:
    """Why a project's server can't be what it says: trust in one file is no trust in another, nor in our process."""
    if config.projection is not None and config.projection.endswith((".yaml", ".yml")):
        # One may come with code, which runs in here.
        return (
            "its projection stands in another file, which wasn't trusted",
            "name an installed one",
        )
    match config.target:
        case NamedTarget():
            return "its target stands in another file, which wasn't trusted", "write the entry itself"
        case PythonTarget(object=str()):
            return "it would run inside the gateway", "name a file that runs a server, or a command"
        case _:
            return None


def _from_folder(config: ServerConfig, folder: Path) -> ServerConfig:
    """A project's command runs in the project, wherever below it the gateway was started."""
    match config.target:
        case EntryTarget(launch=CommandTarget(cwd=None) as launch) as target:
            return replace(config, target=replace(target, launch=replace(launch, cwd=str(folder))))
        case CommandTarget(cwd=None) as target:
            return replace(config, target=replace(target, cwd=str(folder)))
        case _:
            return config


def _document(text: str, path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply") from None


class _Reading:
    """One file on its way to values, with what was odd about it."""

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self.path = path
        self.document = document
        self.notices: list[Notice] = []
        self.broken: dict[str, ConfigError] = {}
        self._sections: dict[str, Mapping[str, Any]] = {}

    def notice(self, key: str, message: str, fix: str | None = None, *, secret: bool = False) -> None:
        self.notices.append(Notice(f"{self.path}: {key}", message, fix, secret))

    def unknown_sections(self) -> None:
        for key in self.document:
            if key not in SECTIONS:
                known = ", ".join(SECTIONS)
                fix = "[servers.NAME] is what holds them here" if key == "mcpServers" else near_words(key, (*SECTIONS,))
                self.notice(key, "is a key that isn't known, and is ignored", fix or f"there are {known}")

    def section(self, name: str) -> Mapping[str, Any]:
        """A table with fixed keys; what isn't known in it is told once."""
        if name not in self._sections:
            self._sections[name] = self._checked(name)
        return self._sections[name]

    def _checked(self, name: str) -> Mapping[str, Any]:
        table = self.document.get(name, {})
        if not isinstance(table, Mapping):
            self.notice(name, f"is a table, not {kind_of(table)}, and is ignored")
            return {}
        found, known = cast("Mapping[str, Any]", table), SECTIONS[name]
        for key in found:
            if key not in known:
                fix = near_words(key, known) or f"there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"
                self.notice(f"{name}.{key}", "is a key that isn't known, and is ignored", fix)
        return found

    # Servers

    def servers(self) -> dict[str, ServerConfig]:
        table = self.document.get("servers", {})
        if not isinstance(table, Mapping):
            self.notice(
                "servers", f"is a table of servers, not {kind_of(table)}, and is ignored", "write [servers.NAME]"
            )
            return {}
        found: dict[str, ServerConfig] = {}
        for name, entry in cast("Mapping[str, Any]", table).items():
            try:
                found[name] = read_server(name, entry, path=self.path, notice=self.notice)
            except ConfigError as error:
                self.broken[name] = error
        return found

    # Secrets

    def secrets(self) -> ConfiguredSecrets:
        table = self.document.get("secrets", {})
        if not isinstance(table, Mapping):
            self.notice("secrets", f"is a table of secrets, not {kind_of(table)}: no secret can be used")
            return ConfiguredSecrets({})
        entries: dict[str, Any] = {}
        for name, entry in cast("Mapping[str, Any]", table).items():
            given: Any = entry
            if isinstance(entry, Mapping):
                fields = dict(cast("Mapping[str, Any]", entry))
                if isinstance(fields.get("file"), str) and fields["file"]:
                    fields["file"] = beside(self.path, fields["file"])
                given = fields
            try:
                entries.update(ConfiguredSecrets.of_table({name: given}, where="secret").entries)
            except ConfigError as error:
                self.notice(f"secrets.{name}", f"can't be used: {error.message}", error.hint)
        return ConfiguredSecrets(entries)

    def check_secrets(self, servers: Mapping[str, ServerConfig], secrets: ConfiguredSecrets) -> None:
        """Names of secrets that will be refused when the server is started."""
        for name, server in servers.items():
            for key, value in held_by(server.target).items():
                if not isinstance(value, SecretName):
                    continue
                place = f"servers.{name}.{key}"
                known = secrets.entries.get(value.name)
                if known is None:
                    fix = near_words(value.name, (*secrets.entries,)) or f"add a table [secrets.{value.name}]"
                    self.notice(place, f"names the secret {value.name!r}, which isn't set up", fix)
                elif not known[1].admit(Destination(server=name)):
                    fix = f'add "{name}" to servers in [secrets.{value.name}]'
                    self.notice(place, f"names the secret {value.name!r}, which may not go to this server", fix)

    # The other tables

    def threads(self) -> ThreadsConfig:
        openers = self.section("threads").get("openers", {})
        if not isinstance(openers, Mapping):
            self.notice("threads.openers", f"is a table of digests, not {kind_of(openers)}: it lets nobody in")
            return ThreadsConfig()
        found: dict[str, str] = {}
        for name, value in cast("Mapping[str, Any]", openers).items():
            digest = _DIGEST.fullmatch(value) if isinstance(value, str) else None
            if digest is None:
                self.notice(
                    f"threads.openers.{name}",
                    "is the SHA-256 of a token in 64 hex digits, and this isn't one: it lets nobody in",
                    'printf %s "$TOKEN" | sha256sum',
                )
            else:
                found[name] = digest[1].lower()
        return ThreadsConfig(found)

    def store_url(self, table: Mapping[str, Any]) -> str | None:
        if "url" not in table:
            return None
        url = table["url"]
        if not isinstance(url, str) or not url.strip():
            # Another store in its place would forget threads, and what was done once.
            self.notice("store.url", f"is a URL in a string, not {kind_of(url)}: no store can be opened")
            return "(unreadable)"
        scheme, _, rest = url.partition(":///")
        if scheme == "sqlite" and rest and not rest.startswith(":memory:"):
            file, mark, query = rest.partition("?")
            return f"sqlite:///{beside(self.path, file)}{mark}{query}"
        return url

    def search(self) -> SearchConfig:
        table = self.section("search")
        if table.get("over") is False:
            return SearchConfig(None)
        return SearchConfig(self.whole("search", table, "over", 100, 0, 100_000))

    def host(self, table: Mapping[str, Any]) -> str:
        value = table.get("host", "127.0.0.1")
        if isinstance(value, str) and value and not re.search(r"[\s/]", value):
            return value
        self.notice("serve.host", "is the name or address of an interface: 127.0.0.1 is used")
        return "127.0.0.1"

    def choice(self, section: str, table: Mapping[str, Any], key: str, known: tuple[str, ...], default: str) -> str:
        value = table.get(key, default)
        if value in known:
            return value
        near = near_words(value, known) if isinstance(value, str) else None
        self.notice(f"{section}.{key}", f"is one of {', '.join(known)}: {default} is used", near)
        return default

    def whole(self, section: str, table: Mapping[str, Any], key: str, default: int, least: int, most: int) -> int:
        value = table.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.notice(f"{section}.{key}", f"is a whole number from {least} to {most}: {default} is used")
        return default

    def switch(self, section: str, table: Mapping[str, Any], key: str, *, default: bool) -> bool:
        value = table.get(key, default)
        if isinstance(value, bool):
            return value
        self.notice(f"{section}.{key}", f"is true or false: {str(default).lower()} is used")
        return default

    def names(self, section: str, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if isinstance(value, list):
            items = cast("list[Any]", value)
            if all(isinstance(item, str) and item.strip() for item in items):
                return tuple(items)
        self.notice(f"{section}.{key}", "is a list of names: none is taken")
        return ()
