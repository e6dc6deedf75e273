"""The last lines that a server wrote: to standard error, and to standard output where only messages belong."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from hotplug.connect.masking import Masker

__all__ = ["UpstreamLog"]

_LINES: Final = 200
_LINE_BYTES: Final = 8192
_NOISE: Final = 200
"""Characters of a line that is no message: it is named in errors, and may be anything."""
_logger = logging.getLogger("hotplug.connect")


class UpstreamLog:
    """A bounded tail of one server's output, masked and without control characters.

    Args:
        name: What the server is called in warnings.
        masker: Takes secret values out of each line.
        on_line: Called with each finished line of standard error (for `-v`).
    """

    def __init__(
        self, name: str, masker: Masker | None = None, *, on_line: Callable[[str], None] | None = None
    ) -> None:
        self._name = name
        self._mask = masker or Masker()
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._rest = b""
        self._on_line = on_line
        self.noise_count = 0
        self.first_noise: str | None = None

    def mask(self, text: str) -> str:
        """Any text without the secret values."""
        return self._mask(text)

    def use(self, masker: Masker) -> None:
        """Another masker from now on: one that knows more."""
        self._mask = masker

    def feed(self, chunk: bytes) -> None:
        """Takes a piece of standard error as it comes; lines are kept when they are complete."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._keep(line)

    def finish(self) -> None:
        """Keeps what stands after the last line break: the output has ended."""
        self._keep(self._rest)
        self._rest = b""

    def noise(self, line: bytes) -> None:
        """Counts a line of standard output that is no message; the first is warned of and kept to be shown."""
        text = self._mask.line(line[:_LINE_BYTES].decode("utf-8", "replace"))
        if not text:
            return
        text = text if len(text) <= _NOISE else f"{text[:_NOISE]}…"
        self.noise_count += 1
        if self.first_noise is None:
            self.first_noise = text
            _logger.warning("%s writes to its standard output what is no message, skipped: %s", self._name, text)
        self._lines.append(f"stdout: {text}")

    def tail(self, count: int = 20) -> tuple[str, ...]:
        """The last lines, oldest first; noise on standard output is marked `stdout:`."""
        return tuple(self._lines)[-count:]

    def _keep(self, line: bytes) -> None:
        text = self._mask.line(line[:_LINE_BYTES].decode("utf-8", "replace"))
        if text:
            self._lines.append(text)
            if self._on_line is not None:
                self._on_line(text)
