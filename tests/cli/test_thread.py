"""`hotplug thread`: opened, forked, closed and listed, with the token shown once and nowhere else."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from hotplug.cli.failure import Exit

VARIABLE = "HOTPLUG_THREAD_TOKEN"


@pytest.fixture(autouse=True)
def _store(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPLUG_STORE", "sqlite:///gateway.db")
    monkeypatch.delenv(VARIABLE, raising=False)


def opened(run: Run, *words: str) -> tuple[str, str]:
    document = run("thread", *words, "--json").document
    return document["thread"]["id"], document["token"]


def forked(run: Run, monkeypatch: pytest.MonkeyPatch, parent: str, token: str, *words: str) -> Any:
    monkeypatch.setenv(VARIABLE, token)
    return run("thread", "fork", parent, *words)


def test_the_token_is_the_only_thing_on_stdout(run: Run) -> None:
    ran = run("thread", "open", "--title", "Plan the week")
    assert ran.code == Exit.YES
    token = ran.out.removesuffix("\n")
    assert token.startswith("hpt_")
    assert len(token) == 47
    assert token not in ran.err
    assert "is open, at /threads/t_" in ran.err


def test_a_document_says_it_all(run: Run) -> None:
    document = run("thread", "open", "--project", "acme", "--title", "Plan", "--json").document
    thread = document["thread"]
    assert {**thread, "opened": ""} == {
        "id": thread["id"], "parent": None, "delegated": False, "project": "acme", "title": "Plan", "opened": "",
        "closed": None,
    }  # fmt: skip
    assert document["path"] == f"/threads/{thread['id']}/mcp"


def test_a_fork_takes_its_parents_token_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root, token = opened(run, "open", "--project", "acme")
    document = forked(run, monkeypatch, root, token, "--delegated", "--title", "Look it up", "--json").document
    thread = document["thread"]
    assert (thread["parent"], thread["delegated"], thread["project"]) == (root, True, "acme")


def test_a_fork_without_or_with_another_token_is_one_answer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root, token = opened(run, "open")
    other, other_token = opened(run, "open")
    gone, gone_token = opened(run, "open")
    run("thread", "close", gone)
    error = run("thread", "fork", root, "--json").error
    assert VARIABLE in error["hint"]
    said = set()
    for parent, given in ((root, other_token), (other, token), ("t_none", token), (gone, gone_token), (root, "x")):
        ran = forked(run, monkeypatch, parent, given, "--json")
        assert ran.code == Exit.AUTH
        assert given not in ran.err or given == "x"
        said.add((ran.out, ran.err))
    assert len(said) == 1


def test_no_option_takes_a_token(run: Run) -> None:
    for verb in ("open", "fork", "close", "list", "show"):
        assert "--token" not in run("thread", verb, "--help").out


def test_closing_closes_what_is_below(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root, token = opened(run, "open")
    child = forked(run, monkeypatch, root, token, "--json").document["thread"]["id"]
    assert run("thread", "close", root, "--json").document["closed"] == [root, child]
    ran = run("thread", "close", child, "--json")
    assert (ran.code, ran.error["code"]) == (Exit.NO, "not_found")
    assert run("thread", "list").out == "no thread is open\n"
    assert len(run("thread", "list", "--closed", "9", "--json").document["threads"]) == 2


def test_a_broken_configuration_keeps_no_thread_open(run: Run, tmp_path: Path) -> None:
    root, _ = opened(run, "open")
    config = tmp_path / "config" / "hotplug.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text("[[[")
    ran = run("thread", "close", root, "--store", "sqlite:///gateway.db", "--json")
    assert ran.code == Exit.YES
    assert ran.document["closed"] == [root]
    assert "stays in the settings" in ran.err


def test_the_list_shows_each_below_its_parent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root, token = opened(run, "open", "--title", "first")
    child, child_token = root, token
    for title in ("second", "third"):
        document = forked(run, monkeypatch, child, child_token, "--delegated", "--title", title, "--json").document
        child, child_token = document["thread"]["id"], document["token"]
    lines = run("thread", "list").out.splitlines()
    assert [line.split("  ")[-1] for line in lines] == ["first", "second", "third"]
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 4]
    assert run("thread", "list", "--format", "jsonl").out.count('"schema": "hotplug.thread-list.thread/1"') == 3
    assert len(run("thread", "list", "--json").document["threads"]) == 3
    shown = run("thread", "show", child, "--json").document
    assert (shown["above"][-1], len(shown["above"]), shown["below"]) == (root, 2, [])
    text = run("thread", "show", root).out
    assert "below" in text
    assert "second" in text
    assert run("thread", "show", "t_none").code == Exit.NO


@pytest.mark.parametrize("words", [("--title", "a\nb"), ("--project", " ")])
def test_what_can_not_be_recorded_is_refused(run: Run, words: tuple[str, ...]) -> None:
    ran = run("thread", "open", *words, "--json")
    assert (ran.code, ran.error["code"]) == (Exit.NO, "refused")


def test_looking_leaves_no_trace_where_no_store_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (("list",), ("show", "t_a"), ("close", "t_a")):
        run("thread", *words)
    assert forked(run, monkeypatch, "t_a", "x").code == Exit.AUTH
    assert list(Path().iterdir()) == []


def test_another_store_is_named_by_an_option(run: Run) -> None:
    opened(run, "open", "--store", "sqlite:///other.db")
    assert Path("other.db").exists()
    assert run("thread", "list").out == "no thread is open\n"
    assert "other.db" in run("thread", "list", "--store", "sqlite:///other.db", "-v").err
    error = run("thread", "list", "--store", "postgresql://u:pw@h/d", "-v")
    assert error.code == Exit.USAGE
    assert "pw" not in error.err


def test_an_opener_gets_a_token_and_the_file_its_digest(run: Run) -> None:
    ran = run("thread", "opener", "editor")
    token = ran.out.strip()
    assert token.startswith("hpo_")
    assert f'editor = "{hashlib.sha256(token.encode()).hexdigest()}"' in ran.err
    assert token not in ran.err
    document = run("thread", "opener", "editor", "--json").document
    assert document["sha256"] == hashlib.sha256(document["token"].encode()).hexdigest()
    assert run("thread", "opener", 'a"b').code == Exit.USAGE
