"""What a thread may use is asked of the settings, for each request."""

from __future__ import annotations

from collections.abc import Mapping

from hotplug.access import Lineage, Settings, Thread, read_settings
from hotplug.gateway.grants import Grants


class FakeOwner:
    """Settings and threads that a test changes as an owner does."""

    def __init__(self, text: str = "{}") -> None:
        self.settings = read_settings(text)
        self.threads: dict[str, Thread] = {"t_1": Thread("t_1")}
        self.version = 0

    def read(self) -> Settings:
        return self.settings

    def lineage(self) -> Lineage:
        return dict(self.threads)

    def says(self, text: str) -> None:
        self.settings = read_settings(text)


def _grants(owner: FakeOwner, servers: Mapping[str, tuple[str, ...]]) -> Grants:
    grants = Grants(owner, owner)
    for server, tools in servers.items():
        grants.offers(server, tools)
    return grants


LEAN = '{"mcpProfile": "lean", "mcpProfiles": {"lean": {"servers": ["a"], "groups": [], "tools": {"a": %s}}}}'


def test_a_server_that_nobody_asked_yet_is_given_and_one_that_is_left_out_is_not() -> None:
    owner = FakeOwner(LEAN % '{"deny": []}')
    grants = _grants(owner, {"a": (), "b": ()})
    assert grants.servers("t_1") == ("a",)
    assert grants.gives_server("t_1", "a")
    assert not grants.gives_server("t_1", "b")
    assert not grants.gives_server("t_1", "never set up")


def test_a_server_of_which_no_tool_is_given_is_not_given_at_all() -> None:
    grants = _grants(FakeOwner(LEAN % '{"allow": []}'), {"a": ("x",)})
    assert grants.servers("t_1") == ()
    assert not grants.gives_server("t_1", "a")


def test_a_part_of_a_profile_is_closed_by_denying_the_tool_that_it_works_through() -> None:
    grants = _grants(FakeOwner(LEAN % '{"deny": ["delete-event"]}'), {"a": ("delete-event", "calendar.delete")})
    assert grants.gives("t_1", "a", "calendar.delete")
    assert not grants.gives("t_1", "a", "calendar.delete", underlying=["delete-event"])
    assert not grants.gives("t_1", "a", "delete-event")


def test_a_change_of_the_settings_holds_from_the_next_question_on() -> None:
    owner = FakeOwner()
    grants = _grants(owner, {"a": ("x",)})
    assert grants.gives("t_1", "a", "x")
    before = grants.refresh()
    owner.says(LEAN % '{"deny": ["x"]}')
    assert not grants.gives("t_1", "a", "x")
    assert grants.refresh() != before


def test_a_thread_that_is_closed_or_unknown_gets_nothing() -> None:
    owner = FakeOwner()
    grants = _grants(owner, {"a": ("x",)})
    assert not grants.gives("t_2", "a", "x")
    owner.threads.clear()
    owner.version += 1
    assert not grants.gives("t_1", "a", "x")
    assert grants.servers("t_1") == ()


def test_settings_that_cant_be_read_give_nobody_anything() -> None:
    grants = _grants(FakeOwner("{"), {"a": ("x",)})
    assert grants.servers("t_1") == ()
    assert not grants.gives("t_1", "a", "x")


def test_two_children_that_list_different_tools_change_nothing_back_and_forth() -> None:
    grants = _grants(FakeOwner(), {"a": ("x",)})
    seen = grants.refresh()
    for _ in range(3):
        grants.offers("a", ("y",))
        grants.offers("a", ("x",))
    assert grants.refresh() == seen


def test_a_server_that_is_taken_away_gives_nothing_any_more() -> None:
    grants = _grants(FakeOwner(), {"a": ("x",)})
    assert grants.offers("a", None)
    assert not grants.gives("t_1", "a", "x")
    assert not grants.offers("a", None)
