"""Two facts of one window that cannot both hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated

from pydantic import Field

from hotplug.evidence.coverage import BlindSpot
from hotplug.evidence.noun import Noun
from hotplug.evidence.observation import Observation
from hotplug.evidence.vocabulary import ANOMALY_KINDS, AnomalyKind, AnomalyTier, ChannelId, Text, Words
from hotplug.evidence.window import Window, closed_cleanly

__all__ = ["ANOMALY_KINDS", "Anomaly", "witness_disagreement"]


class Anomaly(Noun):
    """A contradiction.

    Args:
        tier: `observed` may force a `no`, `absence-derived` only an `unknown`, `advisory` decides nothing. In doubt
            absence-derived.
        claim: What the subject seemed to say.
        counter: What contradicts it.
        between: The two channels; the same twice where both facts are from one.
        evidence: The ids of the observations behind it.
    """

    kind: AnomalyKind
    tier: AnomalyTier
    claim: Text
    counter: Text
    between: Annotated[tuple[ChannelId, ...], Field(min_length=2, max_length=2)]
    evidence: tuple[Words, ...] = ()


def witness_disagreement(
    *,
    claim: str,
    channel: ChannelId,
    witness: ChannelId,
    observed: Collection[Observation],
    blind: Iterable[BlindSpot] = (),
    window: Window | None = None,
) -> Anomaly | None:
    """The anomaly of a success that a witness should have seen and did not.

    None where the witness saw something, or could not look: a gap on its channel, a gap without a channel that is
    flagged as impeaching, or a window of its own that did not close cleanly.

    Args:
        claim: What the actor said.
        channel: Where it said so.
        witness: The witness's channel.
        observed: What the witness saw that would bear the actor out; nothing else.
        blind: The gaps of the witness's own look.
        window: The witness's own window, where it has one.
    """
    if any(spot.channel == witness or (spot.channel is None and spot.impeaching) for spot in blind):
        return None
    if observed or (window is not None and not closed_cleanly(window)):
        return None
    return Anomaly(
        kind="claim-uncorroborated",
        tier="observed",
        claim=claim,
        counter=f"{witness} was watched the whole time and shows nothing of it",
        between=(channel, witness),
        evidence=(),
    )
