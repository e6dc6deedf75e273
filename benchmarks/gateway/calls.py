"""Calls through each way to the upstream, in both eras, by the SDK's client."""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from benchmarks.gateway.figures import Figure, figures
from benchmarks.gateway.running import ENV, Front, Gateway, Peer, Upstreams, cpu_of, direct, entry, process_with

__all__ = ["ERAS", "WAYS", "Counts", "connected", "measure_calls", "measure_extras"]

ERAS: Final[Mapping[str, str]] = {"2026-07-28": "2026-07-28", "2025-11-25": "legacy"}
AT_ONCE: Final = 32
WAYS: Final = (("HTTP", "HTTP"), ("HTTP", "stdio"), ("stdio", "stdio"))


@dataclass(frozen=True)
class Counts:
    """How much is measured.

    Args:
        rounds: The targets stand in another order in each.
        calls: Small ones, one after another, of each target in a round.
        starts: Of each program.
    """

    rounds: int = 7
    calls: int = 100
    starts: int = 5


@asynccontextmanager
async def connected(front: Front, mode: str, env: Mapping[str, str] = ENV) -> AsyncGenerator[Client]:
    """The SDK's client at a front."""
    async with AsyncExitStack() as stack:
        if front.url is not None:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
            http = await stack.enter_async_context(
                httpx2.AsyncClient(headers=dict(front.headers), timeout=60, limits=limits)
            )
            target = streamable_http_client(front.url, http_client=http)
        else:
            target = StdioServerParameters(command=front.command[0], args=list(front.command[1:]), env={**env})
        yield await stack.enter_async_context(Client(target, mode=mode, cache=None))


class _Target:
    def __init__(self, client: Client, prefix: str, front: Front) -> None:
        self.client = client
        self.prefix = prefix
        self.process = process_with(front.mark) if front.mark else None
        self.calls = 0
        self.worked = 0.0

    async def call(self, tool: str) -> None:
        result = await self.client.call_tool(f"{self.prefix}{tool}", {"note": "a note"})
        assert not result.is_error

    async def latency(self, tool: str, count: int) -> float:
        """The median of some calls, in milliseconds."""
        times: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            await self.call(tool)
            times.append(time.perf_counter() - began)
        return statistics.median(times) * 1000

    async def throughput(self, count: int) -> float:
        """Calls a second, with 32 under way."""
        left = iter(range(count))

        async def one_after_another() -> None:
            for _ in left:
                await self.call("echo")

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(one_after_another())
        return count / (time.perf_counter() - began)


async def measure_calls(counts: Counts, *, peer: bool = True, way: str | None = None) -> list[Figure]:
    """All ways, or one of them, in both eras."""
    found: list[Figure] = []
    for frm, to in WAYS:
        if way not in (None, f"{frm} > {to}"):
            continue
        for era in ERAS:
            found.extend(await _way(frm, to, era, counts, peer=peer))
    return found


async def _way(frm: str, to: str, era: str, counts: Counts, *, peer: bool) -> list[Figure]:
    group = f"{frm} > {to}, {era}"
    with ExitStack() as programs:
        upstreams = programs.enter_context(Upstreams())
        url = upstreams.start()[0] if "HTTP" in (frm, to) else None
        behind = {"up": entry(url if to == "HTTP" else None)}
        gateway = programs.enter_context(Gateway(behind))
        fronts: dict[str, tuple[Front, str, Mapping[str, str]]] = {
            "direct": (direct(url if frm == "HTTP" else None), "", ENV),
            "hotplug": (gateway.http() if frm == "HTTP" else gateway.stdio(), "up.", gateway.env),
        }
        if peer:
            other = programs.enter_context(Peer(behind))
            fronts["FastMCP"] = (other.http() if frm == "HTTP" else other.stdio(), "", ENV)
        async with AsyncExitStack() as clients:
            targets: dict[str, _Target] = {}
            for name, (front, prefix, env) in fronts.items():
                try:
                    client = await clients.enter_async_context(connected(front, ERAS[era], env))
                    target = targets[name] = _Target(client, prefix, front)
                    await target.call("echo")
                except Exception as error:
                    if name != "FastMCP":
                        raise
                    print(f"FastMCP can't do {group}: {error}", file=sys.stderr)
                    targets.pop(name, None)
            return await _rounds(group, targets, counts)


async def _rounds(group: str, targets: Mapping[str, _Target], counts: Counts) -> list[Figure]:
    small: dict[str, list[float]] = {name: [] for name in targets}
    many: dict[str, list[float]] = {name: [] for name in targets}
    large: dict[str, list[float]] = {name: [] for name in targets}
    order = list(targets)
    for number in range(counts.rounds + 1):
        random.shuffle(order)
        gc.collect()
        for name in order:
            target = targets[name]
            # The first round warms up.
            calls = counts.calls if number else min(counts.calls, 20)
            before = cpu_of(target.process) if target.process is not None else 0.0
            latency = await target.latency("echo", calls)
            rate = await target.throughput(max(AT_ONCE, 2 * calls))
            if number:
                if target.process is not None:
                    target.worked += cpu_of(target.process) - before
                    target.calls += calls + max(AT_ONCE, 2 * calls)
                small[name].append(latency)
                many[name].append(rate)
                large[name].append(await target.latency("filled", max(3, calls // 4)))
    worked = {name: [one.worked / one.calls] for name, one in targets.items() if one.process is not None}
    return [
        *figures(group, "small call, p50", "ms", small),
        *figures(group, f"small calls, {AT_ONCE} at once", "/s", many),
        *figures(group, "20 kB result, p50", "ms", large),
        *figures(group, "CPU a small call", "ms", worked, None),
    ]


async def measure_extras(counts: Counts) -> list[Figure]:
    """What records, an access profile, and keys of repeated calls cost."""
    strict = {
        "mcpProfiles": {
            "some": {"servers": ["up", "home"], "groups": [], "tools": {"up": {"allow": ["echo", "filled"]}}}
        },
        "mcpProfile": "some",
    }
    with ExitStack() as programs:
        url = programs.enter_context(Upstreams()).start()[0]
        plain = programs.enter_context(Gateway({"up": entry(url)}, more="[records]\ndays = 0\n"))
        kept = programs.enter_context(Gateway({"up": entry(url)}, settings=strict))
        native = programs.enter_context(Gateway({"home": {"target": "sqlite:///home.db", "profile": "calendar"}}))
        async with AsyncExitStack() as clients:
            off, on, home = [
                await clients.enter_async_context(connected(one.http(), "2026-07-28")) for one in (plain, kept, native)
            ]
            sides = {
                "off": _Target(off, "up.", Front()),
                "on": _Target(on, "up.", Front()),
            }
            both: dict[str, list[float]] = {name: [] for name in sides}
            rates: dict[str, list[float]] = {name: [] for name in sides}
            keys: dict[str, list[float]] = {"without a key": [], "with a key": []}
            calendar = await home.call_tool("calendar.calendars", {})
            ref = calendar.structured_content["calendars"][0]["calendar"]
            order = list(sides)
            for number in range(counts.rounds + 1):
                random.shuffle(order)
                for name in order:
                    latency, rate = await sides[name].latency("echo", counts.calls), await sides[name].throughput(200)
                    if number:
                        both[name].append(latency)
                        rates[name].append(rate)
                for name in random.sample(sorted(keys), 2):
                    time_taken = await _created(home, ref, max(5, counts.calls // 5), keyed=name == "with a key")
                    if number:
                        keys[name].append(time_taken)
    group = "HTTP > HTTP, 2026-07-28"
    return [
        *figures(f"records and an access profile, {group}", "small call, p50", "ms", both, "off"),
        *figures(f"records and an access profile, {group}", f"small calls, {AT_ONCE} at once", "/s", rates, "off"),
        *figures("once, a native calendar over HTTP", "create, p50", "ms", keys, "without a key"),
    ]


async def _created(client: Client, calendar: str, count: int, *, keyed: bool) -> float:
    times: list[float] = []
    for _ in range(count):
        meta = {"tools.noetic/idempotency-key": f"k{random.getrandbits(64):x}"} if keyed else None
        arguments = {"calendar": calendar, "title": "a", "start": "2026-06-11T15:00:00Z", "duration": "PT1H"}
        began = time.perf_counter()
        result = await client.call_tool("calendar.create", arguments, meta=meta)  # type: ignore[arg-type]
        times.append(time.perf_counter() - began)
        assert not result.is_error
    return statistics.median(times) * 1000
