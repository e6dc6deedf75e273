"""A window on a connection: claims are written down, things are done, everybody looks, each claim gets its verdict.

Source: Open Verification Protocol 1, "From realm output to adjudication input"; the design's page verification.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, cast

import anyio

from hotplug.connect.claims.conditions import Condition, Constraint, predicate_reader
from hotplug.connect.claims.realm import Closing, Realm, now_ms
from hotplug.connect.claims.recording import run_of
from hotplug.connect.claims.redaction import Redactor
from hotplug.connect.claims.sources import Sources, WitnessView
from hotplug.connect.claims.translation import sense_of
from hotplug.connect.claims.verdict import Claimed, Verdict, lines_of
from hotplug.connect.client import Link
from hotplug.errors import ConnectionFailed, HotplugError, InvalidArgument
from hotplug.evidence import (
    Adjudication,
    AdjudicationInput,
    Admitted,
    Anomaly,
    Assertion,
    BlindSpot,
    Claim,
    CloseCondition,
    ConstraintViolation,
    Coverage,
    Evidence,
    Observation,
    VerdictRecord,
    Window,
    adjudicate,
    admit,
    assertions_held,
    assertions_held_under,
    closed_cleanly,
    impeaching_spots,
)
from hotplug.evidence import Constraint as ConstraintNoun
from hotplug.evidence.moves import next_move
from hotplug.evidence.text import concerned
from hotplug.evidence.witness import Witness

__all__ = ["ClaimWindow", "Within", "checked", "claiming", "seconds_of"]

Within = str | float | timedelta
"""A length of time: `"5s"`, `"500ms"`, `"2m"`, seconds, or a timedelta."""

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0}
_REST: Final = 0.3
"""Seconds without anything new after which the world counts as being at rest when the time is over."""
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.25
_LONGEST_TOLD: Final = 20
_ABOUT_ELSE: Final = "no assertion that could be evaluated is about it"
_READS_ELSE: Final = "the claim does not read the channel"
_MARGIN_MS: Final = 60_000
"""What the subject's own window may stay open beyond the claim's time: acting takes time too."""


def seconds_of(length: Within, what: str = "within") -> float:
    """The length in seconds.

    Raises:
        InvalidArgument: It is no length of time above zero.
    """
    value: float | None = None
    if isinstance(length, timedelta):
        value = length.total_seconds()
    elif isinstance(length, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m)\s*", length)
        value = float(found[1]) * _UNITS[found[2]] if found else None
    elif not isinstance(length, bool):
        value = float(length)
    if value is None or not math.isfinite(value) or value <= 0:
        raise InvalidArgument(f"{what} is {length!r}", hint='a length of time such as "5s", "500ms" or "2m"')
    return value


class ClaimWindow(AbstractAsyncContextManager["ClaimWindow"]):
    """An open window; several claims may be written down in it.

    Args:
        within: How long after the last action a claim may take to come true.
        quiet: What something late could spoil (`exactly`, `at_most`, `absent`, facts, constraints) is watched for all
            of `within`; with this, only until nothing new that bears on it has come for so long.
    """

    def __init__(
        self,
        link: Link,
        *,
        within: Within = "2s",
        quiet: Within | None = None,
    ) -> None:
        self.id = f"w_{secrets.token_urlsafe(9)}"
        self.within = seconds_of(within)
        self.quiet = None if quiet is None else seconds_of(quiet, "quiet")
        self._link = link
        witnesses: tuple[Witness, ...] = link.witnesses
        names = [str(one.name) for one in witnesses]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidArgument(
                f"two witnesses are called {', '.join(doubled)}", hint="give each a name of its own: name="
            )
        sensitive = {name for part in link.spoken.known.values() for name in part.sensitive}
        redactor = Redactor(sensitive=sensitive, mask=link.mask)
        self._sources = Sources(Realm(link, self.id), tuple(WitnessView(one) for one in witnesses), redactor)
        self._claims: list[Claimed] = []
        self._constraints: list[tuple[str, Constraint]] = []
        self.violations: tuple[ConstraintViolation, ...] = ()
        """Constraints that were violated, once the window is closed."""
        self.unchecked: tuple[str, ...] = ()
        """Constraints of which nobody can say whether they held throughout."""
        self._open = False
        self._opened_at = 0
        self._before: dict[str, Observation] = {}
        self._seen: tuple[Observation, ...] = ()
        self._in_time: frozenset[str] | None = None
        """What bears on the claims as the last look in time saw it, where the time ran out before they were decided."""

    def claim(self, statement: str, *conditions: Condition | Constraint) -> Claimed:
        """Write a claim down. One that comes after something was done in the window is recorded as such.

        Raises:
            InvalidArgument: It says nothing, names nothing to evaluate, or a witness that isn't here.
        """
        if not self._open:
            raise HotplugError(f"the claim {statement!r} has no window", hint="write it inside the async with block")
        held = checked(statement, conditions)
        for one in conditions:
            if isinstance(one, Constraint):
                self.constrain(one)
        number = len(self._claims) + 1
        late = bool(self._sources.realm.actions)
        claimed = Claimed(statement, held, self._lowered(f"{self.id}.c{number}", statement, held, late))
        self._claims.append(claimed)
        return claimed

    def constrain(self, constraint: Constraint) -> None:
        """Write a constraint down: it must hold throughout the window."""
        self._sources.channel_of(constraint.condition.selector)
        self._constraints.append((f"{self.id}.k{len(self._constraints) + 1}", constraint))

    def _lowered(self, id_: str, statement: str, conditions: Sequence[Condition], late: bool) -> Claim:
        assertions: list[Assertion] = []
        for index, condition in enumerate(conditions, 1):
            channel = self._sources.channel_of(condition.selector)
            assertions.append(
                Assertion(
                    id=f"{id_}.a{index}",
                    predicate=condition.predicate(channel),
                    reads=condition.reads,
                    channels=(channel,),
                )
            )
        return Claim(
            id=id_,
            statement=statement,
            declared_at="after-action" if late else "before-action",
            assertions=tuple(assertions),
        )

    async def open(self, conditions: Sequence[Condition] | None = None) -> ClaimWindow:
        """Open it at every place that looks, and read facts as they stand now.

        Args:
            conditions: All that will be claimed, where that is known.
        """
        budget = int((self.within + _REST) * 1000)
        await self._sources.realm.open(budget + _MARGIN_MS)
        try:
            self._sources.name_channels()
            self._opened_at = now_ms()
            for view in self._sources.witnesses:
                await view.open(budget)
            for one in await self._sources.before(conditions):
                self._before[one.id] = one
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._sources.realm.close()
            raise
        self._open = True
        return self

    async def abandon(self) -> None:
        """Close every place again, without a verdict."""
        self._open = False
        with anyio.CancelScope(shield=True):
            await self._sources.realm.close()
            for view in self._sources.witnesses:
                await view.end()

    async def __aenter__(self) -> ClaimWindow:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.end(error)

    async def end(self, error: BaseException | None = None) -> None:
        """Wait until things have settled, close everywhere, and judge.

        Args:
            error: What ended the acting, if it failed.
        """
        # What was done has been done: its verdict is wanted most where the doing failed. Given up is given up.
        waits = error is None or isinstance(error, ConnectionFailed)
        with anyio.CancelScope(shield=not waits):
            held = self._claims or self._constraints
            cause = await self._settle() if waits and held else ("ack" if error is None else "budget-exhausted")
            await self._close(cause)

    async def _settle(self) -> CloseCondition:
        """Look until every claim is decided and nothing more comes, or the time is over; say which it was."""
        started = anyio.current_time()
        acted = self._sources.realm.acted or started
        rest = min(_REST, self.quiet or _REST)
        deadline = max(acted + self.within, started + rest)
        pause, last, bears = _FIRST_PAUSE, math.inf, self._bearing()
        world, ours = _Stillness(started), _Stillness(started)
        known: tuple[frozenset[str], bool] | None = None
        while True:
            began = anyio.current_time()
            self._seen = await self._sources.observe()
            now = anyio.current_time()
            idle = not self._sources.realm.under_way
            still = ours.lasting(now, filter(bears, self._seen)) if idle else 0.0
            world_still = world.lasting(now, self._seen) if idle else 0.0
            decided = self._decided()
            if now < deadline or known is None:
                known = _told(filter(bears, self._seen)), decided
            if self._in_time is None and now >= deadline and not known[1]:
                self._in_time = known[0]
            if self._came_late():
                return "budget-exhausted"
            if decided and not self._spoilable():
                return "signal"
            if decided and self.quiet is not None and still >= self.quiet:
                return "quiescence"
            at_rest = (still if decided else world_still) >= rest
            if now >= deadline and (at_rest or now >= last):
                unsettled = not at_rest or (not decided and bool(self._sources.realm.unknown))
                return "budget-exhausted" if unsettled else "quiescence"
            if now >= deadline and last == math.inf:
                # A look takes time too: whether the world is at rest now shows only a while later.
                last = now + rest + 2 * (now - began)
            await anyio.sleep(min(pause, max(min(deadline, last) - now, 0.01)))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _bearing(self) -> Callable[[Observation], bool]:
        """Which observations could still spoil what is decided.

        All that the subject shows. Of a witness only what is asked of it: a database or a calendar server may have
        other users, who never rest. What isn't decided needs a world that rests as a whole: it may still come true.
        """
        own = {one.id for one in self._sources.realm.channels}
        read = self._read
        conditions = [one for claim in self._claims for one in claim.conditions]
        conditions += [one.condition for _, one in self._constraints]
        readings = [read(one.predicate(self._sources.channel_of(one.selector))) for one in conditions]
        selects = [one.select for one in readings if one is not None]
        return lambda one: one.channel in own or any(select(one) for select in selects)

    def _came_late(self) -> bool:
        """Whether a look that ended after the time shows other than the last one in time, with claims undecided then.

        Whether what it shows was so in time, nobody knows. The first look counts as one in time, however long it took.
        """
        return self._in_time not in (None, _told(filter(self._bearing(), self._seen)))

    def _decided(self) -> bool:
        """Whether no claim could still become true: each is true, or false for good."""
        read = self._read
        for claimed in self._claims:
            if self._is_lost(claimed):
                continue
            readings = [read(one.predicate) for one in claimed.claim.assertions]
            if any(one.evaluate(self._seen) is not True for one in readings if one is not None):
                return False
        return True

    def _is_lost(self, claimed: Claimed) -> bool:
        """Whether a claim is false for good, whatever may still come."""
        readings = [self._read(one.predicate) for one in claimed.claim.assertions]
        known = [one for one in readings if one is not None]
        return any(one.evaluate(self._seen) is False and not one.repairable(self._seen) for one in known)

    def _spoilable(self) -> bool:
        """Whether something that comes late could still make a claim false, or violate a constraint."""
        alive = [one for one in self._claims if not self._is_lost(one)]
        return bool(self._constraints) or any(_spoilable(one) for claim in alive for one in claim.conditions)

    @property
    def _read(self) -> Any:
        return predicate_reader(frozenset(one.id for one in self._sources.realm.actions))

    async def _close(self, cause: CloseCondition) -> None:
        self._open = False
        realm = self._sources.realm
        # The last events, and what a witness sees last, come with the end of their windows.
        closing = await realm.close()
        for view in self._sources.witnesses:
            await view.end()
        self._seen = await self._sources.observe()
        if self._came_late():
            cause = "budget-exhausted"
        closings = [closing, *[await view.close() for view in self._sources.witnesses]]
        ended = closing.closed_by if closing.closed_by in ("terminated", "budget-exhausted") else cause
        window = Window(
            id=self.id,
            opened_at=self._opened_at,
            closed_at=now_ms(),
            budget_ms=max(1, int(self.within * 1000)),
            closes="quiescence",
            closed_by=ended,
            subject=realm.identity,
        )
        coverage = self._coverage(closings)
        anomalies = tuple(realm.detect(self._seen))
        if realm.replaced and realm.channels:
            channel = realm.channels[0].id
            anomalies += (
                Anomaly(
                    kind="evidence-superseded",
                    tier="absence-derived",
                    claim="what was seen is of the subject that was acted on",
                    counter=str(realm.lost),
                    between=(channel, channel),
                ),
            )
        violations, unchecked, kept = self._constrained(window, coverage)
        self.violations, self.unchecked = violations, unchecked
        coverage = _with_unchecked(coverage, unchecked)
        records: list[VerdictRecord] = []
        told: list[tuple[Claimed, Verdict, Adjudication]] = []
        evidence: dict[str, Any] = {one.observation.id: one for one in kept}
        for number, claimed in enumerate(self._claims, 1):
            given, dropped = self._input(claimed, window, coverage, anomalies)
            found = adjudicate(given)
            verdict = Verdict(found.verdict, found.ground, found.grade, found.reasons)
            claimed.evidence = given.evidence
            claimed.seen = tuple(f"{self._said(one.channel)}: {one.summary}" for one in self._read_by(claimed))
            claimed.blind_spots = coverage.blind_spots
            claimed.violations, claimed.unchecked = violations, unchecked
            evidence.update({one.observation.id: one for one in given.evidence})
            records.append(
                VerdictRecord(
                    id=f"{self.id}.v{number}",
                    claim=claimed.claim.id,
                    window=self.id,
                    verdict=found.verdict,
                    ground=found.ground,
                    reasons=(*found.reasons, *_told_drops(dropped)),
                    evidence=tuple(one.observation.id for one in given.evidence),
                    anomalies=anomalies,
                    at=now_ms(),
                    grade=found.grade,
                )
            )
            told.append((claimed, verdict, found))
        run = run_of(
            self._sources,
            windows=(window, *(view.window for view in self._sources.witnesses if view.window is not None)),
            coverage=(coverage, *(view.covered for view in self._sources.witnesses if view.covered is not None)),
            claims=[one.claim for one in self._claims],
            constraints=[self._noun(id_, one) for id_, one in self._constraints],
            evidence=tuple(evidence.values()),
            anomalies=anomalies,
            verdicts=tuple(records),
            violations=violations,
            started_at=self._opened_at,
        )
        for claimed, verdict, found in told:
            claimed.decided(verdict, run)
            about = concerned(
                found.ground, claimed.claim, channels=self._sources.channels, coverage=coverage, anomalies=anomalies
            )
            claimed.next_move = next_move(found.ground, map(self._said, about), word="sense")
            claimed.lines = lines_of(found, claimed, run, coverage, self._sources.renamed)
        for recording in self._link.recordings:
            recording.add(run)

    def _input(
        self, claimed: Claimed, window: Window, coverage: Coverage, anomalies: tuple[Anomaly, ...]
    ) -> tuple[AdjudicationInput, tuple[str, ...]]:
        read = self._read
        admitted = self._admitted(claimed.claim, window)
        body: dict[str, Any] = {
            "claim": claimed.claim,
            "window": window,
            "channels": self._sources.channels,
            "evidence": admitted.evidence,
            "coverage": coverage,
            "anomalies": anomalies,
        }
        held = assertions_held_under(
            claimed.claim.assertions, admitted.observations, coverage, window=window, read=read
        )
        if held is not None:
            body["assertions_held"] = held
        before = self._held_before(claimed)
        if before is not None:
            body["consequence_held_before"] = before
        return AdjudicationInput(**body), admitted.dropped

    def _admitted(self, claim: Claim, window: Window) -> Admitted:
        return admit(
            self._seen,
            window=window,
            claim=claim,
            channels=self._sources.channels,
            provenance=self._sources.provenance,
            witnesses=[view.window for view in self._sources.witnesses if view.window is not None],
            read=self._read,
        )

    def _held_before(self, claimed: Claimed) -> bool | None:
        """Whether it was so already: only where there are facts can that be said, and only by who looked before.

        What stands beside the facts counts too: `absent()` held before anything had happened, and so does not make a
        claim one about what happened.
        """
        if not self._before or not any(one.is_fact for one in claimed.conditions):
            return None
        return assertions_held(claimed.claim.assertions, tuple(self._before.values()), read=self._read) or None

    def _said(self, channel: str) -> str:
        return sense_of(channel, self._sources.renamed)

    def _read_by(self, claimed: Claimed) -> list[Observation]:
        channels = {one for assertion in claimed.claim.assertions for one in assertion.channels}
        return [one for one in self._seen if one.channel in channels]

    def _coverage(self, closings: Sequence[Closing]) -> Coverage:
        spots = [spot for closing in closings for spot in closing.spots or ()]
        conditions = [one for claim in self._claims for one in claim.conditions]
        conditions += [one.condition for _, one in self._constraints]
        for channel, count in sorted(self._sources.redactor.found.items()):
            bears = any(
                self._sources.channel_of(one.selector) == channel
                and (bool(one.selector.contains) or one.kind == "measure")
                for one in conditions
            )
            body = {
                "kind": "redacted",
                "detail": f"{count} values seen by {channel} were redacted: credentials and sensitive fields",
                "impeaching": False,
            }
            spots.append(BlindSpot.read(body | ({"channel": channel} if bears else {})))
        spots.extend(
            BlindSpot(
                kind="still-in-flight",
                detail=f"nobody knows whether it was done, or still will be: {detail}",
                impeaching=False,
                remedy="look again later, before doing it again",
            )
            for detail in self._sources.realm.unknown
        )
        unlisted = [one for one in closings if one.spots is None]
        body: dict[str, Any] = {
            "window": self.id,
            "observed": tuple(dict.fromkeys(one for closing in closings for one in closing.observed)),
        }
        if spots and unlisted:
            spots.append(
                BlindSpot(
                    kind="channel-unobserved",
                    detail="not every place that looked can list what it couldn't see: there may be more gaps",
                    impeaching=False,
                )
            )
        if spots or not unlisted:
            body["blind_spots"] = tuple(spots)
        return Coverage(**body)

    def _noun(self, id_: str, one: Constraint) -> ConstraintNoun:
        channel = self._sources.channel_of(one.condition.selector)
        return ConstraintNoun(
            id=id_,
            statement=one.statement,
            predicate=one.condition.predicate(channel),
            channels=(channel,),
            severity=one.severity,
        )

    def _constrained(
        self, window: Window, coverage: Coverage
    ) -> tuple[tuple[ConstraintViolation, ...], tuple[str, ...], tuple[Evidence, ...]]:
        """The constraints that were violated, those of which nobody can say, and what was seen against them."""
        violations: list[ConstraintViolation] = []
        unchecked: list[str] = []
        evidence: list[Evidence] = []
        read, declared = self._read, {one.id for one in self._sources.channels}
        for id_, one in self._constraints:
            channel = self._sources.channel_of(one.condition.selector)
            admitted = self._admitted(self._lowered(id_, one.statement, [one.condition], late=False), window)
            spoiling = sorted((one.observation for one in admitted.evidence), key=lambda seen: seen.at)
            allowed = int(one.condition.value or 0) if one.condition.kind == "count" else 0
            reading = read(one.condition.predicate(channel))
            if reading is not None and reading.evaluate(admitted.observations) is False:
                evidence.extend(admitted.evidence)
                violations.append(
                    ConstraintViolation(
                        constraint=id_,
                        at=spoiling[allowed].at if len(spoiling) > allowed else now_ms(),
                        detail=f"{one.statement}: {one.condition.reads}, and {len(spoiling)} were seen",
                        evidence=tuple(seen.id for seen in spoiling),
                    )
                )
            elif channel not in declared or impeaching_spots(coverage, [channel]) or not closed_cleanly(window):
                unchecked.append(f"{one.statement}: {channel} couldn't be watched throughout the window")
        return tuple(violations), tuple(unchecked), tuple(evidence)


class _Stillness:
    """For how long the same has been seen."""

    def __init__(self, started: float) -> None:
        self._since = started
        self._seen = frozenset[str]()

    def lasting(self, now: float, seen: Iterable[Observation]) -> float:
        """Seconds since something else was seen."""
        ids = _told(seen)
        if ids != self._seen:
            self._seen, self._since = ids, now
        return now - self._since


def _told_drops(dropped: Sequence[str]) -> tuple[str, ...]:
    """What didn't count and why; what simply isn't what the claim is about is only counted."""
    about_else = [one for one in dropped if one.endswith(_ABOUT_ELSE) or _READS_ELSE in one]
    told = [one for one in dropped if one not in about_else]
    counted = [f"{len(about_else)} other observations are not what the claim is about"] if about_else else []
    more = [f"{len(told) - _LONGEST_TOLD} more do not count"] if len(told) > _LONGEST_TOLD else []
    return (*told[:_LONGEST_TOLD], *more, *counted)


def _with_unchecked(coverage: Coverage, unchecked: Sequence[str]) -> Coverage:
    spots = [
        BlindSpot(kind="channel-unobserved", detail=f"a constraint couldn't be checked: {one}", impeaching=False)
        for one in unchecked
    ]
    if not spots:
        return coverage
    return Coverage(
        window=coverage.window, observed=coverage.observed, blind_spots=(*(coverage.blind_spots or ()), *spots)
    )


def claiming(
    link: Link, statement: str, conditions: Sequence[Condition | Constraint], *, within: Within, quiet: Within | None
) -> AbstractAsyncContextManager[Claimed]:
    """A window with one claim, which is checked at once and written down when the window is entered."""
    held = checked(statement, conditions)
    window = ClaimWindow(link, within=within, quiet=quiet)

    @asynccontextmanager
    async def entered() -> AsyncGenerator[Claimed, None]:
        await window.open(held)
        try:
            claimed = window.claim(statement, *conditions)
        except BaseException:
            await window.abandon()
            raise
        try:
            yield claimed
        except BaseException as error:
            await window.end(error)
            raise
        await window.end()

    return entered()


def checked(statement: str, conditions: Sequence[Condition | Constraint]) -> tuple[Condition, ...]:
    """The conditions of a claim.

    Raises:
        InvalidArgument: It says nothing, or names nothing that could be evaluated.
    """
    if not statement.strip():
        raise InvalidArgument("a claim says in words what is to be true")
    for one in conditions:
        if not isinstance(cast("object", one), Condition | Constraint):
            raise InvalidArgument(
                f"{one!r} in the claim {statement!r} is no condition",
                hint='say how many of it: net("POST /orders 201").exactly(1)',
            )
    held = tuple(one for one in conditions if isinstance(one, Condition))
    if not held:
        raise InvalidArgument(
            f"the claim {statement!r} names nothing to look for",
            hint='add a condition: net("POST /orders 201").exactly(1)',
        )
    return held


def _spoilable(condition: Condition) -> bool:
    """Whether what comes later could make it false again."""
    return condition.is_fact or condition.kind == "absent" or condition.op in {"exactly", "at-most"}


def _told(seen: Iterable[Observation]) -> frozenset[str]:
    """What tells whether the same was seen again."""
    return frozenset(f"{one.id} {one.summary}" for one in seen)
