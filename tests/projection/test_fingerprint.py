from __future__ import annotations

import copy
from typing import Any

from hotplug.projection.fingerprint import Drift, digest, drift, structure, tool_digests, tools_digest

CREATE: dict[str, Any] = {
    "name": "create-event",
    "description": "Creates an event",
    "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "title": "Args",
        "properties": {
            "title": {"type": "string", "title": "Title", "description": "The title"},
            "description": {"type": "string", "default": ""},
            "examples": {"type": ["string", "null"], "examples": ["x"]},
            "when": {"$ref": "#/$defs/title"},
        },
        "required": ["title", "when"],
        "$defs": {
            "title": {"type": "object", "properties": {"description": {"description": "d", "const": {"title": "x"}}}}
        },
    },
}
DELETE: dict[str, Any] = {
    "name": "delete-event",
    "inputSchema": {"type": "object", "properties": {"uid": {"type": "string"}}},
}


def changed(**edit: Any) -> dict[str, Any]:
    tool = copy.deepcopy(CREATE)
    properties = tool["inputSchema"]["properties"]
    for name, value in edit.items():
        if value is None:
            del properties[name]
        else:
            properties[name] = value
    return tool


def test_prose_is_dropped_and_properties_of_such_names_are_kept() -> None:
    assert structure(CREATE["inputSchema"]) == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "description": {"type": "string", "default": ""},
            "examples": {"type": ["null", "string"]},
            "when": {"$ref": "#/$defs/title"},
        },
        "required": ["title", "when"],
        "$defs": {"title": {"type": "object", "properties": {"description": {"const": {"title": "x"}}}}},
    }


def test_prose_and_order_do_not_change_the_digest() -> None:
    other = changed(title={"type": "string", "title": "Titel", "description": "Stand 2026-11-30"})
    other["description"] = "Today is Monday"
    other["inputSchema"]["required"] = ["when", "title"]
    assert tools_digest([CREATE, DELETE]) == tools_digest([DELETE, other])
    assert tools_digest([CREATE]).startswith("sha256:")


def test_structure_changes_the_digest() -> None:
    base = tools_digest([CREATE])
    assert tools_digest([changed(title=None)]) != base
    assert tools_digest([changed(description=None)]) != base
    assert tools_digest([changed(description={"type": "string", "default": "x"})]) != base
    assert tools_digest([changed(title={"type": "string", "enum": ["a"]})]) != base
    assert tools_digest([{**CREATE, "name": "create_event"}]) != base
    assert tools_digest([{**CREATE, "outputSchema": {"type": "object"}}]) != base
    assert tools_digest([CREATE, CREATE]) != base


def test_a_bound_beyond_the_doubles_has_a_digest() -> None:
    assert digest({"maximum": 2**63 - 1}) != digest({"maximum": 2**63 - 2})


def test_drift_tells_structure_from_prose() -> None:
    frozen = [
        CREATE,
        DELETE,
        {"name": "gone", "inputSchema": {}},
        {"name": "wordy", "description": "a", "inputSchema": {}},
    ]
    live = [
        changed(title=None),
        DELETE,
        {"name": "new", "inputSchema": {}},
        {"name": "wordy", "description": "b", "inputSchema": {}},
    ]
    found = drift(frozen, live)
    assert found == Drift(added=("new",), removed=("gone",), changed=("create-event",), prose=("wordy",))
    assert found.breaks(["create-event", "delete-event", "gone"]) == ("create-event", "gone")
    assert found.breaks(["delete-event", "wordy"]) == ()


def test_no_difference_and_prose_alone_are_no_drift() -> None:
    assert not drift([CREATE], [copy.deepcopy(CREATE)])
    assert not drift([CREATE], [{**CREATE, "description": "other"}])
    assert drift([CREATE], [CREATE, DELETE])
    assert drift([CREATE], [{**CREATE, "annotations": {"readOnlyHint": True}}]).prose == ("create-event",)
    assert set(tool_digests([CREATE, DELETE])) == {"create-event", "delete-event"}
