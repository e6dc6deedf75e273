"""Records of calls: written behind them, bounded, without a value in them unless the owner wants some."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hotplug.errors import ConfigError, StoreError
from hotplug.gateway.config import RecordsConfig
from hotplug.gateway.message import dumps
from hotplug.gateway.records import CallRecord, Records, argument_digest
from hotplug.store import SqliteStore, open_store
from hotplug.store.calls import CallQuery, SqliteCalls, StoredCall, calls_of

pytestmark = pytest.mark.anyio
MARK = "planted-value-5150"
ON = RecordsConfig(arguments=True)


def call(**given: Any) -> CallRecord:
    return CallRecord(**{"kind": "tools/call", "outcome": "ok", "duration_ms": 1.5, "thread": "t_a", **given})


def records(store: SqliteStore, config: RecordsConfig | None = None, **given: Any) -> Records:
    return Records(SqliteCalls(store), config or RecordsConfig(), sealing_key=store.sealing_key(), **given)


async def stored(store: SqliteStore, **query: Any) -> tuple[StoredCall, ...]:
    return await SqliteCalls(store).calls(CallQuery(**query))


async def kept(store: SqliteStore, arguments: Any, result: Any = None, **given: Any) -> tuple[Any, Any]:
    """What is kept of one call where keeping is on."""
    schemas = {name: dumps(value) for name, value in given.items() if name.endswith("_schema")}
    more = {name: value for name, value in given.items() if name not in schemas}
    async with records(store, ON, **more) as noting:
        noting.add(call(), arguments=dumps(arguments), result=None if result is None else dumps(result), **schemas)
    last = (await stored(store))[-1]
    assert last.arguments is not None
    return json.loads(last.arguments), None if last.result is None else json.loads(last.result)


async def test_everything_about_a_call_is_kept_but_its_values(store: SqliteStore) -> None:
    whole = {
        "kind": "tools/call",
        "outcome": "-32602",
        "thread": "t_a",
        "server": "work",
        "member": "calendar@1/calendar.create",
        "projection": "caldav-mcp",
        "action_id": "a_1",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "duration_ms": 12.5,
        "bytes_in": 100,
        "bytes_out": 2000,
        "at": 1_780_000_000.0,
    }
    async with records(store) as noting:
        noting.add(CallRecord(**whole), arguments=b'{"a":1}', result=b'{"b":2}')
    (one,) = await stored(store, since=0)
    assert {name: getattr(one, name) for name in whole} == whole
    assert (one.arguments, one.result, one.dropped) == (None, None, 0)
    assert one.digest == argument_digest(noting._key, b'{ "a": 1.0 }')


async def test_a_digest_is_of_the_content_and_keyed_by_the_store(tmp_path: Any) -> None:
    async with open_store(f"sqlite:///{tmp_path}/a.db") as one, open_store(f"sqlite:///{tmp_path}/b.db") as two:
        keys = [records(store)._key for store in (one, two)]
    assert keys[0] != one.sealing_key()
    same = [b'{"b":"\\u00e9","a":[1,2]}', '{ "a": [1.0, 2], "b": "é" }'.encode()]
    assert len({argument_digest(keys[0], raw) for raw in same}) == 1
    others = [b'{"b":"e","a":[1,2]}', b'{"a":[2,1],"b":"\\u00e9"}', b"{}", b"[]", b'{"a":1e400}', b'{"a":"\\ud800"}']
    assert len({argument_digest(keys[0], raw) for raw in [same[0], *others]}) == 7
    assert argument_digest(keys[0], same[0]) != argument_digest(keys[1], same[0])
    assert argument_digest(keys[0], b"no json") is None
    assert argument_digest(keys[0], b'{"a":"' + b"x" * 300_000 + b'"}') is not None


async def test_with_arguments_off_no_value_of_a_call_is_anywhere_in_the_files(
    store: SqliteStore, everything_written: Callable[[], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    values = dumps({"title": MARK, MARK: [MARK], "password": MARK})
    async with records(store) as noting:
        noting.add(call(), arguments=values, result=values, input_schema=values, output_schema=values)
        noting.add(call(outcome=MARK, kind="vendor/thing"), arguments=b"{" + MARK.encode())
        noting.add(call(kind=f"no method {MARK}", member=f"{MARK}\n", trace_id=MARK, action_id="\x00" + MARK))
        noting.add(call(outcome=f"error: {MARK}", server=MARK + "x" * 300))
    found = await stored(store)
    assert [one.outcome for one in found] == ["ok", "other", "ok", "other"]
    assert [one.kind for one in found] == ["tools/call", "vendor/thing", "other", "tools/call"]
    assert (found[2].member, found[2].trace_id, found[2].action_id, found[3].server) == (None, None, None, None)
    written = everything_written()
    assert b"vendor/thing" in written
    assert MARK.encode() not in written
    assert MARK not in caplog.text + repr(found) + repr(call())


async def test_with_arguments_on_sensitive_and_credential_like_fields_are_masked_at_any_depth(
    store: SqliteStore, everything_written: Callable[[], bytes]
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "diagnosis": {"type": "string", "x-sensitive": True},
            "patients": {"type": "array", "items": {"$ref": "#/$defs/Patient"}},
            "codes": {"anyOf": [{"type": "array", "items": {"type": "string", "x-sensitive": True}}, {"type": "null"}]},
        },
        "$defs": {
            "Patient": {"properties": {"name": {"type": "string"}, "born": {"$ref": "#/$defs/Secret"}}},
            "Secret": {"x-sensitive": True},
        },
    }
    arguments = {
        "title": "checkup",
        "diagnosis": MARK,
        "patients": [{"name": "Ada", "born": MARK}, {"born": {"year": MARK}}],
        "codes": [MARK],
        "apiKey": MARK,
        "nested": [{"access_token": MARK, "X-Session": [MARK]}],
        "body": json.dumps({"password": MARK, "kept": "yes"}),
        "header": f"Authorization: Bearer {MARK}",
        "where": f"https://user:{MARK}@example.org/a?token={MARK}&page=2",
        "again": f"as said, {MARK}.",
    }
    result = {
        "content": [
            {"type": "text", "text": f"diagnosis: {MARK}"},
            {"type": "text", "text": json.dumps({"born": MARK, "count": 3})},
        ],
        "structuredContent": {"pin": MARK, "echo": f"<{MARK}>", "total": 3},
    }
    seen, answer = await kept(store, arguments, result, input_schema=schema, output_schema={"type": "object"})
    assert seen["title"] == "checkup"
    assert seen["patients"] == [{"name": "Ada", "born": "[redacted]"}, {"born": "[redacted]"}]
    assert (seen["diagnosis"], seen["codes"], seen["apiKey"]) == ("[redacted]",) * 3
    assert seen["nested"] == [{"access_token": "[redacted]", "X-Session": "[redacted]"}]
    assert json.loads(seen["body"]) == {"password": "[redacted]", "kept": "yes"}
    assert seen["where"].endswith("page=2")
    assert answer["structuredContent"]["total"] == 3
    assert json.loads(answer["content"][1]["text"]) == {"born": "[redacted]", "count": 3}
    assert MARK.encode() not in everything_written()


@pytest.mark.parametrize(
    "schema",
    [
        {"x-sensitive": True},
        {"type": "object", "additionalProperties": {"x-sensitive": True}},
        {"allOf": [{"patternProperties": {".*": {"x-sensitive": True}}}]},
    ],
)
async def test_a_schema_that_marks_members_without_a_name_hides_them_all(store: SqliteStore, schema: Any) -> None:
    seen, answer = await kept(store, {"a": MARK, "b": {"c": 5150}}, {"text": f"{MARK}!"}, input_schema=schema)
    assert seen == answer == "[redacted]"


@pytest.mark.parametrize("schema", [b"no json", b"[" * 100_000])
async def test_a_schema_that_can_not_be_read_hides_everything(store: SqliteStore, schema: bytes) -> None:
    async with records(store, ON) as noting:
        noting.add(call(), arguments=dumps({"a": MARK}), input_schema=schema)
    assert (await stored(store))[0].arguments == '"[redacted]"'


@pytest.mark.parametrize(
    "schema", [True, [], {"properties": []}, {"properties": {"a": True}}, {"$ref": "#"}, {"$ref": "#/x/y"}]
)
async def test_a_schema_of_any_shape_is_no_obstacle(store: SqliteStore, schema: Any) -> None:
    seen, _ = await kept(store, {"a": "b"}, input_schema=schema)
    assert seen == {"a": "b"}


async def test_known_secrets_and_our_tokens_are_masked_wherever_they_stand(store: SqliteStore) -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "[secret]")

    token = "hpt_" + "A" * 43
    seen, answer = await kept(store, {"note": f"hunter2 and {token}", "hunter2": 1}, {"a": ["hunter2", 5]}, mask=mask)
    assert seen == {"note": "[secret] and [redacted]", "[secret]": 1}
    assert answer == {"a": ["[secret]", 5]}


async def test_what_is_long_is_cut_and_what_is_large_is_left_out(store: SqliteStore) -> None:
    seen, answer = await kept(store, {"text": "x" * 5000}, {"a": ["y" * 1000] * 300})
    assert seen == {"text": "x" * 2000 + "… (5000 characters)"}
    assert list(answer) == ["omitted"]
    seen, _ = await kept(store, {"a": [{"b": ["y" * 1000]}] * 100})
    assert list(seen) == ["omitted"]
    seen, _ = await kept(store, {"passwords": [f"{MARK}{n}" for n in range(300)]})
    assert list(seen) == ["omitted"]


async def test_a_masker_that_fails_costs_the_values_and_not_the_record(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(text: str) -> str:
        raise RuntimeError(text)

    async with records(store, ON, mask=broken) as noting:
        noting.add(call(), arguments=dumps({"a": MARK}))
    (one,) = await stored(store)
    assert one.digest is not None
    assert one.arguments is None
    assert "RuntimeError" in caplog.text
    assert MARK not in caplog.text


async def test_nothing_is_kept_where_the_owner_wants_none_and_what_was_goes(store: SqliteStore) -> None:
    async with records(store) as noting:
        noting.add(call())
    assert len(await stored(store)) == 1
    async with records(store, RecordsConfig(days=0)) as noting:
        noting.add(call())
        await noting.purge()
    assert await stored(store) == ()


async def test_what_is_past_its_days_is_dropped_when_the_gateway_starts(store: SqliteStore) -> None:
    now = 1_780_000_000.0
    async with records(store, clock=lambda: now) as noting:
        for days in (31, 30.5, 29, 0):
            noting.add(call(at=now - days * 86_400))
        for _ in range(1200):
            noting.add(call(at=now - 40 * 86_400))
    assert len(await stored(store, limit=5000)) == 1204
    async with records(store, clock=lambda: now) as noting, asyncio.timeout(30):
        while len(await stored(store, limit=5000)) > 2:
            await asyncio.sleep(0.01)
    assert [round((now - one.at) / 86_400) for one in await stored(store)] == [29, 0]
    async with records(store, RecordsConfig(days=7), clock=lambda: now) as noting:
        assert await noting.purge() <= 1
    assert [one.at for one in await stored(store)] == [now]


async def test_what_was_dropped_is_gone_from_the_files_too(url: str, everything_written: Callable[[], bytes]) -> None:
    async with open_store(url) as store, records(store, ON) as noting:
        for _ in range(50):
            noting.add(call(at=1000.0), arguments=dumps({"note": MARK + "x" * 1500}))
        noting.add(call(), arguments=dumps({"note": "stays"}))
        await noting.flush()
        assert MARK.encode() in everything_written()
        await noting.purge()
        assert len(await stored(store)) == 1
    written = everything_written()
    assert b"stays" in written
    assert MARK.encode() not in written


async def test_another_configuration_holds_from_the_next_call_on(store: SqliteStore) -> None:
    async with records(store, ON) as noting:
        noting.add(call(), arguments=b'{"a":1}')
        await noting.flush()
        noting.configure(RecordsConfig())
        noting.add(call(), arguments=b'{"a":1}')
        noting.configure(ON)
        noting.add(call(), arguments=b'{"a":2}')
        noting.configure(RecordsConfig(days=0, arguments=True))
        noting.add(call())
    assert [one.arguments for one in await stored(store)] == ['{"a": 1}', None, '{"a": 2}']


async def test_calls_have_the_loop_while_much_is_dropped(store: SqliteStore) -> None:
    with store.transaction() as c:
        c.executemany(
            "INSERT INTO store_call (at, kind, outcome, dropped) VALUES (?, 'tools/call', 'ok', 0)", [(1.0,)] * 3000
        )
    noting = records(store)
    purging = asyncio.ensure_future(noting.purge())
    turns = 0
    while not purging.done():
        await asyncio.sleep(0)
        turns += 1
    assert await purging == 3000
    assert turns > 20


async def test_more_than_the_queue_holds_is_counted_and_the_count_is_on_record(store: SqliteStore) -> None:
    async with records(store, queued=10) as noting:
        for _ in range(25):
            noting.add(call())
        assert noting.dropped == 15
        await noting.flush()
        assert noting.dropped == 0
        noting.add(call())
    found = await stored(store)
    assert [one.dropped for one in found if one.kind == "dropped"] == [15]
    assert len(found) == 12


async def test_more_values_than_may_wait_are_left_out_and_their_calls_kept(store: SqliteStore) -> None:
    big = dumps({"a": "x" * 5_000_000})
    async with records(store) as noting:
        for _ in range(5):
            noting.add(call(), arguments=big)
    digests = [one.digest for one in await stored(store)]
    assert len(digests) == 5
    assert digests.count(None) == 2


class Failing(SqliteCalls):
    """A store that says no so many times."""

    def __init__(self, store: SqliteStore, times: int) -> None:
        super().__init__(store)
        self.times = times

    async def add_calls(self, calls: Sequence[StoredCall]) -> None:
        if self.times:
            self.times -= 1
            raise StoreError("the disk is full") if self.times % 2 else sqlite3.OperationalError(MARK)
        await super().add_calls(calls)


@pytest.mark.parametrize(("times", "kept_calls", "dropped"), [(2, 3, 0), (3, 0, 3), (7, 0, 3)])
async def test_a_store_that_fails_costs_no_call_and_is_tried_again(
    store: SqliteStore, caplog: pytest.LogCaptureFixture, times: int, kept_calls: int, dropped: int
) -> None:
    failing = Failing(store, times)
    async with Records(failing, RecordsConfig(), sealing_key=store.sealing_key(), every=0.001) as noting:
        for _ in range(3):
            noting.add(call())
        async with asyncio.timeout(30):
            while not await stored(store):
                await asyncio.sleep(0.005)
    found = await stored(store)
    assert len([one for one in found if one.kind == "tools/call"]) == kept_calls
    assert sum(one.dropped for one in found) == dropped
    assert caplog.text.count("can't be recorded") == 1
    assert MARK not in caplog.text


async def test_nothing_that_is_noted_raises_or_waits(store: SqliteStore) -> None:
    noting = records(store)
    noting.add(call(), arguments=5)  # pyright: ignore[reportArgumentType]
    assert noting.dropped == 1
    async with noting:
        pass
    noting.add(call())
    assert noting.dropped == 0
    assert [one.kind for one in await stored(store)] == ["dropped"]


async def test_calls_are_found_by_thread_server_outcome_and_time(store: SqliteStore) -> None:
    async with records(store) as noting:
        for number in range(20):
            noting.add(
                call(
                    thread="t_even" if number % 2 == 0 else "t_odd",
                    server="mail" if number < 10 else None,
                    outcome=("ok", "not_found", "-32601")[number % 3],
                    at=1000.0 + number,
                )
            )
    ats = [one.at - 1000 for one in await stored(store, thread="t_even", server="mail", outcome="failed", since=1003)]
    assert ats == [4, 8]
    assert [one.at for one in await stored(store, limit=2)] == [1018.0, 1019.0]
    first = await stored(store, after=0, limit=2)
    assert [one.at for one in first] == [1000.0, 1001.0]
    assert [one.at for one in await stored(store, after=first[-1].id, limit=1)] == [1002.0]
    assert len(await stored(store, outcome="-32601")) == 6
    assert await stored(store, thread="' OR 1=1 --") == ()


async def test_two_processes_may_write_into_one_store(url: str, store: SqliteStore) -> None:
    async with open_store(url) as other, records(store) as one, records(other) as two:
        for _ in range(150):
            one.add(call(thread="t_one"))
            two.add(call(thread="t_two"))
    for thread in ("t_one", "t_two"):
        assert len(await stored(store, thread=thread, limit=500)) == 150


def test_a_store_of_another_kind_keeps_no_records() -> None:
    with pytest.raises(ConfigError, match="keeps no records"):
        calls_of(object())  # pyright: ignore[reportArgumentType]
