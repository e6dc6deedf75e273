"""Refs are opened by who minted them, as what they are, however often they were opened before."""

import pytest

from hotplug.errors import NotFound
from hotplug.serve.refs import Seal, Seals

KEY = b"k" * 32


def test_a_ref_that_was_opened_is_foreign_as_another_kind_and_at_another_principal() -> None:
    seal = Seal(KEY, "server", "one")
    ref = seal.seal("calendar.event", "e1")
    assert [seal.unseal("calendar.event", ref) for _ in range(2)] == ["e1", "e1"]
    for foreign, kind in ((seal, "calendar.calendar"), (Seal(KEY, "server", "two"), "calendar.event")):
        with pytest.raises(NotFound):
            foreign.unseal(kind, ref)
    with pytest.raises(NotFound):
        seal.unseal("calendar.event", ref[:-1] + ("A" if ref[-1] != "A" else "B"))


def test_refs_are_the_same_after_more_of_them_than_are_remembered() -> None:
    seal = Seal(KEY, "server", "one")
    refs = [seal.seal("calendar.event", f"e{number}") for number in range(5000)]
    assert [seal.unseal("calendar.event", ref) for ref in refs] == [f"e{number}" for number in range(5000)]
    assert seal.seal("calendar.event", "e0") == refs[0]


def test_seals_are_kept_of_who_called_last_and_made_again_the_same() -> None:
    made: list[str] = []

    def make(principal: str) -> Seal:
        made.append(principal)
        return Seal(KEY, "server", principal)

    seals = Seals(make)
    ref = seals.of("first").seal("calendar.event", "e1")
    for number in range(5000):
        seals.of(f"t{number}")
        assert seals.of("busy").unseal("calendar.event", Seal(KEY, "server", "busy").seal("calendar.event", "e"))
    assert made.count("busy") == 1
    assert len(seals) < 1000
    assert seals.of("first").unseal("calendar.event", ref) == "e1"


def test_a_ref_is_the_keyed_hash_that_it_always_was() -> None:
    assert Seal(KEY, "server", "one").seal("calendar.event", "e1") == "ZTE.dF-slxqAA21PIxWz"
