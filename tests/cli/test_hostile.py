"""Servers that are wrong on purpose: they cost neither time nor the truth of what is said about them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Run

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
