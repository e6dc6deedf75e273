"""What was meant: intents, the claims that put them to the test, and constraints that must hold throughout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from hotplug.evidence.noun import Noun, Schema, only_if
from hotplug.evidence.vocabulary import (
    ChannelId,
    Declaration,
    IntentOrigin,
    IntentStatus,
    Opaque,
    Severity,
    Text,
    Whole,
    Words,
)

__all__ = ["Assertion", "Channels", "Claim", "Constraint", "ConstraintViolation", "Intent", "channels_read"]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank: say why")
    return text


_Reason = Annotated[
    str, Field(strict=True), AfterValidator(_not_blank), WithJsonSchema({"type": "string", "pattern": r"\S"})
]

Channels = Annotated[tuple[ChannelId, ...], Field(min_length=1)]
"""The channels that a condition reads: one at least."""


class Intent(Noun):
    """What somebody wants, written down as early as possible.

    Args:
        origin: Who wants it; `derived` is the weakest.
        status: `bound` needs a claim; `abandoned` needs `abandoned_because`, and only it has one.
        claims: The ids of the claims bound to it.
        declared_at: When, in milliseconds. (A claim's member of this name is a word.)
    """

    id: Text
    statement: Text
    origin: IntentOrigin
    status: IntentStatus
    claims: tuple[Text, ...] = ()
    declared_at: Whole | None = None
    abandoned_because: _Reason | None = None

    RULES: ClassVar[tuple[Schema, ...]] = (
        only_if("abandonedBecause", {"properties": {"status": {"const": "abandoned"}}}),
        {
            "if": {"properties": {"status": {"const": "bound"}}},
            "then": {"required": ["claims"], "properties": {"claims": {"minItems": 1}}},
        },
    )

    @model_validator(mode="after")
    def _status_fits(self) -> Self:
        if self.status == "abandoned" and self.abandoned_because is None:
            raise ValueError("is abandoned without abandonedBecause: say why")
        if self.status != "abandoned" and self.abandoned_because is not None:
            raise ValueError(f"has abandonedBecause although it is {self.status}: leave it out")
        if self.status == "bound" and not self.claims:
            raise ValueError("is bound to no claim: name one in claims, or call it declared")
        return self


class Assertion(Noun):
    """One condition of a claim.

    Args:
        predicate: The condition in somebody's language; opaque.
        reads: The condition for people.
        channels: Where it looks.
    """

    id: Text
    predicate: Opaque = None
    reads: Text
    channels: Channels


class Claim(Noun):
    """What is to be proved or disproved.

    Args:
        intent: The id of the intent behind it.
        declared_at: Whether it was written before the action; a late one is never proved.
    """

    id: Text
    intent: Text | None = None
    statement: Text
    declared_at: Declaration
    assertions: tuple[Assertion, ...] = ()


class Constraint(Noun):
    """What must hold throughout a window; a violated `blocking` one fails the run."""

    id: Text
    statement: Text
    predicate: Opaque = None
    channels: Channels
    severity: Severity = "blocking"


class ConstraintViolation(Noun):
    """That a constraint did not hold.

    Args:
        constraint: The constraint's id.
        at: When it was first seen.
        evidence: The ids of the observations that show it.
    """

    constraint: Text
    at: Whole
    detail: Text
    evidence: tuple[Words, ...] = ()


def channels_read(assertions: Iterable[Assertion]) -> tuple[ChannelId, ...]:
    """Every channel that the assertions read, once each, in the order of their first mention."""
    return tuple(dict.fromkeys(channel for assertion in assertions for channel in assertion.channels))
