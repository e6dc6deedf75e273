"""`hotplug call`: a part through its profile, or a raw tool."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from hotplug.cli.call_arguments import arguments_of
from hotplug.errors import ConfigError, InvalidArgument

SERVERS = Path(__file__).parent / "servers"
TINY = f"{SERVERS / 'tiny_calendar.py'}:server"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "title": {"type": "string"},
        "limit": {"type": "integer"},
        "share": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "whole": {"type": "boolean"},
        "accept": {"type": "array", "items": {"type": "string"}},
        "alerts": {"type": "array", "items": {"type": "object"}},
        "changes": {"$ref": "#/$defs/Changes"},
        "either": {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
        "anything": {},
        "a.b": {"type": "string"},
    },
    "$defs": {
        "Changes": {"type": "object", "additionalProperties": False, "properties": {"title": {"type": "string"}}}
    },
}


def arguments(*words: str, args: str | None = None) -> dict[str, Any]:
    return arguments_of(words, args, SCHEMA, what="this")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("title=12", {"title": "12"}),
        ("title=", {"title": ""}),
        ("title=a=b", {"title": "a=b"}),
        ("limit=12", {"limit": 12}),
        ("limit=9007199254740993", {"limit": 9007199254740993}),
        ("share=1", {"share": 1}),
        ("share=0.5", {"share": 0.5}),
        ("whole=yes", {"whole": True}),
        ("accept=a, b", {"accept": ["a", "b"]}),
        ('accept=["a,b"]', {"accept": ["a,b"]}),
        ('alerts=[{"offset": "PT1H"}]', {"alerts": [{"offset": "PT1H"}]}),
        ("changes.title=x", {"changes": {"title": "x"}}),
        ('changes={"title": "x"}', {"changes": {"title": "x"}}),
        ("either=true", {"either": True}),
        ("either=12", {"either": "12"}),
        ("anything=[1]", {"anything": [1]}),
        ("anything=word", {"anything": "word"}),
        ("a.b=1", {"a.b": "1"}),
    ],
)
def test_a_value_gets_the_type_that_the_schema_says(word: str, expected: dict[str, Any]) -> None:
    assert arguments(word) == expected


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("limit=many", "limit is whole number, not 'many'"),
        ("limit=1.5", "limit is whole number, not '1.5'"),
        ("whole=maybe", "whole is yes or no, not 'maybe'"),
        ("changes=x", "changes is Changes, not 'x'"),
        ("title.x=1", "it has no field 'x'"),
    ],
)
def test_a_value_of_another_type_is_refused(word: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        arguments(word)


@pytest.mark.parametrize(
    ("word", "near"), [("titel=x", "'title'"), ("changes.titel=x", "'title'"), ('changes={"titel": "x"}', "'title'")]
)
def test_an_unknown_field_is_refused_with_the_nearest(word: str, near: str) -> None:
    with pytest.raises(InvalidArgument, match="has no argument") as refused:
        arguments(word)
    assert near in str(refused.value.hint)


def test_words_win_over_a_whole_object() -> None:
    assert arguments("changes.title=new", args='{"title": "t", "changes": {"title": "old"}}') == {
        "title": "t",
        "changes": {"title": "new"},
    }


@pytest.mark.parametrize("args", ["{", "[1]", '{"limit": NaN}', "@nowhere.json"])
def test_what_is_no_json_object_is_a_usage_error(args: str) -> None:
    with pytest.raises(ConfigError):
        arguments(args=args)


def test_arguments_come_from_stdin_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"title": "t"}'))
    assert arguments(args="-") == {"title": "t"}


def test_a_native_server_is_called_and_keeps_what_it_was_told(run: Run) -> None:
    calendars = run("call", "sqlite:///cal.db", "calendar.calendars")
    assert calendars.code == 0
    calendar = json.loads(calendars.out)["calendars"][0]["calendar"]
    words = ("calendar.create", f"calendar={calendar}", "title=12", "start=2026-06-11T12:00:00Z", "duration=PT1H")
    first = run("call", "sqlite:///cal.db", *words, "--key", "k1", "--json")
    again = run("call", "sqlite:///cal.db", *words, "--key", "k1", "--json")
    assert first.code == 0
    assert first.document["via"] == "native"
    assert first.document["target"]["kind"] == "native"
    assert again.document["result"] == first.document["result"]
    event = first.document["result"]["event"]
    got = run("call", "sqlite:///cal.db", "get", f"event={event}", "--profile", "calendar")
    assert json.loads(got.out)["title"] == "12"


def test_a_failed_call_says_its_code_and_leaves_stdout_empty(run: Run) -> None:
    ran = run("call", "sqlite:///cal.db", "calendar.get", "event=none", "--json")
    assert ran.code == 1
    assert ran.error["code"] == "not_found"
    ran = run("call", "sqlite:///cal.db", "calendar.create", "title=x", "--json")
    assert ran.code == 2
    assert ran.error["code"] == "invalid_argument"


def test_unknown_parts_and_fields_get_near_names(run: Run) -> None:
    ran = run("call", "sqlite:///cal.db", "calendar.craete", "--json")
    assert ran.code == 2
    assert "calendar.create" in ran.error["hint"]
    ran = run("call", "sqlite:///cal.db", "calender.create", "--json")
    assert "calendar.create" in ran.error["hint"]
    ran = run("call", "sqlite:///cal.db", "calendar.get", "evnt=x", "--json")
    assert (ran.code, ran.error["code"]) == (2, "invalid_argument")
    assert "event" in ran.error["hint"]


def test_an_event_is_no_part_to_call(run: Run) -> None:
    ran = run("call", "sqlite:///cal.db", "calendar.event.changed")
    assert ran.code == 2
    assert "is an event" in ran.err


def test_a_raw_tool_takes_its_own_arguments(run: Run) -> None:
    ran = run("call", "--raw", TINY, "list_events", "calendar=home", "start=2026", "end=2027", "--json")
    assert ran.code == 0
    assert ran.document["result"]["structuredContent"] == {"events": []}
    ran = run("call", "--raw", TINY, "list_calendars")
    assert json.loads(ran.out)["calendars"][0]["id"] == "home"


def test_a_raw_tool_that_fails_or_is_not_there(run: Run) -> None:
    ran = run("call", "--raw", TINY, "get_event", "uid=none", "--json")
    assert ran.code == 1
    assert "no event none" in ran.error["message"]
    ran = run("call", "--raw", TINY, "get_evnt", "--json")
    assert ran.code == 1
    assert "get_event" in ran.error["hint"]


def test_a_server_without_the_profile_is_told_apart_from_one_that_is_not_there(run: Run) -> None:
    ran = run("call", "calendar.calendars", "--json", "--", sys.executable, str(SERVERS / "dies.py"))
    assert ran.code == 4
    assert ran.error["transport"] == "stdio"
    assert ran.error["log"] == ["no such account"]
    ran = run("call", TINY, "calendar.calendars", "--json")
    assert ran.code == 4
    assert "speaks no calendar" in ran.error["message"]


def test_the_command_line_has_to_be_whole(run: Run) -> None:
    assert "the server is missing" in run("call").err
    assert "the part is missing" in run("call", "sqlite:///cal.db").err
    assert "no argument" in run("call", "sqlite:///cal.db", "calendar.get", "event").err
    assert run("call", "--raw", TINY, "x", "--key", "k").code == 2


def test_an_interrupt_ends_the_child_too(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    server = f"SLOW_PID={told} {sys.executable} {SERVERS / 'slow.py'}"
    process = subprocess.Popen(
        [sys.executable, "-m", "hotplug", "call", "--raw", server, "wait"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        _until(lambda: told.is_file() and told.read_text() != "", 60)
        child = int(told.read_text())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 130
        assert out == b""
        _until(lambda: not _runs(child), 10)
    finally:
        process.kill()
        process.wait()


def _until(holds: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("depth", [101, 100_000])
def test_arguments_that_are_nested_too_deeply_are_refused(run: Run, depth: int) -> None:
    for args in ('{"a":' * depth + "1" + "}" * depth, '{"a":' + "[" * depth + "]" * depth + "}"):
        ran = run("call", "sqlite:///cal.db", "calendar.calendars", "--args", args, "--json")
        assert ran.code == 2
        assert "nested too deeply" in ran.error["message"]


def test_a_name_that_stands_twice_in_the_arguments_is_refused(run: Run) -> None:
    args = '{"calendar": "a", "changes": {"title": "x", "title": "y"}}'
    ran = run("call", "sqlite:///cal.db", "calendar.calendars", "--args", args, "--json")
    assert ran.code == 2
    assert "'title' stands in one object twice" in ran.error["message"]


def test_what_could_not_be_read_is_told_beside_the_result(run: Run, tmp_path: Path) -> None:
    (tmp_path / "calendar").mkdir()
    (tmp_path / "calendar" / "broken.ics").write_bytes(b"\xff")
    words = ("calendar.search", "from=2026-01-01T00:00:00Z", "to=2027-01-01T00:00:00Z")

    ran = run("call", f"folder:{tmp_path}", *words)
    assert ran.code == 0
    assert "broken.ics" in ran.err
    assert json.loads(ran.out) == {"events": []}

    ran = run("call", f"folder:{tmp_path}", *words, "--json")
    assert ran.err == ""
    assert "broken.ics" in json.loads(ran.out)["notes"][0]
