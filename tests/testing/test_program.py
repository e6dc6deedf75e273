"""A program that tells its URL: what comes of it, and what is said of one that doesn't."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from hotplug.errors import ConfigError
from hotplug.testing.program import started

FOREVER = "time.sleep(600)"


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_the_first_url_is_given_and_the_program_ends_with_the_block() -> None:
    told = (
        f"import os, time; print('ready'); print('at http://127.0.0.1:1/p' + str(os.getpid()), flush=True); {FOREVER}"
    )
    with started(program(told)) as url:
        assert url.startswith("http://127.0.0.1:1/p")
        number = int(url.rpartition("p")[2])
        os.kill(number, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_one_that_ends_is_shown_with_its_last_lines() -> None:
    with (
        pytest.raises(ConfigError, match=r"(?s)it ended with 3: .*what was wrong"),
        started(program("import sys; print('what was wrong', file=sys.stderr); sys.exit(3)")),
    ):
        pass


def test_one_that_tells_nothing_is_ended_when_the_time_is_over() -> None:
    with (
        pytest.raises(ConfigError, match=r"wasn't ready after 0\.2 s"),
        started(program(f"import time; {FOREVER}"), seconds=0.2),
    ):
        pass


def test_one_that_writes_much_is_not_held_up(tmp_path: Path) -> None:
    # More than a pipe takes: only a reader lets it get to its end.
    end = tmp_path / "end"
    much = f"print('http://127.0.0.1:1/', flush=True); print('x' * 1_000_000, flush=True); open({str(end)!r}, 'w')"
    with started(program(f"import time; {much}; {FOREVER}")):
        for _ in range(500):
            if end.exists():
                return
            threading.Event().wait(0.02)
    pytest.fail("it was held up by its own output")
