"""How many tools are sent, which are left to search, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.gateway.config import SearchConfig
from hotplug.gateway.limits import Candidate, Shown, show


def many(count: int, **flags: bool) -> list[Candidate]:
    return [Candidate(f"t{number}", **flags) for number in range(count)]


def test_all_are_listed_where_they_fit() -> None:
    found = show(many(100), SearchConfig(100))
    assert found.listed == tuple(one.name for one in many(100))
    assert (found.left, found.sent, found.searching, found.words()) == ((), 100, False, None)


def test_over_the_limit_only_eager_ones_are_listed_and_the_rest_is_said() -> None:
    tools = [Candidate("calendar.create", eager=True), *many(100)]
    found = show(tools, SearchConfig(100))
    assert found.listed == ("calendar.create",)
    assert len(found.left) == 100
    assert found.sent == 3
    assert found.words() == (
        "100 tools are left to hotplug.search, so that 3 are sent: t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 90 more"
    )


def test_what_the_gateway_adds_is_counted() -> None:
    assert show(many(97), SearchConfig(100), ours=3).sent == 100
    found = show(many(98), SearchConfig(100), ours=3)
    assert (found.listed, found.sent) == ((), 5)


def test_a_guarded_tool_is_listed_since_search_cannot_lead_to_it() -> None:
    found = show([*many(5), Candidate("wipe", searchable=False)], SearchConfig(3))
    assert found.listed == ("wipe",)
    assert "wipe" not in found.left


def test_more_than_the_limit_is_sent_only_where_it_has_to_be_and_said() -> None:
    found = show(many(5, eager=True), SearchConfig(3))
    assert (len(found.listed), found.left, found.sent, found.over, found.searching) == (5, (), 5, 3, False)
    assert "5 tools are sent although 3 is the limit" in (found.words() or "")


@pytest.mark.parametrize("over", [None, 0, 1])
def test_the_limit_may_be_none_or_nothing(over: int | None) -> None:
    found = show(many(2), SearchConfig(over))
    assert found == (Shown(("t0", "t1"), (), 2) if over is None else Shown((), ("t0", "t1"), 2, 1 if over == 1 else 0))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12), st.integers(0, 12), st.integers(0, 3))
def test_every_tool_is_listed_or_left_and_the_count_is_that_of_what_is_sent(
    flags: list[tuple[bool, bool]], over: int, ours: int
) -> None:
    tools = [Candidate(f"t{at}", eager, searchable) for at, (eager, searchable) in enumerate(flags)]
    found = show(tools, SearchConfig(over), ours=ours)
    assert sorted(found.listed + found.left) == sorted(one.name for one in tools)
    assert found.sent == len(found.listed) + ours + 2 * found.searching
    assert (found.over is not None) == (found.sent > over)
    assert all(one.searchable and not one.eager for one in tools if one.name in found.left)
