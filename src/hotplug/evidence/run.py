"""The record of one verification: what stands of its verdicts, what they come to, how one is corrected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from hotplug.evidence.action import Action, ActionReceipt
from hotplug.evidence.anomaly import Anomaly
from hotplug.evidence.channels import Declared
from hotplug.evidence.coverage import Coverage
from hotplug.evidence.errors import EvidenceError
from hotplug.evidence.intent import Claim, Constraint, ConstraintViolation, Intent
from hotplug.evidence.noun import Noun
from hotplug.evidence.observation import Evidence
from hotplug.evidence.repair import Repair
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import Grade, Ground, RunOutcome, Text, Verdict, Whole, Words
from hotplug.evidence.window import Window

__all__ = [
    "RunWitness",
    "VerdictRecord",
    "VerificationRun",
    "Verifier",
    "citation",
    "export_strict",
    "outcome_of",
    "revise_verdict",
    "standing_verdicts",
]


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


def citation(run_id: str, verdict_id: str) -> str:
    """How one verdict is cited by another, and by a repair: `<runId>#<verdictId>`."""
    return f"{run_id}#{verdict_id}"


def standing_verdicts(run: VerificationRun, *, others: Iterable[VerificationRun] = ()) -> tuple[VerdictRecord, ...]:
    """The verdicts of a run that no record supersedes, in their order.

    Args:
        others: Further runs whose records may supersede one of this run.
    """
    superseded = {record.supersedes for one in (run, *others) for record in one.verdicts}
    return tuple(record for record in run.verdicts if citation(run.id, record.id) not in superseded)


def outcome_of(run: VerificationRun, *, others: Iterable[VerificationRun] = ()) -> RunOutcome:
    """What a run comes to, from its standing verdicts and violations. Nobody else's word for it counts.

    `unknown` and `no-fault` verdicts count for neither side: one `yes` among nine `unknown` is a pass.

    Args:
        others: As in `standing_verdicts`.
    """
    blocking = {constraint.id for constraint in run.constraints if constraint.severity == "blocking"}
    if any(violation.constraint in blocking for violation in run.violations):
        return "fail"
    verdicts = {record.verdict for record in standing_verdicts(run, others=others)}
    if "no" in verdicts:
        return "partial" if "yes" in verdicts else "fail"
    return "pass" if "yes" in verdicts else "unknown"


def revise_verdict(
    earlier: VerdictRecord, earlier_run_id: str, later: VerdictRecord, *, run: VerificationRun | None = None
) -> VerdictRecord:
    """The record that corrects an earlier one by citing it; the earlier one stays as it is.

    It has the later one's id, verdict, grade, ground, reasons, evidence and time, the earlier one's claim and window,
    and no anomalies.

    Args:
        earlier_run_id: The run that holds the earlier record.
        later: What is known now, about the same claim.
        run: The run that the new record will stand in. Where that is the earlier one's, more can be checked.

    Raises:
        EvidenceError: It would cite itself, a verdict that is not there, one of another claim, or one that another
            record supersedes already.
    """
    cited = citation(earlier_run_id, earlier.id)
    same_run = run is None or run.id == earlier_run_id
    if same_run and later.id == earlier.id:
        raise EvidenceError(f"would supersede itself ({cited}): give the new record an id of its own", where="$.id")
    if later.claim != earlier.claim:
        problem = f"is about the claim {later.claim!r}, and {cited} about {earlier.claim!r}"
        raise EvidenceError(problem, where="$.claim")
    if run is not None:
        if run.id == earlier_run_id and earlier.id not in {record.id for record in run.verdicts}:
            raise EvidenceError(f"cites {cited}, which is not in the run", where="$.supersedes")
        if any(record.supersedes == cited for record in run.verdicts):
            raise EvidenceError(f"cites {cited}, which another record supersedes already", where="$.supersedes")
    return later.model_copy(
        update={"claim": earlier.claim, "window": earlier.window, "anomalies": (), "supersedes": cited}
    )


def export_strict(run: VerificationRun) -> dict[str, Any]:
    """The run as the protocol's own closed schemas allow it: without our additions and without unknown members.

    Raises:
        EvidenceError: A coverage does not enumerate its blind spots. The schema wants a list, and an empty one would
            assert that there was no gap.
    """
    for position, coverage in enumerate(run.coverage):
        if coverage.blind_spots is None:
            problem = f"is not enumerated for the window {coverage.window!r}: the strict form has no way to say so"
            raise EvidenceError(problem, where=f"$.coverage[{position}].blindSpots")
    document = run.document(unknown=False)
    for record in document.get("verdicts", ()):
        record.pop("ground", None)
    return document
