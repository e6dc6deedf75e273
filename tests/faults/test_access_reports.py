"""Field reports about access, FR-43 to FR-52, as far as the library goes; the roads to it are the gateway's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotplug.access import (
    OUTSIDE,
    Access,
    Host,
    PatchRefused,
    Refused,
    Thread,
    Toolkit,
    apply_patch,
    check,
    explain,
    parse,
    read_settings,
    resolve,
    write,
)

HOST = Host(
    {"shell": ["run"], "notes": ["find-page", "read", "write", "delete", "list", "move", "copy"]},
    {"files": Toolkit("files", ("open",))},
)
LINEAGE = {
    "parent": Thread("parent"),
    "child": Thread("child", parent="parent", delegated=True),
    "grandchild": Thread("grandchild", parent="child", delegated=True),
}


def answer(settings: object, thread: str = "parent", host: Host = HOST) -> Access | Refused:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return resolve(read_settings(text), thread, LINEAGE, host)


def given(settings: object, thread: str = "parent", host: Host = HOST) -> Access:
    found = answer(settings, thread, host)
    assert isinstance(found, Access), found
    return found


def saved(settings: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return json.loads(write(apply_patch(parse(json.dumps(settings)), patch, role="person", host=HOST)))


READ_ONLY = {"servers": ["notes"], "groups": [], "tools": {"notes": {"allow": ["read", "list", "find-page"]}}}
SEVEN = ["find-page", "read", "write", "delete", "list", "move", "copy"]
CHILD = {"servers": ["shell", "notes"], "groups": "all", "tools": {"notes": {"allow": SEVEN}}}
AGREED = {
    "mcpProfiles": {"read-only": READ_ONLY, "worker": CHILD},
    "mcpProfile": "read-only",
    "mcpSubagentProfile": "worker",
}


def test_fr_43_a_child_never_gets_more_than_its_parent_by_list_and_by_call() -> None:
    child = given(AGREED, "child")
    assert child.servers == ("notes",)
    assert not child.allows("shell", "run").allowed
    assert [tool for _, tool in child.tools] == ["find-page", "list", "read"]


def test_fr_43_denials_of_every_ancestor_hold_at_every_depth() -> None:
    deny = {"servers": "all", "groups": "all", "tools": {"notes": {"deny": ["delete"]}}}
    settings = {"mcpProfiles": {"no": deny}, "mcpThreadProfiles": {"parent": "no"}}
    for thread in ("parent", "child", "grandchild"):
        assert not given(settings, thread).allows("notes", "delete").allowed
        assert given(settings, thread).allows("notes", "write").allowed


def test_fr_44_what_was_withheld_is_named_at_the_start_and_in_the_refusal() -> None:
    found = explain(read_settings(json.dumps(AGREED)), "child", LINEAGE, HOST)
    lost = {(one.server, tool): one.decision for one in found.withheld for tool in one.tools}
    assert ("shell", "run") in lost
    assert ("notes", "delete") in lost
    child = given(AGREED, "child")
    for (server, tool), decision in lost.items():
        assert child.allows(server, tool) == decision
        assert "read-only" in decision.reason
        assert str(decision.setting).startswith("mcpProfiles.read-only")
        assert (decision.by, decision.thread) == ("mcpProfile", "parent")


def test_fr_44_a_start_that_cannot_be_answered_ends_with_a_reason() -> None:
    found = answer({"mcpProfile": "gone"}, "grandchild")
    assert isinstance(found, Refused)
    assert found.reason
    assert found.fix


def test_fr_45_an_empty_list_gives_no_tool_and_a_missing_one_the_documented_default() -> None:
    def tools(rules: dict[str, Any]) -> int:
        profile = {"servers": ["notes"], "groups": [], **rules}
        return len(given({"mcpProfiles": {"x": profile}, "mcpProfile": "x"}).tools)

    assert tools({"tools": {"notes": {"allow": []}}}) == 0
    assert tools({}) == 7
    assert tools({"tools": {}}) == 7


@pytest.mark.parametrize("profile", [{}, {"servers": "all"}, {"groups": []}, {**READ_ONLY, "tools": {"notes": {}}}])
def test_fr_45_a_profile_without_a_rule_is_refused_to_start(profile: object) -> None:
    found = answer({"mcpProfiles": {"x": profile}, "mcpProfile": "x"})
    assert isinstance(found, Refused)
    assert found.code == "broken_profile"


def test_fr_46_an_entry_that_matches_nothing_is_reported_and_not_granted_and_the_others_work() -> None:
    now = Host({"notes": ["lookup-page", "read", "list"]})
    settings = {"mcpProfiles": {"read-only": READ_ONLY}, "mcpProfile": "read-only"}
    assert given(settings, host=now).tools == (("notes", "list"), ("notes", "read"))
    (found,) = check(read_settings(json.dumps(settings)), now)
    assert (found.code, found.near) == ("unknown_tool", ("lookup-page",))
    assert "find-page" in found.message
    assert len(given(settings).tools) == 3
    assert check(read_settings(json.dumps(settings)), HOST) == ()


def test_fr_46_names_are_compared_in_the_servers_own_form() -> None:
    rule = {"allow": ["Read", "find_page", " list"]}
    settings = {"mcpProfiles": {"x": {**READ_ONLY, "tools": {"notes": rule}}}, "mcpProfile": "x"}
    assert given(settings).tools == ()
    assert [one.near[0] for one in check(read_settings(json.dumps(settings)), HOST)] == ["list", "read", "find-page"]


def test_fr_47_off_is_off_by_list_by_call_and_for_a_sub_agent() -> None:
    for thread in ("parent", "child", "grandchild"):
        access = given(AGREED, thread)
        assert ("notes", "delete") not in access.tools
        assert "delete" not in access.tools_of("notes")
        assert not access.allows("notes", "delete").allowed


@pytest.mark.parametrize(
    "bad", ["5", "[]", '{"servers": "all", "groups": null}', '{"servers": ["notes"', '{"a": 1, "a": 2}']
)
def test_fr_48_a_bad_value_closes_its_part_and_nothing_else_and_denials_never_vanish(bad: str) -> None:
    profile = {"servers": "all", "groups": "all", "tools": {"notes": {"deny": ["delete"]}}}
    file = json.dumps(
        {"mcpProfiles": {"d": profile, "other": "HERE"}, "mcpProfile": "d", "mcpThreadProfiles": {"child": "other"}}
    )
    text = file.replace('"HERE"', bad)
    good = read_settings(file.replace('"HERE"', json.dumps(profile)))
    settings = read_settings(text, last_good=write(good.document) if good.document else None)
    running = resolve(settings, "parent", LINEAGE, HOST)
    assert not running.allows("notes", "delete").allowed
    assert running.allows("notes", "read").allowed
    if settings.unreadable is None:
        broken = resolve(settings, "child", LINEAGE, HOST)
        assert isinstance(broken, Refused)
        assert "mcpProfiles.other" in broken.reason
        assert settings.document is not None
        assert parse(write(settings.document)).root == parse(text).root
    else:
        assert settings.read_only


def test_fr_49_a_read_that_fails_allows_no_write_and_a_write_is_checked_by_the_readers_rules() -> None:
    assert read_settings('{"mcpProfile": "a').document is None
    with pytest.raises(ValueError, match="repair the file first"):
        apply_patch(parse('"text"'), {"mcpProfile": "all"}, role="person")
    with pytest.raises(PatchRefused):
        saved({}, {"mcpProfiles": {"x": {"servers": "all"}}})


def test_fr_49_two_windows_that_change_different_profiles_at_once_lose_neither_change() -> None:
    base = {"mcpProfiles": {"a": READ_ONLY, "b": READ_ONLY}}
    after = saved(saved(base, {"mcpProfiles": {"a": CHILD}}), {"mcpProfiles": {"b": CHILD}})
    assert after == {"mcpProfiles": {"a": CHILD, "b": CHILD}}


def test_fr_50_what_the_person_turned_off_stays_off_whatever_a_repository_says_with_a_note() -> None:
    access = given({"mcpProfile": "host-only"})
    theirs = given({"mcpProfile": "all"}).layers[0].profile
    narrowed = access.narrowed(theirs, ".hotplug.toml")
    assert narrowed.tools == access.tools
    assert any(one.setting == ".hotplug.toml" and "may only narrow" in one.text for one in narrowed.steps)
    assert "host-only" in narrowed.allows("notes", "read").reason


def test_fr_50_removing_a_server_and_adding_it_again_does_not_turn_it_on() -> None:
    off = {"servers": "all", "groups": [], "tools": {"notes": {"allow": []}, "shell": {"deny": "all"}}}
    settings = {"mcpProfiles": {"x": off}, "mcpProfile": "x"}
    assert given(settings, host=Host({})).tools == ()
    again = Host({"notes": ["read", "brand-new"], "shell": ["run", "brand-new"]})
    assert given(settings, host=again).tools == ()


def test_fr_51_removing_a_profile_in_use_is_refused_with_its_users_named() -> None:
    settings = {**AGREED, "mcpThreadProfiles": {"parent": "worker"}}
    with pytest.raises(PatchRefused) as caught:
        saved(settings, {"mcpProfiles": {"worker": None}})
    assert "mcpSubagentProfile" in caught.value.message
    assert "mcpThreadProfiles.parent" in caught.value.message


def test_fr_51_after_a_hand_edit_the_next_call_is_refused_and_another_pick_works() -> None:
    gone = {**AGREED, "mcpProfiles": {"worker": CHILD}}
    decision = answer(gone).allows("notes", "read")
    assert not decision.allowed
    assert decision.reason == 'mcpProfile names "read-only", which is not set up'
    assert given(saved(gone, {"mcpThreadProfiles": {"parent": "worker"}})).allows("notes", "read").allowed


def test_fr_52_a_revoked_right_stays_revoked_after_the_profile_is_renamed() -> None:
    wide = {"mcpProfiles": {"x": {"servers": "all", "groups": "all"}}, "mcpProfile": "x"}
    assert given(wide).allows("shell", "run").allowed
    less = {"servers": "all", "groups": "all", "tools": {"shell": {"deny": ["run"]}}}
    revoked = saved(wide, {"mcpProfiles": {"x": less}})
    renamed = saved(revoked, {"mcpProfiles": {"x": None, "y": less}, "mcpProfile": "y"})
    for settings in (revoked, renamed, saved(renamed, {"theme": "dark"})):
        assert not given(settings).allows("shell", "run").allowed


def test_fr_52_a_scope_without_rights_is_an_error_not_an_empty_success() -> None:
    refused = answer({"mcpProfile": "gone"})
    assert isinstance(refused, Refused)
    assert not hasattr(refused, "tools")


def test_fr_52_unknown_and_forbidden_look_the_same_from_outside() -> None:
    access, refused = given(AGREED), answer({"mcpProfile": 5})
    said = {
        one.allows(server, tool).outside
        for one in (access, refused)
        for server, tool in (
            ("shell", "run"),
            ("shell", "nothing"),
            ("no such", "run"),
            ("files", "open"),
            ("notes", "copy"),
        )
    }
    assert said == {OUTSIDE}
    assert access.allows("notes", "read").outside == ""
