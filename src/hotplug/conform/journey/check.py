"""Whether a journey can be played on a backend, said before anything is sent: all that is missing, at once.

A journey is a flat program of the Open Verification Protocol: its capabilities are the parts that its steps call, its
channels the senses that its claims read. What a backend offers and what is watched there is asked of it; nothing that
changes anything is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from hotplug.conform.journey.claims import Holds
from hotplug.conform.journey.document import Journey, Step, Undo
from hotplug.conform.journey.runner import offered
from hotplug.connect import Link
from hotplug.connect.claims.realm import Realm
from hotplug.evidence.typecheck import Call, RealmSurface, typecheck_flat
from hotplug.evidence.witness import Witness
from hotplug.profile import Part

__all__ = ["CHECK_SCHEMA", "BackendCheck", "CheckFault", "JourneyCheck", "check"]

CHECK_SCHEMA: Final = "hotplug.journey-check/1"

Kind = Literal["undeclared-capability", "unobserved-channel", "unknown-argument", "missing-argument"]
"""The first two are the protocol's own."""


@dataclass(frozen=True)
class CheckFault:
    """One reason why a journey isn't played on a backend.

    Args:
        missing: The part, sense, facet or argument that it is about.
        without: What is lost where that is missing, in the profile's words.
    """

    step: str
    kind: Kind
    missing: str
    detail: str
    without: str | None = None

    def document(self) -> dict[str, Any]:
        body = {"step": self.step, "kind": self.kind, "missing": self.missing, "detail": self.detail}
        return body if self.without is None else {**body, "without": self.without}

    def __str__(self) -> str:
        return f"{self.detail}: {self.without}" if self.without else self.detail


@dataclass(frozen=True)
class BackendCheck:
    """A journey checked against one backend.

    Args:
        absent: Steps that won't be played there, since an optional part that they need isn't offered.
        may_refuse: Steps whose refusal is an honest answer: only playing shows whether they are done.
        error: Why it couldn't be asked.
        unreachable: Whether that is since nothing answered.
    """

    name: str
    target: str
    faults: tuple[CheckFault, ...] = ()
    absent: tuple[str, ...] = ()
    may_refuse: tuple[str, ...] = ()
    error: str | None = None
    unreachable: bool = False

    @property
    def portable(self) -> bool | None:
        """Whether every step that has to be played can be; None where nobody could ask."""
        return None if self.error else not self.faults

    def without_channels(self) -> tuple[CheckFault, ...]:
        """The faults but for those of senses that nobody watches."""
        return tuple(one for one in self.faults if one.kind != "unobserved-channel")

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "name": self.name,
            "target": self.target,
            "portable": self.portable,
            "faults": [one.document() for one in self.faults],
            "absent": list(self.absent),
            "mayRefuse": list(self.may_refuse),
        }
        return {**body, "error": self.error} if self.error else body


@dataclass(frozen=True)
class JourneyCheck:
    """A journey checked against several backends."""

    journey: str
    version: str
    digest: str
    steps: tuple[str, ...]
    backends: tuple[BackendCheck, ...]

    @property
    def portable(self) -> bool:
        """Whether it can be played on every one of them."""
        return all(one.portable for one in self.backends)

    @property
    def line(self) -> str:
        """`portable to N of M backends`."""
        return f"portable to {sum(one.portable is True for one in self.backends)} of {len(self.backends)} backends"

    def document(self) -> dict[str, Any]:
        return {
            "journey": {"name": self.journey, "version": self.version, "digest": self.digest},
            "steps": list(self.steps),
            "backends": [one.document() for one in self.backends],
            "portable": self.portable,
            "line": self.line,
        }


async def check(journey: Journey, link: Link, *, name: str, witness: object | None = None) -> BackendCheck:
    """Check every step against what a backend offers and what is watched there.

    Args:
        witness: Its senses count where it can look in windows.

    Raises:
        HotplugError: The backend can't say what it is.
    """
    senses = await _watched(link)
    seen = tuple(one.id for one in witness.channels()) if isinstance(witness, Witness) else ()
    channels = [
        *dict.fromkeys((*senses, *seen)),
        *(Holds.channel_by("subject", one) for one in senses),
        *(Holds.channel_by("witness", one) for one in seen),
    ]
    surface = RealmSurface(tuple(sorted(link.spoken.ways)), tuple(channels))
    faults: list[CheckFault] = []
    absent: list[str] = []
    for step in journey.steps:
        if (unknown := _unknown_need(step, link)) is not None:
            faults.append(unknown)
        elif not offered(step, link):
            absent.append(step.name)
        else:
            faults += _faults(step, link, surface, with_witness=bool(seen))
    return BackendCheck(
        name=name,
        target=link.channel.target,
        faults=tuple(faults),
        absent=tuple(absent),
        may_refuse=tuple(step.name for step in journey.steps if step.may_refuse and step.name not in absent),
    )


async def _watched(link: Link) -> tuple[str, ...]:
    realm = Realm(link, "check")
    realm.meet(await link.describe())
    return tuple(one.id for one in realm.channels)


def _unknown_need(step: Step, link: Link) -> CheckFault | None:
    """A facet or part that no backend could ever offer is a mistake of the journey, not an optional step."""
    if step.needs is None:
        return None
    profile = link.spoken.profile
    for what, word, known in (
        ("facet", step.needs.facet, link.spoken.lost),
        ("part", step.needs.part, link.spoken.known),
    ):
        if word is not None and word not in known:
            has = ", ".join(sorted(known))
            detail = f"{profile} has no {what} {word!r}" + (f", but {has}" if what == "facet" and has else "")
            return CheckFault(step.name, "undeclared-capability", word, detail)
    return None


def _faults(step: Step, link: Link, surface: RealmSurface, *, with_witness: bool) -> Iterator[CheckFault]:
    held = [one for said in (*(step.claims or ()), *(step.constraints or ())) for one in said.all]
    reads = {one.channel: one for one in held}
    calls = [Call(step.do, tuple(reads)), *(Call(part) for part in step.parts[1:])]
    for fault in typecheck_flat(calls, surface):
        if fault.kind == "undeclared-capability":
            yield _undeclared(step, calls[fault.step].capability, link)
    # Which channels are missing is asked one by one: the protocol's finding names them in words alone.
    if step.do in surface.capabilities:
        for channel, one in reads.items():
            if typecheck_flat([Call(step.do, (channel,))], surface):
                yield _unwatched(step, one, with_witness=with_witness)
    for call in (step, step.undo):
        part = link.spoken.known.get(call.do) if call is not None else None
        if call is not None and part is not None and part.name in surface.capabilities:
            yield from _arguments(step, call, part, link)


def _undeclared(step: Step, name: str, link: Link) -> CheckFault:
    part = link.spoken.known.get(name)
    if part is None:
        return CheckFault(step.name, "undeclared-capability", name, f"{name} is no part of {link.spoken.profile}")
    without = part.flags.without or link.spoken.lost.get(part.flags.facet or "")
    return CheckFault(step.name, "undeclared-capability", name, f"{name} isn't offered here", without)


def _unwatched(step: Step, one: Holds, *, with_witness: bool) -> CheckFault:
    match one.by:
        case "witness" if not with_witness:
            detail = f"a claim reads {one.sense} by a witness, and this backend has none"
        case "witness":
            detail = f"a claim reads {one.sense} by a witness, and this backend's doesn't watch it"
        case "subject":
            detail = f"a claim reads {one.sense} by the subject, which doesn't watch it here"
        case _:
            detail = f"a claim reads {one.sense}, and neither this backend nor a witness watches it"
    return CheckFault(step.name, "unobserved-channel", one.sense, detail)


def _arguments(step: Step, call: Step | Undo, part: Part, link: Link) -> Iterator[CheckFault]:
    """Arguments that the part doesn't have, or has only with a facet that isn't offered, and those that are missing."""
    schema = part.input.schema
    given = {name: value for name, value in call.with_.items() if name != "ext"}
    for path, node in _fields(schema, cast("Mapping[str, Any]", schema.get("$defs", {})), given, ""):
        if node is None:
            detail = f"{part.name} has no argument {path!r}"
            yield CheckFault(step.name, "unknown-argument", path, detail)
        elif (facet := node.get("x-facet")) is not None and facet not in link.spoken.facets:
            detail = f"{part.name} takes {path!r} only with the facet {facet}, which isn't offered here"
            yield CheckFault(step.name, "undeclared-capability", str(facet), detail, link.spoken.lost.get(str(facet)))
    for name in cast("Sequence[str]", schema.get("required", ())):
        if name not in given:
            yield CheckFault(step.name, "missing-argument", name, f"{part.name} needs the argument {name!r}")


def _fields(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], value: Any, at: str
) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Every argument in a value, by its path, with the schema of its field; None where there is no such field."""
    if isinstance(value, list):
        items = [one["items"] for one in _branches(schema, definitions) if isinstance(one.get("items"), Mapping)]
        for number, item in enumerate(cast("list[Any]", value)):
            for one in items[:1]:
                yield from _fields(one, definitions, item, f"{at}[{number}]")
    if not isinstance(value, dict):
        return
    branches = [one for one in _branches(schema, definitions) if "properties" in one]
    if not branches:
        return  # an open object, or an expression's place: anything may stand there
    fields: dict[str, Mapping[str, Any]] = {}
    for one in branches:
        fields |= cast("dict[str, Mapping[str, Any]]", one["properties"])
    for name, item in cast("dict[str, Any]", value).items():
        path = f"{at}.{name}" if at else name
        yield path, fields.get(name)
        if name in fields:
            yield from _fields(fields[name], definitions, item, path)


def _branches(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The schemas that may describe a value: what a reference leads to, and each alternative."""
    waiting, seen = [schema], set[int]()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        reference = one.get("$ref")
        if isinstance(reference, str):
            target = definitions.get(reference.removeprefix("#/$defs/"))
            waiting += [cast("Mapping[str, Any]", target)] if isinstance(target, Mapping) else []
        for key in ("anyOf", "oneOf", "allOf"):
            waiting += cast("list[Mapping[str, Any]]", one.get(key, []))
