"""The seed's failure table, row by row, and what its reviews found, the deferred ones too."""

from __future__ import annotations

import json

import pytest

from hotplug.access import (
    PERSON_KEYS,
    PICKS_CAP,
    Access,
    Host,
    PatchRefused,
    Refused,
    Thread,
    Toolkit,
    apply_patch,
    check,
    names_person_key,
    parse,
    prune_picks,
    read_settings,
    resolve,
    write,
)

HOST = Host(
    {"work": ["read"]},
    {"preview": Toolkit("preview", ("show", "controls")), "core": Toolkit(None, ("tool_search", "send_to_user"))},
    {"tool_search": "core", "send_to_user": "core"},
)
LEAN = {"servers": ["work"], "groups": []}
T = {"t": Thread("t")}


def answer(settings: object, thread: str = "t", lineage: dict[str, Thread] = T) -> Access | Refused:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return resolve(read_settings(text), thread, lineage, HOST)


def patched(settings: object, patch: dict[str, object]) -> dict[str, object]:
    return json.loads(write(apply_patch(parse(json.dumps(settings)), patch, role="person", host=HOST)))


def test_runs_again_the_same_input_always_gives_the_same_answer_and_saving_the_same_again_passes() -> None:
    odd = {"mcpProfile": "gone", "mcpThreadProfiles": {"t": 5}, "projects": {"p": {"mcpProfile": "Lean"}}}
    assert answer(odd) == answer(odd)
    assert patched(odd, odd) == odd


def test_stops_half_way_a_refused_save_writes_nothing() -> None:
    document = parse('{"mcpProfile": "all"}')
    with pytest.raises(PatchRefused):
        apply_patch(document, {"theme": "dark", "mcpProfile": "gone"}, role="person")
    assert write(document) == '{"mcpProfile": "all"}'


def test_old_settings_file_without_keys_every_thread_gets_all() -> None:
    found = answer({"theme": "dark"})
    assert isinstance(found, Access)
    assert len(found.tools) == 5


@pytest.mark.parametrize("value", ["", "  ", None])
def test_empty_value_means_not_set_and_a_null_pick_is_dropped(value: object) -> None:
    assert answer({"mcpProfile": value}).allows("work", "read").allowed
    assert answer({"mcpThreadProfiles": {"t": value}}).allows("work", "read").allowed


@pytest.mark.parametrize("value", [5, ["all"], {"all": True}])
def test_bad_value_in_the_file_the_file_loads_every_other_setting_is_kept_and_who_uses_it_is_refused(
    value: object,
) -> None:
    settings = {"theme": "dark", "mcpProfile": value, "mcpThreadProfiles": {"t": "host-only"}}
    assert isinstance(answer(settings), Access)
    assert isinstance(answer(settings, "u", {"u": Thread("u")}), Refused)
    assert patched(settings, {"x": 1}) == {**settings, "x": 1}


@pytest.mark.parametrize("value", ["", "Lean", 5])
def test_existing_odd_project_value_sent_back_unchanged_is_accepted_and_stays_refused_until_it_is_fixed(
    value: object,
) -> None:
    settings = {"mcpProfiles": {"lean": LEAN}, "projects": {"p": {"mcpProfile": value, "scripts": []}}}
    after = patched(settings, {"projects": {"p": {"mcpProfile": value, "scripts": ["make"]}}})
    assert after["projects"] == {"p": {"mcpProfile": value, "scripts": ["make"]}}
    refused = isinstance(answer(after, "t", {"t": Thread("t", project="p")}), Refused)
    assert refused == (value != "")  # "" is not set


@pytest.mark.parametrize(
    "patch",
    [
        {"mcpProfile": "lean"},
        {"mcpProfile": "inherit"},
        {"mcpThreadProfiles": {"t": "lean"}},
        {"mcpSubagentProfile": "lean"},
    ],
)
def test_save_names_a_profile_that_does_not_exist_or_inherit_where_it_means_nothing_is_refused(
    patch: dict[str, object],
) -> None:
    with pytest.raises(PatchRefused):
        patched({}, patch)


def test_profile_this_build_cannot_read_a_save_keeps_it_as_written_and_its_user_is_refused() -> None:
    settings = {"mcpProfiles": {"new": {**LEAN, "resources": ["x"]}}, "mcpProfile": "new"}
    assert patched(settings, {"theme": "dark"})["mcpProfiles"] == settings["mcpProfiles"]
    assert isinstance(answer(settings), Refused)


def test_profile_name_that_does_not_exist_is_refused_with_a_message_and_never_falls_back_to_all() -> None:
    found = answer({"mcpProfile": "deleted"})
    assert isinstance(found, Refused)
    assert 'pick a profile for this thread, "all" or "host-only"' in found.fix


def test_more_than_500_thread_picks_the_next_is_refused_and_no_live_thread_is_widened() -> None:
    full = {"mcpThreadProfiles": {f"old-{one}": "host-only" for one in range(PICKS_CAP)}}
    with pytest.raises(PatchRefused, match="none is dropped"):
        patched(full, {"mcpThreadProfiles": {"new": "host-only"}})
    pruned = prune_picks(parse(json.dumps(full)), ["old-499"])
    after = apply_patch(pruned, {"mcpThreadProfiles": {"new": "host-only"}}, role="person")
    assert read_settings(write(after)).picks["old-0"] == "host-only"


def test_unknown_tool_group_in_a_profile_keeps_nothing_and_is_listed() -> None:
    found = answer({"mcpProfiles": {"x": {"servers": [], "groups": ["previews"]}}, "mcpProfile": "x"})
    assert isinstance(found, Access)
    assert found.unknown_groups == ("previews",)
    assert not found.allows("preview", "show").allowed


def test_a_new_tool_or_toolkit_fails_the_check_until_it_is_put_in_a_group_or_on_the_ungrouped_list() -> None:
    new = Host(HOST.servers, {**HOST.toolkits, "waits": Toolkit(None, ("wait",))}, HOST.ungrouped)
    assert [one.code for one in new.check()] == ["tool_in_neither"]
    assert not resolve(read_settings("{}"), "t", T, new).allows("waits", "wait").allowed
    assert HOST.check() == ()


@pytest.mark.parametrize(
    "patch",
    [
        {"mcpProfiles": {"all": LEAN}},
        {"mcpProfiles": {"inherit": LEAN}},
        {"mcpProfiles": {"Bad Name": LEAN}},
        {"mcpProfiles": {"x": {**LEAN, "more": 1}}},
        {"mcpProfiles": {"x": {"servers": []}}},
        {"mcpProfiles": {"x": {**LEAN, "groups": ["nope"]}}},
        {"mcpProfiles": {"x": {**LEAN, "servers": [" "]}}},
        {"mcpThreadProfiles": {" ": "all"}},
    ],
)
def test_bad_patch_is_refused_not_dropped_in_silence(patch: dict[str, object]) -> None:
    with pytest.raises(PatchRefused):
        patched({}, patch)


def test_broken_lineage_refuses_the_child_and_a_child_the_owner_picked_for_still_starts() -> None:
    deep = {f"t{one}": Thread(f"t{one}", f"t{one - 1}" if one else None) for one in range(66)}
    broken = {"loop": Thread("loop", "loop"), "lost": Thread("lost", "gone"), **deep}
    for thread in ("loop", "lost", "t65"):
        assert isinstance(answer({}, thread, broken), Refused)
        assert isinstance(answer({"mcpThreadProfiles": {thread: "all"}}, thread, broken), Access)


def test_two_clients_save_picks_at_once_both_picks_stay() -> None:
    first = patched({}, {"mcpThreadProfiles": {"a": "host-only"}})
    assert patched(first, {"mcpThreadProfiles": {"b": "all"}})["mcpThreadProfiles"] == {"a": "host-only", "b": "all"}


# What the reviews found


def test_one_bad_value_never_resets_all_settings() -> None:
    settings = read_settings('{"mcpThreadProfiles": {"t1": null, "t2": "host-only"}, "mcpProfile": 5, "other": [1]}')
    assert settings.picks == {"t2": "host-only"}
    assert settings.document is not None
    assert '"other": [1]' in write(settings.document)


def test_a_newer_builds_value_that_is_no_text_is_not_rewritten_as_a_marker_on_the_next_save() -> None:
    settings = {"mcpProfile": {"name": "x", "since": 2}}
    assert patched(settings, {"theme": "dark"})["mcpProfile"] == {"name": "x", "since": 2}
    assert patched(settings, {"mcpProfile": "(unreadable object)"})["mcpProfile"] == {"name": "x", "since": 2}


def test_a_hand_edited_profile_named_like_a_built_in_is_broken_not_ignored() -> None:
    settings = {"mcpProfiles": {"all": LEAN}}
    assert isinstance(answer(settings), Refused)
    assert [one.code for one in check(read_settings(json.dumps(settings)), HOST)] == ["reserved_name"]


def test_deleting_a_profile_still_in_use_is_refused() -> None:
    with pytest.raises(PatchRefused, match=r"in use, by mcpThreadProfiles\.t"):
        patched({"mcpProfiles": {"lean": LEAN}, "mcpThreadProfiles": {"t": "lean"}}, {"mcpProfiles": {"lean": None}})


def test_ungrouped_tools_are_pinned_to_their_toolkit() -> None:
    other = Host({}, {**HOST.toolkits, "web": Toolkit("web", ("tool_search",))}, HOST.ungrouped)
    settings = read_settings('{"mcpProfiles": {"x": {"servers": [], "groups": []}}, "mcpProfile": "x"}')
    found = resolve(settings, "t", T, other)
    assert found.allows("core", "tool_search").allowed
    assert not found.allows("web", "tool_search").allowed


def test_an_agents_call_that_writes_a_persons_key_is_refused_in_the_save_path() -> None:
    for key in PERSON_KEYS:
        with pytest.raises(PatchRefused, match="only by a person"):
            apply_patch(parse("{}"), {key: None}, role="agent")


def test_a_servers_note_that_it_is_not_set_up_is_in_the_answer() -> None:
    found = answer({"mcpProfiles": {"x": {"servers": ["wrok"], "groups": []}}, "mcpProfile": "x"})
    assert isinstance(found, Access)
    assert found.unknown_servers == ("wrok",)


def test_no_tool_of_a_hosts_names_a_persons_key_whatever_library_made_its_schema() -> None:
    assert names_person_key({"type": "object", "properties": {"title": {"type": "string"}}}) == ()
    assert names_person_key({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"mcp_profile": {}}}}})
