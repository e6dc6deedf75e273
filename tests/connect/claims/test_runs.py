"""Runs of claims: whole, verifiable by any reader, and without a secret in any form."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, quote_plus

import pytest
from pydantic import Field

from hotplug import connect, constraint, secret, state
from hotplug.catalog import Calendar
from hotplug.connect.secrets import Destination, SecretValue
from hotplug.errors import Conflict
from hotplug.evidence.checks import verify_run
from hotplug.evidence.run import outcome_of
from hotplug.profile import Event, Model, Profile, Receipt, Sensitive, event, operation, read, receipt

from .eyes import FakeEyes

pytestmark = pytest.mark.anyio

CREATED = state("calendar.event * created").exactly(1)
SEEDED = ('pä55"word/+ ü', "tok_live_9f8e7d6c5b4a", "correct horse battery staple")


def forms(value: str) -> Iterable[str]:
    """A secret plain, in URLs, in JSON, and in base64 wherever it begins."""
    yield value
    yield from {quote(value), quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1]}
    for lead in range(3):
        whole = base64.b64encode(b"\0" * lead + value.encode()).decode().rstrip("=")
        inner = whole[-(-lead * 8 // 6) : (lead + len(value.encode())) * 8 // 6]
        yield inner
        yield inner.replace("+", "-").replace("/", "_")


async def test_every_window_of_a_connection_can_be_kept_as_one_run_that_verifies(tmp_path: Path) -> None:
    eyes = FakeEyes(facts=["events.count = 0"])
    none_lost = constraint("none is lost", state("calendar.event * deleted").absent())
    async with connect(Calendar, f"sqlite:///{tmp_path}/c.db") as plain:
        calendar = plain.with_witness(eyes)
        found = await calendar.calendars()
        async with calendar.recorded() as recording:
            async with calendar.claim("it is stored once", CREATED, none_lost) as stored:
                made = await calendar.create(
                    calendar=found.calendars[0].calendar, title="x", start="2026-10-26T13:00:00Z", duration="PT1H"
                )
                eyes.see("calendar.event u1 created")
            async with calendar.claims(within="100ms", quiet="20ms") as window:
                gone = window.claim("it is gone", state("calendar.event * deleted").exactly(1))
                counted = window.claim("there is one", state("events.count = 0").present())
                window.constrain(none_lost)
                await calendar.delete(event=made.event)
                eyes.see("calendar.event u1 deleted")
        run = recording.run()
        recording.save(tmp_path / "run.json")
    assert (stored.verdict.ground, gone.verdict.ground, counted.verdict.ground) == ("proved", "proved", "already-true")
    for one in (stored.run, gone.run, run, json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))):
        assert verify_run(one) == ()
    assert (outcome_of(stored.run), outcome_of(run)) == ("pass", "fail")
    assert [one.verdict for one in run.verdicts] == ["yes", "yes", "unknown"]
    assert [one.capability for one in run.actions] == ["calendar.create", "calendar.delete"]
    assert [one.action for one in run.receipts] == [one.id for one in run.actions]
    reasons = [reason for one in run.verdicts for reason in one.reasons]
    assert not [one for one in reasons if "does not count" in one], "what a claim isn't about is only counted"
    assert "other observations are not what the claim is about" in " ".join(reasons)


class Told(Model):
    receipt: Receipt = receipt()


class Said(Model):
    said: list[str] = Field(default_factory=list)


class Door(Profile, name="door", version="1.0.0"):
    """A thing with a lock. Opening it is its core: without that it is a wall."""

    @operation("door.open", effects=True)
    async def open(self, password: Sensitive[str], note: str | None = None) -> Told:
        """Open it."""
        ...

    @read("door.said", sense="state", look="effect")
    async def said(self) -> Said:
        """Give what was said at the door."""
        ...

    @event("door.opened", sense="state", replay="live", required=False, without="Nobody hears it.")
    class Opened(Event):
        """It was opened."""

        word: str
        headers: dict[str, str]
        pairs: list[Any]
        url: str
        text: str

        def summary(self) -> str:
            return f"door.lock {self.word.split()[0]} set"


class LoudDoor(Door):
    """Tells everybody the password, in every form."""

    emits = frozenset({"door.opened"})

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def open(self, password: Any, note: str | None = None) -> Told:
        from hotplug.profile import reveal

        word = reveal(password)
        self.heard.append(word)
        await self.emit(
            Door.Opened(
                word=word,
                headers={"Authorization": f"Bearer {word}", "Cookie": "sid=1", "X-Kind": "plain"},
                pairs=[["set-cookie", "sid=2"]],
                url=f"https://user:{quote(word, safe='')}@door.example/?token={quote_plus(word)}",
                text=base64.b64encode(f"<{word}>".encode()).decode(),
            )
        )
        return Told()

    async def said(self) -> Said:
        return Said(said=[*self.heard, json.dumps(self.heard)])


class Vault:
    """Holds the seeded secrets for any place."""

    async def get(self, name: str, to: Destination) -> SecretValue:
        return SecretValue(name, SEEDED[int(name)])


@pytest.mark.parametrize("number", range(len(SEEDED)))
@pytest.mark.parametrize("given", ["as a secret", "in plain"])
async def test_no_seeded_secret_stands_in_a_run_a_log_or_an_error_in_any_form(
    tmp_path: Path, number: int, given: Literal["as a secret", "in plain"], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    value, eyes = SEEDED[number], FakeEyes()
    async with connect(Door, LoudDoor(), secrets=Vault()) as plain:
        door = plain.with_witness(eyes)
        async with (
            door.recorded() as recording,
            door.claim("it is locked", state("door.lock * set").exactly(1)) as claim,
        ):
            await door.open(password=secret(str(number)) if given == "as a secret" else value, note="hello")
            eyes.see("door.lock d set", {"password": value, "nested": [{"apiKey": "k"}], "words": f"said {value}!"})
        recording.save(tmp_path / "run.json")
    kept = (tmp_path / "run.json").read_text(encoding="utf-8") + claim.run.text() + str(claim) + caplog.text
    assert claim.verdict.ground == "proved"
    for form in forms(value):
        assert form not in kept
    assert "sid=" not in kept
    assert "redacted" in {spot.kind for spot in claim.blind_spots or ()}
    assert verify_run(claim.run) == ()


async def test_a_redaction_impeaches_a_claim_that_reads_the_text_of_what_was_redacted() -> None:
    eyes = FakeEyes()
    async with connect(Door, LoudDoor(), secrets=Vault()) as plain:
        door = plain.with_witness(eyes)
        locked = eyes.state("door.lock * set")
        async with door.claims(within="100ms", quiet="20ms") as window:
            by_text = window.claim("it is locked", locked.containing("hello").exactly(1))
            await door.open(password=secret("1"))
            eyes.see("door.lock d set", {"password": SEEDED[1], "note": "hello"})
        assert by_text.verdict.ground == "coverage-impeached"
        async with door.claims(within="100ms", quiet="20ms") as window:
            by_summary = window.claim("it is locked", locked.exactly(1))
            await door.open(password=secret("1"))
    assert by_summary.verdict.ground == "proved"


class AngryDoor(LoudDoor):
    """Says again what it was given, where it refuses."""

    async def open(self, password: Any, note: str | None = None) -> Told:
        from hotplug.profile import reveal

        word = reveal(password)
        encoded = base64.b64encode(word.encode()).decode()
        raise Conflict(f"{word} isn't it, nor {quote(word)}", details={"tried": [word, {"also": encoded}]})


@pytest.mark.parametrize("number", range(len(SEEDED)))
async def test_no_seeded_secret_stands_in_what_a_server_refuses_with(number: int) -> None:
    value, claims = SEEDED[number], list[Any]()
    async with connect(Door, AngryDoor(), secrets=Vault()) as door:
        with pytest.raises(Conflict) as refused:  # noqa: PT012  # the block is what is tested
            async with door.claim(
                "it opens", state("door.lock * set").exactly(1), within="50ms", quiet="10ms"
            ) as claim:
                claims.append(claim)
                await door.open(password=secret(str(number)))
    kept = str(refused.value) + repr(refused.value.details) + claims[0].run.text() + str(claims[0])
    assert "isn't it" in str(refused.value)
    for form in forms(value):
        assert form not in kept
