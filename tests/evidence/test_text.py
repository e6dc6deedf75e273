"""Verdicts as people read them: each ground has its next move."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.evidence.shop import cases, five

from hotplug.evidence import Coverage
from hotplug.evidence.moves import NEXT_MOVE, next_move
from hotplug.evidence.text import verdict_lines
from hotplug.evidence.vocabulary import GROUNDS, Ground


def test_every_ground_has_its_next_move() -> None:
    assert tuple(NEXT_MOVE) == GROUNDS


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("channels", [(), ("net",), ("net", "log", "net")])
def test_a_move_is_whole_sentences_with_everything_filled_in(ground: Ground, channels: tuple[str, ...]) -> None:
    move = next_move(ground, channels, word="sense")
    assert "{" not in move
    assert move.endswith(".")
    assert "channel" not in move, "people read of senses"


def test_the_sense_to_look_with_is_named() -> None:
    assert next_move("channel-not-observed", ["net"]).startswith("Look with `net`: this server does not watch it.")
    assert "`net`, `log` and `ui`: this server does not watch them" in next_move(
        "channel-not-observed", ["net", "log", "ui"]
    )


def test_the_shop_meets_every_ground() -> None:
    assert {case.answer.ground for case in cases()} == set(GROUNDS)


def test_a_verdict_is_printed_with_all_that_a_person_needs() -> None:
    proved, failed, blind, impeached, own = ("\n".join(case.lines()) for case in five())
    assert proved.splitlines()[0] == "✓ yes (proved): the order is placed"
    assert "next" not in proved
    assert "x-orders-state  orders 42 created  (independent, consequence)" in proved
    assert failed.count("POST /payments 201  (independent") == 2
    assert "Look with `x-mail`" in blind
    assert "read the stock from its database" in impeached
    assert impeached.count("replaced during the action") == 1, "a gap that decided is told once"
    assert "the Authorization header" in impeached
    assert "can't prove alone" in own


def test_the_guide_can_run_the_script() -> None:
    script = Path(__file__).parent / "shop.py"
    ran = subprocess.run(
        [sys.executable, str(script)],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"},
    )
    assert ran.stdout.strip() == "\n\n".join("\n".join(case.lines()) for case in five())


def test_lines_of_what_was_seen_never_pass_for_lines_of_ours() -> None:
    case = next(cases())
    claim = case.given.claim.model_copy(update={"statement": "a\n✓ yes (proved): b"})
    lines = verdict_lines(case.answer, claim)
    assert lines[0] == "✓ yes (proved): a ✓ yes (proved): b"


def test_much_evidence_is_cut_and_said() -> None:
    case = next(cases())
    lines = verdict_lines(case.answer, case.given.claim, evidence=case.given.evidence * 10, limit=3)
    assert any("… and 17 more" in line for line in lines)


def test_an_unlisted_coverage_is_said() -> None:
    case = next(cases())
    lines = verdict_lines(case.answer, case.given.claim, coverage=Coverage(window="w", observed=("net",)))
    assert any("nobody listed" in line for line in lines)


def test_lines_are_wrapped_under_their_label() -> None:
    for case in cases():
        given = case.given
        lines = verdict_lines(case.answer, given.claim, evidence=given.evidence, channels=given.channels, width=60)
        assert all(len(line) <= 60 for line in lines)
        assert all(line.startswith("  ") for line in lines[1:])
