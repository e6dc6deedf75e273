"""What to do next, for each ground that a verdict can have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from hotplug.evidence.vocabulary import Ground

__all__ = ["NEXT_MOVE", "Move", "next_move"]


class Move(NamedTuple):
    """The next move of one ground: text with `{channels}`, `{it}` for them, and `{word}` (sense or channel)."""

    named: str
    """Where the channels that the move is about are known."""
    plain: str
    """Where none can be named."""


def _same(text: str) -> Move:
    return Move(text, text)


NEXT_MOVE: Final[Mapping[Ground, Move]] = {
    "nothing-declared": _same(
        "Say what the action is to cause, as a condition on a {word}: without a condition there is nothing to prove."
    ),
    "channel-not-observed": Move(
        "Look with {channels}: this server does not watch {it}. Add a witness that does, or claim something that is "
        "in sight.",
        "Add a witness that watches what the claim reads, or claim something that is in sight.",
    ),
    "contradicted": Move(
        "Treat it as not done, whatever the action answered: look at {channels}, where two facts of this window can't "
        "both hold.",
        "Treat it as not done, whatever the action answered: two facts of this window can't both hold.",
    ),
    "assertion-failed": Move(
        "Compare what {channels} showed with the condition, and look at what is there now before doing it again.",
        "Compare what was seen with the condition, and look at what is there now before doing it again.",
    ),
    "window-not-closed": _same(
        "Give the window more time, or wait for what ends it: it ended before things had settled, so what is missing "
        "may still come. Look before doing it again."
    ),
    "coverage-impeached": Move(
        "Close the gap on {channels}, or look there with a witness: what was out of sight may or may not have "
        "happened.",
        "Close the gap named above, or look with a witness: what was out of sight may or may not have happened.",
    ),
    "suspicion-unresolved": Move(
        "Settle the suspicion first: look at {channels} from outside, and claim again in a new window.",
        "Settle the suspicion first: look from outside, and claim again in a new window.",
    ),
    "declared-after-action": _same(
        "Write the claim before the action, and act inside it: one written afterwards can be refuted, never proved."
    ),
    "no-independent-consequence": Move(
        "Claim something of {channels}: what is seen there does not depend on the acting side, and no condition of "
        "this claim was met there.",
        "Look with a {word} that does not depend on the acting side, such as `net` or a witness: this server only "
        "shows its own account of it.",
    ),
    "already-true": _same(
        "Start where it is not true yet, or claim the event instead of the state: it held before the action, so this "
        "action need not have caused it."
    ),
    "proved": _same("Nothing to do: it was seen, independently of the action, and it was not so before."),
}
"""One entry a ground, in the order of the clauses."""


def next_move(ground: Ground, channels: Iterable[str] = (), *, word: str = "channel") -> str:
    """The next move of a ground, as one or two sentences.

    Args:
        channels: Those that the move is about, in order; `hotplug.evidence.text.concerned` finds them.
        word: What a channel is called: the protocol's own word, or `sense` for people.
    """
    names = [f"`{name}`" for name in dict.fromkeys(channels)]
    move = NEXT_MOVE[ground]
    return (move.named if names else move.plain).format(
        channels=_listed(names), it="it" if len(names) == 1 else "them", word=word
    )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
