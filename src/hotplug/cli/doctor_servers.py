"""Servers looked at side by side: which can be reached, what they speak, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import anyio

from hotplug.cli.failure import particulars
from hotplug.cli.inspect_server import Looked, look
from hotplug.cli.targets import Given
from hotplug.errors import ConfigError, HotplugError

__all__ = ["Broken", "Examined", "State", "examine"]

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
class Examined:
    """What came of one server.

    Args:
        state: `wrong` is reached and contradicts itself, or its projection no longer fits.
        error: Why it can't be reached.
    """

    label: str
    target: dict[str, Any]
    state: State
    looked: Looked | None = None
    error: HotplugError | None = None

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
            server.name, {"kind": "named", "name": server.name, "file": server.file}, "unreachable", error=server.error
        )
    target = server.document()
    if server.disabled:
        return Examined(server.label, target, "disabled")
    try:
        looked = await look(server, limit=limit)
    except HotplugError as error:
        return Examined(server.label, target, "unreachable", error=error)
    # An entry that is no tool costs inspect's reader nothing; the doctor is asked whether all is in order.
    return Examined(server.label, target, "wrong" if looked.wrong or looked.unusable else "fine", looked)
