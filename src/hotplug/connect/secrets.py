"""Secrets: named, held somewhere else, and given out only where their owner said they may go.

A configuration names a secret (`secret:caldav`, `{"secret": "caldav"}`); a provider holds its value; the value is
read at the last moment, for one destination, and stands in no repr, log or error. Design page wire, "Refs and secrets".
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast, runtime_checkable

from hotplug.errors import ConfigError, PermissionDenied

__all__ = [
    "NOWHERE",
    "CommandSource",
    "ConfiguredSecrets",
    "Destination",
    "EnvironmentSource",
    "FileSource",
    "Held",
    "KeyringSource",
    "NoSecrets",
    "Places",
    "SecretName",
    "SecretSource",
    "SecretValue",
    "Secrets",
    "held",
    "resolve",
]

_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_HELD: Final = re.compile(
    r"(?P<before>(?:[A-Za-z][\w-]* )?)secret:(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)"
)
_COMMAND_TIMEOUT: Final = 30.0
_KINDS: Final = ("members", "servers", "origins", "threads")


@dataclass(frozen=True, slots=True)
class SecretName:
    """A secret in an entry's `env` or `headers`, by its name, without its value.

    Args:
        name: Its name in the configuration.
        before: Text that goes before the value: `Bearer ` in a header.
    """

    name: str
    before: str = ""

    def __repr__(self) -> str:
        return f"secret({self.name!r})"


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A secret with its value; only `reveal()` gives it, and nothing prints it."""

    name: str
    _value: str = field(repr=False)

    def reveal(self) -> str:
        """The value itself: for the call that puts it where it belongs."""
        return self._value

    def __repr__(self) -> str:
        return f"SecretValue({self.name!r}, [secret])"

    __str__ = __repr__


Held: TypeAlias = str | SecretName
"""A value of an entry's `env` or `headers`: plain, or a secret's name."""


def held(value: object, where: str) -> Held:
    """A value of `env` or `headers`: `secret:NAME`, `Bearer secret:NAME`, `{"secret": "NAME"}` or plain text.

    Raises:
        ConfigError: Neither text, number nor a secret; the message says where, never the value.
    """
    if isinstance(value, SecretName):
        return value
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        name = table.get("secret")
        if set(table) == {"secret"} and isinstance(name, str) and _NAME.fullmatch(name):
            return SecretName(name)
        raise ConfigError(
            f'{where} is a string or {{"secret": "NAME"}}', hint=f"its keys are {', '.join(table) or 'none'}"
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        # Here, since an entry rarely holds one and the profile package takes long to import.
        from hotplug.profile import Secret

        if isinstance(value, Secret):
            return SecretName(value.name)
        raise ConfigError(f'{where} is a string or {{"secret": "NAME"}}, not {type(value).__name__}')
    if found := _HELD.fullmatch(value):
        return SecretName(found["name"], found["before"])
    if value.startswith("secret:"):
        raise ConfigError(f"{where} names no secret after secret:", hint="use letters, digits, _ - and .")
    return value


@dataclass(frozen=True, slots=True)
class Places:
    """Where a secret may go; each kind is a list of exact names, `*` for any, and empty means nowhere.

    Args:
        members: Members whose sensitive fields it may fill (`browser@1/browser.fill`).
        servers: Servers whose environment or headers it may enter, by name.
        origins: Web origins (`https://bank.example`).
        threads: Threads that may name it.
    """

    members: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    threads: frozenset[str] = frozenset()

    def admit(self, to: Destination) -> bool:
        """Whether every part of the destination is listed; a destination that says nothing is admitted nowhere.

        A secret that is for certain threads goes to a server that runs for one of these alone, and to none of which
        that isn't known: a server's environment is often several threads'.
        """
        if to.thread is None and self.threads and not self.threads & {"*", to.runs_for}:
            return False
        if to.member is not None and not any(_same_member(to.member, one) for one in self.members):
            return False
        asked = [(to.server, self.servers), (to.origin, self.origins), (to.thread, self.threads)]
        named = [(place, listed) for place, listed in asked if place is not None]
        known = to.member is not None or bool(named)
        return known and all("*" in listed or place in listed for place, listed in named)


def _same_member(member: str, listed: str) -> bool:
    """Whether a list means a member: by its identity, or where either has no profile before it, by its name."""
    if listed in ("*", member):
        return True
    (profile, slash, name), (other, mark, second) = member.rpartition("/"), listed.rpartition("/")
    return name == second and not (slash and mark and profile != other)


NOWHERE: Final = Places()
"""The default of every secret."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a value is about to go: each part that is known.

    Args:
        thread: That named the secret.
        runs_for: The thread that the server runs for alone; the owner's entry named the secret.
    """

    server: str | None = None
    member: str | None = None
    origin: str | None = None
    thread: str | None = None
    runs_for: str | None = None

    def __str__(self) -> str:
        parts = (
            ("server", self.server),
            ("member", self.member),
            ("origin", self.origin),
            ("thread", self.thread or self.runs_for),
        )
        return ", ".join(f"{kind} {name!r}" for kind, name in parts if name is not None) or "nowhere in particular"


@runtime_checkable
class Secrets(Protocol):
    """Gives a secret's value for one destination."""

    async def get(self, name: str, to: Destination) -> SecretValue:
        """The value.

        Raises:
            PermissionDenied: The secret isn't known, or may not go there: one answer for both.
            ConfigError: It may go there, and its source has no value.
        """
        ...


class NoSecrets:
    """Holds no secret: every name is refused."""

    async def get(self, name: str, to: Destination) -> SecretValue:
        """Always refused.

        Raises:
            PermissionDenied: Always.
        """
        raise _denied(name, to)


class SecretSource(Protocol):
    """One place that holds one secret's value."""

    def read(self, name: str) -> str:
        """The value. May block.

        Raises:
            ConfigError: There is none; says where it was looked for.
        """
        ...


@dataclass(frozen=True, slots=True)
class EnvironmentSource:
    """A variable of our own environment; by default `HOTPLUG_SECRET_` and the name in capitals, `-` and `.` as `_`."""

    variable: str | None = None

    def read(self, name: str) -> str:
        """The variable's value.

        Raises:
            ConfigError: It isn't set, or is empty.
        """
        variable = self.variable or "HOTPLUG_SECRET_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
        value = os.environ.get(variable, "")
        if not value:
            raise ConfigError(f"secret {name!r}: the environment variable {variable} is not set")
        return value


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file that holds the value and nothing else; one line break at its end doesn't count.

    Others than its owner must not be able to read or write it (POSIX).
    """

    path: Path

    def read(self, name: str) -> str:
        """The file's text.

        Raises:
            ConfigError: It can't be read, is empty, or is open to others.
        """
        path = self.path.expanduser()
        try:
            with path.open(encoding="utf-8") as file:
                # Of the open file, so that it can't be another one by the time it is read.
                mode = os.fstat(file.fileno()).st_mode
                if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                    raise ConfigError(
                        f"secret {name!r}: {path} is open to other users (mode {stat.S_IMODE(mode):04o})",
                        hint=f"chmod 600 {path}",
                    )
                value = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise ConfigError(f"secret {name!r}: {path} can't be read: {reason}") from None
        value = value.removesuffix("\n").removesuffix("\r")
        if not value:
            raise ConfigError(f"secret {name!r}: {path} is empty")
        return value


@dataclass(frozen=True, slots=True)
class KeyringSource:
    """The system's keyring, through the optional package `keyring`; its user is by default the secret's name."""

    service: str = "hotplug"
    user: str | None = None

    def read(self, name: str) -> str:
        """The keyring's password.

        Raises:
            ConfigError: The package is missing, the keyring doesn't work, or it has no such entry.
        """
        try:
            import keyring  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ConfigError(
                f"secret {name!r}: the package keyring is not installed", hint="pip install 'hotplug[keyring]'"
            ) from None
        ring = cast("Any", keyring)
        user = self.user or name
        try:
            value: str | None = ring.get_password(self.service, user)
        except Exception as error:  # its backends raise what they like
            raise ConfigError(f"secret {name!r}: the keyring failed ({type(error).__name__})") from None
        if not value:
            raise ConfigError(f"secret {name!r}: the keyring has no entry for {user!r} of {self.service!r}")
        return value


@dataclass(frozen=True, slots=True)
class CommandSource:
    """A command that prints the value (`pass show caldav`), run without a shell, within 30 s."""

    argv: tuple[str, ...]

    def read(self, name: str) -> str:
        """The first line that it prints.

        Raises:
            ConfigError: It can't be run, fails, takes too long or prints nothing; what it wrote is not in the message.
        """
        import subprocess

        try:
            done = subprocess.run(  # noqa: S603 - the owner's own configuration names it
                self.argv, capture_output=True, timeout=_COMMAND_TIMEOUT, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "bad arguments"
            raise ConfigError(f"secret {name!r}: {self.argv[0]} can't be run: {reason}") from None
        except subprocess.TimeoutExpired:
            raise ConfigError(f"secret {name!r}: {self.argv[0]} took more than {_COMMAND_TIMEOUT:.0f} s") from None
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        if done.returncode != 0 or not lines or not lines[0]:
            raise ConfigError(f"secret {name!r}: {self.argv[0]} gave no value (exit code {done.returncode})")
        return lines[0]


@dataclass(frozen=True, slots=True)
class ConfiguredSecrets:
    """The secrets of a configuration: each with its source and the places where it may go.

    Args:
        entries: By name.
    """

    entries: Mapping[str, tuple[SecretSource, Places]]

    @classmethod
    def of_table(cls, table: Mapping[str, Any], *, where: str = "[secrets]") -> ConfiguredSecrets:
        """From `[secrets.NAME]` tables: one of `env`, `file`, `keyring`, `command` (default: the environment's
        `HOTPLUG_SECRET_NAME`) and lists `servers`, `members`, `origins`, `threads`.

        Raises:
            ConfigError: Names the secret and the key that is wrong.
        """
        entries: dict[str, tuple[SecretSource, Places]] = {}
        for name, entry in table.items():
            spot = f"{where} {name!r}"
            if not _NAME.fullmatch(name) or not isinstance(entry, Mapping):
                raise ConfigError(f"{spot} is not a table of a secret", hint="a plain value doesn't belong here")
            fields = cast("Mapping[str, Any]", entry)
            unknown = sorted(set(fields) - {"env", "file", "keyring", "command", *_KINDS})
            if unknown:
                raise ConfigError(f"{spot} has the unknown key {unknown[0]!r}")
            places = Places(**{kind: _names(fields.get(kind, ()), f"{spot}.{kind}") for kind in _KINDS})
            entries[name] = (_source(fields, spot), places)
        return cls(entries)

    async def get(self, name: str, to: Destination) -> SecretValue:
        """The value, read from its source in a thread.

        Raises:
            PermissionDenied: The secret isn't known, or may not go there.
            ConfigError: Its source has no value.
        """
        source, places = self.entries.get(name, (None, NOWHERE))
        if source is None or not places.admit(to):
            raise _denied(name, to)
        import anyio.to_thread

        return SecretValue(name, await anyio.to_thread.run_sync(source.read, name))


async def resolve(values: Mapping[str, Held], secrets: Secrets, to: Destination) -> tuple[dict[str, str], list[str]]:
    """The plain values of an entry's `env` or `headers`, and those of them that are secrets (for a masker).

    Raises:
        PermissionDenied: A secret may not go there.
        ConfigError: A secret has no value.
    """
    plain: dict[str, str] = {}
    secret_values: list[str] = []
    for key, value in values.items():
        if isinstance(value, str):
            plain[key] = value
            continue
        revealed = (await secrets.get(value.name, to)).reveal()
        plain[key] = value.before + revealed
        secret_values.append(revealed)
    return plain, secret_values


def _source(fields: Mapping[str, Any], spot: str) -> SecretSource:
    named = [key for key in ("env", "file", "keyring", "command") if key in fields]
    if len(named) > 1:
        raise ConfigError(f"{spot} has two sources: {' and '.join(named)}", hint="keep one")
    if not named:
        return EnvironmentSource()
    value = fields[named[0]]
    match named[0], value:
        case "env", str() if value:
            return EnvironmentSource(value)
        case "file", str() if value:
            return FileSource(Path(value))
        case "keyring", True:
            return KeyringSource()
        case "keyring", str() if value:
            return KeyringSource(service=value)
        case "command", list():
            argv = cast("list[object]", value)
            if argv and all(isinstance(part, str) for part in argv):
                return CommandSource(tuple(cast("list[str]", argv)))
        case _:
            pass
    form = "a list of strings" if named[0] == "command" else "a string"
    raise ConfigError(f"{spot}.{named[0]} is {form}")


def _names(value: object, spot: str) -> frozenset[str]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        names = list(cast("Sequence[object]", value))
        if all(isinstance(name, str) and name for name in names):
            return frozenset(cast("list[str]", names))
    raise ConfigError(f"{spot} is a list of names", hint='["*"] means any')


def _denied(name: str, to: Destination) -> PermissionDenied:
    return PermissionDenied(
        f"the secret {name!r} may not go to {to}",
        hint="its owner lists the places in [secrets." + name + "], and the default is nowhere",
    )
