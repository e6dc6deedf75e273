"""`oauth` in a server's entry."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hotplug.connect.secrets import SecretName
from hotplug.errors import ConfigError
from hotplug.gateway.config import Notice, OAuthSettings
from hotplug.gateway.oauth_entry import read_oauth
from hotplug.gateway.server_entry import read_server

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "hotplug-toml.json").read_text(encoding="utf-8"))
SECRET = SecretName("s")


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("false", None),
        ("true", OAuthSettings()),
        ("{}", OAuthSettings()),
        ('{ client_id = "a", client_secret = "secret:s" }', OAuthSettings("a", SECRET)),
        ('{ client_id = "a", client_secret = { secret = "s" } }', OAuthSettings("a", SECRET)),
        ('{ scopes = ["read", "a:b/c.d", "read"], port = 1 }', OAuthSettings(scopes=("read", "a:b/c.d"), port=1)),
        ('{ keep = "keyring" }', OAuthSettings(keep="keyring")),
    ],
)
def test_it_is_a_switch_or_a_table(text: str, settings: OAuthSettings | None) -> None:
    value: Any = tomllib.loads(f"x = {text}")["x"]
    assert read_oauth(None, "") is None
    assert read_oauth(value, "") == settings
    jsonschema.validate({"servers": {"a": {"url": "https://x.example", "oauth": value}}}, SCHEMA)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"yes"', "oauth is true or false, not a string"),
        ("1", "oauth is true or false, not a number"),
        ('{ client = "a" }', "oauth has the unknown key 'client'"),
        ('{ client_id = "" }', "client_id is a string, not an empty string"),
        ("{ client_id = 7 }", "client_id is a string, not a number"),
        ('{ client_id = "a", client_secret = "hunter2" }', "client_secret stands there in plain"),
        ('{ client_secret = "secret:s" }', "has a client_secret and no client_id"),
        ('{ scopes = "read" }', "scopes is a list"),
        ('{ scopes = ["a b"] }', "scopes is a list"),
        ("{ port = 0 }", "port is a port"),
        ("{ port = true }", "port is a port"),
        ('{ keep = "database" }', 'keep is "file" or "keyring"'),
    ],
)
def test_what_is_wrong_with_it_is_said(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_oauth(tomllib.loads(f"x = {text}")["x"], "here: ")
    assert said in raised.value.message
    assert raised.value.message.startswith("here: ")
    assert "hunter2" not in f"{raised.value}"


def test_it_means_nothing_to_a_program() -> None:
    notices: list[Notice] = []

    def note(key: str, message: str, fix: str | None = None, *, secret: bool = False) -> None:
        notices.append(Notice(key, message, fix, secret))

    read_server("a", {"command": "x", "oauth": True}, path=Path("hotplug.toml"), notice=note)
    assert [one.place for one in notices] == ["servers.a.oauth"]
    notices.clear()
    read_server("a", {"url": "https://x.example", "oauth": True}, path=Path("hotplug.toml"), notice=note)
    assert notices == []
