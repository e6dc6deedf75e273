"""Writes `hotplug.toml`: a new one whole, an existing one with its comments and order kept. Pure: text in, text out."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from hotplug.errors import ConfigError
from hotplug.gateway.importing import FoundSecret, Imported

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

__all__ = ["Keeping", "KeptSecret", "Settled", "add_server", "new_file", "remove_server", "settle"]

Keeping = Literal["env", "keyring", "file", "plain"]
"""Where a secret's value is kept: in a variable of the environment, the system's keyring, a file of its own, or (with
a warning) in `hotplug.toml` itself."""

_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


@dataclass(frozen=True, slots=True)
class KeptSecret:
    """A secret with its place.

    Args:
        servers: Where it may go.
        value: What is to be put there; None where nobody knows it yet.
        variable: The variable that holds it, for `env`.
        file: The file that holds it, from where `hotplug.toml` lies, for `file`.
        about: What the client asks its user for.
    """

    name: str
    keeping: Keeping
    servers: tuple[str, ...]
    value: str | None = field(default=None, repr=False)
    variable: str | None = None
    file: str | None = None
    about: str | None = None

    def table(self) -> dict[str, Any]:
        """What stands in `[secrets.NAME]`."""
        source: dict[str, Any] = (
            {"env": self.variable}
            if self.keeping == "env"
            else {"file": self.file}
            if self.keeping == "file"
            else {"keyring": True}
        )
        return {**source, "servers": list(self.servers)}


@dataclass(frozen=True, slots=True)
class Settled:
    """Imported servers with their secrets in their places.

    Args:
        servers: As they were imported, with entries that name their secrets.
        secrets: Those that have a table.
        plain: Where secrets stay in plain: `server.env.KEY`.
    """

    servers: tuple[Imported, ...]
    secrets: tuple[KeptSecret, ...]
    plain: tuple[str, ...]


def settle(found: Sequence[Imported], keep: Callable[[Imported, FoundSecret], Keeping]) -> Settled:
    """Put the secrets of imported servers into their places.

    Args:
        keep: Where one whose value is known shall be kept; one that is only named stays in the environment.
    """
    kept: dict[str, KeptSecret] = {}
    servers: list[Imported] = []
    plain: list[str] = []
    for one in found:
        entry: dict[str, Any] = copy.deepcopy(dict(one.entry))
        for secret in one.secrets:
            keeping = "env" if secret.value is None else keep(one, secret)
            kind, _, key = secret.place.partition(".")
            if keeping == "plain" and kind == "oauth":
                keeping = "file"  # A client's secret is never taken in plain.
            if keeping == "plain":
                plain.append(f"{one.name}.{secret.place}")
                continue
            new = _kept(secret, keeping, one.name)
            name = _place(kept, new)
            entry[kind][key] = f"{secret.before}secret:{name}"
        servers.append(Imported(one.name, entry, one.source, one.client, one.secrets, one.notes))
    return Settled(tuple(servers), tuple(kept.values()), tuple(plain))


def _kept(secret: FoundSecret, keeping: Keeping, server: str) -> KeptSecret:
    variable = secret.variable or "HOTPLUG_SECRET_" + re.sub(r"[^A-Za-z0-9]", "_", secret.name).upper()
    return KeptSecret(
        secret.name,
        keeping,
        (server,),
        secret.value,
        variable if keeping == "env" else None,
        f"secrets/{secret.name}" if keeping == "file" else None,
        secret.about,
    )


def _place(kept: dict[str, KeptSecret], new: KeptSecret) -> str:
    """Add a secret, or its server to the same one; two that differ have two names."""
    name, count = new.name, 1
    while name in kept:
        known = kept[name]
        if (known.keeping, known.value) == (new.keeping, new.value) and (
            known.variable == new.variable or new.keeping != "env"
        ):
            servers = tuple(dict.fromkeys((*known.servers, *new.servers)))
            kept[name] = _named(known, name, servers)
            return name
        count += 1
        name = f"{new.name}-{count}"
    kept[name] = _named(new, name, new.servers)
    return name


def _named(one: KeptSecret, name: str, servers: tuple[str, ...]) -> KeptSecret:
    file = f"secrets/{name}" if one.keeping == "file" else None
    return KeptSecret(name, one.keeping, servers, one.value, one.variable, file, one.about)


_HEAD: Final = """\
What Hotplug's gateway is set up with. `hotplug doctor` looks at all of it, `hotplug server` adds and removes.
A server's entry is what other clients have under mcpServers, or `target = "…"`; and keys of Hotplug's.
What threads may use stands in the access settings: `hotplug access`."""

_EXAMPLE: Final = """\

# [servers.work]
# command = "npx"
# args = ["-y", "caldav-mcp"]
# env = { CALDAV_PASSWORD = "secret:caldav" }
# profile = "calendar"
#
# [secrets.caldav]
# env = "CALDAV_PASSWORD"
# servers = ["work"]
"""


def new_file(settled: Settled, *, serve: Mapping[str, Any] | None = None) -> str:
    """A whole `hotplug.toml`."""
    import tomlkit

    document = tomlkit.document()
    for line in _HEAD.splitlines():
        document.add(tomlkit.comment(line))
    if serve:
        document.add(tomlkit.nl())
        document.add("serve", _table(serve))
    servers = tomlkit.table(is_super_table=True)
    for one in settled.servers:
        table = tomlkit.table()
        table.add(tomlkit.comment(_line(f"from {one.source}")))
        for note in one.notes:
            table.add(tomlkit.comment(_line(note)))
        _fill(table, one.entry)
        servers.add(one.name, table)
    if settled.servers:
        document.add(tomlkit.nl())
        document.add("servers", servers)
    if settled.secrets:
        secrets = tomlkit.table(is_super_table=True)
        for secret in settled.secrets:
            table = tomlkit.table()
            if secret.about:
                table.add(tomlkit.comment(_line(secret.about)))
            _fill(table, secret.table())
            secrets.add(secret.name, table)
        document.add(tomlkit.nl())
        document.add("secrets", secrets)
    text = _spaced(tomlkit.dumps(document))
    return text if settled.servers else text + _EXAMPLE


def add_server(text: str, name: str, entry: Mapping[str, Any], *, where: str) -> str:
    """The file with one more server, after the last; everything else stays as it is.

    Args:
        where: What the file is called in messages.

    Raises:
        ConfigError: It has a server of that name, or can't be edited as it stands.
    """
    import tomlkit
    import tomlkit.items

    document = _document(text, where)
    before = _meaning(text, where)
    servers: Any = cast("Any", document).get("servers", {})
    if not isinstance(servers, dict):
        raise ConfigError(f"{where}: servers is no table of servers", hint="mend it by hand")
    if name in servers:
        raise ConfigError(
            f"{where} has a server {name!r} already", hint=f"hotplug server remove {name}, or another name"
        )
    if isinstance(servers, tomlkit.items.InlineTable):
        servers[name] = dict(entry)
        added = tomlkit.dumps(document)
    else:
        # Appended as text: the library would put it into the middle of tables that are written apart.
        holder = tomlkit.document()
        outer = tomlkit.table(is_super_table=True)
        outer.add(name, _table(entry))
        holder.add("servers", outer)
        joint = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        added = f"{text}{joint}{tomlkit.dumps(holder)}"
    wanted = {**before, "servers": {**before.get("servers", {}), name: dict(entry)}}
    return _checked(added, wanted, where)


def remove_server(text: str, name: str, *, where: str) -> str:
    """The file without a server; everything else stays as it is.

    Raises:
        ConfigError: It has none of that name, or can't be edited as it stands.
    """
    import tomlkit

    document = _document(text, where)
    wanted = _meaning(text, where)
    servers: Any = cast("Any", document).get("servers", {})
    if not isinstance(servers, dict) or name not in servers:
        from hotplug.gateway.server_entry import near_words

        known = tuple(map(str, cast("dict[Any, Any]", servers))) if isinstance(servers, dict) else ()
        raise ConfigError(
            f"{where} has no server {name!r}",
            hint=near_words(name, known) or f"it has: {', '.join(known) or 'no servers'}",
        )
    del servers[name]
    del wanted["servers"][name]
    if not wanted["servers"]:
        del wanted["servers"], document["servers"]
    return _checked(tomlkit.dumps(document), wanted, where)


def _meaning(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not TOML: {error}", hint="mend it by hand first") from None


def _checked(text: str, wanted: Mapping[str, Any], where: str) -> str:
    """The text, if it says what it should: TOML can be written in ways that an edit would bend."""
    try:
        said: object = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        said = None
    if said != wanted:
        raise ConfigError(f"{where} is written in a way that can't be edited safely", hint="edit it by hand")
    return text


def _document(text: str, where: str) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except (TOMLKitError, ValueError) as error:
        raise ConfigError(f"{where} is not TOML: {error}", hint="mend it by hand first") from None


def _table(entry: Mapping[str, Any]) -> Table:
    import tomlkit

    table = tomlkit.table()
    _fill(table, entry)
    return table


def _fill(table: Table, entry: Mapping[str, Any]) -> None:
    import tomlkit

    for key, value in entry.items():
        if isinstance(value, Mapping):
            inline = tomlkit.inline_table()
            for name, one in cast("Mapping[str, Any]", value).items():
                inline.append(name, one)
            table.add(key, inline)
        else:
            table.add(key, value)


def _spaced(text: str) -> str:
    """A blank line before each table, and never two."""
    spaced = re.sub(r"(?<=[^\n])\n(?=\[)", "\n\n", text)
    return re.sub(r"\n{3,}", "\n\n", spaced)


def _line(text: str) -> str:
    """A foreign text as one line of a comment."""
    return _UNSEEN.sub(" ", text)
