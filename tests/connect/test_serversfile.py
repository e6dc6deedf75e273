from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotplug.connect.secrets import SecretName
from hotplug.connect.serversfile import find_server, read_servers
from hotplug.connect.target import CommandTarget, HttpTarget, NamedTarget
from hotplug.errors import ConfigError

TOML = """
[servers.work]
command = "npx"
args = ["-y", "caldav-mcp"]
env = { CALDAV_PASSWORD = "secret:caldav", OTHER = { secret = "other" } }
profile = "calendar"

[servers.remote]
url = "https://mcp.example/mcp"
headers = { Authorization = "Bearer secret:remote" }

[servers.broken]
command = 5
env = { TOKEN = "hunter22" }

[secrets.caldav]
env = "MY_PASSWORD"
servers = ["work"]
"""


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "hotplug.toml"
    path.write_text(TOML)
    return path


def test_a_server_of_hotplug_toml_is_found_by_its_name(toml: Path) -> None:
    target = find_server(NamedTarget("work"), (read_servers(toml),))
    assert target.launch == CommandTarget(
        ("npx", "-y", "caldav-mcp"), {"CALDAV_PASSWORD": SecretName("caldav"), "OTHER": SecretName("other")}
    )
    assert target.rest == {"profile": "calendar"}
    assert target.describe()["file"] == str(toml)


def test_a_header_may_hold_a_secret_after_its_scheme(toml: Path) -> None:
    target = read_servers(toml).server("remote")
    assert isinstance(target.launch, HttpTarget)
    assert target.launch.headers == {"Authorization": SecretName("remote", "Bearer ")}


def test_one_broken_entry_costs_only_itself_and_is_named_without_its_values(toml: Path) -> None:
    servers = read_servers(toml)
    assert servers.names == ("work", "remote", "broken")
    with pytest.raises(ConfigError) as refusal:
        servers.server("broken")
    assert all(part in str(refusal.value) for part in (str(toml), "'broken'", "command"))
    assert "hunter22" not in str(refusal.value)


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_an_mcp_servers_file_of_another_client_is_read(tmp_path: Path, key: str) -> None:
    path = tmp_path / "claude.json"
    path.write_text("\ufeff" + json.dumps({"theme": "dark", key: {"a": {"command": "x"}}}))
    assert find_server(NamedTarget("a", str(path))).launch == CommandTarget(("x",))
    assert find_server(NamedTarget(None, str(path))).name == "a"


def test_an_unknown_name_is_answered_with_the_nearest_and_the_files_looked_at(toml: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'work'") as refusal:
        find_server(NamedTarget("wrok"), (read_servers(toml),))
    assert str(toml) in str(refusal.value)
    with pytest.raises(ConfigError, match="did you mean 'work'"):
        read_servers(toml).server("wrk")
    with pytest.raises(ConfigError, match="no configuration file was found"):
        find_server(NamedTarget("x"))


def test_a_file_with_several_servers_needs_a_name(toml: Path) -> None:
    with pytest.raises(ConfigError, match="3 servers: work, remote, broken"):
        find_server(NamedTarget(None, str(toml)))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "[servers", "not TOML"),
        ("a.json", '{"mcpServers": {]', "line 1, column 17"),
        ("a.json", "[]", "not an object"),
        ("a.json", "{}", "no mcpServers"),
        ("a.json", '{"mcpServers": []}', "mcpServers is a table"),
        ("a.toml", "servers = 1", "servers is a table"),
        ("a.json", "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as refusal:
        read_servers(path)
    assert str(path) in str(refusal.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_servers(tmp_path / "none.json")


def test_the_secrets_of_the_file_are_described_in_it(toml: Path) -> None:
    _, places = read_servers(toml).secrets().entries["caldav"]
    assert places.servers == {"work"}
