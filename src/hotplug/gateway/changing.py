"""Changes `hotplug.toml` on the disk: whole or not at all, one at a time, and nothing is lost unasked."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hotplug.errors import ConfigError, StoreError
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

__all__ = ["change_config", "keep_secret", "write_config"]

_PATIENCE: Final = 10.0
_MARK: Final = "\ufeff"


def change_config(path: Path, change: Callable[[str], str]) -> bool:
    """Put what `change` makes of the file's text in its place; whether that is another text. A new file is 0600.

    Raises:
        ConfigError: What `change` raises; or the file is no text.
        StoreError: It can't be read or written.
    """
    target = target_of(path)
    with _alone(target):
        content = read_content(target)
        try:
            before = "" if content is None else content.data.decode("utf-8")
        except UnicodeDecodeError:
            raise ConfigError(f"{path} is not UTF-8") from None
        # Some editors begin a file with a byte order mark; it is none of the text, and stays.
        mark = _MARK if before.startswith(_MARK) else ""
        after = mark + change(before.removeprefix(_MARK))
        if after == before and content is not None:
            return False
        _replace(target, after, content)
        return True


def write_config(path: Path, text: str, *, replace: bool) -> Path | None:
    """Write a whole file, 0600; what was there is kept beside it, under the name that is given.

    Args:
        replace: Whether one that is there may be replaced.

    Raises:
        ConfigError: There is one, and it may not be replaced.
        StoreError: It can't be written.
    """
    target = target_of(path)
    with _alone(target):
        content = read_content(target)
        if content is None:
            _replace(target, text, None)
            return None
        if not replace:
            raise ConfigError(f"{path} exists already", hint="--replace keeps it under another name")
        kept = _keep(target, content)
        _replace(target, text, None)
        return kept


def keep_secret(path: Path, value: str) -> None:
    """Write a secret's own file, 0600 in a folder that is its owner's alone; one that is there stays.

    Raises:
        ConfigError: There is one that holds another value.
        StoreError: It can't be written.
    """
    with as_file_errors(path, "written"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if path.read_bytes() == f"{value}\n".encode():
                return
            raise ConfigError(f"{path} holds another secret", hint="move it away first") from None
        with os.fdopen(fd, "wb") as file:
            file.write(f"{value}\n".encode())
            file.flush()
            os.fsync(fd)


@contextmanager
def _alone(target: Path) -> Generator[None]:
    with as_file_errors(target, "written"):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(target.with_name(f".{target.name}-lock"), patience=_PATIENCE) as held:
            if not held:
                raise StoreError(f"{target} can't be written: somebody else is writing it", hint="try again")
            remove_leftovers(target.parent, target.name)
            yield


def _replace(target: Path, text: str, content: Content | None) -> None:
    with staged(target, text.encode(), like=content and content.status) as temporary:
        now = read_content(target)
        if content is not None and (now is None or now.data != content.data):
            raise StoreError(f"{target} changed meanwhile, and was left as it is", hint="try again")
        temporary.replace(target)
        sync_folder(target.parent)


def _keep(target: Path, content: Content) -> Path:
    number = 1
    while True:
        kept = target.with_name(f"{target.name}.{number}")
        try:
            fd = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            number += 1
            continue
        with os.fdopen(fd, "wb") as file:
            file.write(content.data)
            file.flush()
            os.fsync(fd)
        return kept
