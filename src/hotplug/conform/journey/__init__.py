"""Journeys: the same play on several backends, compared without a word about vendors."""

from hotplug.conform.journey.check import BackendCheck, CheckFault, JourneyCheck, check
from hotplug.conform.journey.claims import Holds, StepClaim, StepConstraint
from hotplug.conform.journey.document import Journey, Needs, Step, Undo, load
from hotplug.conform.journey.outcome import (
    BackendOutcome,
    Cell,
    ClaimOutcome,
    ConstraintOutcome,
    JourneyReport,
    Status,
)
from hotplug.conform.journey.runner import Witness, play

__all__ = [
    "BackendCheck",
    "BackendOutcome",
    "Cell",
    "CheckFault",
    "ClaimOutcome",
    "ConstraintOutcome",
    "Holds",
    "Journey",
    "JourneyCheck",
    "JourneyReport",
    "Needs",
    "Status",
    "Step",
    "StepClaim",
    "StepConstraint",
    "Undo",
    "Witness",
    "check",
    "load",
    "play",
]
