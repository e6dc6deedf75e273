"""From what was observed to what counts: evidence is made here, never by the realm that saw it.

Source: OVP version 1, from realm output to adjudication input. Each observation that does not count is told with why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from hotplug.evidence.channels import ChannelDescriptor, declared, weaker_grade
from hotplug.evidence.intent import Claim, channels_read
from hotplug.evidence.observation import Evidence, Observation, Provenance
from hotplug.evidence.predicates import Reader, Select, read_predicate
from hotplug.evidence.subject import evidence_is_admissible
from hotplug.evidence.vocabulary import ChannelId, Grade, Independence
from hotplug.evidence.window import Window

__all__ = ["Admitted", "Worth", "admit"]

Worth = Callable[[Observation], tuple[Independence, Grade]]
"""What an observation itself is worth, where that is less than its channel's declaration."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What counts, and what does not.

    Args:
        evidence: What goes into the adjudication.
        dropped: For each observation that does not, why.
        observations: Those of the window and its subject: what assertions are evaluated over.
    """

    evidence: tuple[Evidence, ...]
    dropped: tuple[str, ...]
    observations: tuple[Observation, ...]


def admit(
    observations: Iterable[Observation],
    *,
    window: Window,
    claim: Claim,
    channels: Iterable[ChannelDescriptor],
    provenance: Callable[[Observation], Provenance],
    witnesses: Iterable[Window] = (),
    worth: Worth | None = None,
    read: Reader = read_predicate,
) -> Admitted:
    """The evidence in these observations.

    Dropped is what is of another window or another instance of the subject, on a channel that nobody declared or the
    claim does not read, and what no assertion selects that could be evaluated. So a claim of which nothing could be
    evaluated has no evidence.

    Args:
        provenance: How an observation came to be known; its subject is compared with its window's.
        witnesses: The windows of witnesses: an observation belongs to one of all these windows.
        worth: Less than the declaration where an observation shows less; never more.
        read: Understands the claim's predicates.
    """
    windows = {one.id: one for one in (window, *witnesses)}
    descriptors = declared(channels)
    reads = frozenset(channels_read(claim.assertions))
    dropped: list[str] = []
    present: list[tuple[Observation, Provenance]] = []
    for observation in observations:
        known = provenance(observation)
        why = _not_of_the_window(observation, known, windows)
        if why is None:
            present.append((observation, known))
        else:
            dropped.append(_dropped(observation, why))
    seen = tuple(observation for observation, _ in present)
    selects = _evaluated(claim, seen, read)
    evidence: list[Evidence] = []
    for observation, known in present:
        why = _not_of_the_claim(observation, descriptors, reads, selects)
        if why is None:
            evidence.append(_evidence(observation, known, descriptors[observation.channel], worth))
        else:
            dropped.append(_dropped(observation, why))
    return Admitted(tuple(evidence), tuple(dropped), seen)


def _evaluated(claim: Claim, seen: tuple[Observation, ...], read: Reader) -> tuple[Select, ...]:
    """What the assertions select that these observations give an answer to."""
    readings = [read(assertion.predicate) for assertion in claim.assertions]
    return tuple(reading.select for reading in readings if reading is not None and reading.evaluate(seen) is not None)


def _not_of_the_window(observation: Observation, provenance: Provenance, windows: Mapping[str, Window]) -> str | None:
    window = windows.get(observation.window)
    if window is None:
        return f"it is of window {observation.window}, not of {', '.join(windows)}"
    if not evidence_is_admissible(provenance.subject, window.subject):
        return f"it was seen of {provenance.subject.instance}, and the window watches {window.subject.instance}"
    return None


def _not_of_the_claim(
    observation: Observation,
    descriptors: Mapping[ChannelId, ChannelDescriptor],
    reads: Collection[ChannelId],
    selects: Iterable[Select],
) -> str | None:
    if observation.channel not in descriptors:
        return f"nobody declared the channel {observation.channel}"
    if observation.channel not in reads:
        return f"the claim does not read the channel {observation.channel}"
    if not any(select(observation) for select in selects):
        return "no assertion that could be evaluated is about it"
    return None


def _evidence(
    observation: Observation, provenance: Provenance, channel: ChannelDescriptor, worth: Worth | None
) -> Evidence:
    independence, grade = worth(observation) if worth is not None else (channel.independence, channel.grade)
    if channel.independence == "actuation-derived":
        independence = channel.independence
    return Evidence(
        observation=observation,
        provenance=provenance,
        independence=independence,
        grade=weaker_grade(grade, channel.grade),
    )


def _dropped(observation: Observation, why: str) -> str:
    return f"observation {observation.id} ({observation.channel}: {observation.summary}) does not count: {why}"
