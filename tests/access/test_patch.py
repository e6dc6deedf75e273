"""The strict save: each refusal with its setting and its fix, and what is never refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotplug.access import (
    PERSON_KEYS,
    PICKS_CAP,
    AccessError,
    Host,
    PatchRefused,
    Toolkit,
    apply_patch,
    parse,
    profile_uses,
    prune_picks,
    read_settings,
    write,
)

HOST = Host({"work": ["read"]}, {"files": Toolkit("files", ("open",)), "web": Toolkit("web", ("fetch",))})
LEAN = {"servers": ["work"], "groups": ["files"]}
BASE = {"theme": "dark", "mcpProfiles": {"lean": LEAN}, "mcpThreadProfiles": {"t1": "lean"}}


def saved(settings: object, patch: object, **how: Any) -> Any:
    text = settings if isinstance(settings, str) else json.dumps(settings, indent=2)
    document = apply_patch(parse(text), patch, **{"role": "person", "host": HOST, **how})  # type: ignore[arg-type]
    return json.loads(write(document))


def refusal(settings: object, patch: object, **how: Any) -> PatchRefused:
    with pytest.raises(PatchRefused) as caught:
        saved(settings, patch, **how)
    return caught.value


def test_maps_are_patched_entry_by_entry() -> None:
    found = saved(BASE, {"mcpThreadProfiles": {"t2": "host-only"}, "mcpProfiles": {"wide": {**LEAN, "servers": "all"}}})
    assert found["mcpThreadProfiles"] == {"t1": "lean", "t2": "host-only"}
    assert list(found["mcpProfiles"]) == ["lean", "wide"]
    assert found["theme"] == "dark"


def test_two_windows_that_save_different_picks_at_once_both_keep_theirs() -> None:
    first = apply_patch(parse(json.dumps(BASE)), {"mcpThreadProfiles": {"a": "lean"}}, role="person")
    second = apply_patch(first, {"mcpThreadProfiles": {"b": "all"}}, role="person")
    assert read_settings(write(second)).picks == {"t1": "lean", "a": "lean", "b": "all"}


def test_null_removes_an_entry_or_a_setting() -> None:
    found = saved(
        {**BASE, "mcpProfile": "lean"}, {"mcpThreadProfiles": {"t1": None}, "mcpProfile": None, "theme": None}
    )
    assert found == {"mcpProfiles": {"lean": LEAN}, "mcpThreadProfiles": {}}


def test_a_save_that_changes_nothing_gives_the_same_document() -> None:
    document = parse(json.dumps(BASE))
    for patch in (
        {},
        {"theme": "dark"},
        {"mcpThreadProfiles": {}},
        {"mcpThreadProfiles": {"t1": "lean", "x": None}},
        BASE,
    ):
        assert apply_patch(document, patch, role="person", host=HOST) is document


def test_a_first_save_makes_the_file() -> None:
    assert write(apply_patch(None, {"mcpProfile": "host-only"}, role="person")) == '{\n  "mcpProfile": "host-only"\n}\n'


def test_digits_and_the_order_of_keys_stay_as_they_are() -> None:
    text = '{\n  "z": 1.50,\n  "mcpProfile": "all",\n  "a": 123456789012345678901234567890,\n  "a": 2\n}\n'
    document = apply_patch(parse(text), {"mcpProfile": "host-only"}, role="person")
    assert write(document) == text.replace('"all"', '"host-only"')


# What is refused


@pytest.mark.parametrize(
    "patch",
    [
        {"mcpProfile": "inherit"},
        {"mcpThreadProfiles": {"t1": "inherit"}},
        {"projects": {"p": {"mcpProfile": "inherit"}}},
    ],
)
def test_inherit_is_refused_as_default_as_a_pick_and_as_a_projects_default(patch: object) -> None:
    assert "only the default of sub-agents" in refusal(BASE, patch).message


def test_inherit_is_taken_as_the_sub_agents_default() -> None:
    patch = {"mcpSubagentProfile": "inherit", "projects": {"p": {"mcpSubagentProfile": "inherit"}}}
    assert saved(BASE, patch)["mcpSubagentProfile"] == "inherit"


def test_a_name_with_no_profile_is_refused_with_the_setting_and_the_fix() -> None:
    found = refusal({}, {"mcpProfile": "lean"})
    assert str(found) == (
        'mcpProfile names "lean", which is not set up: add that profile first, or pick "all" or "host-only"'
    )
    assert found.setting == "mcpProfile"


@pytest.mark.parametrize(
    ("patch", "setting"),
    [
        ({"mcpSubagentProfile": "leen"}, "mcpSubagentProfile"),
        ({"mcpThreadProfiles": {"t2": "leen"}}, "mcpThreadProfiles.t2"),
        ({"projects": {"p": {"mcpProfile": "leen"}}}, "projects.p.mcpProfile"),
        ({"projects": {"p": {"mcpSubagentProfile": "leen"}}}, "projects.p.mcpSubagentProfile"),
        ({"mcpProfile": "Lean"}, "mcpProfile"),
        ({"mcpProfile": " lean"}, "mcpProfile"),
    ],
)
def test_a_name_with_no_profile_is_refused_wherever_it_stands(patch: object, setting: str) -> None:
    found = refusal(BASE, patch)
    assert found.setting == setting
    assert 'did you mean "lean"?' in found.fix


def test_a_profile_added_in_the_same_patch_counts() -> None:
    patch = {"mcpProfile": "new", "mcpProfiles": {"new": LEAN}, "mcpThreadProfiles": {"t9": "new"}}
    assert saved({}, patch)["mcpProfile"] == "new"


@pytest.mark.parametrize("value", [5, [], {}, True])
def test_what_is_no_text_is_refused_where_a_name_belongs(value: object) -> None:
    assert "write the name of a profile" in refusal(BASE, {"mcpProfile": value}).fix
    assert refusal(BASE, {"mcpThreadProfiles": {"t1": value}}).setting == "mcpThreadProfiles.t1"


def test_a_blank_name_is_refused_for_null_says_not_set() -> None:
    assert "null for not set" in refusal(BASE, {"mcpProfile": " "}).fix


@pytest.mark.parametrize("name", ["all", "host-only", "inherit"])
def test_a_built_in_or_inherit_is_refused_as_a_profiles_name(name: str) -> None:
    assert refusal(BASE, {"mcpProfiles": {name: LEAN}}).setting == f"mcpProfiles.{name}"


@pytest.mark.parametrize("name", ["Lean", "", "a b", "x" * 65, "é", "a.b", "lean\n"])
def test_a_bad_profile_name_is_refused(name: str) -> None:
    assert "use 1 to 64 of a-z, 0-9, - and _" in refusal(BASE, {"mcpProfiles": {name: LEAN}}).fix


@pytest.mark.parametrize("name", ["a", "x" * 64, "0-9_", "-"])
def test_a_good_profile_name_is_taken(name: str) -> None:
    assert name in saved(BASE, {"mcpProfiles": {name: LEAN}})["mcpProfiles"]


@pytest.mark.parametrize(
    ("profile", "setting", "says"),
    [
        ({**LEAN, "resources": []}, "mcpProfiles.x.resources", "doesn't know"),
        ({"servers": []}, "mcpProfiles.x.groups", "is missing"),
        ({"groups": []}, "mcpProfiles.x.servers", "is missing"),
        ({**LEAN, "groups": ["fles"]}, "mcpProfiles.x.groups", 'the group "fles", which is unknown'),
        ({**LEAN, "servers": [""]}, "mcpProfiles.x.servers", "a blank name"),
        ({**LEAN, "servers": [" work"]}, "mcpProfiles.x.servers", "blanks at an end"),
        ({**LEAN, "servers": ["wor*"]}, "mcpProfiles.x.servers", "matched exactly"),
        ({**LEAN, "tools": {" ": {"deny": []}}}, 'mcpProfiles.x.tools[" "]', "a blank server"),
        ({**LEAN, "tools": {"work": {"deny": None}}}, "mcpProfiles.x.tools.work.deny", "is null"),
        ({**LEAN, "tools": {"work": {"only": []}}}, "mcpProfiles.x.tools.work.only", "doesn't know"),
        (5, "mcpProfiles.x", "not a profile"),
    ],
)
def test_a_profile_with_an_unknown_or_missing_field_an_unknown_group_or_a_blank_server_is_refused(
    profile: object, setting: str, says: str
) -> None:
    found = refusal(BASE, {"mcpProfiles": {"x": profile}})
    assert found.setting == setting
    assert says in found.message
    assert found.fix


def test_an_unknown_server_is_no_reason_to_refuse_it_may_be_set_up_later() -> None:
    assert saved(BASE, {"mcpProfiles": {"x": {**LEAN, "servers": ["later"]}}})


def test_groups_are_not_checked_where_nobody_can_say_which_there_are() -> None:
    assert saved(BASE, {"mcpProfiles": {"x": {**LEAN, "groups": ["any"]}}}, host=None)


def test_a_group_that_went_away_does_not_block_a_change_of_the_rest() -> None:
    old = {"mcpProfiles": {"x": {"servers": [], "groups": ["gone"]}}}
    assert saved(old, {"mcpProfiles": {"x": {"servers": ["work"], "groups": ["gone"]}}})


@pytest.mark.parametrize("thread", ["", " ", " t", "t\n", "a\x1bb", "x" * 257, "\ud83d"])
def test_a_bad_thread_id_is_refused(thread: str) -> None:
    assert "no thread can have the id" in refusal({}, {"mcpThreadProfiles": {thread: "all"}}).message


def test_deleting_a_profile_in_use_is_refused_and_the_message_lists_where() -> None:
    used = {
        "mcpProfiles": {"lean": LEAN},
        "mcpProfile": "lean",
        "mcpSubagentProfile": "lean",
        "mcpThreadProfiles": {"t1": "lean", "t2": "all"},
        "projects": {"p": {"mcpProfile": "lean", "mcpSubagentProfile": " lean "}},
    }
    found = refusal(used, {"mcpProfiles": {"lean": None}})
    uses = profile_uses(read_settings(json.dumps(used)), "lean")
    assert uses == (
        "mcpProfile",
        "mcpSubagentProfile",
        "mcpThreadProfiles.t1",
        "projects.p.mcpProfile",
        "projects.p.mcpSubagentProfile",
    )
    assert all(one in found.message for one in uses)
    assert "t2" not in found.message


def test_renaming_a_profile_in_use_is_refused_unless_its_users_move_in_the_same_save() -> None:
    rename = {"mcpProfiles": {"lean": None, "slim": LEAN}}
    assert "in use" in refusal(BASE, rename).message
    assert saved(BASE, {**rename, "mcpThreadProfiles": {"t1": "slim"}})["mcpThreadProfiles"] == {"t1": "slim"}


def test_deleting_a_profile_that_nobody_uses_is_taken() -> None:
    assert saved({"mcpProfiles": {"lean": LEAN}}, {"mcpProfiles": {"lean": None, "gone": None}}) == {"mcpProfiles": {}}


def test_a_hand_written_profile_named_like_a_built_in_can_be_taken_away() -> None:
    assert saved({"mcpProfiles": {"all": LEAN}}, {"mcpProfiles": {"all": None}}) == {"mcpProfiles": {}}
    assert "can't be used" in refusal({"mcpProfiles": {"all": LEAN}}, {"mcpProfile": "all"}).message


FULL = {"mcpThreadProfiles": {f"old-{number}": "host-only" for number in range(PICKS_CAP)}}


def test_a_pick_past_the_cap_is_refused_with_the_oldest_unused_named() -> None:
    found = refusal(FULL, {"mcpThreadProfiles": {"new": "all"}}, now_unused={"old-7", "old-3"})
    assert found.setting == "mcpThreadProfiles.new"
    assert "501 of at most 500" in found.message
    assert 'the oldest unused is "old-3"' in found.fix


def test_a_pick_past_the_cap_never_widens_a_live_thread_to_make_room() -> None:
    assert 'the oldest is "old-0"' in refusal(FULL, {"mcpThreadProfiles": {"new": "all"}}).fix
    kept = saved(FULL, {"mcpThreadProfiles": {"new": "all", "old-9": None}})["mcpThreadProfiles"]
    assert len(kept) == PICKS_CAP
    assert kept["old-0"] == "host-only"


def test_a_pick_that_is_there_can_change_at_the_cap_and_past_it() -> None:
    over = {"mcpThreadProfiles": {**FULL["mcpThreadProfiles"], "by hand": "all"}}
    for settings in (FULL, over):
        assert saved(settings, {"mcpThreadProfiles": {"old-0": "all"}})["mcpThreadProfiles"]["old-0"] == "all"
    assert saved(over, {"theme": "light"})["theme"] == "light"


def test_picks_of_threads_that_are_gone_are_pruned_on_the_hosts_word_alone() -> None:
    document = parse(json.dumps({"mcpThreadProfiles": {"a": "lean", " b ": 5, "c": "all"}, "x": 1.0}))
    assert json.loads(write(prune_picks(document, {"a", "b", "zzz"}))) == {"mcpThreadProfiles": {"c": "all"}, "x": 1.0}
    assert prune_picks(document, {"zzz"}) is document
    for text in ("[]", '{"mcpThreadProfiles": 5}', '{"mcpThreadProfiles": {"a": "x"}, "mcpThreadProfiles": {}}'):
        kept = parse(text)
        assert prune_picks(kept, {"a"}) is kept


# What is old stays


ODD = {
    "mcpProfile": "gone",
    "mcpSubagentProfile": 5,
    "mcpThreadProfiles": {"t": "inherit", "u": [], "": "x"},
    "mcpProfiles": {"All": LEAN, "newer": {**LEAN, "resources": "all"}, "all": LEAN},
    "projects": {"p": {"mcpProfile": "", "mcpSubagentProfile": "Lean", "scripts": []}, "q": 7},
}


def test_an_old_odd_value_never_blocks_an_unrelated_save() -> None:
    assert saved(ODD, {"theme": "x", "mcpThreadProfiles": {"v": "host-only"}}) == {
        **ODD,
        "theme": "x",
        "mcpThreadProfiles": {"t": "inherit", "u": [], "": "x", "v": "host-only"},
    }


def test_a_project_entry_that_is_sent_back_unchanged_is_accepted() -> None:
    patch = {"projects": {"p": {"mcpProfile": "", "mcpSubagentProfile": "Lean", "scripts": ["make"]}, "q": 7}}
    assert saved(ODD, patch)["projects"]["p"] == {"mcpProfile": "", "mcpSubagentProfile": "Lean", "scripts": ["make"]}


def test_a_marker_that_is_sent_back_keeps_the_original() -> None:
    patch = {
        "mcpSubagentProfile": "(unreadable number)",
        "mcpThreadProfiles": {"u": "(unreadable list)"},
        "projects": {"q": "(unreadable number)"},
    }
    document = parse(json.dumps(ODD))
    assert apply_patch(document, patch, role="person", host=HOST) is document
    twice = '{"mcpProfile": "a", "mcpProfile": "b", "mcpThreadProfiles": {"t": "a", "t": "b"}}'
    again = {"mcpProfile": "(given twice)", "mcpThreadProfiles": {"t": "(given twice)"}}
    assert write(apply_patch(parse(twice), again, role="person")) == twice


def test_only_a_changed_value_of_a_project_is_checked() -> None:
    assert refusal(ODD, {"projects": {"p": {"mcpProfile": "other"}}}).setting == "projects.p.mcpProfile"
    assert saved(ODD, {"projects": {"p": {"mcpProfile": "host-only"}}})["projects"]["p"]["mcpSubagentProfile"] == "Lean"


def test_a_projects_own_keys_are_patched_one_by_one_so_that_a_stale_client_drops_no_limit() -> None:
    old = {"projects": {"p": {"mcpProfile": "host-only", "scripts": 1.50}}}
    assert saved(old, {"projects": {"p": {"provider": "x"}}}) == {
        "projects": {"p": {"mcpProfile": "host-only", "scripts": 1.5, "provider": "x"}}
    }
    assert saved(old, {"projects": {"p": None}}) == {"projects": {}}


def test_a_key_with_blanks_around_it_is_patched_as_it_is_looked_up() -> None:
    assert saved({"mcpThreadProfiles": {" t ": "host-only", "u": "all"}}, {"mcpThreadProfiles": {"t": "all"}}) == {
        "mcpThreadProfiles": {"t": "all", "u": "all"}
    }


def test_a_map_that_cant_be_read_is_not_written_into() -> None:
    for text in ('{"mcpThreadProfiles": 5}', '{"mcpThreadProfiles": {"a": "all"}, "mcpThreadProfiles": {}}'):
        assert "may have been a limit" in refusal(text, {"mcpThreadProfiles": {"t": "all"}}).message
        assert saved(text, {"mcpThreadProfiles": None}) == {}
    assert refusal('{"mcpProfiles": 5}', {"mcpProfile": "all"}).fix == "repair mcpProfiles first"


def test_a_map_is_not_taken_away_whole() -> None:
    assert "name the entries" in refusal(BASE, {"mcpThreadProfiles": None}).fix
    assert "write an object" in refusal(BASE, {"mcpThreadProfiles": []}).fix


def test_a_key_that_spells_a_setting_is_refused_for_it_would_do_nothing() -> None:
    for key, meant in (
        ("mcp_profile", "mcpProfile"),
        ("MCP-Profiles", "mcpProfiles"),
        ("mcpSubagentsProfile", "mcpSubagentProfile"),
    ):
        assert refusal(BASE, {key: "all"}).fix == f"write {meant}"
    assert "write mcpProfile" in refusal(BASE, {"projects": {"p": {"mcp_profile": "all"}}}).fix
    assert saved(BASE, {"sidebar.projects": [], "project": 1})["project"] == 1  # a host's own
    assert saved({"mcp_profile": 1}, {"mcp_profile": 1, "x": 2}) == {"mcp_profile": 1, "x": 2}


def test_a_key_given_twice_in_the_patch_is_refused() -> None:
    for patch in (
        '{"a": 1, "a": 2}',
        '{"mcpThreadProfiles": {"t": "all", "t": "all"}}',
        '{"projects": {"p": {"x": 1, "x": 2}}}',
    ):
        assert "given twice in the patch" in refusal(BASE, parse(patch)).message


@pytest.mark.parametrize("patch", [[], 5, {"a": float("nan")}, {"a": object()}])
def test_a_patch_that_is_no_object_is_refused(patch: object) -> None:
    assert refusal(BASE, patch).setting == "the patch"


def test_everything_wrong_with_a_patch_is_told_at_once() -> None:
    found = refusal({}, {"mcpProfile": "x", "mcpThreadProfiles": {"t": "inherit"}, "mcpProfiles": {"A": LEAN}})
    assert len(found.others) == 2
    assert "(and 2 more)" in str(found)


def test_settings_that_are_no_object_are_not_saved_into() -> None:
    with pytest.raises(AccessError, match="repair the file first"):
        apply_patch(parse("[]"), {"a": 1}, role="person")


# Who saves


@pytest.mark.parametrize("key", [*PERSON_KEYS, "mcp_profile", "MCP-Profile", "settings.mcpProfile", "theme"])
def test_an_agents_own_call_can_write_only_keys_on_the_agent_writable_list(key: str) -> None:
    found = refusal(BASE, {key: "all"}, role="agent", agent_writable={"font"})
    assert "only by a person" in found.message
    assert refusal(BASE, {key: None}, role="agent")


def test_an_agent_writes_what_is_on_the_list_and_nothing_beside_it() -> None:
    assert saved(BASE, {"theme": "light"}, role="agent", agent_writable={"theme"})["theme"] == "light"
    assert refusal(BASE, {"theme": "light", "mcpProfile": "all"}, role="agent", agent_writable={"theme"})
    assert refusal(BASE, {"mcpThreadProfiles": {"t1": "lean"}}, role="agent")  # unchanged, and still not the agent's


@pytest.mark.parametrize("key", ["mcpProfile", "mcp_profile", "projects"])
def test_a_persons_key_cannot_be_put_on_the_agents_list(key: str) -> None:
    with pytest.raises(AccessError, match="person's key"):
        apply_patch(None, {}, role="person", agent_writable={key})


def test_a_key_given_twice_is_repaired_by_a_new_value() -> None:
    twice = '{"mcpProfile": "all", "x": 1.0, "mcpProfile": "host-only", "mcpThreadProfiles": {"t": "all", "t": "all"}}'
    document = apply_patch(
        parse(twice), {"mcpProfile": "host-only", "mcpThreadProfiles": {"t": "host-only"}}, role="person"
    )
    assert write(document) == '{"mcpProfile": "host-only", "x": 1.0, "mcpThreadProfiles": {"t": "host-only"}}'


def test_a_pick_that_was_not_set_counts_as_a_new_one_at_the_cap() -> None:
    for unset in (None, " "):
        full = {"mcpThreadProfiles": {**FULL["mcpThreadProfiles"], "n": unset}}
        assert refusal(full, {"mcpThreadProfiles": {"n": "all"}}).setting == "mcpThreadProfiles.n"
    over = {"mcpThreadProfiles": {**FULL["mcpThreadProfiles"], "n": 5}}
    assert saved(over, {"mcpThreadProfiles": {"n": "all"}})["mcpThreadProfiles"]["n"] == "all"


def test_an_odd_key_that_is_there_can_be_changed_and_taken_away() -> None:
    assert saved({"mcp_profile": 1}, {"mcp_profile": 2}) == {"mcp_profile": 2}
    assert saved({"mcp_profile": 1}, {"mcp_profile": None}) == {}


def test_a_map_that_is_null_can_be_taken_away_and_written_into() -> None:
    assert saved({"mcpThreadProfiles": None, "projects": {}}, {"mcpThreadProfiles": None, "projects": None}) == {}
    assert saved({"mcpThreadProfiles": None}, {"mcpThreadProfiles": {"t": "all"}}) == {
        "mcpThreadProfiles": {"t": "all"}
    }
