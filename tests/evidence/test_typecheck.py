"""Programs are checked before anything is dispatched, and every fault has its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.evidence import Flow
from hotplug.evidence.typecheck import (
    ABSENT,
    Address,
    Call,
    Composite,
    Criterion,
    RealmSurface,
    Site,
    compile_for,
    grade_criteria,
    portable_across,
    typecheck_composite,
    typecheck_flat,
)

REALM = RealmSurface(("order.place", "order.list"), ("net", "log"))


def kinds(faults: Any) -> list[str]:
    return [fault.kind for fault in faults]


def test_an_empty_program_passes() -> None:
    assert typecheck_flat([], REALM) == ()


def test_every_fault_is_reported_with_its_step() -> None:
    steps = [Call("order.place", ("net",)), Call("order.burn", ("ui",)), Call("order.list", ("ui", "net", "state"))]
    faults = typecheck_flat(steps, REALM)
    assert [(fault.step, fault.kind) for fault in faults] == [
        (1, "undeclared-capability"),
        (2, "unobserved-channel"),
        (2, "unobserved-channel"),
    ]
    assert "order.burn" in faults[0].detail
    assert "order.place" in faults[0].detail, "what is declared is named too"
    assert "'ui'" in faults[1].detail
    assert "net, log" in faults[1].detail


def test_a_realm_that_declares_nothing_is_named_as_such() -> None:
    assert "declared: none" in typecheck_flat([Call("a")], RealmSurface((), ()))[0].detail


@given(st.lists(st.builds(Call, st.sampled_from(["order.place", "x", "y"]), st.just(("net", "ui")))))
def test_a_program_is_emitted_exactly_where_it_typechecks(steps: list[Call]) -> None:
    compiled = compile_for(steps, REALM)
    assert compiled.ok is (typecheck_flat(steps, REALM) == ())
    assert (compiled.program is None) is (compiled.failed_at == "typecheck")
    assert compiled.program is None or compiled.program == tuple(steps)
    assert compiled.errors == typecheck_flat(steps, REALM)


def test_a_program_is_portable_where_nothing_is_missing() -> None:
    realms = {"shop": REALM, "till": RealmSurface(("order.place",), ())}
    found = portable_across([Call("order.place", ("net",))], realms)
    assert found["shop"].portable
    assert found["shop"].missing == ()
    assert not found["till"].portable
    assert "'net'" in found["till"].missing[0]


def doc(name: str, *invokes: str | None, **contracts: Any) -> Composite:
    return Composite(name, invokes, **contracts)


def equal(established: Any, requires: Any) -> bool | None:
    return established == requires


def test_an_unknown_entry_has_no_call_site() -> None:
    (fault,) = typecheck_composite([], "main")
    assert (fault.kind, fault.step, fault.at) == ("unresolved-flow", 0, None)
    assert "'main'" in fault.detail


def test_an_unknown_document_is_reported_at_the_call_site() -> None:
    (fault,) = typecheck_composite([doc("main", None, "shop/cart"), doc("shop/cart", "gone")], "main")
    assert fault.kind == "unresolved-flow"
    assert fault.at == Address("shop/cart", 0, (Site("main", 1),))
    assert str(fault.at) == "shop/cart#0 (invoked from main#1)"


def test_callers_stand_nearest_first() -> None:
    (fault,) = typecheck_composite([doc("a", "b"), doc("b", None, "c"), doc("c", None, None, "gone")], "a")
    assert str(fault.at) == "c#2 (invoked from b#1, a#0)"
    assert str(Address("a", 3)) == "a#3"


def test_a_circle_is_reported_with_its_closing_path() -> None:
    (fault,) = typecheck_composite([doc("a", "b"), doc("b", "c"), doc("c", "a")], "a")
    assert fault.kind == "cyclic-invocation"
    assert "a → b → c → a" in fault.detail
    assert fault.at == Address("c", 0, (Site("b", 0), Site("a", 0)))


def test_a_document_may_be_reached_on_two_routes() -> None:
    assert typecheck_composite([doc("a", "b", "c"), doc("b", "d"), doc("c", "d"), doc("d")], "a", equal) == ()


def test_structure_is_walked_once() -> None:
    faults = typecheck_composite([doc("a", "b", "b"), doc("b", "gone")], "a")
    assert kinds(faults) == ["unresolved-flow"]


def test_the_entry_seeds_the_journey_and_is_not_checked() -> None:
    documents = [doc("a", "b", requires="cart", ensures="paid"), doc("b", requires="cart")]
    assert typecheck_composite(documents, "a", equal) == ()


def test_what_one_document_ensures_is_what_the_next_starts_from() -> None:
    documents = [doc("a", "b", "c"), doc("b", ensures="cart"), doc("c", requires="cart")]
    assert typecheck_composite(documents, "a", equal) == ()
    (fault,) = typecheck_composite([*documents[:2], doc("c", requires="paid")], "a", equal)
    assert (fault.kind, str(fault.at)) == ("unsatisfied-requirement", "a#1")


def test_what_a_nested_invocation_left_is_passed_on() -> None:
    documents = [doc("a", "b", "d"), doc("b", None, "c"), doc("c", ensures="cart"), doc("d", requires="cart")]
    assert typecheck_composite(documents, "a", equal) == ()


def test_a_null_contract_is_one() -> None:
    asked: list[Any] = []

    def satisfies(established: Any, requires: Any) -> bool:
        asked.append((established, requires))
        return True

    documents = [doc("a", "b", "c"), doc("b", ensures=None), doc("c", requires=None)]
    assert typecheck_composite(documents, "a", satisfies) == ()
    assert asked == [(None, None)]


def test_what_cannot_be_judged_is_no_agreement() -> None:
    faults = typecheck_composite([doc("a", "b"), doc("b", requires="cart")], "a", lambda _e, _r: None)
    assert kinds(faults) == ["unjudged-requirement"]


def test_after_one_failed_stitch_nothing_is_compared_but_structure_is_walked() -> None:
    documents = [doc("a", "b", "b", "c", "gone"), doc("b", requires="x"), doc("c", requires="y")]
    faults = typecheck_composite(documents, "a", equal)
    assert kinds(faults) == ["unsatisfied-requirement", "unresolved-flow"]


def test_without_a_realm_that_judges_contracts_go_unchecked() -> None:
    assert typecheck_composite([doc("a", "b"), doc("b", requires="x")], "a") == ()


def test_a_document_reached_again_is_stitched_again() -> None:
    documents = [doc("a", "b", "c", "b"), doc("b", requires="cart"), doc("c", ensures="paid")]
    faults = typecheck_composite([doc("a", "b", "c", "b", requires="cart"), *documents[1:]], "a", equal)
    assert [str(fault.at) for fault in faults] == ["a#2"]


def test_inside_a_document_without_a_contract_stitches_depend_on_the_route() -> None:
    documents = [
        doc("a", "wrap", "spend", "wrap", requires="cart"),
        doc("wrap", "inner"),
        doc("inner", requires="cart"),
        doc("spend", ensures="nothing"),
    ]
    (fault,) = typecheck_composite(documents, "a", equal)
    assert str(fault.at) == "wrap#0 (invoked from a#2)"


def test_a_long_chain_is_no_deep_recursion() -> None:
    many = 5_000
    documents = [doc(f"d{n}", f"d{n + 1}") for n in range(many)]
    faults = typecheck_composite(documents, "d0")
    assert kinds(faults) == ["unresolved-flow"]
    assert faults[0].at is not None
    assert len(faults[0].at.via) == many - 1


def test_many_routes_are_walked_in_no_more_steps_than_there_are_documents_and_contracts() -> None:
    asked = 0

    def satisfies(_established: Any, _requires: Any) -> bool:
        nonlocal asked
        asked += 1
        return True

    many = 200
    documents = [doc(f"d{n}", f"d{n + 1}", f"d{n + 1}") for n in range(many)]
    assert typecheck_composite([*documents, doc(f"d{many}", requires="x")], "d0", satisfies) == ()
    assert asked <= 4


@pytest.mark.parametrize(
    ("observed", "verdict"),
    [
        ({"a": True, "b": True}, "yes"),
        ({"a": True, "b": False}, "no"),
        ({"a": False}, "no"),
        ({"a": True}, "unknown"),
        ({"a": True, "b": None}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_criteria_are_graded(observed: dict[str, bool | None], verdict: str) -> None:
    criteria = [Criterion("a", "order.list"), Criterion("b", "order.list", ("net",))]
    graded = grade_criteria(criteria, observed)
    assert graded.verdict == verdict
    assert sorted(graded.passed + graded.failed + graded.unchecked) == ["a", "b"]


def test_no_criteria_are_no_yes() -> None:
    assert grade_criteria([], {}).verdict == "unknown"


def test_a_flow_is_read_as_what_it_invokes() -> None:
    act = {"id": "s1", "actor": "me", "capability": "order.place", "at": 1}
    steps = [act, {"id": "s2", "invoke": "a", "at": 2}]
    flow = {"name": "shop/buy", "version": 2, "claim": "c", "requires": None, "steps": steps}
    composite = Composite.of(Flow.read(flow))
    assert composite == Composite("shop/buy", (None, "a"), requires=None)
    assert composite.ensures is ABSENT
