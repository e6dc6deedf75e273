from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hotplug.errors import ProjectionError
from hotplug.projection.document import Failure, Source, digest, json_schema, parse
from hotplug.projection.located import put

SCHEMA = Path(__file__).parents[2] / "schemas" / "projection.schema.json"

TEXT = """\
projection: dev.hotplug.caldav-mcp
version: 1.0.0
upstream: {package: "npm:caldav-mcp", versions: ">=0.10 <0.11"}
profiles: {calendar: 1.0.0}
senses: {state: {independence: actuation-derived, grade: presence}}
requires: {env: [CALDAV_BASE_URL]}
failure: {text: "^Error:"}
errors: [{match: "(?i)not found", code: not_found}]
operations:
  calendar.create:
    tool: create-event
    args: {calendarUrl: calendar, summary: title, start: start, end: end, wholeDay: true}
    codec: {name: regex, pattern: "^(?P<uid>\\\\S+)$"}
    refuse:
      - {when: $exists(timeZone), message: "Times are kept in UTC", lost: [timeZone]}
    result: '{"event": {"calendarUrl": $input.calendar, "uid": uid}}'
    unread: {duration: "The runtime gives an end"}
  calendar.get:
    steps:
      - {name: listed, tool: list-events, args: '{"calendarUrl": event.calendarUrl}', codec: json}
      - name: found
        tool: list-events
        when: $count($listed) > 0
        codec: json
        fail: [{when: $count($) = 0, message: No such event}]
    result: {event: $input.event, title: $found.summary}
coverage:
  create-event: mapped
  list-events: {approximated: "Ends are inclusive upstream."}
  raw-sync: raw_only
"""


def document(**edits: str) -> Source:
    text = TEXT
    for old, new in (edit.split("=>", 1) for edit in edits.values()):
        assert old in text
        text = text.replace(old, new)
    return parse(text, "caldav.yaml")


def refused(edit: str) -> str:
    with pytest.raises(ProjectionError) as caught:
        document(edit=edit)
    return str(caught.value)


def test_a_document_is_read_with_the_line_of_every_part() -> None:
    source = document()
    assert source.document.projection == "dev.hotplug.caldav-mcp"
    assert source.document.coverage["list-events"].state == "approximated"
    assert source.document.coverage["list-events"].note == "Ends are inclusive upstream."
    assert source.where("operations", "calendar.create", "args", "summary") == (
        "caldav.yaml:12 operations.calendar.create.args.summary"
    )
    assert source.where("operations", "calendar.get", "steps", 1, "when").startswith("caldav.yaml:23 ")


def test_sugar_and_steps_become_the_same() -> None:
    operations = document().document.operations
    ((path, step),) = operations["calendar.create"].calls()
    assert (path, step.name, step.tool) == ((), "answer", "create-event")
    assert step.args == {
        "calendarUrl": "calendar",
        "summary": "title",
        "start": "start",
        "end": "end",
        "wholeDay": True,
    }
    assert [(path, step.name) for path, step in operations["calendar.get"].calls()] == [
        (("steps", 0), "listed"),
        (("steps", 1), "found"),
    ]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("    args: {cal=>    arsg: {cal", "calendar.create.arsg: there is no such key, did you mean 'args'?"),
        ("codec: json}=>codec: jsno}", "20 operations.calendar.get.steps.0.codec: there is no codec 'jsno', did you"),
        ("code: not_found=>code: notfound", "8 errors.0.code: there is no code 'notfound', did you mean 'not_found'?"),
        ("version: 1.0.0=>version: 1.0", "caldav.yaml:2 version: Input should be a valid string, not 1.0"),
        ("caldav-mcp\nv=>caldav\nv", None),
        ("projection: dev.hotplug.caldav-mcp=>projection: CalDAV", "yaml:1 projection: 'CalDAV' doesn't have the form"),
        ("profiles: {calendar: 1.0.0}\n=>", "caldav.yaml:1: `profiles` is missing"),
        ("raw-sync: raw_only=>raw-sync: raw", "caldav.yaml:30 coverage.raw-sync"),
        ("    tool: create-event\n=>", "caldav.yaml:10 operations.calendar.create: an operation has one of"),
        ("name: found=>name: listed", "two steps have one name"),
        ("name: found=>name: input", "$input is bound already"),
        ("lost: [timeZone]=>code: conflict, lost: [timeZone]", "`lost` goes with code unsupported"),
        ("grade: presence=>grade: presence, grade: x", "caldav.yaml:5 senses.state.grade: this key is there twice"),
        ('text: "^Error:"=>text: "(Error"', "caldav.yaml:7 failure.text: not a regular expression"),
        ("    unread: {duration: \"The runtime gives an end\"}=>    code: true", "one of `tool`, `steps`"),
        ("    tool: create-event=>    tool: create-event\n    tools: x", "did you mean 'tool'?"),
        ("senses: {state=>senses: &a {state", "caldav.yaml:5: anchors are not used here"),
        ("senses: {state=>senses: !!python/none {state", "tags are not used here"),
        ("result: {event: $input.event, =>result: {event: , ", "there is no value"),
        ("wholeDay: true}=>wholeDay: [1]}", "caldav.yaml:12 operations.calendar.create.args.wholeDay"),
        ("coverage:=>coverage: [", "not YAML"),
        (">=0.10 <0.11=>^0.10", "caldav.yaml:3 upstream.versions: '^0.10' doesn't have the form"),
    ],
)  # fmt: skip
def test_an_error_names_file_line_key_and_value(edit: str, message: str | None) -> None:
    if message is None:
        assert document(edit=edit).document.projection == "dev.hotplug.caldav"
    else:
        assert message in refused(edit)


def test_every_error_is_told_at_once() -> None:
    with pytest.raises(ProjectionError) as caught:
        document(a="version: 1.0.0=>version: x", b="code: not_found=>code: nope")
    assert len(str(caught.value).splitlines()) == 2


def test_yes_and_dates_are_texts() -> None:
    source = document(edit="raw-sync: raw_only=>yes: {raw_only: 2026-10-27}")
    assert source.document.coverage["yes"].note == "2026-10-27"


def test_the_published_schema_is_the_one_of_the_models() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == json_schema()


def test_the_published_schema_accepts_and_refuses_as_the_models_do() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(json_schema())
    tree: dict[str, Any] = yaml.safe_load(TEXT)
    assert list(validator.iter_errors(tree)) == []
    for edit in [
        {"coverage": {"x": "maybe"}},
        {"version": 1.0},
        {"extra": 1},
        {"errors": [{"match": "x", "code": "no"}]},
    ]:
        assert list(validator.iter_errors({**tree, **edit}))


def test_the_digest_is_over_the_parts_and_not_the_layout() -> None:
    base = digest(document().document)
    assert base.startswith("sha256:")
    assert digest(parse(f"# A comment\n\n{TEXT}").document) == base
    assert digest(document(edit='raw-sync: raw_only=>"raw-sync": "raw_only"').document) == base
    assert digest(document(edit="summary: title=>summary: title & ''").document) != base
    code = "code: blade:Blade\ncodeDigest: sha256:" + "0" * 64 + "\noperations:"
    coded = digest(document(edit=f"operations:=>{code}").document)
    assert digest(document(edit=f"operations:=>{code.replace('0' * 64, '1' * 64)}").document) != coded


def test_code_digest_and_code_operations_need_code() -> None:
    assert "`codeDigest` without `code`" in refused("operations:=>codeDigest: sha256:" + "0" * 64 + "\noperations:")
    by_code = TEXT.replace("coverage:", "  calendar.search: {code: true}\ncoverage:")
    with pytest.raises(ProjectionError, match=r"calendar\.search: `code: true` needs"):
        parse(by_code)
    assert parse(by_code.replace("operations:", "code: blade:Blade\noperations:")).document.code == "blade:Blade"


@pytest.mark.parametrize(
    ("versions", "version", "fits"),
    [
        (">=0.10 <0.11", "0.10.0", True),
        (">=0.10 <0.11", "0.10.7", True),
        (">=0.10 <0.11", "0.11.0", False),
        (">=0.10 <0.11", "0.9.9", False),
        (">=0.10 <0.11", "0.10.0-beta.1", False),
        ("=2026.10.24", "2026.10.24", True),
        (">0.2.8 <=0.2.9", "0.2.9.post1", False),
        (">=1", "1.0.0+build", True),
    ],
)
def test_a_version_fits_the_bounds(versions: str, version: str, fits: bool) -> None:
    upstream = document(edit=f">=0.10 <0.11=>{versions}").document.upstream
    assert upstream.fits("npm:caldav-mcp", version) is fits
    assert not upstream.fits("pypi:caldav-mcp", version)


def test_failure_goes_by_the_declared_rule_only() -> None:
    flag = Failure()
    assert flag.failed(True, "fine")
    assert not flag.failed(False, "Error: Event 'x' not found")
    text = Failure(text="^Error:")
    assert text.failed(False, "Error: Event 'x' not found")
    assert not text.failed(False, "Title: x\nError: part of a title")
    field = Failure(field="result.error")
    assert field.failed(False, "", {"result": {"error": "unknown timezone"}})
    for data in ({"result": {"error": None}}, {"result": {}}, {"result": []}, None, []):
        assert not field.failed(False, "", data)
    assert not Failure(flag=False).failed(True, "fine")


def test_a_digest_is_written_without_touching_the_rest() -> None:
    value = "sha256:" + "a" * 64
    text = f"# kept\n{TEXT}"
    once = put(text, ["upstream", "tools"], value)
    assert once.replace(f'tools: "{value}", ', "") == text
    assert parse(once).document.upstream.tools == value
    other = "sha256:" + "b" * 64
    assert put(once, ["upstream", "tools"], other) == once.replace(value, other)
    block = put("upstream:\n  package: x  # é😀\n  versions: y\nz: 1\n", ["upstream", "tools"], "t")
    assert block == 'upstream:\n  tools: "t"\n  package: x  # é😀\n  versions: y\nz: 1\n'
    assert put("a: b  # é😀\nc: {}\n", ["c", "d"], "e") == 'a: b  # é😀\nc: {d: "e"}\n'
    for path in (["missing", "x"], ["upstream"], ["version", "x"]):
        with pytest.raises(ProjectionError):
            put(text, path, "v")


def test_the_worst_documents_are_refused_quickly() -> None:
    for text in ("", "[" * 5000, "a: " * 3, "- 1", "x" * 2_000_000, "{a: b}: c", "a: 1\n---\nb: 2"):
        with pytest.raises(ProjectionError):
            parse(text)
