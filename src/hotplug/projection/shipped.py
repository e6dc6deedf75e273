"""Which projection fits a server: the shipped ones by package and version, or by the digest of the tool list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, cast

from hotplug.errors import ProjectionError
from hotplug.projection import fingerprint
from hotplug.projection.document import Source
from hotplug.projection.files import read, tool_list

__all__ = ["Loaded", "choose", "load", "named", "shipped"]

_FOLDER: Final = Path(__file__).parent / "library"
ENTRY_POINTS: Final = "hotplug.projections"


@dataclass(frozen=True)
class Loaded:
    """A projection with the tool list that it was frozen with."""

    source: Source
    path: Path
    tools: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        return self.source.document.projection


def load(path: str | Path) -> Loaded:
    """Read a projection and the tool list beside it.

    Raises:
        ProjectionError: Either can't be read or is wrong.
    """
    file = Path(path)
    return Loaded(read(file), file, tuple(cast("Sequence[Mapping[str, Any]]", tool_list(file))))


@cache
def shipped() -> tuple[Loaded, ...]:
    """The projections that come with Hotplug: the only ones that apply by themselves."""
    return tuple(load(path) for path in sorted(_FOLDER.glob("*.yaml")))


def named(name: str) -> Loaded:
    """The projection of that name: a file, a shipped one, or one of an installed package.

    Raises:
        ProjectionError: There is none.
    """
    if name.endswith((".yaml", ".yml")):
        return load(name)
    for one in shipped():
        if one.name in {name, f"dev.hotplug.{name}"}:
            return one
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            return load(cast("str | Path", point.load()))
    known = ", ".join(one.name for one in shipped())
    raise ProjectionError(f"there is no projection {name!r}", hint=f"name a file, or one of {known}")


def choose(
    profile: str,
    *,
    package: tuple[str, str | None] | None,
    tools: Iterable[Mapping[str, Any]],
    candidates: Iterable[Loaded] | None = None,
) -> Loaded | None:
    """The shipped projection to a profile that fits a server; None where none does.

    By package and version where the launch command shows them, else by the structural digest of the tool list.

    Args:
        package: `("npm:caldav-mcp", "0.10.0")`; the version is None where the command names none.

    Raises:
        ProjectionError: Two fit; name one.
    """
    able = [one for one in (shipped() if candidates is None else candidates) if profile in one.source.document.profiles]
    listed = fingerprint.tools_digest(cast("Any", list(tools)))
    fitting: list[Loaded] = []
    for one in able:
        upstream = one.source.document.upstream
        if package is not None and upstream.package.lower() == package[0].lower():
            if package[1] is None or upstream.fits(package[0], package[1]):
                fitting.append(one)
        elif package is None and fingerprint.tools_digest(cast("Any", list(one.tools))) == listed:
            fitting.append(one)
    if len(fitting) > 1:
        names = ", ".join(one.name for one in fitting)
        raise ProjectionError(f"{len(fitting)} projections fit: {names}", hint="name the one that is meant")
    return fitting[0] if fitting else None
