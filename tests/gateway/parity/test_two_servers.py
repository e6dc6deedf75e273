"""Two servers at once: what a client sends reaches the one that is meant, and whatever both say keeps apart."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hotplug.gateway.link import Era

from .differences import of_the_gateway
from .raw_client import HttpTransport, RawClient, over_http
from .ways import EVERYTHING, ODD, WAYS, Place, Way, behind

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]
ERAS: tuple[Era, ...] = ("legacy", "modern")
BOTH = ("one", "two")


@pytest.fixture(scope="module", params=WAYS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    """Two odd servers behind one gateway."""
    way: Way = request.param
    with behind(tmp_path_factory.mktemp("gateway"), dict.fromkeys(BOTH, ODD), way, prefixes=True) as found:
        yield found


async def uris(client: RawClient) -> dict[str, str]:
    """The URI that each server's `odd://text` has here."""
    # In the order of the file, as all lists are.
    resources = (await client.ask("resources/list")).result["resources"]
    return dict(zip(BOTH, (one["uri"] for one in resources if one["name"] == "text"), strict=True))


@pytest.mark.parametrize("era", ERAS)
async def test_names_have_prefixes_and_lead_to_their_server(place: Place, era: Era) -> None:
    async with place.client(era) as client:
        names = [tool["name"] for tool in (await client.ask("tools/list")).result["tools"]]
        assert len(names) == len(set(names)) == 40
        assert {f"{server}.echo" for server in BOTH} <= set(names)
        pids = [(await client.call(f"{server}.process")).result["structuredContent"]["pid"] for server in BOTH * 2]
        assert pids[:2] == pids[2:]
        assert pids[0] != pids[1]
        refused = await client.call("process")
        assert json.loads(refused.answer)["error"]["code"] == -32602
        prompts = [prompt["name"] for prompt in (await client.ask("prompts/list")).result["prompts"]]
        assert len(set(prompts)) == 2
        for prompt in prompts:
            got = await client.ask("prompts/get", f'"name":{json.dumps(prompt)},"arguments":{{"topic":"T"}}')
            assert got.result["messages"][0]["content"]["text"] == "T"


@pytest.mark.parametrize("era", ERAS)
async def test_calls_at_once_get_the_answers_of_their_servers(place: Place, era: Era) -> None:
    async with place.client(era) as client:
        alone = {server: (await client.call(f"{server}.process")).result["structuredContent"]["pid"] for server in BOTH}
        wanted = [BOTH[number % 2] for number in range(40)]
        found = await asyncio.gather(*(client.call(f"{server}.process") for server in wanted))
    assert [said.result["structuredContent"]["pid"] for said in found] == [alone[server] for server in wanted]


async def test_equal_ids_of_two_clients_keep_apart(place: Place) -> None:
    if place.command:
        return  # One client has one pipe.
    for era in ERAS:
        async with place.client(era) as first, place.client(era) as other:
            calls = [
                client.ask("tools/call", f'"name":"{server}.echo","arguments":{{"who":"{who}"}}', "", "77")
                for who, client, server in (("a", first, "one"), ("b", other, "one"))
            ]
            found = await asyncio.gather(*calls)
        assert [said.result["structuredContent"]["arguments"]["who"] for said in found] == ["a", "b"]


async def test_questions_of_two_servers_under_one_id_get_each_its_own_answer(place: Place) -> None:
    if place.command:
        return  # Whose question it is can't be told on one pipe, where both are asked at once.
    async with place.client("legacy") as client:
        both = asyncio.Event()
        asked: list[str] = []

        async def answer(text: str, server: str) -> str:
            asked.append(json.dumps(json.loads(text)["id"]))
            if len(asked) == 2:
                both.set()
            await both.wait()
            return f'{{"action":"accept","content":{{"color":"of {server}"}}}}'

        async def ask(server: str) -> str:
            client_of = RawClient(client.transport, "legacy")
            client_of.answer = lambda text: answer(text, server)
            said = await client_of.ask("tools/call", f'"name":"{server}.ask","arguments":{{}}', "", f'"{server}"')
            return said.result["structuredContent"]["answer"]["content"]["color"]

        assert await asyncio.gather(ask("one"), ask("two")) == ["of one", "of two"]
    assert len(set(asked)) == 2


async def test_a_subscription_hears_both_servers(place: Place) -> None:
    async with place.client("modern") as client:
        of = await uris(client)
        wanted = f'"notifications":{{"toolsListChanged":true,"resourceSubscriptions":{json.dumps(list(of.values()))}}}'
        reading = client.read("subscriptions/listen", wanted, "", '"both"')
        async with asyncio.timeout(60):
            first = json.loads(await anext(reading))
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert set(first["params"]["notifications"]["resourceSubscriptions"]) == set(of.values())
            for server in (*BOTH, "two"):
                await client.call(f"{server}.change", '{"what":"odd://text"}')
                while of_the_gateway(text := await anext(reading)):
                    pass
                notice = json.loads(text)
                assert notice["params"]["uri"] == of[server]
                assert notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "both"
                assert notice["params"]["vendorField"] == {"of": "a notice"}
        await reading.aclose()


async def test_a_session_hears_both_servers(place: Place) -> None:
    async with place.client("legacy") as client:
        of = await uris(client)
        for server in BOTH:
            await client.ask("resources/subscribe", f'"uri":{json.dumps(of[server])}')
        for server in (*BOTH, "two"):
            await client.call(f"{server}.change", '{"what":"odd://text"}')
            notice = json.loads(await client.heard(lambda text: "resources/updated" in text))
            assert notice["params"]["uri"] == of[server]


@pytest.mark.parametrize("upstream", ["HTTP>HTTP", "HTTP>stdio"])
async def test_a_stream_that_broke_is_read_on_at_its_own_server(tmp_path: Path, upstream: Way) -> None:
    with behind(tmp_path, dict.fromkeys(BOTH, EVERYTHING), upstream, prefixes=True) as place:
        # The SDK's servers take no odd ones.
        info = '{"name":"plain","version":"1"}'
        async with over_http(place.url, "legacy", place.token, capabilities="{}", info=info) as client:
            transport = client.transport
            assert isinstance(transport, HttpTransport)

            async def broken(server: str) -> str:
                """The last event before the stream ends, or is left."""
                params = f'{{"name":"{server}.test_tool_with_logging","arguments":{{}}}}'
                if upstream == "HTTP>HTTP":
                    params = params.replace("test_tool_with_logging", "test_reconnection")
                body = f'{{"jsonrpc":"2.0","id":"{server}","method":"tools/call","params":{params}}}'
                last = ""
                async with transport.session.post(transport.url, data=body, headers=transport.headers) as response:
                    assert response.status == 200, await response.text()
                    async for id_, _ in numbered(response.content):
                        last = id_ or last
                        if upstream == "HTTP>stdio":
                            break
                return last

            lasts = await asyncio.gather(*(broken(server) for server in BOTH))
            assert all(lasts)
            for server, last in zip(BOTH, lasts, strict=True):
                headers = {**transport.headers, "accept": "text/event-stream", "last-event-id": last}
                answers: list[Any] = []
                for _ in range(10):
                    # What happens between its reading of what it kept and its waiting for more, the SDK's server tells
                    # to nobody: its stream stays silent then, and is to be read on once more.
                    with contextlib.suppress(TimeoutError):
                        async with (
                            asyncio.timeout(6),
                            transport.session.get(transport.url, headers=headers) as response,
                        ):
                            assert response.status == 200
                            texts = [text async for _, text in numbered(response.content)]
                        answers = [json.loads(text) for text in texts if '"result"' in text]
                        break
                assert [answer["id"] for answer in answers] == [server]


async def numbered(content: aiohttp.StreamReader) -> AsyncGenerator[tuple[str, str]]:
    """Each event's id and data, until the stream ends."""
    id_, data = "", ""
    while line := (await content.readline()).decode():
        if line.startswith("id:"):
            id_ = line[3:].strip()
        elif line.startswith("data:"):
            data = line[5:].strip()
        elif line in ("\n", "\r\n") and (id_ or data):
            yield id_, data
            id_, data = "", ""
