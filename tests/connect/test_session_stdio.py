from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from hotplug.connect.negotiation import remembered_era
from hotplug.connect.secrets import ConfiguredSecrets
from hotplug.connect.serversfile import read_servers
from hotplug.connect.session import McpSession
from hotplug.errors import ConfigError, ConnectError, Disconnected, NotFound, PermissionDenied, Timeout

pytestmark = pytest.mark.anyio

Child = Callable[..., list[str]]


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie of somebody else's counts as ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def until(condition: Callable[[], bool], limit: float = 10) -> None:
    with anyio.fail_after(limit):
        while not condition():
            await anyio.sleep(0.01)


async def test_a_server_of_the_sdk_comes_up_in_the_new_era(child: Child) -> None:
    async with McpSession(child("real_server")) as session:
        assert (session.transport, session.era, session.protocol) == ("stdio", "modern", "2026-07-28")
        assert session.server_info["name"] == "real"
        assert session.instructions == "Be exact."
        result = await session.call("add", {"a": 1, "b": 2})
        assert result.structured == {"result": 3}
        assert not result.is_error


async def test_a_server_that_starts_slower_than_the_probe_limit_still_comes_up_in_its_own_era(child: Child) -> None:
    async with McpSession(child("real_server", "1"), probe_limit=0.2) as session:
        assert session.era == "modern"
        assert (await session.call("add", {"a": 1, "b": 2})).structured == {"result": 3}


async def test_progress_reaches_the_caller(child: Child) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with McpSession(child("real_server")) as session:
        assert (await session.call("steps", progress=note)).texts == ("done",)
        await until(lambda: len(seen) == 3)
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


# FR-23


async def test_fr_23_a_call_whose_server_died_is_done_once_its_outcome_is_unknown_and_later_calls_work(
    child: Child, tmp_path: Path
) -> None:
    book = tmp_path / "book"
    async with McpSession(child("drops_after_effect", str(book))) as session:
        await session.list_tools()
        with pytest.raises(Disconnected, match="exited with code 7") as lost:
            await session.call("pay")
        assert lost.value.details["state"] == "unknown"
        assert "paying failed late" in lost.value.details["log"]
        assert not session.connected
        with pytest.raises(Disconnected) as refused:
            await session.call("pay")
        assert refused.value.details["state"] == "not_sent"
        await session.reconnect()
        assert session.generation == 2
        assert (await session.call("look")).texts == ("fine",)
    assert book.read_text().splitlines() == ["pay", "look"]


async def test_fr_23_an_error_answered_by_the_tool_is_no_lost_connection(child: Child, tmp_path: Path) -> None:
    book = tmp_path / "book"
    async with McpSession(child("drops_after_effect", str(book))) as session:
        result = await session.call("refuse")
        assert result.is_error
        assert str(result.failed()) == "invalid parameter"
        assert session.connected
        assert session.generation == 1
    assert book.read_text().splitlines() == ["refuse"]


async def test_calls_under_way_all_learn_of_the_end(child: Child, tmp_path: Path) -> None:
    states: list[str] = []
    async with McpSession(child("drops_after_effect", str(tmp_path / "book"))) as session:

        async def pay() -> None:
            try:
                await session.call("pay")
            except Disconnected as lost:
                states.append(lost.details["state"])

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(pay)
    assert len(states) == 5
    assert "unknown" in states


# FR-24


async def test_fr_24_all_pages_are_read(child: Child) -> None:
    async with McpSession(child("many_tools")) as session:
        listed = await session.list_tools()
        assert listed.complete
        assert len(listed.tools) == 123
        assert await session.list_tools() is listed


async def test_fr_24_a_removed_tool_is_refused_by_us_after_the_notice(child: Child) -> None:
    async with McpSession(child("many_tools")) as session:
        await session.list_tools()
        await session.call("remove", {"name": "t7"})
        with pytest.raises(NotFound, match="t7"):
            await session.call("t7")
        assert len((await session.list_tools()).tools) == 122
        assert (await session.call("count")).texts == ("remove,count",)


async def test_fr_24_a_page_that_fails_makes_the_list_incomplete_and_that_is_said(child: Child) -> None:
    async with McpSession(child("many_tools", "broken")) as session:
        listed = await session.list_tools()
        assert not listed.complete
        assert len(listed.tools) == 80
        assert "page 3" in (listed.problem or "")
        assert "database is locked" in (listed.problem or "")
        assert (await session.call("t120")).texts == ("t120",)


# FR-26


@pytest.mark.parametrize("server", ["answers_minus_32601", "answers_minus_32602", "silent_probe"])
async def test_fr_26_an_answer_or_silence_that_is_no_sign_of_the_new_era_means_the_old_handshake(
    child: Child, server: str
) -> None:
    async with McpSession(child(server), probe_limit=0.3) as session:
        assert (session.era, session.protocol) == ("legacy", "2025-11-25")
        assert json.loads((await session.call("echo", {"a": None})).texts[0]) == {"a": None}


async def test_fr_26_a_server_that_exits_at_the_probe_gets_a_fresh_process_and_the_old_handshake(child: Child) -> None:
    async with McpSession(child("exits_on_unknown")) as session:
        assert session.era == "legacy"
        assert (await session.call("echo")).texts == ("{}",)


async def test_fr_26_the_finding_is_remembered_for_the_target(child: Child) -> None:
    command = child("silent_probe")
    async with McpSession(command, probe_limit=0.3):
        pass
    started = time.monotonic()
    async with McpSession(command, probe_limit=30) as session:
        assert session.era == "legacy"
    assert time.monotonic() - started < 15
    assert remembered_era(json.dumps(session.target.describe(), sort_keys=True)) == "legacy"


async def test_fr_26_an_era_that_is_given_is_tried_without_a_probe(child: Child) -> None:
    with anyio.fail_after(10):
        async with McpSession(child("silent_probe"), era="legacy", probe_limit=30) as session:
            assert session.era == "legacy"


@pytest.mark.parametrize("arguments", [(), ("new",)])
async def test_fr_26_a_server_that_speaks_only_unknown_revisions_gives_a_clear_error(
    child: Child, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(ConnectError, match="2031-01-01") as refusal:
        await McpSession(child("unknown_revision", *arguments)).start()
    assert refusal.value.protocol == "2031-01-01"
    assert refusal.value.transport == "stdio"


# FR-27


async def test_fr_27_noise_on_standard_output_is_skipped(child: Child) -> None:
    async with McpSession(child("noisy_server")) as session:
        assert (await session.call("echo", {"x": 1})).texts == ('{"x": 1}',)
        assert session.log()[0] == "stdout: Welcome to noise v1!"


async def test_fr_27_a_banner_and_nothing_else_fails_at_once_and_names_the_banner(child: Child) -> None:
    with anyio.fail_after(15), pytest.raises(ConnectError, match=r"Usage: only_banner \[options\]") as refusal:
        await McpSession(child("only_banner")).start()
    assert "exited with code 0" in str(refusal.value)


async def test_fr_27_noise_over_the_limit_ends_the_connection_with_the_line(child: Child) -> None:
    async with McpSession(child("floods_noise")) as session:
        with pytest.raises(Disconnected, match="debug 0"):
            await session.call("echo")


async def test_fr_27_a_declared_capability_that_is_missing_costs_only_itself(child: Child) -> None:
    with anyio.fail_after(10):
        async with McpSession(child("declares_resources")) as session:
            assert (await session.list_tools()).get("echo") is not None
            assert (await session.call("echo")).texts == ("{}",)


async def test_fr_27_an_odd_item_or_tool_costs_only_itself(child: Child) -> None:
    async with McpSession(child("odd_answers")) as session:
        listed = await session.list_tools()
        assert [tool.raw for tool in listed.tools] == [
            {"name": "good", "inputSchema": {"type": "object"}, "vendor": {"kept": None}}
        ]
        assert listed.unusable == {"bad": "has no inputSchema", "#2": "is int, not an object"}
        result = await session.call("good")
        assert result.texts == ("seen",)
        assert result.raw["vendor"] == 1
        assert result.content[0] == {"type": "hologram", "beams": 3}


# Failures to connect


async def test_a_server_that_dies_at_its_start_is_shown_with_its_last_lines_and_without_secrets(
    child: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTPLUG_SECRET_MAIL", "hunter22")
    path = tmp_path / "mcp.json"
    argv = child("dies_at_start")
    entry = {"command": argv[0], "args": argv[1:], "env": {"PASSWORD": "secret:mail", "SOME_TOKEN": "tok-98765"}}
    path.write_text(json.dumps({"mcpServers": {"mail": entry}}))
    secrets = ConfiguredSecrets.of_table({"mail": {"servers": ["mail"]}})
    session = McpSession(f"{path}#mail", secrets=secrets)
    with pytest.raises(ConnectError, match="exited with code 3") as refusal:
        await session.start()
    assert refusal.value.transport == "stdio"
    assert refusal.value.target == f"{path}#mail"
    assert refusal.value.log == ("Traceback", "ConfigError: bad password '[secret]', token [secret]")
    assert "hunter22" not in repr(vars(refusal.value))


async def test_a_secret_that_may_not_go_to_the_server_stops_the_start(child: Child, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    entry = {"command": child("real_server")[0], "env": {"PASSWORD": "secret:mail"}}
    path.write_text(json.dumps({"mcpServers": {"mail": entry}}))
    with pytest.raises(PermissionDenied):
        await McpSession("mail", files=(read_servers(path),)).start()


async def test_a_missing_program_says_so_and_starts_nothing() -> None:
    with pytest.raises(ConfigError, match="'no-such-program' is not on the path"):
        await McpSession("no-such-program --x").start()


async def test_a_server_that_never_answers_fails_at_the_limit_and_is_ended(child: Child) -> None:
    session = McpSession(child("never_answers"), probe_limit=0.1, start_timeout=0.5)
    with anyio.fail_after(10), pytest.raises(ConnectError, match=r"no answer to the handshake within 0\.5 s") as late:
        await session.start()
    assert late.value.protocol == "2025-11-25"


# Life and end


async def test_a_child_gets_its_entrys_variables_and_a_short_base_only(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter22")
    monkeypatch.setenv("UV_INDEX_STRATEGY", "first-index")
    argv = child("shows_environment")
    async with McpSession({"command": argv[0], "args": argv[1:], "env": {"MINE": "1"}}) as session:
        environment = json.loads((await session.call("echo")).texts[0])
    assert environment["MINE"] == "1"
    assert environment["PATH"] == os.environ["PATH"]
    assert environment["UV_INDEX_STRATEGY"] == "first-index"
    assert "AWS_SECRET_ACCESS_KEY" not in environment


async def test_the_whole_process_group_is_ended_with_the_session(child: Child) -> None:
    async with McpSession(child("leaves_a_child")) as session:
        pids = json.loads((await session.call("echo")).texts[0])
        assert all(map(alive, pids))
    await until(lambda: not any(map(alive, pids)))


async def test_any_task_may_call_and_close(child: Child) -> None:
    session = McpSession(child("real_server"))
    results: list[object] = []

    async def call(number: int) -> None:
        results.append((await session.call("add", {"a": number, "b": 0})).structured["result"])

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.start)
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(call, number)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.aclose)
            tasks.start_soon(session.aclose)
    assert sorted(map(str, results)) == sorted(map(str, range(20)))
    with pytest.raises(Disconnected, match="closed"):
        await session.call("add", {"a": 1, "b": 1})


async def test_a_start_that_is_cancelled_leaves_no_child(child: Child, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = f"import os, sys; open({str(mark)!r}, 'w').write(str(os.getpid())); sys.stdin.read()"
    session = McpSession([child("x")[0], "-c", script], probe_limit=60)
    with anyio.move_on_after(1.5):
        await session.start()
    await until(mark.exists)
    await until(lambda: not alive(int(mark.read_text())))
    await session.aclose()


async def test_closing_ends_a_start_that_is_under_way(child: Child) -> None:
    session = McpSession(child("never_answers"), probe_limit=60)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:

            async def start() -> None:
                with pytest.raises(ConnectError):
                    await session.start()

            tasks.start_soon(start)
            await anyio.sleep(0.3)
            await session.aclose()


async def test_who_waits_for_the_end_is_told_how_it_came(child: Child, tmp_path: Path) -> None:
    async with McpSession(child("drops_after_effect", str(tmp_path / "book"))) as session:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def pay() -> None:
                    with pytest.raises(Disconnected):
                        await session.call("pay")

                tasks.start_soon(pay)
                assert await session.ended() == "it exited with code 7"


async def test_a_call_over_its_limit_is_a_timeout_of_unknown_outcome_and_the_session_lives(child: Child) -> None:
    async with McpSession(child("answers_minus_32601")) as session:
        with pytest.raises(Timeout) as late:
            await session.call("echo", timeout=0)
        assert late.value.details["state"] == "unknown"
        assert session.connected
