from __future__ import annotations

from pathlib import Path

import pytest

from hotplug.errors import ProjectionError
from hotplug.projection.document import parse
from hotplug.projection.files import code_file, freeze, read, tool_list
from hotplug.projection.fingerprint import code_digest, tools_digest

TOOLS = [{"name": "get-event", "inputSchema": {"type": "object"}}]
TEXT = """\
# A comment that stays.
projection: dev.hotplug.caldav-mcp
version: 1.0.0
upstream: {package: "npm:caldav-mcp", versions: ">=0.10 <0.11"}
profiles: {calendar: 1.0.0}
operations:
  calendar.get: {tool: get-event, args: {uid: event}, result: $}
coverage: {get-event: mapped}
"""


def test_a_document_and_its_tool_list_are_read_from_files(tmp_path: Path) -> None:
    path = tmp_path / "caldav.yaml"
    path.write_text(TEXT, encoding="utf-8")
    assert read(path).file == "caldav.yaml"
    with pytest.raises(ProjectionError, match=r"caldav\.tools\.json.*can't be read"):
        tool_list(path)
    beside = tmp_path / "caldav.tools.json"
    beside.write_text('{"tools": [{"name": "a"}]}', encoding="utf-8")
    assert tool_list(path) == ({"name": "a"},)
    beside.write_text('[{"nom": "a"}]', encoding="utf-8")
    with pytest.raises(ProjectionError, match="not a list of tools"):
        tool_list(path)
    with pytest.raises(ProjectionError, match="can't be read"):
        read(tmp_path / "missing.yaml")


def test_code_lies_beside_the_document_and_its_digest_ignores_line_ends(tmp_path: Path) -> None:
    source = parse(TEXT.replace("operations:", "code: upstreams.blade:Blade\noperations:"))
    file = code_file(tmp_path / "blade.yaml", source.document)
    assert file == tmp_path / "upstreams" / "blade.py"
    assert code_file(tmp_path / "x.yaml", parse(TEXT).document) is None
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_bytes(b"a = 1\n")
    two.write_bytes(b"a = 1\r\n")
    assert code_digest(one) == code_digest(two)
    two.write_bytes(b"a = 2\n")
    assert code_digest(one) != code_digest(two)


def test_freezing_writes_the_digests_and_the_tool_list(tmp_path: Path) -> None:
    path = tmp_path / "caldav.yaml"
    path.write_text(TEXT.replace("operations:", "code: caldav:Caldav\noperations:"), encoding="utf-8")
    with pytest.raises(ProjectionError, match=r"caldav\.yaml:6 code: .*can't be read"):
        freeze(path, TOOLS)
    code = tmp_path / "caldav.py"
    code.write_text("class Caldav: ...\n", encoding="utf-8")
    frozen = freeze(path, TOOLS)
    assert frozen.document.upstream.tools == tools_digest(TOOLS)
    assert frozen.document.code_digest == code_digest(code)
    assert read(path).document == frozen.document
    assert tool_list(path) == tuple(TOOLS)
    assert "# A comment that stays." in path.read_text(encoding="utf-8")
    again = path.read_text(encoding="utf-8")
    assert freeze(path, TOOLS).text == again
    assert sorted(item.name for item in tmp_path.iterdir()) == ["caldav.py", "caldav.tools.json", "caldav.yaml"]


def test_what_is_still_to_be_decided_is_not_frozen(tmp_path: Path) -> None:
    path = tmp_path / "caldav.yaml"
    path.write_text(TEXT.replace("result: $", "result: $ # TODO"), encoding="utf-8")
    with pytest.raises(ProjectionError):
        freeze(path, TOOLS)
    path.write_text(TEXT + "# TODO\n", encoding="utf-8")
    with pytest.raises(ProjectionError, match=r"caldav\.yaml:9: still to be decided"):
        freeze(path, TOOLS)
    assert not (tmp_path / "caldav.tools.json").exists()
