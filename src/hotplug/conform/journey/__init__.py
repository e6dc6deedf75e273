"""Journeys: the same play on several backends, compared without a word about vendors."""

from hotplug.conform.journey.document import Journey, Needs, Step, Undo, load
from hotplug.conform.journey.outcome import BackendOutcome, Cell, JourneyReport, Status
from hotplug.conform.journey.runner import Witness, play

__all__ = [
    "BackendOutcome",
    "Cell",
    "Journey",
    "JourneyReport",
    "Needs",
    "Status",
    "Step",
    "Undo",
    "Witness",
    "load",
    "play",
]
