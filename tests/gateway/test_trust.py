"""A project's file counts once it is trusted, as it stands, and can only add servers and narrow access."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hotplug.access import EVERYTHING, Access, Host, read_settings, resolve
from hotplug.access.lineage import Thread
from hotplug.connect import CommandTarget, EntryTarget
from hotplug.errors import ConfigError, StoreError
from hotplug.gateway.config import GatewayConfig
from hotplug.gateway.trust import Trust, find_projects, load_config, read_project

OWNER = """
[servers.work]
command = "mine"
[servers.broken]
x = 1
[secrets.caldav]
servers = ["work"]
[store]
url = "sqlite:////var/lib/mine.db"
"""

PROJECT = """
[servers.theirs]
command = "./run-server"
[servers.work]
command = "evil"
[servers.broken]
command = "evil"
[secrets.caldav]
servers = ["*"]
[threads.openers]
them = "0000000000000000000000000000000000000000000000000000000000000abc"
[store]
url = "sqlite:///theirs.db"
[serve]
host = "0.0.0.0"
[records]
arguments = true
[access]
servers = ["theirs"]
tools = { theirs = { deny = ["drop"] } }
"""


class Place:
    """An owner's file, and a project with a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.owner = folder / "config" / "hotplug.toml"
        self.project = folder / "code" / "project" / "hotplug.toml"
        self.below = self.project.parent / "src" / "deep"
        self.trust = Trust(folder / "state" / "trusted.json")
        self.owner.parent.mkdir()
        self.below.mkdir(parents=True)
        self.owner.write_text(OWNER)
        self.owner.chmod(0o600)
        self.project.write_text(PROJECT)

    def load(self) -> GatewayConfig:
        return load_config(self.owner, start=self.below, trust=self.trust)

    def trusted(self) -> None:
        self.trust.add(read_project(self.project))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def warned(config: GatewayConfig) -> str:
    return "\n".join(map(str, config.warnings))


def test_a_file_that_isn_t_trusted_counts_for_nothing_and_says_so(place: Place) -> None:
    config = place.load()
    assert list(config.servers) == ["work"]
    assert config.narrowing == ()
    assert f"{place.project} isn't trusted, and counts for nothing" in warned(config)
    assert f"hotplug trust {place.project}" in warned(config)


def test_a_trusted_file_adds_servers_and_narrows(place: Place) -> None:
    place.trusted()
    config = place.load()
    theirs = config.servers["theirs"]
    assert theirs.file == place.project
    assert isinstance(theirs.target, EntryTarget)
    assert theirs.target.launch == CommandTarget(("./run-server",), cwd=str(place.project.parent))
    (narrowing,) = config.narrowing
    assert narrowing.path == place.project
    assert narrowing.profile.servers == frozenset({"theirs"})
    assert narrowing.profile.groups is EVERYTHING


def test_it_replaces_no_server_of_the_owner_s_not_even_a_broken_one(place: Place) -> None:
    place.trusted()
    config = place.load()
    work = config.servers["work"]
    assert (work.file, isinstance(work.target, EntryTarget)) == (place.owner, True)
    assert "mine" in str(work.target)
    assert "neither command nor url" in str(config.broken["broken"])
    assert warned(config).count("your own file has a server of that name") == 2


def test_it_sets_no_secret_thread_store_or_anything_else(place: Place) -> None:
    place.trusted()
    config = place.load()
    alone = load_config(place.owner)
    for name in ("secrets", "threads", "store_url", "host", "records", "names", "origins", "settings"):
        assert getattr(config, name) == getattr(alone, name), name
    for section in ("secrets", "threads", "store", "serve", "records"):
        assert f"{place.project}: {section} counts only in your own file" in warned(config)


def test_a_change_asks_again(place: Place) -> None:
    place.trusted()
    place.project.write_text(PROJECT + "\n")
    config = place.load()
    assert list(config.servers) == ["work"]
    assert "changed since it was trusted" in warned(config)
    place.trusted()
    assert "theirs" in place.load().servers


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text('[servers.theirs]\ncommand = "./run-server"\n'),
        lambda path: path.write_text('[access]\nservers = ["theirs", "work"]\n'),
        lambda path: path.write_text("[[["),
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.write_text("#" * (9 * 1024 * 1024)),
        lambda path: path.unlink(),
        lambda path: path.rename(path.with_suffix(".old")),
    ],
)
def test_a_change_of_a_trusted_file_lifts_nothing_that_it_narrowed(
    place: Place, change: Callable[[Path], object]
) -> None:
    place.trusted()
    before = place.load().narrowing
    change(place.project)
    config = place.load()
    assert list(config.servers) == ["work"]
    assert config.narrowing == before
    assert narrowed(config).tools == (("theirs", "look"),)
    assert "what it narrowed when it was trusted" in warned(config)
    place.trust.forget(place.project)
    assert place.load().narrowing == ()


def test_a_limit_that_can_t_be_read_leaves_nothing_after_a_change_either(place: Place) -> None:
    place.project.write_text("[access]\nservers = [2026-01-01]\n")
    place.trusted()
    place.project.write_text("")
    assert narrowed(place.load()).tools == ()


@pytest.mark.parametrize("text", [PROJECT, "[[["])
def test_a_memory_that_can_t_be_read_lifts_nothing(place: Place, text: str) -> None:
    place.project.write_text(text)
    place.trusted()
    place.trust.path.write_text("{")
    config = place.load()
    assert list(config.servers) == ["work"]
    assert ("work", "read") not in narrowed(config).tools
    assert ("theirs", "drop") not in narrowed(config).tools


def test_a_file_that_was_moved_is_another(place: Place, tmp_path: Path) -> None:
    place.trusted()
    other = tmp_path / "elsewhere" / "hotplug.toml"
    other.parent.mkdir()
    place.project.rename(other)
    config = load_config(place.owner, start=other.parent, trust=place.trust)
    assert "isn't trusted" in warned(config)


def test_what_is_forgotten_isn_t_trusted_any_more(place: Place) -> None:
    place.trusted()
    assert [one.path for one in place.trust.list()] == [place.project]
    assert place.trust.forget(place.project)
    assert not place.trust.forget(place.project)
    assert "isn't trusted" in warned(place.load())


def test_a_link_is_trusted_as_the_file_it_leads_to(place: Place, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(place.project.parent)
    place.trust.add(read_project(link / "hotplug.toml"))
    assert "theirs" in load_config(place.owner, start=link, trust=place.trust).servers


def test_the_owner_s_own_file_is_no_project_s(place: Place) -> None:
    config = load_config(place.owner, start=place.owner.parent, trust=place.trust)
    assert not any("trusted" in str(one) for one in config.warnings)
    assert find_projects(place.below, owner=place.owner) == (place.project,)


def test_of_two_projects_the_nearer_one_s_server_counts_and_both_narrow(place: Place) -> None:
    outer = place.project.parent.parent / "hotplug.toml"
    outer.write_text(
        '[servers.theirs]\ncommand = "outer"\n[servers.more]\ncommand = "outer"\n[access]\nservers = ["more"]\n'
    )
    place.trusted()
    place.trust.add(read_project(outer))
    config = place.load()
    assert config.servers["theirs"].file == place.project
    assert config.servers["more"].file == outer
    assert "a nearer file has a server of that name" in warned(config)
    assert [one.path for one in config.narrowing] == [place.project, outer]
    assert narrowed(config).servers == ()


def narrowed(config: GatewayConfig) -> Access:
    host = Host({"work": ["read"], "theirs": ["look", "drop"], "more": ["x"]})
    access = resolve(read_settings(None), "t", {"t": Thread("t")}, host)
    assert isinstance(access, Access)
    for one in config.narrowing:
        access = access.narrowed(one.profile, str(one.path))
    return access


def test_the_narrowing_is_applied_by_the_resolver_s_own_means(place: Place) -> None:
    place.trusted()
    access = narrowed(place.load())
    assert access.tools == (("theirs", "look"),)
    assert str(place.project) in access.allows("work", "read").reason


@pytest.mark.parametrize(
    "table",
    [
        "access = 3",
        '[access]\nserver = ["theirs"]',
        "[access]\nservers = 3",
        "[access]\ntools = { theirs = { alow = [] } }",
        "[access]\ntools = { theirs = 2026-01-01 }",
    ],
)
def test_an_access_table_that_can_t_be_read_leaves_nothing(place: Place, table: str) -> None:
    place.project.write_text(table + "\n")
    place.trusted()
    config = place.load()
    assert narrowed(config).tools == ()
    assert "leaves nothing to anybody" in warned(config)


@pytest.mark.parametrize(
    "entry",
    [
        'target = "module:object"',
        'target = "server.py:object"',
        'target = "~/.claude.json#github"',
        'command = "x"\nprojection = "with-code.yaml"',
        'command = "x"\nprojection = "/elsewhere/with-code.yml"',
    ],
)
def test_a_server_beyond_what_was_trusted_is_refused(place: Place, entry: str) -> None:
    place.project.write_text(f"[servers.sly]\n{entry}\n")
    place.trusted()
    config = place.load()
    assert "sly" not in config.servers
    assert config.broken["sly"].hint is not None


def test_a_trusted_file_that_is_no_toml_costs_only_itself(place: Place) -> None:
    place.project.write_text("[[[")
    place.trust.add(read_project(place.project))
    config = place.load()
    assert list(config.servers) == ["work"]
    assert "is not TOML" in warned(config)


def test_a_memory_that_can_t_be_read_trusts_nothing(place: Place) -> None:
    place.trusted()
    place.trust.path.write_text("{")
    config = place.load()
    assert list(config.servers) == ["work"]
    assert "can't be read as what was trusted" in warned(config)
    with pytest.raises(StoreError):
        place.trusted()
    place.trust.path.write_text(json.dumps({"schema": "hotplug.trusted/9", "files": {}}))
    assert "of another build" in warned(place.load())


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_the_memory_is_its_owner_s_alone(place: Place) -> None:
    place.trusted()
    assert place.trust.path.stat().st_mode & 0o777 == 0o600


def test_an_owner_s_file_that_was_named_and_isn_t_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        load_config(tmp_path / "none.toml")
