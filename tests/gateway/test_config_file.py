"""`hotplug.toml` as values: what is wrong costs its entry, what is odd is told, no secret is repeated."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hotplug.connect import (
    CommandTarget,
    EntryTarget,
    HttpTarget,
    NamedTarget,
    NativeTarget,
    PackageTarget,
    PythonTarget,
)
from hotplug.connect.secrets import ConfiguredSecrets, Destination, SecretName
from hotplug.errors import ConfigError
from hotplug.gateway.config import GatewayConfig
from hotplug.gateway.config_file import SECTIONS, default_config_path, parse_config, read_config
from hotplug.gateway.server_entry import SERVER_KEYS

SCHEMA = json.loads((Path(__file__).parent.parent.parent / "schemas" / "hotplug-toml.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PATH = Path("/etc/h/hotplug.toml")

WHOLE = """
[servers.work]
command = "npx"
args = ["-y", "caldav-mcp", 8080]
env = { CALDAV_PASSWORD = "secret:caldav" }
profile = "calendar"
prefix = ""
share = "all"
start_timeout = 60
call_timeout = 5.5
idle = false

[servers.remote]
url = "https://example.org/mcp"
headers = { Authorization = "Bearer secret:remote" }
oauth = true
disabled = true
profiles = ["calendar@^1", "browser"]
projection = "mine.yaml"

[servers.home]
target = "sqlite:///home.db?me=me@example.org"

[secrets.caldav]
file = "caldav.txt"
servers = ["work"]
[secrets.remote]
env = "REMOTE_TOKEN"
servers = ["*"]

[threads.openers]
host = "sha256:0000000000000000000000000000000000000000000000000000000000000ABC"

[store]
url = "sqlite:///gateway.db?durability=full"

[serve]
host = "0.0.0.0"
port = 8321
names = "underscored"
client_prefix = 0
hosts = ["gateway.example"]
origins = ["https://gateway.example"]

[records]
days = 7
arguments = true

[search]
over = false
"""


def parsed(text: str) -> GatewayConfig:
    return parse_config(text, path=PATH)


def warned(config: GatewayConfig) -> str:
    return "\n".join(map(str, config.warnings))


def test_a_whole_file_is_read_and_nothing_in_it_is_odd() -> None:
    config = parsed(WHOLE)
    assert config.warnings == ()
    assert config.broken == {}
    assert list(config.servers) == ["work", "remote", "home"]
    work = config.servers["work"]
    assert isinstance(work.target, EntryTarget)
    assert work.target.launch == CommandTarget(
        ("npx", "-y", "caldav-mcp", "8080"), {"CALDAV_PASSWORD": SecretName("caldav")}
    )
    assert (work.profiles, work.prefix, work.share) == (("calendar",), "", "all")
    assert (work.start_timeout, work.call_timeout, work.idle) == (60.0, 5.5, None)
    remote = config.servers["remote"]
    assert (remote.oauth, remote.disabled, remote.profiles) == (True, True, ("calendar@^1", "browser"))
    assert remote.projection == "/etc/h/mine.yaml"
    assert config.servers["home"].target == NativeTarget("sqlite", "/etc/h/home.db", "me@example.org")
    assert config.threads.openers == {"host": "0" * 61 + "abc"}
    assert config.store_url == "sqlite:////etc/h/gateway.db?durability=full"
    assert (config.host, config.port, config.names, config.client_prefix) == ("0.0.0.0", 8321, "underscored", 0)
    assert (config.hosts, config.origins) == (("gateway.example",), ("https://gateway.example",))
    assert (config.records.days, config.records.arguments, config.search.over) == (7, True, None)


def test_what_isn_t_said_has_its_default() -> None:
    config = parsed('[servers.a]\ncommand = "x"\n')
    one = config.servers["a"]
    assert (one.profiles, one.projection, one.prefix, one.share) == ((), None, None, None)
    assert (one.start_timeout, one.call_timeout, one.idle) == (30.0, None, 600.0)
    assert (config.host, config.port, config.names, config.client_prefix) == ("127.0.0.1", 0, "dotted", 14)
    assert (config.records.days, config.records.arguments, config.search.over) == (30, False, 100)
    assert config.store_url is None


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ('"https://example.org/mcp"', HttpTarget("https://example.org/mcp")),
        ('"npx -y x"', CommandTarget(("npx", "-y", "x"))),
        ('["npx", "-y", "x y"]', CommandTarget(("npx", "-y", "x y"))),
        ('"npm:caldav-mcp@1.2.3"', PackageTarget("npm", "caldav-mcp", "1.2.3")),
        ('"pypi:x==1"', PackageTarget("pypi", "x", "1")),
        ('"server.py"', PythonTarget("/etc/h/server.py")),
        ('"module:object"', PythonTarget("module", "object")),
        ('"other.json#name"', NamedTarget("name", "/etc/h/other.json")),
        ('"sqlite:////var/x.db"', NativeTarget("sqlite", "/var/x.db")),
        ('"sqlite:///:memory:"', NativeTarget("sqlite", ":memory:")),
        ('"folder:days"', NativeTarget("folder", "/etc/h/days")),
    ],
)
def test_target_takes_the_whole_grammar_and_paths_begin_where_the_file_lies(target: str, expected: Any) -> None:
    config = parsed(f"[servers.a]\ntarget = {target}\n")
    assert config.broken == {}
    assert config.servers["a"].target == expected


def test_variables_and_headers_stand_beside_a_target() -> None:
    config = parsed(
        '[servers.a]\ntarget = "npm:x"\nenv = { A = "1" }\n'
        '[servers.b]\ntarget = "https://example.org/mcp"\nheaders = { X = "2" }\n'
        '[servers.c]\ntarget = "run me"\ncwd = "sub"\nenv = { B = "3" }\n'
    )
    assert [one.target for one in config.servers.values()] == [
        PackageTarget("npm", "x", env={"A": "1"}),
        HttpTarget("https://example.org/mcp", {"X": "2"}),
        CommandTarget(("run", "me"), {"B": "3"}, "/etc/h/sub"),
    ]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("x = 1", "neither command nor url"),
        ('command = "x"\nurl = "https://example.org"', "both command and url"),
        ('target = "npm:x"\ncommand = "x"', "both target and command"),
        ('target = "work"', "only the name of one"),
        ("target = 3", "target is a string or a list of arguments, not a number"),
        ('target = "sqlit:///x"', "unknown scheme"),
        ('target = "sqlite:///x.db"\nenv = { A = "1" }', "env means nothing"),
        ('url = "https://example.org/sse"\ntype = "sse"', "isn't spoken"),
        ('command = "x"\nprofile = 3', "is no profile's name"),
        ('command = "x"\nprofile = "a"\nprofiles = ["b"]', "both profile and profiles"),
        ('command = "x"\nprofiles = "b"', "a list of profiles' names, not a string"),
        ('command = "x"\nshare = "some"', '"thread" or "all"'),
        ('command = "x"\nprefix = "a b"', "prefix is of a-z"),
        ('command = "x"\nidle = true', "false for never"),
        ('command = "x"\nidle = 0', "idle is 0"),
        ('command = "x"\nstart_timeout = false', "start_timeout is a number of seconds, not"),
        ('command = "x"\ncall_timeout = nan', "call_timeout is a number of seconds"),
        ('command = "x"\noauth = "yes"', "oauth is true or false, not a string"),
        ('command = "x"\nprojection = 1', "projection is a string"),
    ],
)
def test_what_is_wrong_with_an_entry_costs_that_entry(entry: str, words: str) -> None:
    config = parsed(f'[servers.bad]\n{entry}\n[servers.good]\ncommand = "x"\n')
    assert list(config.servers) == ["good"]
    assert words in str(config.broken["bad"])
    assert str(config.broken["bad"]).startswith("/etc/h/hotplug.toml: server 'bad': ")


@pytest.mark.parametrize("name", ["hotplug", "Connection", '"a b"', '""', '".a"', f'"{"x" * 65}"', '"a/b"'])
def test_a_name_that_can_t_be_one_costs_its_entry(name: str) -> None:
    config = parsed(f'[servers.{name}]\ncommand = "x"\n[servers.good]\ncommand = "x"\n')
    assert list(config.servers) == ["good"]
    (error,) = config.broken.values()
    assert error.hint == "rename it"


def test_entries_that_are_no_tables_cost_themselves() -> None:
    config = parsed('[servers]\nbad = "npx"\nworse = 3\ngood = { command = "x" }\n')
    assert list(config.servers) == ["good"]
    assert set(config.broken) == {"bad", "worse"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[server.a]\ncommand = "x"', "did you mean 'servers'"),
        ('[mcpServers.a]\ncommand = "x"', "[servers.NAME]"),
        ('[servers.a]\ncommand = "x"\nprofil = "y"', "did you mean 'profile'"),
        ('[servers.a]\ncommand = "x"\nenvFile = ".env"', "name its variables in env"),
        ('[servers.a]\ncommand = "x"\ntimeout = 3', "call_timeout is in seconds"),
        ("[serve]\nprot = 3", "did you mean 'port'"),
        ('[serve]\nport = "80"', "a whole number from 0 to 65535: 0 is used"),
        ("[serve]\nport = true", "a whole number"),
        ('[serve]\nnames = "doted"', "did you mean 'dotted'"),
        ('[serve]\nhost = "a b"', "127.0.0.1 is used"),
        ('[serve]\norigins = "x"', "none is taken"),
        ("[records]\ndays = -1", "30 is used"),
        ("[records]\narguments = 1", "false is used"),
        ('[search]\nover = "many"', "100 is used"),
        ("serve = 3", "is a table, not a number"),
        ('[threads.openers]\na = "hpt_plain"', "it lets nobody in"),
        ('[threads]\nopeners = "x"', "it lets nobody in"),
        ("[secrets]\na = 3", "secrets.a can't be used"),
        ('[secrets.a]\nenv = "A"\nfile = "b"', "two sources"),
        ('[access]\nservers = ["a"]', "hotplug access"),
        ('[servers.a]\ncommand = "x"\nenv = { A = "secret:b" }', "isn't set up"),
        ('[servers.a]\ncommand = "x"\nenv = { A = "secret:b" }\n[secrets.b]\n', 'add "a" to servers'),
        ('[servers.a]\ncommand = "x"\nenv = { A = "${B}" }', "${B}, which isn't filled in here"),
    ],
)
def test_what_is_odd_is_told_with_its_place_and_what_to_do(text: str, words: str) -> None:
    config = parsed(text + "\n")
    (notice,) = config.warnings
    assert words in str(notice)
    assert str(notice).startswith("/etc/h/hotplug.toml: ")


def test_a_foreign_key_can_t_begin_a_line_of_its_own() -> None:
    config = parsed('"x\\nwarning: all is fine" = 1\n')
    assert len(str(config.warnings[0]).splitlines()) == 1


def test_a_store_that_can_t_be_read_is_never_replaced_by_another() -> None:
    from hotplug.store import open_store

    config = parsed("[store]\nurl = 3\n")
    assert "no store can be opened" in warned(config)
    assert config.store_url is not None
    with pytest.raises(ConfigError):
        open_store(config.store_url)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ('command = "x"\nenv = { API_KEY = "VALUE" }', "hunter22"),
        ('command = "x"\nenv = { PLAIN = "VALUE" }', "ghp_0123456789abcdefghij"),
        ('url = "https://example.org/mcp"\nheaders = { Authorization = "Bearer VALUE" }', "abc123def"),
        ('url = "https://example.org/mcp?token=VALUE"', "abc123def"),
        ('command = "x"\nenv = { DATABASE_URL = "postgresql://me:VALUE@db/x" }', "abc123def"),
        ('url = "https://user:VALUE@example.org/mcp"', "abc123def"),
        ('command = "x"\nargs = ["--api-key", "VALUE"]', "abc123def"),
        ('target = "x --token=VALUE"', "abc123def"),
        ('target = "npm:x --token=VALUE"', "abc123def"),
        ('command = "docker"\nargs = ["run", "-e", "API_KEY=VALUE", "img"]', "abc123def"),
        ('command = "npx"\nargs = ["mcp-remote", "https://h/mcp", "--header", "X-Api-Key:VALUE"]', "abc123def"),
    ],
)
def test_a_secret_in_plain_is_taken_with_a_warning_that_doesn_t_repeat_it(entry: str, value: str) -> None:
    config = parsed(f"[servers.a]\n{entry.replace('VALUE', value)}\n")
    assert config.broken == {}
    (notice,) = config.warnings
    assert "in plain" in notice.message
    assert value not in f"{notice!r} {config!r} {notice}"


@pytest.mark.parametrize(
    "entry",
    [
        'command = "x"\nenv = { API_KEY = "secret:a" }\n[secrets.a]\nservers = ["a"]',
        'command = "x"\nenv = { TOKEN_PATH = "/home/me/token" }',
        'command = "x"\nenv = { AUTH_METHOD = "device" }',
        'command = "x"\nenv = { KEYBOARD = "colemak" }',
        'command = "x"\nargs = ["--port", "8080"]',
        'command = "docker"\nargs = ["run", "-e", "TOKEN_PATH=/t", "--header", "Authorization: Bearer ${TOKEN}"]',
    ],
)
def test_what_is_no_secret_is_not_warned_of(entry: str) -> None:
    assert parsed(f"[servers.a]\n{entry}\n").warnings == ()


@pytest.mark.parametrize(
    "secret",
    ['"hunter2222"', '["hunter2222"]', '{ env = "A", file = "hunter2222", extra = "hunter2222" }'],
)
def test_a_value_where_a_secret_s_table_belongs_is_not_repeated(secret: str) -> None:
    config = parsed(f"[secrets]\na = {secret}\n")
    assert "hunter2222" not in warned(config)
    assert config.secrets == ConfiguredSecrets({})


@pytest.mark.anyio
async def test_a_secret_s_file_is_taken_from_where_the_configuration_lies(tmp_path: Path) -> None:
    (tmp_path / "caldav.txt").write_text("s3cret\n")
    (tmp_path / "caldav.txt").chmod(0o600)
    config = parse_config(WHOLE, path=tmp_path / "hotplug.toml")
    found = await config.secrets.get("caldav", Destination(server="work"))
    assert found.reveal() == "s3cret"


@pytest.mark.parametrize("key", ["target", "profile", "projection", "share", "prefix", "cwd", "command"])
def test_a_token_where_something_else_belongs_is_not_repeated(key: str) -> None:
    token = "ghp_0123456789abcdefghijXYZ"
    launch = "" if key in ("target", "command") else 'command = "x"\n'
    config = parsed(f'[servers.a]\n{launch}{key} = "{token}"\n')
    if key in ("target", "profile", "share"):
        assert token not in str(config.broken["a"])
    assert token not in warned(config)


def test_what_is_no_toml_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigError, match="line 2"):
        parsed("[servers.a]\ncommand = x\n")


def test_a_file_that_isn_t_there_reads_as_empty(tmp_path: Path) -> None:
    config = read_config(tmp_path / "hotplug.toml")
    assert (config.path, dict(config.servers), config.warnings) == (None, {}, ())
    assert config.settings is not None


def test_the_settings_of_access_are_those_that_hotplug_access_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTPLUG_SETTINGS", str(tmp_path / "other.json"))
    (tmp_path / "hotplug.toml").write_text("")
    assert read_config(tmp_path / "hotplug.toml").settings == tmp_path / "other.json"


def test_the_user_s_folder_or_a_variable_says_which_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOTPLUG_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_config_path().name == "hotplug.toml"
    monkeypatch.setenv("HOTPLUG_CONFIG", str(tmp_path / "mine.toml"))
    assert default_config_path() == tmp_path / "mine.toml"


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_a_file_that_others_can_change_or_secrets_that_others_can_read_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "hotplug.toml"
    path.write_text('[servers.a]\ncommand = "x"\n')
    path.chmod(0o666)
    assert "chmod go-w" in warned(read_config(path))
    path.chmod(0o644)
    assert read_config(path).warnings == ()
    path.write_text('[servers.a]\ncommand = "x"\nenv = { API_KEY = "hunter22" }\n')
    assert "chmod 600" in warned(read_config(path))


def test_a_whole_file_is_valid_by_the_published_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    VALIDATOR.validate(tomllib.loads(WHOLE))
    VALIDATOR.validate(tomllib.loads('[servers.a]\ntarget = "npm:x"\n[access]\nservers = ["a"]\n'))


@pytest.mark.parametrize(
    "text",
    [
        "[server.a]\n",
        '[servers.a]\nargs = ["x"]\n',
        '[servers.hotplug]\ncommand = "x"\n',
        '[servers.a]\ncommand = "x"\nidle = true\n',
        '[servers.a]\ncommand = "x"\nprofil = "calendar"\n',
        '[servers.a]\ncommand = "x"\nurl = "https://example.org"\n',
        '[serve]\nport = "80"\n',
        '[threads.openers]\na = "x"\n',
        '[secrets]\na = "x"\n',
    ],
)
def test_the_published_schema_refuses_what_reading_warns_of_or_breaks(text: str) -> None:
    assert not VALIDATOR.is_valid(tomllib.loads(text))
    config = parsed(text)
    assert config.broken or config.warnings


def test_the_published_schema_knows_the_same_keys() -> None:
    properties = SCHEMA["properties"]
    assert set(properties) == set(SECTIONS)
    assert set(properties["servers"]["additionalProperties"]["properties"]) == set(SERVER_KEYS)
    for name, keys in SECTIONS.items():
        if keys:
            assert set(properties[name]["properties"]) == set(keys), name
