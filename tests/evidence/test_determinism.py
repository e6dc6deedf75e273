"""How to go on after a connection was replaced: the table of the protocol, and nothing else goes on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.evidence.determinism import DeterminismProfile, resume_strategy
from hotplug.evidence.vocabulary import ResumeStrategy

WEB = {"reset": "cheap", "replayPrefix": "free", "time": "injectable", "observation": "exact", "actions": "reversible"}


@pytest.mark.parametrize(
    ("replay", "reset", "expected"),
    [
        ("free", "none", "replay-prefix"),
        ("free", "cheap", "replay-prefix"),
        ("free", "costly", "replay-prefix"),
        ("costly", "none", "replay-prefix"),
        ("costly", "cheap", "reset-then-replay"),
        ("costly", "costly", "reset-then-replay"),
        ("unsafe", "none", "refuse"),
        ("unsafe", "cheap", "refuse"),
        ("unsafe", "costly", "refuse"),
    ],
)
def test_a_strategy_for_each_profile(replay: str, reset: str, expected: ResumeStrategy) -> None:
    document = WEB | {"replayPrefix": replay, "reset": reset}
    assert resume_strategy(document) == expected
    assert resume_strategy(DeterminismProfile.read(document)) == expected


@pytest.mark.parametrize("missing", sorted(WEB))
def test_an_incomplete_profile_is_refused(missing: str) -> None:
    assert resume_strategy({name: value for name, value in WEB.items() if name != missing}) == "refuse"


@pytest.mark.parametrize(
    "profile", [None, {}, [], "free", WEB | {"replayPrefix": "probably"}, WEB | {"time": 1}], ids=str
)
def test_what_is_no_profile_is_refused(profile: Any) -> None:
    assert resume_strategy(profile) == "refuse"


@given(
    st.dictionaries(st.sampled_from(sorted(WEB)), st.sampled_from(["none", "free", "wall", "exact", "unsafe", None, 1]))
)
def test_nothing_but_a_whole_profile_that_is_not_unsafe_goes_on(document: dict[str, Any]) -> None:
    if resume_strategy(document) != "refuse":
        assert DeterminismProfile.read(document).replay_prefix != "unsafe"
