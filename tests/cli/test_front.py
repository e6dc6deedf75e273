"""Help, versions, exit codes and errors are the same for every command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import typer
from tests.cli.conftest import Run

from hotplug import errors
from hotplug.cli.commands import COMMANDS
from hotplug.cli.failure import Exit, exit_code

HEAVY = ("fastmcp", "icalendar", "jsonschema", "mcp", "mcp_types", "pydantic", "rich", "typer", "yaml")


def _python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        timeout=60,
    )


def test_help_lists_every_command_with_its_line(run: Run) -> None:
    ran = run("--help")
    assert ran.code == 0
    for name, command in COMMANDS.items():
        assert f"{name}" in ran.out
        assert command.help in ran.out
        assert len(command.help) < 70


def test_no_argument_is_help_too(run: Run) -> None:
    assert run() == run("-h") == run("--help")


def test_help_takes_the_same_words_when_typer_gives_it(run: Run) -> None:
    assert run("--help", "--help").out == run("--help").out


def test_help_and_version_import_no_library() -> None:
    script = (
        "import sys; from hotplug.cli import main; main(['--help']); main(['--version']);"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    assert _python("-c", script).stdout.splitlines()[-1] == "[]"


def test_a_command_loads_only_its_own_module() -> None:
    script = (
        "import sys; from hotplug.cli import main; main(['profile', '--help']);"
        "print(sorted(set(sys.modules) & {'mcp', 'fastmcp', 'rich', 'icalendar', 'jsonschema'}))"
    )
    assert _python("-c", script).stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own(run: Run, name: str) -> None:
    ran = run(name, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: hotplug {name}")
    assert "--help" in ran.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_verb_has_help_and_the_options_that_all_have(run: Run, name: str) -> None:
    command = typer.main.get_command(import_module(COMMANDS[name].module).app)
    verbs = list(_verbs(command, [name]))
    for words in [[name]] if verbs == [[name, name]] else verbs:
        ran = run(*words, "--help")
        assert ran.code == 0
        assert ran.out.startswith(f"Usage: hotplug {' '.join(words)} [OPTIONS]")
        for option in ("--format", "--json", "--verbose"):
            assert option in ran.out, f"hotplug {' '.join(words)} lacks {option}"


def _verbs(command: Any, words: list[str]) -> Iterator[list[str]]:
    """The verbs of a noun, those of the nouns in it too."""
    verbs = getattr(command, "commands", None)
    if verbs is None:
        yield words
        return
    for name, verb in verbs.items():
        yield from _verbs(verb, [*words, name])


def test_the_version_is_one_line(run: Run) -> None:
    ran = run("--version")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("hotplug ")
    assert ran.out.count("\n") == 1


def test_an_unknown_command_gets_the_closest_one(run: Run) -> None:
    ran = run("profle")
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert "'profle'" in ran.err
    assert "Did you mean 'profile'" in ran.err


def test_an_unknown_verb_gets_the_closest_one(run: Run) -> None:
    assert "Did you mean 'show'?" in run("profile", "shwo").err


def test_an_unknown_option_gets_the_closest_one(run: Run) -> None:
    ran = run("profile", "list", "--jsn")
    assert ran.code == Exit.USAGE
    assert "Did you mean '--json'?" in ran.err


def test_an_unknown_format_gets_the_known_ones(run: Run) -> None:
    ran = run("profile", "list", "--format", "jsn")
    assert ran.code == Exit.USAGE
    assert "'text', 'json', 'jsonl'" in ran.err
    assert "Did you mean 'json'" in ran.err


def test_a_usage_error_is_a_document_when_json_is_asked_for(run: Run) -> None:
    error = run("profile", "show", "--jason", "--json").error
    assert error["code"] == "usage"
    assert "--jason" in error["message"]
    assert "--json" in error["hint"]


def test_shared_options_may_stand_before_the_verb(run: Run) -> None:
    after = run("profile", "list", "--format", "json")
    assert after.code == 0
    assert run("profile", "--format", "json", "list") == after
    assert run("--json", "profile", "list") == after


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 2),
        (errors.ProfileError("x"), 2),
        (errors.CanonicalError("x"), 2),
        (errors.ProjectionError("x"), 2),
        (errors.StoreError("x"), 2),
        (errors.AuthError("x"), 3),
        (errors.ConnectError("x"), 4),
        (errors.InvalidArgument("x"), 2),
        (errors.NotFound("x"), 1),
        (errors.PermissionDenied("x"), 1),
        (errors.Unsupported("x"), 1),
        (errors.InDoubt("x"), 5),
        (errors.Timeout("x"), 5),
        (errors.Disconnected("x"), 4),
        (errors.Disconnected("x", details={"state": "unknown"}), 5),
        (errors.HotplugError("x"), 70),
    ],
)
def test_every_error_has_its_exit_code(error: errors.HotplugError, code: int) -> None:
    assert exit_code(error) == code


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch):
    """Makes `hotplug profile list` raise what a test needs."""

    def choose(error: BaseException) -> None:
        def fail() -> None:
            raise error

        monkeypatch.setattr("hotplug.cli.profile.known_profiles", fail)

    return choose


def test_an_unexpected_exception_is_our_bug_and_says_how_to_report_it(run: Run, raising) -> None:
    raising(KeyError("\x1b[31m"))
    ran = run("profile", "list")
    assert (ran.code, ran.out) == (Exit.BUG, "")
    assert "bug in Hotplug: KeyError" in ran.err
    assert "-vv" in ran.err
    assert "\x1b" not in ran.err
    assert "Traceback" not in ran.err


def test_a_traceback_comes_with_vv(run: Run, raising) -> None:
    raising(KeyError("x"))
    assert "Traceback" in run("profile", "list", "-vv").err
    assert run("profile", "list", "-vv", "--json").error["traceback"][0].startswith("Traceback")


def test_a_failed_connection_says_what_is_known(run: Run, raising) -> None:
    raising(
        errors.ConnectError(
            "it ended at once",
            target="npx x",
            transport="stdio",
            protocol="2026-07-28",
            log=("no\x1b such file",),
            hint="try",
        )
    )
    ran = run("profile", "list")
    assert ran.code == Exit.UNREACHABLE
    for expected in (
        "error: it ended at once",
        "target: npx x",
        "transport: stdio",
        "2026-07-28",
        r"no\x1b such",
        "hint: try",
    ):
        assert expected in ran.err
    error = run("profile", "list", "--json").error
    assert error["log"] == ["no\x1b such file"]
    assert error["target"] == "npx x"


def test_an_error_inside_a_task_group_is_found(run: Run, raising) -> None:
    raising(ExceptionGroup("tasks", [ExceptionGroup("more", [errors.AuthError("no token")])]))
    assert run("profile", "list").code == Exit.AUTH


def test_an_interrupt_exits_as_shells_expect(run: Run, raising) -> None:
    raising(KeyboardInterrupt())
    assert run("profile", "list").code == Exit.INTERRUPTED


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_the_commands(shell: str) -> None:
    words = {"COMP_WORDS": "hotplug prof", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "hotplug prof"}
    ran = _python(
        "-m", "hotplug", _HOTPLUG_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_FISH_ACTION="get-args", **words
    )
    assert ran.returncode == 0
    assert "profile" in ran.stdout


def test_the_module_runs_as_a_program() -> None:
    ran = _python("-m", "hotplug", "nonsense")
    assert ran.returncode == 2
    assert ran.stdout == ""


def test_an_answer_fits_a_terminal_that_is_not_unicode() -> None:
    ran = _python("-m", "hotplug", "profile", "show", "calendar", "--json", PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert ran.stdout.isascii()
