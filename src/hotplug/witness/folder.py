"""A folder as a witness: files that came, changed or went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio.to_thread

from hotplug.errors import ConfigError
from hotplug.evidence.vocabulary import ProvenanceClass
from hotplug.profile.summaries import artifact_summary
from hotplug.witness.comparing import Comparing, Look, Thing
from hotplug.witness.tree import FoundFile, fitting, read_file, walk
from hotplug.witness.watching import CannotLook, spot

__all__ = ["Folder"]


class Folder(Comparing):
    """Files below a folder: `report.pdf created`, `updated`, `deleted`, by their paths with `/`.

    Its `x-artifact` is independent and of consequence grade: a file is there or not, whoever says so. A file that was
    written again with the same content has not changed. The observation's value has size and digest, never content.
    Links are looked at and not followed. A subfolder that can't be read is a blind spot, and so is a file.

    Args:
        path: The folder.
        pattern: Which files, by their path: `*.pdf` only in the folder itself, `**/*.pdf` below it too.
        limit: Files that are looked at; more is a blind spot.
        timeout: Seconds that one look may take; it reads every file that isn't known to be unchanged.
    """

    channel = "x-artifact"

    def __init__(
        self,
        path: str | Path,
        pattern: str = "**/*",
        *,
        limit: int = 20_000,
        timeout: float = 30.0,
        name: str = "folder",
    ) -> None:
        super().__init__(name, str(path), timeout=timeout)
        if pattern.startswith("/") or ".." in pattern.split("/") or not pattern.strip("/."):
            raise ConfigError(f"the pattern {pattern!r} leaves the folder", hint="such as *.pdf or **/*")
        self._path = Path(path)
        self._pattern = pattern
        self._limit = limit
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}

    def _instance(self) -> str:
        try:
            found = self._path.stat()
        except OSError:
            return f"{super()._instance()}-absent"
        return f"{super()._instance()}-{found.st_dev}-{found.st_ino}"

    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        """The folder; its files by name and digest."""
        del channel
        return self.locator, f"files that fit {self._pattern}, compared by name and content", "authoritative"

    def _summary(self, thing: Thing, word: str) -> str:
        return artifact_summary(thing.ref, word)

    async def _read(self) -> Look:
        return await anyio.to_thread.run_sync(self._in_thread, abandon_on_cancel=True)

    def _in_thread(self) -> Look:
        try:
            tree = walk(self._path, fitting(self._pattern), self._limit)
        except OSError as error:
            raise CannotLook(error.strerror or str(error)) from None
        spots = [spot("channel-unobserved", self.channel, f"{path} can't be read: {why}") for path, why in tree.unread]
        if tree.is_cut:
            said = f"{self.locator}: only {self._limit} files were looked at, and there are more"
            spots.append(spot("buffer-truncated", self.channel, said, "narrow the pattern, or give a higher limit="))
        things: list[Thing] = []
        for file in tree.files:
            try:
                digest: str | None = self._digest(file)
            except FileNotFoundError:
                continue
            except OSError as error:
                digest = None
                said = f"{file.path} can't be read: {error.strerror or error}"
                spots.append(spot("channel-unobserved", self.channel, said))
            things.append(Thing("file", file.path, digest, _shown(file, digest)))
        return Look(tuple(things), {}, tuple(spots), tree.hides if tree.unread or tree.is_cut else None)

    def _digest(self, file: FoundFile) -> str:
        seen = file.stat
        key = (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        known = self._known.get(file.path)
        if known is not None and known[0] == key:
            return known[1]
        digest, lasts = read_file(self._path, file)
        if lasts:
            self._known[file.path] = key, digest
        return digest


def _shown(file: FoundFile, digest: str | None) -> dict[str, Any]:
    kind, _, value = (digest or "").partition(":")
    found: dict[str, Any] = {"path": file.path, "size": file.stat.st_size}
    return {**found, "sha256": value} if kind == "sha256" else found
