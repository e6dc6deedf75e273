"""Every worked case of adjudication comes out as it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotplug.evidence import (
    AdjudicationInput,
    Observation,
    adjudicate,
    assertions_held,
    assertions_held_under,
)

FILE = json.loads((Path(__file__).parent / "adjudication-vectors.json").read_text(encoding="utf-8"))
VECTORS: list[dict[str, Any]] = FILE["vectors"]


def test_there_are_as_many_worked_cases_as_ever() -> None:
    assert FILE["protocol"] == "1.0"
    assert len(VECTORS) == len({vector["id"] for vector in VECTORS}) == 249


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_a_worked_case_comes_out_as_written(vector: dict[str, Any]) -> None:
    given = AdjudicationInput.read(vector["input"])
    expected = vector["expected"]
    if derive := vector.get("derive"):
        assert not given.carries("assertions_held")
        seen = [Observation.read(one) for one in vector["observations"]]
        if derive == "assertionsHeld":
            held = assertions_held(given.claim.assertions, seen)
        else:
            held = assertions_held_under(given.claim.assertions, seen, given.coverage)
        assert held is expected["assertionsHeld"]
        given = given.model_copy(update={"assertions_held": held})
    answer = adjudicate(given)
    assert (answer.verdict, answer.ground, answer.grade) == (
        expected["verdict"],
        expected["ground"],
        expected.get("grade"),
    )
    assert answer.ground == vector["ground"]
    assert answer.reasons
