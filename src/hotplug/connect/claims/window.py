"""A window on a connection: claims are written down, things are done, everybody looks, each claim gets its verdict.

Source: Open Verification Protocol 1, "From realm output to adjudication input"; the design's page verification.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final

import anyio

from hotplug.connect.claims.conditions import Condition, Constraint, checked, predicate_reader
from hotplug.connect.claims.realm import Closing, Realm, now_ms
from hotplug.connect.claims.recording import run_of
from hotplug.connect.claims.redaction import Redactor, masked
from hotplug.connect.claims.settling import Stillness, Within, seconds_of, spoilable, told
from hotplug.connect.claims.sources import Sources, WitnessView
from hotplug.connect.claims.translation import sense_of, witness_channel
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

__all__ = ["ClaimWindow", "claiming"]

_REST: Final = 0.3
"""Seconds without anything new after which the world counts as being at rest when the time is over."""
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.25
_LONGEST_TOLD: Final = 20
_ABOUT_ELSE: Final = "no assertion that could be evaluated is about it"
_READS_ELSE: Final = "the claim does not read the channel"
_GIVEN_UP: Final = 3.0
"""Seconds that each place has for its end where the acting was given up."""
_PATIENCE: Final = 5.0
"""Seconds beyond a claim's own time that the subject has for the end of its window."""
_MARGIN_MS: Final = 60_000
"""What the subject's own window may stay open beyond the claim's time: acting takes time too."""


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
        # Names that differ only in what a channel's name can't have would lead to one channel of both.
        names = [witness_channel(str(one.name), "") for one in witnesses]
        if doubled := [str(one.name) for one, name in zip(witnesses, names, strict=True) if names.count(name) > 1]:
            raise InvalidArgument(
                f"two witnesses are called {', '.join(dict.fromkeys(doubled))}",
                hint="give each a name of its own, of a-z, 0-9 and -: name=",
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
        self._open = self._used = False
        self._opened_at = 0
        self._before: dict[str, Observation] = {}
        self._seen: tuple[Observation, ...] = ()
        self._broken: dict[str, int] = {}
        self._was_decided = False
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
        """Write a constraint down: it must hold throughout the window.

        Raises:
            HotplugError: The window isn't open.
            InvalidArgument: It names a witness that isn't here.
        """
        if not self._open:
            raise HotplugError(
                f"the constraint {constraint.statement!r} has no window", hint="write it inside the async with block"
            )
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

        Raises:
            HotplugError: It was opened before.
        """
        if self._used:
            raise HotplugError("a window is opened once", hint="open another one: claims()")
        self._used = True
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
            await self.abandon()
            raise
        self._open = True
        return self

    async def abandon(self) -> None:
        """Close every place again, without a verdict."""
        self._open = False
        with anyio.CancelScope(shield=True):
            await self._ended(_GIVEN_UP)

    async def _ended(self, patience: float | None = None) -> list[Closing]:
        """End every window, the subject's first: witnesses look for the last time after that. Then see what there is.

        Args:
            patience: Seconds that each place has; default: the subject little more than a claim, and a witness what it
                takes until nothing more comes.
        """
        views = self._sources.witnesses
        self._sources.realm.leave()
        closing = await self._sources.realm.close(patience or self.within + _PATIENCE, looks=self._looks)
        for view in views:
            await view.end(patience)
        # A window that is closed shows all that it saw, up to its last look.
        self._seen = await self._sources.observe(last=True)
        self._watch()
        return [closing, *[await view.close() for view in views]]

    @property
    def _conditions(self) -> list[Condition]:
        return [one for claim in self._claims for one in claim.conditions] + [
            one.condition for _, one in self._constraints
        ]

    @property
    def _looks(self) -> bool:
        """Whether something is asked that the subject shows only to who looks."""
        looked_at = self._sources.realm.looked_at
        return any(
            (one.is_fact or one.selector.sense != "state") and self._sources.channel_of(one.selector) in looked_at
            for one in self._conditions
        )

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
        self._open = False
        cause: CloseCondition = "ack" if error is None else "budget-exhausted"
        if not waits:
            with anyio.CancelScope(shield=True):
                self._judge(cause, await self._ended(_GIVEN_UP))
            return
        try:
            if self._claims or self._constraints:
                cause = await self._settle()
            closings = await self._ended()
        except BaseException:
            # Given up while it settled: nothing stays open, and what was seen so far is judged as what it is.
            with anyio.CancelScope(shield=True):
                self._judge("budget-exhausted", await self._ended(_GIVEN_UP))
            raise
        # What is only seen at the very end may have come late; what was so and isn't any more may be again.
        if self._came_late() or (self._was_decided and not self._decided()):
            cause = "budget-exhausted"
        self._judge(cause, closings)

    async def _settle(self) -> CloseCondition:
        """Look until every claim is decided and nothing more comes, or the time is over; say which it was."""
        started = anyio.current_time()
        acted = self._sources.realm.acted or started
        rest = min(_REST, self.quiet or _REST)
        deadline = max(acted + self.within, started + rest)
        pause, last, bears = _FIRST_PAUSE, math.inf, self._bearing()
        world, ours = Stillness(started), Stillness(started)
        known: tuple[frozenset[str], bool] | None = None
        looks = self._looks
        while True:
            began = anyio.current_time()
            self._seen = await self._sources.observe(looks=looks)
            self._watch()
            now = anyio.current_time()
            idle = not self._sources.realm.under_way
            still = ours.lasting(now, filter(bears, self._seen)) if idle else 0.0
            world_still = world.lasting(now, self._seen) if idle else 0.0
            decided = self._was_decided = self._decided()
            if now < deadline or known is None:
                known = told(filter(bears, self._seen)), decided
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
        conditions = self._conditions
        readings = [read(one.predicate(self._sources.channel_of(one.selector))) for one in conditions]
        selects = [one.select for one in readings if one is not None]
        return lambda one: one.channel in own or any(select(one) for select in selects)

    def _came_late(self) -> bool:
        """Whether a look that ended after the time shows other than the last one in time, with claims undecided then.

        Whether what it shows was so in time, nobody knows. The first look counts as one in time, however long it took.
        """
        return self._in_time not in (None, told(filter(self._bearing(), self._seen)))

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
        return bool(self._constraints) or any(spoilable(one) for claim in alive for one in claim.conditions)

    def _watch(self) -> None:
        """Remember when a constraint about a fact was broken: what holds now doesn't show what held before."""
        for id_, one in self._constraints:
            if one.condition.is_fact and id_ not in self._broken:
                reading = self._read(one.condition.predicate(self._sources.channel_of(one.condition.selector)))
                if reading is not None and reading.evaluate(self._seen) is False:
                    self._broken[id_] = now_ms()

    @property
    def _read(self) -> Any:
        return predicate_reader(frozenset(one.id for one in self._sources.realm.actions))

    def _judge(self, cause: CloseCondition, closings: Sequence[Closing]) -> None:
        realm, closing, mask = self._sources.realm, closings[0], self._sources.redactor.text
        ended = closing.closed_by if closing.closed_by in ("terminated", "budget-exhausted") else cause
        window = Window(
            id=self.id,
            opened_at=self._opened_at,
            closed_at=max(now_ms(), self._opened_at),
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
                    counter=mask(str(realm.lost)),
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
            claimed.claim = masked(claimed.claim, mask)
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
            constraints=[masked(self._noun(id_, one), mask) for id_, one in self._constraints],
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
        for channel, count in sorted(self._sources.redactor.found.items()):
            bears = any(
                self._sources.channel_of(one.selector) == channel
                and (bool(one.selector.contains) or one.kind == "measure" or self._hides(channel, one))
                for one in self._conditions
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
        return masked(Coverage(**body), self._sources.redactor.text)

    def _hides(self, channel: str, condition: Condition) -> bool:
        """Whether redaction changed which observations a condition is about."""
        reading = self._read(condition.predicate(channel))
        return reading is not None and any(
            reading.select(raw) != reading.select(shown) for raw, shown in self._sources.redactor.changed
        )

    def _noun(self, id_: str, one: Constraint) -> ConstraintNoun:
        channel = self._sources.channel_of(one.condition.selector)
        body = {
            "id": id_,
            "statement": one.statement,
            "predicate": one.condition.predicate(channel),
            "channels": [channel],
            "severity": one.severity,
            "window": self.id,
        }
        return ConstraintNoun.read(body)

    def _constrained(
        self, window: Window, coverage: Coverage
    ) -> tuple[tuple[ConstraintViolation, ...], tuple[str, ...], tuple[Evidence, ...]]:
        """The constraints that were violated, those of which nobody can say, and what was seen against them."""
        violations: list[ConstraintViolation] = []
        unchecked: list[str] = []
        evidence: list[Evidence] = []
        mask = self._sources.redactor.text
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
                        detail=mask(f"{one.statement}: {one.condition.reads}, and {len(spoiling)} were seen"),
                        evidence=tuple(seen.id for seen in spoiling),
                    )
                )
            elif id_ in self._broken:
                detail = mask(f"{one.statement}: {one.condition.reads}, and it was otherwise for a while")
                violations.append(ConstraintViolation(constraint=id_, at=self._broken[id_], detail=detail))
            elif one.condition.is_fact:
                # Between two looks nobody saw it, and it may have been otherwise.
                unchecked.append(
                    mask(f"{one.statement}: a fact of {channel} is only seen now and then, not throughout")
                )
            elif channel not in declared or impeaching_spots(coverage, [channel]) or not closed_cleanly(window):
                unchecked.append(mask(f"{one.statement}: {channel} couldn't be watched throughout the window"))
        return tuple(violations), tuple(unchecked), tuple(evidence)


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
