"""connection@1: what every connection can say of itself."""

from hotplug.catalog.connection.profile import (
    Closed,
    CloseReason,
    Connection,
    Coverage,
    Described,
    EventRecord,
    Events,
    MissingPart,
    Opened,
    WindowClosed,
    WindowOpened,
)

__all__ = [
    "CloseReason",
    "Closed",
    "Connection",
    "Coverage",
    "Described",
    "EventRecord",
    "Events",
    "MissingPart",
    "Opened",
    "WindowClosed",
    "WindowOpened",
]
