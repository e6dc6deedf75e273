"""What a host has, and the check that it runs in its own tests."""

from __future__ import annotations

import json

import pytest

from hotplug.access import AccessError, Host, NotJson, Toolkit, read_host

DOCUMENT = {
    "servers": {"work": ["read", "delete"], "mail": {"tools": ["send"]}},
    "toolkits": {"files": {"group": "files", "tools": ["open"]}, "core": {"tools": ["ask"]}},
    "ungrouped": {"ask": "core"},
}


def test_a_host_is_read_from_its_document() -> None:
    host = read_host(json.dumps(DOCUMENT))
    assert host == read_host(DOCUMENT)
    assert host.servers == {"mail": ("send",), "work": ("delete", "read")}
    assert host.groups == ("files",)
    assert host.offers("work", "read")
    assert not host.offers("work", "send")
    assert host.owns("files", "open")
    assert host.is_ungrouped("core", "ask")
    assert host.check() == ()
    assert read_host("{}") == Host()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "the document is a list"),
        ({"server": {}}, "server is no part of a host"),
        ({"servers": []}, "servers is a list"),
        ({"servers": {"work": "read"}}, "servers.work is a text"),
        ({"servers": {"work": [5]}}, "servers.work holds a number"),
        ({"servers": {"work": {}}}, "servers.work is missing"),
        ({"toolkits": {"k": {"tools": [], "groups": "x"}}}, "toolkits.k.groups is no part"),
        ({"toolkits": {"k": {"group": 5, "tools": []}}}, "toolkits.k.group is a number"),
        ({"toolkits": {"k": {"group": "g"}}}, "toolkits.k.tools is missing"),
        ({"ungrouped": {"ask": ["core"]}}, "ungrouped.ask is a list"),
    ],
)
def test_a_host_of_another_shape_is_refused_with_the_place(value: object, says: str) -> None:
    with pytest.raises(AccessError) as caught:
        read_host(json.dumps(value))
    assert says in str(caught.value)


def test_a_host_with_a_name_given_twice_is_refused() -> None:
    with pytest.raises(AccessError, match='servers gives "a" twice'):
        read_host('{"servers": {"a": [], "a": ["x"]}}')
    with pytest.raises(NotJson):
        read_host("{")


def test_a_tool_in_neither_a_group_nor_the_ungrouped_list_fails_the_hosts_check() -> None:
    (found,) = Host({}, {"k": Toolkit(None, ("a", "ask"))}, {"ask": "k"}).check()
    assert found.code == "tool_in_neither"
    assert '"a" is in no group' in found.message


def test_an_ungrouped_tool_is_pinned_to_a_toolkit_that_has_it() -> None:
    kits = {"core": Toolkit(None, ("ask",)), "web": Toolkit("web", ("ask",))}
    assert Host({}, kits, {"ask": "core"}).check() == ()
    assert not Host({}, kits, {"ask": "core"}).is_ungrouped("web", "ask")
    (nowhere,) = Host({}, {"core": Toolkit("g", ("ask",))}, {"asks": "core"}).check()
    assert (nowhere.code, nowhere.near) == ("ungrouped_nowhere", ("ask",))
    (no_kit,) = Host({}, {"core": Toolkit("g", ("ask",))}, {"ask": "cors"}).check()
    assert (no_kit.code, no_kit.near) == ("ungrouped_nowhere", ("core",))


def test_one_name_for_a_server_and_a_toolkit_and_a_group_without_a_name_are_found() -> None:
    found = Host({"k": []}, {"k": Toolkit(" ", ())}).check()
    assert {one.code for one in found} == {"name_of_both", "blank_name"}
