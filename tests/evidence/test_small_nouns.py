"""Subjects, windows and observations: the small questions asked of them."""

from __future__ import annotations

import pytest

from hotplug.evidence import (
    Window,
    can_support_consequence,
    closed_cleanly,
    evidence_is_admissible,
    invalidation_between,
    more_authoritative,
)
from hotplug.evidence.vocabulary import CLOSE_CONDITIONS

from .making import evidence, provenance, subject, window


def test_evidence_is_used_for_the_same_instance_only() -> None:
    assert evidence_is_admissible(subject(epoch=1), subject(epoch=2))
    assert not evidence_is_admissible(subject("a"), subject("b"))


def test_a_replacement_is_told_before_an_edit() -> None:
    found = invalidation_between(subject("a", epoch=1), subject("b", epoch=2))
    assert found is not None
    assert found.document() == {"kind": "instance", "from": "a", "to": "b"}


def test_an_edit_is_told_where_both_sides_know_their_epoch() -> None:
    found = invalidation_between(subject(epoch=0), subject(epoch=2))
    assert found is not None
    assert found.document() == {"kind": "epoch", "from": "0", "to": "2"}
    assert invalidation_between(subject(epoch=1), subject(epoch=1)) is None
    assert invalidation_between(subject(epoch=1), subject()) is None
    assert invalidation_between(subject(), subject(epoch=1)) is None


@pytest.mark.parametrize("ending", CLOSE_CONDITIONS)
def test_a_window_closes_cleanly_unless_given_up_or_killed(ending: str) -> None:
    ended = Window.read({**window().document(), "closedBy": ending, "closes": "budget-exhausted"})
    assert closed_cleanly(ended) is (ending not in ("terminated", "budget-exhausted"))


def test_an_open_window_is_not_closed() -> None:
    assert not closed_cleanly(window(closed_at=None))
    assert not closed_cleanly(window(closed_by=None))
    assert closed_cleanly(window(closed_at=0))


def test_only_independent_unlearned_evidence_of_consequence_pays() -> None:
    assert can_support_consequence(evidence())
    assert can_support_consequence(evidence(provenance=provenance("derived")))
    assert not can_support_consequence(evidence(provenance=provenance("learned", confidence=1)))
    assert not can_support_consequence(evidence(independence="actuation-derived"))
    assert not can_support_consequence(evidence(grade="presence"))


def test_the_stronger_class_is_more_authoritative_and_a_tie_gives_the_first() -> None:
    strongest = [provenance(one) for one in ("authoritative", "derived", "observed")]
    strongest.append(provenance("learned", confidence=0.5))
    for first in range(4):
        for second in range(4):
            expected = strongest[min(first, second)]
            assert more_authoritative(strongest[first], strongest[second]) is expected
    twin = provenance(source="other")
    assert more_authoritative(twin, strongest[2]) is twin
