"""URIs that clients see: kept, or with their server's name in front, and always one way back."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.gateway.names import Assigned
from hotplug.gateway.uris import LONGEST_URI, assign_uris, fitting, matches, prefixed, unprefixed

SERVERS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


def test_a_uri_is_kept_where_one_server_has_it() -> None:
    found = assign_uris([("a", "file:///x"), ("b", "file:///y")], known={})
    assert found.exposed == {("a", "file:///x"): "file:///x", ("b", "file:///y"): "file:///y"}
    assert found.new == found.back()


@pytest.mark.parametrize("order", [1, -1])
def test_a_uri_that_two_servers_have_gets_their_names_in_front(order: int) -> None:
    both = [("work", "file:///a"), ("My_home", "file:///a")]
    assert assign_uris(both[::order], known={}).exposed == {
        ("work", "file:///a"): "hotplug+work:file:///a",
        ("My_home", "file:///a"): "hotplug++4dy+5fhome:file:///a",
    }


def test_a_uri_that_was_kept_stays_when_another_server_comes_with_it() -> None:
    known = {"config://app": ("a", "config://app")}
    found = assign_uris([("a", "config://app"), ("b", "config://app")], known=known)
    assert found.exposed["a", "config://app"] == "config://app"
    assert found.exposed["b", "config://app"] == "hotplug+b:config://app"
    gone = assign_uris([("b", "config://app")], known=known | dict(found.new))
    assert gone.exposed["b", "config://app"] == "hotplug+b:config://app"


@pytest.mark.parametrize("uri", ["", "x:\n", "x:\x00", "x:" + "a" * LONGEST_URI])
def test_an_unusable_uri_costs_itself_alone(uri: str) -> None:
    found = assign_uris([("a", uri), ("a", "x:y")], known={})
    assert found.exposed == {("a", "x:y"): "x:y"}
    assert found.left_out.keys() == {("a", uri)}


def test_a_servers_own_uri_in_our_form_leads_to_that_server() -> None:
    found = assign_uris([("evil", "hotplug+good:file:///a"), ("good", "file:///a")], known={})
    exposed = found.exposed["evil", "hotplug+good:file:///a"]
    assert exposed == "hotplug+evil:hotplug+good:file:///a"
    assert unprefixed(exposed) == ("evil", "hotplug+good:file:///a")


@given(SERVERS, st.text(max_size=20))
def test_a_prefix_leads_back(server: str, uri: str) -> None:
    exposed = prefixed(server, uri)
    assert unprefixed(exposed) == (server, uri)
    scheme = exposed.partition(":")[0]
    assert scheme.isascii()
    assert scheme == scheme.lower()
    assert all(one.isalnum() or one in "+.-" for one in scheme)


@pytest.mark.parametrize(
    "uri", ["file:///a", "hotplug+:x", "hotplug+A:x", "hotplug+a_b:x", "hotplug++61:x", "hotplug++ff:x", "hotplug++4:x"]
)
def test_no_other_spelling_leads_anywhere(uri: str) -> None:
    assert unprefixed(uri) is None


def test_a_template_with_a_prefix_is_one_and_what_is_made_of_it_leads_back() -> None:
    template = prefixed("work", "file:///{path}")
    assert template == "hotplug+work:file:///{path}"
    assert unprefixed(template.replace("{path}", "a%20b")) == ("work", "file:///a%20b")


@pytest.mark.parametrize(
    ("template", "uri", "said"),
    [
        ("file:///{path}", "file:///a/b", 8),
        ("file:///{path}.md", "file:///a/b.md", 11),
        ("file:///{path}.md", "file:///a/b.txt", None),
        ("x://{a}/in/{b}", "x://1/in/2", 8),
        ("x://{a}/in/{b}", "x://1/2", None),
        ("x://{?q}", "x://?q=1", 4),
        ("x:ab{c}ba", "x:aba", None),
        ("x:fixed", "x:fixed", 7),
        ("x:fixed", "x:other", None),
        ("{+any}", "anything", 0),
    ],
)
def test_a_template_fits_what_it_can_make(template: str, uri: str, said: int | None) -> None:
    assert matches(template, uri) == said


def test_a_template_made_to_be_slow_is_not() -> None:
    start = time.perf_counter()
    assert matches("a" + "{x}a" * 2000 + "b", "a" * LONGEST_URI) is None
    assert time.perf_counter() - start < 1


TEMPLATES = {
    "file:///{path}": ("files", "file:///{path}"),
    "file:///notes/{name}": ("notes", "file:///notes/{name}"),
    "db://{table}": ("one", "db://{table}"),
    "db://{name}": ("two", "db://{name}"),
}
RESOURCES = {"hotplug+one:x:y": ("one", "x:y"), "x:z": ("two", "x:z")}
OFFERING = {"files", "notes", "one", "two"}


@pytest.mark.parametrize(
    ("uri", "holder"),
    [
        ("x:z", ("two", "x:z")),
        ("hotplug+one:x:y", ("one", "x:y")),
        ("hotplug+two:x:y", ("two", "x:y")),
        ("hotplug+other:x:y", None),
        ("file:///a", ("files", "file:///a")),
        ("file:///notes/a", ("notes", "file:///notes/a")),
        ("db://t", None),
        ("db://{name}", ("two", "db://{name}")),
        ("hotplug+two:db://t", ("two", "db://t")),
        ("nobody:s", None),
    ],
)
def test_a_uri_leads_to_one_server_or_to_none(uri: str, holder: tuple[str, str] | None) -> None:
    assert fitting(uri, resources=RESOURCES, templates=TEMPLATES, offering=OFFERING) == holder


def test_a_uri_that_nobody_lists_leads_to_the_only_server_with_resources() -> None:
    assert fitting("nobody:s", resources={}, templates={}, offering={"one"}) == ("one", "nobody:s")


def test_uris_may_be_given_without_a_memory() -> None:
    assert assign_uris([], known={}) == Assigned({})
