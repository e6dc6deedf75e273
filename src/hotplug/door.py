"""The door: `connect(Calendar, "npx caldav-mcp")` puts a projection between where the server needs one."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import anyio

from hotplug.connect import (
    Channel,
    CommandTarget,
    EntryTarget,
    Link,
    McpChannel,
    McpSession,
    NativeTarget,
    ObjectTarget,
    PackageTarget,
    PythonTarget,
    Reply,
    Target,
    package_of,
    parse_target,
    speaks,
    typed_client,
)
from hotplug.declare import Declaration
from hotplug.errors import ConfigError, ConnectError, HotplugError, Timeout
from hotplug.profile import Extension, Profile, Requirement
from hotplug.profile.versions import Range, default_range
from hotplug.serve import Runtime
from hotplug.store import Store, default_store

if TYPE_CHECKING:
    from hotplug.projection import Loaded, ProjectedProvider

__all__ = [
    "Connecting",
    "MemoryChannel",
    "account_of",
    "connect",
    "fitting",
    "in_process",
    "listed",
    "projected",
    "with_defaults",
]

P = TypeVar("P", bound=Profile)


class MemoryChannel:
    """A runtime in this process as a channel: no transport, no copy, the same answers."""

    def __init__(
        self, runtime: Runtime, target: str, principal: str = "local", *, mask: Callable[[str], str] = str
    ) -> None:
        self.runtime = runtime
        self.mask = mask
        """Takes the secrets of whatever stands behind out of a text."""
        self._target = target
        self._principal = principal

    @property
    def target(self) -> str:
        return self._target

    @property
    def extensions(self) -> Mapping[str, Any]:
        return self.runtime.declaration.to_extensions()

    async def tools(self) -> Sequence[Mapping[str, Any]]:
        return [tool.listed() for tool in self.runtime.tools.values()]

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109  # the seam's argument; it is answered with an error of ours
    ) -> Reply:
        with anyio.move_on_after(timeout) as scope:
            answer = await self.runtime.call(tool, dict(arguments), meta=meta, principal=self._principal)
            return Reply(content=answer.content, is_error=answer.is_error, meta=answer.meta or {})
        if scope.cancelled_caught:
            raise Timeout(f"{tool} gave no answer within {timeout:g} s", details={"state": "unknown"})
        raise HotplugError("unreachable")  # pragma: no cover

    async def restore(self) -> None:
        """Nothing is lost in a process."""

    async def aclose(self) -> None:
        """The runtime is closed by whoever opened it."""


class Connecting(Generic[P]):
    """A connection being made: `async with connect(Calendar, target) as cal`."""

    def __init__(self, make: Callable[[AsyncExitStack], Any]) -> None:
        self._make = make
        self._stack: AsyncExitStack | None = None

    async def __aenter__(self) -> P:
        stack = AsyncExitStack()
        try:
            made = await self._make(stack)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stack.aclose()
            raise
        self._stack = stack
        return cast("P", made)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            with anyio.CancelScope(shield=True):
                await stack.aclose()


def connect(
    profile: type[P] | Requirement[P],
    target: object,
    *,
    projection: str | Path | None = None,
    facets: Iterable[str] = (),
    extensions: Iterable[type[Extension] | tuple[type[Extension], Range]] = (),
    setup: Mapping[str, Any] | None = None,
    store: Store | None = None,
    on_note: Callable[[str, str], None] | None = None,
    **session: Any,
) -> Connecting[P]:
    """Connect to a server through a profile, native or projected.

    Args:
        profile: The profile, or `Calendar.range("^1.1")` for another range than the installed version's.
        target: A URL, a command (text or list), `npm:package@1`, `pypi:package==1`, a file or `module:object`,
            `file.json#name`, `sqlite:///FILE`, `folder:DIR`, an `mcpServers` entry, or a server in this process.
        projection: A projection by name or file. Shipped ones are found by package and version, or by the tool list.
        facets: Facets that the server has to offer.
        extensions: Extensions that it has to offer, `SlackBlocks` or `SlackBlocks.range("^3")`.
        setup: Opens an instance of one's own with it.
        store: Where a projection's idempotency records and refs are kept; by default in the user's state folder.
        on_note: Called with the part and each sentence that a server says besides a result, such as what it couldn't
            read; by default they are logged.
        session: Options of the MCP session: `era`, `secrets`, `files`, `name`, `start_timeout`, `call_timeout`, ...

    Raises:
        ConfigError: The target can't be used as it stands.
        ConnectError: The server can't be reached, doesn't speak the profile, or contradicts what it declares.
        Unsupported: A version, a facet or an extension that is required isn't offered.
    """
    wanted = (
        profile if isinstance(profile, Requirement) else Requirement(profile, default_range(profile.definition.version))
    )
    parsed = parse_target(target)

    async def make(stack: AsyncExitStack) -> P:
        channel, runtime = await _channel(stack, wanted.contract, parsed, projection, store, session)
        declared = runtime.declaration if runtime else Declaration.from_extensions(channel.extensions)
        ranges = [one if isinstance(one, tuple) else (one, default_range(one.version)) for one in extensions]
        spoken_ = speaks(
            wanted.contract,
            wanted.versions,
            declared,
            await channel.tools(),
            target=channel.target,
            facets=tuple(facets),
            extensions=ranges,
        )
        link = Link(channel, spoken_, vault=session.get("secrets"), on_note=on_note)
        if setup is not None:
            instance = await _open_instance(stack, link, setup)
            link = link.with_options(instance=instance)
        return typed_client(wanted.contract, link)

    return Connecting(make)


async def _channel(
    stack: AsyncExitStack,
    profile: type[Profile],
    target: Target,
    projection: str | Path | None,
    store: Store | None,
    options: Mapping[str, Any],
) -> tuple[Channel, Runtime | None]:
    """The channel to what speaks the profile, and the runtime where it runs in this process."""
    name = str(options.get("name") or target)
    native = in_process(target, store)
    if native is not None:
        server, own_store, identity = native
        kept = store or await stack.enter_async_context(own_store or default_store(name))
        runtime = Runtime(server, store=kept, identity=identity, name=name)
        await stack.enter_async_context(runtime.opened())
        return MemoryChannel(runtime, name), runtime
    session = McpSession(with_defaults(target, projection), **options)
    await session.start()
    channel = McpChannel(session)
    stack.push_async_callback(channel.aclose)
    declares = Declaration.from_extensions(channel.extensions).card(profile.definition.name) is not None
    if declares and projection is None:
        return channel, None
    return await _projected(stack, profile, target, channel, projection, store, name)


def with_defaults(target: Target, projection: str | Path | None) -> Target:
    """The target with the variables that the projection's document wants, where the launch says nothing of them."""
    launch = target.launch if isinstance(target, EntryTarget) else target
    package = package_of(target)
    if not isinstance(launch, CommandTarget | PackageTarget) or (package is None and projection is None):
        return target
    from hotplug.projection import named, shipped

    if projection is not None:
        upstreams = [named(str(projection)).source.document.upstream]
    else:
        upstreams = [one.source.document.upstream for one in shipped()]
        upstreams = [
            one for one in upstreams if package and one.package.lower() == f"{package.registry}:{package.name}"
        ]
    env = {name: value for one in upstreams for name, value in one.env.items()}
    if not env:
        return target
    if isinstance(target, EntryTarget):
        assert isinstance(launch, CommandTarget)
        return replace(target, launch=replace(launch, env={**env, **launch.env}))
    return replace(launch, env={**env, **launch.env})


async def _projected(
    stack: AsyncExitStack,
    profile: type[Profile],
    target: Target,
    channel: McpChannel,
    projection: str | Path | None,
    store: Store | None,
    name: str,
) -> tuple[Channel, Runtime]:
    tools = await channel.tools()
    loaded = fitting(profile, target, projection, tools)
    if loaded is None:
        raise ConnectError(
            f"{name} speaks no {profile.definition.name}, and no shipped projection fits it; {listed(tools)}",
            target=name,
            hint="draft one with `hotplug projection new`, or name one with projection=",
        )
    kept = store or await stack.enter_async_context(default_store("projections"))
    provider = projected(loaded, profile, channel, title=name)
    runtime = Runtime(provider, store=kept, identity=account_of(loaded.name, target, kept), name=name)
    await stack.enter_async_context(runtime.opened())
    return MemoryChannel(runtime, name, mask=channel.mask), runtime


def fitting(
    profile: type[Profile], target: Target, projection: str | Path | None, tools: Sequence[Mapping[str, Any]]
) -> Loaded | None:
    """The projection that presents a profile on a target: the one that is named, else a shipped one that fits.

    Args:
        projection: A name or a file; None: found by package and version, else by the list of tools.

    Raises:
        ConfigError: The one that is named is to another profile.
        ProjectionError: There is none of that name, or two fit.
    """
    from hotplug.projection import choose, named

    if projection is None:
        package = package_of(target)
        known = (f"{package.registry}:{package.name}", package.version) if package else None
        return choose(profile.definition.name, package=known, tools=tools)
    loaded = named(str(projection))
    if profile.definition.name not in loaded.source.document.profiles:
        raise ConfigError(f"the projection {loaded.name} is not one to {profile.definition.name}")
    return loaded


def projected(loaded: Loaded, profile: type[Profile], channel: Channel, *, title: str) -> ProjectedProvider:
    """What presents a profile by a projection over a channel."""
    from hotplug.projection import ProjectedProvider

    return ProjectedProvider(loaded.source, profile, channel, tools=loaded.tools, title=title, path=loaded.path)


def listed(tools: Sequence[Mapping[str, Any]]) -> str:
    """The tools of a server, for a message."""
    names = ", ".join(str(tool.get("name")) for tool in tools[:8]) + (" …" if len(tools) > 8 else "")
    return f"its tools: {names or 'none'}"


def in_process(target: Target, store: Store | None) -> tuple[Profile, Store | None, str] | None:
    """A native server that can run in this process: one of the catalog, or one of the caller's own; else None.

    Args:
        store: One that is there already: none is opened then.

    Returns:
        The server, a store of its own where it has one, and its identity for refs.

    Raises:
        ConfigError, StoreError: The target names one that can't be used.
    """
    if isinstance(target, NativeTarget):
        from hotplug.servers import native

        return native(target.scheme, target.path, me=target.me, store=store)
    found: object = None
    if isinstance(target, ObjectTarget):
        found = target.server
    elif isinstance(target, PythonTarget) and target.object:
        from hotplug.connect.launch import import_object

        found = import_object(target)
    if isinstance(found, type) and issubclass(found, Profile):
        found = found()
    if isinstance(found, Profile):
        return found, None, f"{type(found).__module__}.{type(found).__qualname__}"
    return None


def account_of(kind: str, target: Target, store: Store) -> str:
    """The identity for refs of one account behind a kind of server: a keyed hash of its launch tells it apart."""
    body = json.dumps({"target": target.describe(), "settings": _settings(target)}, sort_keys=True, default=str)
    return f"{kind}:{hmac.new(store.sealing_key(), body.encode(), hashlib.sha256).hexdigest()[:24]}"


def _settings(target: Any) -> Any:
    launch = getattr(target, "launch", target)
    return sorted((str(name), str(value)) for name, value in dict(getattr(launch, "env", None) or {}).items())


async def _open_instance(stack: AsyncExitStack, link: Link, setup: Mapping[str, Any]) -> str:
    from hotplug.catalog.connection import Connection

    parts = Connection.definition.parts
    opened = await link.call_wire(parts["connection.open"], {"setup": dict(setup)})
    instance = str(opened["instance"])
    stack.push_async_callback(link.call_wire, parts["connection.close"], {"instance": instance})
    return instance
