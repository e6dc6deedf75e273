"""Everything that a reader must notice about a run, each thing on its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evidence.shop import ORDERS, run_document

from hotplug.evidence import Present, Reading, VerificationRun
from hotplug.evidence.checks import examine_run, verify_run
from hotplug.evidence.vocabulary import GROUNDS, VERDICTS

Document = dict[str, Any]


def test_a_run_as_it_was_recorded_has_no_fault() -> None:
    examined = examine_run(run_document())
    assert examined.faults == ()
    assert examined.unjudged == ()
    assert examined.outcome == "fail"
    assert examined.run is not None
    assert verify_run(examined.run) == ()
    assert verify_run(json.dumps(run_document()), shown_summary="fail") == ()


def _twice(document: Document) -> None:
    document["claims"].append(document["claims"][0])


def _change(path: str, value: Any) -> Callable[[Document], None]:
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]

    def change(document: Document) -> None:
        here: Any = document
        for step in steps:
            here = here[step]
        if value is DELETE:
            del here[last]
        elif value is AGAIN:
            here[last].append(here[last][0])
        else:
            here[last] = value

    return change


_SUBJECT = "evidence.0.provenance.subject"
DELETE = object()
AGAIN = object()


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        (_change("claims", AGAIN), "duplicate", "$.claims[11].id"),
        (_change("windows", AGAIN), "duplicate", "$.windows[11].id"),
        (_change("intents", AGAIN), "duplicate", "$.intents[1].id"),
        (_change("constraints", AGAIN), "duplicate", "$.constraints[2].id"),
        (_change("actions", AGAIN), "duplicate", "$.actions[2].id"),
        (_change("receipts", AGAIN), "duplicate", "$.receipts[2].action"),
        (_change("coverage", AGAIN), "duplicate", "$.coverage[11].window"),
        (_change("verdicts", AGAIN), "duplicate", "$.verdicts[11].id"),
        (_change("witnesses", AGAIN), "duplicate", "$.witnesses[1].name"),
        (_change("claims.0.assertions.1.id", "as-1-1"), "duplicate", "$.claims[0].assertions[1].id"),
        (_change("intents.0.claims.0", "gone"), "unresolved", "$.intents[0].claims[0]"),
        (_change("claims.0.intent", "gone"), "unresolved", "$.claims[0].intent"),
        (_change("receipts.0.action", "gone"), "unresolved", "$.receipts[0].action"),
        (_change("evidence.0.observation.window", "gone"), "unresolved", "$.evidence[0].observation.window"),
        (_change("coverage.0.window", "gone"), "unresolved", "$.coverage[0].window"),
        (_change("anomalies.0.evidence", ["gone"]), "unresolved", "$.anomalies[0].evidence[0]"),
        (_change("verdicts.0.claim", "gone"), "unresolved", "$.verdicts[0].claim"),
        (_change("verdicts.0.window", "gone"), "unresolved", "$.verdicts[0].window"),
        (_change("verdicts.0.evidence", ["gone"]), "unresolved", "$.verdicts[0].evidence[0]"),
        (_change("verdicts.4.anomalies.0.evidence", ["gone"]), "unresolved", "$.verdicts[4].anomalies[0].evidence[0]"),
        (_change("violations.0.constraint", "gone"), "unresolved", "$.violations[0].constraint"),
        (_change("violations.0.evidence", ["gone"]), "unresolved", "$.violations[0].evidence[0]"),
        (_change("repairs.0.verdict", "run-2026-06-11-a#gone"), "unresolved", "$.repairs[0].verdict"),
        (_change("repairs.0.evidence", ["gone"]), "unresolved", "$.repairs[0].evidence[0]"),
        (_change("endedAt", 1), "order", "$.endedAt"),
        (_change("windows.0.closedAt", 1), "order", "$.windows[0].closedAt"),
        (_change("channels.3.independence", "independent"), "channel", "$.channels"),
        (_change("channels.1.grade", "consequence"), "channel", "$.channels"),
        (_change("evidence.0.observation.channel", "visual"), "channel", "$.evidence[0].observation.channel"),
        (_change("evidence.4.independence", "independent"), "overstated", "$.evidence[4].independence"),
        (_change("evidence.4.grade", "consequence"), "overstated", "$.evidence[4].grade"),
        (
            _change("evidence.0.provenance.subject.instance", "tab-6"),
            "inadmissible",
            "$.evidence[0].provenance.subject",
        ),
        (_change("evidence.0.provenance.subject.epoch", 2), "inadmissible", "$.evidence[0].provenance.subject"),
        (_change("verdicts.0.evidence", ["ob-2-1"]), "inadmissible", "$.verdicts[0].evidence[0]"),
        (_change("coverage.0", DELETE), "coverage", "$.verdicts[0].window"),
        (_change("verdicts.1.grade", "consequence"), "verdict", "$.verdicts[1].grade"),
        (_change("verdicts.0.grade", "presence"), "verdict", "$.verdicts[0].grade"),
        (_change("verdicts.0.ground", "assertion-failed"), "verdict", "$.verdicts[0].ground"),
        (_change("verdicts.0.supersedes", "run-2026-06-11-a#gone"), "supersedes", "$.verdicts[0].supersedes"),
        (_change("verdicts.0.supersedes", "run-2026-06-11-a#verdict-1"), "supersedes", "$.verdicts[0].supersedes"),
        (_change("verdicts.0.supersedes", "run-2026-06-11-a#verdict-2"), "supersedes", "$.verdicts[0].supersedes"),
        (_change("outcome", "pass"), "summary", "$.outcome"),
        (_change("summary", {"outcome": "pass"}), "summary", "$.summary.outcome"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("$") else "",
)
def test_what_is_wrong_is_named_with_its_place(change: Callable[[Document], None], code: str, where: str) -> None:
    document = run_document()
    change(document)
    examined = examine_run(document)
    assert (where, code) in {(fault.where, fault.code) for fault in examined.faults}
    assert examined.run is not None


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], "$"),
        (None, "$"),
        ({}, "$.ovp"),
        ("not json", "$"),
        ('{"ovp": "1.0", "ovp": "1.0"}', "$"),
        ('{"ovp": "1.0", "id": NaN}', "$"),
        ("[" * 100_000, "$"),
        (run_document() | {"ovp": "2.0"}, "$.ovp"),
        (run_document() | {"ovp": "10.0"}, "$.ovp"),
        (run_document() | {"ovp": 1}, "$.ovp"),
        (run_document() | {"ovp": "1.0\n"}, "$.ovp"),
        (run_document() | {"startedAt": "now"}, "$.startedAt"),
        (run_document() | {"channels": None}, "$.channels"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_unknown_and_never_no(document: Any, where: str) -> None:
    examined = examine_run(document)
    assert examined.run is None
    assert examined.outcome == "unknown"
    assert where in {fault.where for fault in examined.faults}


def test_another_major_version_is_named_and_not_read_down() -> None:
    (fault,) = verify_run(run_document() | {"ovp": "2.1"})
    assert fault.code == "version"
    assert "2.1" in fault.problem


def test_a_later_minor_version_is_read() -> None:
    assert verify_run(run_document() | {"ovp": "1.7", "added": {"anything": None}}) == ()


def test_every_fault_of_shape_is_told() -> None:
    document = run_document()
    del document["claims"][0]["statement"]
    del document["windows"][1]["closes"]
    found = {fault.where for fault in verify_run(document)}
    assert found == {"$.claims[0].statement", "$.windows[1].closes"}


def test_a_shown_summary_that_the_run_does_not_come_to_is_a_fault() -> None:
    (fault,) = verify_run(run_document(), shown_summary="pass")
    assert fault.code == "summary"
    assert "fail" in fault.problem


@given(st.integers(0, 10), st.sampled_from(VERDICTS))
def test_no_other_verdict_than_the_material_gives_passes(position: int, verdict: str) -> None:
    document = run_document()
    record = document["verdicts"][position]
    # Whether a consequence held before stands in no run, so a yes and this one unknown can't be told apart.
    if record["verdict"] == verdict or ({record["verdict"], verdict} == {"yes", "unknown"} and position in (0, 7)):
        return
    record["verdict"] = verdict
    del record["ground"]
    record.pop("grade", None)
    assert [fault.code for fault in verify_run(document)] == ["verdict"]


@given(st.integers(0, 10), st.sampled_from(GROUNDS))
def test_no_other_ground_than_the_material_gives_passes(position: int, ground: str) -> None:
    document = run_document()
    record = document["verdicts"][position]
    if record["ground"] == ground:
        return
    record["ground"] = ground
    assert "verdict" in [fault.code for fault in verify_run(document)]


def test_evidence_that_no_condition_selects_buys_no_yes() -> None:
    document = run_document()
    document["claims"][0]["assertions"] = [
        {
            "id": "as-1-1",
            "predicate": {"kind": "absent", "match": {"channel": "net", "summary": "POST /refunds 201"}},
            "reads": "no refund",
            "channels": ["net"],
        }
    ]
    (fault,) = verify_run(document)
    assert (fault.where, fault.code) == ("$.verdicts[0]", "verdict")
    assert "no-independent-consequence" in fault.problem


def test_evidence_that_a_verdict_keeps_quiet_about_counts() -> None:
    document = run_document()
    document["verdicts"][1] |= {"verdict": "yes", "ground": "proved", "grade": "consequence", "evidence": ["ob-2-1"]}
    (fault,) = verify_run(document)
    assert fault.where == "$.verdicts[1]"


def test_an_anomaly_that_a_verdict_keeps_quiet_about_counts_where_it_is_certain() -> None:
    document = run_document()
    document["anomalies"][0]["evidence"] = ["ob-5-2"]
    document["evidence"].append(
        document["evidence"][0]
        | {
            "observation": {
                "id": "ob-5-2",
                "window": "win-5",
                "channel": "net",
                "at": 50_002,
                "summary": "PUT /address 500",
            }
        }
    )
    document["verdicts"][4] |= {"verdict": "no", "ground": "assertion-failed", "anomalies": []}
    (fault,) = verify_run(document)
    assert "contradicted" in fault.problem


def speak_nothing(_predicate: object) -> Reading | None:
    return None


def test_predicates_that_nobody_speaks_leave_a_verdict_open_not_wrong() -> None:
    examined = examine_run(run_document(), read=speak_nothing)
    assert examined.faults == ()
    assert {fault.code for fault in examined.unjudged} == {"unjudged"}
    assert "$.verdicts[0]" in {fault.where for fault in examined.unjudged}


def test_predicates_of_ones_own_are_read_with_ones_own_reader() -> None:
    document = run_document()
    document["claims"][0]["assertions"] = [
        {"id": "as-1-1", "predicate": {"starts": "POST /orders"}, "reads": "an order", "channels": ["net"]}
    ]
    assert examine_run(document).unjudged != ()

    def read(predicate: Any) -> Reading | None:
        if "starts" not in predicate:
            return None
        return Present(lambda seen: seen.summary.startswith(predicate["starts"]))

    examined = examine_run(document, read=read)
    assert [fault.where for fault in examined.faults if "verdicts[0]" in fault.where] == []
    assert [fault.where for fault in examined.unjudged if "verdicts[0]" in fault.where] == []
    document["claims"][0]["assertions"][0]["predicate"] = {"starts": "POST /nothing"}
    assert "$.verdicts[0]" in [fault.where for fault in verify_run(document, read=read)]


def test_a_correction_is_not_judged_and_says_so() -> None:
    document = run_document()
    document["verdicts"].append(
        {
            "id": "verdict-12",
            "claim": "claim-6",
            "window": "win-6",
            "verdict": "yes",
            "grade": "consequence",
            "supersedes": "run-2026-06-11-a#verdict-6",
            "at": 110_000,
        }
    )
    examined = examine_run(document)
    assert examined.faults == ()
    assert [fault.where for fault in examined.unjudged] == ["$.verdicts[11]"]


def test_a_correction_of_another_run_cannot_be_looked_up() -> None:
    document = run_document()
    document["verdicts"][0]["supersedes"] = "yesterday#verdict-1"
    examined = examine_run(document)
    assert examined.faults == ()
    assert "$.verdicts[0].supersedes" in {fault.where for fault in examined.unjudged}


def test_two_corrections_of_one_verdict_are_ambiguous() -> None:
    document = run_document()
    for name in ("a", "b"):
        document["verdicts"].append(
            {"id": name, "claim": "claim-6", "window": "win-6", "verdict": "no", "at": 1}
            | {"supersedes": "run-2026-06-11-a#verdict-6"}
        )
    assert [fault.code for fault in verify_run(document)] == ["supersedes", "supersedes"]


def test_corrections_in_a_circle_are_found() -> None:
    document = run_document()
    for name, cited in (("a", "b"), ("b", "c"), ("c", "a")):
        document["verdicts"].append(
            {"id": name, "claim": "claim-6", "window": "win-6", "verdict": "no", "at": 1}
            | {"supersedes": f"run-2026-06-11-a#{cited}"}
        )
    assert {fault.where for fault in verify_run(document)} == {f"$.verdicts[{n}].supersedes" for n in (11, 12, 13)}


def witnessed() -> Document:
    """The run, with the witness's evidence in a window and of a subject of its own."""
    document = run_document()
    document["windows"].append(document["windows"][0] | {"id": "own-1", "subject": ORDERS.document()})
    document["evidence"][1]["observation"]["window"] = "own-1"
    document["evidence"][1]["provenance"]["subject"] = ORDERS.document()
    return document


def test_a_witness_has_windows_and_a_subject_of_its_own() -> None:
    assert verify_run(witnessed()) == ()


def test_a_window_of_a_witness_goes_with_one_window() -> None:
    document = witnessed()
    document["verdicts"][7]["evidence"].append("ob-1-3")
    (fault,) = verify_run(document)
    assert (fault.where, fault.code) == ("$.verdicts[7].evidence[1]", "inadmissible")


def test_a_witness_that_looked_at_another_time_by_its_own_clock_is_told() -> None:
    document = witnessed()
    document["windows"][-1] |= {"openedAt": 1, "closedAt": 2}
    examined = examine_run(document)
    assert examined.faults == ()
    assert [fault.where for fault in examined.unjudged] == ["$.verdicts[0].evidence[1]"]


def test_only_a_declared_witness_does() -> None:
    document = witnessed()
    document["witnesses"][0]["subject"]["instance"] = "orders-db@older"
    document["windows"][-1]["subject"] = document["windows"][0]["subject"]
    assert "$.evidence[1].provenance.subject" in {fault.where for fault in verify_run(document)}


def test_a_witness_may_be_more_independent_than_the_table_and_the_subject_may_not() -> None:
    document = run_document()
    state = {"id": "state", "independence": "independent", "grade": "consequence"}
    document["witnesses"].append(
        {"name": "disk", "subject": {"surface": "device", "instance": "d@1"}, "channels": [state]}
    )
    assert not any(fault.where.startswith("$.witnesses") for fault in verify_run(document))


def test_a_channel_of_a_witness_has_its_longer_name_where_two_collide() -> None:
    document = run_document()
    net = {"id": "net", "independence": "independent", "grade": "consequence"}
    document["witnesses"][0] |= {"name": "proxy", "channels": [*document["witnesses"][0]["channels"], net]}
    document["evidence"][0]["observation"]["channel"] = "x-proxy-net"
    assert not any(fault.code == "channel" for fault in verify_run(document))


def test_a_broken_constraint_must_be_recorded_where_it_is_certain() -> None:
    document = run_document()
    document["violations"] = []
    examined = examine_run(document)
    assert examined.faults == ()
    assert [fault.where for fault in examined.unjudged] == ["$.constraints[0]"]
    alone = run_document()
    keep = ("claims", "windows", "coverage", "verdicts")
    alone |= {name: [one for one in alone[name] if "-2" in json.dumps(one)[:60]][:1] for name in keep}
    alone |= {"evidence": alone["evidence"][2:4], "anomalies": [], "violations": [], "repairs": []}
    alone["intents"][0]["claims"] = ["claim-2"]
    (fault,) = verify_run(alone)
    assert (fault.where, fault.code) == ("$.constraints[0]", "violation")


def test_redacted_values_leave_a_predicate_over_values_open() -> None:
    document = run_document()
    document["claims"][0]["assertions"][0]["predicate"] = {
        "kind": "present",
        "match": {"channel": "net", "summary": "POST /orders 201", "valueContains": "card"},
    }
    assert "$.verdicts[0]" in {fault.where for fault in verify_run(document)}
    document["coverage"][0]["blindSpots"] = [{"kind": "redacted", "detail": "card numbers", "impeaching": False}]
    examined = examine_run(document)
    assert examined.faults == ()
    assert [fault.where for fault in examined.unjudged] == ["$.verdicts[0]"]


def test_a_long_run_is_checked_in_reasonable_time() -> None:
    document = run_document()
    many = 3_000
    first = document["verdicts"][0]
    document["verdicts"] += [
        {**first, "id": f"again-{n}", "supersedes": f"run-2026-06-11-a#{f'again-{n - 1}' if n else 'verdict-1'}"}
        for n in range(many)
    ]
    document["evidence"] += [
        {
            **document["evidence"][0],
            "observation": {**document["evidence"][0]["observation"], "id": f"e{n}", "summary": "x"},
        }
        for n in range(many)
    ]
    assert verify_run(VerificationRun.read(document)) == ()


def test_a_constraint_that_names_its_window_is_held_against_that_one() -> None:
    found: dict[str, list[str]] = {}
    broken = run_document()["evidence"][2]["observation"]["window"]
    (other, *_) = (one["id"] for one in run_document()["windows"] if one["id"] != broken)
    for window in (broken, other, "gone"):
        document = run_document()
        document["violations"] = []
        document["constraints"][0]["window"] = window
        examined = examine_run(document)
        assert examined.unjudged == ()
        found[window] = [fault.code for fault in examined.faults]
    assert found == {broken: ["violation"], other: [], "gone": ["unresolved"]}
