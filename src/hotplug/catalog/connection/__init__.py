"""connection@1: what every connection can say of itself."""

from hotplug.catalog.connection.profile import (
    BlindSpot,
    BlindSpotKind,
    CloseCondition,
    Closed,
    Connection,
    Coverage,
    Described,
    EventRecord,
    Events,
    MissingPart,
    Opened,
    SenseWorth,
    WindowClosed,
    WindowOpened,
)

__all__ = [
    "BlindSpot",
    "BlindSpotKind",
    "CloseCondition",
    "Closed",
    "Connection",
    "Coverage",
    "Described",
    "EventRecord",
    "Events",
    "MissingPart",
    "Opened",
    "SenseWorth",
    "WindowClosed",
    "WindowOpened",
]
