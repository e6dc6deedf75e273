"""Checks of programs before anything is dispatched: flat ones against a realm, composite ones against each other.

Every fault is reported, each with the step it is about. A requirement that nobody can judge is a fault of its own kind,
never agreement.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hotplug.evidence.language import Flow, Invoke
from hotplug.evidence.vocabulary import ChannelId, CompilePhase, TypeErrorKind, Verdict

__all__ = [
    "ABSENT",
    "Address",
    "Call",
    "Compiled",
    "Composite",
    "Criteria",
    "Criterion",
    "Portability",
    "RealmSurface",
    "Satisfies",
    "Site",
    "TypeFault",
    "compile_for",
    "grade_criteria",
    "portable_across",
    "typecheck_composite",
    "typecheck_flat",
]

ABSENT: Final = object()
"""A contract that was not given: null is one."""

Satisfies = Callable[[Any, Any], bool | None]
"""`satisfies(established, requires)` of a realm: None where it can't tell. What is established is None at first."""


@dataclass(frozen=True)
class Site:
    """A step of a document."""

    flow: str
    step: int
    """Counted from 0."""

    def __str__(self) -> str:
        return f"{self.flow}#{self.step}"


@dataclass(frozen=True)
class Address:
    """A step of a document, and by which calls it was reached: the nearest caller first, none at the entry."""

    flow: str
    step: int
    via: tuple[Site, ...] = ()

    def __str__(self) -> str:
        called = f" (invoked from {', '.join(map(str, self.via))})" if self.via else ""
        return f"{self.flow}#{self.step}{called}"


@dataclass(frozen=True)
class TypeFault:
    """One reason why a program is not emitted.

    Args:
        step: Counted from 0, in the document that `at` names.
        at: In composites, the call site; None for an entry that does not exist.
    """

    step: int
    kind: TypeErrorKind
    detail: str
    at: Address | None = None

    def __str__(self) -> str:
        return f"{self.at if self.at is not None else f'step {self.step}'}: {self.kind}: {self.detail}"


@dataclass(frozen=True)
class Call:
    """One step of a flat program: a capability, and the channels it reads."""

    capability: str
    reads: tuple[ChannelId, ...] = ()


@dataclass(frozen=True)
class RealmSurface:
    """What a program is checked against: what a realm can do and show."""

    capabilities: tuple[str, ...]
    channels: tuple[ChannelId, ...]


def typecheck_flat(steps: Iterable[Call], realm: RealmSurface) -> tuple[TypeFault, ...]:
    """All faults of a flat program, in order. A step whose capability is unknown has no further ones."""
    return tuple(_flat(steps, realm))


def _flat(steps: Iterable[Call], realm: RealmSurface) -> Iterable[TypeFault]:
    capabilities, channels = frozenset(realm.capabilities), frozenset(realm.channels)
    for position, step in enumerate(steps):
        if step.capability not in capabilities:
            detail = f"{step.capability!r} is no capability here; declared: {_named(realm.capabilities)}"
            yield TypeFault(position, "undeclared-capability", detail)
            continue
        for channel in step.reads:
            if channel not in channels:
                detail = f"channel {channel!r} is not observed here; declared: {_named(realm.channels)}"
                yield TypeFault(position, "unobserved-channel", detail)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


@dataclass(frozen=True)
class Compiled:
    """A program, or the phase at which it failed and why: never both."""

    program: tuple[Call, ...] | None
    failed_at: CompilePhase | None = None
    errors: tuple[TypeFault, ...] = ()

    @property
    def ok(self) -> bool:
        return self.program is not None


def compile_for(steps: Iterable[Call], realm: RealmSurface) -> Compiled:
    """The program for a realm; none comes out of steps that do not typecheck."""
    program = tuple(steps)
    errors = typecheck_flat(program, realm)
    return Compiled(None, "typecheck", errors) if errors else Compiled(program)


@dataclass(frozen=True)
class Portability:
    """Whether a program runs on a realm; a no names what is missing."""

    portable: bool
    missing: tuple[str, ...]


def portable_across(steps: Iterable[Call], realms: Mapping[str, RealmSurface]) -> dict[str, Portability]:
    """For each realm by name, whether the program runs there."""
    program = tuple(steps)
    found = {name: typecheck_flat(program, realm) for name, realm in realms.items()}
    return {name: Portability(not faults, tuple(fault.detail for fault in faults)) for name, faults in found.items()}


@dataclass(frozen=True)
class Criterion:
    """A criterion is a program: what to call, and what it reads."""

    name: str
    capability: str
    reads: tuple[ChannelId, ...] = ()


@dataclass(frozen=True)
class Criteria:
    """What criteria come to, with their names."""

    verdict: Verdict
    passed: tuple[str, ...]
    failed: tuple[str, ...]
    unchecked: tuple[str, ...]


def grade_criteria(criteria: Iterable[Criterion], observed: Mapping[str, bool | None]) -> Criteria:
    """Grade criteria by what was observed of each, by name.

    One failed criterion decides; one without an answer leaves it open, and so does an empty set.
    """
    by_answer: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for criterion in criteria:
        by_answer[observed.get(criterion.name)].append(criterion.name)
    passed, failed, unchecked = (tuple(by_answer[answer]) for answer in (True, False, None))
    verdict: Literal["yes", "no", "unknown"] = "no" if failed else "unknown" if unchecked or not passed else "yes"
    return Criteria(verdict, passed, failed, unchecked)


@dataclass(frozen=True)
class Composite:
    """A document as far as its composition goes.

    Args:
        invokes: For each step, the document that it invokes, or None for an action.
        requires: Opaque; ABSENT where not given.
        ensures: Opaque; ABSENT where not given.
    """

    name: str
    invokes: tuple[str | None, ...] = ()
    requires: Any = ABSENT
    ensures: Any = ABSENT

    @classmethod
    def of(cls, flow: Flow) -> Composite:
        """The composition of a flow."""
        return cls(
            flow.name,
            tuple(step.invoke if isinstance(step, Invoke) else None for step in flow.steps),
            flow.requires if flow.carries("requires") else ABSENT,
            flow.ensures if flow.carries("ensures") else ABSENT,
        )


def typecheck_composite(
    documents: Iterable[Composite], entry: str, satisfies: Satisfies | None = None
) -> tuple[TypeFault, ...]:
    """All faults of a composition, depth first from `entry`.

    Each document's structure is walked once; one that is reached again is only stitched again. The entry's `requires`
    seeds the journey and is not checked. After one stitch that does not hold nothing is compared any more.

    Args:
        documents: Those that may be invoked; of two with one name the first counts.
        satisfies: The realm's judgement of contracts; without it they are not checked.
    """
    known: dict[str, Composite] = {}
    for document in documents:
        known.setdefault(document.name, document)
    return _Walk(known, satisfies).run(entry)


_Visit = Generator["_Visit", Any, Any]


class _Walk:
    """One check. Visits are generators on a stack of ours, so that a long chain of documents is no deep recursion."""

    def __init__(self, known: Mapping[str, Composite], satisfies: Satisfies | None) -> None:
        self._known = known
        self._satisfies = satisfies
        self._faults: list[TypeFault] = []
        self._walked: set[str] = set()
        self._left: dict[tuple[str, int], Any] = {}
        self._path: list[str] = []
        self._on_path: set[str] = set()
        self._sites: list[Site] = []

    def run(self, entry: str) -> tuple[TypeFault, ...]:
        stack: list[_Visit] = [self._visit(entry, ABSENT)]
        answer: Any = None
        while stack:
            try:
                stack.append(stack[-1].send(answer))
                answer = None
            except StopIteration as stop:
                stack.pop()
                answer = stop.value
        return tuple(self._faults)

    def _visit(self, name: str, established: Any) -> _Visit:
        """Walk one document, and give what is established after it."""
        if name in self._on_path:
            self._fault("cyclic-invocation", f"a document invokes itself: {' → '.join([*self._path, name])}")
            return established
        document = self._known.get(name)
        if document is None:
            self._fault("unresolved-flow", f"there is no document {name!r}; known: {_named(sorted(self._known))}")
            return established
        if self._sites:
            self._stitch(document, established)
        inside = established if document.requires is ABSENT else document.requires
        key = (name, id(inside))
        if key not in self._left:
            left = inside
            self._path.append(name)
            self._on_path.add(name)
            # A document walked before, now with something else established: only its stitches can differ.
            again = name in self._walked
            self._walked.add(name)
            for position, invoked in enumerate(document.invokes):
                if invoked is not None and not (again and (invoked in self._on_path or invoked not in self._known)):
                    self._sites.append(Site(name, position))
                    left = yield self._visit(invoked, left)
                    self._sites.pop()
            self._path.pop()
            self._on_path.discard(name)
            self._left[key] = left
        return self._left[key] if document.ensures is ABSENT else document.ensures

    def _stitch(self, document: Composite, established: Any) -> None:
        if self._satisfies is None or document.requires is ABSENT:
            return
        answer = self._satisfies(None if established is ABSENT else established, document.requires)
        if answer is True:
            return
        self._satisfies = None
        if answer is False:
            self._fault("unsatisfied-requirement", f"what is established here is not what {document.name!r} requires")
        else:
            self._fault("unjudged-requirement", f"the realm can't tell whether {document.name!r} may start here")

    def _fault(self, kind: TypeErrorKind, detail: str) -> None:
        if not self._sites:
            self._faults.append(TypeFault(0, kind, detail))
            return
        nearest, *callers = reversed(self._sites)
        at = Address(nearest.flow, nearest.step, tuple(callers))
        self._faults.append(TypeFault(nearest.step, kind, detail, at))
