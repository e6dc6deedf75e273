"""A verdict as a few lines that a person can act on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hotplug.evidence.adjudicate import Adjudication
from hotplug.evidence.anomaly import Anomaly
from hotplug.evidence.channels import ChannelDescriptor
from hotplug.evidence.coverage import BlindSpot, Coverage, impeaching_spots
from hotplug.evidence.intent import Claim, channels_read
from hotplug.evidence.moves import next_move
from hotplug.evidence.observation import Evidence, can_support_consequence
from hotplug.evidence.run import VerdictRecord
from hotplug.evidence.vocabulary import ChannelId, Ground, Verdict

__all__ = ["VERDICT_MARKS", "concerned", "evidence_line", "spot_line", "verdict_lines"]

VERDICT_MARKS: Final[Mapping[Verdict, str]] = {"yes": "✓", "no": "✗", "unknown": "?", "no-fault": "–"}
"""A sign for each verdict, always beside its word."""

_LABEL: Final = 10


def concerned(
    ground: Ground,
    claim: Claim,
    *,
    channels: Iterable[ChannelDescriptor] = (),
    coverage: Coverage | None = None,
    anomalies: Iterable[Anomaly] = (),
) -> tuple[ChannelId, ...]:
    """The channels that a ground's next move is about, as far as they can be named.

    Args:
        channels: Those that are declared.
    """
    reads = channels_read(claim.assertions)
    known = {channel.id: channel for channel in channels}
    match ground:
        case "channel-not-observed":
            return tuple(channel for channel in reads if channel not in known)
        case "assertion-failed":
            return reads
        case "contradicted" | "suspicion-unresolved":
            tier = "observed" if ground == "contradicted" else "absence-derived"
            between = (channel for anomaly in anomalies if anomaly.tier == tier for channel in anomaly.between)
            return tuple(dict.fromkeys(between))
        case "coverage-impeached":
            spots = impeaching_spots(coverage, reads) if coverage is not None else ()
            return tuple(dict.fromkeys(spot.channel for spot in spots if spot.channel is not None))
        case "no-independent-consequence":
            return tuple(
                channel.id
                for channel in known.values()
                if channel.independence == "independent" and channel.grade == "consequence"
            )
        case _:
            return ()


def verdict_lines(
    answer: Adjudication | VerdictRecord,
    claim: Claim,
    *,
    channels: Iterable[ChannelDescriptor] = (),
    evidence: Iterable[Evidence] = (),
    coverage: Coverage | None = None,
    anomalies: Iterable[Anomaly] = (),
    word: str = "channel",
    limit: int = 8,
    width: int | None = None,
) -> tuple[str, ...]:
    """The verdict with its claim, its conditions, why, what was seen, what was not, and what to do next.

    Args:
        answer: What was decided; a record without its ground has no next move.
        channels: Those that are declared.
        evidence: What was admitted.
        word: What a channel is called.
        limit: How many pieces of evidence, and how many gaps, are shown; how many more there are is said.
        width: Break lines that are longer than this, in characters.
    """
    ground = f" ({answer.ground})" if answer.ground else ""
    gaps: Iterable[str] = ()
    if coverage is not None and coverage.blind_spots is None:
        # An adjudication says so among its reasons.
        gaps = [] if any("not enumerated" in one for one in answer.reasons) else ["nobody listed what was out of sight"]
    elif coverage is not None:
        # The gaps that decided are among the reasons already.
        told = impeaching_spots(coverage, channels_read(claim.assertions))
        decided = answer.ground == "coverage-impeached"
        gaps = [spot_line(spot) for spot in coverage.blind_spots or () if not (decided and spot in told)]
    moves: list[str] = []
    if answer.ground and answer.verdict != "yes":
        about = concerned(answer.ground, claim, channels=channels, coverage=coverage, anomalies=anomalies)
        moves = [next_move(answer.ground, about, word=word)]
    blocks = (
        ("claimed", (assertion.reads for assertion in claim.assertions)),
        ("because", answer.reasons),
        ("seen", map(evidence_line, evidence)),
        ("unseen", gaps),
        ("next", moves),
    )
    head = _wrapped(f"{VERDICT_MARKS[answer.verdict]} {answer.verdict}{ground}: {claim.statement}", "", width)
    return (*head, *(line for label, texts in blocks for line in _block(label, texts, limit, width)))


def evidence_line(item: Evidence) -> str:
    """A piece of evidence: its channel, its summary, and what it is worth."""
    seen = item.observation
    worth = f"{item.independence}, {item.grade}"
    if item.provenance.class_ == "learned":
        worth += ", learned"
    paying = "" if can_support_consequence(item) else "; can't prove alone"
    return f"{seen.channel}  {seen.summary}  ({worth}{paying})"


def spot_line(spot: BlindSpot) -> str:
    """A gap in sight: where, what kind, why, and how to see more."""
    remedy = f"; to see more: {spot.remedy}" if spot.remedy else ""
    where = f"{spot.channel}  " if spot.channel else ""
    return f"{where}{spot.kind}: {spot.detail}{remedy}"


def _block(label: str, texts: Iterable[str], limit: int, width: int | None) -> Iterator[str]:
    """The texts, the first beside a label."""
    every = list(texts)
    shown = every[:limit]
    if len(every) > limit:
        shown.append(f"… and {len(every) - limit} more")
    for position, text in enumerate(shown):
        yield from _wrapped(text, f"  {label if position == 0 else '':<{_LABEL}}", width)


def _wrapped(text: str, indent: str, width: int | None) -> list[str]:
    """A text as one line, its line feeds as blanks; as several where it is wider than `width`."""
    line = " ".join(text.splitlines())
    if width is None:
        return [indent + line]
    hanging = " " * len(indent) or "    "
    return textwrap.wrap(
        line, max(width, 40), initial_indent=indent, subsequent_indent=hanging, break_on_hyphens=False
    ) or [indent.rstrip()]
