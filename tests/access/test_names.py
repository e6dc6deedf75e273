"""Names as they are written, compared and shown."""

from __future__ import annotations

from hotplug.access import near
from hotplug.access.names import listed, path_text, quoted, spelled_as


def test_near_names_are_the_closest_first_and_another_spelling_of_the_same_counts_as_closest() -> None:
    assert near("find_page", ["lookup-page", "find-page", "find-pages", "zzz"]) == (
        "find-page",
        "find-pages",
        "lookup-page",
    )
    assert near("WORK", ["work", "word"]) == ("work", "word")
    assert near("lookup-page", ["a", "b"]) == ()
    assert near("work", ["work"]) == ()


def test_a_path_is_written_as_a_person_would() -> None:
    assert path_text(("mcpThreadProfiles", "t-1")) == "mcpThreadProfiles.t-1"
    assert path_text(("projects", "a b", "mcpProfile")) == 'projects["a b"].mcpProfile'
    assert path_text(("a.b",)) == '["a.b"]'


def test_a_name_is_shown_on_one_line_whatever_it_holds() -> None:
    assert quoted('a"b\n\x1b[31m') == '"a\\"b\\n\\x1b[31m"'
    assert len(quoted("x" * 500)) == 83
    assert listed(["a"]) == '"a"'
    assert listed(["a", "b", "c"], last="and") == '"a", "b" and "c"'
    assert listed([str(one) for one in range(20)]).endswith('"7" and 12 more')


def test_a_persons_key_is_known_in_any_spelling() -> None:
    assert spelled_as("mcp_thread_profiles") == "mcpThreadProfiles"
    assert spelled_as("a/projects/b", steps=True) == "projects"
    assert spelled_as("sidebar.projects") is None
    assert spelled_as("profile") is None
