"""Gaps in sight count where they matter to the claim."""

from __future__ import annotations

from hotplug.evidence import impeaching_spots, is_impeached

from .making import coverage, spot

ON_NET, ON_UI, NOWHERE = spot("net"), spot("ui"), spot(None)
FLAGGED, FLAGGED_UI = spot(None, impeaching=True), spot("ui", impeaching=True)


def test_a_gap_on_a_channel_that_is_read_or_with_the_flag_impeaches() -> None:
    everything = coverage(ON_NET, ON_UI, NOWHERE, FLAGGED, FLAGGED_UI)
    assert impeaching_spots(everything, ("net", "log")) == (ON_NET, FLAGGED, FLAGGED_UI)
    assert impeaching_spots(everything, ("ui",)) == (ON_UI, FLAGGED, FLAGGED_UI)
    assert impeaching_spots(everything, ()) == (FLAGGED, FLAGGED_UI)


def test_gaps_that_nobody_enumerated_impeach_nothing() -> None:
    assert impeaching_spots(coverage(blind_spots=None), ("net",)) == ()
    assert impeaching_spots(coverage(), ("net",)) == ()
    assert is_impeached(coverage(blind_spots=None)) is False


def test_without_a_claim_only_the_flag_counts() -> None:
    assert is_impeached(coverage(ON_NET, NOWHERE)) is False
    assert is_impeached(coverage(ON_NET, FLAGGED)) is True
