"""Everything that a reader of a run must check before it believes one: its shape, its references, its verdicts.

A run that cannot be read is `unknown`, never a `no`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, cast

from hotplug.evidence.channels import ChannelDescriptor, declaration_faults, weaker_grade
from hotplug.evidence.coverage import Coverage
from hotplug.evidence.errors import ROOT, EvidenceError
from hotplug.evidence.intent import Claim, Constraint
from hotplug.evidence.observation import Evidence
from hotplug.evidence.predicates import Reader, read_predicate
from hotplug.evidence.readjudicate import GROUND_VERDICT, Bundle, possible_verdicts
from hotplug.evidence.run import VerdictRecord, VerificationRun, citation, outcome_of
from hotplug.evidence.subject import SubjectRef, evidence_is_admissible, invalidation_between
from hotplug.evidence.vocabulary import OVP, RUN_OUTCOMES, ChannelId, RunOutcome
from hotplug.evidence.window import Window
from hotplug.evidence.wire import parse_json, path

__all__ = ["Examined", "Fault", "FaultCode", "examine_run", "verify_run"]

FaultCode = Literal[
    "unreadable",
    "version",
    "duplicate",
    "unresolved",
    "order",
    "channel",
    "inadmissible",
    "overstated",
    "coverage",
    "verdict",
    "supersedes",
    "violation",
    "summary",
    "unjudged",
]
"""What kind of fault: for programs; the wording is for people."""

_VERSION: Final = re.compile(r"(\d+)\.(\d+)")
_MAJOR: Final = OVP.partition(".")[0]


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a run.

    Args:
        where: The JSON path.
    """

    where: str
    code: FaultCode
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


@dataclass(frozen=True)
class Examined:
    """What a reader found.

    Args:
        run: The run, or None where it cannot be read.
        outcome: As computed here; `unknown` for what cannot be read.
        faults: All that is wrong.
        unjudged: What the run does not hold enough of to be checked.
    """

    run: VerificationRun | None
    outcome: RunOutcome
    faults: tuple[Fault, ...]
    unjudged: tuple[Fault, ...] = ()


def verify_run(
    document: object, *, shown_summary: str | None = None, read: Reader = read_predicate
) -> tuple[Fault, ...]:
    """All that is wrong with a run; nothing where it may be believed as far as a run can be.

    Args:
        document: A JSON text, the value of one, or a `VerificationRun`. Only a text shows members that are there twice.
        shown_summary: The outcome that somebody shows beside it.
        read: Understands the predicates of its claims; a claim that it does not understand is checked less closely.
    """
    return examine_run(document, shown_summary=shown_summary, read=read).faults


def examine_run(document: object, *, shown_summary: str | None = None, read: Reader = read_predicate) -> Examined:
    """`verify_run`, with the run, its outcome, and what could not be checked."""
    try:
        run = _readable(document)
    except _Refused as refused:
        return Examined(None, "unknown", refused.faults)
    except EvidenceError as error:
        places = ((error.where, error.problem), *error.more)
        return Examined(None, "unknown", tuple(Fault(where, "unreadable", problem) for where, problem in places))
    outcome = outcome_of(run)
    found = [fault for check in _CHECKS for fault in check(_Known(run, read))]
    found += _summaries(run, outcome, shown_summary)
    return Examined(
        run,
        outcome,
        tuple(fault for fault in found if fault.code != "unjudged"),
        tuple(fault for fault in found if fault.code == "unjudged"),
    )


class _Refused(Exception):
    def __init__(self, *faults: Fault) -> None:
        self.faults = faults


def _readable(document: object) -> VerificationRun:
    if isinstance(document, VerificationRun):
        document = document.document()
    if isinstance(document, str | bytes):
        document = parse_json(document)
    if not isinstance(document, dict):
        raise _Refused(Fault(ROOT, "unreadable", "is no run: a run is one JSON object"))
    members = cast("dict[str, Any]", document)
    stamp = members.get("ovp")
    version = _VERSION.fullmatch(stamp) if isinstance(stamp, str) else None
    if version is None:
        raise _Refused(Fault("$.ovp", "version", "names no version of the protocol, so it can't be read as one"))
    if version[1] != _MAJOR:
        problem = f"is of version {stamp} of the protocol; this reader knows version {_MAJOR} and does not guess"
        raise _Refused(Fault("$.ovp", "version", problem))
    # A minor version only adds; what it adds is carried along unread.
    return VerificationRun.read({**members, "ovp": OVP})


@dataclass(frozen=True)
class _Known:
    """A run with everything by its id."""

    run: VerificationRun
    read: Reader

    @cached_property
    def claims(self) -> Mapping[str, Claim]:
        return {claim.id: claim for claim in self.run.claims}

    @cached_property
    def windows(self) -> Mapping[str, Window]:
        return {window.id: window for window in self.run.windows}

    @cached_property
    def evidence(self) -> Mapping[str, Evidence]:
        return {item.observation.id: item for item in self.run.evidence}

    @cached_property
    def evidence_of(self) -> Mapping[str, tuple[Evidence, ...]]:
        by_window: defaultdict[str, list[Evidence]] = defaultdict(list)
        for item in self.run.evidence:
            by_window[item.observation.window].append(item)
        return {window: tuple(items) for window, items in by_window.items()}

    @cached_property
    def coverage(self) -> Mapping[str, Coverage]:
        return {coverage.window: coverage for coverage in self.run.coverage}

    @cached_property
    def channels(self) -> Mapping[ChannelId, ChannelDescriptor]:
        """What the run and its witnesses declare; a witness's channel also under the name it has where two collide."""
        declared = {channel.id: channel for channel in reversed(self.run.channels)}
        for witness in self.run.witnesses:
            for channel in witness.channels:
                declared.setdefault(channel.id, channel)
                renamed = f"x-{witness.name}-{channel.id.removeprefix('x-')}"
                declared.setdefault(renamed, channel.model_copy(update={"id": renamed}))
                longer = f"x-{witness.name}-{channel.id}"
                declared.setdefault(longer, channel.model_copy(update={"id": longer}))
        return declared

    def of_witness(self, subject: SubjectRef) -> bool:
        return any(_same_subject(subject, witness.subject) for witness in self.run.witnesses)

    @cached_property
    def judged(self) -> tuple[Window, ...]:
        """The windows that are not some witness's own: those with a verdict, and those of no witness's subject."""
        judged = {record.window for record in self.run.verdicts}
        return tuple(
            window for window in self.run.windows if window.id in judged or not self.of_witness(window.subject)
        )


def _same_subject(first: SubjectRef, second: SubjectRef) -> bool:
    return evidence_is_admissible(first, second) and invalidation_between(first, second) is None


def _ids(known: _Known) -> Iterator[Fault]:
    run = known.run
    lists: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("witnesses", "name", (one.name for one in run.witnesses)),
        ("intents", "id", (one.id for one in run.intents)),
        ("claims", "id", (one.id for one in run.claims)),
        ("constraints", "id", (one.id for one in run.constraints)),
        ("actions", "id", (one.id for one in run.actions)),
        ("receipts", "action", (one.action for one in run.receipts)),
        ("windows", "id", (one.id for one in run.windows)),
        ("evidence", "observation.id", (one.observation.id for one in run.evidence)),
        ("coverage", "window", (one.window for one in run.coverage)),
        ("verdicts", "id", (one.id for one in run.verdicts)),
    )
    for name, member, ids in lists:
        yield from _once(f"$.{name}", member, ids)
    for position, claim in enumerate(run.claims):
        ids = (assertion.id for assertion in claim.assertions)
        yield from _once(f"$.claims[{position}].assertions", "id", ids)


def _once(where: str, member: str, ids: Iterable[str]) -> Iterator[Fault]:
    seen: set[str] = set()
    for position, one in enumerate(ids):
        if one in seen:
            problem = f"{one!r} is there twice in this list: which one is meant can't be told"
            yield Fault(f"{where}[{position}].{member}", "duplicate", problem)
        seen.add(one)


def _references(known: _Known) -> Iterator[Fault]:
    run = known.run
    claims, windows, evidence = known.claims, known.windows, known.evidence
    intents = {one.id for one in run.intents}
    constraints = {one.id for one in run.constraints}
    actions = {one.id for one in run.actions}
    verdicts = {citation(run.id, one.id) for one in run.verdicts}

    def each(where: str, names: Iterable[str], there: Iterable[str] | Mapping[str, Any], what: str) -> Iterator[Fault]:
        for position, name in enumerate(names):
            if name not in there:
                yield Fault(f"{where}[{position}]", "unresolved", f"{name!r} is no {what} of this run")

    def one(where: str, name: str | None, there: Iterable[str] | Mapping[str, Any], what: str) -> Iterator[Fault]:
        if name is not None and name not in there:
            yield Fault(where, "unresolved", f"{name!r} is no {what} of this run")

    for i, intent in enumerate(run.intents):
        yield from each(f"$.intents[{i}].claims", intent.claims, claims, "claim")
    for i, claim in enumerate(run.claims):
        yield from one(f"$.claims[{i}].intent", claim.intent, intents, "intent")
    for i, constraint in enumerate(run.constraints):
        yield from one(f"$.constraints[{i}].window", _bound(constraint), windows, "window")
    for i, receipt in enumerate(run.receipts):
        yield from one(f"$.receipts[{i}].action", receipt.action, actions, "action")
    for i, item in enumerate(run.evidence):
        yield from one(f"$.evidence[{i}].observation.window", item.observation.window, windows, "window")
    for i, coverage in enumerate(run.coverage):
        yield from one(f"$.coverage[{i}].window", coverage.window, windows, "window")
    for i, anomaly in enumerate(run.anomalies):
        yield from each(f"$.anomalies[{i}].evidence", anomaly.evidence, evidence, "evidence")
    for i, record in enumerate(run.verdicts):
        yield from one(f"$.verdicts[{i}].claim", record.claim, claims, "claim")
        yield from one(f"$.verdicts[{i}].window", record.window, windows, "window")
        yield from each(f"$.verdicts[{i}].evidence", record.evidence, evidence, "evidence")
        for j, anomaly in enumerate(record.anomalies):
            yield from each(f"$.verdicts[{i}].anomalies[{j}].evidence", anomaly.evidence, evidence, "evidence")
    for i, violation in enumerate(run.violations):
        yield from one(f"$.violations[{i}].constraint", violation.constraint, constraints, "constraint")
        yield from each(f"$.violations[{i}].evidence", violation.evidence, evidence, "evidence")
    for i, repair in enumerate(run.repairs):
        if repair.verdict.startswith(f"{run.id}#"):
            yield from one(f"$.repairs[{i}].verdict", repair.verdict, verdicts, "verdict")
        yield from each(f"$.repairs[{i}].evidence", repair.evidence, evidence, "evidence")


def _times(known: _Known) -> Iterator[Fault]:
    if known.run.ended_at < known.run.started_at:
        yield Fault("$.endedAt", "order", "is before startedAt")
    for position, window in enumerate(known.run.windows):
        if window.closed_at is not None and window.closed_at < window.opened_at:
            yield Fault(f"$.windows[{position}].closedAt", "order", "is before openedAt")


def _channels(known: _Known) -> Iterator[Fault]:
    run = known.run
    by_witness = {channel.id for witness in run.witnesses for channel in witness.channels}
    own = [channel for channel in run.channels if channel.id not in by_witness]
    shared = [channel for channel in run.channels if channel.id in by_witness]
    for problem in (*declaration_faults(own), *declaration_faults(shared, witness=True)):
        yield Fault("$.channels", "channel", problem)
    for position, witness in enumerate(run.witnesses):
        for problem in declaration_faults(witness.channels, witness=True):
            yield Fault(f"$.witnesses[{position}].channels", "channel", problem)


def _evidence(known: _Known) -> Iterator[Fault]:
    for position, item in enumerate(known.run.evidence):
        where = f"$.evidence[{position}]"
        window = known.windows.get(item.observation.window)
        subject = item.provenance.subject
        if window is not None and not _same_subject(subject, window.subject) and not known.of_witness(subject):
            changed = invalidation_between(subject, window.subject)
            seen = "another subject" if changed is None else f"{changed.kind} {changed.from_}"
            watched = "" if changed is None else f" {changed.to}"
            problem = f"was seen of {seen}, its window watches{watched}, and no witness of this run watches that"
            yield Fault(f"{where}.provenance.subject", "inadmissible", problem)
        channel = known.channels.get(item.observation.channel)
        if channel is None:
            problem = f"nobody in this run declared the channel {item.observation.channel!r}"
            yield Fault(f"{where}.observation.channel", "channel", problem)
            continue
        if item.independence == "independent" != channel.independence:
            problem = f"is more independent than its channel {channel.id!r}, which is {channel.independence}"
            yield Fault(f"{where}.independence", "overstated", problem)
        if weaker_grade(item.grade, channel.grade) != item.grade:
            problem = f"is worth more than its channel {channel.id!r}, which shows {channel.grade} at most"
            yield Fault(f"{where}.grade", "overstated", problem)


def _coverage(known: _Known) -> Iterator[Fault]:
    for position, record in enumerate(known.run.verdicts):
        if record.window in known.windows and record.window not in known.coverage:
            problem = f"the window {record.window!r} was judged without a coverage: what was out of sight is not known"
            yield Fault(f"$.verdicts[{position}].window", "coverage", problem)


def _supersedes(known: _Known) -> Iterator[Fault]:
    run = known.run
    records = {citation(run.id, record.id): record for record in run.verdicts}
    circles = _circles(records)
    times = Counter(record.supersedes for record in run.verdicts if record.supersedes is not None)
    for position, record in enumerate(run.verdicts):
        cited = record.supersedes
        if cited is None:
            continue
        where = f"$.verdicts[{position}].supersedes"
        target = records.get(cited)
        if target is None:
            if cited.startswith(f"{run.id}#"):
                yield Fault(where, "supersedes", f"{cited!r} is no verdict of this run")
            else:
                yield Fault(where, "unjudged", f"{cited!r} is a verdict of another run, which was not given")
        elif target.id == record.id:
            yield Fault(where, "supersedes", "supersedes itself")
        elif target.claim != record.claim:
            problem = f"corrects a verdict about the claim {target.claim!r}, and is about {record.claim!r}"
            yield Fault(where, "supersedes", problem)
        elif citation(run.id, record.id) in circles:
            yield Fault(where, "supersedes", "is superseded by what it supersedes")
        if times[cited] > 1:
            yield Fault(where, "supersedes", f"{cited!r} is superseded twice: which correction holds can't be told")


def _circles(records: Mapping[str, VerdictRecord]) -> frozenset[str]:
    """The citations of records that supersede each other in a circle."""
    circles: set[str] = set()
    done: set[str] = set()
    for start in records:
        steps: list[str] = []
        here: str | None = start
        while here is not None and here in records and here not in done:
            done.add(here)
            steps.append(here)
            here = records[here].supersedes
        if here in steps:
            circles.update(steps[steps.index(here) :])
    return frozenset(circles)


def _verdicts(known: _Known) -> Iterator[Fault]:
    bundle = Bundle(known.run, known.channels, known.evidence, known.evidence_of, known.judged, known.read)
    judged = {window.id for window in known.judged}
    belongs: dict[str, str] = {}
    for position, record in enumerate(known.run.verdicts):
        where = f"$.verdicts[{position}]"
        if record.grade is not None and (record.verdict, record.grade) != ("yes", "consequence"):
            yield Fault(f"{where}.grade", "verdict", "only a yes has a grade, and that is consequence")
        if record.ground is not None and GROUND_VERDICT[record.ground] != record.verdict:
            problem = f"{record.ground} is a ground of {GROUND_VERDICT[record.ground]}, never of {record.verdict}"
            yield Fault(f"{where}.ground", "verdict", problem)
            continue
        claim, window = known.claims.get(record.claim), known.windows.get(record.window)
        coverage = known.coverage.get(record.window)
        if claim is None or window is None or coverage is None:
            continue
        if record.supersedes is not None:
            problem = f"corrects {record.supersedes} with what was learned later, which a run does not hold"
            yield Fault(where, "unjudged", problem)
            continue
        yield from _cited(known, record, window, where, judged, belongs)
        found = possible_verdicts(bundle, record, claim, window, coverage)
        fits = any(record.verdict == verdict and record.ground in (None, ground) for verdict, ground in found.verdicts)
        if not fits:
            given = " or ".join(f"{verdict} ({ground})" for verdict, ground in found.verdicts)
            said = record.verdict if record.ground is None else f"{record.verdict} ({record.ground})"
            yield Fault(where, "verdict", f"says {said}; what the run holds gives {given}")
        elif found.open:
            yield Fault(where, "unjudged", f"could only be checked in part: {'; '.join(found.open)}")


def _cited(
    known: _Known, record: VerdictRecord, window: Window, where: str, judged: Set[str], belongs: dict[str, str]
) -> Iterator[Fault]:
    """Evidence that a verdict cites must be of its window, or of a window of a witness that goes with it alone.

    Args:
        belongs: For each window of a witness, the one that it goes with, as far as is known; grows here.
    """
    for position, name in enumerate(record.evidence):
        seen = known.evidence.get(name)
        there = known.windows.get(seen.observation.window) if seen is not None else None
        if there is None or there.id == window.id:
            continue
        place = f"{where}.evidence[{position}]"
        if there.id in judged:
            yield Fault(place, "inadmissible", f"{name!r} was seen in the window {there.id!r}, not in {window.id!r}")
        elif belongs.setdefault(there.id, window.id) != window.id:
            problem = f"{name!r} was seen in {there.id!r}, which went with the window {belongs[there.id]!r}"
            yield Fault(place, "inadmissible", problem)
        elif not _overlap(there, window):
            problem = f"{name!r} was seen in {there.id!r}, which by its own clock was open at another time"
            yield Fault(place, "unjudged", problem)


def _overlap(first: Window, second: Window) -> bool:
    return (first.closed_at is None or first.closed_at >= second.opened_at) and (
        second.closed_at is None or second.closed_at >= first.opened_at
    )


def _bound(constraint: Constraint) -> str | None:
    """The window throughout which it had to hold, where its producer says so: our addition."""
    named: object = (constraint.model_extra or {}).get("window")
    return named if isinstance(named, str) else None


def _violations(known: _Known) -> Iterator[Fault]:
    """A constraint that the run's own evidence breaks for good must be recorded as violated."""
    recorded = {violation.constraint for violation in known.run.violations}
    for position, constraint in enumerate(known.run.constraints):
        reading = known.read(constraint.predicate) if constraint.carries("predicate") else None
        if constraint.id in recorded or reading is None:
            continue
        bound = _bound(constraint)
        windows = [window for window in known.judged if bound is None or window.id == bound]
        for window in windows:
            seen = tuple(item.observation for item in known.evidence_of.get(window.id, ()))
            if reading.evaluate(seen) is False and not reading.repairable(seen):
                only = len(windows) == 1
                problem = f"what was seen in the window {window.id!r} breaks it, and no violation is recorded"
                yield Fault(f"$.constraints[{position}]", "violation" if only else "unjudged", problem)
                break


_CHECKS: Final[tuple[Callable[[_Known], Iterator[Fault]], ...]] = (
    _ids,
    _references,
    _times,
    _channels,
    _evidence,
    _coverage,
    _supersedes,
    _verdicts,
    _violations,
)


def _summaries(run: VerificationRun, outcome: RunOutcome, shown: str | None) -> Iterator[Fault]:
    """An outcome that somebody wrote beside the run, as an argument or as a member that the protocol does not have."""
    claimed: list[tuple[str, object]] = [] if shown is None else [("the summary shown beside it", shown)]
    for name in ("outcome", "summary"):
        beside = (run.model_extra or {}).get(name)
        if isinstance(beside, dict):
            claimed.append((path([name, "outcome"]), cast("dict[str, Any]", beside).get("outcome")))
        elif name == "outcome" or beside in RUN_OUTCOMES:
            claimed.append((path([name]), beside))
    for where, said in claimed:
        if said is not None and said != outcome:
            yield Fault(where, "summary", f"says {said!r}; the run's own verdicts come to {outcome}")
