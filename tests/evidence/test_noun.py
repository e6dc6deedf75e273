"""Every noun is read leniently, written strictly, and refuses what its published schema refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError

from hotplug.evidence import (
    NOUNS,
    ActionReceipt,
    Assertion,
    Claim,
    Coverage,
    EvidenceError,
    Flow,
    Observation,
    schema_of,
)

from .documents import JSON, attempt, documents, lenient, spoiled
from .making import claim, observation, subject, window

NAMES = sorted(NOUNS)
BIG = {"verification-run", "adjudication-input"}


def examples(name: str) -> Any:
    return settings(
        max_examples=6 if name in BIG else 20,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.explain],  # shrinking whole runs takes minutes
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )


@pytest.mark.parametrize("name", NAMES)
def test_what_fits_the_schema_is_read_and_written_back_the_same(name: str) -> None:
    @examples(name)
    @given(documents(name))
    def check(document: Any) -> None:
        noun = NOUNS[name].read(document)
        written = noun.document()
        assert written == document
        assert Draft202012Validator(schema_of(name)).is_valid(written)
        assert NOUNS[name].read_text(noun.text()) == noun
        assert NOUNS[name].model_validate(noun) is noun

    check()


@pytest.mark.parametrize("name", NAMES)
def test_what_the_schema_refuses_the_model_refuses_and_the_other_way_round(name: str) -> None:
    schema = schema_of(name)
    as_read, as_written = Draft202012Validator(lenient(schema)), Draft202012Validator(schema)

    @examples(name)
    @given(spoiled(name))
    def check(document: Any) -> None:
        found = attempt(NOUNS[name].read, document)
        if isinstance(found, EvidenceError):
            assert found.where.startswith("$")
            assert "twice" in found.problem or not as_written.is_valid(document)
        else:
            assert as_read.is_valid(document)
            assert as_written.is_valid(found.document(unknown=False))

    check()


@pytest.mark.parametrize("name", NAMES)
def test_junk_is_refused_with_a_place_and_never_crashes(name: str) -> None:
    @examples(name)
    @given(JSON | st.dictionaries(st.sampled_from(sorted(schema_of(name)["properties"])), JSON))
    def check(document: Any) -> None:
        found = attempt(NOUNS[name].read, document)
        if isinstance(found, EvidenceError):
            assert found.where.startswith("$")
            assert str(found).startswith(found.where)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_unknown_members_and_nulls_change_nothing_and_unknown_ones_are_forwarded(name: str) -> None:
    members = schema_of(name)["properties"]
    opaque = {one for one, schema in members.items() if schema == {}} | ({*members} if name == "match" else set())
    absent = sorted(members.keys() - opaque)

    @examples(name)
    @given(documents(name), st.dictionaries(st.sampled_from(["x", "opened_at", "start_state", "class_", "text"]), JSON))
    def check(document: Any, more: dict[str, Any]) -> None:
        noun = NOUNS[name].read(document)
        nulls = {one: None for one in absent if one not in document}
        received = NOUNS[name].read({**nulls, **document, **more})
        assert received.document() == {**document, **more}
        assert received.document(unknown=False) == document
        assert [getattr(received, field) for field in type(noun).model_fields] == [
            getattr(noun, field) for field in type(noun).model_fields
        ]

    check()


def test_a_null_in_an_opaque_member_is_a_value_and_elsewhere_it_is_absent() -> None:
    document = {"id": "o", "window": "w", "channel": "net", "at": 1, "summary": "s"}
    missing, null = Observation.read(document), Observation.read({**document, "value": None})
    assert (missing.carries("value"), null.carries("value")) == (False, True)
    assert missing.document() == document
    assert null.document() == {**document, "value": None}
    assert Coverage.read({"window": "w", "observed": [], "blindSpots": None}).blind_spots is None
    assert not Coverage.read({"window": "w", "observed": [], "blindSpots": None}).carries("blind_spots")


def test_an_empty_list_of_gaps_is_told_from_an_absent_one() -> None:
    assert Coverage.read({"window": "w", "observed": [], "blindSpots": []}).document()["blindSpots"] == []
    assert "blindSpots" not in Coverage.read({"window": "w", "observed": []}).document()


def test_names_of_here_are_not_read_from_the_wire() -> None:
    with pytest.raises(EvidenceError, match=r"\$\.declaredAt: field required"):
        Claim.read({"id": "c", "statement": "s", "declared_at": "before-action"})


def test_a_noun_made_here_is_written_in_camel_case_without_what_was_not_given() -> None:
    assert window(closed_at=None, closed_by=None).document() == {
        "id": "w",
        "openedAt": 1,
        "budgetMs": 500,
        "closes": "ack",
        "subject": {"surface": "service", "instance": "shop@7"},
    }


def test_a_noun_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        subject().instance = "other"


@pytest.mark.parametrize("at", [True, "1", 1.5, [1]])
def test_nothing_is_coerced_to_a_number(at: object) -> None:
    with pytest.raises(EvidenceError) as caught:
        Observation.read({**observation().document(), "at": at})
    assert caught.value.where == "$.at"


def test_an_integral_float_is_the_integer() -> None:
    at = Observation.read({**observation().document(), "at": 2.0}).at
    assert (at, type(at)) == (2, int)


def test_a_refusal_names_every_place_the_first_one_first() -> None:
    with pytest.raises(EvidenceError) as caught:
        Claim.read(
            {
                "id": "",
                "statement": "s",
                "declaredAt": "late",
                "assertions": [{"id": "a", "reads": "r", "channels": ["net", "sound"]}],
            }
        )
    assert caught.value.where == "$.id"
    assert [where for where, _ in caught.value.more] == ["$.declaredAt", "$.assertions[0].channels[1]"]
    assert "'sound': is no channel" in caught.value.more[1][1]
    assert str(caught.value).endswith("(and 2 more)")


def test_a_step_with_members_of_both_is_ambiguous() -> None:
    step = {"id": "s", "actor": "a", "capability": "pay", "invoke": "shop/pay", "at": 1}
    with pytest.raises(EvidenceError, match="either an action") as caught:
        Flow.read({"name": "f", "version": 2, "claim": "c", "steps": [step]})
    assert caught.value.where == "$.steps[0]"


def test_a_place_inside_a_step_is_named_without_the_kind_of_step() -> None:
    with pytest.raises(EvidenceError) as caught:
        Flow.read({"name": "f", "version": 2, "claim": "c", "steps": [{"id": "s", "invoke": "a//b", "at": 1}]})
    assert caught.value.where == "$.steps[0].invoke"


@pytest.mark.parametrize(
    "extra", [{"dispatched": True, "refused": {"reason": "guarded", "detail": "d"}}, {"dispatched": False}]
)
def test_a_receipt_is_dispatched_or_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(EvidenceError, match="dispatched"):
        ActionReceipt.read({"action": "a", "at": 1, "subject": subject().document(), **extra})


def test_a_predicate_is_carried_whatever_it_is() -> None:
    one = Assertion.read({"id": "a", "predicate": {"deep": [None, {"x": 1}]}, "reads": "r", "channels": ["x-a"]})
    assert one.document()["predicate"] == {"deep": [None, {"x": 1}]}


def test_a_value_nested_too_deeply_is_refused() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EvidenceError, match="nested too deeply"):
        Claim.read_text("[" * 100_000)
    with pytest.raises(EvidenceError):
        Claim.read(deep)


def test_the_predicate_schema_is_that_of_the_four_shapes() -> None:
    schema = schema_of("predicate")
    assert Draft202012Validator(schema).is_valid({"kind": "present", "match": {"channel": "net"}})
    assert not Draft202012Validator(schema).is_valid(
        {"kind": "present", "match": {"channel": "net", "valueContains": "x"}}
    )


def test_a_claim_written_out_is_json() -> None:
    assert json.loads(claim().text()) == claim().document()
    assert TypeAdapter(Claim).validate_python(claim()) == claim()
