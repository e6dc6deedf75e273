"""Nouns for tests: healthy unless a test says otherwise."""

from __future__ import annotations

from typing import Any

from hotplug.evidence import (
    AdjudicationInput,
    Anomaly,
    Assertion,
    BlindSpot,
    ChannelDescriptor,
    Claim,
    Coverage,
    Evidence,
    Observation,
    Provenance,
    SubjectRef,
    Window,
)

__all__ = [
    "CHANNELS",
    "LOG",
    "NET",
    "STATE",
    "UI",
    "anomaly",
    "assertion",
    "case",
    "claim",
    "coverage",
    "evidence",
    "observation",
    "present",
    "provenance",
    "spot",
    "subject",
    "window",
]

NET = ChannelDescriptor(id="net", independence="independent", grade="consequence")
LOG = ChannelDescriptor(id="log", independence="independent", grade="context")
UI = ChannelDescriptor(id="ui", independence="actuation-derived", grade="presence")
STATE = ChannelDescriptor(id="state", independence="actuation-derived", grade="consequence")
CHANNELS = (NET, LOG, UI, STATE)


def subject(instance: str = "shop@7", **given: Any) -> SubjectRef:
    return SubjectRef(surface="service", instance=instance, **given)


def window(**given: Any) -> Window:
    base = {
        "id": "w",
        "opened_at": 1,
        "closed_at": 9,
        "budget_ms": 500,
        "closes": "ack",
        "closed_by": "ack",
        "subject": subject(),
    }
    return Window(**{**base, **given})


def observation(name: str = "o", channel: str = "net", summary: str = "POST /orders 201", **given: Any) -> Observation:
    return Observation(**{"id": name, "window": "w", "channel": channel, "at": 2, "summary": summary, **given})


def provenance(class_: Any = "observed", **given: Any) -> Provenance:
    base = {"class_": class_, "source": "proxy", "method": "read the log", "subject": subject(), "at": 2}
    return Provenance(**{**base, **given})


def evidence(observed: Observation | None = None, **given: Any) -> Evidence:
    base = {
        "observation": observed or observation(),
        "provenance": provenance(),
        "independence": "independent",
        "grade": "consequence",
    }
    return Evidence(**{**base, **given})


def present(channel: str = "net", summary: str | None = "POST /orders 201") -> dict[str, Any]:
    return {"kind": "present", "match": {"channel": channel, **({"summary": summary} if summary else {})}}


def assertion(predicate: object = None, channels: tuple[str, ...] = ("net",), reads: str = "placed") -> Assertion:
    return Assertion(id="a", predicate=predicate or present(), reads=reads, channels=channels)


def claim(*assertions: Assertion, **given: Any) -> Claim:
    base = {"id": "c", "statement": "the order is placed", "declared_at": "before-action", "assertions": assertions}
    return Claim(**{**base, **given})


def spot(channel: str | None = None, *, impeaching: bool = False, **given: Any) -> BlindSpot:
    base = {"kind": "buffer-truncated", "channel": channel, "detail": "the buffer was full", "impeaching": impeaching}
    return BlindSpot(**{**base, **given})


def coverage(*spots: BlindSpot, **given: Any) -> Coverage:
    return Coverage(**{"window": "w", "observed": ("net", "log"), "blind_spots": spots, **given})


def anomaly(tier: Any = "observed", between: tuple[str, str] = ("ui", "net"), **given: Any) -> Anomaly:
    base = {"kind": "no-effect", "tier": tier, "claim": "placed", "counter": "nothing happened", "between": between}
    return Anomaly(**{**base, **given})


def case(**given: Any) -> AdjudicationInput:
    """A case that is proved unless a test says otherwise."""
    base: dict[str, Any] = {
        "claim": claim(assertion()),
        "window": window(),
        "channels": CHANNELS,
        "evidence": (evidence(),),
        "coverage": coverage(),
        "anomalies": (),
        "assertions_held": True,
    }
    return AdjudicationInput(**{**base, **given})
