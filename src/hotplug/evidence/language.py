"""Flows: journeys written down as documents."""

from __future__ import annotations

from typing import Annotated, Any, Final, cast

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema

from hotplug.evidence.action import Action
from hotplug.evidence.intent import Assertion
from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import Flag, Opaque, Positive, Text, Whole

__all__ = ["Flow", "FlowName", "Invoke", "Step", "is_flow_name"]

_SEGMENT: Final = r"(?!\.{1,2}(?:/|$(?!\n)))[^/]+"
_NAME_SCHEMA: Final = rf"^{_SEGMENT}(?:/{_SEGMENT})*$(?!\n)"
_OF_ACTIONS: Final = frozenset({"actor", "capability", "target", "parameters"})
_OF_INVOCATIONS: Final = frozenset({"invoke", "with"})


def is_flow_name(name: str) -> bool:
    """Whether this names a flow: segments between `/`, none of them empty, `.` or `..`."""
    return all(segment not in ("", ".", "..") for segment in name.split("/"))


def _flow_name(name: str) -> str:
    if is_flow_name(name):
        return name
    raise ValueError("is no name of a flow: write segments between single slashes, none of them `.` or `..`")


FlowName = Annotated[
    str,
    Field(strict=True),
    AfterValidator(_flow_name),
    WithJsonSchema({"type": "string", "pattern": _NAME_SCHEMA}),
]
"""Segments between `/`; none is empty, `.` or `..`."""


class Invoke(Noun):
    """A step that runs another flow.

    Args:
        invoke: The flow's name.
        with_: `with` on the wire; opaque to all but the realm.
    """

    id: Text
    invoke: FlowName
    with_: Opaque = None
    at: Whole


def _which(step: Any) -> str | None:
    if isinstance(step, Action):
        return "action"
    if isinstance(step, Invoke):
        return "invoke"
    if not isinstance(step, dict):
        return None
    members = cast("dict[str, Any]", step)
    names = {
        name.removesuffix("_") for name, value in members.items() if value is not None or name in ("parameters", "with")
    }
    of_action, of_invocation = names & _OF_ACTIONS, names & _OF_INVOCATIONS
    if of_action and of_invocation:
        return None
    return "invoke" if of_invocation else "action"


Step = Annotated[
    Annotated[Action, Tag("action")] | Annotated[Invoke, Tag("invoke")],
    Discriminator(
        _which,
        custom_error_type="step",
        custom_error_message="Is no step: it is either an action (actor, capability) or an invocation (invoke)",
    ),
]
"""An action or an invocation; what has members of both is ambiguous and refused."""


class Flow(Noun):
    """A journey.

    Args:
        version: The version of the grammar that it was written in; now 2.
        start_state: Carried, never read here; so are `requires` and `ensures`.
        claim: What it shows.
        may_rebind: Whether a step's target may be found anew.
    """

    name: FlowName
    version: Positive
    start_state: Opaque = None
    requires: Opaque = None
    ensures: Opaque = None
    claim: Text
    steps: tuple[Step, ...]
    expects: tuple[Assertion, ...] = ()
    may_rebind: Flag = False
