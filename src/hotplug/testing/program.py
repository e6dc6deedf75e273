"""A server that runs as a program of its own and tells its URL once it listens."""

from __future__ import annotations

import queue
import re
import subprocess
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Final

from hotplug.errors import ConfigError

__all__ = ["started"]

_URL: Final = re.compile(r"https?://[^\s\"'<>]+")
_END_SECONDS: Final = 10
_LINES_SHOWN: Final = 12


@contextmanager
def started(command: Sequence[str], *, env: Mapping[str, str] | None = None, seconds: float = 30) -> Generator[str]:
    """The URL that a program writes to its standard output when it is ready; the program ends with the block.

    Args:
        command: `(sys.executable, "-m", "hotplug.testing.everything", "--http", "0")`.
        env: All of its variables; None gives it ours.
        seconds: How long it may take to get ready.

    Raises:
        ConfigError: It ended or the time was over before it told a URL; with the last lines that it wrote.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        program = subprocess.Popen(  # noqa: S603 - the caller's own command
            list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, env=env
        )
        try:
            assert program.stdout is not None
            found = _urls(program.stdout)
            try:
                url = found.get(timeout=seconds)
                what = f"it ended with {program.wait(_END_SECONDS)}" if url is None else ""
            except queue.Empty:
                url, what = None, f"it wasn't ready after {seconds:g} s"
            except subprocess.TimeoutExpired:
                url, what = None, "it closed its output"
            if url is None:
                errors.seek(0)
                last = "\n".join(errors.read().strip().splitlines()[-_LINES_SHOWN:]) or "it wrote no error"
                raise ConfigError(f"{' '.join(command)} told no URL, {what}: {last}")
            yield url
        finally:
            _end(program)


def _urls(lines: IO[str]) -> queue.Queue[str | None]:
    """The first URL, None where there is none; all of the output is read, so that the program is never held up."""
    found: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        told = False
        for line in lines:
            if not told and (url := _URL.search(line)):
                found.put(url[0])
                told = True
        found.put(None)

    threading.Thread(target=read, name="program-output", daemon=True).start()
    return found


def _end(program: subprocess.Popen[str]) -> None:
    program.terminate()
    try:
        program.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    if program.stdout is not None:
        program.stdout.close()
