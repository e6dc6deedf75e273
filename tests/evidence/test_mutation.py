"""Mutations are graded by the table of the protocol."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.evidence.mutation import grade_mutation, score_mutations
from hotplug.evidence.vocabulary import MUTATION_OUTCOMES, RUN_OUTCOMES, MutationOutcome, RunOutcome


@pytest.mark.parametrize(
    ("applied", "before", "after", "expected"),
    [
        (False, "pass", "pass", "inconclusive"),
        (False, "pass", "fail", "inconclusive"),
        (True, "fail", "pass", "inconclusive"),
        (True, "fail", "fail", "inconclusive"),
        (True, "pass", "fail", "killed"),
        (True, "pass", "pass", "survived"),
        (True, "pass", "partial", "killed"),
        (True, "pass", "unknown", "inconclusive"),
        (True, "unknown", "fail", "inconclusive"),
        (True, "partial", "fail", "inconclusive"),
    ],
)
def test_a_mutation_is_graded(applied: bool, before: RunOutcome, after: RunOutcome, expected: MutationOutcome) -> None:
    assert grade_mutation(before, after, applied=applied) == expected


@given(st.sampled_from(RUN_OUTCOMES), st.sampled_from(RUN_OUTCOMES), st.booleans())
def test_only_an_applied_mutation_of_a_passing_flow_is_conclusive(
    before: RunOutcome, after: RunOutcome, applied: bool
) -> None:
    if grade_mutation(before, after, applied=applied) != "inconclusive":
        assert applied
        assert before == "pass"


@given(st.lists(st.tuples(st.text(), st.sampled_from(MUTATION_OUTCOMES))))
def test_the_score_counts_what_was_conclusive(graded: list[tuple[str, MutationOutcome]]) -> None:
    score = score_mutations(graded)
    assert len(score.killed) + len(score.survived) + len(score.inconclusive) == len(graded)
    if score.score is None:
        assert not score.killed
        assert not score.survived
    else:
        assert score.score * (len(score.killed) + len(score.survived)) == pytest.approx(len(score.killed))
