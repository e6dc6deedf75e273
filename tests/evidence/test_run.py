"""What a run comes to, and how one of its verdicts is corrected."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evidence.shop import run_document

from hotplug.evidence import EvidenceError, VerdictRecord, VerificationRun, schema_of
from hotplug.evidence.run import citation, export_strict, outcome_of, revise_verdict, standing_verdicts
from hotplug.evidence.vocabulary import VERDICTS


def run_of(*verdicts: str, supersedes: dict[int, int] | None = None, **more: Any) -> VerificationRun:
    """A run of these verdicts; `supersedes` says which corrects which, by position."""
    document: dict[str, Any] = {
        "ovp": "1.0",
        "id": "run-1",
        "verifier": {"name": "v", "version": "1"},
        "subject": {"surface": "service", "instance": "a@1"},
        "channels": [],
        "verdicts": [
            {"id": f"v{n}", "claim": "c", "window": "w", "verdict": verdict, "at": n}
            | ({"supersedes": f"run-1#v{supersedes[n]}"} if supersedes and n in supersedes else {})
            for n, verdict in enumerate(verdicts)
        ],
        "startedAt": 0,
        "endedAt": 9,
    }
    return VerificationRun.read(document | more)


def constrained(severity: str, *verdicts: str) -> VerificationRun:
    return run_of(
        *verdicts,
        constraints=[{"id": "k", "statement": "s", "channels": ["net"], "severity": severity}],
        violations=[{"constraint": "k", "at": 1, "detail": "d"}],
    )


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ((), "unknown"),
        (("unknown", "no-fault"), "unknown"),
        (("yes",), "pass"),
        (("yes", *["unknown"] * 9), "pass"),
        (("no",), "fail"),
        (("no", "unknown"), "fail"),
        (("no", "yes"), "partial"),
    ],
)
def test_the_outcome_is_recomputed(verdicts: tuple[str, ...], outcome: str) -> None:
    assert outcome_of(run_of(*verdicts)) == outcome


def test_a_violated_blocking_constraint_fails_before_anything_else() -> None:
    assert outcome_of(constrained("blocking", "yes", "no")) == "fail"
    assert outcome_of(constrained("advisory", "yes")) == "pass"


@given(st.lists(st.sampled_from(VERDICTS)))
def test_no_run_passes_without_a_yes_and_none_with_a_no(verdicts: list[str]) -> None:
    outcome = outcome_of(run_of(*verdicts))
    assert (outcome == "pass") == ("yes" in verdicts and "no" not in verdicts)
    assert outcome_of(run_of(*reversed(verdicts))) == outcome


def test_a_superseded_verdict_no_longer_counts() -> None:
    run = run_of("no", "yes", supersedes={1: 0})
    assert [record.id for record in standing_verdicts(run)] == ["v1"]
    assert outcome_of(run) == "pass"


def test_a_verdict_may_be_superseded_from_another_run() -> None:
    first = run_of("no")
    later = run_of("yes", id="run-2").model_copy(
        update={"verdicts": (record("v0", "yes").model_copy(update={"supersedes": "run-1#v0"}),)}
    )
    assert standing_verdicts(first, others=[later]) == ()
    assert outcome_of(first) == "fail"
    assert outcome_of(first, others=[later]) == "unknown"


def record(name: str, verdict: str, claim: str = "c") -> VerdictRecord:
    return VerdictRecord.read(
        {"id": name, "claim": claim, "window": "other", "verdict": verdict, "reasons": ["seen late"], "at": 5}
    )


def test_a_correction_cites_and_leaves_the_earlier_record_alone() -> None:
    run = run_of("unknown")
    earlier = run.verdicts[0]
    before = earlier.document()
    later = record("v9", "no").model_copy(update={"evidence": ("ob-late",)})
    revised = revise_verdict(earlier, run.id, later, run=run)
    assert earlier.document() == before
    assert revised.supersedes == citation("run-1", "v0") == "run-1#v0"
    assert (revised.claim, revised.window, revised.verdict, revised.at) == ("c", "w", "no", 5)
    assert (revised.evidence, revised.anomalies, revised.reasons) == (("ob-late",), (), ("seen late",))
    assert VerdictRecord.read(revised.document()) == revised


@pytest.mark.parametrize(
    ("earlier", "later", "run", "said"),
    [
        (record("v0", "no"), record("v0", "yes"), None, "supersede itself"),
        (record("v0", "no"), record("v9", "yes", "other"), None, "'other'"),
        (record("gone", "no"), record("v9", "yes"), run_of("no"), "is not in the run"),
        (record("v0", "no"), record("v9", "yes"), run_of("no", "yes", supersedes={1: 0}), "supersedes already"),
    ],
)
def test_a_wrong_correction_is_refused(
    earlier: VerdictRecord, later: VerdictRecord, run: VerificationRun | None, said: str
) -> None:
    with pytest.raises(EvidenceError, match=said):
        revise_verdict(earlier, "run-1", later, run=run)


def test_a_record_of_another_run_may_have_the_same_id() -> None:
    assert revise_verdict(record("v0", "no"), "run-0", record("v0", "yes"), run=run_of()).supersedes == "run-0#v0"


def without_additions(schema: dict[str, Any]) -> dict[str, Any]:
    schema["$defs"]["VerdictRecord"]["properties"].pop("ground")
    coverage = schema["$defs"]["Coverage"]
    coverage["required"] = [*coverage["required"], "blindSpots"]
    return schema


def test_the_strict_form_has_nothing_of_ours() -> None:
    document = run_document() | {"x-of-ours": 1}
    document["claims"][0]["x-of-ours"] = 2
    run = VerificationRun.read(document)
    strict = export_strict(run)
    import copy

    jsonschema.Draft202012Validator(without_additions(copy.deepcopy(schema_of("verification-run")))).validate(strict)
    assert "x-of-ours" not in str(strict)
    assert not any("ground" in one for one in strict["verdicts"])
    assert any(one.ground for one in run.verdicts), "the run itself keeps them"


def test_the_strict_form_invents_no_empty_list_of_gaps() -> None:
    document = run_document()
    del document["coverage"][2]["blindSpots"]
    with pytest.raises(EvidenceError) as refused:
        export_strict(VerificationRun.read(document))
    assert refused.value.where == "$.coverage[2].blindSpots"
