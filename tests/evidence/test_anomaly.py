"""A witness that should have seen it and did not."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.evidence import Anomaly, EvidenceError, witness_disagreement

from .making import anomaly, observation, spot, window


def disagree(**given: Any) -> Anomaly | None:
    base = {"claim": "the order is placed", "channel": "ui", "witness": "x-db-state", "observed": ()}
    return witness_disagreement(**{**base, **given})


def test_a_witness_that_looked_and_saw_nothing_disagrees() -> None:
    found = disagree(window=window())
    assert found is not None
    assert found == disagree()
    assert (found.kind, found.tier, found.claim) == ("claim-uncorroborated", "observed", "the order is placed")
    assert found.between == ("ui", "x-db-state")
    assert "x-db-state" in found.counter
    assert found.document()["evidence"] == []


def test_a_witness_that_saw_it_does_not_disagree() -> None:
    assert disagree(observed=[observation(channel="x-db-state")]) is None


@pytest.mark.parametrize("gap", [spot("x-db-state"), spot(None, impeaching=True)])
def test_a_witness_that_could_not_look_does_not_disagree(gap: Any) -> None:
    assert disagree(blind=[spot("ui"), gap]) is None


@pytest.mark.parametrize("gap", [spot("ui", impeaching=True), spot(None), spot("net")])
def test_a_gap_elsewhere_does_not_silence_the_witness(gap: Any) -> None:
    assert disagree(blind=[gap]) is not None


@pytest.mark.parametrize(
    "unclean", [{"closed_by": "terminated"}, {"closed_by": "budget-exhausted"}, {"closed_at": None}]
)
def test_a_witness_whose_window_did_not_close_does_not_disagree(unclean: dict[str, Any]) -> None:
    assert disagree(window=window(**unclean)) is None


@pytest.mark.parametrize("between", [["ui"], ["ui", "net", "log"]])
def test_an_anomaly_is_between_two_channels(between: list[str]) -> None:
    assert anomaly(between=("net", "net")).between == ("net", "net")
    with pytest.raises(EvidenceError) as caught:
        Anomaly.read({**anomaly().document(), "between": between})
    assert caught.value.where == "$.between"
