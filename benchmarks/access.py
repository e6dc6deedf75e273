"""What a thread gets: resolving it up a long lineage, deciding on a call, and how both grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.measure import Counts, Row, compare_blocking, row
from hotplug.access import Access, Host, Settings, Thread, Toolkit, read_settings, resolve
from hotplug.access.document import Document, node_of, write

__all__ = ["measure_access"]

GENERATIONS = 64
TOOLS = (100, 1_000, 10_000, 100_000)
DEPTHS = (1, 4, 16, 64)
CALLS = 1_000


def _host(tools: int) -> Host:
    """So many tools, half of them in toolkits, fifty to a server or toolkit."""
    names = [f"tool_{number:02}" for number in range(50)]
    half = tools // 100
    return Host(
        servers={f"server{one}": names for one in range(half)},
        toolkits={f"kit{one}": Toolkit(f"group{one % 20}", tuple(names)) for one in range(half)},
    )


def _settings(host: Host, generations: int) -> Settings:
    """Another profile in each generation, with a list of tools for every server, so that nothing falls together."""
    profiles: dict[str, object] = {}
    projects: dict[str, object] = {}
    for one in range(generations):
        rules = {
            server: {"allow": list(tools[: 50 - one // 4]), "deny": [tools[one % 25]]}
            for server, tools in host.servers.items()
        }
        profiles[f"p{one}"] = {"servers": "all", "groups": "all", "tools": rules}
        projects[f"p{one}"] = {"mcpProfile": f"p{one}"}
    document = write(Document(node_of({"mcpProfiles": profiles, "projects": projects})))
    return read_settings(document)


def _lineage(generations: int) -> Mapping[str, Thread]:
    """A root and its descendants, each in a project of its own; `t0` is the last of them."""
    last = generations - 1
    return {
        f"t{one}": Thread(f"t{one}", parent=None if one == last else f"t{one + 1}", project=f"p{one}")
        for one in range(generations)
    }


def _way(tools: int, generations: int) -> Callable[[], object]:
    """From the settings to every tool that the youngest gets."""
    host = _host(tools)
    settings, lineage = _settings(host, generations), _lineage(generations)
    return lambda: _resolved(settings, lineage, host).tools


def _resolved(settings: Settings, lineage: Mapping[str, Thread], host: Host) -> Access:
    found = resolve(settings, "t0", lineage, host)
    if not isinstance(found, Access):
        raise RuntimeError(f"the case that is measured should start, and is refused: {found.reason}")
    return found


def _deciding(access: Access, server: str, tool: str) -> Callable[[], object]:
    def decide() -> None:
        for _ in range(CALLS):
            access.allows(server, tool)

    return decide


def measure_access(counts: Counts) -> list[Row]:
    """10,000 tools up 64 generations, decisions on calls, and growth by tools and by generations."""
    few = Counts(rounds=max(1, counts.rounds // 5), calls=max(1, counts.calls // 10))
    ways = {f"{tools:,} tools": _way(tools, GENERATIONS) for tools in TOOLS}
    ways |= {f"{depth} generations": _way(10_000, depth) for depth in DEPTHS if depth != GENERATIONS}
    times = compare_blocking(ways, few)
    times[f"{GENERATIONS} generations"] = times["10,000 tools"]
    found = [row("access", "resolved, 64 generations", times, "10,000 tools", aim=50)]
    found.extend(_growth(times, "tools", TOOLS))
    found.extend(_growth(times, "generations", DEPTHS))

    host = _host(10_000)
    access = _resolved(_settings(host, GENERATIONS), _lineage(GENERATIONS), host)
    decisions = compare_blocking(
        {
            "given": _deciding(access, "server7", "tool_30"),
            "kept by the nearest": _deciding(access, "server7", "tool_00"),
            "kept by the farthest": _deciding(access, "server7", "tool_35"),
            "a toolkit's": _deciding(access, "kit7", "tool_01"),
            "not there": _deciding(access, "server7", "nothing"),
        },
        few,
    )
    for side in decisions:
        each = {side: [ms / CALLS for ms in decisions[side]]}
        found.append(row("access", f"a decision: {side}", each, side, aim=0.02))
    return found


def _growth(times: Mapping[str, list[float]], what: str, steps: tuple[int, ...]) -> list[Row]:
    """Times for as much as the base has: linear growth stays at one, and a fixed part lets it fall."""
    base = f"{steps[0]:,} {what}"
    found: list[Row] = []
    for step in steps[1:]:
        side = f"{step:,} {what}"
        scaled = {**times, side: [ms * steps[0] / step for ms in times[side]]}
        found.append(row("access", f"{side}, by {steps[0]:,}", scaled, side, base, aim=2))
    return found
