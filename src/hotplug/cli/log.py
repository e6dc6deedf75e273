"""`hotplug log`: the records of calls that a gateway keeps."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hotplug.cli.command import command, group
from hotplug.cli.config_option import ConfigOption
from hotplug.cli.gateway_store import StoreUrl, open_existing, open_or_make
from hotplug.cli.output import Output
from hotplug.cli.printing import block, did_you_mean
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.store import SqliteStore
    from hotplug.store.calls import CallQuery, StoredCall

app = group("The gateway's records of calls.")

_AGO: Final = re.compile(r"(\d{1,6})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_BETWEEN_LOOKS: Final = 0.5
_ROW: Final = "hotplug.log.call/1"


@command(app, "log")
def log(
    out: Output,
    thread: Annotated[
        str | None, typer.Option("--thread", help="Only calls of this thread.", show_default=False)
    ] = None,
    server: Annotated[
        str | None, typer.Option("--server", help="Only calls to this server.", show_default=False)
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            "--outcome",
            help="Only those that ended so: ok, failed (all others), a code such as not_found or -32602, cancelled, "
            "lost.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Only calls from this moment on: 90s, 30m, 2h or 7d ago, or 2026-06-11T17:00:00Z.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", help="At most so many, the last ones.", min=0, max=100_000)
    ] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with each call as it comes.")] = False,
    store: StoreUrl = None,
    config: ConfigOption = None,
) -> None:
    """Show what was called: when, by which thread, of which server, how it ended, how long it took.

    Arguments and results are only there if the gateway's owner turned that on, and masked even then. With --follow
    both JSON forms write one document a line.
    """
    import anyio

    from hotplug.store.calls import CallQuery

    if outcome is not None:
        _check_outcome(outcome)
    query = CallQuery(
        thread=thread, server=server, outcome=outcome, since=None if since is None else _moment(since), limit=limit
    )
    if follow:
        anyio.run(_follow, out, open_or_make(out, store, config), query)
        return
    found = open_existing(out, store, config)
    calls = () if found is None else anyio.run(_read, found, query)
    rows = [_document(one) for one in calls]
    out.answer("hotplug.log/1", {"calls": rows}, lambda: _text(calls) or "no call is on record", rows=(_ROW, rows))


def _check_outcome(word: str) -> None:
    from hotplug.gateway.records import OUTCOMES

    known = ("failed", "other", *sorted(OUTCOMES))
    if word not in known and not re.fullmatch(r"-?\d{1,10}", word):
        raise ConfigError(
            f"--outcome {word!r} is no outcome", hint=did_you_mean(word, known) or f"there are {', '.join(known)}"
        )


def _moment(text: str) -> float:
    if ago := _AGO.fullmatch(text):
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ConfigError(
            f"--since {text!r} is no moment", hint="for example 30m, 2h, 7d, or 2026-06-11T17:00:00Z with its offset"
        )
    return at.timestamp()


async def _read(store: SqliteStore, query: CallQuery) -> tuple[StoredCall, ...]:
    from hotplug.store.calls import calls_of

    async with store:
        return await calls_of(store).calls(query)


async def _follow(out: Output, store: SqliteStore, query: CallQuery) -> None:
    from dataclasses import replace

    import anyio

    from hotplug.store.calls import CallQuery, calls_of

    async with store:
        calls = calls_of(store)
        # Where nothing fits the filter yet, what comes next is still after all that is there.
        last = await calls.calls(CallQuery(limit=1))
        after = last[-1].id if last else 0
        found = await calls.calls(query)
        while True:
            for one in found:
                after = max(after, one.id)
                out.event(_ROW, _document(one), _text([one]))
            found = await calls.calls(replace(query, after=after, limit=1000))
            if not found:
                await anyio.sleep(_BETWEEN_LOOKS)


def _document(call: StoredCall) -> dict[str, Any]:
    known: dict[str, Any] = {
        "id": call.id,
        "at": _at(call.at),
        "kind": call.kind,
        "outcome": call.outcome,
        "thread": call.thread,
        "server": call.server,
        "member": call.member,
        "projection": call.projection,
        "actionId": call.action_id,
        "traceId": call.trace_id,
        "durationMs": call.duration_ms,
        "bytesIn": call.bytes_in,
        "bytesOut": call.bytes_out,
        "digest": call.digest,
        "arguments": None if call.arguments is None else json.loads(call.arguments),
        "result": None if call.result is None else json.loads(call.result),
        "dropped": call.dropped or None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _at(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(calls: Sequence[StoredCall]) -> str:
    return block(line for one in calls for line in _lines(one))


def _lines(call: StoredCall) -> list[str]:
    if call.dropped:
        return [f"{_at(call.at)}  {call.dropped} calls were not recorded: there were too many, or the store said no"]
    parts = [_at(call.at), call.thread or "-", call.server or "-", call.member or call.kind, call.outcome]
    parts += [f"{call.duration_ms:.0f} ms"] if call.duration_ms is not None else []
    if call.bytes_in is not None and call.bytes_out is not None:
        parts.append(f"{call.bytes_in} > {call.bytes_out} bytes")
    lines = ["  ".join(parts)]
    lines += [f"    arguments {call.arguments}"] if call.arguments is not None else []
    return lines + ([f"    result {call.result}"] if call.result is not None else [])
