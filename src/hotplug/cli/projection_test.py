"""Trying a projection: a journey played through it on a live server, against a real Radicale where that is wanted."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hotplug.cli.deadline import within
from hotplug.cli.lookup import find_profile
from hotplug.cli.output import Output
from hotplug.cli.printing import did_you_mean
from hotplug.cli.targets import Given
from hotplug.cli.version import version
from hotplug.errors import ConfigError, HotplugError

if TYPE_CHECKING:
    from hotplug.conform.journey import Journey, JourneyReport, Witness
    from hotplug.projection import Loaded
    from hotplug.testing.radicale import RadicaleServer

__all__ = ["Stage", "environment", "play_through", "stage"]

_PLACES: Final = ("url", "home", "user", "password")
_PLACE: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Stage:
    """Where a journey is played: the server, and who reads what it really stored."""

    server: Given
    witness: Witness | None = None


def environment(words: Sequence[str]) -> dict[str, str]:
    """The variables of `--env NAME=VALUE`.

    Raises:
        ConfigError: A word has no name or no `=`, or names a place that isn't filled in.
    """
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ConfigError(f"--env {word!r} is no variable", hint="write NAME=VALUE")
        for place in _PLACE.findall(value):
            if place not in _PLACES:
                raise ConfigError(
                    f"--env {name}: there is no {{{place}}}",
                    hint=did_you_mean(place, _PLACES) or f"there are {', '.join(f'{{{one}}}' for one in _PLACES)}",
                )
        found[name] = value
    return found


@asynccontextmanager
async def stage(
    out: Output, loaded: Loaded, server: Given | None, env: Mapping[str, str], *, radicale: bool
) -> AsyncGenerator[Stage]:
    """The server that a journey is played on, for as long as the block runs.

    Args:
        server: What was named; with `radicale` it may be left out, and the document's own package is started.
        env: Variables for it; `{url}`, `{home}`, `{user}` and `{password}` are Radicale's.

    Raises:
        ConfigError: No server can be made of this.
    """
    async with AsyncExitStack() as stack:
        witness: Witness | None = None
        if radicale:
            from hotplug.testing.radicale import radicale as running

            caldav = await stack.enter_async_context(running(calendars={"work": "Work"}))
            out.progress("Radicale is running on loopback.")
            witness = _witness(caldav)
            if server is None:
                server, known = _own(loaded, caldav)
                env = {**known, **env}
            lacking = sorted(set(loaded.source.document.requires.env) - set(env) - (server.variables or frozenset()))
            if lacking:
                raise ConfigError(
                    f"{loaded.name} needs {', '.join(lacking)}",
                    hint="say what each is with --env NAME={url}, {home}, {user} or {password}",
                )
            env = {name: _filled(value, caldav) for name, value in env.items()}
        if server is None:
            raise ConfigError("a server is missing", hint="name one with --target or after --, or start --radicale")
        yield Stage(_with_env(server, env), witness)


def _witness(server: RadicaleServer) -> Witness:
    from hotplug.witness import CalDav

    return CalDav(server.user_url, server.username, server.password, describe="Radicale, read over CalDAV")


def _own(loaded: Loaded, server: RadicaleServer) -> tuple[Given, dict[str, str]]:
    """The document's own package at the version that it was tried with, and what is known of how it is set up."""
    from hotplug.connect import CommandTarget, PackageTarget
    from hotplug.testing.published import PUBLISHED, published

    upstream = loaded.source.document.upstream
    registry, _, name = upstream.package.partition(":")
    if name in PUBLISHED:
        ready = published(name)
        return Given(CommandTarget(ready.command)), ready.env(server)
    exact = re.search(r"(?:^|\s)>?=(\d[\w.+-]*)", upstream.versions)
    match registry:
        case "npm" | "pypi":
            return Given(PackageTarget(registry, name, exact[1] if exact else None)), {}
        case _:
            raise ConfigError(f"{upstream.package} is no package that can be started", hint="put its command after --")


def _filled(value: str, server: RadicaleServer) -> str:
    places = {"url": server.url, "home": server.user_url, "user": server.username, "password": server.password}
    return _PLACE.sub(lambda match: places[match[1]], value)


def _with_env(server: Given, env: Mapping[str, str]) -> Given:
    from hotplug.connect import CommandTarget, EntryTarget, PackageTarget

    if not env:
        return server
    target = server.target
    if isinstance(target, CommandTarget | PackageTarget):
        return replace(server, target=replace(target, env={**target.env, **env}))
    if isinstance(target, EntryTarget) and isinstance(target.launch, CommandTarget):
        launch = replace(target.launch, env={**target.launch.env, **env})
        return replace(server, target=replace(target, launch=launch))
    raise ConfigError(f"{target} takes no variables", hint="--env goes with a command or a package")


async def play_through(out: Output, loaded: Loaded, journey: Journey, on: Stage, limit: float) -> JourneyReport:
    """Play a journey through a projection; a server that can't be reached stands in the report with the reason.

    Raises:
        ConfigError: The journey is for a profile that the projection doesn't present.
    """
    from hotplug.conform.journey import BackendOutcome, Cell, JourneyReport, play
    from hotplug.connect import link_of
    from hotplug.door import connect
    from hotplug.store import memory

    name = next((one for one in journey.profiles if one in loaded.source.document.profiles), None)
    if name is None or len(journey.profiles) != 1:
        presents = ", ".join(loaded.source.document.profiles)
        raise ConfigError(
            f"{journey.journey} is played on {', '.join(journey.profiles)}, {loaded.name} presents {presents}"
        )
    profile = find_profile(name).profile

    async def told(_: str, cell: Cell) -> None:
        out.progress(f"{cell.step}: {cell.status}{f' ({cell.code})' if cell.code else ''}")

    label = loaded.name.rpartition(".")[2]
    async with memory() as store:
        try:
            async with AsyncExitStack() as stack:
                made = connect(
                    profile.range(journey.profiles[name]),
                    on.server.target,
                    projection=loaded.path,
                    store=store,
                    start_timeout=limit,
                    **on.server.session,
                )
                connection = await within(limit, stack.enter_async_context(made), on.server.label)
                described = await connection.describe()
                outcome = await play(
                    journey,
                    link_of(connection),
                    name=label,
                    via="projected",
                    witness=on.witness,
                    notes=described.get("notes") or {},
                    on_cell=told,
                )
        except HotplugError as error:
            outcome = BackendOutcome(
                name=label, target=str(on.server.target), via="projected", cells=(), error=str(error)
            )
    return JourneyReport(
        journey=journey.journey,
        version=journey.version,
        digest=journey.digest,
        steps=tuple(step.name for step in journey.steps),
        core=journey.core,
        backends=(outcome,),
        at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        tool=f"hotplug {version()}",
    )
