"""What an owner is told to repair."""

from __future__ import annotations

import json

import pytest

from hotplug.access import Finding, Host, Toolkit, check, read_settings

HOST = Host(
    {"work": ["find-page", "delete"], "mail": ["send"]},
    {"files": Toolkit("files", ("open",)), "core": Toolkit(None, ("ask",))},
    {"ask": "core"},
)
LEAN = {"servers": ["work"], "groups": ["files"]}


def found(settings: object, host: Host | None = HOST) -> list[Finding]:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return list(check(read_settings(text), host))


def test_settings_that_are_in_order_give_nothing() -> None:
    fine = {
        "mcpProfiles": {"lean": {**LEAN, "tools": {"work": {"allow": ["find-page"], "deny": []}}}},
        "mcpProfile": "lean",
        "mcpSubagentProfile": "inherit",
        "mcpThreadProfiles": {"t": "host-only", "u": None},
        "projects": {"p": {"mcpProfile": "all", "mcpSubagentProfile": "inherit", "scripts": []}},
        "theme": "dark",
    }
    assert found(fine) == []
    assert found({}) == []


@pytest.mark.parametrize(
    ("settings", "code", "setting"),
    [
        ('{"mcp', "unreadable_file", "the settings"),
        ({"mcpProfile": 5}, "marker", "mcpProfile"),
        ({"projects": {"p": 5}}, "marker", "projects.p"),
        ({"mcpThreadProfiles": []}, "marker", "mcpThreadProfiles"),
        ('{"mcpProfile": "all", "mcpProfile": "all"}', "given_twice", "mcpProfile"),
        ({"mcpProfiles": {"x": {"servers": []}}}, "broken_profile", "mcpProfiles.x"),
        ({"mcpProfiles": {"all": LEAN}}, "reserved_name", "mcpProfiles.all"),
        ({"mcpProfiles": {"Lean": LEAN}}, "bad_name", "mcpProfiles.Lean"),
        ({"mcpProfile": "inherit"}, "inherit_here", "mcpProfile"),
        ({"mcpThreadProfiles": {"t": "inherit"}}, "inherit_here", "mcpThreadProfiles.t"),
        ({"mcpThreadProfiles": {"a\tb": "all"}}, "bad_thread", 'mcpThreadProfiles["a\\tb"]'),
        ({"mcp_profile": "all"}, "odd_key", "mcp_profile"),
        ({"mcpProfil": "all"}, "odd_key", "mcpProfil"),
        ({"projects": {"p": {"mcp-profile": "all"}}}, "odd_key", "projects.p.mcp-profile"),
        ({"mcpThreadProfiles": {f"t{one}": "all" for one in range(501)}}, "past_the_cap", "mcpThreadProfiles"),
        ({"mcpProfiles": {"x": {**LEAN, "tools": {"mail": {"allow": []}}}}}, "idle_rule", "mcpProfiles.x.tools.mail"),
    ],
)
def test_each_thing_that_means_nothing_is_found_where_it_stands(settings: object, code: str, setting: str) -> None:
    assert [(one.code, one.setting) for one in found(settings)] == [(code, setting)]
    assert all(one.message and one.fix for one in found(settings, None))


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"mcpProfile": "leen"}, "mcpProfile"),
        ({"mcpSubagentProfile": "Lean"}, "mcpSubagentProfile"),
        ({"mcpThreadProfiles": {"t": "lea"}}, "mcpThreadProfiles.t"),
        ({"projects": {"a b": {"mcpProfile": "lean-"}}}, 'projects["a b"].mcpProfile'),
        ({"projects": {"p": {"mcpSubagentProfile": "l-ean"}}}, "projects.p.mcpSubagentProfile"),
    ],
)
def test_a_dangling_name_is_found_with_near_names(settings: dict[str, object], setting: str) -> None:
    (one,) = found({"mcpProfiles": {"lean": LEAN}, **settings})
    assert (one.code, one.setting, one.near) == ("dangling", setting, ("lean",))
    assert 'did you mean "lean"?' in one.fix


@pytest.mark.parametrize(
    ("profile", "code", "near"),
    [
        ({**LEAN, "servers": ["Work"]}, "unknown_server", ("work",)),
        ({**LEAN, "servers": ["work", "zzz"]}, "unknown_server", ()),
        ({**LEAN, "groups": ["file"]}, "unknown_group", ("files",)),
        ({**LEAN, "tools": {"work": {"allow": ["find_page"]}}}, "unknown_tool", ("find-page",)),
        ({**LEAN, "tools": {"work": {"deny": ["remove", "Delete"]}}}, "unknown_tool", ("delete",)),
        ({"servers": "all", "groups": [], "tools": {"wrok": {"allow": []}}}, "unknown_server", ("work",)),
    ],
)
def test_an_entry_that_matches_nothing_is_found_with_near_names(
    profile: object, code: str, near: tuple[str, ...]
) -> None:
    first = found({"mcpProfiles": {"x": profile}})[0]
    assert (first.code, first.near) == (code, near)
    assert "matches nothing" in first.message
    assert all(one.code == "idle_rule" for one in found({"mcpProfiles": {"x": profile}}, None))


def test_a_hosts_own_faults_are_found_too() -> None:
    assert [one.code for one in found({}, Host({}, {"k": Toolkit(None, ("a",))}))] == ["tool_in_neither"]


def test_a_finding_is_data() -> None:
    (one,) = found({"mcpProfiles": {"lean": LEAN}, "mcpProfile": "leen"})
    assert one.document() == {
        "code": "dangling",
        "setting": "mcpProfile",
        "message": 'mcpProfile names "leen", which is not set up',
        "fix": 'did you mean "lean"?',
        "near": ["lean"],
    }
    assert "near" not in found({"mcpProfile": 5})[0].document()
