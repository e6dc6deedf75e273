from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hotplug.connect.secrets import (
    ConfiguredSecrets,
    Destination,
    EnvironmentSource,
    NoSecrets,
    Places,
    SecretName,
    held,
    resolve,
)
from hotplug.errors import ConfigError, PermissionDenied
from hotplug.profile import secret

pytestmark = pytest.mark.anyio


def secrets(**fields: object) -> ConfiguredSecrets:
    return ConfiguredSecrets.of_table({"caldav": {"servers": ["work"], **fields}})


async def test_a_secret_goes_only_where_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPLUG_SECRET_CALDAV", "hunter22")
    assert (await secrets().get("caldav", Destination(server="work"))).reveal() == "hunter22"
    for place in (Destination(), Destination(server="play"), Destination(server="work", thread="t1")):
        with pytest.raises(PermissionDenied):
            await secrets().get("caldav", place)


async def test_by_default_a_secret_goes_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPLUG_SECRET_X", "hunter22")
    listed = ConfiguredSecrets.of_table({"x": {}})
    with pytest.raises(PermissionDenied, match="default is nowhere"):
        await listed.get("x", Destination(server="work"))
    with pytest.raises(PermissionDenied):
        await NoSecrets().get("x", Destination(server="work"))


async def test_an_unknown_secret_is_refused_as_one_that_may_not_go_there() -> None:
    known = ConfiguredSecrets({"x": (EnvironmentSource(), Places())})
    with pytest.raises(PermissionDenied) as refused:
        await known.get("x", Destination(server="work"))
    with pytest.raises(PermissionDenied) as unknown:
        await known.get("y", Destination(server="work"))
    assert str(refused.value).replace("x", "y") == str(unknown.value).replace("x", "y")


def test_a_star_admits_any_of_its_kind_and_no_other_kind() -> None:
    places = Places(servers=frozenset({"*"}), members=frozenset({"browser.fill"}))
    assert places.admit(Destination(server="any"))
    assert places.admit(Destination(server="any", member="browser.fill"))
    assert not places.admit(Destination(server="any", member="browser.type"))
    assert not places.admit(Destination(server="any", origin="https://x"))


async def test_no_repr_or_text_of_a_secret_shows_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY", "hunter22")
    value = await secrets(env="MY").get("caldav", Destination(server="work"))
    assert "hunter22" not in f"{value!r} {value} {[value]}"
    assert repr(SecretName("caldav")) == "secret('caldav')"


async def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("hunter22\n")
    path.chmod(0o640)
    source = secrets(file=str(path))
    with pytest.raises(ConfigError, match="chmod 600") as refusal:
        await source.get("caldav", Destination(server="work"))
    assert "hunter22" not in str(refusal.value)
    path.chmod(0o600)
    assert (await source.get("caldav", Destination(server="work"))).reveal() == "hunter22"


async def test_a_command_gives_its_first_line() -> None:
    source = secrets(command=[sys.executable, "-c", "print('hunter22'); print('note')"])
    assert (await source.get("caldav", Destination(server="work"))).reveal() == "hunter22"


async def test_a_command_that_fails_shows_nothing_of_its_output() -> None:
    source = secrets(command=[sys.executable, "-c", "import sys; print('hunter22'); sys.exit('hunter22')"])
    with pytest.raises(ConfigError, match="exit code 1") as refusal:
        await source.get("caldav", Destination(server="work"))
    assert "hunter22" not in str(refusal.value)


async def test_a_missing_keyring_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match=r"hotplug\[keyring\]"):
        await secrets(keyring=True).get("caldav", Destination(server="work"))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("hunter22", "not a table"),
        ({"env": "A", "file": "b"}, "two sources: env and file"),
        ({"value": "hunter22"}, "unknown key 'value'"),
        ({"servers": "work"}, "servers is a list"),
        ({"command": "pass show"}, "command is a list of strings"),
        ({"env": ""}, "env is a string"),
    ],
)
def test_a_wrong_description_is_refused_without_its_value(entry: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refusal:
        ConfiguredSecrets.of_table({"caldav": entry})
    assert "hunter22" not in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("secret:caldav", SecretName("caldav")),
        ({"secret": "caldav"}, SecretName("caldav")),
        (secret("caldav"), SecretName("caldav")),
        ("Bearer secret:github", SecretName("github", "Bearer ")),
        ("the secret:x is out", "the secret:x is out"),
        ("plain", "plain"),
        (5, "5"),
    ],
)
def test_values_of_an_entry_are_plain_or_name_a_secret(value: object, kept: object) -> None:
    assert held(value, "env.X") == kept


async def test_resolving_puts_values_in_and_names_those_that_are_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPLUG_SECRET_CALDAV", "hunter22")
    values = {"Authorization": SecretName("caldav", "Bearer "), "X": "1"}
    plain, masked = await resolve(values, secrets(), Destination(server="work"))
    assert plain == {"Authorization": "Bearer hunter22", "X": "1"}
    assert masked == ["hunter22"]


def test_a_secret_for_certain_threads_goes_nowhere_where_the_thread_isnt_known() -> None:
    places = Places(servers=frozenset({"work"}), threads=frozenset({"t_1"}))
    assert not places.admit(Destination(server="work"))
    assert places.admit(Destination(server="work", thread="t_1"))
    assert places.admit(Destination(server="work", runs_for="t_1"))
    assert not places.admit(Destination(server="work", runs_for="t_2"))
    assert not places.admit(Destination(server="play", runs_for="t_1"))
    assert not places.admit(Destination(server="work", thread="t_2", runs_for="t_1"))
    assert Places(servers=frozenset({"work"})).admit(Destination(server="work", runs_for="t_2"))
    assert not places.admit(Destination(server="work", thread="t_2"))
    assert Places(servers=frozenset({"work"}), threads=frozenset({"*"})).admit(Destination(server="work"))
