"""The files that a gateway is set up by, read again when one of them changes while it runs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final, Protocol

from hotplug.connect.secrets import Destination, Secrets, SecretValue
from hotplug.errors import ConfigError, HotplugError
from hotplug.gateway.config import GatewayConfig, Notice
from hotplug.gateway.config_file import CONFIG_NAME, default_config_path
from hotplug.gateway.trust import default_trust_path, load_config

__all__ = ["ConfigFiles", "LiveSecrets", "ReadsConfig", "Reloading"]

_DEEPEST: Final = 256
_logger = logging.getLogger(__name__)

Stamp = tuple[tuple[int, ...] | None, ...]


class ReadsConfig(Protocol):
    """Reads a configuration, and tells cheaply whether it may be another one now."""

    def stamp(self) -> Stamp:
        """Another one whenever a file was written, made or removed."""
        ...

    def load(self) -> GatewayConfig:
        """What the files say.

        Raises:
            HotplugError: They can't be used.
        """
        ...


class ConfigFiles:
    """The owner's file, and those of the projects around a folder.

    Args:
        path: The owner's file; None: where it is by default.
        start: Where to look upward from for projects' files; None: nowhere.
    """

    def __init__(self, path: Path | None, start: Path | None) -> None:
        self._path = path
        self._start = start
        self._there = False

    def stamp(self) -> Stamp:
        owner = default_config_path() if self._path is None else self._path.expanduser()
        watched = [owner, default_trust_path()]
        if self._start is not None:
            here = self._start.absolute()
            watched += [folder / CONFIG_NAME for folder in (here, *here.parents)[:_DEEPEST]]
        return tuple(_state(path) for path in watched)

    def load(self) -> GatewayConfig:
        """What they say; see `load_config`.

        Raises:
            ConfigError: As `load_config`; or the owner's file, which was there before, is gone.
        """
        found = load_config(self._path, start=self._start)
        if self._there and found.path is None:
            raise ConfigError("the file is gone")
        self._there = found.path is not None
        return found


class Reloading:
    """Looks whether there is something new to go by.

    Args:
        files: Where it would stand.
        config: What was read of them last.
        stamp: From before that.
    """

    def __init__(self, files: ReadsConfig, config: GatewayConfig, stamp: Stamp) -> None:
        self._files = files
        self._seen = stamp
        self._moving: Stamp | None = None
        self._noticed: frozenset[Notice] = frozenset(config.warnings)
        self._broken = {name: str(error) for name, error in config.broken.items()}

    def look(self) -> GatewayConfig | None:
        """A changed configuration; None where there is none, or none that can be used: then a warning says why.

        A change counts once two looks find it the same: an editor may be in the middle of it.
        """
        stamp = self._files.stamp()
        if stamp == self._seen:
            self._moving = None
            return None
        if stamp != self._moving:
            self._moving = stamp
            return None
        self._seen, self._moving = stamp, None
        try:
            found = self._files.load()
        except HotplugError as error:
            _logger.warning("the configuration can't be used now, so it stays as it was: %s", error)
            return None
        for notice in found.warnings:
            if notice not in self._noticed:
                _logger.warning("%s", notice)
        for name, error in found.broken.items():
            if self._broken.get(name) != str(error):
                _logger.warning("the server %s can't be used: %s", name, error)
        self._noticed = frozenset(found.warnings)
        self._broken = {name: str(error) for name, error in found.broken.items()}
        return found


class LiveSecrets:
    """The secrets of whatever configuration holds now.

    Args:
        current: Those; may be set.
    """

    def __init__(self, current: Secrets) -> None:
        self.current = current

    async def get(self, name: str, to: Destination) -> SecretValue:
        """As that of `current`."""
        return await self.current.get(name, to)


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
