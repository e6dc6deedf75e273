"""How repeatable a realm is."""

from __future__ import annotations

from typing import Literal

from hotplug.evidence.noun import Noun

__all__ = ["DeterminismProfile"]


class DeterminismProfile(Noun):
    """Five answers, all required; there is no default profile.

    Args:
        reset: Is there a way back to a known start, and at what price?
        replay_prefix: What does driving the steps before again do?
        time: Who controls the clock?
        observation: Does reading twice without a change give the same?
        actions: Can what an action did be taken back?
    """

    reset: Literal["none", "cheap", "costly"]
    replay_prefix: Literal["free", "costly", "unsafe"]
    time: Literal["wall", "injectable", "stepped"]
    observation: Literal["exact", "sampled"]
    actions: Literal["reversible", "irreversible"]
