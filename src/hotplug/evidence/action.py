"""What can be done, what was done, and what the realm answered: accepted or refused, never whether it worked."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from hotplug.evidence.noun import Noun, Schema
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import Flag, Opaque, RefusalReason, Text, Whole, Words

__all__ = ["Action", "ActionReceipt", "Capability", "Handle", "Refused"]


class Capability(Noun):
    """Something that a realm can do.

    Args:
        name: A word of the domain, not a gesture.
        parameters: A JSON Schema; absent means that it takes nothing.
        mutating: Whether it changes anything; what doesn't is safe to repeat.
    """

    name: Text
    meaning: Text
    parameters: Opaque = None
    mutating: Flag


class Handle(Noun):
    """What a realm found.

    Args:
        ref: Opaque, made by the realm; it may refuse a stale one.
        describes: For people; nothing is decided from it.
        at: Where it is.
    """

    ref: Text
    describes: Text
    at: Words | None = None


class Action(Noun):
    """Something done, or to be done.

    Args:
        actor: Who acts.
        target: A handle's `ref`, never a selector.
        at: When, in milliseconds.
    """

    id: Text
    actor: Text
    capability: Text
    target: Words | None = None
    parameters: Opaque = None
    at: Whole


class Refused(Noun):
    """Why an action was not even tried."""

    reason: RefusalReason
    detail: Text


class ActionReceipt(Noun):
    """That an action was delivered, or was refused; exactly one of the two. It carries no result and no verdict.

    Args:
        action: The action's id.
        dispatched: It was delivered, nothing more.
        subject: The subject at dispatch.
    """

    action: Text
    dispatched: Flag
    refused: Refused | None = None
    subject: SubjectRef
    at: Whole

    RULES: ClassVar[tuple[Schema, ...]] = (
        {
            "oneOf": [
                {"properties": {"dispatched": {"const": True}}, "not": {"required": ["refused"]}},
                {"properties": {"dispatched": {"const": False}}, "required": ["refused"]},
            ]
        },
    )

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if self.dispatched and self.refused is not None:
            raise ValueError("is dispatched and refused: it can only be one")
        if not self.dispatched and self.refused is None:
            raise ValueError("is neither dispatched nor refused: say why it was refused")
        return self
