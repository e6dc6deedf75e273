"""A shop's verification, one claim for each ground that a user meets: the material of tests and of the guide.

`python tests/evidence/shop.py` prints five of its verdicts as a person sees them; with `--run`, the whole run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hotplug.evidence import (
    Adjudication,
    AdjudicationInput,
    Anomaly,
    BlindSpot,
    ChannelDescriptor,
    Claim,
    Coverage,
    Observation,
    Provenance,
    SubjectRef,
    Window,
    adjudicate,
    admit,
    assertions_held_under,
)
from hotplug.evidence.text import verdict_lines

SHOP = SubjectRef(surface="web", instance="shop@tab-7", epoch=3, locator="https://shop.example", revision="build-81")
ORDERS = SubjectRef(surface="service", instance="orders-db@7f3a")
OWN = tuple(
    ChannelDescriptor.read({"id": name, "independence": independence, "grade": grade})
    for name, independence, grade in (
        ("net", "independent", "consequence"),
        ("log", "independent", "context"),
        ("ui", "actuation-derived", "presence"),
        ("state", "actuation-derived", "consequence"),
    )
)
OF_WITNESS = (ChannelDescriptor(id="x-orders-state", independence="independent", grade="consequence"),)
CHANNELS = (*OWN, *OF_WITNESS)


@dataclass(frozen=True)
class Case:
    """One claim, from what was seen to its verdict."""

    given: AdjudicationInput
    answer: Adjudication
    observations: tuple[Observation, ...]

    def lines(self, word: str = "sense") -> tuple[str, ...]:
        """The verdict as it is printed."""
        given = self.given
        return verdict_lines(
            self.answer,
            given.claim,
            channels=given.channels,
            evidence=given.evidence,
            coverage=given.coverage,
            anomalies=given.anomalies,
            word=word,
        )


def count(channel: str, summary: str, op: str = "exactly", value: int = 1) -> dict[str, Any]:
    return {"kind": "count", "match": {"channel": channel, "summary": summary}, "op": op, "value": value}


def case(
    number: int,
    statement: str,
    conditions: list[dict[str, Any]],
    seen: list[tuple[str, str]],
    *,
    closed_by: str = "ack",
    spots: tuple[BlindSpot, ...] = (),
    anomalies: tuple[Anomaly, ...] = (),
    before: bool | None = None,
    late: bool = False,
) -> Case:
    """One claim of the shop's, decided."""
    claim = Claim.read(
        {
            "id": f"claim-{number}",
            "intent": "intent-1",
            "statement": statement,
            "declaredAt": "after-action" if late else "before-action",
            "assertions": [
                {
                    "id": f"as-{number}-{position}",
                    "predicate": one,
                    "reads": f"{one['match']['channel']} {one['match']['summary']!r} {_reads(one)}",
                    "channels": [one["match"]["channel"]],
                }
                for position, one in enumerate(conditions, 1)
            ],
        }
    )
    start = number * 10_000
    window = Window.read(
        {
            "id": f"win-{number}",
            "openedAt": start,
            "closedAt": start + 900,
            "budgetMs": 5000,
            "closes": "ack",
            "closedBy": closed_by,
            "subject": SHOP.document(),
        }
    )
    observations = tuple(
        Observation(
            id=f"ob-{number}-{position}",
            window=window.id,
            channel=channel,
            at=start + 150 * position,
            summary=text,
        )
        for position, (channel, text) in enumerate(seen, 1)
    )
    coverage = Coverage(window=window.id, observed=("net", "log", "ui", "x-orders-state"), blind_spots=spots)
    admitted = admit(observations, window=window, claim=claim, channels=CHANNELS, provenance=_provenance)
    given = AdjudicationInput(
        claim=claim,
        window=window,
        channels=CHANNELS,
        evidence=admitted.evidence,
        coverage=coverage,
        anomalies=anomalies,
        assertions_held=assertions_held_under(claim.assertions, admitted.observations, coverage, window=window),
        consequence_held_before=before,
    )
    return Case(given, adjudicate(given), admitted.observations)


def _reads(predicate: dict[str, Any]) -> str:
    return f"{predicate['op'].replace('-', ' ')} {predicate['value']}" if "op" in predicate else predicate["kind"]


def _provenance(observation: Observation) -> Provenance:
    if observation.channel.startswith("x-orders-"):
        return Provenance.read(
            {
                "class": "authoritative",
                "source": "the orders database",
                "method": "a query over its own connection",
                "subject": SHOP.document(),
                "at": observation.at,
            }
        )
    return Provenance.read(
        {
            "class": "observed",
            "source": "the browser",
            "method": "its events",
            "subject": SHOP.document(),
            "at": observation.at,
        }
    )


def cases() -> Iterator[Case]:
    """Every claim of the shop's."""
    yield case(
        1,
        "the order is placed",
        [
            count("net", "POST /orders 201"),
            {"kind": "present", "match": {"channel": "x-orders-state", "summary": "orders 42 created"}},
        ],
        [("net", "POST /orders 201"), ("ui", "Thank you!"), ("x-orders-state", "orders 42 created")],
    )
    yield case(
        2,
        "the card is charged once",
        [count("net", "POST /payments 201")],
        [("net", "POST /payments 201"), ("net", "POST /payments 201")],
    )
    yield case(
        3,
        "a receipt is mailed",
        [{"kind": "present", "match": {"channel": "x-mail", "summary": "receipt for order 42"}}],
        [("ui", "We sent you a receipt")],
    )
    yield case(
        4,
        "the stock goes down",
        [{"kind": "present", "match": {"channel": "state", "summary": "stock 7 changed"}}],
        [],
        spots=(
            BlindSpot(
                kind="channel-unobserved",
                channel="state",
                detail="the page's store could not be read: it was replaced during the action",
                impeaching=False,
                remedy="read the stock from its database",
            ),
            BlindSpot(
                kind="redacted",
                detail="the Authorization header of 3 requests",
                impeaching=False,
            ),
        ),
    )
    yield case(
        5,
        "the address is saved",
        [count("net", "PUT /address 200", "at-least")],
        [("ui", "Address saved"), ("net", "PUT /address 500")],
        anomalies=(
            Anomaly(
                kind="claimed-over-failure",
                tier="observed",
                claim="the page says that the address is saved",
                counter="PUT /address was answered with 500",
                between=("ui", "net"),
            ),
        ),
    )
    yield case(
        6,
        "the parcel is handed over",
        [count("net", "POST /parcels 201", "at-least")],
        [("net", "POST /parcels 202")],
        closed_by="budget-exhausted",
    )
    yield case(
        7,
        "the basket shows two books",
        [{"kind": "present", "match": {"channel": "ui", "summary": "Basket (2)"}}],
        [("ui", "Basket (2)")],
    )
    yield case(
        8,
        "the newsletter is off",
        [{"kind": "present", "match": {"channel": "x-orders-state", "summary": "newsletter = false"}}],
        [("x-orders-state", "newsletter = false")],
        before=True,
    )
    yield case(
        9,
        "the voucher is used",
        [count("net", "POST /voucher 200")],
        [("net", "POST /voucher 200")],
        late=True,
    )
    yield case(
        10,
        "the order shows in the account",
        [count("net", "GET /account 200", "at-least")],
        [("net", "GET /account 200")],
        anomalies=(
            Anomaly(
                kind="no-effect",
                tier="absence-derived",
                claim="the account was asked to refresh",
                counter="its list stayed as it was",
                between=("net", "ui"),
            ),
        ),
    )
    yield case(11, "nothing is said of the footer", [], [("ui", "© the shop")])


def run_document() -> dict[str, Any]:
    """The whole run."""
    every = tuple(cases())
    document: dict[str, Any] = {
        "ovp": "1.0",
        "id": "run-2026-06-11-a",
        "verifier": {"name": "hotplug", "version": "0.1.0"},
        "subject": SHOP.document(),
        "channels": [channel.document() for channel in OWN],
        "witnesses": [
            {"name": "orders", "subject": ORDERS.document(), "channels": [one.document() for one in OF_WITNESS]}
        ],
        "intents": [
            {
                "id": "intent-1",
                "statement": "Buy two books and have them sent",
                "origin": "user",
                "status": "bound",
                "claims": [one.given.claim.id for one in every],
                "declaredAt": 9_000,
            }
        ],
        "claims": [one.given.claim.document() for one in every],
        "constraints": [
            {
                "id": "con-1",
                "statement": "no payment twice",
                "predicate": count("net", "POST /payments 201", "at-most"),
                "channels": ["net"],
            },
            {
                "id": "con-2",
                "statement": "no error in the log",
                "predicate": {"kind": "absent", "match": {"channel": "log"}},
                "channels": ["log"],
                "severity": "advisory",
            },
        ],
        "actions": [
            {"id": "act-1", "actor": "agent", "capability": "ui.click", "target": "h-3", "at": 10_000},
            {"id": "act-2", "actor": "agent", "capability": "ui.click", "target": "h-9", "at": 20_000},
        ],
        "receipts": [
            {"action": "act-1", "dispatched": True, "subject": SHOP.document(), "at": 10_000},
            {
                "action": "act-2",
                "dispatched": False,
                "refused": {"reason": "guarded", "detail": "paying twice was not allowed"},
                "subject": SHOP.document(),
                "at": 20_000,
            },
        ],
        "windows": [one.given.window.document() for one in every],
        "evidence": [item.document() for one in every for item in one.given.evidence],
        "coverage": [one.given.coverage.document() for one in every],
        "anomalies": [anomaly.document() for one in every for anomaly in one.given.anomalies],
        "verdicts": [
            {
                "id": f"verdict-{number}",
                "claim": one.given.claim.id,
                "window": one.given.window.id,
                **one.answer.document(),
                "evidence": [item.observation.id for item in one.given.evidence],
                "anomalies": [anomaly.document() for anomaly in one.given.anomalies],
                "at": number * 10_000 + 950,
            }
            for number, one in enumerate(every, 1)
        ],
        "violations": [
            {"constraint": "con-1", "at": 20_300, "detail": "a second payment", "evidence": ["ob-2-1", "ob-2-2"]}
        ],
        "repairs": [
            {
                "verdict": "run-2026-06-11-a#verdict-2",
                "expected": "one payment",
                "actual": "two payments",
                "evidence": ["ob-2-1", "ob-2-2"],
                "location": {"file": "shop/pay.ts", "line": 118},
                "instruction": "send the idempotency key with every payment",
            }
        ],
        "startedAt": 9_000,
        "endedAt": 120_000,
    }
    return document


def five() -> tuple[Case, ...]:
    """Five verdicts with five grounds, for the guide."""
    wanted = ("proved", "assertion-failed", "channel-not-observed", "coverage-impeached", "no-independent-consequence")
    by_ground = {one.answer.ground: one for one in cases()}
    return tuple(by_ground[ground] for ground in wanted)


if __name__ == "__main__":
    if "--run" in sys.argv:
        print(json.dumps(run_document(), indent=2, ensure_ascii=False))
    else:
        print("\n\n".join("\n".join(one.lines()) for one in five()))
