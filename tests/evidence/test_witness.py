"""Witnesses look, realms act as well, and neither judges."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.evidence.action import Action, ActionReceipt, Capability
from hotplug.evidence.channels import ChannelDescriptor
from hotplug.evidence.coverage import Coverage
from hotplug.evidence.determinism import DeterminismProfile
from hotplug.evidence.observation import Observation
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import ChannelId, ProvenanceClass
from hotplug.evidence.window import Window
from hotplug.evidence.witness import Detects, Fixtures, Locates, Mutates, Photographs, Realm, Witness

SUBJECT = SubjectRef(surface="service", instance="till@1")
OWN = ChannelDescriptor(id="log", independence="independent", grade="context")


class Log(Witness):
    name = "log"
    declared: tuple[ChannelDescriptor, ...] = (
        ChannelDescriptor(id="log", independence="independent", grade="context"),
    )

    def identity(self) -> SubjectRef:
        return SUBJECT

    def channels(self) -> tuple[ChannelDescriptor, ...]:
        return self.declared

    def provenance(self, channel: ChannelId) -> tuple[str, str, ProvenanceClass]:
        return "the log", "read", "observed"

    async def open_window(self, budget_ms: int) -> Window:
        return Window(id="w", opened_at=1, budget_ms=budget_ms, closes="ack", subject=SUBJECT)

    async def observe(self, window: Window) -> tuple[Observation, ...]:
        return ()

    async def coverage(self, window: Window) -> Coverage:
        return Coverage(window=window.id, observed=("log",), blind_spots=())

    async def close_window(self, window: Window) -> Window:
        return window.model_copy(update={"closed_at": 2, "closed_by": "ack"})


class Till(Log, Realm):
    def determinism(self) -> DeterminismProfile:
        return DeterminismProfile(
            reset="none", replay_prefix="unsafe", time="wall", observation="exact", actions="irreversible"
        )

    def capabilities(self) -> tuple[Capability, ...]:
        return (Capability(name="pay", meaning="take money", mutating=True),)

    async def describe(self, query: Any = None) -> Any:
        return {}

    async def dispatch(self, action: Action) -> ActionReceipt:
        return ActionReceipt(action=action.id, dispatched=True, subject=SUBJECT, at=action.at)


def action(capability: str) -> Action:
    return Action(id="a-1", actor="me", capability=capability, at=7)


@pytest.mark.anyio
async def test_a_declared_action_is_dispatched() -> None:
    assert (await Till().perform(action("pay"))).dispatched


@pytest.mark.anyio
async def test_an_undeclared_action_is_refused_and_says_what_is_declared() -> None:
    receipt = await Till().perform(action("burn"))
    assert not receipt.dispatched
    assert receipt.refused is not None
    assert receipt.refused.reason == "undeclared"
    assert "'burn'" in receipt.refused.detail
    assert "pay" in receipt.refused.detail
    assert (receipt.action, receipt.subject, receipt.at) == ("a-1", SUBJECT, 7)


@pytest.mark.parametrize("member", ["verify", "verdict", "adjudicate", "assert", "pass", "succeeded"])
@pytest.mark.parametrize("base", [Log, Till])
def test_no_member_may_judge(member: str, base: type[Witness]) -> None:
    with pytest.raises(TypeError, match=f"{member}: what looks gives no verdict"):
        type("Judge", (base,), {member: lambda self: True})


@pytest.mark.parametrize("member", ["perform", "refuse", "observes", "unobserved", "can_prove_anything"])
def test_what_is_final_stays(member: str) -> None:
    with pytest.raises(TypeError, match="is final"):
        type("Other", (Till,), {member: lambda self: None})


def test_what_is_final_stays_under_a_mixin_too() -> None:
    class Mixin:
        async def perform(self, action: Action) -> str:
            return "done"

    with pytest.raises(TypeError, match="is final"):
        type("Other", (Mixin, Till), {})


@pytest.mark.parametrize("member", ["perform", "dispatch", "mutate", "apply_fixture"])
def test_a_witness_has_nothing_that_acts(member: str) -> None:
    with pytest.raises(TypeError, match="a witness cannot act"):
        type("Hand", (Log,), {member: lambda self: None})


def test_a_witness_must_be_able_to_look() -> None:
    class Half(Witness):
        name = "half"

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


@pytest.mark.anyio
async def test_what_a_witness_need_not_say_has_a_default() -> None:
    log = Log()
    window = await log.open_window(100)
    assert await log.before(window) == ()
    assert not log.closed_cleanly(window)
    assert log.closed_cleanly(await log.close_window(window))
    await log.aclose()


def test_channels_are_asked_for_by_name_and_order_is_kept() -> None:
    assert Log().observes("log")
    assert not Log().observes("net")
    assert Log().unobserved(["ui", "log", "net"]) == ("ui", "net")


@pytest.mark.parametrize(
    ("independence", "grade", "expected"),
    [
        ("independent", "consequence", True),
        ("independent", "context", False),
        ("actuation-derived", "consequence", False),
    ],
)
def test_only_an_independent_consequence_can_prove(independence: Any, grade: Any, expected: bool) -> None:
    class Other(Log):
        declared = (ChannelDescriptor(id="x-a", independence=independence, grade=grade),)

    assert Other().can_prove_anything() is expected


def test_a_realm_cannot_tell_contracts_apart_by_default() -> None:
    assert Till().satisfies("a", "a") is None


@pytest.mark.parametrize("optional", [Locates, Detects, Photographs, Fixtures, Mutates])
def test_what_is_optional_is_absent(optional: type) -> None:
    assert not isinstance(Till(), optional)


def test_what_is_optional_is_recognised() -> None:
    class Finder(Till):
        async def locate(self, query: Any) -> tuple[Any, ...]:
            return ()

    assert isinstance(Finder(), Locates)
