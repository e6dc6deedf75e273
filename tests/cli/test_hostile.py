"""Servers that are wrong on purpose: they cost neither time nor the truth of what is said about them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from hotplug.cli.failure import report
from hotplug.cli.output import Format

HOSTILE = Path(__file__).parent.parent / "connect" / "servers" / "hostile.py"


def server(mode: str, *more: str) -> list[str]:
    return ["--", sys.executable, str(HOSTILE), mode, *more]


@pytest.mark.parametrize("mode", ["silent", "unreadable"])
@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("doctor",),
        ("call", "--raw", "a"),
        ("call", "calendar.calendars", "--projection", "caldav-mcp"),
        ("projection", "diff", "caldav-mcp"),
        ("projection", "new", "--profile", "calendar"),
        ("projection", "test", "caldav-mcp"),
    ],
    ids=" ".join,
)
def test_the_time_limit_covers_the_list_of_tools(run: Run, words: tuple[str, ...], mode: str) -> None:
    started = time.monotonic()
    ran = run(*words, "--timeout", "1.5", *server(mode))
    assert time.monotonic() - started < 15
    assert ran.code != 0
    assert "no answer" in ran.out + ran.err


def test_a_list_that_loses_its_connection_is_unreachable_not_in_doubt(run: Run) -> None:
    ran = run("inspect", "--json", *server("dies"))
    assert ran.code == 4
    assert ran.error["code"] == "disconnected"
    assert "may or may not" not in ran.err
    assert run("doctor", *server("dies")).code == 4


@pytest.mark.parametrize(
    ("mode", "words", "inspect"),
    [
        ("text", "holds no list", 1),
        ("circle", "has no end", 1),
        ("nameless", "has no name", 1),
        ("twice", "a is listed more than once", 0),
    ],
)
def test_a_list_that_is_wrong_is_said(run: Run, mode: str, words: str, inspect: int) -> None:
    ran = run("inspect", *server(mode))
    assert words in ran.out
    assert ran.code == inspect
    ran = run("doctor", *server(mode))
    assert words in ran.out
    assert ran.code == 1


def test_an_answer_over_the_limit_is_too_large(run: Run) -> None:
    ran = run("call", "--raw", "--json", "a", *server("large"))
    assert ran.error["code"] == "too_large"
    assert ran.error["details"]["limitBytes"] == 64 * 2**20


def test_only_some_names_are_written_out(run: Run) -> None:
    ran = run("inspect", *server("many"))
    assert "t49" in ran.out
    assert "t50" not in ran.out
    assert "… 23 more" in ran.out


def test_no_line_of_the_answer_is_a_servers(run: Run) -> None:
    version = "1\n\n✓ calendar 1.0.0, native"
    for command in ("inspect", "doctor"):
        ran = run(command, *server("forged", version))
        assert not [line for line in ran.out.splitlines() if line.lstrip().startswith("✓ calendar")]
    assert r"hostile 1\x0a\x0a✓ calendar 1.0.0, native" in run("inspect", *server("forged", version)).out
    ran = run("call", "--raw", "b", *server("forged", version))
    assert ran.code == 1
    assert "\n✓" not in ran.err


def test_lines_of_an_error_are_marked_as_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    report("x", "first\nhint: forged", hint="do\n✓ fine", form=Format.TEXT, more={"log": ["a\nerror: b"]})
    assert capsys.readouterr().err == (
        "error: first\n  | hint: forged\n  log:\n    a\n  | error: b\nhint: do\n  | ✓ fine\n"
    )


def test_beside_json_a_servers_noise_stands_only_in_the_error(run: Run) -> None:
    ran = run("inspect", "--json", "-v", *server("noisy"))
    assert ran.code == 0
    assert "secret words" not in ran.err
    ran = run("inspect", "--json", "--", sys.executable, "-c", "print('word ' * 1000)")
    assert ran.code == 4
    (line,) = ran.error["log"]
    assert len(line) < 220
    assert len(ran.error["message"]) < 600


def test_in_text_a_servers_noise_is_shown_only_where_more_is_wanted(run: Run) -> None:
    assert run("inspect", *server("noisy")).err == ""
    (line,) = [one for one in run("inspect", "-v", *server("noisy")).err.splitlines() if "no message" in one]
    assert len(line) < 450


def test_the_name_of_a_tool_stays_one_word(run: Run) -> None:
    assert r"x\x0a✓\x20calendar\x201.0.0,\x20native\x1b[31m" in run("inspect", *server("forged")).out


def test_an_error_names_only_some_of_many_tools(run: Run) -> None:
    ran = run("call", "--raw", "zzzzzz", "--json", *server("many"))
    assert ran.code == 1
    assert len(ran.error["details"]["tools"]) == 50
    assert ran.error["hint"].endswith("t49 …")
