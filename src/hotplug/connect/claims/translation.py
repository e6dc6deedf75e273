"""Between our words and the protocol's: sense and channel, wire codes and reasons of refusal, profiles and surfaces.

The one module that knows both. Source: Open Verification Protocol 1, channel table and refusal reasons; the design's
page verification.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hotplug.evidence import ChannelDescriptor, RefusalReason
from hotplug.profile import Definition, Sense
from hotplug.profile.senses import SENSES, exceeds

__all__ = ["descriptor", "refusal_reason", "sense_of", "surface_of", "trust", "witness_channel"]

_REASONS: Final[Mapping[str, RefusalReason]] = {
    "invalid_argument": "malformed",
    "too_large": "malformed",
    "not_found": "unresolved",
    "ambiguous": "unresolved",
    "stale_reference": "unresolved",
    "unavailable": "unavailable",
    "conflict": "unavailable",
    "rate_limited": "unavailable",
    "timeout": "unavailable",
    "disconnected": "unavailable",
    "internal": "unavailable",
    "in_doubt": "unavailable",
    "unsupported": "unsupported",
    "undeclared": "undeclared",
    "guarded": "guarded",
    "permission_denied": "guarded",
}

_SURFACES: Final = {"browser": "web", "app": "desktop", "device": "device", "chat": "x-chat"}


def refusal_reason(code: str) -> RefusalReason:
    """The protocol's reason for a wire code; a code that isn't known counts as `unavailable`."""
    return _REASONS.get(code, "unavailable")


def surface_of(definition: Definition) -> str:
    """The kind of place that a profile is about: that of the nearest profile in its lineage, else `service`."""
    for one in definition.lineage():
        if one.name in _SURFACES:
            return _SURFACES[one.name]
    return "service"


def trust(sense: str, declared: Mapping[str, Sense]) -> Sense | None:
    """What a sense is worth: as declared, never above the table; None for an `x-` sense that nobody declares."""
    limit = SENSES.get(sense)
    said = declared.get(sense)
    if said is None:
        return limit
    return limit if limit is not None and exceeds(said, limit) else said


def descriptor(sense: str, worth: Sense, note: str | None = None) -> ChannelDescriptor:
    """A sense as the protocol's channel."""
    body: dict[str, Any] = {"id": sense, **worth.document()}
    if note:
        body["note"] = note
    return ChannelDescriptor.model_validate(body)


def witness_channel(witness: str, channel: str) -> str:
    """The name of a witness's channel where the subject, or another witness, has one of that name."""
    return f"x-{re.sub('[^a-z0-9-]', '-', witness.lower())}-{channel.removeprefix('x-')}"


def sense_of(channel: str, renamed: Mapping[str, tuple[str, str]]) -> str:
    """A channel as a person calls it: its sense, and by which witness where that had to be said.

    Args:
        renamed: The channels that `witness_channel` made, with their witness and sense.
    """
    found = renamed.get(channel)
    return f"{found[1]} by {found[0]}" if found else channel
