"""A projected operation against the calls of the upstream's tools that it makes, done directly."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.measure import Counts, Row, Side, compare, row
from hotplug.catalog.calendar import Calendar
from hotplug.connect import Channel, CommandTarget, McpChannel, McpSession, Reply
from hotplug.door import MemoryChannel, connect
from hotplug.errors import HotplugError
from hotplug.profile import Model, Profile, read
from hotplug.projection import ProjectedProvider, parse, tools_digest
from hotplug.serve import Runtime
from hotplug.store import memory

__all__ = ["measure_projected", "measure_real"]

DAY = ("2026-06-11T00:00:00Z", "2026-06-12T00:00:00Z")


class Shown(Model):
    title: str
    guests: list[str]


class Note(Profile, name="note", version="1.0.0", facets={}):
    """Notes, so that a projection can be measured whose upstream costs next to nothing."""

    @read("note.get", sense="state")
    async def get(self, note: str) -> Shown:
        """Show a note."""
        ...


DOCUMENT = """
projection: dev.hotplug.bench
version: 1.0.0
upstream: {package: "command:bench", versions: ">=1 <2", tools: "%s"}
profiles: {note: 1.0.0}
senses:
  state: {independence: actuation-derived, grade: presence}
operations:
  note.get:
    tool: show
    args: {note: note}
    codec: json
    result: '{"title": summary, "guests": [attendees[status != "declined"].email]}'
coverage: {show: mapped}
"""


async def measure_projected(counts: Counts) -> list[Row]:
    """Over a tool that answers at once, so that nothing hides what the projection costs."""
    root = str(Path(__file__).parents[1])
    command = [sys.executable, "-m", "benchmarks.upstream"]
    async with AsyncExitStack() as stack:
        session = McpSession(CommandTarget(tuple(command), env={"PYTHONPATH": "src"}, cwd=root))
        channel = McpChannel(session)
        stack.push_async_callback(channel.aclose)
        await session.start()
        tools = await channel.tools()
        source = parse(DOCUMENT % tools_digest(list(tools)))  # type: ignore[arg-type]
        provider = ProjectedProvider(source, Note, channel, tools=tools, title="bench")
        store = await stack.enter_async_context(memory())
        runtime = Runtime(provider, store=store, identity="bench")
        await stack.enter_async_context(runtime.opened())
        child = StdioServerParameters(command=command[0], args=command[1:], env={"PYTHONPATH": "src"}, cwd=root)
        sdk = await stack.enter_async_context(Client(child, cache=None))

        async def projected() -> None:
            answer = await runtime.call("note.get", {"note": "n1"})
            if answer.is_error:
                raise RuntimeError(str(answer.content))

        sides: dict[str, Side] = {
            "projected": projected,
            "McpSession": lambda: session.call("show", {"note": "n1"}),
            "SDK client": lambda: sdk.call_tool("show", {"note": "n1"}),
        }
        times = await compare(sides, counts)
    group = "projected, a tool that answers at once"
    return [
        row(group, "get", times, "projected", "SDK client", 1.25),
        row(group, "get", times, "projected", "McpSession", 1.25),
        row(group, "get", times, "McpSession", "SDK client"),
    ]


class _Noting:
    """A channel that notes the calls made through it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def call(self, tool: str, arguments: Mapping[str, Any], **options: Any) -> Reply:
        self.calls.append((tool, arguments))
        return await self._channel.call(tool, arguments, **options)


async def measure_real(counts: Counts) -> list[Row]:
    """A published calendar server on a real Radicale: reads through the projection, and its tool calls directly."""
    from hotplug.connect import link_of
    from hotplug.testing.published import published
    from hotplug.testing.radicale import radicale

    rows: list[Row] = []
    few = Counts(rounds=max(1, counts.rounds // 2), calls=max(1, counts.calls // 10))
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(radicale(calendars={"work": "Work"}))
        store = await stack.enter_async_context(memory())
        upstream = published("agents-calendar")
        target = CommandTarget(upstream.command, env={**upstream.env(server), "PATH": os.environ["PATH"]})
        cal = await stack.enter_async_context(connect(Calendar, target, store=store, start_timeout=180.0))
        link = link_of(cal)
        assert isinstance(link.channel, MemoryChannel)
        provider = link.channel.runtime.providers[0]
        assert isinstance(provider, ProjectedProvider)
        direct = provider.upstream.channel
        calendar = (await cal.calendars()).calendars[0].calendar
        made = await cal.create(calendar=calendar, title="Planning", start="2026-06-11T15:00:00Z", duration="PT1H")
        reads: dict[str, Side] = {
            "calendars": cal.calendars,
            "get": lambda: cal.get(made.event),
            "search": lambda: cal.search(*DAY),
        }
        for name, side in reads.items():
            noting = _Noting(direct)
            provider.upstream.channel = noting  # type: ignore[assignment]  # it has all that a channel has
            await side()
            provider.upstream.channel = direct
            base = _direct(direct, noting.calls)
            times = await compare({"projected": side, "the same calls": base}, few)
            label = f"{name} ({len(noting.calls)} calls)"
            rows.append(
                row(f"projected, {upstream.name} on Radicale", label, times, "projected", "the same calls", 1.25)
            )
    return rows


def _direct(channel: Channel, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> Side:
    async def run() -> None:
        for tool, arguments in calls:
            reply = await channel.call(tool, arguments, meta={})
            if reply.is_error:
                raise HotplugError(f"{tool} failed: {reply.text[:200]}")

    return run
