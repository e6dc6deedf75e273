"""Changes of `hotplug.toml` on the disk: whole, one at a time, and nothing is lost."""

from __future__ import annotations

import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hotplug.errors import ConfigError, StoreError
from hotplug.gateway.changing import change_config, keep_secret, write_config
from hotplug.gateway.config_file import read_config
from hotplug.gateway.writing import add_server, remove_server


def test_changes_at_the_same_time_all_stay(tmp_path: Path) -> None:
    path = tmp_path / "hotplug.toml"

    def add(number: int) -> None:
        change_config(path, lambda text: add_server(text, f"s{number}", {"command": "x"}, where="f"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(16)))
    assert set(tomllib.loads(path.read_text())["servers"]) == {f"s{number}" for number in range(16)}
    assert {one.name for one in tmp_path.iterdir()} == {"hotplug.toml", ".hotplug.toml-lock"}


def test_a_change_that_fails_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "hotplug.toml"
    path.write_text('[servers.a]\ncommand = "x"\n')

    def refuse(text: str) -> str:
        raise ConfigError("no")

    with pytest.raises(ConfigError, match="no"):
        change_config(path, refuse)
    assert path.read_text() == '[servers.a]\ncommand = "x"\n'
    assert change_config(path, str) is False


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_as_editors_write_it_is_added_to_and_removed_from(tmp_path: Path, mark: str, end: str) -> None:
    path = tmp_path / "hotplug.toml"
    before = f'{mark}# mine{end}[servers.a]{end}command = "x" # of a{end}'.encode()
    path.write_bytes(before)
    change_config(path, lambda text: add_server(text, "b", {"command": "y"}, where="f"))
    assert path.read_bytes().startswith(before)
    assert set(read_config(path).servers) == {"a", "b"}
    change_config(path, lambda text: remove_server(text, "b", where="f"))
    assert path.read_bytes().rstrip() == before.rstrip()
    assert set(read_config(path).servers) == {"a"}


def test_a_link_is_followed_and_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "hotplug.toml"
    target.parent.mkdir()
    target.write_text("# mine\n")
    link = tmp_path / "hotplug.toml"
    link.symlink_to(target)
    assert change_config(link, lambda text: f"{text}# more\n")
    assert link.is_symlink()
    assert target.read_text() == "# mine\n# more\n"


def test_what_another_program_wrote_meanwhile_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "hotplug.toml"
    path.write_text("# one\n")

    def meanwhile(text: str) -> str:
        path.write_text("# an editor's\n")
        return f"{text}# two\n"

    with pytest.raises(StoreError, match="changed meanwhile"):
        change_config(path, meanwhile)
    assert path.read_text() == "# an editor's\n"


def test_a_file_that_is_no_text_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "hotplug.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        change_config(path, str)
    assert path.read_bytes() == b"\xff\xfe"


def test_a_whole_file_replaces_another_only_if_it_may_and_keeps_it_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "hotplug.toml"
    assert write_config(path, "# one\n", replace=False) is None
    with pytest.raises(ConfigError, match="exists already"):
        write_config(path, "# two\n", replace=False)
    path.chmod(0o644)
    kept = write_config(path, "# two\n", replace=True)
    assert kept is not None
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("# one\n", 0o600)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("# two\n", 0o600)


def test_a_secret_s_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "a"
    keep_secret(path, "one")
    keep_secret(path, "one")
    with pytest.raises(ConfigError) as refused:
        keep_secret(path, "two")
    assert "two" not in str(refused.value)
    assert path.read_text() == "one\n"


def test_a_folder_that_can_t_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="can't be written"):
        change_config(tmp_path / "file" / "hotplug.toml", str)
