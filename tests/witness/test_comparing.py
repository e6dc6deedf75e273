"""Comparing looks: nothing is said that wasn't seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from hotplug.witness.comparing import Look, Thing, changes, merged

refs = st.sampled_from("abc")
worlds = st.lists(st.tuples(refs, st.sampled_from("12")), max_size=5)


def hiding(hidden: frozenset[str]) -> Callable[[str], bool]:
    return lambda ref: ref in hidden


def look(world: list[tuple[str, str]], hidden: frozenset[str] | None = None) -> Look:
    """A look at a world; of what it hides it may show a part."""
    things = tuple(Thing("row", ref, content) for ref, content in world)
    return Look(things) if hidden is None else Look(things, {}, (), hiding(hidden))


def told(before: Look, after: Look) -> list[str]:
    return sorted(f"{thing.ref} {word}" for thing, word in changes(before, after))


@given(worlds, worlds)
def test_whole_looks_tell_exactly_what_became_of_the_number(
    before: list[tuple[str, str]], after: list[tuple[str, str]]
) -> None:
    found = Counter(told(look(before), look(after)))
    for ref in "abc":
        was, now = [c for r, c in before if r == ref], [c for r, c in after if r == ref]
        assert found[f"{ref} created"] - found[f"{ref} deleted"] == len(now) - len(was)
        assert (Counter(was) == Counter(now)) == (not any(key.startswith(ref) for key in found))


@given(worlds, st.lists(st.frozensets(refs), min_size=1, max_size=4))
def test_a_world_that_stays_shows_no_change_whatever_is_hidden(
    world: list[tuple[str, str]], hidden: list[frozenset[str]]
) -> None:
    known = look([one for one in world if one[0] not in hidden[0]], hidden[0])
    for some in hidden[1:]:
        seen = look([one for one in world if one[0] not in some], some)
        assert told(known, seen) == []
        known = merged(known, seen)


def test_what_a_whole_look_knew_outlasts_a_look_that_could_not_see() -> None:
    first = look([("a", "1")])
    second = look([], frozenset("abc"))
    assert told(first, second) == []
    known = merged(first, second)
    assert told(known, look([("b", "1")])) == ["a deleted", "b created"]
    assert told(known, look([("a", "2")])) == ["a updated"]


def test_what_was_hidden_at_first_was_not_created() -> None:
    first = look([], frozenset("ab"))
    second = look([("a", "1")])
    assert told(first, second) == []
    assert told(merged(first, second), look([("b", "1")])) == ["a deleted", "b created"]


def test_a_content_that_could_not_be_read_is_no_change_and_is_compared_later() -> None:
    first = look([("a", "1")])
    unread = Look((Thing("row", "a", None),))
    assert told(first, unread) == []
    known = merged(first, unread)
    assert told(known, look([("a", "1")])) == []
    assert told(known, look([("a", "2")])) == ["a updated"]
