"""One server behind every kind of server object and transport: what is listed, declared, answered and refused."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp.server import MCPServer

from hotplug import connect
from hotplug.connect import McpSession, link_of
from hotplug.errors import (
    CODES,
    ConfigError,
    ConnectionFailed,
    Guarded,
    Internal,
    InvalidArgument,
    NotFound,
    Unsupported,
)
from hotplug.profile.compare import restrict
from hotplug.profile.schema import error_or
from hotplug.serve import INSTANCE_META, MEMBER_META, NOTES_META, Runtime, attach
from hotplug.store import memory

from .shop import SECRET, Item, MyShop, Points, PointsShop, Shop
from .ways import ALL, OBJECTS, connected, era, fastmcp, listening, mcpserver, served, stdio, target_of

pytestmark = pytest.mark.anyio


async def raw(session: McpSession, tool: str, arguments: Any = None, **meta: Any) -> dict[str, Any]:
    """A result as it stood on the wire."""
    result = await session.call(tool, arguments or {}, meta=meta or None)
    return dict(result.raw)


@pytest.mark.parametrize("kind", [*OBJECTS, "http modern", "http legacy"])
async def test_tools_are_listed_with_the_profiles_schemas_and_say_which_member_they_are(kind: str) -> None:
    async with (
        memory() as store,
        target_of(kind, MyShop(), store) as target,
        McpSession(target, era=era(kind)) as session,
    ):
        listed = {tool.name: tool.raw for tool in (await session.list_tools()).tools}
        for name, part in Shop.definition.parts.items():
            if part.kind == "event" or name in {"shop.refund", "shop.wrap"}:
                assert name not in listed
                continue
            assert listed[name]["inputSchema"] == restrict(part.input.schema, ())
            assert listed[name]["outputSchema"] == error_or(restrict(part.output.schema, ()))
            assert listed[name]["_meta"][MEMBER_META] == f"shop@1/{name}"
            assert listed[name]["description"] == part.description
        assert "giftWrap" not in listed["shop.buy"]["inputSchema"]["properties"]
        annotations = listed["shop.items"]["annotations"]
        assert {name: hint for name, hint in annotations.items() if hint is not None} == {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        bought = listed["shop.buy"]["annotations"]
        assert (bought["readOnlyHint"], bought["idempotentHint"], bought.get("destructiveHint")) == (False, False, None)
        assert listed["shop.demolish"]["annotations"]["destructiveHint"] is True
        assert listed["connection.events"]["_meta"][MEMBER_META] == "connection@1/connection.events"


@pytest.mark.parametrize("kind", [*OBJECTS, "http modern", "http legacy"])
async def test_both_dialects_are_declared_in_both_eras(kind: str) -> None:
    async with (
        memory() as store,
        target_of(kind, MyShop(), store) as target,
        McpSession(target, era=era(kind)) as session,
    ):
        extensions = session.capabilities_extensions()
        assert extensions["tools.noetic/profiles"]["profiles"]["shop"] == "1.2.0"
        assert extensions["tools.noetic/profiles"]["instances"] == [{"id": "shop-1", "title": "the shop"}]
        cards = {card["profile"]: card for card in extensions["org.classprofiles/profiles"]["profiles"]}
        assert cards["shop"]["digest"] == Shop.definition.digest
        assert cards["shop"]["via"] == "native"
        assert cards["connection"]["version"] == "1.0.0"


@pytest.mark.parametrize("kind", ["mcpserver modern", "lowlevel modern"])
async def test_the_old_handshake_says_it_as_extensions_and_as_experimental(kind: str) -> None:
    from mcp import Client

    async with memory() as store, Client(served(kind, MyShop(), store), mode="legacy") as client:
        capabilities = client.server_capabilities
        assert (capabilities.experimental or {})["tools.noetic/profiles"]["profiles"]["shop"] == "1.2.0"
        assert "org.classprofiles/profiles" in (capabilities.experimental or {})


@pytest.mark.parametrize("make", [mcpserver, fastmcp])
async def test_the_authors_own_tools_work_beside(make: Any) -> None:
    async with memory() as store:
        server = make()
        attach(server, MyShop(), store=store)
        async with McpSession(server) as session:
            assert "own" in {tool.name for tool in (await session.list_tools()).tools}
            result = await session.call("own", {"a": 2, "b": 3})
            assert not result.is_error
            assert "5" in result.texts[0]
            assert "shop" not in str((await session.call("own", {"a": "x"})).structured)


async def test_a_tool_of_the_same_name_is_refused_at_once_and_when_it_comes_later() -> None:
    async with memory() as store:
        server = MCPServer("shop")

        async def items() -> str:
            """Not ours."""
            return "theirs"

        server.add_tool(items, name="shop.items")
        with pytest.raises(ConfigError, match=r"shop\.items"):
            attach(server, MyShop(), store=store)
        late = mcpserver()
        attach(late, MyShop(), store=store)
        late.add_tool(items, name="shop.refund")  # an optional part that this server doesn't even have
        async with McpSession(late) as session:
            listed = await session.list_tools()
            assert not listed.complete
            assert "shop.refund" in str(listed.problem)
            refused = (await session.call("shop.items")).failed()
            assert refused is not None
            assert "shop.refund" in str(refused)


async def test_what_is_no_server_cannot_be_attached_to() -> None:
    async with memory() as store:
        with pytest.raises(ConfigError, match="no server"):
            attach(object(), MyShop(), store=store)


@pytest.mark.parametrize("kind", ALL)
async def test_every_error_comes_with_its_code_and_fits_what_the_tool_lists(kind: str) -> None:
    shop = MyShop()
    async with connected(kind, shop) as client:
        link = link_of(client)
        tools = {tool["name"]: tool for tool in await link.channel.tools()}
        schema = tools["shop.items"]["outputSchema"]
        fits = jsonschema.Draft202012Validator(schema)
        for code, cls in CODES.items():
            reply = await link.channel.call("shop.items", {"query": f"raise {code}"}, meta={})
            assert reply.is_error
            assert reply.content is not None
            assert reply.content["code"] == code
            assert reply.content["details"]["kept"] == 1
            fits.validate(reply.content)
            with pytest.raises(cls) as caught:
                await client.items(f"raise {code}")
            assert type(caught.value) is cls
            assert caught.value.details == {"kept": 1, "matches": []}
        good = await link.channel.call("shop.items", {}, meta={})
        assert not good.is_error
        fits.validate(good.content)
        assert not fits.is_valid({"items": "apple"})


@pytest.mark.parametrize("kind", ALL)
async def test_bad_arguments_and_server_faults_answer_without_reaching_or_showing_anything(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    shop = MyShop()
    async with connected(kind, shop) as client:
        channel = link_of(client).channel
        item = (await client.items()).items[0]
        shop.log.clear()
        for bad in (
            {"item": item, "count": "1"},
            {"item": item, "count": True},
            {"item": item},
            {"item": item, "count": 1, "size": 2},
            {"item": item, "count": 1, "lines": [{"text": 1}]},
            {"item": 5, "count": 1},
            {"item": item, "count": 1, "card": {"secret": "", "value": SECRET}},
            {"item": item, "count": 1, "card": [SECRET]},
        ):
            reply = await channel.call("shop.buy", bad, meta={})
            assert reply.is_error
            assert (reply.content or {})["code"] == "invalid_argument", bad
            assert SECRET not in str(reply)
        forged = await channel.call("shop.buy", {"item": "apple", "count": 1}, meta={})
        assert (forged.content or {})["code"] == "not_found"
        assert shop.log == []
        for query in ("boom", "kinds"):
            reply = await channel.call("shop.items", {"query": query}, meta={})
            assert (reply.content or {})["code"] == "internal"
            assert SECRET not in str(reply)
        shop.failure = RuntimeError(SECRET)
        reply = await channel.call("shop.ring", {}, meta={})
        assert (reply.content or {})["details"] == {"state": "unknown"}
        assert SECRET not in str(reply)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("kind", ["process", "mcpserver modern", "lowlevel legacy"])
async def test_guarded_undeclared_optional_and_instances(kind: str) -> None:
    shop = MyShop()
    async with connected(kind, shop) as client:
        channel = link_of(client).channel
        with pytest.raises(Guarded):
            await client.demolish()
        with pytest.raises(Guarded):
            await client.using(authorized=["shop@1/shop.buy"]).demolish()
        assert shop.done("demolish") == 0
        await client.using(authorized=["shop@1/shop.demolish"]).demolish()
        assert shop.done("demolish") == 1
        item = (await client.items()).items[0]
        with pytest.raises(Unsupported, match="What was bought stays bought") as caught:
            await client.refund(item)
        assert caught.value.details["part"] == "shop.refund"
        with pytest.raises(Unsupported, match="Nothing is wrapped"):
            await client.wrap(item)
        for wrong in ("shop-2", "", 5, ["shop-1"]):
            reply = await channel.call("shop.items", {}, meta={INSTANCE_META: wrong})
            assert (reply.content or {})["code"] == "invalid_argument"
        assert len((await client.using(instance="shop-1").items()).items) == 2
        described = await client.describe()
        assert described["instance"] == "shop-1"
        assert {one["part"]: one["without"] for one in described["missing"]} == {
            "shop.refund": "What was bought stays bought.",
            "shop.wrap": "Nothing is wrapped.",
        }


@pytest.mark.parametrize("kind", ["mcpserver modern", "lowlevel modern"])
async def test_a_missing_part_that_is_called_all_the_same_is_unsupported(kind: str) -> None:
    from mcp import Client

    async with memory() as store, Client(served(kind, MyShop(), store), mode="auto") as client:
        for part in ("shop.refund", "shop.wrap", "connection.open"):
            result = await client.call_tool(part, {})
            assert result.is_error
            assert (result.structured_content or {})["code"] == "unsupported", part


async def test_a_part_that_is_not_declared_and_an_event_are_undeclared() -> None:
    async with memory() as store:
        runtime = Runtime(MyShop(), store=store, identity="x")
        for name in ("shop.fly", "shop.sold", ""):
            answer = await runtime.call(name, {})
            assert answer.content["code"] == "undeclared"


@pytest.mark.parametrize("kind", ["process", "fastmcp", "lowlevel legacy"])
@pytest.mark.parametrize(
    ("part", "arguments", "path"),
    [
        ("shop.buy", {"count": 1, "giftWrap": True}, "giftWrap"),
        ("shop.set", {"changes": {"bow": "red"}}, "changes.bow"),
        ("shop.set", {"changes": '{"bow": "red"}'}, "changes.bow"),
    ],
)
async def test_an_argument_of_a_facet_that_is_not_offered_is_refused_however_it_comes(
    kind: str, part: str, arguments: dict[str, Any], path: str
) -> None:
    shop = MyShop()
    async with connected(kind, shop) as client:
        if part == "shop.buy":
            arguments = {"item": (await client.items()).items[0], **arguments}
        shop.log.clear()
        reply = await link_of(client).channel.call(part, arguments, meta={})
        assert (reply.content or {})["code"] == "unsupported"
        assert (reply.content or {})["details"]["argument"] == path
        assert shop.log == []


@pytest.mark.parametrize("kind", ["process", "mcpserver legacy", "fastmcp", "http modern"])
async def test_fr21_json_text_is_read_where_only_a_structure_can_stand_and_noted(kind: str) -> None:
    shop = MyShop()
    async with connected(kind, shop) as client:
        channel = link_of(client).channel
        item = (await client.items()).items[0]
        reply = await channel.call(
            "shop.buy",
            {"item": item, "count": 1, "tags": '["a","b"]', "lines": '[{"text": "x", "size": null}]', "anything": "{}"},
            meta={},
        )
        assert not reply.is_error, reply
        _, seen = shop.log[-1]
        assert seen["tags"] == ["a", "b"]
        assert [line.text for line in seen["lines"]] == ["x"]
        assert seen["anything"] == "{}"
        assert sorted(reply.meta[NOTES_META]) == [
            "lines arrived as JSON text and was read as what it holds",
            "tags arrived as JSON text and was read as what it holds",
        ]
        for text in ("[1", '"a"', "{}", "[1]", "[NaN]", "[" * 100_000):
            reply = await channel.call("shop.buy", {"item": item, "count": 1, "tags": text}, meta={})
            assert (reply.content or {})["code"] == "invalid_argument"
            assert "tags" in (reply.content or {})["message"]


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), "\ud83d", 10**5000, b"\xff", object(), {"a": {2: object()}}],
    ids=["nan", "inf", "half", "huge", "bytes", "object", "inside"],
)
async def test_what_json_does_not_have_is_an_invalid_argument(value: Any) -> None:
    async with memory() as store:
        shop = MyShop()
        runtime = Runtime(shop, store=store, identity="x")
        deep: Any = "x"
        for _ in range(100_000):
            deep = [deep]
        for junk in (value, [value], {"a": value}, deep):
            for name in ("item", "count", "card", "lines", "tags", "anything"):
                seal = runtime.seal("local").seal("shop.item", "apple")
                answer = await runtime.call("shop.buy", {"item": seal, "count": 1, name: junk})
                assert answer.content.get("code") == "invalid_argument", (name, answer)
        assert (await runtime.call("shop.buy", ["no", "object"])).content["code"] == "invalid_argument"
        assert shop.log == []


async def test_extensions_take_their_arguments_and_are_refused_where_there_are_none() -> None:
    shop = PointsShop()
    async with connect(Shop, shop, store=memory()) as client:
        link = link_of(client)
        tools = {tool["name"]: tool for tool in await link.channel.tools()}
        listed = tools["shop.buy"]["inputSchema"]
        fits = jsonschema.Draft202012Validator(listed)
        item = (await client.items()).items[0]
        fits.validate({"item": item, "count": 1, "ext": {"com.example.points": {"line": {"text": "x"}}}})
        assert not fits.is_valid({"item": item, "count": 1, "ext": {"com.example.points": {"line": {"text": 1}}}})
        assert not fits.is_valid({"item": item, "count": 1, "ext": {"com.example.other": {}}})
        await client.using(ext={"com.example.points": {"number": 7}}).buy(item, 1)
        assert dict(shop.log)["extra"].number == 7
        shop.log.clear()
        for ext, error in (
            ({"com.example.other": {}}, Unsupported),
            ({"com.example.points": {"number": "7"}}, InvalidArgument),
            ({"com.example.points": {"nummer": 7}}, InvalidArgument),
        ):
            with pytest.raises(error):
                await client.using(ext=ext).buy(item, 1)
        with pytest.raises(InvalidArgument) as caught:
            await client.using(ext={"com.example.points": {"pin": [SECRET]}}).buy(item, 1)
        assert SECRET not in str(caught.value) + str(caught.value.details)
        assert shop.log == []
        assert (await Points.on(client).spend(3)).receipt.dispatched
        keyed = client.using(key="k1")
        await keyed.using(ext={"com.example.points": {"number": 1}}).buy(item, 1)
        with pytest.raises(ConnectionFailed) as conflict:
            await keyed.using(ext={"com.example.points": {"number": 2}}).buy(item, 1)
        assert conflict.value.code == "conflict"
    plain = MyShop()
    async with connect(Shop, plain, store=memory()) as client:
        item = (await client.items()).items[0]
        with pytest.raises(ConnectionFailed):
            await client.using(ext={"com.example.points": {"number": 7}}).buy(item, 1)
        with pytest.raises(Unsupported, match=r"com\.example\.points"):
            Points.on(client)
        assert plain.done("buy") == 0


async def test_receipts_are_kept_and_events_of_an_action_carry_its_id() -> None:
    async with memory() as store, connect(Shop, MyShop(), store=store) as client:
        item = (await client.items()).items[0]
        for bought in (await client.buy(item, 2), await client.using(key="k").buy(item, 3)):
            kept = await store.receipt(bought.receipt.action_id)
            assert kept is not None
            assert (kept.operation, kept.principal, kept.at) == ("shop.buy", "local", bought.receipt.at)
        rung = await client.ring()
        assert await store.receipt(rung.receipt.action_id) is not None
        page = await link_of(client).channel.call("connection.events", {"types": ["shop.sold"]}, meta={})
        events = (page.content or {})["events"]
        assert len({event["actionId"] for event in events}) == 2
        assert events[0]["payload"]["item"] == item
        assert events[0]["summary"] == f"shop.item {item} removed"


@pytest.mark.parametrize("answer", [{"item": "apple"}, {"item": 5, "total": 1}, {"total": 1}, 7, "x"])
async def test_an_answer_that_the_profile_does_not_allow_is_internal_and_its_state_unknown(answer: Any) -> None:
    shop = MyShop()
    shop.answer = answer
    async with connect(Shop, shop, store=memory()) as client:
        item = (await client.items()).items[0]
        with pytest.raises(Internal) as caught:
            await client.buy(item, 1)
        assert caught.value.details["state"] == "unknown"


async def test_a_time_limit_passes_with_an_unknown_state() -> None:
    shop = MyShop()
    async with memory() as store:
        answer = await Runtime(shop, store=store, identity="x").call("shop.slow", {})
        assert answer.content["code"] == "timeout"
        assert answer.content["details"] == {"state": "unknown"}
        assert shop.done("slow") == 1


async def test_a_server_that_cannot_be_opened_is_unavailable_without_the_text_of_its_exception() -> None:
    class Broken(MyShop):
        async def aopen(self) -> None:
            raise RuntimeError(SECRET)

    for mode in ("auto", "legacy"):
        async with memory() as store:
            server = mcpserver()
            attach(server, Broken(), store=store)
            async with McpSession(server, era=mode) as session:
                result = await raw(session, "shop.items")
                assert result["structuredContent"]["code"] == "unavailable"
                assert SECRET not in json.dumps(result)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_run_serves_a_child_process_whose_records_outlive_it(tmp_path: Path, mode: Any) -> None:
    command = stdio(tmp_path / "store.db")
    async with connect(Shop, command, era=mode) as client:
        item = (await client.items()).items[1]
        first = await client.using(key="k").buy(item, 2)
        with pytest.raises(Internal) as caught:
            await client.items("boom")
        assert SECRET not in str(caught.value)
        assert (await client.describe())["surface"] == "the shop"
    async with connect(Shop, command, era=mode) as client:
        assert await client.using(key="k").buy(item, 2) == first


async def test_run_serves_streamable_http_to_both_eras(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*stdio(tmp_path / "store.db"), "http", str(port)]
    async with await anyio.open_process(command, stderr=None) as process:
        try:
            with anyio.fail_after(60):
                while True:
                    try:
                        await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                        break
                    except OSError:
                        await anyio.sleep(0.05)
            for mode in ("auto", "legacy"):
                async with connect(Shop, f"http://127.0.0.1:{port}/mcp", era=mode) as client:
                    item = (await client.items()).items[0]
                    assert (await client.using(key="k").buy(item, 1)).total == 1
        finally:
            process.terminate()


async def test_over_http_each_principal_has_refs_and_keys_of_its_own() -> None:
    def who(context: Any) -> str:
        return str(context.request.headers.get("x-who"))

    shop = MyShop()
    async with memory() as store:
        server = mcpserver()
        attach(server, shop, store=store, principal=who)
        async with listening(server.streamable_http_app()) as url:
            for mode in ("auto", "legacy"):

                def as_(name: str, mode: Any = mode) -> Any:
                    return connect(Shop, {"url": f"{url}/mcp", "headers": {"x-who": name}}, era=mode)

                async with as_("ann") as ann, as_("bob") as bob:
                    item = (await ann.items()).items[0]
                    with pytest.raises(NotFound):
                        await bob.buy(item, 1)
                    hers = await ann.using(key=mode).buy(item, 1)
                    his = await bob.using(key=mode).buy((await bob.items()).items[0], 2)
                    assert hers.receipt != his.receipt
    assert shop.done("buy") == 4


async def test_two_http_clients_of_both_eras_share_one_server_that_outlives_them() -> None:
    from hotplug.serve import build

    class Closing(MyShop):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    shop = Closing()
    async with memory() as store:
        server, _ = build(shop, store=store)
        async with listening(server.streamable_http_app()) as url:
            for mode in ("auto", "legacy", "auto"):
                async with connect(Shop, f"{url}/mcp", era=mode) as client:
                    assert len((await client.items()).items) == 2
            assert shop.closed == 0
            async with (
                connect(Shop, f"{url}/mcp") as one,
                connect(Shop, f"{url}/mcp", era="legacy") as two,
                anyio.create_task_group() as tasks,
            ):
                for client in (one, two):
                    tasks.start_soon(client.items)
        assert shop.closed == 1


async def test_ids_of_eighteen_digits_stay_text() -> None:
    shop = MyShop()
    async with connect(Shop, shop, store=memory()) as client:
        item = (await client.items()).items[1]
        await client.buy(item, 1)
        assert shop.log[-1][1]["item"] == "810234567890123457"
        assert isinstance(item, Item)
