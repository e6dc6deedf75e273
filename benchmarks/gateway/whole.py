"""What concerns a gateway as a whole: starts, memory, long lists, many threads."""

from __future__ import annotations

import http.client
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcp import Client

from benchmarks.gateway.calls import Counts, connected
from benchmarks.gateway.figures import Figure, figures
from benchmarks.gateway.running import (
    ENV,
    Front,
    Gateway,
    Peer,
    Upstreams,
    direct,
    entry,
    free_port,
    memory_of,
    process_with,
    running,
)
from hotplug.gateway.grants import Grants
from hotplug.gateway.threads import Threads
from hotplug.store import SettingsFile, open_store

__all__ = ["measure_lists", "measure_memory", "measure_starts", "measure_threads"]

MODERN: Final = "2026-07-28"
SERVERS, TOOLS = 10, 50
FURTHER: Final = 20
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def _ask(url: str, headers: Mapping[str, str], method: str, params: Mapping[str, Any] | None = None) -> Any:
    """One request of the modern era, written by hand: its client costs nothing. Gives the result."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    try:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": _META}}
        named = {"mcp-name": params["name"]} if params is not None and "name" in params else {}
        connection.request(
            "POST",
            parts.path,
            json.dumps(body),
            {
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": MODERN,
                "mcp-method": method,
                **named,
                **headers,
            },
        )
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    for line in text.splitlines():
        data = line.removeprefix("data: ")
        if data.startswith("{") and "result" in (found := json.loads(data)):
            return found["result"]
    raise OSError(f"no result: {text[:200]}")


def _first_answer(
    command: Sequence[str], env: Mapping[str, str], url: str | None, path: str, ask: Callable[[str], object]
) -> float:
    """Milliseconds from a program's start until it has answered; its URL is given, or it tells it."""
    began = time.perf_counter()
    with running(command, env) as program:
        if url is None:
            assert program.stdout is not None
            url = program.stdout.readline().strip()
        deadline = time.monotonic() + 60
        while True:
            try:
                ask(f"{url}{path}")
                return (time.perf_counter() - began) * 1000
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.002)


def measure_starts(counts: Counts, *, peer: bool = True) -> list[Figure]:
    """From the start of the program to the first answer of a tool behind it, and to the first list of 500."""
    found: list[Figure] = []
    with ExitStack() as programs:
        upstreams = programs.enter_context(Upstreams())
        one = {"up": entry(upstreams.start()[0])}
        many = {f"s{number}": entry(url) for number, url in enumerate(upstreams.start(SERVERS, tools=TOOLS))}

        def call(tool: str, headers: Mapping[str, str]) -> Callable[[str], object]:
            return lambda url: _ask(url, headers, "tools/call", {"name": tool, "arguments": {"note": "a"}})

        def listed(headers: Mapping[str, str]) -> Callable[[str], object]:
            def ask(url: str) -> None:
                tools = len(_ask(url, headers, "tools/list")["tools"])
                if tools < SERVERS * TOOLS:
                    raise OSError(f"{tools} tools")

            return ask

        for servers, what in ((one, "first call answered"), (many, "first list of 500 tools over 10 servers")):
            gateway = programs.enter_context(Gateway(servers, more="[search]\nover = false\n"))
            other = programs.enter_context(Peer(servers))
            thread, token = gateway.thread()
            headers = {"authorization": f"Bearer {token}"}
            times: dict[str, list[float]] = {"hotplug": [], "FastMCP": []}
            for _ in range(counts.starts):
                for name in random.sample(sorted(times), 2):
                    if name == "hotplug":
                        ask = call("up.echo", headers) if servers is one else listed(headers)
                        path = f"/threads/{thread}/mcp"
                        taken = _first_answer(gateway.command("--http", "0"), gateway.env, None, path, ask)
                    elif peer:
                        port = str(free_port())
                        ask = call("echo", {}) if servers is one else listed({})
                        taken = _first_answer(
                            other.command("--http", port), ENV, f"http://127.0.0.1:{port}", "/mcp", ask
                        )
                    else:
                        continue
                    times[name].append(taken)
            found.extend(figures("start, HTTP > HTTP, 2026-07-28", what, "ms", times, None))
    return found


async def measure_lists(counts: Counts, *, peer: bool = True) -> list[Figure]:
    """500 tools over 10 servers, listed again and again."""
    with ExitStack() as programs:
        urls = programs.enter_context(Upstreams()).start(SERVERS, tools=TOOLS)
        servers = {f"s{number}": entry(url) for number, url in enumerate(urls)}
        gateway = programs.enter_context(Gateway(servers, more="[search]\nover = false\n"))
        fronts = {"hotplug": gateway.http()}
        if peer:
            fronts["FastMCP"] = programs.enter_context(Peer(servers)).http()
        by_client: dict[str, list[float]] = {"ten servers, one after another": [], **{name: [] for name in fronts}}
        by_hand: dict[str, list[float]] = {name: [] for name in by_client}
        async with AsyncExitStack() as clients:
            each = [await clients.enter_async_context(connected(direct(url), MODERN)) for url in urls]
            targets: dict[str, list[Client]] = {"ten servers, one after another": each}
            places: dict[str, list[Front]] = {"ten servers, one after another": [direct(url) for url in urls]}
            for name, front in fronts.items():
                targets[name] = [await clients.enter_async_context(connected(front, MODERN))]
                places[name] = [front]
            for number in range(counts.rounds + 1):
                for name in random.sample(sorted(targets), len(targets)):
                    times: list[float] = []
                    raw: list[float] = []
                    for _ in range(3):
                        began = time.perf_counter()
                        tools = [tool for one in targets[name] for tool in (await one.list_tools()).tools]
                        times.append(time.perf_counter() - began)
                        assert len(tools) == SERVERS * TOOLS, (name, len(tools))
                        began = time.perf_counter()
                        for place in places[name]:
                            assert place.url is not None
                            _ask(place.url, place.headers, "tools/list")
                        raw.append(time.perf_counter() - began)
                    if number:
                        by_client[name].append(statistics.median(times) * 1000)
                        by_hand[name].append(statistics.median(raw) * 1000)
    group = "500 tools over 10 servers, HTTP > HTTP, 2026-07-28"
    base = "ten servers, one after another"
    return [
        *figures(group, "list, by the SDK's client", "ms", by_client, base),
        *figures(group, "list, read and parsed by hand", "ms", by_hand, base),
    ]


def measure_memory(*, peer: bool = True) -> list[Figure]:
    """Resident memory with no server, with one, and of each further one; the servers' own left out."""
    found: list[Figure] = []
    group = "memory, HTTP > HTTP, 2026-07-28"
    with ExitStack() as programs:
        urls = programs.enter_context(Upstreams()).start()

        def taken(front: Front) -> float:
            assert front.url is not None
            for _ in range(3):
                _ask(front.url, front.headers, "tools/list")
            return memory_of(process_with(front.mark))

        sides: dict[str, Callable[[Mapping[str, Any]], Front]] = {
            "hotplug": lambda servers: programs.enter_context(Gateway(servers)).http()
        }
        if peer:
            sides["FastMCP"] = lambda servers: programs.enter_context(Peer(servers)).http()
        for name, start in sides.items():
            if name == "hotplug":
                found.extend(figures(group, "no server", "MB", {name: [taken(start({}))]}, None))
            first = taken(start({"s0": entry(urls[0])}))
            more = taken(start({f"s{number}": entry(urls[0]) for number in range(FURTHER + 1)}))
            found.extend(figures(group, "one server", "MB", {name: [first]}, None))
            found.extend(figures(group, "each further server", "MB", {name: [(more - first) / FURTHER]}, None))
    return found


async def measure_threads(counts: Counts) -> list[Figure]:
    """What it takes to know a caller, and what it may use, with few threads and with 10,000; in this process."""
    found: list[Figure] = []
    knows: dict[str, list[float]] = {"10 threads": [], "10,000 threads": []}
    decides: dict[str, list[float]] = {name: [] for name in knows}
    with tempfile.TemporaryDirectory(prefix="bench-threads-", dir=_in_memory()) as folder:
        async with AsyncExitStack() as stack:
            sides: list[tuple[str, Threads, Grants, list[tuple[str, str]]]] = []
            for name, count in (("10 threads", 10), ("10,000 threads", 10_000)):
                store = await stack.enter_async_context(open_store(f"sqlite:///{folder}/{count}.db"))
                threads = await stack.enter_async_context(Threads.over(store))
                opened = [await threads.open(title=f"thread {number}") for number in range(count)]
                grants = Grants(SettingsFile(Path(folder) / "settings.json"), threads)
                grants.offers("up", ["echo"])
                sides.append((name, threads, grants, [(one.id, token) for one, token in opened]))
            for _ in range(counts.rounds):
                for name, threads, grants, known in random.sample(sides, len(sides)):
                    asked = random.choices(known, k=200)
                    began = time.perf_counter()
                    for id_, token in asked:
                        assert threads.authenticate(id_, token)
                    middle = time.perf_counter()
                    for id_, _ in asked:
                        assert grants.gives(id_, "up", "echo")
                    ended = time.perf_counter()
                    knows[name].append((middle - began) / len(asked) * 1e6)
                    decides[name].append((ended - middle) / len(asked) * 1e6)
    found.extend(figures("threads", "a token known", "µs", knows, "10 threads"))
    found.extend(figures("threads", "a decision", "µs", decides, "10 threads"))
    return found


def _in_memory() -> str | None:
    """A folder in memory, where there is one, so that opening so many doesn't wait for the disk."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112
