"""One server's entry of `hotplug.toml`, checked: what starts it, and the keys of ours."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

from hotplug.connect import (
    CommandTarget,
    EntryTarget,
    HttpTarget,
    NamedTarget,
    NativeTarget,
    PackageTarget,
    PythonTarget,
    Target,
    parse_target,
)
from hotplug.connect.secrets import Held, held
from hotplug.connect.target import entry_target
from hotplug.errors import ConfigError
from hotplug.gateway.config import OAuthSettings, ServerConfig
from hotplug.gateway.oauth_entry import read_oauth
from hotplug.gateway.plain import argv_holds_secret, looks_secret, url_holds_secret

__all__ = [
    "RESERVED_NAMES",
    "SERVER_KEYS",
    "Noting",
    "beside",
    "held_by",
    "kind_of",
    "near_words",
    "read_server",
    "server_name",
]

RESERVED_NAMES: Final = ("connection", "hotplug")
"""What no server may be called: the gateway's own tools begin so."""


_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]{0,64}")
_PROFILE: Final = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)*(?:@[^\s@]+)?")
_LONGEST: Final = 7 * 24 * 3600.0

_REMOTE: Final = (HttpTarget, NamedTarget)
_LAUNCH: Final = ("target", "command", "args", "env", "cwd", "url", "serverUrl", "headers", "type", "transport")
_OURS: Final = (
    "profile",
    "profiles",
    "projection",
    "prefix",
    "share",
    "start_timeout",
    "call_timeout",
    "idle",
    "oauth",
    "disabled",
)
_THEIRS: Final = ("enabled", "description", "version", "gallery", "alwaysAllow", "autoApprove", "dev")
"""Keys of other clients that say nothing to a gateway (but for `enabled`), so that their files work unchanged."""

SERVER_KEYS: Final = (*_LAUNCH, *_OURS, *_THEIRS)
_KEY_FIXES: Final = {
    "envFile": "it isn't read: name its variables in env",
    "timeout": "clients don't agree on its unit: call_timeout is in seconds",
    "allow": "what threads may use stands in the access settings: hotplug access",
    "deny": "what threads may use stands in the access settings: hotplug access",
    "tools": "what threads may use stands in the access settings: hotplug access",
}


class Noting(Protocol):
    """Takes what is odd about a file: at which key, what, and what to do."""

    def __call__(self, key: str, message: str, fix: str | None = None, *, secret: bool = False) -> None: ...


def server_name(name: str) -> str | None:
    """Why a server can't be called so; None where it can."""
    if name.lower() in RESERVED_NAMES:
        return f"{name!r} is a name of the gateway's own"
    if _NAME.fullmatch(name) is None:
        return "a server's name has 1 to 64 of a-z A-Z 0-9 - _ . and begins with a letter, digit or _"
    return None


def near_words(word: str, known: Sequence[str]) -> str | None:
    """`did you mean 'x'?`, or None where nothing known is close."""
    import difflib

    close = difflib.get_close_matches(word, known, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else None


def beside(file: Path, path: str) -> str:
    """A path as seen from where a file lies."""
    expanded = Path(path).expanduser()
    return str(expanded if expanded.is_absolute() else file.absolute().parent / expanded)


def read_server(name: str, entry: object, *, path: Path, notice: Noting) -> ServerConfig:
    """The server of an entry. Pure.

    Args:
        path: The file that it stands in.
        notice: Takes what is odd and stops nothing.

    Raises:
        ConfigError: The entry can't be used; says the file, the server and the key, never a secret.
    """
    return _Entry(path, notice).server(name, entry)


class _Entry:
    def __init__(self, path: Path, notice: Noting) -> None:
        self.path = path
        self.notice = notice

    def server(self, name: str, entry: object) -> ServerConfig:
        where = f"{self.path}: server {name!r}: "
        problem = server_name(name)
        if problem is not None:
            raise ConfigError(f"{where}{problem}", hint="rename it")
        if not isinstance(entry, Mapping):
            raise ConfigError(f"{where}an entry is a table, not {kind_of(entry)}")
        table = cast("Mapping[str, Any]", entry)
        for key in table:
            if key not in SERVER_KEYS:
                fix = _KEY_FIXES.get(key) or near_words(key, SERVER_KEYS) or "it is ignored"
                self.notice(f"servers.{name}.{key}", "is a key that isn't known", fix)
        ours = _Ours(table, where)
        target = self.target(name, table, where)
        self.plain_secrets(name, target)
        oauth = read_oauth(table.get("oauth"), where)
        if oauth is not None and not isinstance(target.launch if isinstance(target, EntryTarget) else target, _REMOTE):
            self.notice(f"servers.{name}.oauth", "means nothing to a server without a URL", "leave it out")
        return ServerConfig(
            name=name,
            target=target,
            profiles=ours.profiles(),
            projection=self.projection(ours.text("projection")),
            prefix=ours.prefix(),
            share=ours.share(),
            start_timeout=ours.seconds("start_timeout", 30.0) or 30.0,
            call_timeout=ours.seconds("call_timeout", None),
            idle=ours.seconds("idle", 600.0),
            oauth=oauth is not None,
            oauth_settings=oauth or OAuthSettings(),
            disabled=ours.switch("disabled") or not ours.switch("enabled", default=True),
            file=self.path,
        )

    def target(self, name: str, table: Mapping[str, Any], where: str) -> Target:
        if "target" not in table:
            cwd = table.get("cwd")
            launch = dict(table)
            if isinstance(cwd, str):
                launch["cwd"] = beside(self.path, cwd)
            return entry_target(launch, name=name, file=str(self.path))
        clash = [key for key in ("command", "args", "url", "serverUrl") if key in table]
        if clash:
            raise ConfigError(f"{where}has both target and {clash[0]}", hint="an entry has one of them")
        value = table["target"]
        if not isinstance(value, str | list):
            raise ConfigError(f"{where}target is a string or a list of arguments, not {kind_of(value)}")
        if isinstance(value, str) and looks_secret("", value):
            raise ConfigError(f"{where}target is a secret, and no server", hint="keys belong into env or headers")
        try:
            found = self.located(parse_target(cast("str | list[Any]", value)))
            return self.with_settings(found, table)
        except ConfigError as error:
            raise ConfigError(f"{where}{error.message}", hint=error.hint) from None

    def located(self, target: Target) -> Target:
        match target:
            case NamedTarget(file=None):
                raise ConfigError(
                    f"target is a server, and {str(target)!r} is only the name of one",
                    hint="name another file's server as file.json#name, a program after command",
                )
            case NamedTarget(file=str() as file):
                return replace(target, file=beside(self.path, file))
            case NativeTarget(path=path) if path != ":memory:":
                return replace(target, path=beside(self.path, path))
            case PythonTarget(source=source) if target.is_file:
                return replace(target, source=beside(self.path, source))
            case _:
                return target

    def with_settings(self, target: Target, table: Mapping[str, Any]) -> Target:
        """The target with the variables, headers and folder that stand beside it."""
        env = _held_table(table.get("env"), "env")
        headers = _held_table(table.get("headers"), "headers")
        cwd = table.get("cwd")
        if cwd is not None and not isinstance(cwd, str):
            raise ConfigError(f"cwd is a string, not {kind_of(cwd)}")
        refused = [key for key in ("env", "headers", "cwd") if key in table]
        match target:
            case CommandTarget():
                target = replace(target, env={**target.env, **env}, cwd=beside(self.path, cwd) if cwd else target.cwd)
                refused = [key for key in refused if key == "headers"]
            case PackageTarget():
                target = replace(target, env={**target.env, **env})
                refused = [key for key in refused if key != "env"]
            case HttpTarget():
                target = replace(target, headers={**target.headers, **headers})
                refused = [key for key in refused if key != "headers"]
            case _:
                pass
        if refused:
            raise ConfigError(f"{refused[0]} means nothing to the target {target}", hint="leave it out")
        return target

    def projection(self, name: str | None) -> str | None:
        return beside(self.path, name) if name is not None and name.endswith((".yaml", ".yml")) else name

    def plain_secrets(self, name: str, target: Target) -> None:
        for key, value in held_by(target).items():
            if isinstance(value, str) and looks_secret(key.partition(".")[2], value):
                self.notice(
                    f"servers.{name}.{key}",
                    "looks like a secret that stands here in plain",
                    f'write {_suggested(key, value)}, with a table [secrets.NAME] that has servers = ["{name}"]',
                    secret=True,
                )
            elif isinstance(value, str) and (found := re.search(r"\$\{[^}]*\}", value)):
                self.notice(
                    f"servers.{name}.{key}", f"holds {found[0]}, which isn't filled in here", "write secret:NAME"
                )
        launch = target.launch if isinstance(target, EntryTarget) else target
        argv = (
            launch.argv
            if isinstance(launch, CommandTarget)
            else launch.args
            if isinstance(launch, PackageTarget)
            else ()
        )
        if argv_holds_secret(argv):
            text = "holds what looks like a secret in plain, and other users can see a command line"
            self.notice(f"servers.{name}", text, "most servers take it from a variable: env", secret=True)
        if isinstance(launch, HttpTarget) and url_holds_secret(launch.url):
            text = "holds what looks like a secret in plain in its URL"
            self.notice(f"servers.{name}", text, "most servers take it from a header: headers", secret=True)


class _Ours:
    """The keys of ours in one entry; one that is wrong costs the entry."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._table = table
        self._where = where

    def text(self, key: str) -> str | None:
        value = self._table.get(key)
        if value is None or (isinstance(value, str) and value):
            return value
        raise self._wrong(key, "a string")

    def switch(self, key: str, *, default: bool = False) -> bool:
        value = self._table.get(key, default)
        if isinstance(value, bool):
            return value
        raise self._wrong(key, "true or false")

    def seconds(self, key: str, default: float | None) -> float | None:
        value = self._table.get(key, default)
        if value is None or (value is False and key != "start_timeout"):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            never = "" if key == "start_timeout" else ", or false for never"
            raise self._wrong(key, f"a number of seconds{never}")
        if not 0 < value <= _LONGEST:
            raise ConfigError(f"{self._where}{key} is {value:g}", hint=f"more than 0 and at most {_LONGEST:g} seconds")
        return float(value)

    def profiles(self) -> tuple[str, ...]:
        one, many = self._table.get("profile"), self._table.get("profiles")
        if one is not None and many is not None:
            raise ConfigError(f"{self._where}has both profile and profiles", hint="profiles takes a list")
        found: list[Any] = cast("list[Any]", many) if isinstance(many, list) else [one] if one is not None else []
        if many is not None and not isinstance(many, list):
            raise self._wrong("profiles", "a list of profiles' names")
        for name in found:
            if not isinstance(name, str) or _PROFILE.fullmatch(name) is None:
                shown = "a secret" if isinstance(name, str) and looks_secret("", name) else repr(name)
                raise ConfigError(
                    f"{self._where}{shown} is no profile's name", hint='as in profile = "calendar", or "calendar@^1"'
                )
        return tuple(dict.fromkeys(cast("list[str]", found)))

    def prefix(self) -> str | None:
        value = self._table.get("prefix")
        if value is None or (isinstance(value, str) and _PREFIX.fullmatch(value)):
            return value
        raise self._wrong("prefix", 'of a-z A-Z 0-9 - _ ., or "" for none')

    def share(self) -> Literal["thread", "all"] | None:
        value = self._table.get("share")
        if value is None or value in ("thread", "all"):
            return value
        raise self._wrong("share", '"thread" or "all"')

    def _wrong(self, key: str, form: str) -> ConfigError:
        return ConfigError(f"{self._where}{key} is {form}, not {kind_of(self._table.get(key))}")


def held_by(target: Target) -> Mapping[str, Held]:
    """The variables and headers that a target sets, as `env.NAME` and `headers.NAME`."""
    launch = target.launch if isinstance(target, EntryTarget) else target
    match launch:
        case CommandTarget() | PackageTarget():
            return {f"env.{name}": value for name, value in launch.env.items()}
        case HttpTarget():
            return {f"headers.{name}": value for name, value in launch.headers.items()}
        case _:
            return {}


def _held_table(value: object, where: str) -> dict[str, Held]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} is a table of strings, not {kind_of(value)}")
    return {str(name): held(item, f"{where}.{name}") for name, item in cast("Mapping[object, object]", value).items()}


def _suggested(key: str, value: str) -> str:
    scheme = value.partition(" ")[0]
    named = key.startswith("headers.") and " " in value and scheme.isalpha()
    return f'"{scheme} secret:NAME"' if named else '"secret:NAME"'


def kind_of(value: object) -> str:
    """What a person calls a TOML value."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string" if value else "an empty string"
        case list():
            return "a list"
        case Mapping():
            return "a table"
        case _:
            return "a time"
