"""What is remembered raises questions and never proves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.evidence import EvidenceError
from hotplug.evidence.beliefs import Belief, belief_can_prove, promote_belief, strongest_verdict_from
from hotplug.evidence.vocabulary import PROVENANCE_CLASSES


def belief(class_: str, observations: int = 9, confidence: float = 1.0) -> Belief:
    provenance: dict[str, Any] = {
        "class": class_,
        "source": "earlier runs",
        "method": "counting",
        "subject": {"surface": "web", "instance": "a@1"},
        "at": 1,
    }
    if class_ == "learned":
        provenance["confidence"] = confidence
    return Belief.read(
        {"id": "b", "kind": "failure-mode", "statement": "s", "provenance": provenance, "observations": observations}
    )


@given(st.sampled_from(PROVENANCE_CLASSES), st.integers(0, 10**6), st.floats(0, 1))
def test_only_the_class_decides_and_nothing_ever_says_yes(class_: str, observations: int, confidence: float) -> None:
    one = belief(class_, observations, confidence)
    assert belief_can_prove(one) is (class_ != "learned")
    assert strongest_verdict_from(one) == ("unknown" if class_ == "learned" else "no")


def test_somebody_takes_responsibility() -> None:
    learned = belief("learned")
    promoted = promote_belief(learned, "Ada", 77)
    assert promoted.provenance.class_ == "authoritative"
    assert promoted.provenance.confidence is None
    assert (promoted.promoted_by, promoted.promoted_at, promoted.observations) == ("Ada", 77, 9)
    assert learned.provenance.class_ == "learned"
    assert learned.promoted_by is None
    assert Belief.read(promoted.document()) == promoted


@pytest.mark.parametrize("by", ["", "  ", "\n"])
def test_nobody_promotes_nothing(by: str) -> None:
    with pytest.raises(EvidenceError, match="say who"):
        promote_belief(belief("learned"), by, 77)
