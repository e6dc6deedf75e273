"""The lenient read: every row of the design's table, by its sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotplug.access import Host, Refused, Settings, Thread, parse, read_settings, resolve, write

HOST = Host({"work": ["read", "delete"]})
LEAN = {"servers": ["work"], "groups": []}
ROOT = {"t": Thread("t")}


def read(value: object) -> Settings:
    return read_settings(json.dumps(value))


def refused(settings: Settings, thread: str = "t", **of: Any) -> Refused:
    found = resolve(settings, thread, {thread: Thread(thread, **of)}, HOST)
    assert isinstance(found, Refused)
    return found


def written_back(settings: Settings) -> object:
    assert settings.document is not None
    return json.loads(write(settings.document))


UNSET: list[object] = [None, "", "   \n"]


@pytest.mark.parametrize("value", UNSET)
def test_a_key_that_is_missing_null_empty_or_blank_is_not_set(value: object) -> None:
    settings = read({"mcpProfile": value, "mcpSubagentProfile": value, "projects": {"p": {"mcpProfile": value}}})
    assert (settings.default, settings.subagent_default) == (None, None)
    assert settings.projects["p"].default is None
    assert settings.markers == ()
    assert read({}).default is None


@pytest.mark.parametrize(
    ("value", "marker"),
    [
        (5, "(unreadable number)"),
        (["lean"], "(unreadable list)"),
        ([], "(unreadable list)"),
        ({}, "(unreadable object)"),
        (True, "(unreadable boolean)"),
    ],
)
def test_a_value_that_is_not_text_where_text_belongs_reads_as_a_marker_and_stays_in_the_file(
    value: object, marker: str
) -> None:
    for settings, path in (
        (read({"mcpProfile": value}), ("mcpProfile",)),
        (read({"mcpSubagentProfile": value}), ("mcpSubagentProfile",)),
        (read({"mcpThreadProfiles": {"t": value}}), ("mcpThreadProfiles", "t")),
        (read({"projects": {"p": {"mcpProfile": value}}}), ("projects", "p", "mcpProfile")),
        (read({"projects": {"p": {"mcpSubagentProfile": value}}}), ("projects", "p", "mcpSubagentProfile")),
    ):
        (found,) = settings.markers
        assert (found.path, found.text, found.kind) == (path, marker, "unreadable")
        assert marker in found.problem
        assert json.loads(str(found.document()["original"])) == value
        assert settings.marker(*path) is found
    assert read({"mcpProfile": value}).default == marker
    assert refused(read({"mcpProfile": value})).setting == "mcpProfile"


def test_the_digits_of_a_bad_value_are_kept() -> None:
    text = '{\n  "mcpProfile": 5.00,\n  "other": 1e400\n}\n'
    settings = read_settings(text)
    assert settings.document is not None
    assert write(settings.document) == text
    assert settings.markers[0].document()["original"] == "5.00"


def test_a_name_in_odd_case_or_form_is_kept_as_written_only_trimmed() -> None:
    settings = read({"mcpProfile": "  Lean ", "mcpProfiles": {"lean": LEAN}})
    assert settings.default == "Lean"
    assert settings.markers == ()
    assert 'did you mean "lean"?' in refused(settings).fix


@pytest.mark.parametrize("value", [5, [], "lean", "", False])
def test_a_map_that_is_not_an_object_is_empty_but_whoever_would_be_looked_up_in_it_is_refused(value: object) -> None:
    for key in ("mcpProfiles", "mcpThreadProfiles", "projects"):
        settings = read({key: value})
        assert (settings.profiles, settings.picks, settings.projects) == ({}, {}, {})
        assert settings.closed[key].path == (key,)
        assert written_back(settings) == {key: value}
        assert refused(settings, project="p").setting == key


def test_a_null_thread_pick_is_dropped() -> None:
    assert read({"mcpThreadProfiles": {"t": None, "u": "lean"}}).picks == {"u": "lean"}


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ({**LEAN, "resources": "all"}, "mcpProfiles.lean.resources is a field that this build doesn't know"),
        ({**LEAN, "server": "all"}, 'did you mean "servers"?'),
        ({"servers": "all"}, "mcpProfiles.lean.groups is missing"),
        ({**LEAN, "servers": None}, "mcpProfiles.lean.servers is null"),
        ({**LEAN, "servers": "work"}, 'mcpProfiles.lean.servers is the text "work"'),
        ({**LEAN, "tools": {"work": {"deny": [1]}}}, "mcpProfiles.lean.tools.work.deny holds a number"),
        ({**LEAN, "tools": {"work": {}}}, "mcpProfiles.lean.tools.work says neither allow nor deny"),
        ({**LEAN, "tools": {"a b": 1}}, 'mcpProfiles.lean.tools["a b"] is a number'),
        ([], "mcpProfiles.lean is a list"),
    ],
)
def test_a_profile_with_an_unknown_field_or_shape_is_kept_as_written_and_unusable(profile: object, says: str) -> None:
    value = {"mcpProfile": "lean", "mcpProfiles": {"lean": profile, "fine": LEAN}}
    settings = read(value)
    assert settings.broken["lean"].kind == "profile"
    assert says in f"{settings.broken['lean'].problem}: {settings.broken['lean'].fix}"
    assert list(settings.profiles) == ["fine"]
    assert written_back(settings) == value
    assert says.split(":")[0] in f"{refused(settings).reason}: {refused(settings).fix}"


@pytest.mark.parametrize("name", ["all", "host-only", "inherit"])
def test_a_profile_named_like_a_built_in_is_broken(name: str) -> None:
    settings = read({"mcpProfiles": {name: LEAN}, "mcpThreadProfiles": {"t": name}})
    assert settings.broken[name].kind == "reserved"
    assert refused(settings).code == "broken_profile"


@pytest.mark.parametrize(
    "text", ["", " ", "{", '{"mcpProfile": "all"', "all", "[]", "5", "null", b"\xff\xfe{\x00}\x00"]
)
def test_not_json_at_all_refuses_every_thread_without_a_good_copy(text: str | bytes) -> None:
    settings = read_settings(text)
    assert settings.refuses_all
    assert settings.document is None
    assert "every thread is refused" in str(settings.warning)
    assert refused(settings).code == "unreadable_settings"


def test_not_json_at_all_uses_the_last_good_copy_read_only_with_a_loud_warning() -> None:
    settings = read_settings('{"mcp', last_good=json.dumps({"mcpProfile": "host-only"}))
    assert settings.default == "host-only"
    assert settings.read_only
    assert not settings.refuses_all
    assert "the last good copy is used" in str(settings.warning)
    assert "this text has no end" in str(settings.warning)


def test_a_copy_that_is_no_json_either_is_no_copy() -> None:
    assert read_settings("{", last_good="{").refuses_all


def test_unknown_keys_are_kept_and_written_back() -> None:
    text = '{"z": [1.0, {"y": null}], "mcpProfile": "host-only", "a": "\\u00e9"}'
    settings = read_settings(text)
    assert settings.document is not None
    assert write(settings.document) == text
    assert settings.document == parse(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"mcpProfile": "lean", "mcpProfile": "all"}', ("mcpProfile",)),
        ('{"mcpProfile": "lean", "mcpPr\\u006ffile": "all"}', ("mcpProfile",)),
        ('{"mcpThreadProfiles": {"t": "lean", "t": "all"}}', ("mcpThreadProfiles", "t")),
        ('{"mcpThreadProfiles": {"t": "lean"}, "mcpThreadProfiles": {}}', ("mcpThreadProfiles",)),
        ('{"projects": {"p": {}, "p": {}}}', ("projects", "p")),
        ('{"projects": {"p": {"mcpProfile": "lean", "mcpProfile": null}}}', ("projects", "p", "mcpProfile")),
        ('{"mcpProfile": "x", "mcpProfiles": {"x": {}, "x": {}}}', ("mcpProfiles", "x")),
    ],
)
def test_a_key_given_twice_is_a_marker_and_whoever_would_use_it_is_refused(text: str, path: tuple[str, ...]) -> None:
    settings = read_settings(text)
    (marker,) = settings.markers
    assert (marker.path, marker.kind, marker.text) == (path, "twice", "(given twice)")
    assert refused(settings, project="p").setting == marker.setting
    assert settings.document is not None
    assert parse(write(settings.document)).root == parse(text).root


def test_no_file_is_every_key_not_set() -> None:
    assert read_settings(None) == Settings()


def test_an_empty_list_a_missing_key_null_and_a_wrong_type_are_four_different_things() -> None:
    def decided(**rule: object) -> tuple[bool, str]:
        tools = {"tools": {"work": rule}} if rule else {}
        settings = read({"mcpProfile": "x", "mcpProfiles": {"x": {"servers": "all", "groups": [], **tools}}})
        found = resolve(settings, "t", ROOT, HOST)
        return found.allows("work", "read").allowed, type(found).__name__

    assert decided(allow=[]) == (False, "Access")  # none
    assert decided() == (True, "Access")  # all
    assert decided(allow=None) == (False, "Refused")  # nobody wrote a rule: unusable
    assert decided(allow="read") == (False, "Refused")  # unusable


def test_each_marker_is_found_by_its_path_and_says_what_it_reads_as() -> None:
    settings = read({"mcpProfile": 5, "mcpProfiles": {"x": 1, "Bad": LEAN, "all": LEAN, "inherit": LEAN}})
    reads = {
        ("mcpProfile",): "(unreadable number)",
        ("mcpProfiles", "x"): "(unusable profile)",
        ("mcpProfiles", "Bad"): "(unusable name)",
        ("mcpProfiles", "all"): "(unusable profile)",
    }
    for path, text in reads.items():
        found = settings.marker(*path)
        assert found is not None
        assert (found.path, found.text) == (path, text)
    assert settings.marker("mcpProfiles") is None
    assert "is a built-in profile" in settings.broken["all"].problem
    assert "means the default" in settings.broken["inherit"].problem
