"""Publishing a profile: its document, and its line in the lock that makes name and version stand for one digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotplug.cli.files import read_text
from hotplug.cli.lookup import Found
from hotplug.cli.profile_diff import compare
from hotplug.errors import ProfileError

if TYPE_CHECKING:
    from hotplug.profile.lock import Lock

__all__ = ["LOCK", "Publication", "plan"]

LOCK = "profiles.lock"


@dataclass(frozen=True)
class Publication:
    """What publishing writes: the whole text of each file."""

    document: Path
    lock: Path
    texts: Mapping[Path, str]
    changed: tuple[Path, ...]
    """The files that don't hold their text yet."""


def plan(found: Found, folder: Path) -> Publication:
    """What publishing `found` in `folder` would write. Nothing is written here.

    A profile that came from a file in that folder keeps that file; any other becomes `NAME.profile.json`,
    or `profile.json` in a folder of the profile's own name.

    Raises:
        ProfileError: The lock has another digest for this name and version, or the version is too low for what changed.
    """
    from hotplug.profile.lock import Lock, publish

    definition = found.definition
    lock_path = folder / LOCK
    document_path = _document_path(found, folder)
    lock = _read_lock(lock_path) or Lock()
    locked = publish(lock, "profiles", definition.name, definition.version, definition.digest)
    old = _old_document(document_path)
    if old is not None:
        _check_version(old, found.document, document_path)
    texts = {lock_path: locked.dump()}
    if old is None or old != found.document:
        texts[document_path] = json.dumps(found.document, indent=2, ensure_ascii=False) + "\n"
    changed = tuple(path for path, text in texts.items() if read_text(path) != text)
    return Publication(document_path, lock_path, texts, changed)


def _document_path(found: Found, folder: Path) -> Path:
    origin = Path(found.origin)
    if origin.suffix == ".json" and origin.parent.resolve() == folder.resolve():
        return origin
    name = found.definition.name
    return folder / ("profile.json" if folder.resolve().name == name else f"{name}.profile.json")


def _read_lock(path: Path) -> Lock | None:
    from hotplug.profile.lock import Lock

    text = read_text(path)
    if text is None:
        return None
    try:
        return Lock.parse(text)
    except ProfileError as error:
        raise ProfileError(f"{path}: {error.message}", hint=error.hint) from error


def _old_document(path: Path) -> Mapping[str, Any] | None:
    from hotplug.profile.canonical import parse

    text = read_text(path)
    if text is None:
        return None
    try:
        return parse(text)
    except ProfileError as error:
        raise ProfileError(f"{path}: {error.message}", hint=error.hint) from error


def _check_version(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    """The version must have grown as much as what changed asks for; what stands in the folder is the older one."""
    comparison = compare(old, new)
    if old != new and not comparison.fits:
        raise ProfileError(
            f"{new['name']} {new['version']} is too low after {old['version']} in {path}: {comparison.verdict}",
            hint=f"the version must be {comparison.least} at least; `hotplug profile diff {path} NEW` says why",
        )
