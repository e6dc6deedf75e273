"""`hotplug adjudicate`: one answer for each case, and a bad case costs only itself."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Ran, Run, validated

from hotplug.cli.failure import Exit

VECTORS = Path(__file__).parent.parent / "evidence" / "adjudication-vectors.json"
EVERY: list[dict[str, Any]] = json.loads(VECTORS.read_text(encoding="utf-8"))["vectors"]
ONE = next(one for one in EVERY if one["id"] == "ground-11-proved")
DERIVED = next(one for one in EVERY if one.get("derive") == "assertionsHeldUnder")


def answers(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def written(value: Any, name: str = "cases.json") -> str:
    Path(name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return name


def lines(values: list[Any]) -> str:
    return "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in values)


def test_every_worked_case_comes_out_in_order_and_in_the_shape(run: Run) -> None:
    ran = run("adjudicate", str(VECTORS))
    assert ran.code == Exit.YES
    assert answers(ran) == [
        {"id": one["id"]}
        | {name: one["expected"][name] for name in ("verdict", "ground", "grade") if name in one["expected"]}
        for one in EVERY
    ]
    assert ran.err == ""


def test_every_worked_case_is_as_expected(run: Run) -> None:
    assert run("adjudicate", str(VECTORS), "--check").code == Exit.YES


@pytest.mark.parametrize("name", ["list", "lines", "vectors", "single"])
def test_a_file_may_hold_its_cases_in_several_ways(run: Run, name: str) -> None:
    values: dict[str, Any] = {
        "list": [ONE],
        "lines": lines([ONE, ONE]),
        "vectors": {"format": "ovp-adjudication-vectors", "protocol": "1.0", "vectors": [ONE]},
        "single": ONE,
    }
    ran = run("adjudicate", written(values[name]))
    assert ran.code == Exit.YES
    assert answers(ran)[0] == {"id": ONE["id"], "verdict": "yes", "ground": "proved", "grade": "consequence"}


def test_an_input_alone_is_a_case_without_an_id(run: Run) -> None:
    for value in (ONE["input"], {"input": ONE["input"]}):
        (answer,) = answers(run("adjudicate", written(value)))
        assert answer == {"id": None, "verdict": "yes", "ground": "proved", "grade": "consequence"}


def test_cases_are_read_from_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"\xef\xbb\xbf" + json.dumps([ONE]).encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert answers(run("adjudicate", "-"))[0]["verdict"] == "yes"


def test_json_is_one_document_and_json_lines_are_as_in_text(run: Run) -> None:
    file = written([ONE, DERIVED])
    assert run("adjudicate", file, "--json").document["answers"] == answers(run("adjudicate", file))
    assert run("adjudicate", file, "--format", "jsonl").out == run("adjudicate", file).out


def bad(change: dict[str, Any]) -> dict[str, Any]:
    return {**json.loads(json.dumps(DERIVED)), "id": "bad", **change}


def of_input(change: dict[str, Any]) -> dict[str, Any]:
    return {"input": {**DERIVED["input"], **change}}


@pytest.mark.parametrize(
    ("case", "where"),
    [
        (bad({"input": None}), "$.input"),
        (bad({"derive": "assertionsMaybe"}), "$.derive"),
        (bad({"observations": None}), "$.observations"),
        (
            bad({"observations": [*DERIVED["observations"], {"id": ""}]}),
            f"$.observations[{len(DERIVED['observations'])}]",
        ),
        (bad(of_input({"assertionsHeld": True})), "$.input.assertionsHeld"),
        (bad(of_input({"window": {"id": "w"}})), "$.input.window"),
        (bad(of_input({"assertionsHeld": "true"})), "$.input.assertionsHeld"),
        ('{"id": "bad", "id": "worse"}', "$"),
        ('{"id": "bad", "input": {"claim": {"a": 1, "a": 1}}}', "$.input.claim"),
        ('{"id": "bad", "input": {"claim": NaN}}', "$.input.claim"),
        ('{"id": "bad", "input": {"claim": 1e999}}', "$.input.claim"),
        ('{"id": "bad", "input": {"claim": "\\ud800"}}', "$.input.claim"),
        ('{"id": "bad"}', "$"),
        ('"bad"', "$"),
        ("{bad", "$"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("$") else "",
)
def test_a_bad_case_is_named_with_its_place_and_costs_only_itself(run: Run, case: Any, where: str) -> None:
    file = written(lines([ONE, case, DERIVED]))
    ran = run("adjudicate", file)
    assert [one["id"] for one in answers(ran)] == [ONE["id"], DERIVED["id"]]
    assert ran.code == Exit.INCOMPLETE
    assert ran.err.startswith("error: ")
    assert "bad" in ran.err or "line 2" in ran.err
    assert f"at {where}" in ran.err
    errors = [validated(line) for line in run("adjudicate", file, "--json").err.splitlines()]
    assert [error["code"] for error in errors] == ["bad_case"]
    assert errors[0]["where"].startswith(where)
    assert run("adjudicate", file, "--json").document["undecided"] == 1


def test_a_case_that_is_ambiguous_costs_only_itself_in_a_list_too(run: Run) -> None:
    text = f'{{"vectors": [{json.dumps(ONE)}, {{"id": "twice", "derive": 1, "derive": 2}}, {json.dumps(DERIVED)}]}}'
    ran = run("adjudicate", written(text))
    assert len(answers(ran)) == 2
    assert "'twice' at $: member \"derive\" is there twice" in ran.err


def test_an_answer_that_is_not_expected_is_named(run: Run) -> None:
    wrong = {**ONE, "id": "hopeful", "expected": {"verdict": "no", "ground": "proved", "grade": "consequence"}}
    ran = run("adjudicate", written([ONE, wrong]), "--check")
    assert ran.code == Exit.NO
    assert len(answers(ran)) == 2
    assert '\'hopeful\': verdict is "yes", expected "no"' in ran.err
    assert ran.err.count("error:") == 1


@pytest.mark.parametrize("held", [True, False, None])
def test_what_was_derived_is_compared_too(run: Run, held: bool | None) -> None:
    case = {**DERIVED, "expected": {**DERIVED["expected"], "assertionsHeld": held}}
    ran = run("adjudicate", written([case]), "--check")
    assert (ran.code == Exit.YES) is (held is DERIVED["expected"]["assertionsHeld"])


def test_nothing_to_compare_is_no_pass(run: Run) -> None:
    case = {name: value for name, value in ONE.items() if name != "expected"}
    assert run("adjudicate", written([case]), "--check").code == Exit.INCOMPLETE


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "3", "null", '{"vectors": 3}', "[" * 100_000, "{\n1\n}"])
def test_what_holds_no_cases_is_refused(run: Run, text: str) -> None:
    ran = run("adjudicate", written(text))
    assert ran.code in (Exit.USAGE, Exit.INCOMPLETE)
    assert ran.out == ""
    assert ran.err.startswith("error: ")


def test_a_missing_file_is_refused(run: Run) -> None:
    assert run("adjudicate", "nowhere.json").code == Exit.USAGE


def test_another_version_of_the_protocol_is_named_and_nothing_is_decided(run: Run) -> None:
    ran = run("adjudicate", written({"protocol": "2.0", "vectors": [ONE]}), "--json")
    assert "2.0" in ran.error["message"]
    assert ran.code == Exit.USAGE


def test_what_a_case_says_is_made_safe_for_a_terminal(run: Run) -> None:
    ran = run("adjudicate", written([{**ONE, "id": "a\x1b[31mb"}, {"id": "\u202ec"}]))
    assert "\x1b" not in ran.out + ran.err
    assert "\u202e" not in ran.out + ran.err
    assert answers(ran)[0]["id"] == "a\x1b[31mb"
