"""Runs: one window as a document, and several windows of a connection as one."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotplug.connect.claims.realm import now_ms
from hotplug.connect.claims.redaction import masked
from hotplug.connect.version import own_version
from hotplug.evidence import (
    Anomaly,
    ChannelDescriptor,
    Claim,
    Constraint,
    ConstraintViolation,
    Coverage,
    Evidence,
    RunWitness,
    VerdictRecord,
    VerificationRun,
    Verifier,
    Window,
)

if TYPE_CHECKING:
    from hotplug.connect.claims.sources import Sources

__all__ = ["Recording", "run_of"]


def run_of(
    sources: Sources,
    *,
    windows: Sequence[Window],
    coverage: Sequence[Coverage],
    claims: Sequence[Claim],
    constraints: Sequence[Constraint],
    evidence: Sequence[Evidence],
    anomalies: Sequence[Anomaly],
    verdicts: Sequence[VerdictRecord],
    violations: Sequence[ConstraintViolation],
    started_at: int,
) -> VerificationRun:
    """One window as a run of its own."""
    realm = sources.realm
    return VerificationRun(
        ovp="1.0",
        id=f"run_{secrets.token_urlsafe(9)}",
        verifier=Verifier(name="hotplug", version=own_version()),
        subject=realm.identity,
        channels=realm.channels,
        witnesses=tuple(
            RunWitness(
                name=view.name,
                subject=view.subject,
                channels=view.channels,
            )
            for view in sources.witnesses
        ),
        claims=tuple(claims),
        constraints=tuple(constraints),
        actions=tuple(realm.actions),
        receipts=tuple(masked(one, sources.redactor.text) for one in realm.receipts),
        windows=tuple(windows),
        evidence=tuple(evidence),
        coverage=tuple(coverage),
        anomalies=tuple(anomalies),
        verdicts=tuple(verdicts),
        violations=tuple(violations),
        started_at=started_at,
        ended_at=max(now_ms(), started_at),
    )


class Recording:
    """The windows of a connection, one after the other, as one run."""

    def __init__(self) -> None:
        self._runs: list[VerificationRun] = []
        self.id = f"run_{secrets.token_urlsafe(9)}"

    def add(self, run: VerificationRun) -> None:
        """Take a window's run."""
        self._runs.append(run)

    def __bool__(self) -> bool:
        return bool(self._runs)

    def run(self) -> VerificationRun:
        """Everything so far as one run; the subject is that of the last window.

        Raises:
            ValueError: Nothing was claimed yet.
        """
        if not self._runs:
            raise ValueError("nothing was claimed: a run without a window has no subject")
        last = self._runs[-1]
        lists = (
            "claims", "constraints", "actions", "receipts", "windows", "evidence", "coverage", "anomalies", "verdicts",
            "violations",
        )  # fmt: skip
        joined: dict[str, Any] = {
            name: tuple(chain.from_iterable(getattr(one, name) for one in self._runs)) for name in lists
        }
        # What was done while two windows were open was taken down in both.
        joined["actions"] = tuple({one.id: one for one in reversed(joined["actions"])}.values())[::-1]
        joined["receipts"] = tuple({one.action: one for one in reversed(joined["receipts"])}.values())[::-1]
        return VerificationRun(
            ovp="1.0",
            id=self.id,
            verifier=last.verifier,
            subject=last.subject,
            channels=_channels(one.channels for one in self._runs),
            witnesses=_witnesses(one for run in self._runs for one in run.witnesses),
            started_at=min(one.started_at for one in self._runs),
            ended_at=max(one.ended_at for one in self._runs),
            **joined,
        )

    def save(self, path: str | Path) -> None:
        """Write the run as JSON.

        Raises:
            OSError: The file can't be written.
        """
        Path(path).write_text(self.run().text() + "\n", encoding="utf-8")


def _witnesses(every: Iterable[RunWitness]) -> tuple[RunWitness, ...]:
    """Each witness once, with all names that its channels had; what it looks at may have been replaced in between."""
    found: dict[tuple[str, str], RunWitness] = {}
    for one in every:
        key = one.name, one.subject.text()
        known = found.get(key)
        both = one.channels if known is None else (*known.channels, *one.channels)
        found[key] = one.model_copy(update={"channels": _channels([both])})
    names: Counter[str] = Counter()
    named: list[RunWitness] = []
    for one in found.values():
        names[one.name] += 1
        count = names[one.name]
        named.append(one if count == 1 else one.model_copy(update={"name": f"{one.name}-again-{count}"}))
    return tuple(named)


def _channels(lists: Iterable[Sequence[ChannelDescriptor]]) -> tuple[ChannelDescriptor, ...]:
    return tuple({one.id: one for channels in lists for one in channels}.values())
