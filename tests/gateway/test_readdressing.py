"""A link in a result leads to the server that gave it, also where another server has a resource of the same URI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotplug.gateway.message import dumps, split
from hotplug.gateway.readdressing import readdressed

from .roads import Thread, hall, only
from .upstreams import Fake

pytestmark = pytest.mark.anyio

SAME = "fake://a"


def lists(name: str, *uris: str) -> Fake:
    """A server whose every answer says who gave it, and links to what it has."""
    fake = Fake(["look"], ["tell"], uris)
    links = [{"type": "resource_link", "uri": uri, "name": "x"} for uri in (*uris, "fake://unlisted")]
    blocks = [*links, {"type": "resource", "resource": {"uri": SAME, "text": name}}, {"type": "text", "text": SAME}]
    fake.others["tools/call"] = lambda _: {"content": blocks, "structuredContent": {"uri": SAME}}
    fake.others["prompts/get"] = lambda _: {"messages": [{"role": "user", "content": one} for one in blocks]}
    fake.others["resources/read"] = lambda params: {"contents": [{"uri": params["uri"], "text": name}]}
    return fake


async def text_at(who: Thread, uri: str, era: str) -> str:
    asked = who.modern if era == "modern" else (await who.session()).request
    answer = (await asked("resources/read", {"uri": uri})).message
    contents = answer["result"]["contents"][0]
    assert contents["uri"] == uri
    return contents["text"]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_each_link_leads_to_the_server_that_gave_it(tmp_path: Path, era: str) -> None:
    servers = {"one": lists("one", SAME, "fake://one"), "two": lists("two", SAME)}
    async with hall(tmp_path, servers) as h:
        thread = await h.thread()
        await thread.modern("resources/list")
        session = await thread.session()
        asked = thread.modern if era == "modern" else session.request
        for name in servers:
            result = (await asked("tools/call", {"name": f"{name}.look", "arguments": {}})).message["result"]
            links = [one["uri"] for one in result["content"] if one["type"] == "resource_link"]
            assert len(links) == len(servers[name].resources) + 1
            embedded = [one["resource"]["uri"] for one in result["content"] if one["type"] == "resource"]
            exposed = h.gateway.view.book.exposed(name, "prompts", "tell")
            prompt = (await asked("prompts/get", {"name": exposed})).message["result"]["messages"]
            prompted = [one["content"]["uri"] for one in prompt if one["content"]["type"] == "resource_link"]
            assert prompted == links
            for uri in (*links, *embedded):
                assert await text_at(thread, uri, era) == name
            # What isn't said to be a resource's URI stays as it came.
            assert result["structuredContent"] == {"uri": SAME}
            assert result["content"][-1]["text"] == SAME
        listed = (await asked("tools/call", {"name": "one.look", "arguments": {}})).message["result"]["content"][1]
        assert listed["uri"] == "fake://one"


async def test_a_thread_of_one_server_gets_its_links_as_they_came(tmp_path: Path) -> None:
    servers = {"one": lists("one", SAME), "two": lists("two", SAME)}
    async with hall(tmp_path, servers, only("one")) as h:
        thread, rich = await h.thread(), await h.thread(profile="all")
        await rich.modern("resources/list")
        result = (await thread.modern("tools/call", {"name": "one.look", "arguments": {}})).message["result"]
        assert [one["uri"] for one in result["content"][:2]] == [SAME, "fake://unlisted"]


@pytest.mark.parametrize(
    "result",
    [
        {"content": "uri"},
        {"content": [{"type": "resource_link", "uri": 5}, {"type": "resource_link"}, "uri", None, [], 10**30]},
        {"content": [{"type": "resource", "resource": "uri"}, {"type": "resource"}, {"type": "x", "uri": "a"}]},
        {"contents": {"uri": "a"}, "messages": [{"role": "user"}, {"role": "user", "content": [5, {"uri": "a"}]}]},
    ],
)
def test_what_has_no_resource_in_it_stays_the_same_object(result: Any) -> None:
    fields = split(dumps(result))
    assert fields is not None
    assert readdressed(fields, lambda uri: f"hotplug+x:{uri}") is fields


async def test_every_escape_passes_beside_a_link(tmp_path: Path) -> None:
    odd = lists("one", SAME)
    odd.others["tools/call"] = lambda _: {
        "content": [{"type": "text", "text": "\ud800 \u2028"}, {"type": "resource_link", "uri": SAME, "name": "\udc00"}]
    }
    async with hall(tmp_path, {"one": odd, "two": lists("two", SAME)}) as h:
        thread = await h.thread()
        await thread.modern("resources/list")
        body = (await thread.modern("tools/call", {"name": "one.look", "arguments": {}})).body
        assert rb'"text": "\ud800 \u2028"' in body or rb'"text":"\ud800 \u2028"' in body
        assert rb"\udc00" in body


def test_a_uri_that_is_no_text_of_unicode_is_looked_at_like_any_other() -> None:
    fields = split(rb'{"content":[{"type":"resource_link","uri":"\ud800"}]}')
    assert fields is not None
    assert readdressed(fields, lambda uri: uri) is fields


def test_a_messages_blocks_are_all_looked_at_and_nothing_beside_the_uri_changes() -> None:
    link = {"type": "resource_link", "uri": "a", "x-odd": 10**30, "_meta": {"uri": "a"}}
    fields = split(dumps({"messages": [{"role": "user", "content": [link, {"type": "text", "text": "a"}]}], "z": 1}))
    assert fields is not None
    found = readdressed(fields, lambda uri: f"hotplug+x:{uri}")
    told = json.loads(dumps(found))
    assert told["messages"][0]["content"] == [{**link, "uri": "hotplug+x:a"}, {"type": "text", "text": "a"}]
    assert told["z"] == 1
