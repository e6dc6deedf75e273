"""Questions to the person at the terminal; where nobody is, only what has a flag can be decided."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from hotplug.cli.printing import printable
from hotplug.errors import ConfigError

__all__ = ["Asking"]


@dataclass(frozen=True)
class Asking:
    """Asks on standard error, reads from standard input.

    Args:
        yes: Nothing is asked: each question has its default.
    """

    yes: bool = False

    @property
    def anybody(self) -> bool:
        """Whether somebody can be asked."""
        return not self.yes and sys.stdin.isatty()

    def confirm(self, question: str, *, default: bool, flag: str) -> bool:
        """A yes or no.

        Args:
            flag: What decides it without asking, for who can't be asked.

        Raises:
            ConfigError: Nobody can be asked, and `--yes` isn't given.
        """
        if self.yes:
            return default
        while True:
            answer = self._ask(f"{question} [{'Y/n' if default else 'y/N'}] ", flag).lower()
            if answer in ("y", "yes", "n", "no", ""):
                return default if not answer else answer.startswith("y")

    def choose(self, question: str, choices: Mapping[str, str], *, default: str, flag: str) -> str:
        """One of several words, each with what it means.

        Raises:
            ConfigError: Nobody can be asked, and `--yes` isn't given.
        """
        if self.yes:
            return default
        lines = [f"  {word}: {meaning}" for word, meaning in choices.items()]
        while True:
            answer = self._ask("\n".join([question, *lines, f"[{default}] "]), flag).lower()
            if not answer:
                return default
            near = [word for word in choices if word.startswith(answer)]
            if len(near) == 1:
                return near[0]

    def _ask(self, text: str, flag: str) -> str:
        if not sys.stdin.isatty():
            raise ConfigError(f"there is nobody to ask: {text.splitlines()[0].rstrip()}", hint=f"{flag}, or --yes")
        sys.stderr.write(printable(text, lines=True))
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise ConfigError("there was no answer", hint=f"{flag}, or --yes")
        return line.strip()
