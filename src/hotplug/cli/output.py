"""How commands answer: text for people, or documents with a `schema` for programs; everything else goes to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TextIO

from hotplug.cli.printing import printable, safe_json

__all__ = ["Format", "Output"]


class Format(StrEnum):
    """What stdout is written in."""

    TEXT = "text"
    JSON = "json"
    """One document, indented."""
    JSONL = "jsonl"
    """One document a line."""


@dataclass(frozen=True)
class Output:
    """Where a command writes its answer. Text is made safe for a terminal on the way.

    Args:
        format: Of stdout.
        verbose: How often `-v` was given: 1 says what was used, 2 adds tracebacks.
    """

    format: Format = Format.TEXT
    verbose: int = 0

    def answer(
        self,
        schema: str,
        document: Mapping[str, Any],
        text: Callable[[], str],
        *,
        rows: tuple[str, Iterable[Mapping[str, Any]]] | None = None,
    ) -> None:
        """Write the command's one answer.

        Args:
            schema: The published schema of the document, `hotplug.something/1`; it becomes the document's first member.
            document: The answer for programs.
            text: The answer for people; only asked for where it is wanted.
            rows: For jsonl, a schema and documents of it, one a line, in place of the whole document.
        """
        if self.format is Format.TEXT:
            _write(sys.stdout, printable(text().rstrip("\n"), lines=True) + "\n")
        elif self.format is Format.JSON:
            _write(sys.stdout, _json({"schema": schema, **document}, indent=2) + "\n")
        elif rows is None:
            _write(sys.stdout, _json({"schema": schema, **document}) + "\n")
        else:
            row_schema, documents = rows
            _write(sys.stdout, "".join(_json({"schema": row_schema, **row}) + "\n" for row in documents))

    def event(self, schema: str, document: Mapping[str, Any], text: str) -> None:
        """Write one of several answers as it comes: a line of text, or in both JSON forms one document a line."""
        line = printable(text, lines=True) if self.format is Format.TEXT else _json({"schema": schema, **document})
        _write(sys.stdout, line + "\n")

    def line(self, document: Mapping[str, Any]) -> None:
        """Write one line of JSON whose shape a protocol has set: without a `schema` of ours."""
        _write(sys.stdout, _json(document) + "\n")

    def note(self, message: str) -> None:
        """Say something beside the answer, on stderr."""
        _write(sys.stderr, printable(message, lines=True) + "\n")

    def progress(self, message: str) -> None:
        """Say what is going on, on stderr; nothing where nobody is looking at it or JSON was asked for."""
        if self.format is Format.TEXT and sys.stderr.isatty():
            self.note(message)

    def used(self, message: str) -> None:
        """Say which target or file was used; only with `-v`."""
        if self.verbose:
            self.note(message)


def _json(document: Mapping[str, Any], *, indent: int | None = None) -> str:
    # Where the terminal isn't UTF-8, JSON's own escapes are the only ones that keep the answer valid.
    ascii_only = not (sys.stdout.encoding or "utf-8").lower().replace("-", "").startswith("utf")
    return safe_json(json.dumps(document, ensure_ascii=ascii_only, allow_nan=False, indent=indent))


def _write(stream: TextIO, text: str) -> None:
    """Write, also where the stream's encoding lacks a character: as an escape, never a crash."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
