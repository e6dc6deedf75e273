"""Files that commands write: whole or not at all, and none overwritten unasked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hotplug.errors import ConfigError

__all__ = ["read_text", "write_new", "write_whole"]


def read_text(path: Path) -> str | None:
    """The text of a file, or None where there is none.

    Raises:
        ConfigError: It can't be read, or isn't UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} isn't UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}") from None


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet.

    Raises:
        ConfigError: It exists, or can't be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} exists already", hint="name another file with --to, or move this one away") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}") from None


def write_whole(texts: Mapping[Path, str]) -> None:
    """Write files, each replaced in one step; what stands there stays until all the new texts are on the disk.

    Raises:
        ConfigError: One can't be written; none was changed unless the disk failed between two renames.
    """
    written: list[tuple[str, Path]] = []
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            written.append((temporary, path))
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        while written:
            temporary, path = written[0]
            Path(temporary).replace(path)
            del written[0]
    except OSError as error:
        raise ConfigError(f"{error.filename or 'the file'} can't be written: {error.strerror}") from None
    finally:
        for temporary, _ in written:
            Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
