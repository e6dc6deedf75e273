"""What could not be seen."""

from __future__ import annotations

from collections.abc import Collection

from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import BlindSpotKind, ChannelId, Flag, Text, Words

__all__ = ["BlindSpot", "Coverage", "impeaching_spots", "is_impeached"]


class BlindSpot(Noun):
    """A gap in sight.

    Args:
        channel: Where it is; one that names its channel impeaches every claim that reads there.
        impeaching: It impeaches every claim. A realm does not judge what matters to a claim: it names the channel, and
            sets this only on a gap that has none.
        remedy: How to see more next time.
    """

    kind: BlindSpotKind
    channel: ChannelId | None = None
    detail: Text
    impeaching: Flag
    remedy: Words | None = None


class Coverage(Noun):
    """What was watched in a window, and the gaps.

    Args:
        observed: The channels that were really watched.
        blind_spots: Empty says that there was no gap at all; None that nobody could enumerate the gaps.
    """

    window: Text
    observed: tuple[ChannelId, ...]
    blind_spots: tuple[BlindSpot, ...] | None = None


def impeaching_spots(coverage: Coverage, channels_read: Collection[ChannelId]) -> tuple[BlindSpot, ...]:
    """The gaps that matter to a claim which reads these channels: on one of them, or impeaching by their flag."""
    return tuple(spot for spot in coverage.blind_spots or () if spot.impeaching or spot.channel in channels_read)


def is_impeached(coverage: Coverage) -> bool:
    """Whether some gap impeaches every claim. It knows no claim, so it is weaker than `impeaching_spots`."""
    return any(spot.impeaching for spot in coverage.blind_spots or ())
