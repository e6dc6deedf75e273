"""One step's window: claims and constraints written down before the operation, and what came of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, cast, final

from hotplug.conform.journey.claims import Evaluate
from hotplug.conform.journey.document import Step
from hotplug.conform.journey.outcome import ClaimOutcome, ConstraintOutcome
from hotplug.connect import Link
from hotplug.connect.claims import Claimed, ClaimWindow, Constraint, Looking
from hotplug.connect.claims.realm import now_ms
from hotplug.evidence import ChannelDescriptor, Coverage, Observation, SubjectRef, Window
from hotplug.evidence.vocabulary import ProvenanceClass
from hotplug.evidence.witness import Witness

__all__ = ["Watch", "watched", "with_eyes"]

_WITHIN: Final = "5s"


class Watch:
    """What came of a step's claims and constraints, once its window is closed."""

    def __init__(self) -> None:
        self.claims: tuple[ClaimOutcome, ...] = ()
        self.constraints: tuple[ConstraintOutcome, ...] = ()


def with_eyes(link: Link, witness: object | None) -> tuple[Link, str]:
    """The link with the backend's witness beside it, and the name under which claims find it.

    Where nobody looks, or it can't be asked in windows, claims `by: witness` read channels that nobody watches, and end
    in `unknown`: never may the server stand in for its own witness.
    """
    eyes: Witness = witness if isinstance(witness, Witness) else _Nobody()
    seeing = link.with_options()
    seeing.witnesses = (*link.witnesses, eyes)
    return seeing, eyes.name


@asynccontextmanager
async def watched(step: Step, link: Link, witness: str, evaluate: Evaluate) -> AsyncGenerator[Watch]:
    """A window around what is done inside, if the step claims anything; the result is filled in at its end.

    Raises:
        HotplugError: The window can't be opened, or a claim can't be written down: nothing has been done then.
    """
    watch = Watch()
    if not step.is_watched:
        yield watch
        return
    claims = [(one.that, one.conditions(evaluate, witness)) for one in step.claims or ()]
    constraints = [one.constraint(evaluate, witness) for one in step.constraints or ()]
    conditions = [one for _, held in claims for one in held] + [one.condition for one in constraints]
    window = cast("ClaimWindow", link.claims(step.within or _WITHIN, "300ms"))
    await window.open(conditions)
    try:
        written = [window.claim(that, *held) for that, held in claims]
        for one in constraints:
            window.constrain(one)
    except BaseException:
        await window.abandon()
        raise
    try:
        yield watch
    except BaseException as error:
        await window.end(error)
        raise
    await window.end()
    watch.claims = tuple(map(_claim, written))
    watch.constraints = tuple(_constraint(one, number, window, link.mask) for number, one in enumerate(constraints, 1))


def _claim(claimed: Claimed) -> ClaimOutcome:
    verdict = claimed.verdict
    return ClaimOutcome(
        that=claimed.statement,
        verdict=verdict.value,
        ground=verdict.ground,
        reasons=verdict.reasons,
        next_move=claimed.next_move,
        evidence=tuple(dict.fromkeys(one.observation.summary for one in claimed.evidence)),
    )


def _constraint(one: Constraint, number: int, window: ClaimWindow, mask: Callable[[str], str]) -> ConstraintOutcome:
    said = mask(f"{one.statement}: ")
    broken = next((found for found in window.violations if found.constraint == f"{window.id}.k{number}"), None)
    unchecked = next((text for text in window.unchecked if text.startswith(said)), None)
    state = "violated" if broken else "unchecked" if unchecked else "held"
    detail = broken.detail.removeprefix(said) if broken else unchecked.removeprefix(said) if unchecked else None
    return ConstraintOutcome(mask(one.statement), state, one.severity, detail)


@final
class _Nobody(Looking):
    """The place of a witness where a backend has none: it declares no channel, and so nothing can be read from it."""

    name = "witness"

    def identity(self) -> SubjectRef:
        return SubjectRef(surface="service", instance=f"nobody-{id(self)}")

    def channels(self) -> tuple[ChannelDescriptor, ...]:
        return ()

    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        raise LookupError(channel)

    async def open_window(self, budget_ms: int) -> Window:
        return Window(
            id=f"nobody-{id(self)}",
            opened_at=now_ms(),
            budget_ms=budget_ms,
            closes="ack",
            subject=self.identity(),
        )

    async def observe(self, window: Window) -> tuple[Observation, ...]:
        return ()

    async def coverage(self, window: Window) -> Coverage:
        return Coverage(window=window.id, observed=(), blind_spots=())

    async def close_window(self, window: Window) -> Window:
        return window.model_copy(update={"closed_at": now_ms(), "closed_by": "ack"})
