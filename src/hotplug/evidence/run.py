"""The record of one verification."""

from __future__ import annotations

from typing import Literal

from hotplug.evidence.action import Action, ActionReceipt
from hotplug.evidence.anomaly import Anomaly
from hotplug.evidence.channels import Declared
from hotplug.evidence.coverage import Coverage
from hotplug.evidence.intent import Claim, Constraint, ConstraintViolation, Intent
from hotplug.evidence.noun import Noun
from hotplug.evidence.observation import Evidence
from hotplug.evidence.repair import Repair
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import Grade, Ground, Text, Verdict, Whole, Words
from hotplug.evidence.window import Window

__all__ = ["RunWitness", "VerdictRecord", "VerificationRun", "Verifier"]


class VerdictRecord(Noun):
    """A verdict as a run keeps it; later ones cite it, nobody edits it.

    Args:
        claim: The claim's id.
        window: The window's id.
        ground: The deciding clause. Our addition: the protocol's record has none.
        evidence: The ids of the observations behind it.
        supersedes: The citation (`<runId>#<verdictId>`) of the verdict that this one corrects.
    """

    id: Text
    claim: Text
    window: Text
    verdict: Verdict
    grade: Grade | None = None
    ground: Ground | None = None
    reasons: tuple[Text, ...] = ()
    evidence: tuple[Words, ...] = ()
    anomalies: tuple[Anomaly, ...] = ()
    supersedes: Words | None = None
    at: Whole


class Verifier(Noun):
    """The program that verified."""

    name: Text
    version: Text
    profile: Words | None = None


class RunWitness(Noun):
    """A witness that took part in a run."""

    name: Text
    subject: SubjectRef
    channels: Declared


class VerificationRun(Noun):
    """Everything that one verification meant, did, saw and decided. It holds no summary: its reader computes one."""

    ovp: Literal["1.0"]
    id: Text
    verifier: Verifier
    subject: SubjectRef
    channels: Declared
    witnesses: tuple[RunWitness, ...] = ()
    intents: tuple[Intent, ...] = ()
    claims: tuple[Claim, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    actions: tuple[Action, ...] = ()
    receipts: tuple[ActionReceipt, ...] = ()
    windows: tuple[Window, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    anomalies: tuple[Anomaly, ...] = ()
    verdicts: tuple[VerdictRecord, ...] = ()
    violations: tuple[ConstraintViolation, ...] = ()
    repairs: tuple[Repair, ...] = ()
    started_at: Whole
    ended_at: Whole
