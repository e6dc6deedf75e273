"""Every worked case of adjudication comes out as it should."""

from __future__ import annotations

import importlib
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


@pytest.mark.parametrize("position", range(1, 9))
def test_two_clauses_the_other_way_round_change_a_worked_case(position: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clauses 1 and 2 never both apply, and the last takes what is left; every other neighbour is pinned."""
    module = importlib.import_module("hotplug.evidence.adjudicate")
    clauses = list(module._CLAUSES)
    clauses[position : position + 2] = reversed(clauses[position : position + 2])
    monkeypatch.setattr(module, "_CLAUSES", tuple(clauses))
    changed = [
        vector["id"]
        for vector in VECTORS
        if "derive" not in vector
        if adjudicate(AdjudicationInput.read(vector["input"])).ground != vector["expected"]["ground"]
    ]
    assert any(name.startswith("order-") for name in changed)
