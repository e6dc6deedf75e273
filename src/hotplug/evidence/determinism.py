"""How repeatable a realm is, and what that allows after a connection was replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hotplug.evidence.errors import EvidenceError
from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import ResumeStrategy

__all__ = ["DeterminismProfile", "resume_strategy"]


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


def resume_strategy(profile: DeterminismProfile | Mapping[str, Any] | None) -> ResumeStrategy:
    """How to go on after a connection was replaced. Use this, never `replay_prefix` itself.

    `refuse` is: do not resume, report the stop, ask for an explicit instruction. It is the answer where driving the
    steps again is unsafe, whatever it would cost, and for everything that is no complete profile.

    Args:
        profile: The profile, or its document as somebody declared it.
    """
    if not isinstance(profile, DeterminismProfile):
        try:
            profile = DeterminismProfile.read(profile)
        except EvidenceError:
            return "refuse"
    if profile.replay_prefix == "unsafe":
        return "refuse"
    if profile.replay_prefix == "free" or profile.reset == "none":
        return "replay-prefix"
    return "reset-then-replay"
