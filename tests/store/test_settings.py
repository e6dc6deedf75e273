"""The settings file: whatever is in it is read, and a save is done whole or not at all."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotplug.store.settings as module
from hotplug.access import Host, PatchRefused, Settings
from hotplug.errors import ConfigError, Conflict, StoreError
from hotplug.store import SettingsFile
from hotplug.store.settings import default_settings_path
from hotplug.store.whole import locked

HOST = Host(servers={"mail": ("send", "read")}, toolkits={}, ungrouped={})
LEAN = {"servers": ["mail"], "groups": []}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


@pytest.fixture
def file(path: Path) -> SettingsFile:
    return SettingsFile(path)


def save(file: SettingsFile, patch: dict[str, Any], **more: Any) -> Any:
    return file.save(patch, **{"role": "person", "host": HOST, **more})


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def pick(thread: str, profile: str | None) -> dict[str, Any]:
    return {"mcpThreadProfiles": {thread: profile}}


def test_a_file_that_is_not_there_reads_as_the_defaults_and_is_made_by_the_first_save(
    file: SettingsFile, path: Path
) -> None:
    assert file.read() == Settings()
    assert list(path.parent.iterdir()) == []
    saved = save(file, {"mcpProfile": "host-only"})
    assert (saved.previous, saved.changed) == ("none", True)
    assert document(path) == {"mcpProfile": "host-only"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_save_makes_the_folders_on_the_way(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "settings.json"
    save(SettingsFile(path), {"mcpProfile": "host-only"})
    assert document(path) == {"mcpProfile": "host-only"}


def test_what_a_save_does_not_change_keeps_its_digits_order_and_oddities(file: SettingsFile, path: Path) -> None:
    path.write_text('{"z": 1.50, "mcpProfile": 5, "a": {"b": 1E400}, "mcpThreadProfiles": {"t": "Lean"}}', "utf-8")
    save(file, {"mcpProfiles": {"lean": LEAN}})
    text = path.read_text(encoding="utf-8")
    assert text.index('"z"') < text.index('"mcpProfile"') < text.index('"a"') < text.index('"mcpThreadProfiles"')
    assert "1.50" in text
    assert "1E400" in text
    assert document(path)["mcpProfile"] == 5
    assert document(path)["mcpThreadProfiles"] == {"t": "Lean"}


def test_saving_the_same_again_writes_nothing(file: SettingsFile, path: Path) -> None:
    first = save(file, {"mcpProfile": "host-only"})
    before = path.stat()
    again = save(file, {"mcpProfile": "host-only"})
    assert (again.version, again.previous, again.changed) == (first.version, first.version, False)
    assert path.stat().st_ino == before.st_ino


def test_a_refused_save_writes_nothing_of_its_patch(file: SettingsFile, path: Path) -> None:
    save(file, {"mcpProfile": "host-only"})
    before = path.read_bytes()
    with pytest.raises(PatchRefused, match="mcpProfile"):
        save(file, {"mcpThreadProfiles": {"t": "all"}, "mcpProfile": "lean"})
    assert path.read_bytes() == before
    assert len(file.history()) == 1


def test_two_windows_that_save_different_picks_both_keep_theirs(path: Path) -> None:
    one, other = SettingsFile(path), SettingsFile(path)
    save(one, {"mcpProfiles": {"lean": LEAN}})
    version = one.look().version
    save(one, pick("a", "lean"), based_on=version)
    save(other, pick("b", "host-only"), based_on=version)
    assert document(path)["mcpThreadProfiles"] == {"a": "lean", "b": "host-only"}


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        (pick("a", "lean"), pick("a", "host-only"), "mcpThreadProfiles.a"),
        ({"mcpProfile": "lean"}, {"mcpProfile": "host-only"}, "mcpProfile"),
        ({"mcpProfiles": {"wide": LEAN}}, {"mcpProfiles": {"wide": {**LEAN, "groups": "all"}}}, "mcpProfiles.wide"),
        ({"projects": {"p": {"mcpProfile": "lean"}}}, {"projects": {"p": {"mcpProfile": "all"}}}, "projects.p"),
    ],
)
def test_the_later_of_two_who_change_the_same_setting_is_told(
    file: SettingsFile, path: Path, first: dict[str, Any], second: dict[str, Any], named: str
) -> None:
    base = save(file, {"mcpProfiles": {"lean": LEAN}}).version
    save(file, first, based_on=base)
    before = path.read_bytes()
    with pytest.raises(Conflict, match=named):
        save(file, second, based_on=base)
    assert path.read_bytes() == before


def test_who_saw_no_file_is_told_of_what_somebody_put_there_since(file: SettingsFile) -> None:
    save(file, {"mcpProfile": "host-only"})
    with pytest.raises(Conflict, match="mcpProfile"):
        save(file, {"mcpProfile": "all"}, based_on="none")
    save(file, pick("a", "all"), based_on="none")


def test_a_version_that_is_not_kept_is_a_conflict(file: SettingsFile) -> None:
    save(file, {"mcpProfile": "host-only"})
    with pytest.raises(Conflict, match="0123456789abcdef"):
        save(file, {"mcpProfile": "all"}, based_on="0123456789abcdef")


def test_an_edit_by_hand_is_kept_as_a_version_and_conflicts_as_any_other(file: SettingsFile, path: Path) -> None:
    base = save(file, {"mcpProfile": "host-only"}).version
    path.write_text('{"mcpProfile": "all", "note": "by hand"}', encoding="utf-8")
    with pytest.raises(Conflict):
        save(file, {"mcpProfile": "host-only"}, based_on=base)
    save(file, {"mcpProfile": "host-only"})
    file.restore(file.history()[1].version, role="person")
    assert document(path) == {"mcpProfile": "all", "note": "by hand"}


def test_an_agent_may_change_only_what_is_on_its_list(path: Path) -> None:
    with pytest.raises(PatchRefused, match="mcpProfile"):
        save(SettingsFile(path), {"mcpProfile": "host-only"}, role="agent")
    with pytest.raises(PatchRefused, match="person"):
        SettingsFile(path).restore("0123", role="agent")
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"5", b"\xff\xfe", b'{"mcpProfile": "host-only"', b"{} {}"])
def test_a_file_that_cannot_be_read_is_left_alone_and_the_last_good_copy_is_used(
    file: SettingsFile, path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    version = save(file, {"mcpProfile": "host-only"}).version
    path.write_bytes(content)
    for reader in (file, SettingsFile(path)):
        assert reader.read().default == "host-only"
        looked = reader.look()
        assert (looked.version, looked.stands_in) == (version, True)
    with pytest.raises(StoreError, match="nothing is saved"):
        save(file, pick("t", "all"))
    assert path.read_bytes() == content
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert version in caplog.text


def test_a_file_that_cannot_be_read_and_never_could_refuses_every_thread(file: SettingsFile, path: Path) -> None:
    path.write_text("{", encoding="utf-8")
    settings = file.read()
    assert settings.refuses_all
    assert not file.look().stands_in
    with pytest.raises(StoreError):
        save(file, {"mcpProfile": "host-only"})
    assert path.read_text(encoding="utf-8") == "{"


def test_a_file_that_is_gone_widens_nobody(file: SettingsFile, path: Path) -> None:
    save(file, {"mcpProfile": "host-only"})
    path.unlink()
    assert file.read().default == "host-only"
    assert SettingsFile(path).read().default == "host-only"
    with pytest.raises(StoreError, match="gone"):
        save(file, {"mcpProfile": "all"})
    file.restore(file.history()[0].version[:6], role="person")
    assert document(path) == {"mcpProfile": "host-only"}


def test_what_was_only_read_is_kept_as_the_copy_too(path: Path) -> None:
    path.write_text('{"mcpProfile": "host-only"}', encoding="utf-8")
    SettingsFile(path).read()
    path.write_text("{", encoding="utf-8")
    assert SettingsFile(path).read().default == "host-only"


def test_a_look_leaves_no_trace(file: SettingsFile, path: Path) -> None:
    path.write_text("{}", encoding="utf-8")
    assert file.look().problem is None
    assert file.history() == ()
    assert [one.name for one in path.parent.iterdir()] == ["settings.json"]


def test_the_copy_is_what_this_process_saw_where_none_can_be_kept(file: SettingsFile, path: Path) -> None:
    path.with_name("settings.json-versions").write_text("in the way", encoding="utf-8")
    path.write_text('{"mcpProfile": "host-only"}', encoding="utf-8")
    assert file.read().default == "host-only"
    path.write_text("{", encoding="utf-8")
    assert file.read().default == "host-only"


def test_a_file_that_is_whole_again_is_used_again_and_the_next_break_is_told_anew(
    file: SettingsFile, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for default in ("host-only", "lean"):
        path.write_text(json.dumps({"mcpProfile": default}), encoding="utf-8")
        assert file.read().default == default
        path.write_text("{", encoding="utf-8")
        assert file.read().default == default
        assert file.read().default == default
    assert len(caplog.records) == 2


def test_a_change_is_seen_at_the_next_read_also_one_of_the_same_size_at_once(file: SettingsFile, path: Path) -> None:
    for number in range(50):
        path.write_text(f'{{"mcpProfile": "p{number:02}"}}', encoding="utf-8")
        assert file.read().default == f"p{number:02}"


def test_while_the_file_stays_the_same_so_do_the_settings_and_an_old_file_is_not_even_opened(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("{}", encoding="utf-8")
    first = file.read()
    path.write_text("{}", encoding="utf-8")
    assert file.read() is first
    monkeypatch.setattr(module, "_SETTLED_NS", -(10**12))
    assert file.read() is first
    monkeypatch.setattr(module, "read_content", None)
    assert file.read() is first
    monkeypatch.undo()
    path.write_text('{"mcpProfile": "host-only"}', encoding="utf-8")
    assert file.read().default == "host-only"


def test_a_link_that_leads_elsewhere_is_seen_at_the_next_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTLED_NS", -(10**12))
    link = tmp_path / "settings.json"
    file = SettingsFile(link)
    for name in ("host-only", "lean"):
        (tmp_path / name).write_text(json.dumps({"mcpProfile": name}), encoding="utf-8")
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        assert file.read().default == name
        assert file.read().default == name


def test_a_copy_that_could_not_be_kept_for_a_save_of_somebody_is_kept_later(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SETTLED_NS", -(10**12))
    save(file, {"mcpProfile": "host-only"})
    path.write_text('{"mcpProfile": "lean"}', encoding="utf-8")
    with locked(path.with_name("settings.json-versions") / "lock", patience=0):
        assert file.read().default == "lean"
    assert len(file.history()) == 1
    assert file.read().default == "lean"
    assert len(file.history()) == 2


def test_mode_and_owner_are_kept(file: SettingsFile, path: Path) -> None:
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o640)
    if os.getuid() == 0:
        os.chown(path, 12345, 23456)
    before = path.stat()
    save(file, {"mcpProfile": "host-only"})
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


def test_an_owner_that_cannot_be_kept_refuses_the_save(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("{}", encoding="utf-8")
    if os.getuid() == 0:
        os.chown(path, 12345, 23456)

    def no(*_: Any) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "fchown", no)
    if os.getuid() == 0:
        with pytest.raises(StoreError, match="12345"):
            save(file, {"mcpProfile": "host-only"})
        assert document(path) == {}
    else:
        save(file, {"mcpProfile": "host-only"})


def test_a_link_is_followed_and_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "mine.json"
    target.parent.mkdir()
    link = tmp_path / "settings.json"
    link.symlink_to(Path("dotfiles") / "mine.json")
    save(SettingsFile(link), {"mcpProfile": "host-only"})
    assert link.is_symlink()
    save(SettingsFile(target), pick("t", "all"))
    assert document(link) == document(target) == {"mcpProfile": "host-only", "mcpThreadProfiles": {"t": "all"}}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["dotfiles", "settings.json"]
    assert len(SettingsFile(link).history()) == 2


def test_a_link_to_itself_is_an_error(path: Path) -> None:
    path.symlink_to(path.name)
    file = SettingsFile(path)
    assert file.read().refuses_all
    with pytest.raises(StoreError):
        save(file, {"mcpProfile": "host-only"})


def interfere(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> list[int]:
    """Do something between a save's read and its rename; gives the numbers of the tries."""
    tries: list[int] = []
    real = module.apply_patch

    def apply(*arguments: Any, **more: Any) -> Any:
        tries.append(len(tries))
        act(tries[-1])
        return real(*arguments, **more)

    monkeypatch.setattr(module, "apply_patch", apply)
    return tries


def test_a_save_starts_over_when_the_file_is_changed_under_it(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("{}", encoding="utf-8")
    tries = interfere(
        monkeypatch, lambda number: None if number else void(path.write_text('{"mcpProfile": "host-only"}'))
    )
    save(file, pick("t", "all"))
    assert tries == [0, 1]
    assert document(path) == {"mcpProfile": "host-only", "mcpThreadProfiles": {"t": "all"}}


def test_a_save_starts_over_when_the_link_is_changed_under_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, link = tmp_path / "old.json", tmp_path / "new.json", tmp_path / "settings.json"
    old.write_text('{"old": 1}')
    new.write_text('{"new": 1}')
    link.symlink_to(old.name)

    def turn(number: int) -> None:
        if not number:
            link.unlink()
            link.symlink_to(new.name)

    interfere(monkeypatch, turn)
    save(SettingsFile(link), pick("t", "all"))
    assert document(old) == {"old": 1}
    assert document(new) == {"new": 1, "mcpThreadProfiles": {"t": "all"}}


def test_a_file_that_never_stays_still_is_an_error(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("{}", encoding="utf-8")
    interfere(monkeypatch, lambda number: void(path.write_text(f'{{"number": {number}}}')))
    with pytest.raises(StoreError, match="keeps changing"):
        save(file, pick("t", "all"))
    assert "mcpThreadProfiles" not in document(path)


def void(_: object) -> None:
    return None


@pytest.mark.parametrize("failing", [1, 2])
def test_a_disk_that_fails_before_the_rename_leaves_the_file_as_it_was(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    save(file, {"mcpProfile": "host-only"})
    before = sorted(path.parent.rglob("*")), path.read_bytes()
    fail_sync(monkeypatch, failing)
    with pytest.raises(StoreError, match="can't be saved: No space left"):
        save(file, pick("t", "all"))
    monkeypatch.undo()
    assert (sorted(path.parent.rglob("*")), path.read_bytes()) == before


def test_a_disk_that_fails_after_the_rename_says_that_it_is_saved(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(file, {"mcpProfile": "host-only"})
    fail_sync(monkeypatch, 4)
    with pytest.raises(StoreError, match="is saved, but the disk didn't confirm it"):
        save(file, pick("t", "all"))
    assert document(path)["mcpThreadProfiles"] == {"t": "all"}


def fail_sync(monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    """Let the disk be full at the so-manieth force to it: the version, the file, the versions' folder, the folder."""
    real, calls = os.fsync, [0]

    def fsync(fd: int) -> None:
        calls[0] += 1
        if calls[0] == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)


def test_who_waits_too_long_for_another_save_is_told(
    file: SettingsFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(file, {"mcpProfile": "host-only"})
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    with (
        locked(path.with_name("settings.json-versions") / "lock", patience=0),
        pytest.raises(StoreError, match="somebody else"),
    ):
        save(file, {"mcpProfile": "all"})
    assert document(path) == {"mcpProfile": "host-only"}


def test_history_tells_every_version_newest_first_and_restore_brings_one_back(file: SettingsFile, path: Path) -> None:
    versions = [save(file, {"mcpProfile": name}).version for name in ("host-only", "all")]
    assert [kept.version for kept in file.history()] == versions[::-1]
    assert [kept.current for kept in file.history()] == [True, False]
    restored = file.restore(versions[0], role="person")
    assert (restored.version, restored.previous) == (versions[0], versions[1])
    assert document(path) == {"mcpProfile": "host-only"}
    assert [kept.version for kept in file.history()] == versions


def test_restoring_over_a_file_that_cannot_be_read_keeps_that_as_well(file: SettingsFile, path: Path) -> None:
    version = save(file, {"mcpProfile": "host-only"}).version
    path.write_text("{ by hand", encoding="utf-8")
    file.restore(version, role="person")
    assert [(kept.version == version, kept.readable) for kept in file.history()] == [(True, True), (False, False)]
    with pytest.raises(ConfigError, match="can't be read"):
        file.restore(file.history()[1].version, role="person")


@pytest.mark.parametrize("version", ["", "0000", "zz", "../../etc/passwd"])
def test_a_version_that_is_not_there_is_not_restored(file: SettingsFile, path: Path, version: str) -> None:
    save(file, {"mcpProfile": "host-only"})
    with pytest.raises(ConfigError, match="version"):
        file.restore(version, role="person")
    assert document(path) == {"mcpProfile": "host-only"}


def test_picks_of_threads_that_are_gone_go_in_the_hosts_word_only(file: SettingsFile, path: Path) -> None:
    for thread in ("a", "b"):
        save(file, pick(thread, "host-only"))
    file.prune(["a", "never"])
    assert document(path)["mcpThreadProfiles"] == {"b": "host-only"}


def test_the_default_file_is_the_users_own_and_never_one_of_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("HOTPLUG_SETTINGS", raising=False)
    Path("settings.json").write_text("{}", encoding="utf-8")
    path = default_settings_path()
    assert path.is_relative_to(tmp_path / "home")
    assert path.parts[-2:] == ("hotplug", "settings.json")
    monkeypatch.setenv("HOTPLUG_SETTINGS", "elsewhere.json")
    assert default_settings_path() == Path("elsewhere.json")


def test_settings_that_nobody_wrote_are_the_same_object_until_somebody_does(path: Path) -> None:
    file = SettingsFile(path)
    before = file.read()
    assert file.read() is before
    path.write_text('{"mcpProfile": "host-only"}', encoding="utf-8")
    assert file.read().default == "host-only"
    path.unlink()
    assert file.read().read_only


def test_a_link_to_a_file_that_is_made_later_is_followed(path: Path, tmp_path: Path) -> None:
    file = SettingsFile(path)
    assert file.read().default is None
    there = tmp_path / "there.json"
    path.symlink_to(there)
    assert file.read().default is None
    there.write_text('{"mcpProfile": "host-only"}', encoding="utf-8")
    assert file.read().default == "host-only"


def test_a_file_that_was_just_written_is_kept_once_and_stays_one_object(path: Path) -> None:
    path.write_text('{"mcpProfile": "host-only"}', encoding="utf-8")
    file = SettingsFile(path)
    first = file.read()
    assert first.default == "host-only"
    folder = path.with_name(path.name + "-versions")
    kept = sorted(one.name for one in folder.iterdir())
    for one in folder.iterdir():
        one.unlink()
    assert file.read() is first
    assert not list(folder.iterdir()), kept
