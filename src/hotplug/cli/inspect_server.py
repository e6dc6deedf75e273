"""What a server is and speaks, looked at without changing anything: the ground of `inspect` and `doctor`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotplug.cli.deadline import Deadline
from hotplug.cli.lookup import find_profile, known_profiles
from hotplug.cli.targets import Given
from hotplug.errors import ConfigError, HotplugError, Internal

if TYPE_CHECKING:
    from hotplug.connect import Channel, McpSession
    from hotplug.declare import Declaration, Finding
    from hotplug.profile import Definition, Profile
    from hotplug.projection import Loaded
    from hotplug.projection.fingerprint import Drift

__all__ = ["Applied", "Looked", "Missing", "NotYetThere", "Spoke", "look"]


class NotYetThere(ConfigError):
    """A native server's file or folder that its first call will make."""


@dataclass(frozen=True)
class Missing:
    """A part that isn't offered, and what a user loses."""

    part: str
    without: str | None

    def document(self) -> dict[str, Any]:
        return {"part": self.part, **({"without": self.without} if self.without else {})}


@dataclass(frozen=True)
class Applied:
    """The projection that presents a profile.

    Args:
        by: Why it is this one: `named`, `package` or `tools`.
        drift: How the server's tools differ from the frozen list.
        broken: The tools it uses that are gone or different: any makes it unavailable.
        frozen: Whether it was ever frozen; one that wasn't has no list that the tools could differ from.
        unset: Variables that the server needs and its launch doesn't set; a script in between may.
    """

    id: str
    version: str
    digest: str
    package: str
    versions: str
    by: str
    drift: Drift
    broken: tuple[str, ...]
    unset: tuple[str, ...] = ()
    frozen: bool = True

    def document(self) -> dict[str, Any]:
        drift = {key: list(names) for key, names in asdict(self.drift).items()}
        return {
            "id": self.id,
            "version": self.version,
            "digest": self.digest,
            "package": self.package,
            "versions": self.versions,
            "by": self.by,
            "drift": drift,
            "broken": list(self.broken),
            "unset": list(self.unset),
        }


@dataclass(frozen=True)
class Spoke:
    """One profile as a server speaks it, by itself or through a projection.

    Args:
        reason: Why it can't be used, if it can't.
    """

    profile: str
    version: str
    via: str
    facets: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    projection: Applied | None = None
    reason: str | None = None

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "profile": self.profile,
            "version": self.version,
            "via": self.via,
            "available": self.reason is None,
            "facets": list(self.facets),
            "offered": list(self.offered),
            "missing": [one.document() for one in self.missing],
        }
        if self.projection:
            body["projection"] = self.projection.document()
        if self.reason:
            body["reason"] = self.reason
        return body


@dataclass(frozen=True)
class Looked:
    """A server that was reached.

    Args:
        server: What it says of itself, which identifies nothing.
        dialects: The declarations that it made, by their keys in the capabilities.
        tools: The names of its raw tools; of a native server in this process, its parts.
        coverage: What the projections say of each tool.
        seconds: From the start until calls could be sent.
    """

    target: Mapping[str, Any]
    transport: str
    era: str | None
    protocol: str | None
    server: Mapping[str, Any]
    package: str | None
    instructions: str | None
    dialects: tuple[str, ...]
    declared: tuple[Mapping[str, Any], ...]
    findings: tuple[Finding, ...]
    profiles: tuple[Spoke, ...]
    tools: tuple[str, ...]
    coverage: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    unusable: Mapping[str, str] = field(default_factory=dict[str, str])
    problem: str | None = None
    seconds: float = 0.0

    @property
    def wrong(self) -> bool:
        """Whether something that it declares or that applies can't be used, or nothing that it lists can."""
        useless = bool(self.unusable) and not self.tools
        return self.problem is not None or useless or any(one.reason for one in self.profiles)

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "target": dict(self.target),
            "transport": self.transport,
            "era": self.era,
            "protocol": self.protocol,
            "server": dict(self.server),
            "package": self.package,
            "dialects": list(self.dialects),
            "declared": [dict(one) for one in self.declared],
            "findings": [asdict(one) for one in self.findings],
            "profiles": [one.document() for one in self.profiles],
            "coverage": {name: dict(entry) for name, entry in self.coverage.items()},
            "tools": {"count": len(self.tools), "names": list(self.tools)},
            "seconds": round(self.seconds, 3),
        }
        if self.unusable:
            body["tools"]["unusable"] = dict(self.unusable)
        if self.problem:
            body["tools"]["problem"] = self.problem
        if self.instructions:
            body["instructions"] = self.instructions
        return body


async def look(
    server: Given, *, profile: str | None = None, projection: str | None = None, limit: float = 60.0
) -> Looked:
    """Connect to a server, read what it says and lists, and find what it speaks. No tool is called.

    Args:
        profile: Only look for this one; by default every profile that is installed.
        projection: A projection by name or file, in place of the one that would apply by itself.
        limit: Seconds until the server must have answered, and listed all its tools.

    Raises:
        ConfigError: The target can't be used as it stands.
        ConnectError: It can't be reached.
        Disconnected, TooLarge: It ended while its tools were read, or listed more than can be taken.
    """
    wanted = [profile] if profile else [name for name in known_profiles() if name != "connection"]
    deadline = Deadline(limit)
    async with _opened(server, limit) as opened:
        return await _look(server, opened, wanted, projection or server.projection, deadline)


@dataclass(frozen=True)
class _Opened:
    channel: Channel
    session: McpSession | None
    seconds: float


@asynccontextmanager
async def _opened(server: Given, limit: float) -> AsyncGenerator[_Opened]:
    from hotplug.connect import McpChannel, McpSession

    started = time.perf_counter()
    async with AsyncExitStack() as stack:
        here = _in_process(server)
        if here is not None:
            from hotplug.door import MemoryChannel
            from hotplug.serve import Runtime

            provider, store, identity = here
            kept = await stack.enter_async_context(store)
            runtime = Runtime(provider, store=kept, identity=identity, name=server.label)
            await stack.enter_async_context(runtime.opened())
            yield _Opened(MemoryChannel(runtime, server.label), None, time.perf_counter() - started)
            return
        session = McpSession(server.target, start_timeout=limit, **server.session)
        stack.push_async_callback(session.aclose)
        await session.start()
        yield _Opened(McpChannel(session), session, time.perf_counter() - started)


def _in_process(server: Given) -> tuple[Profile, Any, str] | None:
    """A native server that runs in this process: one of the catalog, or a class of the user's own."""
    from hotplug.connect import NativeTarget, PythonTarget
    from hotplug.profile import Profile
    from hotplug.store import memory

    target = server.target
    if isinstance(target, NativeTarget):
        from hotplug.servers import native

        if target.path != ":memory:" and not Path(target.path).exists():
            raise NotYetThere(
                f"{target}: there is no {target.path}", hint="a first call makes it; looking at it doesn't"
            )
        return native(target.scheme, target.path, me=target.me)
    if isinstance(target, PythonTarget) and target.object:
        from hotplug.connect.launch import import_object

        found = import_object(target)
        if isinstance(found, type) and issubclass(found, Profile):
            found = found()
        if isinstance(found, Profile):
            return found, memory(), f"{type(found).__module__}.{type(found).__qualname__}"
    return None


async def _look(
    server: Given, opened: _Opened, wanted: Sequence[str], projection: str | None, deadline: Deadline
) -> Looked:
    from hotplug.connect import package_of
    from hotplug.declare import CARDS, NOETIC, Declaration, check

    channel, session = opened.channel, opened.session
    unusable: Mapping[str, str] = {}
    problem: str | None = None
    if session is not None:
        listed = await session.list_tools(timeout=deadline.left())
        tools: Sequence[Mapping[str, Any]] = listed.as_wire()
        unusable, problem = listed.unusable, listed.problem
    else:
        tools = await channel.tools()
    extensions = channel.extensions
    declaration = Declaration.from_extensions(extensions)
    definitions = _definitions()
    documents = {name: one.document() for name, one in definitions.items()}
    findings = check(declaration, documents, tools) if declaration.cards or declaration.problems else ()
    spoke: list[Spoke] = []
    coverage: dict[str, Mapping[str, str]] = {}
    package = package_of(server.target)
    for name in wanted:
        if declaration.card(name) is not None and projection is None:
            spoke.append(_declared(name, declaration, tools, channel.target))
            continue
        if session is None:
            continue
        made = _projected(name, channel, tools, package, projection, problem, server.variables)
        if made is not None:
            spoke.append(made[0])
            coverage.update(made[1])
    return Looked(
        target=server.document(),
        transport=(session.transport or "memory") if session else "memory",
        era=session.era if session else None,
        protocol=session.protocol if session else None,
        server=session.server_info if session else {},
        package=str(package) if package else None,
        instructions=session.instructions if session else None,
        dialects=tuple(name for name in (NOETIC, CARDS) if name in extensions),
        declared=tuple(_card(card) for card in declaration.cards),
        findings=tuple(findings),
        profiles=tuple(spoke),
        tools=tuple(str(tool.get("name")) for tool in tools),
        coverage=coverage,
        unusable=unusable,
        problem=problem,
        seconds=opened.seconds,
    )


def _definitions() -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for name in known_profiles():
        for one in find_profile(name).definition.lineage():
            found[one.name] = one
    return found


def _card(card: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "profile": card.profile,
        "version": card.version,
        "via": card.via,
        "facets": dict(card.facets),
    }
    if card.digest:
        body["digest"] = card.digest
    if card.projection:
        body["projection"] = dict(card.projection)
    return body


def _declared(name: str, declaration: Declaration, tools: Sequence[Mapping[str, Any]], target: str) -> Spoke:
    """A profile that the server declares by itself."""
    from hotplug.connect import speaks
    from hotplug.profile.versions import default_range

    found = find_profile(name)
    card = declaration.card(name)
    assert card is not None
    via = "native" if card.via == "native" else "projected"
    try:
        said = speaks(found.profile, default_range(found.definition.version), declaration, tools, target=target)
    except HotplugError as error:
        return Spoke(name, card.version, via, facets=tuple(card.facets), reason=str(error))
    parts = [one for one in found.definition.all_parts.values() if one.kind != "event"]
    return Spoke(
        name,
        card.version,
        via,
        facets=tuple(sorted(said.facets)),
        offered=tuple(one.name for one in parts if said.way(one.name)),
        missing=_missing(found.definition, (one.name for one in parts if not said.way(one.name))),
    )


def _missing(definition: Definition, names: Iterable[str]) -> tuple[Missing, ...]:
    found: list[Missing] = []
    for name in names:
        flags = definition.all_parts[name].flags
        facet = definition.all_facets.get(flags.facet or "")
        found.append(Missing(name, flags.without or (facet.without if facet else None)))
    return tuple(found)


def _projected(
    name: str,
    channel: Channel,
    tools: Sequence[Mapping[str, Any]],
    package: Any,
    projection: str | None,
    problem: str | None,
    variables: frozenset[str] | None,
) -> tuple[Spoke, Mapping[str, Mapping[str, str]]] | None:
    """A profile as a projection would present it; None where none applies."""
    from hotplug.cli.projection_drift import broken_by
    from hotplug.projection import choose, digest, drift, named

    profile = find_profile(name).profile
    definition = profile.definition
    known = (f"{package.registry}:{package.name}", package.version) if package else None
    try:
        if problem is not None:
            raise Internal(f"the tool list is incomplete: {problem}")
        loaded: Loaded | None = named(projection) if projection else choose(name, package=known, tools=tools)
    except HotplugError as error:
        if projection is not None:
            raise
        return Spoke(name, definition.version, "projected", reason=str(error)), {}
    if loaded is None or name not in loaded.source.document.profiles:
        return None
    document = loaded.source.document
    changes = drift(loaded.tools, tools)
    broken = broken_by(loaded.source, changes)
    parts = definition.all_parts
    reason = f"tools that it uses have changed: {', '.join(broken)}" if broken else _fault(loaded, profile, channel)
    applied = Applied(
        id=document.projection,
        version=document.version,
        digest=digest(document),
        package=document.upstream.package,
        versions=document.upstream.versions,
        by="named" if projection else "package" if known else "tools",
        drift=changes,
        broken=broken,
        frozen=document.upstream.tools is not None,
        unset=tuple(one for one in document.requires.env if variables is not None and one not in variables),
    )
    spoke = Spoke(
        name,
        document.profiles[name],
        "projected",
        facets=tuple(sorted(document.facets)),
        offered=tuple(one for one in parts if one in document.operations),
        missing=_missing(definition, (one for one in parts if one not in document.operations)),
        projection=applied,
        reason=reason,
    )
    notes = {
        tool: {"state": entry.state, **({"note": entry.note} if entry.note else {})}
        for tool, entry in document.coverage.items()
    }
    return spoke, notes


def _fault(loaded: Loaded, profile: type[Profile], channel: Channel) -> str | None:
    """Why a projection can't be used even where its tools are as they were: what `connect` would say."""
    from hotplug.profile.versions import default_range
    from hotplug.projection import ProjectedProvider

    versions = default_range(profile.definition.version)
    version = loaded.source.document.profiles[profile.definition.name]
    if not versions.satisfied_by(version):
        return f"it presents {profile.definition.name} {version}, and {versions} is required"
    try:
        ProjectedProvider(loaded.source, profile, channel, tools=loaded.tools, title=channel.target, path=loaded.path)
    except HotplugError as error:
        return str(error)
    return None
