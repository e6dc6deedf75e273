"""What a thread gets, by the published table (tests/vectors/access.json), and what the table can't say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotplug.access import Access, Refused, read_host, read_lineage, read_settings, resolve

FILE = json.loads((Path(__file__).parents[1] / "vectors" / "access.json").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = FILE["cases"]


def answer(case: dict[str, Any]) -> Access | Refused:
    text = case.get("text", json.dumps(case["settings"]) if "settings" in case else None)
    settings = read_settings(text, last_good=case.get("lastGood"))
    host = read_host(case.get("host", FILE["host"]))
    return resolve(settings, case["thread"], read_lineage(case["lineage"]), host)


def test_the_table_is_large_and_names_each_case_once() -> None:
    assert len(CASES) >= 150
    assert len({case["id"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_thread_gets_what_the_table_says(case: dict[str, Any]) -> None:
    found, expect = answer(case), case["expect"]
    if "refused" in expect:
        assert isinstance(found, Refused), found.tools
        assert found.code == expect["refused"]
        assert found.at == expect.get("at", case["thread"])
        assert found.reason
        assert found.fix
        return
    assert isinstance(found, Access), found
    gets: dict[str, list[str]] = {}
    for server, tool in found.tools:
        gets.setdefault(server, []).append(tool)
    assert gets == expect["gets"]
    assert list(found.unknown_servers) == expect.get("unknownServers", [])
    assert list(found.unknown_groups) == expect.get("unknownGroups", [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_tool_has_a_decision_with_a_reason_that_agrees_with_the_lists(case: dict[str, Any]) -> None:
    found = answer(case)
    host = read_host(case.get("host", FILE["host"]))
    tools = set(found.tools) if isinstance(found, Access) else set()
    every = [(server, tool) for server, tools in host.servers.items() for tool in tools]
    every += [(name, tool) for name, kit in host.toolkits.items() for tool in kit.tools]
    withheld = (
        {(one.server, tool) for one in found.withheld() for tool in one.tools} if isinstance(found, Access) else None
    )
    for server, tool in [*every, ("work", "no such"), ("no such", "read"), ("", "")]:
        decision = found.allows(server, tool)
        assert decision.allowed == ((server, tool) in tools)
        assert decision.reason
        if withheld is not None and (server, tool) in every:
            assert decision.allowed != ((server, tool) in withheld)
