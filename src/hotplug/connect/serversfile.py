"""Servers by name: `[servers.NAME]` of `hotplug.toml` and `mcpServers` files of other clients.

Reading is lenient about what isn't asked for: a broken entry costs that entry, and only its own use is refused, with
the file and the key.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from hotplug.connect.jsonc import parse_jsonc
from hotplug.connect.secrets import ConfiguredSecrets
from hotplug.connect.target import EntryTarget, NamedTarget, entry_target
from hotplug.errors import ConfigError

__all__ = ["ServersFile", "find_server", "read_servers"]

_LIMIT = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServersFile:
    """The servers that one file names, as they stand there.

    Args:
        path: The file.
        entries: By name, unchecked: `server()` checks the one that is asked for.
        document: The whole file, for what else it holds (`threads`, `store`, ...).
    """

    path: Path
    entries: Mapping[str, Any] = field(repr=False)
    document: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The servers' names in the file's order."""
        return tuple(self.entries)

    def server(self, name: str | None = None) -> EntryTarget:
        """The server of that name; without a name, the file's only one.

        Raises:
            ConfigError: No such name (with the nearest), no or several servers, or an entry that is wrong.
        """
        if name is None:
            if len(self.entries) != 1:
                listed = ", ".join(self.names) or "none"
                raise ConfigError(
                    f"{self.path} has {len(self.entries)} servers: {listed}", hint=f"name one: {self.path.name}#NAME"
                )
            name = self.names[0]
        if name not in self.entries:
            near = difflib.get_close_matches(name, self.names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(self.names) or 'no servers'}"
            raise ConfigError(f"{self.path} has no server {name!r}", hint=hint)
        return entry_target(self.entries[name], name=name, file=str(self.path))

    def secrets(self) -> ConfiguredSecrets:
        """The secrets that the file's `[secrets.NAME]` tables describe; none without such a table.

        Raises:
            ConfigError: A table is wrong.
        """
        table = self.document.get("secrets", {})
        if not isinstance(table, Mapping):
            raise ConfigError(f"{self.path}: secrets is a table, not {type(table).__name__}")
        return ConfiguredSecrets.of_table(cast("Mapping[str, Any]", table), where=f"{self.path}: secret")


def read_servers(path: Path | str) -> ServersFile:
    """The servers of `hotplug.toml` (or any `.toml` with `[servers.NAME]`) or of an `mcpServers` JSON file.

    JSON files of other clients are taken with `mcpServers`, `servers` (VS Code) or the entries at the top; comments in
    them don't count.

    Raises:
        ConfigError: It can't be read, isn't TOML or JSON (with line and column), or holds no table of servers.
    """
    path = Path(path).expanduser()
    try:
        if path.stat().st_size > _LIMIT:
            raise ConfigError(f"{path} is larger than {_LIMIT // 1024 // 1024} MiB; that is no configuration file")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8") from None
    document = _toml(text, path) if path.suffix == ".toml" else _json(text, path)
    return ServersFile(path, _table_of_servers(document, path), document)


def find_server(target: NamedTarget, files: tuple[ServersFile, ...] = ()) -> EntryTarget:
    """The entry that a named target means: in the file it names, else in the first of `files` that has the name.

    Raises:
        ConfigError: Nowhere; the message says which files were looked at.
    """
    if target.file is not None:
        return read_servers(target.file).server(target.name)
    for servers in files:
        if target.name in servers.entries:
            return servers.server(target.name)
    looked = ", ".join(str(servers.path) for servers in files) or "no configuration file was found"
    names = [name for servers in files for name in servers.names]
    near = difflib.get_close_matches(target.name or "", names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "a command goes after --, a file is file.json#name"
    raise ConfigError(f"no server is named {target.name!r} (looked at: {looked})", hint=hint)


def _toml(text: str, path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def _json(text: str, path: Path) -> Mapping[str, Any]:
    document = parse_jsonc(text, where=str(path))
    if not isinstance(document, dict):
        raise ConfigError(f"{path} holds {type(document).__name__}, not an object with mcpServers")
    return cast("dict[str, Any]", document)


def _table_of_servers(document: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    keys = ("servers",) if path.suffix == ".toml" else ("mcpServers", "servers")
    for key in keys:
        if key in document:
            table = document[key]
            if not isinstance(table, Mapping):
                raise ConfigError(f"{path}: {key} is a table of servers, not {type(table).__name__}")
            return cast("Mapping[str, Any]", table)
    if path.suffix == ".toml":
        return {}
    entries: dict[str, Any] = {
        name: entry
        for name, entry in document.items()
        if isinstance(entry, dict) and {"command", "url", "serverUrl"} & set(cast("dict[str, Any]", entry))
    }
    if not entries:
        raise ConfigError(f"{path} has no mcpServers (its keys: {', '.join(document) or 'none'})")
    return entries
