"""Odd content is the same behind the gateway as at the server, exchange by exchange and character for character."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator

import pytest

from hotplug.gateway.link import Era

from .differences import GONE, LISTS, changed, of_the_gateway, settled
from .raw_client import RawClient, Said
from .ways import Place

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
ERAS: tuple[Era, ...] = ("legacy", "modern")

ARGUMENTS = (
    r'{"big":1180591620717411303424,"float":1.50,"exp":1E-07,"neg":-0,"huge":1e400,"short":"\" \\ \/ \b\f\n\r\t",'
    r'"lone":"\ud800","pair":"\ud83d\udd0c","raw":"ä' + "\u2028\x7f\U0001f50c" + r'","lone \udfff key":null,'
    r'"null":null,"":{"deep":[[],{},[null]]},"same":"\u00E4\u00e4"  ,  "blanks" : [ 1 , 2 ]}'
)
META = (
    r'"vendor.example/meta":{"null":null,"n":1.10,"lone":"\udead","big":-1180591620717411303424},'
    r'"plain":[1E+2],"lone \ud83d key":1.50'
)


def exchanges(era: Era) -> Generator[tuple[str, str, str]]:
    """Method, members of the params, `_meta`."""
    yield "tools/list", "", ""
    for tool in ("contents", "nulls", "numbers", "strings", "large", "media", "fail", "refuse", "LONG", "missing"):
        yield "tools/call", f'"name":"{tool}","arguments":{{}}', META
    yield "tools/call", f'"name":"echo","arguments":{ARGUMENTS},"vendorParam":{{"n":1.0}},"lone \\ud801":1.0', META
    yield "tools/call", '"name":"echo"', ""
    yield "tools/call", '"name":"echo","arguments":null', ""
    yield "tools/call", '"name":"deep","arguments":{"depth":400}', ""
    yield "tools/call", '"name":"refuse","arguments":{"code":-32602}', ""
    yield "tools/call", '"name":"burst","arguments":{"count":20}', '"progressToken":"p/1"'
    yield "tools/call", '"name":"burst","arguments":{"count":3}', '"progressToken":7'
    yield "prompts/list", "", META
    yield "prompts/get", f'"name":"plain","arguments":{{"topic":"\\ud800 {chr(0x2028)}"}}', META
    yield "prompts/get", '"name":"missing"', ""
    yield "resources/list", "", ""
    yield "resources/templates/list", "", META
    for uri in ("odd://text", "odd://bytes", "odd:\\/\\/text", "odd://items/a%20b?detail=%C3%A4&more=1", "odd://none"):
        yield "resources/read", f'"uri":"{uri}"', META
    yield (
        "completion/complete",
        '"ref":{"type":"ref/prompt","name":"plain","x":1.0},"argument":{"name":"topic","value":"\\ud800"}',
        META,
    )
    yield (
        "completion/complete",
        '"ref":{"type":"ref/resource","uri":"odd://items/{id}{?detail,more*}"},"argument":{"name":"id","value":"a"},"context":{"arguments":{"b":"c"},"v":null}',
        "",
    )
    yield "vendor/echo", f'"anything":{ARGUMENTS}', META
    yield "vendor/announce", f'"anything":{ARGUMENTS}', META
    yield "vendor/unknown", '"a":1', ""
    if era == "legacy":
        yield "ping", "", ""
        yield "tools/call", '"name":"log","arguments":{}', ""
        yield "logging/setLevel", '"level":"warning"', ""
        yield "tools/call", '"name":"log","arguments":{}', ""
        yield "resources/subscribe", '"uri":"odd://text"', META
        yield "resources/unsubscribe", '"uri":"odd://text"', META
    else:
        yield "server/discover", "", META
        yield "tools/call", '"name":"log","arguments":{}', ""
        for level in ("debug", "error"):
            yield "tools/call", '"name":"log","arguments":{}', f'"io.modelcontextprotocol/logLevel":"{level}"'
        for gone in GONE:
            yield gone, '"uri":"odd://text"', ""


async def played(client: RawClient) -> list[tuple[str, str, Said]]:
    found: list[tuple[str, str, Said]] = []
    if client.hello is not None:
        found.append(("initialize", "", client.hello))
    long_name = ""
    for number, (method, members, meta) in enumerate(exchanges(client.era)):
        id_ = str(2**60 + number) if number % 2 else rf'"\u00e4/{number}"'
        said = await client.ask(method, members.replace('"LONG"', f'"{long_name}"'), meta, id_)
        if method in LISTS:
            await read_on(client, method, said)
        if method == "tools/list":
            (long_name,) = (tool["name"] for tool in said.result["tools"] if tool["name"].startswith("long_"))
        found.append((method, members, said))
    return found


async def read_on(client: RawClient, method: str, said: Said) -> None:
    """The other pages of a list."""
    while (cursor := said.raw("result", "nextCursor")) is not None:
        said.texts += (await client.ask(method, f'"cursor":{cursor}')).texts


@pytest.mark.parametrize("era", ERAS)
async def test_every_exchange_is_equal(places: tuple[Place, Place], era: Era) -> None:
    direct, gateway = places
    async with direct.client(era) as client:
        wanted = await played(client)
    async with gateway.client(era) as client:
        given = await played(client)
    for (method, members, there), (_, _, here) in zip(wanted, given, strict=True):
        assert settled(method, here.texts) == settled(method, there.texts), (method, members)


ANSWER = r'{"action":"accept","content":{"color":"\ud800","n":1.5},"vendorField":null,"_meta":{"big":1e-7}}'


@pytest.mark.parametrize("answer", [ANSWER, None])
async def test_a_question_reaches_the_client_and_its_answer_the_server(
    places: tuple[Place, Place], answer: str | None
) -> None:
    found: list[tuple[list[str], list[str]]] = []
    for place in places:
        async with place.client("legacy") as client:
            if answer is not None:
                client.answers["elicitation/create"] = answer
            said = await client.call("ask")
            again = await client.call("ask")
            found.append((client.questions, [said.answer, again.answer]))
    assert found[0] == found[1]
    assert len(found[1][0]) == 2


async def test_a_question_in_rounds_comes_back_to_its_server(places: tuple[Place, Place]) -> None:
    found: list[tuple[str, str]] = []
    for place in places:
        async with place.client("modern") as client:
            first = await client.call("ask")
            state = first.raw("result", "requestState")
            second = await client.call("ask", more=f',"inputResponses":{{"color":{ANSWER}}},"requestState":{state}')
            # The state is sealed to its thread and server.
            found.append((changed(first.answer, ("result", "requestState"), lambda _: "0"), second.answer))
    assert found[0] == found[1]
    assert "as it was given out" in found[1][1]


async def test_what_a_client_says_of_itself_and_its_notices_arrive_as_they_were(places: tuple[Place, Place]) -> None:
    found: list[tuple[str | None, str | None]] = []
    for place in places:
        async with place.client("legacy") as client:
            await client.notify("notifications/roots/list_changed", f'{{"_meta":{{{META}}},"vendorField":{ARGUMENTS}}}')
            # What a client sends is written anew down to its params' members: blanks between those don't count.
            await client.notify("notifications/vendor/thing", f'{{"thing":{ARGUMENTS}}}')
            said = await client.call("seen")
            content = ("result", "structuredContent")
            found.append((said.raw(*content, "notices"), said.raw(*content, "initialize")))
    assert found[0] == found[1]


@pytest.mark.parametrize("era", ERAS)
async def test_no_credential_and_nothing_of_the_connection_reaches_the_server(
    places: tuple[Place, Place], era: Era
) -> None:
    async with places[1].client(era) as client:
        said = await client.call("seen")
    given = {name for name, _ in said.result["structuredContent"]["headers"]}
    assert not given & {"authorization", "cookie", "origin", "x-forwarded-for"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_is_cancelled_at_the_server(places: tuple[Place, Place], era: Era) -> None:
    for place in places:
        async with place.client(era) as client:
            before = (await client.call("cancelled")).result["structuredContent"]["n"]
            number = client.new_id()
            members, meta = '"name":"wait","arguments":{}', '"progressToken":"w"'
            reading = client.read("tools/call", members, meta, number)
            assert json.loads(await anext(reading))["params"] == {"progressToken": "w", "progress": 0}
            if era == "legacy" or place.command:
                await client.notify("notifications/cancelled", f'{{"requestId":{number},"reason":"tired"}}')
            await reading.aclose()
            async with asyncio.timeout(20):
                while (await client.call("cancelled")).result["structuredContent"]["n"] != before + 1:
                    await asyncio.sleep(0.02)


async def test_a_session_hears_its_servers_notices_as_they_are(places: tuple[Place, Place]) -> None:
    found: list[list[str]] = []
    for place in places:
        async with place.client("legacy") as client:
            heard: list[str] = []
            await client.ask("resources/subscribe", '"uri":"odd://text"')
            for what in ("tools", "prompts", "resources", "odd://text"):
                await client.call("change", f'{{"what":"{what}"}}')
                heard.append(await client.heard(lambda text: not of_the_gateway(text)))
            await client.ask("resources/unsubscribe", '"uri":"odd://text"')
            for what in ("odd://text", "tools", "prompts", "resources"):
                await client.call("change", f'{{"what":"{what}"}}')
            heard.append(await client.heard(lambda text: not of_the_gateway(text)))
            found.append(heard)
    assert found[0] == found[1]


async def test_a_subscription_hears_what_it_wants_under_the_callers_id(places: tuple[Place, Place]) -> None:
    found: list[list[str]] = []
    for place in places:
        async with place.client("modern") as client, place.client("modern") as other:
            # At a server over a pipe, a client is alone.
            other = client if place.command else other
            wanted = (
                '"notifications":{"toolsListChanged":true,"resourceSubscriptions":["odd://text"],"vendor":{"n":1.0}}'
            )
            reading = client.read("subscriptions/listen", wanted, META, r'"l/\u00e4"')
            async with asyncio.timeout(20):
                heard = [await anext(reading)]
                for what in ("tools", "prompts", "odd://bytes", "odd://text", "tools"):
                    await other.call("change", f'{{"what":"{what}"}}')
                while len(heard) < 4:
                    if not of_the_gateway(notice := await anext(reading)):
                        heard.append(notice)
            await reading.aclose()
            found.append(heard)
            await other.call("change", '{"what":"prompts"}')
    assert found[0] == found[1]
