"""The published schemas: every noun by its name, closed, in JSON Schema 2020-12."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from pydantic import TypeAdapter

from hotplug.evidence.action import Action, ActionReceipt, Capability, Handle
from hotplug.evidence.adjudicate import Adjudication, AdjudicationInput
from hotplug.evidence.anomaly import Anomaly
from hotplug.evidence.beliefs import Belief
from hotplug.evidence.channels import ChannelDescriptor
from hotplug.evidence.conformance import Implementation
from hotplug.evidence.coverage import BlindSpot, Coverage
from hotplug.evidence.fixtures import FixtureRef
from hotplug.evidence.intent import Assertion, Claim, Constraint, ConstraintViolation, Intent
from hotplug.evidence.language import Flow, Invoke
from hotplug.evidence.mutation import Reversal
from hotplug.evidence.noun import DIALECT, Noun, Schema
from hotplug.evidence.observation import Evidence, Observation, Provenance
from hotplug.evidence.predicates import Match, Predicate
from hotplug.evidence.repair import Repair
from hotplug.evidence.run import VerdictRecord, VerificationRun
from hotplug.evidence.subject import Invalidation, SubjectRef
from hotplug.evidence.window import Window

__all__ = ["NOUNS", "schema_of", "schemas"]

NOUNS: Final[Mapping[str, type[Noun]]] = MappingProxyType(
    {
        "action": Action,
        "action-receipt": ActionReceipt,
        "adjudication": Adjudication,
        "adjudication-input": AdjudicationInput,
        "anomaly": Anomaly,
        "assertion": Assertion,
        "belief": Belief,
        "blind-spot": BlindSpot,
        "capability": Capability,
        "channel-descriptor": ChannelDescriptor,
        "claim": Claim,
        "constraint": Constraint,
        "constraint-violation": ConstraintViolation,
        "coverage": Coverage,
        "evidence": Evidence,
        "fixture-ref": FixtureRef,
        "flow": Flow,
        "handle": Handle,
        "implementation": Implementation,
        "intent": Intent,
        "invalidation": Invalidation,
        "invoke": Invoke,
        "match": Match,
        "observation": Observation,
        "provenance": Provenance,
        "repair": Repair,
        "reversal": Reversal,
        "subject-ref": SubjectRef,
        "verdict-record": VerdictRecord,
        "verification-run": VerificationRun,
        "window": Window,
    }
)
"""Every noun but `predicate`, which is one of four."""


def schemas() -> Mapping[str, Schema]:
    """Every published schema by its name: the thirty nouns, and an adjudication's input and answer."""
    return {name: schema_of(name) for name in sorted((*NOUNS, "predicate"))}


@cache
def schema_of(name: str) -> Schema:
    """The published schema of that name.

    Raises:
        KeyError: There is none.
    """
    if name == "predicate":
        schema: Schema = {"$schema": DIALECT, **TypeAdapter[object](Predicate).json_schema(by_alias=True)}
    else:
        schema = NOUNS[name].published_schema()
    return {"$schema": schema.pop("$schema"), "$id": f"urn:hotplug:schema:evidence:{name}:1", **schema}
