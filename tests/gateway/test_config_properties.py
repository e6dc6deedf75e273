"""Whatever stands in a file: reading it ends in values, or in an error of ours, and no secret is repeated."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from hotplug.errors import ConfigError
from hotplug.gateway.config_file import SECTIONS, parse_config, parse_project
from hotplug.gateway.importing import Imported, import_file, merged
from hotplug.gateway.server_entry import SERVER_KEYS
from hotplug.gateway.writing import add_server, new_file, remove_server, settle

SECRET = "ghp_0123456789abcdefghijXYZ"
PATH = Path("/etc/h/hotplug.toml")

_texts = st.one_of(
    st.text(max_size=8), st.sampled_from([SECRET, f"Bearer {SECRET}", "secret:a", "${A}", "calendar", "x"])
)
_leaves = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), _texts)
_values = st.recursive(
    _leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_texts, inner, max_size=3)),
    max_leaves=6,
)
_launches = st.one_of(
    st.fixed_dictionaries(
        {"command": st.just("npx"), "env": st.dictionaries(st.sampled_from(["API_KEY", "B"]), _texts)}
    ),
    st.fixed_dictionaries(
        {"url": st.just("https://example.org/mcp"), "headers": st.dictionaries(st.just("X-Key"), _texts)}
    ),
    st.fixed_dictionaries({"target": st.sampled_from(["npm:x", "sqlite:///x.db", "folder:x", "x", SECRET])}),
    st.just({}),
)
_entries = st.builds(
    lambda launch, more: {**more, **launch},
    _launches,
    st.dictionaries(st.one_of(st.sampled_from(SERVER_KEYS), _texts), _values, max_size=4),
)
_servers = st.dictionaries(_texts, st.one_of(_entries, _values), max_size=3)
_documents = st.builds(
    lambda sections, servers: {**sections, "servers": servers},
    st.dictionaries(
        st.one_of(st.sampled_from(sorted(SECTIONS)), _texts),
        st.one_of(
            _values,
            st.dictionaries(st.sampled_from(sorted({key for keys in SECTIONS.values() for key in keys})), _values),
        ),
        max_size=4,
    ),
    _servers,
)


def _toml(document: dict[str, Any]) -> str | None:
    """The text of a document, if the library can write it."""
    try:
        text = tomlkit.dumps(document)
        tomllib.loads(text)
    except (ValueError, TypeError, AttributeError):
        return None
    return text


@settings(max_examples=150, deadline=None)
@given(_documents)
def test_any_file_is_read_and_no_secret_in_it_is_repeated(document: dict[str, Any]) -> None:
    text = _toml(document)
    if text is None:
        return
    config = parse_config(text, path=PATH)
    servers = document["servers"]
    assert set(config.servers) | set(config.broken) == set(servers)
    assert not set(config.servers) & set(config.broken)
    # Where a key itself is a token, it can't be told of without being named.
    if not any(SECRET in key for key in _keys(document)):
        said = [*map(str, config.warnings), *map(str, config.broken.values()), repr(config)]
        assert not any(SECRET in one for one in said), said
    project = parse_project(text, path=PATH)
    assert set(project.servers) <= set(config.servers)


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(_keys(one) for one in value.values()))
    if isinstance(value, list):
        return set().union(*map(_keys, value))
    return set()


@settings(max_examples=100, deadline=None)
@given(
    _servers,
    st.sampled_from(["mcpServers", "servers", "projects"]),
    st.sampled_from(["mcp.json", ".claude.json", ".vscode/mcp.json"]),
)
def test_any_client_s_file_is_taken_over_into_a_file_that_is_read(servers: dict[str, Any], key: str, name: str) -> None:
    try:
        found = import_file(
            json.dumps({key: servers}), path=Path("/p") / name, home=Path("/home/me"), environ={"A": "value"}
        )
    except ConfigError:
        return
    taken = merged([one for one in found if isinstance(one, Imported)])
    text = new_file(settle(taken, lambda _one, _secret: "env"))
    config = parse_config(text, path=PATH)
    assert list(config.servers) == [one.name for one in taken]
    assert config.broken == {}


@settings(max_examples=100, deadline=None)
@given(_documents, st.sampled_from(["new", "a.b", "x-1"]))
def test_adding_and_removing_a_server_gives_the_same_file_again(document: dict[str, Any], name: str) -> None:
    text = _toml(document)
    if text is None or name in document["servers"]:
        return
    try:
        added = add_server(text, name, {"command": "x", "env": {"A": "1"}}, where="f")
        removed = remove_server(added, name, where="f")
    except ConfigError:
        return
    before = tomllib.loads(text)
    if not before["servers"]:
        del before["servers"]
    assert repr(tomllib.loads(removed)) == repr(before)
