"""Field reports about settings that change while threads run, each named after its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotplug.access import Host, PatchRefused, Thread, Toolkit, resolve
from hotplug.errors import Conflict, StoreError
from hotplug.store import SettingsFile

HOST = Host(
    servers={"mail": ("search", "send"), "files": ("read",)},
    toolkits={"threads": Toolkit("threads", ("open",))},
)
LINEAGE = {
    "main": Thread("main"),
    "sub": Thread("sub", parent="main", delegated=True),
    "other": Thread("other"),
}
LEAN = {"servers": ["mail"], "groups": ["threads"], "tools": {"mail": {"deny": ["send"]}}}


@pytest.fixture
def file(tmp_path: Path) -> SettingsFile:
    """A running gateway's file, with a profile `lean` for sub-agents."""
    made = SettingsFile(tmp_path / "settings.json")
    save(
        made, {"mcpProfiles": {"lean": LEAN, "wide": {"servers": "all", "groups": "all"}}, "mcpSubagentProfile": "lean"}
    )
    return made


def save(file: SettingsFile, patch: dict[str, Any], **more: Any) -> Any:
    return file.save(patch, role="person", host=HOST, **more)


def by_hand(file: SettingsFile, old: str, new: str) -> None:
    text = file.path.read_text(encoding="utf-8")
    assert old in text
    file.path.write_text(text.replace(old, new, 1), encoding="utf-8")


def tools(file: SettingsFile, thread: str, host: Host = HOST) -> list[str]:
    """What a thread's next call finds."""
    found = resolve(file.read(), thread, LINEAGE, host)
    return [f"{server}/{tool}" for server, tool in getattr(found, "tools", ())]


def reason(file: SettingsFile, thread: str) -> str:
    return resolve(file.read(), thread, LINEAGE, HOST).allows("mail", "search").reason


def test_fr48_a_bad_value_closes_its_part_and_nothing_else_also_while_threads_run(file: SettingsFile) -> None:
    save(file, {"mcpThreadProfiles": {"other": "wide"}})
    by_hand(file, '"wide": {', '"wide": {"later": 1, ')
    before = file.path.read_bytes()
    assert tools(file, "sub") == ["mail/search", "threads/open"]
    assert tools(file, "other") == []
    assert "mcpProfiles.wide.later" in reason(file, "other")
    assert file.path.read_bytes() == before


def test_fr48_a_file_that_becomes_bad_keeps_its_denials(file: SettingsFile) -> None:
    assert tools(file, "sub") == ["mail/search", "threads/open"]
    file.path.write_bytes(file.path.read_bytes()[:40])
    before = file.path.read_bytes()
    assert tools(file, "sub") == ["mail/search", "threads/open"]
    assert tools(SettingsFile(file.path), "sub") == ["mail/search", "threads/open"]
    assert file.path.read_bytes() == before


def test_fr49_a_file_that_cannot_be_read_is_not_written(file: SettingsFile) -> None:
    file.path.write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match="nothing is saved"):
        save(file, {"mcpProfile": "lean"})
    assert file.path.read_text(encoding="utf-8") == "{"


def test_fr49_two_windows_lose_no_change_and_the_later_is_told(file: SettingsFile) -> None:
    seen = file.look().version
    save(file, {"mcpProfiles": {"a": LEAN}}, based_on=seen)
    save(file, {"mcpProfiles": {"b": LEAN}}, based_on=seen)
    with pytest.raises(Conflict):
        save(file, {"mcpProfiles": {"a": {**LEAN, "groups": []}}}, based_on=seen)
    profiles = json.loads(file.path.read_text(encoding="utf-8"))["mcpProfiles"]
    assert list(profiles) == ["lean", "wide", "a", "b"]
    assert profiles["a"] == LEAN


def test_fr49_what_is_saved_is_what_the_reader_can_use(file: SettingsFile) -> None:
    with pytest.raises(PatchRefused):
        save(file, {"mcpProfiles": {"c": {"servers": "all"}}, "mcpProfile": "c"})
    assert file.read().markers == ()


def test_fr50_a_server_that_comes_back_under_its_name_is_still_off(file: SettingsFile) -> None:
    without = Host(servers={"files": ("read",)}, toolkits=HOST.toolkits)
    assert tools(file, "sub", without) == ["threads/open"]
    save(file, {"mcpThreadProfiles": {"other": "lean"}})
    assert tools(file, "sub") == ["mail/search", "threads/open"]


def test_fr51_a_profile_in_use_is_not_removed_and_its_users_are_named(file: SettingsFile) -> None:
    save(file, {"mcpThreadProfiles": {"other": "wide"}})
    with pytest.raises(PatchRefused, match=r"mcpThreadProfiles\.other"):
        save(file, {"mcpProfiles": {"wide": None}})
    assert tools(file, "other") != []


def test_fr51_a_thread_whose_profile_was_taken_away_by_hand_is_refused_and_can_be_given_another(
    file: SettingsFile,
) -> None:
    save(file, {"mcpThreadProfiles": {"other": "wide"}})
    assert "files/read" in tools(file, "other")
    by_hand(file, '"wide": {', '"wider": {')
    assert tools(file, "other") == []
    assert '"wide", which is not set up' in reason(file, "other")
    save(file, {"mcpThreadProfiles": {"other": "lean"}})
    assert tools(file, "other") == ["mail/search", "threads/open"]


def test_fr52_a_right_that_is_taken_away_is_gone_at_the_next_call_and_after_an_unrelated_edit(
    file: SettingsFile,
) -> None:
    save(file, {"mcpThreadProfiles": {"other": "wide"}})
    running = tools(file, "other")
    save(file, {"mcpProfiles": {"wide": {"servers": ["files"], "groups": "all"}}})
    assert set(running) - set(tools(file, "other")) == {"mail/search", "mail/send"}
    wide = json.loads(file.path.read_text(encoding="utf-8"))["mcpProfiles"]["wide"]
    save(file, {"mcpProfiles": {"wide": None, "broad": wide}, "mcpThreadProfiles": {"other": "broad"}, "theme": 1})
    assert tools(file, "other") == ["files/read", "threads/open"]
