from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotplug.connect.launch import StdioLaunch
from hotplug.gateway.link import Era, LinkLost, Outgoing
from hotplug.gateway.links.refusal import EraRefused
from hotplug.gateway.links.stdio import StdioLink, open_stdio
from hotplug.gateway.message import Message, split

from .talking import LEGACY, all_of, ask, call, request, text_of, until

pytestmark = pytest.mark.anyio

Child = Callable[..., StdioLaunch]
ERAS: tuple[Era, ...] = ("legacy", "modern")


@asynccontextmanager
async def linked(launch: StdioLaunch, era: Era, **options: Any) -> AsyncGenerator[StdioLink]:
    """An open link; what it started and made has ended after the block."""
    before = asyncio.all_tasks()
    link = await open_stdio(launch, era, initialize=split(LEGACY) if era == "legacy" else None, **options)
    try:
        yield link
    finally:
        await link.aclose()
        assert not alive(link.pid)
        assert asyncio.all_tasks() <= before


def alive(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_of_the_sdk_says_who_it_is_and_answers(child: Child, era: Era) -> None:
    async with linked(child("real"), era) as link:
        assert link.hello.protocol == {"legacy": "2025-11-25", "modern": "2026-07-28"}[era]
        assert json.loads(bytes(link.hello.result["instructions"])) == "Be exact."
        assert "add" in {tool["name"] for tool in (await ask(link, request(era, "tools/list")))["tools"]}
        assert text_of(await ask(link, call(era, "add", {"a": 1, "b": 2}))) == "3"


@pytest.mark.parametrize("era", ERAS)
async def test_three_thousand_progress_notes_reach_a_slow_reader_before_the_result(child: Child, era: Era) -> None:
    async with (
        linked(child("real"), era) as link,
        link.exchange(call(era, "burst", {"count": 3000}, id=7, token="mine")) as answer,
    ):
        assert answer.frames is not None
        progress: list[float] = []
        async for frame in answer.frames:
            assert frame.message is not None
            if frame.message.method == "notifications/progress":
                assert frame.message.value("progressToken") == "mine"
                progress.append(frame.message.value("progress"))
                if len(progress) % 100 == 0:
                    # Slower than the server by far.
                    await asyncio.sleep(0.02)
            else:
                assert frame.message.id == b"7"
                assert len(progress) == 3000
        assert progress == list(range(1, 3001))


@pytest.mark.parametrize("era", ERAS)
async def test_fr_28_equal_ids_and_tokens_of_fifty_scopes_never_meet(child: Child, era: Era) -> None:
    async with linked(child("real"), era) as link:

        async def one(number: int) -> None:
            mark = f"mark {number}"
            arguments = {"mark": mark, "delay": (number * 7 % 10) / 100}
            async with link.exchange(call(era, "who", arguments, id=1, token=1, scope=f"s{number}")) as answer:
                *notes, last = await all_of(answer)
            assert [note.value("message") for note in notes] == [mark, mark]
            assert {note.value("progressToken") for note in notes} == {1}
            assert last.id == b"1"
            assert text_of(json.loads(bytes(last.fields["result"]))) == mark

        async with asyncio.TaskGroup() as tasks:
            for number in range(50):
                tasks.create_task(one(number))
        assert link.in_flight == 0


@pytest.mark.parametrize("era", ERAS)
async def test_leaving_an_exchange_cancels_it_at_the_server(child: Child, era: Era, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with linked(child("real"), era) as link:
        asking = asyncio.create_task(ask(link, call(era, "slow", {"path": str(mark)})))
        await until(lambda: mark.exists() and mark.read_text() == "started")
        asking.cancel()
        await asyncio.wait([asking])
        await until(lambda: mark.read_text() == "cancelled")
        assert text_of(await ask(link, call(era, "add", {"a": 1, "b": 2}))) == "3"


async def test_a_cancellation_of_the_callers_names_its_own_id_and_is_sent_once(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link:
        asking = asyncio.create_task(ask(link, call("legacy", "silent", id="x", scope="a")))
        other = asyncio.create_task(ask(link, call("legacy", "silent", id="x", scope="b")))
        await until(lambda: link.in_flight == 2)
        cancelled = Message.notification("notifications/cancelled", {"requestId": "x", "reason": "enough"})
        await link.send(cancelled, scope="a")
        await link.send(cancelled, scope="nobody")
        asking.cancel()
        await asyncio.wait([asking])
        seen = (await ask(link, call("legacy", "seen")))["seen"]
        assert [note["method"] for note in seen] == ["notifications/initialized", "notifications/cancelled"]
        assert seen[1]["params"]["reason"] == "enough"
        assert seen[1]["params"]["requestId"] != "x"
        other.cancel()
        await asyncio.wait([other])


async def test_a_callers_initialized_is_swallowed_and_its_params_are_passed_on(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link:
        await link.send(Message.notification("notifications/initialized"), scope="s")
        seen = (await ask(link, call("legacy", "seen")))["seen"]
        assert [note["method"] for note in seen] == ["notifications/initialized"]
        assert json.loads(bytes(link.hello.result["got"])) == json.loads(LEGACY)


ODD = (
    '{"jsonrpc":"2.0","id":ID,"result":{"big":123456789012345678901234567890,"float":1.10,"exp":1E400,'
    '"escapes":"\\u00e9\\/\\ud83d\\ude00\\ud800 \\u2028","unknown":{"a":[null,{}],"a":2},"nested":{"_meta":{"x":0.0}}},'
    '"vendor":[1, 2]}'
)


@pytest.mark.parametrize("era", ERAS)
async def test_odd_values_and_unknown_fields_come_back_as_the_bytes_they_were(child: Child, era: Era) -> None:
    async with linked(child("odd"), era) as link, link.exchange(call(era, "odd", {"text": ODD}, id='"é')) as answer:
        assert answer.message is not None
        assert json.loads(answer.message.id or b"") == '"é'
        start = ODD.index('"result":') + len('"result":')
        assert bytes(answer.message.fields["result"]).decode() == ODD[start : ODD.index(',"vendor"')]
        assert bytes(answer.message.fields["vendor"]) == b"[1, 2]"


@pytest.mark.parametrize("era", ERAS)
async def test_what_goes_up_differs_in_id_and_token_alone(child: Child, era: Era) -> None:
    sent = (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"line","arguments":{"n":1e5,"big":'
        '99999999999999999999,"s":"\\u0041\\/"},"vendor":null,"_meta":{"x":1.50,'
        '"progressToken":9007199254740993}},"v":{ }}'
    )
    async with linked(child("odd"), era) as link:
        result = await ask(link, Outgoing(Message.parse(sent.encode()), scope="s"))
        got = json.loads(result["line"])
        own = got["id"]
        assert isinstance(own, str)
        assert result["line"].strip() == sent.replace('"id":1', f'"id":"{own}"').replace("9007199254740993", f'"{own}"')


async def test_a_crash_ends_what_is_pending_at_once_and_says_why(child: Child) -> None:
    async with linked(child("odd", secrets=("full",)), "legacy") as link:
        told: list[str] = []
        link.on_change(told.append)
        pending = [asyncio.create_task(ask(link, call("legacy", "silent", scope=str(n)))) for n in range(3)]
        await until(lambda: link.in_flight == 3)
        started = asyncio.get_running_loop().time()
        with pytest.raises(LinkLost) as lost:
            await ask(link, call("legacy", "crash"))
        assert lost.value.sent
        assert "it exited with code 7" in lost.value.reason
        assert "the disk is [secret]" in lost.value.reason
        for each in pending:
            with pytest.raises(LinkLost) as lost:
                await each
            assert lost.value.sent
        assert asyncio.get_running_loop().time() - started < 3
        assert told == ["lost"]
        assert link.lost is not None
        with pytest.raises(LinkLost) as lost:
            await ask(link, call("legacy", "line"))
        assert not lost.value.sent
        with pytest.raises(LinkLost):
            await link.send(Message.notification("notifications/x"))
        assert [frame async for frame in link.general()] == []


async def test_what_came_before_a_crash_is_still_read(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link, link.exchange(call("legacy", "deaf", token=1)) as answer:
        os.killpg(link.pid, 9)
        await until(lambda: link.lost is not None)
        assert answer.frames is not None
        frames = aiter(answer.frames)
        first = await anext(frames)
        assert first.message is not None
        assert first.message.method == "notifications/progress"
        with pytest.raises(LinkLost, match="SIGKILL"):
            await anext(frames)


async def test_a_child_that_closes_its_input_and_lives_on_is_lost(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link:
        waiting = asyncio.create_task(ask(link, call("legacy", "shut")))

        async def refused() -> bool:
            try:
                await link.send(Message.notification("notifications/x"))
            except LinkLost:
                return True
            return False

        async with asyncio.timeout(30):
            while not await refused():
                await asyncio.sleep(0.01)
            with pytest.raises(LinkLost, match="closed its standard input") as lost:
                await waiting
        assert lost.value.sent
        assert link.lost is not None


async def test_a_slow_reader_alone_slows_the_server_down_and_memory_is_bounded(child: Child) -> None:
    async with linked(child("odd"), "legacy", patience=0.2) as link:
        arguments = {"count": 400, "size": 64 * 1024}
        async with link.exchange(call("legacy", "flood", arguments, token=1)) as answer:
            assert answer.frames is not None
            frames = aiter(answer.frames)
            await anext(frames)
            (exchange,) = link._flying.values()
            sizes: list[int] = []
            for _ in range(50):
                await asyncio.sleep(0.01)
                sizes.append(exchange.flow.size)
            # 26 MB are to come; no more than the limit and one message wait here.
            assert max(sizes) < 4.2 * 1024 * 1024
            messages = [frame.message async for frame in frames if frame.message is not None]
            assert len(messages) == 400
            assert messages[-1].kind == "result"


async def test_a_slow_reader_holds_others_up_only_for_a_while_and_then_is_ended_alone(child: Child) -> None:
    async with linked(child("odd"), "legacy", patience=0.3) as link:
        async with link.exchange(call("legacy", "flood", {"count": 400, "size": 64 * 1024}, token=1)) as answer:
            async with asyncio.timeout(30):
                assert (await ask(link, call("legacy", "line", scope="other")))["line"]
            assert answer.frames is not None
            with pytest.raises(LinkLost, match="too slowly") as lost:
                await all_of(answer)
            assert lost.value.sent
        assert (await ask(link, call("legacy", "line")))["line"]


async def test_noise_is_skipped_and_a_flood_of_it_ends_the_link_naming_the_line(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link:
        assert await ask(link, call("legacy", "noise", {"count": 900})) == {}
        assert await ask(link, call("legacy", "noise", {"count": 900})) == {}
        with pytest.raises(LinkLost, match="what is no message: Welcome!"):
            await ask(link, call("legacy", "noise", {"count": 3000}))


@pytest.mark.parametrize(
    "text",
    ['{"jsonrpc":"2.0","id":ID,"result":{"x":NaN}}', '{"id":ID,"result":{}}', '{"id":ID,"jsonrpc":"2.0","result":'],
)
async def test_an_answer_that_cannot_be_read_ends_its_exchange_alone(child: Child, text: str) -> None:
    async with linked(child("odd"), "legacy") as link:
        with pytest.raises(LinkLost, match="no JSON-RPC") as lost:
            await ask(link, call("legacy", "odd", {"text": text}))
        assert lost.value.sent
        assert (await ask(link, call("legacy", "line")))["line"]


async def test_a_line_of_a_log_that_names_our_id_is_no_answer(child: Child) -> None:
    log = '{"level":"info","id":ID,"x":NaN}\n{"level":"info","id":ID}\n'
    async with linked(child("odd"), "legacy") as link:
        text = log + '{"jsonrpc":"2.0","id":ID,"result":{}}'
        assert await ask(link, call("legacy", "odd", {"text": text})) == {}


async def test_an_error_without_an_id_belongs_to_what_was_sent_last(child: Child) -> None:
    text = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    async with linked(child("odd"), "legacy") as link:
        assert (await ask(link, call("legacy", "odd", {"text": text})))["code"] == -32700


async def test_a_batch_is_read_as_its_messages(child: Child) -> None:
    text = (
        '[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":TOKEN,"progress":1}},'
        '{"jsonrpc":"2.0","id":ID,"result":{}}]'
    )
    async with (
        linked(child("odd"), "legacy") as link,
        link.exchange(call("legacy", "odd", {"text": text}, token="t")) as answer,
    ):
        note, result = await all_of(answer)
        assert note.value("progressToken") == "t"
        assert result.id == b"1"


async def test_a_servers_request_goes_to_the_only_exchange_and_its_answer_back(child: Child) -> None:
    async with (
        linked(child("odd"), "legacy") as link,
        link.exchange(call("legacy", "ask", {"id": 1, "method": "roots/list"})) as answer,
    ):
        assert answer.frames is not None
        asked = (await anext(aiter(answer.frames))).message
        assert asked is not None
        assert (asked.kind, asked.method, asked.id) == ("request", "roots/list", b"1")
        await link.send(Message.result_of(b"1", {"roots": []}), scope="s")
        (last,) = await all_of(answer)
        assert json.loads(bytes(last.fields["result"])) == {"said": {"roots": []}}


async def test_a_servers_request_among_several_goes_to_the_general_reader(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link:
        waiting = asyncio.create_task(ask(link, call("legacy", "silent", scope="other")))
        await until(lambda: link.in_flight == 1)
        asking = asyncio.create_task(ask(link, call("legacy", "ask", {"id": "r", "method": "sampling/createMessage"})))
        frame = await anext(aiter(link.general()))
        assert frame.message is not None
        assert frame.message.id == b'"r"'
        await link.send(Message.result_of(b'"r"', {"ok": True}))
        assert await asking == {"said": {"ok": True}}
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_a_ping_that_nobody_is_there_to_answer_is_answered_by_the_link(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link:
        assert await ask(link, call("legacy", "ask", {"id": 5, "method": "ping"}, scope="")) == {"said": {}}


async def test_general_requests_that_nobody_reads_are_refused_when_too_much_waits(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link:
        asking = asyncio.create_task(
            ask(link, call("legacy", "ask", {"id": 6, "method": "roots/list"}, scope="", id=1))
        )
        await until(lambda: link.in_flight == 1)
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 700_000}})
        for _ in range(2):
            # The note is no answer: the exchange is left after a moment.
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await ask(link, call("legacy", "odd", {"text": note}, scope=""))
        assert (await asking)["said"]["code"] == -32601


@pytest.mark.parametrize("method", ["notifications/tools/list_changed", "notifications/resources/updated"])
async def test_changes_are_told_and_go_to_the_general_reader(child: Child, method: str) -> None:
    async with linked(child("odd"), "legacy") as link:
        told: list[str] = []
        stop = link.on_change(told.append)
        assert await ask(link, call("legacy", "tell", {"method": method})) == {}
        assert told == ([method] if method.endswith("list_changed") else [])
        frame = await anext(aiter(link.general()))
        assert frame.message is not None
        assert frame.message.method == method
        stop()
        await ask(link, call("legacy", "tell", {"method": method}))
        assert len(told) < 2


async def test_log_messages_belong_to_the_only_exchange(child: Child) -> None:
    async with (
        linked(child("odd"), "legacy") as link,
        link.exchange(call("legacy", "tell", {"method": "notifications/message"})) as answer,
    ):
        note, _ = await all_of(answer)
        assert note.method == "notifications/message"


async def test_a_subscription_is_named_by_the_callers_id(child: Child) -> None:
    key = "io.modelcontextprotocol/subscriptionId"
    async with linked(child("odd"), "modern") as link:
        told: list[str] = []
        link.on_change(told.append)
        async with link.exchange(request("modern", "subscriptions/listen", {"end": True}, id=77)) as answer:
            acknowledged, changed, ended = await all_of(answer)
        for note in (acknowledged, changed):
            assert (bytes(note.meta[key]), bytes(note.meta["kept"])) == (b"77", b"1")
        assert ended.id == b"77"
        assert json.loads(bytes(ended.fields["result"])) == {"_meta": {key: 77, "kept": 1}}
        assert told == ["notifications/tools/list_changed"]


async def test_an_open_subscription_takes_no_log_messages(child: Child) -> None:
    async with linked(child("odd"), "modern") as link:
        async with link.exchange(request("modern", "subscriptions/listen", id="l")) as listening:
            async with link.exchange(call("modern", "tell", {"method": "notifications/message"})) as answer:
                assert len(await all_of(answer)) == 2
            assert listening.frames is not None
            frames = aiter(listening.frames)
            for _ in range(2):
                assert "progress" not in str((await anext(frames)).message)
        seen = (await ask(link, call("modern", "seen")))["seen"]
        assert [note["method"] for note in seen] == ["notifications/cancelled"]


async def test_the_progress_of_a_task_goes_on_after_its_answer(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link:
        assert "task" in await ask(link, call("legacy", "task", token="mine"))
        frame = await anext(aiter(link.general()))
        assert frame.message is not None
        assert frame.message.value("progressToken") == "mine"


async def test_there_is_nothing_to_resume_on_a_pipe(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link, link.resume("1") as answer:
        assert answer.status == 405


async def test_closing_ends_exchanges_at_once(child: Child) -> None:
    async with linked(child("odd"), "legacy") as link:
        waiting = asyncio.create_task(ask(link, call("legacy", "silent")))
        await until(lambda: link.in_flight == 1)
        await asyncio.gather(link.aclose(), link.aclose())
        with pytest.raises(LinkLost) as lost:
            await waiting
        assert lost.value.sent


# The handshake


async def test_a_missing_program_is_named(child: Child) -> None:
    with pytest.raises(LinkLost, match="can't be started: No such file"):
        await open_stdio(StdioLaunch(("/nowhere/at-all",), {}), "legacy")


async def test_a_child_that_dies_gives_its_code_and_last_lines_masked(child: Child) -> None:
    with pytest.raises(LinkLost) as lost:
        await open_stdio(child("odd", "die", secrets=("s3cr3t-value",)), "legacy")
    assert not lost.value.sent
    assert "before it answered, it exited with code 3" in lost.value.reason
    assert "CALENDAR_TOKEN isn't set (it was [secret])" in lost.value.reason
    assert "Welcome!" in lost.value.reason


async def test_a_child_that_hangs_is_given_up_and_ended(child: Child) -> None:
    before = asyncio.all_tasks()
    with pytest.raises(LinkLost, match=r"no answer to initialize in 0\.5 s"):
        await open_stdio(child("odd", "hang"), "legacy", limit=0.5)
    assert asyncio.all_tasks() == before


async def test_a_cancelled_start_leaves_nothing_behind(child: Child, tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    opening = asyncio.create_task(open_stdio(child("odd", "hang"), "legacy"))
    await until(lambda: len(asyncio.all_tasks()) > len(before) + 2)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert asyncio.all_tasks() == before


async def test_a_server_of_the_other_era_refuses_and_says_so(child: Child) -> None:
    with pytest.raises(EraRefused, match="answers server/discover with error -32601: nope") as refused:
        await open_stdio(child("odd", "legacy"), "modern")
    assert refused.value.answer is not None
    assert refused.value.answer.error_code == -32601
