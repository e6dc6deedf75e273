"""The file of access settings: read whatever is in it, saved strictly, one patch at a time.

Beside `settings.json` lies `settings.json-versions`: the lock, and the last hundred versions, each as it was saved or
first seen. If the file itself can't be read any more, the newest of them that can stands in, to read only. The lock
holds among the processes of one machine.
"""

from __future__ import annotations

import codecs
import contextlib
import logging
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from hotplug.access import Document, Host, PatchRefused, Role, Settings, apply_patch, prune_picks, read_settings, write
from hotplug.errors import ConfigError, Conflict, StoreError
from hotplug.store.overlap import overlapping
from hotplug.store.versions import Entry, Versions, version_of
from hotplug.store.whole import (
    Content,
    as_file_errors,
    locked,
    read_content,
    remove_leftovers,
    staged,
    sync_folder,
    target_of,
)

__all__ = ["SETTINGS_NAME", "SETTINGS_VARIABLE", "Kept", "Looked", "Saved", "SettingsFile", "default_settings_path"]

SETTINGS_NAME: Final = "settings.json"
SETTINGS_VARIABLE: Final = "HOTPLUG_SETTINGS"
"""The environment variable that names another settings file."""

_PATIENCE: Final = 10.0
_TRIES: Final = 10
_SETTLED_NS: Final = 2_500_000_000  # some file systems count by two seconds
_logger = logging.getLogger("hotplug.settings")


def default_settings_path() -> Path:
    """The settings file where nobody names one: what `HOTPLUG_SETTINGS` says, else the user's `settings.json`.

    It lies in the user's folder of configuration, beside the user's own `hotplug.toml`. A file in the working directory
    is never taken: whoever wrote it may not be the owner.
    """
    named = os.environ.get(SETTINGS_VARIABLE)
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_config_dir("hotplug", appauthor=False)) / SETTINGS_NAME


@dataclass(frozen=True)
class Looked:
    """What a settings file says at one moment."""

    settings: Settings
    version: str
    """Of what was read: the file's own content, or the last good copy's; `none` where there is neither."""
    problem: str | None = None
    """Why the file itself could not be used; a save is refused for as long as there is one."""
    fix: str | None = None

    @property
    def stands_in(self) -> bool:
        """Whether these are the last good copy's settings, in place of the file's."""
        return self.settings.read_only


@dataclass(frozen=True)
class Saved:
    """A save that was done."""

    version: str
    previous: str
    """The version that it replaced, which is kept; `none` where there was no file."""
    changed: bool
    """False where the file held all of that already: nothing was written then."""


@dataclass(frozen=True)
class Kept:
    """A version that is kept."""

    version: str
    kept: datetime
    current: bool
    readable: bool


@dataclass(frozen=True)
class _Seen:
    """What was read last; `kept` if nothing more is to be kept of it, `settled` if no later write can look the same."""

    identity: tuple[int, ...]
    data: bytes
    settings: Settings
    kept: bool
    settled: bool


class SettingsFile:
    """The access settings in a file. Any number of processes and threads may use it at once.

    Args:
        path: The file; one that isn't there reads as empty, and is made by the first save. A link is followed.
        agent_writable: The keys that a save in an agent's role may change.
    """

    def __init__(self, path: Path | str, *, agent_writable: Collection[str] = ()) -> None:
        self.path = Path(path)
        self._agent_writable = frozenset(agent_writable)
        self._seen: _Seen | None = None
        self._absent: Settings | None = None
        self._text = str(self.path)
        self._good: Looked | None = None
        self._told: str | None = None

    def read(self) -> Settings:
        """The settings, for use: those of the file as it is now, or, if it can't be read, of the last good copy.

        A file that isn't JSON, can't be opened, or is gone though it was there gives the copy, and a warning in the log
        (`hotplug.settings`) each time that the reason is a new one. Without a copy the settings are unreadable, and
        every thread is refused. A good file is kept as the copy to come, where the folder may be written. While the
        file stays the same, so does the object that is given, and asking again costs one look at the file's times.
        """
        seen = self._seen
        if seen is not None and seen.settled and self._identity() == seen.identity:
            return seen.settings
        if self._absent is not None and self._is_absent():
            return self._absent
        self._seen = self._absent = None
        began = time.time_ns()
        if seen is not None and seen.kept and (same := self._unchanged(seen, began)) is not None:
            self._seen = same
            return same.settings
        content, looked = self._look(seen)
        if looked.problem is not None:
            if looked.problem != self._told:
                self._told = looked.problem
                instead = f"version {looked.version} is used instead" if looked.stands_in else "every thread is refused"
                _logger.warning("%s: %s; %s", looked.problem, instead, looked.fix)
            return looked.settings
        self._told = None
        self._good = looked
        if content is not None:
            kept = self._keep(content.data)
            settled = kept and _is_old(content, began)
            self._seen = _Seen(content.identity, content.data, looked.settings, kept=kept, settled=settled)
        else:
            self._absent = looked.settings
        return looked.settings

    def _is_absent(self) -> bool:
        """Whether there is surely still neither a file, nor a link to one, nor a version of it."""
        path = self._text
        return not os.path.lexists(path) and not os.path.lexists(f"{path}-versions")

    def _unchanged(self, seen: _Seen, now: int) -> _Seen | None:
        """What was seen, where it still stands there, word for word; whoever asks often shall wait for no more."""
        try:
            content = read_content(target_of(self.path))
        except OSError:
            return None
        if content is None or content.data != seen.data:
            return None
        return replace(seen, identity=content.identity, settled=_is_old(content, now))

    def look(self) -> Looked:
        """The same as `read`, told in full, and nothing is kept or logged."""
        return self._look()[1]

    def save(
        self,
        patch: Mapping[str, object],
        *,
        role: Role,
        host: Host | None = None,
        based_on: str | None = None,
        now_unused: Collection[str] = (),
    ) -> Saved:
        """Apply one patch to the file as it is now: whole, or not at all. After this it stays, also after a power cut.

        Args:
            patch: The settings to change; maps entry by entry, where None removes one.
            role: Who asks. An agent may change only what `agent_writable` names.
            host: Whose groups exist; None: groups aren't checked.
            based_on: The version that the caller had seen; what changed since then in the file is no
                obstacle, unless it is what this patch changes too.
            now_unused: Threads that the host says nobody uses now: a refusal for want of room names one of them.

        Raises:
            PatchRefused: Something in the patch can't be saved; it names the setting and the fix.
            Conflict: Somebody else changed the same setting since `based_on`.
            StoreError: The file can't be read, so nothing is written to it; or it can't be written.
        """

        def change(content: Content | None) -> bytes | None:
            document = self._readable(content)
            changed = apply_patch(
                document, patch, role=role, agent_writable=self._agent_writable, host=host, now_unused=now_unused
            )
            if based_on is not None and based_on != version_of(content and content.data):
                self._check_based_on(based_on, content, patch)
            return _written(document, changed, content)

        return self._replace(change, "saved")

    def prune(self, gone: Collection[str]) -> Saved:
        """Remove the picks of threads that no longer exist, in the host's word alone.

        Args:
            gone: Threads that are closed for good: their ids never come back.

        Raises:
            StoreError: The file can't be read, so nothing is written to it; or it can't be written.
        """

        def change(content: Content | None) -> bytes | None:
            document = self._readable(content)
            return _written(document, document and prune_picks(document, gone), content)

        return self._replace(change, "saved")

    def history(self) -> tuple[Kept, ...]:
        """The versions that are kept, newest first.

        Raises:
            StoreError: They can't be read.
        """
        target = target_of(self.path)
        versions = Versions(target)
        with as_file_errors(versions.folder, "read"):
            content = read_content(target)
            current = version_of(content and content.data)
            seen: dict[str, Kept] = {}
            for entry in reversed(versions.entries()):
                if entry.version not in seen:
                    data = versions.data(entry)
                    good = data is not None and read_settings(data).unreadable is None
                    seen[entry.version] = Kept(entry.version, entry.kept, entry.version == current, good)
        return tuple(seen.values())

    def restore(self, version: str, *, role: Role) -> Saved:
        """Put a kept version in the place of the file, whatever stands there now; that is kept as well.

        Args:
            version: As `history` tells it, or its beginning where only one begins so.

        Raises:
            ConfigError: There is no such version, or it can't be read.
            PatchRefused: It isn't the person who asks.
            StoreError: The file can't be written.
        """
        if role != "person":
            raise PatchRefused("the settings", "only the person can restore a version", "ask the owner to do it")
        versions = Versions(target_of(self.path))
        with as_file_errors(versions.folder, "read"):
            found = [entry for entry in versions.entries() if version and entry.version.startswith(version)]
            data = versions.data(found[-1]) if found else None
        if len({entry.version for entry in found}) != 1:
            many = "several versions begin" if found else "no version begins"
            raise ConfigError(f"{many} with {version!r} in {versions.folder}", hint="`history` lists them")
        if data is None or read_settings(data).unreadable is not None:
            raise ConfigError(f"version {found[-1].version} can't be read itself", hint="`history` says which can")
        return self._replace(lambda _: data, "restored")

    def _replace(self, change: Callable[[Content | None], bytes | None], doing: str) -> Saved:
        for _ in range(_TRIES):
            with as_file_errors(self.path, doing):
                saved = self._try_to_replace(change)
            if saved is not None:
                return saved
        raise StoreError(
            f"{self.path} can't be {doing}: it keeps changing",
            hint="another program writes it; try again when that is done",
        )

    def _try_to_replace(self, change: Callable[[Content | None], bytes | None]) -> Saved | None:
        target = target_of(self.path)
        versions = Versions(target)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        versions.make()
        with locked(versions.lock, patience=_PATIENCE) as held:
            if not held:
                raise StoreError(
                    f"{target} can't be saved: somebody else has been saving it for {_PATIENCE:.0f} seconds",
                    hint="try again; a program that was stopped in the middle of it keeps the others waiting",
                )
            remove_leftovers(target.parent, target.name)
            remove_leftovers(versions.folder)
            before = read_content(target)
            old = before and before.data
            new = change(before)
            if new is None or new == old:
                return Saved(version_of(old), version_of(old), changed=False)
            if old is not None:
                versions.keep(old)
            like = before and before.status
            with versions.keeping(new) as keep, staged(target, new, like=like) as temporary:
                if not self._is_still(target, before):
                    return None
                temporary.replace(target)
                # From here on it is saved: nothing may say otherwise.
                with contextlib.suppress(OSError):
                    keep()
                _confirm(target)
            return Saved(version_of(new), version_of(old), changed=True)

    def _is_still(self, target: Path, before: Content | None) -> bool:
        now = read_content(target)
        return target_of(self.path) == target and (now and now.data) == (before and before.data)

    def _identity(self) -> tuple[int, ...] | None:
        """Of the file that the path means now, links followed."""
        try:
            return Content(b"", os.stat(self._text)).identity  # noqa: PTH116 - asked for with every message
        except OSError:
            return None

    def _look(self, seen: _Seen | None = None) -> tuple[Content | None, Looked]:
        target = target_of(self.path)
        versions = Versions(target)
        try:
            content = read_content(target)
            gone = content is None and bool(versions.entries())
        except OSError as error:
            fix = "let this user read it"
            return None, self._stand_in(versions, f"{self.path} can't be read: {error.strerror or error}", fix)
        if gone:
            fix = f"restore a version of it, or remove {versions.folder} to begin anew"
            return None, self._stand_in(versions, f"{self.path} is gone", fix)
        if content is not None and seen is not None and seen.data == content.data:
            return content, Looked(seen.settings, version_of(content.data))
        settings = read_settings(content and content.data)
        if settings.unreadable is None:
            return content, Looked(settings, version_of(content and content.data))
        problem = f"{self.path} can't be read: {settings.unreadable}"
        return content, self._stand_in(versions, problem, "mend it, or restore a version of it")

    def _stand_in(self, versions: Versions, problem: str, fix: str) -> Looked:
        """The newest good version that is kept, or the one that this process saw last if it couldn't be kept."""
        known: list[Entry] = []
        with contextlib.suppress(OSError):
            known = versions.entries()
        good = self._good
        if good is None or good.version in {entry.version for entry in known}:
            for entry in reversed(known):
                with contextlib.suppress(OSError):
                    data = versions.data(entry)
                    settings = None if data is None else read_settings(data)
                    if settings is not None and settings.unreadable is None:
                        good = Looked(settings, entry.version)
                        break
        if good is None:
            return Looked(Settings(unreadable=problem), "none", problem, fix)
        return Looked(replace(good.settings, unreadable=problem, read_only=True), good.version, problem, fix)

    def _keep(self, data: bytes) -> bool:
        """Keep a good content for bad days; False if it is to be tried again, as somebody is saving just now."""
        target = target_of(self.path)
        versions = Versions(target)
        try:
            entries = versions.entries()
            if entries and entries[-1].version == version_of(data):
                return True
            versions.make()
            with locked(versions.lock, patience=0) as held:
                # Only what still stands there: a version saved in between is the newer one.
                if held and (now := read_content(target)) is not None and now.data == data:
                    versions.keep(data)
                return held
        except OSError:
            return True

    def _readable(self, content: Content | None) -> Document | None:
        """The settings that a save begins from; what can't be read is left alone."""
        versions = Versions(target_of(self.path))
        if content is None and versions.entries():
            raise StoreError(
                f"{self.path} is gone, so nothing is saved to it",
                hint=f"restore a version of it, or remove {versions.folder} to begin anew",
            )
        settings = read_settings(content and content.data)
        if settings.unreadable is not None:
            raise StoreError(
                f"{self.path} can't be read, so nothing is saved to it: {settings.unreadable}",
                hint="mend it, or restore a version of it",
            )
        return settings.document

    def _check_based_on(self, based_on: str, content: Content | None, patch: Mapping[str, object]) -> None:
        versions = Versions(target_of(self.path))
        base = next((versions.data(one) for one in reversed(versions.entries()) if one.version == based_on), None)
        now = version_of(content and content.data)
        if base is None and based_on != "none":
            raise Conflict(
                f"{self.path} changed: the save is based on version {based_on}, which isn't kept, and it is at {now}",
                hint="look at it as it is now, and save again",
            )
        both = overlapping(patch, base, content and content.data)
        if both:
            raise Conflict(
                f"{self.path} changed since version {based_on}: somebody else changed {', '.join(both)} too",
                hint=f"look at it as it is now (version {now}), and save again",
            )


def _written(old: Document | None, new: Document | None, content: Content | None) -> bytes | None:
    """The bytes to be written; None where nothing changes."""
    if new is None or new is old:
        return None
    text = write(new).encode()
    # A file from another editor keeps its mark.
    return codecs.BOM_UTF8 + text if content is not None and content.data.startswith(codecs.BOM_UTF8) else text


def _is_old(content: Content, now: int) -> bool:
    """Whether a later write can't have the same times: a clock can be too coarse to tell two moments apart."""
    return max(content.status.st_mtime_ns, content.status.st_ctime_ns) < now - _SETTLED_NS


def _confirm(target: Path) -> None:
    try:
        sync_folder(target.parent)
    except OSError as error:
        raise StoreError(
            f"{target} is saved, but the disk didn't confirm it: {error.strerror or error}",
            hint="it may be the old one again after a power cut",
        ) from error
