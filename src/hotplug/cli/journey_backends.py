"""The backends that a journey is played on: connected to all at once, each with whoever looks at what it stores."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hotplug.cli.deadline import within
from hotplug.cli.output import Output
from hotplug.cli.printing import did_you_mean
from hotplug.cli.targets import Given, given
from hotplug.errors import ConfigError, HotplugError

if TYPE_CHECKING:
    from hotplug.conform.journey import Journey
    from hotplug.evidence.witness import Witness

__all__ = ["Backend", "Named", "named", "opened"]

_READY: Final = 120.0
"""Seconds until a backend must be ready to be called; a package may have to be downloaded first."""

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_KINDS: Final = ("caldav", "folder", "sqlite")


@dataclass(frozen=True)
class Named:
    """A backend as it was named, before anything is started.

    Args:
        witness: The word after `--witness` that is for it.
        otherwise: The one for every backend that has none of its own.
    """

    name: str
    server: Given
    witness: str | None = None
    otherwise: str | None = None


@dataclass(frozen=True)
class Backend:
    """A backend that is connected to, or why it isn't.

    Args:
        connection: None where it couldn't be connected to.
        via: `native`, `projected`, or `unknown`.
    """

    name: str
    target: str
    connection: Any = None
    via: str = "unknown"
    witness: Witness | None = None
    error: HotplugError | None = None


def named(out: Output, on: Sequence[str], witnesses: Sequence[str]) -> tuple[Named, ...]:
    """The backends of `--on [NAME=]TARGET`, with the witnesses of `--witness [NAME=]WITNESS`.

    Raises:
        ConfigError: A word means nothing, two backends have one name, or a witness is for none of them.
    """
    words = [_named(word) for word in on]
    labels = [label for label, _ in words]
    if doubled := sorted({label for label in labels if labels.count(label) > 1}):
        raise ConfigError(f"two backends are called {', '.join(doubled)}", hint="name each: --on NAME=TARGET")
    found: dict[str | None, str] = {}
    for word in witnesses:
        label, witness = _witness_of(word, labels)
        if label in found:
            who = f"{label} has" if label else "backends without one of their own have"
            raise ConfigError(f"{who} two witnesses: {found[label]} and {witness}", hint="name one of them")
        _witness(witness)  # refused here also where nobody needs it
        found[label] = witness
    return tuple(Named(label, given(out, target), found.get(label), found.get(None)) for label, target in words)


def _named(word: str) -> tuple[str, str]:
    label, equals, target = word.partition("=")
    if equals and _is_name(label) and target:
        return label, target
    scheme, _, rest = word.partition(":")
    rest = rest.partition("?me=")[0]
    return (f"{scheme}:{Path(rest.lstrip('/')).name}" if scheme in {"sqlite", "folder"} else word[:24]), word


def _is_name(word: str) -> bool:
    return word.replace("-", "").replace("_", "").isalnum()


def _witness_of(word: str, labels: Sequence[str]) -> tuple[str | None, str]:
    label, equals, witness = word.partition("=")
    if not (equals and (label in labels or _is_name(label))):
        return None, word
    if label not in labels:
        hint = did_you_mean(label, labels) or f"the backends are {', '.join(labels)}"
        raise ConfigError(f"--witness {label}=…: no backend is called {label!r}", hint=hint)
    return label, witness


@asynccontextmanager
async def opened(out: Output, document: Journey, named: Sequence[Named]) -> AsyncGenerator[tuple[Backend, ...]]:
    """Every backend, connected to for as long as the block runs; one that can't be reached says why.

    Raises:
        ConfigError: The catalog has no such profile, or a witness can't be made.
    """
    from hotplug.catalog import profile_class

    if len(document.profiles) != 1:
        raise ConfigError("this build plays journeys over one profile", hint="split the journey")
    ((name, range_),) = document.profiles.items()
    try:
        profile = profile_class(name)
    except KeyError:
        raise ConfigError(f"the journey needs the profile {name!r}, which the catalog doesn't have") from None
    witnesses = [_made(one) for one in named]
    async with AsyncExitStack() as stack:
        for witness in filter(None, witnesses):
            stack.push_async_callback(witness.aclose)
        found: list[Backend] = []
        for one, witness in zip(named, witnesses, strict=True):
            out.progress(f"{one.name}: starting")
            found.append(await _open(stack, profile.range(range_), name, one, witness))
        yield tuple(found)


async def _open(stack: AsyncExitStack, profile: Any, name: str, one: Named, witness: Witness | None) -> Backend:
    from hotplug.door import connect

    target = str(one.server.target)
    try:
        made = connect(profile, one.server.target, projection=one.server.projection, **one.server.session)
        connection = await within(_READY, stack.enter_async_context(made), one.server.label)
        via = _via(await connection.describe(), name)
    except HotplugError as error:
        return Backend(one.name, target, witness=witness, error=error)
    return Backend(one.name, target, connection, via, witness)


def _via(described: Mapping[str, Any], profile: str) -> str:
    cards = described.get("declaration", {}).get("org.classprofiles/profiles", {}).get("profiles", [])
    return next((str(card.get("via", "native")) for card in cards if card.get("profile") == profile), "native")


def _made(one: Named) -> Witness | None:
    """The witness that was named for a backend, else the one that a native backend has anyhow, else that of all."""
    from hotplug.connect import NativeTarget
    from hotplug.witness import CalendarFolder, CalendarTables

    target = one.server.target
    if one.witness is None and isinstance(target, NativeTarget) and target.path != ":memory:":
        return CalendarTables(target.path) if target.scheme == "sqlite" else CalendarFolder(target.path)
    word = one.witness or one.otherwise
    return None if word is None else _witness(word)


def _witness(word: str) -> Witness:
    """The witness of `caldav:URL`, `folder:DIR` or `sqlite:///FILE`; `${NAME}` is a variable of the environment.

    Raises:
        ConfigError: It is none of these, or a variable isn't set.
    """
    from hotplug.witness import CalDav, CalendarFolder, CalendarTables

    def variable(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if value is None:
            raise ConfigError(f"--witness {word}: the variable {match[1]} is not set")
        return value

    kind, colon, place = _VARIABLE.sub(variable, word).partition(":")
    match kind:
        case "caldav" if place:
            return CalDav(place)
        case "folder" if place:
            return CalendarFolder(place)
        case "sqlite" if place.removeprefix("///"):
            return CalendarTables(place.removeprefix("///"))
        case _:
            close = did_you_mean(kind, _KINDS) if colon else None
            raise ConfigError(
                f"--witness {word[:40]!r} is no witness",
                hint=close or "write caldav:URL, folder:DIR or sqlite:///FILE, after NAME= for one backend alone",
            )
