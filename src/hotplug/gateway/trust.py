"""A project's `hotplug.toml` counts only once its owner trusted it, as it stands: it names commands that are run.

What was trusted is remembered by path and digest in the user's state folder; a change asks again. Even then such a file
may only add servers and narrow access. It never replaces an owner's server, and sets no secret, thread or store.

A change takes its servers away and leaves what it narrowed: a limit that an edit could lift would be none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, cast

from hotplug.errors import ConfigError, StoreError
from hotplug.gateway.config import GatewayConfig, Narrowing, Notice, ServerConfig
from hotplug.gateway.config_file import (
    CONFIG_NAME,
    Project,
    access_of,
    default_config_path,
    narrowing_of,
    parse_project,
    read_config,
)
from hotplug.gateway.narrowing import NOTHING
from hotplug.store.settings import SETTINGS_NAME, SETTINGS_VARIABLE

__all__ = [
    "ProjectFile",
    "Standing",
    "Trust",
    "Trusted",
    "default_trust_path",
    "find_projects",
    "load_config",
    "read_project",
]

Standing = Literal["trusted", "changed", "unknown"]
"""`changed`: it was trusted, and says something else now."""

_SCHEMA: Final = "hotplug.trusted/1"
_LIMIT: Final = 8 * 1024 * 1024
_PATIENCE: Final = 10.0
_DEEPEST: Final = 256


def default_trust_path() -> Path:
    """Where it is remembered: `trusted.json` in the user's state folder."""
    import platformdirs

    return Path(platformdirs.user_state_dir("hotplug", appauthor=False)) / "trusted.json"


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project's file as it was at one moment: what is judged is what is used.

    Args:
        path: Links followed.
        data: Its bytes.
    """

    path: Path
    data: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    def parse(self) -> Project:
        """What it says.

        Raises:
            ConfigError: It isn't TOML.
        """
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ConfigError(f"{self.path} is not UTF-8") from None
        return parse_project(text, path=self.path)

    def access(self) -> Any:
        """Its `[access]` as JSON; None where it has none, or isn't TOML."""
        try:
            return access_of(self.data.decode("utf-8-sig"), path=self.path)
        except (ConfigError, UnicodeDecodeError):
            return None


def read_project(path: Path) -> ProjectFile:
    """A project's file, read once.

    Raises:
        ConfigError: There is none, or it can't be read.
    """
    try:
        found = path.expanduser().resolve(strict=True)
        if not found.is_file():
            raise ConfigError(f"{path} is no file", hint=f"name the {CONFIG_NAME} in it")
        if found.stat().st_size > _LIMIT:
            raise ConfigError(f"{path} is larger than {_LIMIT // 1024 // 1024} MiB; that is no configuration file")
        return ProjectFile(found, found.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror or type(error).__name__}") from None


@dataclass(frozen=True, slots=True)
class Trusted:
    """A file that was trusted.

    Args:
        digest: Of what it said then.
        at: When.
        access: Its `[access]` as it stood then, which holds until it is trusted again or forgotten; None: it had none.
    """

    path: Path
    digest: str
    at: datetime
    access: Any = None


class Trust:
    """Which projects' files the owner trusts. Any number of processes may use it at once.

    Args:
        path: Where it is remembered; default: `default_trust_path()`.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = default_trust_path() if path is None else path

    def list(self) -> tuple[Trusted, ...]:
        """What was trusted, by path.

        Raises:
            StoreError: The memory can't be read: then nothing is trusted.
        """
        return tuple(sorted(self._read().values(), key=lambda one: str(one.path)))

    def standing(self, file: ProjectFile) -> Standing:
        """Whether a file is trusted as it stands.

        Raises:
            StoreError: The memory can't be read.
        """
        known = self.of(file.path)
        if known is None:
            return "unknown"
        return "trusted" if known.digest == file.digest else "changed"

    def of(self, path: Path) -> Trusted | None:
        """What was trusted under a path; None: nothing.

        Raises:
            StoreError: The memory can't be read.
        """
        known = self._read()
        return known.get(str(path.expanduser().resolve())) or known.get(str(path.expanduser().absolute()))

    def add(self, file: ProjectFile) -> Trusted:
        """Trust a file as it stands.

        Raises:
            StoreError: That can't be remembered.
        """
        new = Trusted(file.path, file.digest, datetime.now(UTC).replace(microsecond=0), file.access())
        self._change({str(file.path): new})
        return new

    def forget(self, path: Path) -> bool:
        """Trust a file no more; whether it was trusted.

        Raises:
            StoreError: That can't be remembered.
        """
        names = {str(path.expanduser().resolve()), str(path.expanduser().absolute())}
        known = names & self._read().keys()
        if known:
            self._change(dict.fromkeys(known))
        return bool(known)

    def _read(self) -> dict[str, Trusted]:
        from hotplug.store.whole import as_file_errors, read_content

        with as_file_errors(self.path, "read"):
            content = read_content(self.path)
        if content is None:
            return {}
        try:
            document: Any = json.loads(content.data)
            if document["schema"] != _SCHEMA:
                raise StoreError(f"{self.path} is of another build: {document['schema']!r}", hint="use that build")
            files = cast("Mapping[str, Mapping[str, Any]]", document["files"])
            return {
                name: Trusted(Path(name), entry["digest"], datetime.fromisoformat(entry["at"]), entry.get("access"))
                for name, entry in files.items()
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise StoreError(
                f"{self.path} can't be read as what was trusted", hint="remove it, and trust your projects' files again"
            ) from None

    def _change(self, changes: Mapping[str, Trusted | None]) -> None:
        from hotplug.store.whole import as_file_errors, locked, read_content, remove_leftovers, staged, sync_folder

        with as_file_errors(self.path, "saved"):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self.path.with_name(f"{self.path.name}-lock"), patience=_PATIENCE) as held:
                if not held:
                    raise StoreError(f"{self.path} can't be saved: somebody else is saving it", hint="try again")
                remove_leftovers(self.path.parent, self.path.name)
                known = self._read()
                for name, one in changes.items():
                    if one is None:
                        known.pop(name, None)
                    else:
                        known[name] = one
                files = {name: _entry(one) for name, one in sorted(known.items())}
                text = json.dumps({"schema": _SCHEMA, "files": files}, indent=2, ensure_ascii=False) + "\n"
                content = read_content(self.path)
                with staged(self.path, text.encode(), like=content and content.status) as temporary:
                    temporary.replace(self.path)
                    sync_folder(self.path.parent)


def _entry(one: Trusted) -> dict[str, Any]:
    entry: dict[str, Any] = {"digest": one.digest, "at": one.at.isoformat()}
    return entry if one.access is None else {**entry, "access": one.access}


def find_projects(start: Path, *, owner: Path | None = None) -> tuple[Path, ...]:
    """Every `hotplug.toml` from a folder upward, the nearest first, but for the owner's own."""
    found: list[Path] = []
    here = start.absolute()
    for folder in (here, *here.parents)[:_DEEPEST]:
        path = folder / CONFIG_NAME
        if path.is_file() and not (owner is not None and _same(path, owner)):
            found.append(path)
    return tuple(found)


def load_config(path: Path | None = None, *, start: Path | None = None, trust: Trust | None = None) -> GatewayConfig:
    """The owner's file, and what trusted files of projects add to it and take away.

    Args:
        path: The owner's file; default: `default_config_path()`. One that isn't there reads as empty, unless it was
            named here. The access settings of one that is named here are in `settings.json` beside it, unless
            `HOTPLUG_SETTINGS` names others.
        start: Where to look upward from for projects' files; None: nowhere.
        trust: What is trusted; default: the user's own memory of it.

    Raises:
        ConfigError: The owner's file can't be read, or isn't TOML, or was named and isn't there.
    """
    if path is not None and not path.expanduser().exists():
        raise ConfigError(f"there is no file {path}", hint="hotplug init writes one")
    owner = default_config_path() if path is None else path.expanduser()
    # Beside a file that was named lie its own settings: another user's, or a try's, are not the owner's everyday ones.
    beside = None if path is None or os.environ.get(SETTINGS_VARIABLE) else owner.parent / SETTINGS_NAME
    config = read_config(owner, settings=beside)
    if start is None:
        return config
    known = trust or Trust()
    found = find_projects(start, owner=owner)
    for path in found:
        config = _with_project(config, path, known)
    return _with_gone(config, start, found, known)


def _with_gone(config: GatewayConfig, start: Path, found: Collection[Path], trust: Trust) -> GatewayConfig:
    """What trusted files that aren't there any more narrowed goes on to hold, as after any other change."""
    try:
        trusted = {one.path: one for one in trust.list() if one.access is not None}
    except StoreError:
        # Where there is a file, that was told; where there is none, nobody knows of any.
        return config
    here = start.absolute()
    for folder in (here, *here.parents)[:_DEEPEST]:
        path = folder / CONFIG_NAME
        one = trusted.get(path) or trusted.get(path.resolve())
        if one is None or path in found or path.exists():
            continue
        config = replace(config, narrowing=(*config.narrowing, narrowing_of(one.access, one.path)[0]))
        text = "is gone, but what it narrowed when it was trusted holds"
        config = _noticed(config, Notice(str(path), text, f"hotplug trust --forget {path}"))
    return config


def _with_project(config: GatewayConfig, path: Path, trust: Trust) -> GatewayConfig:
    """Everything that goes wrong with a project's file costs that file; but no limit that it set."""
    try:
        known = trust.of(path)
    except StoreError as error:
        # It may have been trusted, so what it narrows counts; that of another's file harms nobody.
        config = replace(config, narrowing=(*config.narrowing, *_as_it_stands(path)))
        return _noticed(
            config, Notice(str(path), f"counts for nothing but what it narrows: {error.message}", error.hint)
        )
    limits = known is not None and known.access is not None
    before = (narrowing_of(known.access, known.path)[0],) if known is not None and limits else ()
    but = ", but for what it narrowed when it was trusted" if limits else ""
    held = replace(config, narrowing=(*config.narrowing, *before))
    try:
        file = read_project(path)
        project = file.parse() if known is not None and known.digest == file.digest else None
    except ConfigError as error:
        return _noticed(held, Notice(str(path), f"counts for nothing{but}: {error.message}", error.hint))
    if project is None:
        why = "isn't trusted" if known is None else "changed since it was trusted"
        return _noticed(
            held, Notice(str(path), f"{why}, and counts for nothing{but}", f"look at it, then: hotplug trust {path}")
        )
    servers: dict[str, ServerConfig] = dict(config.servers)
    broken = dict(config.broken)
    notices = list(project.warnings)
    for name in (*project.servers, *project.broken):
        if name in servers or name in broken:
            whose = "your own file" if (name in config.broken or _is_owners(config, name)) else "a nearer file"
            notices.append(
                Notice(f"{path}: servers.{name}", f"is ignored: {whose} has a server of that name", "rename it")
            )
        elif name in project.servers:
            servers[name] = project.servers[name]
        else:
            broken[name] = project.broken[name]
    narrowing: tuple[Narrowing, ...] = config.narrowing
    if project.narrowing is not None:
        narrowing = (*narrowing, project.narrowing)
    return replace(config, servers=servers, broken=broken, narrowing=narrowing, warnings=(*config.warnings, *notices))


def _as_it_stands(path: Path) -> tuple[Narrowing, ...]:
    """What a file narrows, trusted or not; one that can't be read leaves nothing."""
    try:
        found = read_project(path).parse().narrowing
    except ConfigError:
        return (Narrowing(path, NOTHING),)
    return () if found is None else (found,)


def _is_owners(config: GatewayConfig, name: str) -> bool:
    return name in config.servers and config.servers[name].file == config.path


def _noticed(config: GatewayConfig, notice: Notice) -> GatewayConfig:
    return replace(config, warnings=(*config.warnings, notice))


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
