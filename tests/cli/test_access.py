"""`hotplug access`: settings shown, asked and saved, by files alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from hotplug.cli.failure import Exit
from hotplug.store import SettingsFile

HOST = {
    "servers": {"mail": ["send", "search"], "files": ["read", "write"]},
    "toolkits": {
        "threads": {"group": "threads", "tools": ["open", "close"]},
        "secrets": {"group": "secrets", "tools": ["ask"]},
        "finding": {"group": None, "tools": ["tool_search"]},
    },
    "ungrouped": {"tool_search": "finding"},
}
LINEAGE = {
    "main": {"project": "acme"},
    "helper": {"parent": "main", "delegated": True, "project": "acme"},
    "fork": {"parent": "helper"},
    "lost": {"parent": "nowhere"},
}
SETTINGS: dict[str, Any] = {
    "mcpProfiles": {"lean": {"servers": ["mail"], "groups": ["threads"], "tools": {"mail": {"deny": ["send"]}}}},
    "mcpSubagentProfile": "lean",
}


@pytest.fixture(autouse=True)
def _files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPLUG_SETTINGS", "settings.json")
    write("host.json", HOST)
    write("lineage.json", LINEAGE)


def write(name: str, value: Any) -> None:
    Path(name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def settings() -> Any:
    return json.loads(Path("settings.json").read_text(encoding="utf-8"))


def access(run: Run, *words: str) -> Any:
    return run("access", *words)


def test_without_a_file_the_defaults_are_shown_and_nothing_is_made(run: Run) -> None:
    ran = access(run, "show")
    assert ran.code == Exit.YES
    assert "not there" in ran.out
    document = access(run, "show", "--json").document
    assert (document["mcpProfile"], document["mcpSubagentProfile"], document["version"]) == ("all", "inherit", "none")
    assert sorted(path.name for path in Path().iterdir()) == ["host.json", "lineage.json"]


def test_asking_leaves_no_trace_beside_the_file(run: Run) -> None:
    write("settings.json", SETTINGS)
    for words in (["show"], ["check"], ["explain", "t"], ["history"]):
        assert access(run, *words).code == Exit.YES
    assert sorted(path.name for path in Path().iterdir()) == ["host.json", "lineage.json", "settings.json"]


def test_another_file_is_named_by_an_option(run: Run) -> None:
    write("mine.json", SETTINGS)
    ran = access(run, "show", "--settings", "mine.json", "-v")
    assert "lean: servers mail; groups threads" in ran.out
    assert "settings: mine.json" in ran.err


def test_profiles_defaults_and_picks_are_saved_one_after_the_other(run: Run) -> None:
    added = access(run, "profile", "add", "lean", "--servers", "mail,files", "--groups", "none", "--json").document
    assert (added["previous"], added["changed"]) == ("none", True)
    assert access(run, "set", "mcpProfile", "host-only").out.startswith("mcpProfile is host-only (version ")
    assert access(run, "set", "mcpSubagentProfile", "lean", "--project", "acme").code == Exit.YES
    assert access(run, "pick", "build-7", "lean").code == Exit.YES
    assert settings() == {
        "mcpProfiles": {"lean": {"servers": ["mail", "files"], "groups": []}},
        "mcpProfile": "host-only",
        "projects": {"acme": {"mcpSubagentProfile": "lean"}},
        "mcpThreadProfiles": {"build-7": "lean"},
    }
    shown = access(run, "show").out
    for line in ("mcpProfile          host-only", "in project acme, mcpSubagentProfile is lean", "build-7  lean"):
        assert line in shown
    access(run, "pick", "build-7", "--remove")
    access(run, "set", "mcpProfile", "--unset")
    assert (settings()["mcpThreadProfiles"], settings().get("mcpProfile")) == ({}, None)


def test_the_tools_of_a_server_are_allowed_and_denied_one_by_one(run: Run) -> None:
    rules = [
        "--allow",
        "mail/search",
        "--allow",
        "files/",
        "--deny",
        "mail/send",
        "--deny",
        "mail/draft",
        "--deny",
        "web",
    ]
    access(run, "profile", "add", "p", "--servers", "all", "--groups", "all", *rules)
    assert settings()["mcpProfiles"]["p"]["tools"] == {
        "mail": {"allow": ["search"], "deny": ["send", "draft"]},
        "files": {"allow": []},
        "web": {"deny": "all"},
    }
    shown = access(run, "show").out
    for line in ("of mail only search, not draft, send", "of files only none", "of web not all"):
        assert line in shown


def test_a_refused_save_is_a_no_with_the_setting_and_the_fix_and_writes_nothing(run: Run) -> None:
    write("settings.json", SETTINGS)
    ran = access(run, "pick", "t", "nobody", "--json")
    assert ran.code == Exit.NO
    assert (ran.error["code"], ran.error["setting"]) == ("refused", "mcpThreadProfiles.t")
    assert "add that profile first" in ran.error["hint"]
    assert settings() == SETTINGS
    text = access(run, "set", "mcpProfile", "inherit").err
    assert "error: mcpProfile names" in text
    assert "hint: pick a profile" in text


def test_all_that_is_wrong_with_a_save_is_told(run: Run) -> None:
    words = ["profile", "add", "p", "--servers", "all", "--groups", "threds,nothing", "--host", "host.json"]
    ran = access(run, *words, "--json")
    assert ran.code == Exit.NO
    said = [ran.error["message"], *ran.error["others"]]
    assert len(said) == 2
    assert any("threds" in one for one in said)
    assert "nothing" in access(run, *words).err


def test_a_profile_in_use_is_kept_and_its_users_are_named(run: Run) -> None:
    write("settings.json", {**SETTINGS, "mcpThreadProfiles": {"t": "lean"}, "projects": {"p": {"mcpProfile": "lean"}}})
    for words in (["remove", "lean"], ["rename", "lean", "slim"]):
        ran = access(run, "profile", *words, "--json")
        assert ran.code == Exit.NO
        for user in ("mcpSubagentProfile", "mcpThreadProfiles.t", "projects.p.mcpProfile"):
            assert user in ran.error["message"]
    ran = access(run, "profile", "rename", "lean", "slim", "--everywhere")
    assert ran.code == Exit.YES
    assert settings() == {
        "mcpProfiles": {"slim": SETTINGS["mcpProfiles"]["lean"]},
        "mcpSubagentProfile": "slim",
        "mcpThreadProfiles": {"t": "slim"},
        "projects": {"p": {"mcpProfile": "slim"}},
    }


def test_a_profile_that_is_there_is_replaced_only_when_asked_to(run: Run) -> None:
    write("settings.json", SETTINGS)
    words = ["profile", "add", "lean", "--servers", "none", "--groups", "none"]
    assert access(run, *words).code == Exit.USAGE
    assert settings() == SETTINGS
    assert access(run, *words, "--replace").code == Exit.YES
    assert settings()["mcpProfiles"]["lean"] == {"servers": [], "groups": []}


def test_a_profile_that_cannot_be_used_is_renamed_as_it_stands_and_then_removed(run: Run) -> None:
    text = '{"mcpProfiles": {"new": {"servers": "all", "groups": "all"}, "old": {"servers": "all", "groups": "all"}}}'
    write("settings.json", text)
    assert access(run, "profile", "rename", "old", "new").code == Exit.USAGE
    assert access(run, "profile", "rename", "old", "other").code == Exit.YES
    assert access(run, "profile", "remove", "other").code == Exit.YES
    assert list(settings()["mcpProfiles"]) == ["new"]
    ran = access(run, "profile", "remove", "nw")
    assert (ran.code, "'new'" in ran.err) == (Exit.USAGE, True)


def test_who_saves_from_an_old_version_is_told(run: Run) -> None:
    version = access(run, "set", "mcpProfile", "host-only", "--json").document["version"]
    assert access(run, "set", "mcpProfile", "all", "--based-on", version).code == Exit.YES
    ran = access(run, "set", "mcpProfile", "host-only", "--based-on", version, "--json")
    assert (ran.code, ran.error["code"]) == (Exit.NO, "conflict")
    assert access(run, "pick", "t", "all", "--based-on", version).code == Exit.YES


def test_history_lists_what_was_saved_and_restore_brings_it_back(run: Run) -> None:
    assert "no version" in access(run, "history").out
    first = access(run, "set", "mcpProfile", "host-only", "--json").document["version"]
    access(run, "set", "mcpProfile", "all")
    rows = access(run, "history", "--json").document["versions"]
    assert [row["current"] for row in rows] == [True, False]
    assert rows[1]["version"] == first
    assert len(access(run, "history", "--format", "jsonl").out.splitlines()) == 2
    assert access(run, "restore", first[:6]).code == Exit.YES
    assert settings() == {"mcpProfile": "host-only"}
    assert access(run, "restore", "abc").code == Exit.USAGE


def test_a_file_that_cannot_be_read_is_told_loudly_left_alone_and_restored(run: Run) -> None:
    version = access(run, "set", "mcpProfile", "host-only", "--json").document["version"]
    write("settings.json", "{ broken")
    shown = access(run, "show", "--json")
    assert shown.document["mcpProfile"] == "host-only"
    assert "line 1" in shown.document["problem"]
    assert "warning: settings.json can't be read" in shown.err
    assert access(run, "explain", "t").code == Exit.YES
    assert access(run, "check").code == Exit.NO
    assert access(run, "set", "mcpProfile", "all", "--json").error["code"] == "store"
    assert Path("settings.json").read_text(encoding="utf-8") == "{ broken"
    assert access(run, "restore", version).code == Exit.YES
    assert access(run, "check").code == Exit.YES


def test_a_file_that_never_could_be_read_refuses_every_thread(run: Run) -> None:
    write("settings.json", "{ broken")
    assert "every thread is refused" in access(run, "show").out
    ran = access(run, "explain", "t", "--json")
    assert (ran.code, ran.document["refused"]["code"]) == (Exit.NO, "unreadable_settings")


def test_a_thread_is_explained_step_by_step(run: Run) -> None:
    write("settings.json", SETTINGS)
    ran = access(run, "explain", "helper", "--lineage", "lineage.json", "--host", "host.json")
    assert ran.code == Exit.YES
    for line in (
        "1. the owner made no pick for it",
        '2. it is a sub-agent, and mcpSubagentProfile is "lean"',
        '3. as a child of "main" it is cut down to what that has',
        "servers  mail",
        "groups   threads",
        "mail: search",
        "finding: tool_search",
    ):
        assert line in ran.out
    withheld = ran.out.partition("withheld")[2]
    for line in ("files: all of it", "mail: send", "secrets: "):
        assert line in withheld
    document = access(run, "explain", "helper", "--lineage", "lineage.json", "--host", "host.json", "--json").document
    assert document["access"]["tools"] == {
        "mail": ["search"],
        "finding": ["tool_search"],
        "threads": ["close", "open"],
    }
    assert document["steps"][1]["setting"] == "mcpSubagentProfile"


@pytest.mark.parametrize(
    ("thread", "tool", "code"),
    [
        ("helper", "mail/search", Exit.YES),
        ("helper", "mail/send", Exit.NO),
        ("helper", "files/read", Exit.NO),
        ("helper", "threads/open", Exit.YES),
        ("helper", "finding/tool_search", Exit.YES),
        ("helper", "mail/nothing", Exit.NO),
        ("helper", "nobody/nothing", Exit.NO),
        ("main", "mail/send", Exit.YES),
        ("fork", "mail/send", Exit.NO),
        ("lost", "mail/search", Exit.NO),
        ("unheard-of", "mail/search", Exit.NO),
    ],
)
def test_a_decision_can_be_asked_of_files_alone(run: Run, thread: str, tool: str, code: Exit) -> None:
    write("settings.json", SETTINGS)
    words = ["explain", thread, "--lineage", "lineage.json", "--host", "host.json", "--tool", tool]
    ran = access(run, *words)
    assert ran.code == code
    assert f"{tool} {'✓ is given' if code == Exit.YES else '✗ is not given'}: " in ran.out
    document = access(run, *words, "--json").document["tool"]
    assert (document["server"], document["tool"]) == tuple(tool.split("/"))
    assert document["allowed"] == (code == Exit.YES)
    assert document["reason"]


def test_a_server_with_a_slash_in_its_name_is_asked_about_whole(run: Run) -> None:
    write("slash.json", {"servers": {"a/b": ["c/d"]}})
    ran = access(run, "explain", "t", "--host", "slash.json", "--tool", "a/b/c/d", "--json")
    assert (ran.document["tool"]["server"], ran.document["tool"]["tool"]) == ("a/b", "c/d")


def test_without_a_host_only_the_profiles_are_told(run: Run) -> None:
    write("settings.json", SETTINGS)
    ran = access(run, "explain", "helper", "--lineage", "lineage.json")
    assert "lean gives: servers mail; groups threads" in ran.out
    document = access(run, "explain", "helper", "--lineage", "lineage.json", "--json").document
    assert list(document["access"]) == ["profiles"]
    assert access(run, "explain", "helper", "--tool", "mail/send").code == Exit.USAGE


def test_names_that_are_not_there_are_told_with_a_refusal_or_as_giving_nothing(run: Run) -> None:
    profiles = {"odd": {"servers": ["mial"], "groups": ["threds"]}}
    write("settings.json", {"mcpProfiles": profiles, "mcpThreadProfiles": {"t": "odd", "u": "Odd"}})
    ran = access(run, "explain", "t", "--host", "host.json")
    assert "not set up, so nothing is given of them: mial" in ran.out
    assert "nothing is kept of them: threds" in ran.out
    ran = access(run, "explain", "u")
    assert ran.code == Exit.NO
    assert "refused: " in ran.out
    assert "fix: " in ran.out


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"mcpProfile": 5}, "mcpProfile"),
        ({"mcpProfile": "lean"}, "mcpProfile"),
        ({"mcpThreadProfiles": []}, "mcpThreadProfiles"),
        ({"mcpProfiles": {"all": {"servers": [], "groups": []}}}, "mcpProfiles.all"),
        ({"mcpProfiles": {"p": {"servers": ["mial"], "groups": []}}}, "mcpProfiles.p.servers"),
        ({"mcpProfiles": {"p": {"servers": "all", "groups": ["threds"]}}}, "mcpProfiles.p.groups"),
        (
            {"mcpProfiles": {"p": {"servers": "all", "groups": [], "tools": {"mail": {"deny": ["snd"]}}}}},
            "mcpProfiles.p.tools.mail.deny",
        ),
        ('{"mcpProfile": "all", "mcpProfile": "host-only"}', "mcpProfile"),
    ],
)
def test_a_check_says_no_to_whatever_means_nothing(run: Run, content: Any, named: str) -> None:
    write("settings.json", content)
    ran = access(run, "check", "--host", "host.json")
    assert ran.code == Exit.NO
    assert f"✗ {named}" in ran.out
    assert "fix: " in ran.out
    findings = access(run, "check", "--host", "host.json", "--json").document["findings"]
    assert [finding["setting"] for finding in findings] == [named]
    assert access(run, "check", "--host", "host.json", "--format", "jsonl").out.count("\n") == 1


def test_a_check_is_content_with_settings_that_mean_what_they_say(run: Run) -> None:
    assert access(run, "check", "--host", "host.json").code == Exit.YES
    write("settings.json", SETTINGS)
    ran = access(run, "check", "--host", "host.json")
    assert (ran.code, ran.out) == (Exit.YES, "✓ nothing is wrong with settings.json\n")


def test_a_check_finds_what_is_wrong_with_the_host(run: Run) -> None:
    write("host.json", {"toolkits": {"finding": {"group": None, "tools": ["tool_search"]}}})
    ran = access(run, "check", "--host", "host.json")
    assert (ran.code, "tool_search" in ran.out) == (Exit.NO, True)


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "t", "--host", "missing.json"],
        ["explain", "t", "--host", "bad.json"],
        ["explain", "t", "--lineage", "bad.json"],
        ["explain", "t", "--lineage", "typo.json"],
        ["explain", "t", "--host", "host.json", "--tool", "mail"],
        ["set", "mcpProfile"],
        ["set", "mcpProfile", "all", "--unset"],
        ["set", "mcpThreadProfiles", "all"],
        ["set", "nothing", "all"],
        ["pick", "t"],
        ["pick", "t", "all", "--remove"],
        ["profile", "add", "p", "--servers", "all"],
        ["profile", "add", "p", "--servers", "all", "--groups", "all", "--allow", "mail"],
        ["profile", "add", "p", "--servers", "all", "--groups", "all", "--deny", "mail/"],
        ["profile", "rename", "nobody", "somebody"],
    ],
)
def test_what_cannot_be_asked_is_a_usage_error_with_a_hint(run: Run, words: list[str]) -> None:
    write("bad.json", "{")
    write("typo.json", {"t": {"delegate": True}})
    ran = access(run, *words, "--json")
    assert (ran.code, ran.error["code"]) == (Exit.USAGE, "config")


def test_text_of_the_file_cannot_act_on_a_terminal(run: Run) -> None:
    write(
        "settings.json",
        {"mcpThreadProfiles": {"\x1b[31mred\nmcpProfile  all": "\x1b]0;x\x07"}, "mcpProfile": "\x1b[2J"},
    )
    for words in (["show"], ["check"], ["explain", "t"], ["explain", "\x1b[31mred"]):
        ran = access(run, *words)
        assert "\x1b" not in ran.out + ran.err
        assert "\nmcpProfile  all" not in ran.out


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from hotplug.cli import main; main(['access', '--help']); main(['access', 'explain', '--help']);"
        "print(sorted(name for name in sys.modules if name.startswith(('hotplug.store', 'hotplug.access', 'rich'))))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_a_save_of_the_command_line_is_what_a_program_reads(run: Run) -> None:
    access(run, "set", "mcpProfile", "host-only")
    assert SettingsFile("settings.json").read().default == "host-only"
