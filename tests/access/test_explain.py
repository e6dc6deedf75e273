"""The steps to an answer, each with the setting that decided."""

from __future__ import annotations

import json

from hotplug.access import (
    OUTSIDE,
    Access,
    Host,
    Profile,
    Thread,
    Toolkit,
    ToolRule,
    explain,
    read_host,
    read_settings,
    resolve,
)

HOST = Host(
    {"work": ["read", "delete"], "mail": ["send"]},
    {"files": Toolkit("files", ("open",)), "core": Toolkit(None, ("ask", "odd"))},
    {"ask": "core"},
)
LINEAGE = {
    "r": Thread("r"),
    "s": Thread("s", parent="r", delegated=True, project="acme"),
    "picked": Thread("picked", parent="gone"),
}
SETTINGS = read_settings(
    json.dumps(
        {
            "mcpProfiles": {
                "lean": {"servers": ["work", "wrok"], "groups": ["fles"], "tools": {"work": {"deny": ["delete"]}}},
                "few": {"servers": "all", "groups": "all", "tools": {"work": {"allow": ["delete", "read"]}}},
            },
            "mcpSubagentProfile": "host-only",
            "mcpThreadProfiles": {"r": "lean"},
            "projects": {"acme": {"mcpSubagentProfile": "few"}},
        }
    )
)


def test_the_steps_name_the_setting_that_decided_each() -> None:
    steps = explain(SETTINGS, "s", LINEAGE, HOST).steps
    assert [(one.thread, one.kind, one.setting, one.value) for one in steps] == [
        ("s", "no-pick", None, None),
        ("s", "role", "projects.acme.mcpSubagentProfile", "few"),
        ("s", "cut", None, None),
        ("r", "pick", "mcpThreadProfiles.r", "lean"),
    ]
    assert all(one.text for one in steps)


def test_a_default_that_is_not_set_says_so() -> None:
    steps = explain(read_settings("{}"), "s", LINEAGE, HOST).steps
    assert [one.text for one in steps if one.thread == "s"] == [
        "the owner made no pick for it",
        'it is a sub-agent, and mcpSubagentProfile is not set: the default is "inherit"',
        'mcpProfile is not set: the default is "all"',
        'as a child of "r" it is cut down to what that has',
    ]
    assert steps[1].value is None


def test_a_default_names_the_setting_that_won() -> None:
    file = {
        "mcpProfile": "host-only",
        "mcpSubagentProfile": "inherit",
        "projects": {"acme": {"mcpProfile": "all"}, "own": {"mcpSubagentProfile": "inherit"}},
    }

    def roles(thread: Thread) -> list[tuple[str | None, str | None]]:
        found = explain(read_settings(json.dumps(file)), "t", {**LINEAGE, "t": thread}, HOST)
        return [(one.setting, one.value) for one in found.steps if (one.thread, one.kind) == ("t", "role")]

    assert roles(Thread("t")) == [("mcpProfile", "host-only")]
    assert roles(Thread("t", project="acme")) == [("projects.acme.mcpProfile", "all")]
    assert roles(Thread("t", project="other")) == [("mcpProfile", "host-only")]
    assert roles(Thread("t", "r", True, "acme")) == [
        ("mcpSubagentProfile", "inherit"),
        ("projects.acme.mcpProfile", "all"),
    ]
    assert roles(Thread("t", "r", True, "own")) == [
        ("projects.own.mcpSubagentProfile", "inherit"),
        ("mcpProfile", "host-only"),
    ]


def test_a_blank_project_is_none() -> None:
    found = resolve(read_settings('{"projects": 5}'), "t", {"t": Thread("t", project=" ")}, HOST)
    assert isinstance(found, Access)


def test_of_many_markers_the_one_that_is_used_is_told() -> None:
    settings = read_settings('{"mcpThreadProfiles": {"r": 5, "t": 6}, "mcpProfile": 7, "mcpSubagentProfile": 8}')
    for thread, setting in ((Thread("t"), "mcpThreadProfiles.t"), (Thread("u"), "mcpProfile")):
        found = explain(settings, thread.id, {thread.id: thread}, HOST).document()["refused"]
        assert isinstance(found, dict)
        assert (found["code"], found["setting"]) == ("unreadable_name", setting)
        assert str(found["reason"]).startswith(setting)


def test_a_name_that_looks_like_a_marker_and_stands_beside_one_is_just_unknown() -> None:
    text = '{"mcpProfile": "(unreadable list)", "mcpThreadProfiles": {"r": []}}'
    for settings in (read_settings(text), read_settings(text.replace("[]", "5"))):
        found = explain(settings, "t", {"t": Thread("t")}, HOST).document()["refused"]
        assert isinstance(found, dict)
        assert found["code"] == "unknown_profile"
        assert "or repair mcpProfile" in str(found["fix"])


def test_what_is_withheld_is_listed_by_the_rule_that_keeps_it() -> None:
    found = explain(SETTINGS, "s", LINEAGE, HOST)
    assert {
        (one.server, one.tools, one.whole, one.decision.rule, one.decision.setting, one.decision.by)
        for one in found.withheld
    } == {
        ("mail", ("send",), True, "server_left_out", "mcpProfiles.lean.servers", "mcpThreadProfiles.r"),
        ("work", ("delete",), False, "tool_denied", "mcpProfiles.lean.tools.work.deny", "mcpThreadProfiles.r"),
        ("files", ("open",), False, "group_left_out", "mcpProfiles.lean.groups", "mcpThreadProfiles.r"),
        ("core", ("odd",), False, "in_neither", None, None),
    }
    assert 'for "r" above it' in found.withheld[0].decision.reason


def test_a_server_that_offers_nothing_now_is_listed_too() -> None:
    host = Host({"empty": []})
    (one,) = explain(read_settings('{"mcpProfile": "host-only"}'), "r", LINEAGE, host).withheld
    assert (one.server, one.tools, one.whole) == ("empty", (), True)
    assert one.decision.setting == "mcpProfile"


def test_a_decision_on_one_tool_can_be_asked() -> None:
    found = explain(SETTINGS, "s", LINEAGE, HOST, tool=("work", "delete"))
    assert not found.allowed
    assert found.decision is not None
    assert found.decision.reason == '"lean" (mcpThreadProfiles.r for "r" above it) denies it'
    yes = explain(SETTINGS, "s", LINEAGE, HOST, tool=("work", "read"))
    assert yes.allowed
    assert yes.decision is not None
    assert yes.decision.reason == '"few" (projects.acme.mcpSubagentProfile) gives it'
    assert yes.decision


def test_an_explanation_is_data() -> None:
    document = explain(SETTINGS, "s", LINEAGE, HOST, tool=("files", "open")).document()
    assert json.loads(json.dumps(document)) == document
    access = document["access"]
    assert isinstance(access, dict)
    assert access["servers"] == ["work"]
    assert access["groups"] == []
    assert access["tools"] == {"work": ["read"], "core": ["ask"]}
    assert access["unknownServers"] == ["wrok"]
    assert access["unknownGroups"] == ["fles"]
    assert document["tool"]["rule"] == "group_left_out"  # type: ignore[index]


def test_a_refusal_is_explained_with_its_fix() -> None:
    found = explain(read_settings('{"mcpProfile": "gone"}'), "s", LINEAGE, HOST, tool=("core", "ask"))
    assert not found.allowed
    assert found.steps[-1].kind == "refused"
    document = found.document()
    assert document["refused"] == {
        "code": "unknown_profile",
        "reason": 'mcpProfile names "gone", which is not set up',
        "fix": 'pick a profile for this thread, "all" or "host-only", or add that profile',
        "setting": "mcpProfile",
        "at": "s",
    }
    assert found.withheld == ()
    assert found.decision is not None
    assert found.decision.rule == "refused"


def test_a_parent_that_refuses_is_named() -> None:
    settings = read_settings('{"mcpThreadProfiles": {"r": 5}}')
    found = explain(settings, "s", LINEAGE, HOST).document()["refused"]
    assert isinstance(found, dict)
    assert found["at"] == "r"
    assert found["reason"] == "its parent's access can't be told: mcpThreadProfiles.r is (unreadable number)"


def test_a_warning_of_the_settings_is_passed_on() -> None:
    found = explain(read_settings("{", last_good="{}"), "r", LINEAGE, HOST)
    assert "the last good copy is used" in str(found.document()["warning"])
    assert found.allowed


def test_the_wire_says_the_same_of_what_is_forbidden_and_of_what_is_not_there() -> None:
    access = resolve(SETTINGS, "s", LINEAGE, HOST)
    for server, tool in (("work", "delete"), ("work", "nothing"), ("nothing", "x"), ("core", "odd")):
        decision = access.allows(server, tool)
        assert decision.outside == OUTSIDE
        assert decision.reason != OUTSIDE  # the owner reads why


def test_a_file_in_a_repository_may_only_narrow() -> None:
    wide = resolve(read_settings("{}"), "r", LINEAGE, HOST)
    lean = resolve(SETTINGS, "r", LINEAGE, HOST)
    assert isinstance(wide, Access)
    assert isinstance(lean, Access)
    theirs = Profile(
        "repository", frozenset({"mail", "work"}), frozenset({"files"}), {"mail": ToolRule(deny=frozenset({"send"}))}
    )
    for access in (wide, lean):
        narrowed = access.narrowed(theirs, "hotplug.toml")
        assert set(narrowed.tools) <= set(access.tools)
        assert narrowed.steps[-1].setting == "hotplug.toml"
    assert wide.narrowed(theirs, "hotplug.toml").tools == (
        ("work", "delete"), ("work", "read"), ("core", "ask"), ("files", "open"),
    )  # fmt: skip
    assert lean.narrowed(theirs, "hotplug.toml").tools == (("work", "read"), ("core", "ask"))


def test_what_a_host_has_is_read_from_files_alone() -> None:
    host = read_host('{"servers": {"work": ["read"]}}')
    assert explain(read_settings(None), "r", LINEAGE, host, tool=("work", "read")).allowed


def test_the_owner_reads_which_rule_it_was() -> None:
    access = resolve(SETTINGS, "s", LINEAGE, HOST)
    asked = {
        ("work", "nothing"): "no_such_tool",
        ("core", "nothing"): "no_such_tool",
        ("nothing", "read"): "no_such_server",
        ("work", "delete"): "tool_denied",
        ("mail", "send"): "server_left_out",
        ("files", "open"): "group_left_out",
        ("core", "odd"): "in_neither",
        ("core", "ask"): "ungrouped",
        ("work", "read"): "given",
    }
    assert {one: access.allows(*one).rule for one in asked} == asked


def test_a_list_of_none_and_a_list_of_others_read_differently() -> None:
    def reason(allow: list[str]) -> str:
        profile = {"servers": "all", "groups": [], "tools": {"work": {"allow": allow}}}
        settings = read_settings(json.dumps({"mcpProfiles": {"x": profile}, "mcpProfile": "x"}))
        return resolve(settings, "r", LINEAGE, HOST).allows("work", "read").reason

    assert reason([]) == '"x" (mcpProfile) gives no tool of "work"'
    assert reason(["delete"]) == '"x" (mcpProfile) gives only other tools of "work"'


def test_a_group_without_a_name_is_no_group() -> None:
    host = Host({}, {"k": Toolkit(" ", ("a", "ask"))}, {"ask": "k"})
    access = resolve(read_settings("{}"), "r", LINEAGE, host)
    assert isinstance(access, Access)
    assert access.tools == (("k", "ask"),)
    assert access.allows("k", "a").rule == "in_neither"


def test_only_what_one_rule_keeps_whole_is_withheld_whole() -> None:
    file = {
        "mcpProfiles": {
            "reads": {"servers": "all", "groups": "all", "tools": {"work": {"allow": ["read"]}}},
            "no-read": {"servers": "all", "groups": "all", "tools": {"work": {"deny": ["read"]}}},
        },
        "mcpThreadProfiles": {"r": "no-read"},
        "mcpSubagentProfile": "reads",
    }
    host = Host({"work": ["read", "delete"], "empty": []})
    found = explain(read_settings(json.dumps(file)), "s", {**LINEAGE, "s": Thread("s", "r", True)}, host)
    assert [(one.server, one.tools, one.whole) for one in found.withheld] == [
        ("work", ("delete",), False),
        ("work", ("read",), False),
    ]
