"""Conformance to the protocol: profiles, the sixteen scenarios, how a run of them is driven, and what it earns.

Nothing here talks to anyone: `drive` is a generator that says what to ask next and is sent the answers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import (
    PROFILES,
    ChannelId,
    Ground,
    Profile,
    ScenarioOutcome,
    Text,
    Verdict,
    Words,
)

__all__ = [
    "DEFAULT_LIMIT_MS",
    "PLANT",
    "PROFILE_CHANNELS",
    "SCENARIOS",
    "Answer",
    "Asked",
    "Failed",
    "Greeted",
    "Hello",
    "Implementation",
    "Plant",
    "Planted",
    "Registration",
    "Report",
    "Scenario",
    "Verify",
    "channels_missing_for",
    "drive",
    "judge",
    "profile_earned",
    "profile_from_channels",
    "registration_problems",
    "report_of",
]

PLANT: Final = "x-conformance.plant"
"""The command that puts a subject into a scenario's state; its one argument is `scenario`."""

DEFAULT_LIMIT_MS: Final = 60_000
"""How long one question of a scenario may take before it counts as not answered."""

PROFILE_CHANNELS: Final[Mapping[Profile, tuple[ChannelId, ...]]] = {
    "effect": ("net", "log"),
    "in-realm": ("net", "log", "state", "signal"),
    "surface": ("net", "log", "state", "signal", "ui"),
}
"""What each profile needs to be declared, in the order of the table: each has all of the one before."""


class Implementation(Noun):
    """An entry of the registry of implementations.

    Args:
        claims: The profile that it claims.
    """

    name: Text
    version: Text
    platform: Text
    claims: Profile
    homepage: Words | None = None


@dataclass(frozen=True)
class Scenario:
    """A state of the subject, and what must and must not be answered there."""

    id: str
    profile: Profile
    plant: str
    """The state to put the subject in."""
    why: str
    verdict: Verdict | None = None
    not_verdict: Verdict | None = None
    ground: Ground | None = None
    never: Verdict | None = None
    is_negative_control: bool = False

    def document(self) -> dict[str, Any]:
        """The scenario's record."""
        must = {"verdict": self.verdict, "notVerdict": self.not_verdict, "ground": self.ground}
        record: dict[str, Any] = {
            "id": self.id,
            "profile": self.profile,
            "plant": self.plant,
            "mustProduce": {name: value for name, value in must.items() if value is not None},
        }
        if self.never is not None:
            record["neverProduce"] = self.never
        if self.is_negative_control:
            record["isNegativeControl"] = True
        return record | {"why": self.why}


SCENARIOS: Final[tuple[Scenario, ...]] = (
    Scenario(
        "effect-failed-surface-advanced",
        "effect",
        "A request fails and the subject shows success all the same.",
        "What the boundary saw outranks what the subject shows.",
        verdict="no",
        ground="contradicted",
    ),
    Scenario(
        "write-echoes-different-value",
        "in-realm",
        "A write is accepted, and reading it back gives another value.",
        "Accepted is not applied.",
        verdict="no",
        ground="contradicted",
    ),
    Scenario(
        "locator-heals-to-wrong-target",
        "surface",
        "The addressed thing moves away, and something else matches its description.",
        "Acting on whatever matches proves nothing about what was meant.",
        not_verdict="yes",
    ),
    Scenario(
        "consequence-already-true",
        "effect",
        "The claim holds before the action: do the action twice, claim the second.",
        "What was so before was not caused by the action.",
        verdict="unknown",
        ground="already-true",
    ),
    Scenario(
        "double-submit-against-count-one",
        "effect",
        "A single action writes the same thing twice, against a claim that counts exactly one.",
        "Twice is not once, however well each went.",
        verdict="no",
    ),
    Scenario(
        "accepted-but-not-finished",
        "effect",
        "The work is accepted for later and unfinished when the window closes.",
        "A promise is not an effect, and its absence so far is no failure.",
        verdict="unknown",
        ground="coverage-impeached",
    ),
    Scenario(
        "evidence-from-a-previous-edit",
        "in-realm",
        "All evidence is older than the change under test.",
        "It tells of what was there before.",
        verdict="unknown",
    ),
    Scenario(
        "outcome-in-an-unwatched-place",
        "effect",
        "The result lands where nobody watches.",
        "Out of sight is neither done nor not done.",
        not_verdict="yes",
    ),
    Scenario(
        "fire-and-forget",
        "effect",
        "An action goes out whose effect cannot be observed.",
        "Sending is not arriving.",
        not_verdict="yes",
    ),
    Scenario(
        "subject-disappears-mid-window",
        "effect",
        "The watched thing vanishes before the window closes.",
        "A lost view is a gap, not a failure of the subject.",
        verdict="unknown",
        ground="coverage-impeached",
        never="no",
    ),
    Scenario(
        "claim-written-after-the-action",
        "effect",
        "As the healthy scenario, with the claim written after the action.",
        "A claim fitted to what is already known proves nothing.",
        verdict="unknown",
        ground="declared-after-action",
    ),
    Scenario(
        "verifier-ran-out-of-budget",
        "effect",
        "The window's budget ends before the subject settles.",
        "The verifier's impatience is no fault of the subject.",
        verdict="unknown",
        ground="window-not-closed",
        never="no",
    ),
    Scenario(
        "nothing-declared",
        "effect",
        "A quiet window closes cleanly, and nobody claims anything.",
        "Nothing went wrong is not the same as something went right.",
        verdict="no-fault",
        never="yes",
    ),
    Scenario(
        "healthy-app-real-claim",
        "effect",
        "All is well, and a real claim is made.",
        "The negative control: a verifier that never says yes finds nothing out.",
        verdict="yes",
        is_negative_control=True,
    ),
    Scenario(
        "claim-reads-an-undeclared-channel",
        "effect",
        "The claim needs a channel that is not declared.",
        "Nobody was looking there.",
        verdict="unknown",
        ground="channel-not-observed",
    ),
    Scenario(
        "stale-data-in-a-nested-document",
        "surface",
        "An inner document is old while the outer one is new.",
        "Each document has its own age.",
        not_verdict="yes",
    ),
)
"""In the specification's order."""


def profile_from_channels(declared: Iterable[ChannelId]) -> Profile | None:
    """The highest profile whose channels are declared, upward without a gap; None where not even `effect` is."""
    known = frozenset(declared)
    reached: Profile | None = None
    for profile in PROFILES:
        if channels_missing_for(profile, known):
            break
        reached = profile
    return reached


def channels_missing_for(profile: Profile, declared: Iterable[ChannelId]) -> tuple[ChannelId, ...]:
    """The channels that a profile needs and that are not declared, in the order of the table."""
    known = frozenset(declared)
    return tuple(channel for channel in PROFILE_CHANNELS[profile] if channel not in known)


@dataclass(frozen=True)
class Answer:
    """What an implementation answered to a claim. Its reason is for people and never compared."""

    verdict: Verdict
    ground: Ground | None = None
    reason: str | None = None


def judge(scenario: Scenario, answer: Answer | None) -> ScenarioOutcome:
    """Whether an answer is what a scenario demands; None (nothing planted, or no answer) is `absent`."""
    if answer is None:
        return "absent"
    if scenario.never is not None and answer.verdict == scenario.never:
        return "failed"
    if scenario.not_verdict is not None:
        return "failed" if answer.verdict == scenario.not_verdict else "passed"
    if scenario.verdict is not None and answer.verdict != scenario.verdict:
        return "failed"
    if scenario.ground is not None and answer.ground != scenario.ground:
        return "failed"
    return "passed"


@dataclass(frozen=True)
class Registration:
    """What an implementation says of itself before it is run.

    Args:
        platform: `web`, `webview`, `native` or `service`.
        profile: The one it claims.
    """

    name: str
    version: str
    platform: str
    channels: tuple[ChannelId, ...]
    commands: tuple[str, ...] = ()
    profile: Profile = "effect"


def registration_problems(registered: Iterable[ChannelId], declared: Iterable[ChannelId]) -> tuple[str, ...]:
    """How a registration and what was declared on connect differ, both ways; any difference refuses the run."""
    here, there = tuple(registered), tuple(declared)
    return (
        *(f"channel {name!r} is registered and was not declared on connect" for name in here if name not in there),
        *(f"channel {name!r} was declared on connect and is not registered" for name in there if name not in here),
    )


def profile_earned(registration: Registration, outcomes: Mapping[str, ScenarioOutcome]) -> Profile | None:
    """The highest profile that the outcomes, by scenario, earn; None where not even the lowest is.

    Upward, each needs its channels registered, all its scenarios passed and the negative control passed.
    """
    control = all(outcomes.get(one.id) == "passed" for one in SCENARIOS if one.is_negative_control)
    earned: Profile | None = None
    for profile in PROFILES:
        passed = all(outcomes.get(one.id) == "passed" for one in SCENARIOS if one.profile == profile)
        if channels_missing_for(profile, registration.channels) or not passed or not control:
            break
        earned = profile
    return earned


@dataclass(frozen=True)
class Report:
    """What a run of the scenarios came to. The lists of those that did not pass never overlap."""

    name: str
    claimed: Profile
    earned: Profile | None
    failed: tuple[str, ...] = ()
    could_not_be_planted: tuple[str, ...] = ()
    never_attempted: tuple[str, ...] = ()
    out_of_profile: tuple[str, ...] = ()
    """Scenarios above the claimed profile."""
    notes: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    """Why nothing was driven; empty where it was."""

    @property
    def gate(self) -> bool:
        """Whether a gate lets this pass: the score is no reason not to, a failed scenario is."""
        return not self.failed

    def document(self) -> dict[str, Any]:
        """The report as JSON; `earned` and `rejected` are left out where there is nothing to say."""
        document: dict[str, Any] = {"name": self.name, "claimed": self.claimed}
        if self.earned is not None:
            document["earned"] = self.earned
        if self.rejected:
            document["rejected"] = list(self.rejected)
        return document | {
            "failed": list(self.failed),
            "couldNotBePlanted": list(self.could_not_be_planted),
            "neverAttempted": list(self.never_attempted),
            "outOfProfile": list(self.out_of_profile),
            "notes": list(self.notes),
        }


def report_of(
    registration: Registration,
    outcomes: Mapping[str, ScenarioOutcome],
    *,
    notes: Iterable[str] = (),
    rejected: Sequence[str] = (),
) -> Report:
    """The report of a run's outcomes, by scenario.

    Args:
        rejected: Why the run was refused; then no outcome counts.
    """
    above = PROFILES[PROFILES.index(registration.profile) + 1 :]
    counted: Mapping[str, ScenarioOutcome] = {} if rejected else outcomes

    def those(outcome: ScenarioOutcome | None) -> tuple[str, ...]:
        return tuple(one.id for one in SCENARIOS if counted.get(one.id) == outcome)

    return Report(
        name=registration.name,
        claimed=registration.profile,
        earned=None if rejected else profile_earned(registration, counted),
        failed=those("failed"),
        could_not_be_planted=those("absent"),
        never_attempted=those(None),
        out_of_profile=tuple(one.id for one in SCENARIOS if one.profile in above),
        notes=tuple(notes),
        rejected=tuple(rejected),
    )


@dataclass(frozen=True)
class Hello:
    """Ask what is declared; the answer is `Greeted`."""


@dataclass(frozen=True)
class Plant:
    """Ask for a scenario's state, by the command `PLANT`; the answer is `Planted`."""

    scenario: Scenario
    limit_ms: int


@dataclass(frozen=True)
class Verify:
    """Ask for a verdict about the claim that planting gave; the answer is `Answer`."""

    scenario: Scenario
    claim: Any
    limit_ms: int


Asked = Hello | Plant | Verify


@dataclass(frozen=True)
class Greeted:
    """What was declared on connect."""

    channels: tuple[ChannelId, ...]
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planted:
    """Whether the subject is in the state, with the claim to verify, or why not."""

    planted: bool
    claim: Any = None
    reason: str | None = None


@dataclass(frozen=True)
class Failed:
    """A question raised an error, or took longer than its limit."""

    reason: str


Answered = Greeted | Planted | Answer | Failed


def drive(registration: Registration, *, limit_ms: int = DEFAULT_LIMIT_MS) -> Generator[Asked, Answered, Report]:
    """Drive the scenarios one after another, without retries, and give the report.

    Yields what to ask; whoever talks to the implementation sends the answer, `Failed` where there is none in time.
    """
    hello = yield Hello()
    if not isinstance(hello, Greeted):
        return report_of(registration, {}, rejected=[f"nothing was declared on connect{_because(hello)}"])
    problems = registration_problems(registration.channels, hello.channels)
    if not hello.channels:
        problems = ("no channel was declared on connect", *problems)
    if problems:
        return report_of(registration, {}, rejected=problems)
    outcomes: dict[str, ScenarioOutcome] = {}
    notes: list[str] = []
    for scenario in SCENARIOS:
        planted = yield Plant(scenario, limit_ms)
        if not isinstance(planted, Planted) or not planted.planted:
            outcomes[scenario.id] = judge(scenario, None)
            notes.append(f"{scenario.id}: could not be planted{_because(planted)}")
            continue
        answer = yield Verify(scenario, planted.claim, limit_ms)
        known = answer if isinstance(answer, Answer) else None
        outcomes[scenario.id] = judge(scenario, known)
        if known is None:
            notes.append(f"{scenario.id}: was not answered{_because(answer)}")
    return report_of(registration, outcomes, notes=notes)


def _because(answer: Answered) -> str:
    reason = answer.reason if isinstance(answer, Failed | Planted) else None
    return f": {reason}" if reason else ""
