from __future__ import annotations

import json
from typing import Any

import pytest

from hotplug.connect.secrets import SecretName
from hotplug.connect.target import (
    CommandTarget,
    EntryTarget,
    HttpTarget,
    NamedTarget,
    NativeTarget,
    ObjectTarget,
    PackageTarget,
    PythonTarget,
    Target,
    parse_target,
)
from hotplug.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("https://mcp.example/mcp", HttpTarget("https://mcp.example/mcp")),
        ("http://127.0.0.1:8000/mcp", HttpTarget("http://127.0.0.1:8000/mcp")),
        ("npx -y caldav-mcp", CommandTarget(("npx", "-y", "caldav-mcp"))),
        ("  server --name 'a b'  ", CommandTarget(("server", "--name", "a b"))),
        ("TZ=UTC python s.py", CommandTarget(("python", "s.py"), {"TZ": "UTC"})),
        ("PASSWORD=secret:caldav npx x", CommandTarget(("npx", "x"), {"PASSWORD": SecretName("caldav")})),
        (["npx", "-y", "x y"], CommandTarget(("npx", "-y", "x y"))),
        (("--", "server"), CommandTarget(("server",))),
        ("npm:caldav-mcp", PackageTarget("npm", "caldav-mcp")),
        ("npm:caldav-mcp@0.10.0", PackageTarget("npm", "caldav-mcp", "0.10.0")),
        ("npm:@cocal/google-calendar-mcp@2.0.0", PackageTarget("npm", "@cocal/google-calendar-mcp", "2.0.0")),
        ("npm:x --flag 'a b'", PackageTarget("npm", "x", None, ("--flag", "a b"))),
        (["npm:x@1.0.0", "--flag"], PackageTarget("npm", "x", "1.0.0", ("--flag",))),
        ("pypi:mcp-server-time==2026.1.1", PackageTarget("pypi", "mcp-server-time", "2026.1.1")),
        ("pypi:thing[extra]==1", PackageTarget("pypi", "thing[extra]", "1")),
        ("server.py", PythonTarget("server.py")),
        ("dir/server.py:app", PythonTarget("dir/server.py", "app")),
        ("package.module:make.server", PythonTarget("package.module", "make.server")),
        ("work", NamedTarget("work")),
        ("work-calendar.2", NamedTarget("work-calendar.2")),
        ("dir/claude.json#work", NamedTarget("work", "dir/claude.json")),
        ("hotplug.toml#work", NamedTarget("work", "hotplug.toml")),
        ("claude.json", NamedTarget(None, "claude.json")),
        ("sqlite:///calendar.db", NativeTarget("sqlite", "calendar.db")),
        ("sqlite:////var/calendar.db", NativeTarget("sqlite", "/var/calendar.db")),
        ("sqlite:///my calendar.db", NativeTarget("sqlite", "my calendar.db")),
        ("sqlite://", NativeTarget("sqlite", ":memory:")),
        ("folder:my calendars", NativeTarget("folder", "my calendars")),
        ("sqlite:///calendar.db?me=me@example.org", NativeTarget("sqlite", "calendar.db", "me@example.org")),
        ("sqlite://?me=me@example.org", NativeTarget("sqlite", ":memory:", "me@example.org")),
        ("folder:my calendars?me=me+cal%40example.org", NativeTarget("folder", "my calendars", "me+cal@example.org")),
        ("folder:what?", NativeTarget("folder", "what?")),
        ("sqlite:///a?b=c%20.db", NativeTarget("sqlite", "a?b=c%20.db")),
        ("folder:what?/a?me=a@b", NativeTarget("folder", "what?/a", "a@b")),
    ],
)
def test_each_form_has_its_one_meaning(value: object, target: Target) -> None:
    assert parse_target(value) == target


@pytest.mark.parametrize("text", ["sqlite:///x.db?me=a+b@c", "folder:y?me=%26%20@c", "sqlite:///x.db"])
def test_a_native_target_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_target(text)) == text


def test_a_target_is_its_own_meaning() -> None:
    target = NamedTarget("work")
    assert parse_target(target) is target


def test_an_object_is_a_server_in_process() -> None:
    class Server:
        name = "mine"

    server = Server()
    target = parse_target(server)
    assert target == ObjectTarget(server)
    assert target.describe()["name"] == "mine"


def test_an_mcp_servers_entry_is_a_command_with_its_environment() -> None:
    entry = {
        "command": "npx",
        "args": ["-y", "caldav-mcp", 1],
        "env": {"CALDAV_PASSWORD": "secret:caldav", "PORT": 80, "DEBUG": True},
        "profile": "calendar",
    }
    target = parse_target(entry)
    assert isinstance(target, EntryTarget)
    assert target.launch == CommandTarget(
        ("npx", "-y", "caldav-mcp", "1"), {"CALDAV_PASSWORD": SecretName("caldav"), "PORT": "80", "DEBUG": "true"}
    )
    assert target.rest == {"profile": "calendar"}


def test_a_whole_mcp_servers_document_with_one_server_is_that_server() -> None:
    target = parse_target({"mcpServers": {"work": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer x"}}}})
    assert isinstance(target, EntryTarget)
    assert target.name == "work"
    assert target.launch == HttpTarget("https://h/mcp", {"Authorization": "Bearer x"})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "https://host/mcp"),
        (None, "not a target"),
        ([], "empty command"),
        (["npx", 1], "only strings"),
        ("sqlit:///x", "sqlite"),
        ("folders:x", "folder:x"),
        ("htps://x/mcp", "https"),
        ("ftp://host/x", "ftp"),
        ("./server", "after --"),
        ("https://a b/mcp", "not a URL"),
        ("https://", "not a URL"),
        ("https://h:99999/mcp", "not a URL"),
        ("npm:", "npm:package"),
        ("npm:UP/x", "npm:package"),
        ("pypi:x>=1", "pypi:package"),
        ("folder:", "folder:DIR"),
        ("sqlite:x.db", "sqlite:///FILE"),
        ("sqlite:///x.db?mee=a@b", "what it knows is me"),
        ("folder:x?me=", "no address"),
        ("folder:x?me=a@b&me=c@d", "one address"),
        ("folder:?me=a@b", "names no folder"),
        ("sqlite:///?me=a@b", "names no file"),
        ("a 'b", "can't be split"),
        ("cat x | server", "shell operator '|'"),
        ("A=b C=d", "nothing to run"),
        ("claude.json#", "file.json#name"),
        ({}, "neither command nor url"),
        ({"command": "x", "url": "http://h"}, "both command and url"),
        ({"command": "x", "args": "y"}, "args is a list"),
        ({"command": "x", "args": [["y"]]}, "args[0]"),
        ({"command": "x", "env": {"A": [1]}}, "env.A"),
        ({"url": "http://h/sse", "type": "sse"}, "'sse'"),
        ({"mcpServers": {"a": {}, "b": {}}}, "2 servers: a, b"),
    ],
)
def test_what_is_not_a_target_is_refused_with_what_would_be(value: object, words: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_target(value)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "value",
    [
        "https://user:hunter22@mcp.example/mcp?api_key=hunter22&x=1",
        "server --token hunter22 --api-key=hunter22 https://u:hunter22@h/",
        {"command": "x", "args": ["--password", "hunter22"], "env": {"PASSWORD": "hunter22"}},
        {"url": "https://h/mcp?token=hunter22", "headers": {"Authorization": "Bearer hunter22"}},
        "API_TOKEN=hunter22 server --x",
    ],
)
def test_no_description_of_a_target_shows_a_credential(value: Any) -> None:
    target = parse_target(value)
    shown = json.dumps(target.describe()) + str(target) + repr(target)
    assert "hunter22" not in shown
    assert "secret" in shown or "PASSWORD" in shown or "TOKEN" in shown


def test_a_description_says_which_file_was_used() -> None:
    from hotplug.connect.target import entry_target

    target = entry_target({"command": "x"}, name="work", file="/etc/hotplug.toml")
    assert target.describe() == {
        "kind": "entry",
        "name": "work",
        "file": "/etc/hotplug.toml",
        "launch": {"kind": "command", "argv": ["x"]},
    }
