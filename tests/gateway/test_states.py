"""A state of a multi-round request goes back to the server and the thread that it came from, and nowhere else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hotplug.gateway.states import StateSeal

SEAL = StateSeal(b"k" * 32)
TO = {"thread": "t_1", "server": "work", "what": "tools/call x"}


@given(st.text())
def test_a_state_comes_back_as_it_was(state: str) -> None:
    sealed = SEAL.seal(state, **TO)
    assert SEAL.open(sealed, **TO) == state


@given(st.sampled_from(["thread", "server", "what"]), st.text(min_size=1))
def test_a_state_is_no_use_elsewhere(part: str, other: str) -> None:
    sealed = SEAL.seal("s", **TO)
    assert SEAL.open(sealed, **{**TO, part: TO[part] + other}) is None


@given(st.text(), st.text())
def test_what_wasnt_sealed_here_is_no_state(text: str, other: str) -> None:
    assert SEAL.open(text, **TO) is None
    sealed = SEAL.seal("s", **TO)
    if other:
        assert SEAL.open(sealed + other, **TO) is None


def test_parts_cant_be_shifted_into_each_other() -> None:
    sealed = SEAL.seal("s", thread="ab", server="c", what="d")
    assert SEAL.open(sealed, thread="a", server="bc", what="d") is None


def test_another_key_opens_nothing() -> None:
    assert StateSeal(b"j" * 32).open(SEAL.seal("s", **TO), **TO) is None
