"""Servers looked at side by side: which can be reached, what they speak, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import anyio

from hotplug.cli.doctor_causes import Cause, cause_of, causes_of
from hotplug.cli.failure import Exit, particulars
from hotplug.cli.inspect_server import Looked, NotYetThere, look
from hotplug.cli.targets import Given
from hotplug.errors import AuthError, ConfigError, HotplugError, ProjectionError

__all__ = ["Broken", "Examined", "Gets", "State", "examine", "exit_of"]

AT_ONCE: Final = 4
"""Servers that are started at the same time: some are heavy, and a laptop should stay usable."""

State = Literal["fine", "wrong", "unreachable", "disabled"]


@dataclass(frozen=True)
class Broken:
    """An entry of a file that can't be used as it stands."""

    name: str
    file: str
    error: ConfigError


@dataclass(frozen=True)
class Gets:
    """What some threads get of one server.

    Args:
        threads: Which, in words: `a new thread`, `a sub-agent`, an id.
        tools: How many of its tools.
        of: How many it has.
        reason: Why not all, where that is so.
    """

    threads: tuple[str, ...]
    tools: int
    of: int
    reason: str | None = None

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {"threads": list(self.threads), "tools": self.tools, "of": self.of}
        return {**body, "reason": self.reason} if self.reason else body


@dataclass(frozen=True)
class Examined:
    """What came of one server.

    Args:
        state: `wrong` is reached and contradicts itself or what its entry asks for, or its projection no longer fits.
        error: Why it can't be reached, or looked at to the end.
        causes: Each thing that is wrong, with what to do.
        gets: What threads would get of it, where a gateway's configuration says.
        note: Why nothing else is said of it, though it is fine.
    """

    label: str
    target: dict[str, Any]
    state: State
    looked: Looked | None = None
    error: HotplugError | None = None
    causes: tuple[Cause, ...] = ()
    gets: tuple[Gets, ...] = ()
    note: str | None = None

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {"name": self.label, "target": self.target, "state": self.state}
        if self.looked is not None:
            seen = self.looked.document()
            body |= {
                key: seen[key] for key in ("transport", "era", "protocol", "package", "seconds", "profiles", "findings")
            }
            body["tools"] = seen["tools"]["count"]
        if self.error is not None:
            body["error"] = {"code": self.error.code, "message": self.error.message, **particulars(self.error)}
            if self.error.hint:
                body["error"]["hint"] = self.error.hint
        if self.causes:
            body["causes"] = [one.document() for one in self.causes]
        if self.note:
            body["note"] = self.note
        if self.gets:
            body["gets"] = [one.document() for one in self.gets]
        return body


async def examine(
    servers: Sequence[Given | Broken], *, limit: float, progress: Callable[[str], None]
) -> tuple[Examined, ...]:
    """Look at every server, at most four at the same time; what goes wrong with one is its own."""
    found: dict[int, Examined] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def one(number: int, server: Given | Broken) -> None:
        async with limiter:
            if isinstance(server, Given):
                progress(f"looking at {server.label} …")
            found[number] = await _examine(server, limit)

    async with anyio.create_task_group() as group:
        for number, server in enumerate(servers):
            group.start_soon(one, number, server)
    return tuple(found[number] for number in range(len(servers)))


async def _examine(server: Given | Broken, limit: float) -> Examined:
    if isinstance(server, Broken):
        return Examined(
            server.name,
            {"kind": "named", "name": server.name, "file": server.file},
            "unreachable",
            error=server.error,
            causes=(cause_of(server.error, None),),
        )
    target = server.document()
    if server.disabled:
        return Examined(server.label, target, "disabled")
    try:
        looked = await look(server, limit=server.limit or limit)
    except NotYetThere as error:
        if server.name is None:
            return Examined(server.label, target, "unreachable", error=error, causes=(cause_of(error, server),))
        return Examined(server.label, target, "fine", note="it isn't there yet: its first call makes it")
    except HotplugError as error:
        # A projection that can't be used says nothing against the server.
        state: State = "wrong" if isinstance(error, ProjectionError) else "unreachable"
        return Examined(server.label, target, state, error=error, causes=(cause_of(error, server),))
    causes = causes_of(looked, server)
    # An entry that is no tool costs inspect's reader nothing; the doctor is asked whether all is in order.
    wrong = looked.wrong or looked.unusable or causes
    return Examined(server.label, target, "wrong" if wrong else "fine", looked, causes=causes)


def exit_of(examined: Sequence[Examined]) -> Exit:
    """4 if a server can't be reached, 3 if that is only for want of a credential, 1 if one is wrong."""
    errors = [one.error for one in examined if one.state == "unreachable"]
    if errors:
        return Exit.AUTH if all(isinstance(error, AuthError) for error in errors) else Exit.UNREACHABLE
    return Exit.NO if any(one.state == "wrong" for one in examined) else Exit.YES
