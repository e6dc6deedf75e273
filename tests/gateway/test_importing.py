"""Other clients' files, in the forms that they really have."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect.jsonc import parse_jsonc
from hotplug.errors import ConfigError
from hotplug.gateway.config_file import parse_config
from hotplug.gateway.importing import (
    Client,
    FoundSecret,
    Imported,
    LeftOut,
    client_of,
    import_file,
    known_places,
    merged,
)
from hotplug.gateway.writing import Keeping, add_server, new_file, remove_server, settle

HOME = Path("/home/me")
ENVIRON = {"HOME": "/home/me", "DATA_DIR": "/data", "GITHUB_TOKEN": "ghp_of_the_environment"}

DESKTOP = """{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"]},
    "brave search": {"command": "npx", "args": ["-y", "brave"], "env": {"BRAVE_API_KEY": "BSA-plain-value"}}
  }
}"""

CLAUDE_CODE = """{
  "numStartups": 41,
  "mcpServers": {
    "github": {"type": "http", "url": "https://api.example.com/mcp/",
               "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}}
  },
  "projects": {
    "/home/me/shop": {
      "allowedTools": [],
      "mcpServers": {
        "db": {"type": "stdio", "command": "./run-db", "args": ["--data", "${DATA_DIR}", "${MODE:-dev}"],
               "env": {"DB_PASSWORD": "${DB_PASSWORD:-}", "DB_MODE": "${MODE:-dev}"}}
      }
    },
    "/home/me/other": {"mcpServers": {}}
  }
}"""

CURSOR = """{
  "mcpServers": {
    "docs": {"url": "https://${env:DOCS_HOST}/mcp", "auth": {"CLIENT_ID": "abc"}},
    "tool": {"command": "python", "args": ["${workspaceFolder}/server.py"], "envFile": "${workspaceFolder}/.env",
             "env": {"TOOL_TOKEN": "${env:TOOL_TOKEN}", "HOME2": "${userHome}"}}
  }
}"""

VSCODE = """{
  // servers of this workspace
  "inputs": [
    {"type": "promptString", "id": "perplexity-key", "description": "Perplexity API key", "password": true},
    {"type": "promptString", "id": "region", "description": "Region", "default": "eu"},
    {"type": "promptString", "id": "path", "description": "Path"},
  ],
  "servers": {
    "perplexity": {
      "type": "stdio", "command": "npx", "args": ["-y", "server-perplexity-ask"],
      "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}", "REGION": "${input:region}", "UNSET": null},
      "dev": {"watch": "src/**/*.ts"}, /* not for us */
    },
    "files": {"command": "files", "args": ["${input:path}"]},
    "old": {"type": "sse", "url": "https://old.example/sse"},
  }
}"""


def imported(text: str, path: str, client: Client | None = None) -> dict[str, Imported | LeftOut]:
    found = import_file(text, path=Path(path), home=HOME, environ=ENVIRON, client=client)
    return {one.name: one for one in found}


def entry(found: Imported | LeftOut) -> dict[str, Any]:
    assert isinstance(found, Imported)
    return dict(found.entry)


def test_claude_desktop_s_file_is_taken_over() -> None:
    found = imported(DESKTOP, "/home/me/.config/Claude/claude_desktop_config.json")
    assert entry(found["filesystem"]) == {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"],
    }
    brave = found["brave-search"]
    assert isinstance(brave, Imported)
    assert brave.notes == ("it is named 'brave search' there",)
    assert brave.secrets == (FoundSecret("brave-search-brave_api_key", "env.BRAVE_API_KEY", "BSA-plain-value"),)
    assert "BSA-plain-value" not in repr(brave)


def test_claude_code_s_file_is_taken_over_with_its_projects() -> None:
    found = imported(CLAUDE_CODE, "/home/me/.claude.json")
    github = found["github"]
    assert entry(github) == {
        "url": "https://api.example.com/mcp/",
        "headers": {"Authorization": "Bearer secret:github_token"},
    }
    assert isinstance(github, Imported)
    assert github.secrets == (
        FoundSecret("github_token", "headers.Authorization", variable="GITHUB_TOKEN", before="Bearer "),
    )
    db = found["db"]
    assert entry(db) == {
        "command": "./run-db",
        "args": ["--data", "/data", "dev"],
        "env": {"DB_PASSWORD": "secret:db_password", "DB_MODE": "dev"},
        "cwd": "/home/me/shop",
    }
    assert isinstance(db, Imported)
    assert db.source == "/home/me/.claude.json (project /home/me/shop)"


def test_cursor_s_file_is_taken_over() -> None:
    found = imported(CURSOR, "/home/me/shop/.cursor/mcp.json")
    tool = found["tool"]
    assert entry(tool) == {
        "command": "python",
        "args": ["/home/me/shop/server.py"],
        "env": {"TOOL_TOKEN": "secret:tool_token", "HOME2": "/home/me"},
        "cwd": "/home/me/shop",
    }
    assert isinstance(tool, Imported)
    assert "envFile isn't read: its variables belong into env" in tool.notes
    docs = found["docs"]
    assert isinstance(docs, LeftOut)
    assert docs.reason == "url holds ${env:DOCS_HOST}, which isn't known here"


def test_vs_code_s_file_is_taken_over_with_comments_and_inputs() -> None:
    found = imported(VSCODE, "/home/me/shop/.vscode/mcp.json")
    perplexity = found["perplexity"]
    assert entry(perplexity)["env"] == {"PERPLEXITY_API_KEY": "secret:perplexity-key", "REGION": "eu"}
    assert isinstance(perplexity, Imported)
    (secret,) = perplexity.secrets
    assert (secret.name, secret.value, secret.about) == ("perplexity-key", None, "Perplexity API key")
    files = found["files"]
    assert entry(files)["disabled"] is True
    assert isinstance(files, Imported)
    assert any("args[0] holds ${input:path}" in note for note in files.notes)
    old = found["old"]
    assert isinstance(old, LeftOut)
    assert "streamable HTTP" in old.reason


def test_vs_code_s_old_settings_and_bare_entries_are_taken_over() -> None:
    assert entry(imported('{"mcp": {"servers": {"a": {"command": "x"}}}}', "/s/settings.json")["a"]) == {"command": "x"}
    assert entry(imported('{"a": {"serverUrl": "https://example.org/mcp"}}', "/s/x.json")["a"]) == {
        "url": "https://example.org/mcp"
    }


def test_a_workspace_s_folder_is_unknown_to_a_user_s_own_file() -> None:
    text = '{"mcpServers": {"a": {"command": "x", "args": ["${workspaceFolder}"]}}}'
    assert entry(imported(text, "/home/me/.cursor/mcp.json")["a"])["disabled"] is True


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ('"x"', "no object"),
        ('{"args": []}', "neither command nor url"),
        ('{"command": "x", "args": "y"}', "args is a list"),
        ('{"command": "x", "env": ["A=B"]}', "env is a table"),
        ('{"type": "ws", "url": "wss://example.org"}', "web socket"),
        ('{"type": "SSE", "url": "https://example.org/sse"}', "streamable HTTP"),
    ],
)
def test_an_entry_that_is_wrong_costs_itself(broken: str, reason: str) -> None:
    found = imported(f'{{"mcpServers": {{"bad": {broken}, "good": {{"command": "x"}}}}}}', "/x/mcp.json")
    bad = found["bad"]
    assert isinstance(bad, LeftOut)
    assert reason in bad.reason
    assert isinstance(found["good"], Imported)


@pytest.mark.parametrize(
    "entry",
    [
        '{"command": "hotplug", "args": ["serve"]}',
        '{"command": "/opt/bin/hotplug", "args": ["serve", "--thread", "t_x"]}',
        '{"command": "uvx", "args": ["hotplug", "serve"]}',
        '{"command": "python", "args": ["-m", "hotplug", "serve"]}',
        '{"url": "http://127.0.0.1:8321/threads/t_abcdefghijklmnop/mcp"}',
    ],
)
def test_the_gateway_isn_t_put_behind_itself(entry: str) -> None:
    found = imported(f'{{"mcpServers": {{"mine": {entry}}}}}', "/x/mcp.json")["mine"]
    assert isinstance(found, LeftOut)
    assert "the gateway itself" in found.reason


def test_what_isn_t_taken_over_is_told() -> None:
    text = """{"mcpServers": {"a": {"command": "x", "tools": ["one"], "headersHelper": "run", "strange": 1,
        "disabled": true, "autoApprove": ["*"], "args": ["--token", "abc123def"]}}}"""
    a = imported(text, "/x/mcp.json")["a"]
    assert isinstance(a, Imported)
    assert a.disabled
    said = "\n".join(a.notes)
    for words in (
        "hotplug access",
        "headersHelper isn't run",
        "its key 'strange'",
        "arguments hold what looks like a secret",
    ):
        assert words in said
    assert "autoApprove" not in said
    assert "abc123def" not in said


@pytest.mark.parametrize(
    ("key", "login", "expected", "secret"),
    [
        ("oauth", '{"clientId": "cid", "callbackPort": 8080}', {"client_id": "cid", "port": 8080}, None),
        ("oauth", '{"scopes": "read write"}', {"scopes": ["read", "write"]}, None),
        ("oauth", "true", True, None),
        ("auth", '"oauth"', True, None),
        ("auth", '{"CLIENT_ID": "cid", "scopes": ["a"]}', {"client_id": "cid", "scopes": ["a"]}, None),
        (
            "auth",
            '{"CLIENT_ID": "cid", "CLIENT_SECRET": "hunter2222"}',
            {"client_id": "cid", "client_secret": "secret:a-client-secret"},
            FoundSecret("a-client-secret", "oauth.client_secret", "hunter2222"),
        ),
        (
            "auth",
            '{"CLIENT_ID": "cid", "CLIENT_SECRET": "${env:MY_SECRET}"}',
            {"client_id": "cid", "client_secret": "secret:my_secret"},
            FoundSecret("my_secret", "oauth.client_secret", variable="MY_SECRET"),
        ),
    ],
)
@pytest.mark.parametrize("keeping", ["file", "plain"])
def test_how_a_client_logs_in_is_taken_over_and_its_secret_never_in_plain(
    key: str, login: str, expected: object, secret: FoundSecret | None, keeping: Keeping
) -> None:
    text = f'{{"mcpServers": {{"a": {{"url": "https://example.org/mcp", "{key}": {login}}}}}}}'
    a = imported(text, "/home/me/.cursor/mcp.json")["a"]
    assert entry(a)["oauth"] == expected
    assert isinstance(a, Imported)
    assert a.secrets == ((secret,) if secret else ())
    written = new_file(settle([a], lambda _one, _secret: keeping))
    assert "hunter2222" not in written
    config = parse_config(written, path=HOME / "hotplug.toml")
    assert (config.broken, config.warnings) == ({}, ())
    assert config.servers["a"].oauth


@pytest.mark.parametrize(
    "value", ["postgresql://me:hunter2222@db/x", "https://h/mcp?api_key=hunter2222", "ghp_0123456789abcdefghijklmnop"]
)
@pytest.mark.parametrize("given", ["${PLACE}", "${PLACE:-VALUE}", "VALUE"])
def test_a_credential_under_any_name_comes_not_into_the_file(value: str, given: str) -> None:
    text = (
        '{"mcpServers": {"a": {"command": "x", "env": {"PLACE": "GIVEN"}}, '
        '"b": {"command": "x", "args": ["${PLACE}"]}}}'
    ).replace("GIVEN", given.replace("VALUE", value))
    found = import_file(
        text, path=Path("/home/me/.mcp.json"), home=HOME, environ={"PLACE": value}, client="claude-code"
    )
    written = new_file(settle([one for one in found if isinstance(one, Imported)], lambda _one, _secret: "file"))
    assert value not in written
    assert "hunter2222" not in written
    servers = tomllib.loads(written)["servers"]
    assert servers["a"]["env"]["PLACE"].startswith("secret:")
    assert servers["b"]["disabled"] is True


def test_a_token_where_a_login_belongs_is_no_login() -> None:
    a = imported('{"mcpServers": {"a": {"url": "https://example.org/mcp", "auth": "hunter2222"}}}', "/x/mcp.json")["a"]
    assert "oauth" not in entry(a)
    assert isinstance(a, Imported)
    assert any("its auth isn't taken over" in note for note in a.notes)


def test_a_server_that_its_person_turned_off_in_claude_code_stays_off() -> None:
    text = """{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}},
        "disabledMcpServers": ["a"]}}}"""
    found = imported(text, "/home/me/.claude.json")
    assert entry(found["a"])["disabled"] is True
    assert "disabled" not in entry(found["b"])


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', '{"a": }'])
def test_what_holds_no_servers_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"/x/mcp\.json"):
        imported(text, "/x/mcp.json")


def test_a_client_s_own_file_without_servers_holds_none() -> None:
    assert imported('{"numStartups": 1}', "/home/me/.claude.json") == {}


def test_comments_and_commas_count_only_outside_of_texts() -> None:
    text = '{"a": "// no /* comment */ ,}", /* b */ "b": [1, 2, // c\n ], "c": "\\"//",}'
    assert parse_jsonc(text, where="x") == {"a": "// no /* comment */ ,}", "b": [1, 2], "c": '"//'}
    with pytest.raises(ConfigError, match="line 3, column 1"):
        parse_jsonc('{ // one\n"a": 1,\nb}', where="x")


def test_the_same_server_is_taken_once_and_another_of_its_name_beside_it() -> None:
    one = imported('{"mcpServers": {"a": {"command": "x"}}}', "/x/claude_desktop_config.json")["a"]
    same = imported('{"mcpServers": {"a": {"command": "x"}}}', "/home/me/.claude.json")["a"]
    other = imported('{"mcpServers": {"a": {"command": "y"}}}', "/home/me/.cursor/mcp.json", "cursor")["a"]
    assert isinstance(one, Imported)
    assert isinstance(same, Imported)
    assert isinstance(other, Imported)
    found = merged([one, same, other, other])
    assert [each.name for each in found] == ["a", "a-cursor"]
    assert "has another server named a" in found[1].notes[-1]


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, "/home/me/.config/Claude/claude_desktop_config.json"),
        ("linux", {"XDG_CONFIG_HOME": "/conf"}, "/conf/Claude/claude_desktop_config.json"),
        ("darwin", {}, "/home/me/Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", {"APPDATA": "/roaming"}, "/roaming/Claude/claude_desktop_config.json"),
    ],
)
def test_clients_are_looked_for_where_they_keep_their_files(
    platform: str, environ: dict[str, str], expected: str
) -> None:
    places = known_places(home=HOME, platform=platform, environ=environ, folder=Path("/p"))
    assert places[0].path == Path(expected)
    assert {"/home/me/.claude.json", "/p/.mcp.json", "/home/me/.cursor/mcp.json", "/p/.vscode/mcp.json"} <= {
        str(one.path) for one in places
    }
    assert all(client_of(one.path) == one.client for one in places)


def whole(keeping: Keeping) -> tuple[str, list[Imported]]:
    found: list[Imported] = []
    for text, path in (
        (DESKTOP, "/home/me/.config/Claude/claude_desktop_config.json"),
        (CLAUDE_CODE, "/home/me/.claude.json"),
        (CURSOR, "/home/me/shop/.cursor/mcp.json"),
        (VSCODE, "/home/me/shop/.vscode/mcp.json"),
    ):
        found += [one for one in imported(text, path).values() if isinstance(one, Imported)]
    return new_file(settle(merged(found), lambda _one, _secret: keeping)), found


@pytest.mark.parametrize("keeping", ["env", "file", "keyring"])
def test_what_is_written_is_read_without_a_word_and_without_a_secret(keeping: Keeping) -> None:
    text, found = whole(keeping)
    config = parse_config(text, path=Path("/home/me/.config/hotplug/hotplug.toml"))
    assert list(config.servers) == [one.name for one in found]
    assert config.broken == {}
    # `${input:path}` stays in a server that is disabled for it.
    assert [str(one) for one in config.warnings] == []
    assert "BSA-plain-value" not in text
    assert "ghp_of_the_environment" not in text
    table = tomllib.loads(text)["secrets"]
    assert table["brave-search-brave_api_key"]["servers"] == ["brave-search"]
    assert {
        "env": "HOTPLUG_SECRET_BRAVE_SEARCH_BRAVE_API_KEY",
        "file": "secrets/brave-search-brave_api_key",
        "keyring": True,
    }[keeping] == table["brave-search-brave_api_key"][keeping]
    assert table["github_token"] == {"env": "GITHUB_TOKEN", "servers": ["github"]}


def test_a_secret_that_stays_in_plain_is_warned_of_when_it_is_read() -> None:
    text, _ = whole("plain")
    config = parse_config(text, path=Path("/h/hotplug.toml"))
    assert ["in plain" in str(one) for one in config.warnings] == [True]


def test_one_variable_of_two_servers_is_one_secret_for_both() -> None:
    text = """{"mcpServers": {"a": {"command": "x", "env": {"K_TOKEN": "${T_TOKEN}"}},
        "b": {"command": "y", "env": {"K_TOKEN": "${T_TOKEN}"}}}}"""
    found = [one for one in imported(text, "/home/me/.claude.json").values() if isinstance(one, Imported)]
    settled = settle(found, lambda _one, _secret: "env")
    assert [(one.name, one.servers) for one in settled.secrets] == [("t_token", ("a", "b"))]


def test_a_foreign_text_can_t_leave_its_comment() -> None:
    text = '{"mcpServers": {"a\\n[store]\\nurl=1": {"command": "x"}}}'
    found = [one for one in imported(text, "/x/mcp.json").values() if isinstance(one, Imported)]
    written = new_file(settle(found, lambda _one, _secret: "env"))
    assert set(tomllib.loads(written)) == {"servers"}


FILE = """\
# mine
[servers.work]   # the first
command = "npx"  # with npx
env = { A = "1" }

# what is kept
[store]
url = "sqlite:///x.db"

[servers.home]
target = "folder:days"

[servers.home.env]
B = "2"
"""


def test_adding_keeps_every_byte_that_was_there() -> None:
    added = add_server(FILE, "new", {"target": "npm:x", "env": {"A": "b"}}, where="f")
    assert added.startswith(FILE)
    assert tomllib.loads(added)["servers"]["new"] == {"target": "npm:x", "env": {"A": "b"}}
    assert tomllib.loads(add_server("", "new", {"command": "x"}, where="f")) == {"servers": {"new": {"command": "x"}}}
    inline = add_server('servers = { a = { command = "x" } }', "b", {"command": "y"}, where="f")
    assert tomllib.loads(inline)["servers"] == {"a": {"command": "x"}, "b": {"command": "y"}}


def test_removing_takes_the_server_alone() -> None:
    left = remove_server(FILE, "home", where="f")
    assert "# the first" in left
    assert "# with npx" in left
    assert "# what is kept" in left
    document = tomllib.loads(FILE)
    del document["servers"]["home"]
    assert tomllib.loads(left) == document
    rest = remove_server(remove_server(FILE, "work", where="f"), "home", where="f")
    assert tomllib.loads(rest) == {"store": {"url": "sqlite:///x.db"}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE, "has a server 'work' already"),
        ("servers = 3", "no table of servers"),
        ("[[[", "is not TOML"),
    ],
)
def test_a_file_that_can_t_be_edited_is_left_alone(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("[", r"\[")):
        add_server(text, "work", {"command": "x"}, where="f")


def test_a_server_that_isn_t_there_can_t_be_removed() -> None:
    with pytest.raises(ConfigError) as refused:
        remove_server(FILE, "wrok", where="f")
    assert refused.value.hint == "did you mean 'work'?"
