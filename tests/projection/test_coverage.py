from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hotplug.projection.coverage import Finding, Row, check, matrix
from hotplug.projection.document import parse
from hotplug.projection.fingerprint import tools_digest

PROFILE: dict[str, Any] = json.loads((Path(__file__).parent / "calendar_profile.json").read_text(encoding="utf-8"))


def tool(name: str, required: list[str], optional: list[str] | None = None, **extra: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {key: {"type": "string"} for key in [*required, *(optional or [])]}
    properties |= extra
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "inputSchema": schema}


TOOLS = [
    tool("list-calendars", []),
    tool("list-events", ["start", "end", "calendarUrl"]),
    tool("create-event", ["summary", "start", "end", "calendarUrl"], ["description", "location"]),
    tool("update-event", ["uid", "calendarUrl"], ["summary", "start", "end"]),
    tool("delete-event", ["uid", "calendarUrl"], confirm={"type": "boolean", "default": False}),
    tool("raw-sync", []),
]
CHANGES = ["duration", "timeZone", "showWithoutTime", "description", "location", "status", "freeBusyStatus"]
TEXT = f"""\
projection: dev.hotplug.caldav-mcp
version: 1.0.0
upstream: {{package: "npm:caldav-mcp", versions: ">=0.10 <0.11", tools: "{tools_digest(TOOLS)}"}}
profiles: {{calendar: 1.0.0}}
operations:
  calendar.calendars: {{tool: list-calendars, codec: json, result: '{{"calendars": [$]}}'}}
  calendar.search:
    tool: list-events
    args: {{start: from, end: to, calendarUrl: calendar}}
    codec: json
    refuse: [{{when: $exists(cursor), message: No pages here, lost: [cursor]}}]
    result: {{events: '[$[$contains(summary, $input.query)]]'}}
    unread: {{timeZone: The range is in instants, limit: It gives all}}
  calendar.get:
    tool: list-events
    args: '{{"calendarUrl": event.calendarUrl, "start": "1970-01-01", "end": "2100-01-01"}}'
    result: $[uid = $input.event.uid]
  calendar.create:
    tool: create-event
    args: {{calendarUrl: calendar, summary: title, start: start, end: 'end ? end : start', description: description}}
    result: {{event: uid}}
    refuse: [{{when: $exists(timeZone), message: "UTC", lost: [{", ".join(CHANGES)}]}}]
  calendar.update:
    tool: update-event
    args: {{uid: event.uid, calendarUrl: event.calendarUrl, summary: changes.title, start: changes.start,
           end: changes.end}}
    result: {{event: $input.event}}
    refuse: [{{when: $exists(clear), message: x, lost: [clear]}}]
    unread: {{{", ".join(f"changes.{name}: later" for name in CHANGES)}}}
  calendar.delete:
    tool: delete-event
    args: {{uid: event.uid, calendarUrl: event.calendarUrl, confirm: true}}
    result: {{}}
coverage:
  list-calendars: mapped
  list-events: {{approximated: Ends are inclusive}}
  create-event: mapped
  update-event: mapped
  delete-event: mapped
  raw-sync: raw_only
"""


def found(
    *edits: str, tools: list[dict[str, Any]] | None = None, profile: dict[str, Any] | None = None
) -> list[Finding]:
    text = TEXT
    for edit in edits:
        old, new = edit.split("=>", 1)
        assert old in text
        text = text.replace(old, new, 1)
    return list(check(parse(text, "caldav.yaml"), tools or TOOLS, profile or PROFILE))


def codes(*edits: str, **options: Any) -> set[tuple[str, str]]:
    return {(finding.level, finding.code) for finding in found(*edits, **options)}


def test_a_whole_projection_has_no_error() -> None:
    assert [finding for finding in found() if finding.level == "error"] == []
    assert codes() == {("warning", "argument_conditional")}


@pytest.mark.parametrize(
    ("edit", "level", "code", "message"),
    [
        ("  raw-sync: raw_only\n=>", "error", "coverage_missing", "'raw-sync'"),
        (
            "  raw-sync: raw_only=>  raw-sync: raw_only\n  raw-snc: unmapped",
            "error",
            "coverage_unknown",
            "did you mean 'raw-sync'?",
        ),
        ("{approximated: Ends are inclusive}=>approximated", "error", "note_missing", "what is not exact"),
        ("create-event: mapped=>create-event: unmapped", "error", "coverage_contradicts", "calendar.create calls it"),
        ("raw-sync: raw_only=>raw-sync: mapped", "error", "coverage_contradicts", "no operation calls it"),
        ("tool: create-event=>tool: create-evnt", "error", "tool_unknown", "did you mean 'create-event'?"),
        (
            "summary: title, start: start=>summary: '\"x\"', start: start",
            "error",
            "field_unread",
            "no expression reads `title`",
        ),
        ("summary: changes.title, =>", "error", "field_unread", "no expression reads `changes.title`"),
        (", limit: It gives all=>", "error", "field_unread", "no expression reads `limit`"),
        ("limit: It gives all=>limit: a, lmit: b", "warning", "unread_unknown", "did you mean 'limit'?"),
        ("limit: It gives all=>limit: a, query: b", "warning", "unread_read", "read after all"),
        (
            "summary: title, start: start=>sumary: title, start: start",
            "error",
            "argument_unknown",
            "did you mean 'summary'?",
        ),
        (
            "summary: title, start: start=>sumary: title, start: start",
            "error",
            "argument_unwritten",
            "requires `summary`",
        ),
        ('"start": "1970-01-01", =>', "error", "argument_unwritten", "requires `start`"),
        (", confirm: true=>", "warning", "gate", "`confirm` may be a gate"),
        ("end: 'end ? end : start'=>end: end", "warning", "argument_conditional", "requires `end`"),
        ("  calendar.get:=>  calendar.fetch:", "error", "member_missing", "calendar.get of the core is missing"),
        ("  calendar.get:=>  calendar.gett:", "error", "member_unknown", "did you mean 'calendar.get'?"),
        ("{calendar: 1.0.0}=>{calendar: 1.1.0}", "error", "profile_version", "is for calendar 1.1.0, this is 1.0.0"),
        ("{calendar: 1.0.0}=>{chat: 1.0.0}", "error", "profile_missing", "calendar is not named"),
        ("profiles:=>facets: {recurence: 1.0.0}\nprofiles:", "error", "facet_unknown", "did you mean 'recurrence'?"),
        ("profiles:=>facets: {recurrence: 1.0.0}\nprofiles:", "error", "field_unread", "`recurrenceRules`"),
        ('raw-sync: raw_only=>raw-sync: {raw_only: "TODO why"}', "error", "todo", "TODO why"),
        ("raw-sync: raw_only=>raw-sync: raw_only # TODO", "error", "todo", "# TODO"),
        ("result: {event: uid}=>result: {event: $uid}", "error", "expression", "nothing binds $uid"),
        ("result: {event: uid}=>result: {evnt: uid}", "warning", "output_unwritten", "`event`"),
        ("profiles:=>code: a:B\nprofiles:", "warning", "unfrozen", "code is not frozen"),
    ],
)
def test_what_is_left_out_is_found(edit: str, level: str, code: str, message: str) -> None:
    findings = found(edit)
    assert any((finding.level, finding.code) == (level, code) and message in finding.message for finding in findings), (
        "\n".join(map(str, findings))
    )


def test_a_finding_says_where() -> None:
    (finding,) = [item for item in found("raw-sync: raw_only=>raw-sync: mapped") if item.level == "error"]
    assert str(finding).startswith("caldav.yaml:40 coverage.raw-sync: error: is mapped, but no operation calls it")


def test_an_unfrozen_or_changed_tool_list_is_told() -> None:
    assert ("warning", "unfrozen") in codes(f', tools: "{tools_digest(TOOLS)}"=>')
    assert ("error", "tools_digest") in codes(tools=[*TOOLS[:-1], tool("raw-sync", ["x"])])


def test_a_required_argument_inside_an_object_is_asked_for() -> None:
    tools = copy.deepcopy(TOOLS)
    nested = tool("create-event", ["title", "calendar"], ["description"])["inputSchema"]
    tools[2]["inputSchema"] = {
        "type": "object",
        "properties": {"request": {"$ref": "#/$defs/Request"}},
        "required": ["request"],
        "$defs": {"Request": nested},
    }
    old = next(line.strip() for line in TEXT.splitlines() if "summary: title" in line)
    rest = "description: '$join([start, end, description])'"

    def unwritten(args: str) -> list[str]:
        return [
            item.message for item in found(f"{old}=>args: {args}", tools=tools) if item.code == "argument_unwritten"
        ]

    assert unwritten(f"{{request: {{title: title, calendar: calendar, {rest}}}}}") == []
    assert unwritten(f"{{request: {{title: title, {rest}}}}}") == [
        "the tool requires `request.calendar`, nothing writes it"
    ]
    assert unwritten(f"{{request: '{{\"title\": title}}', {rest}}}") == []
    assert unwritten("{}") == ["the tool requires `request`, nothing writes it"]


def test_a_constant_outside_the_choices_of_a_dispatch_tool_is_found() -> None:
    tools = copy.deepcopy(TOOLS)
    tools[4]["inputSchema"]["properties"]["action"] = {"type": "string", "enum": ["delete", "move"]}
    edit = ", confirm: true=>, confirm: true, action: '\"remove\"'"
    (finding,) = [item for item in found(edit, tools=tools) if item.code == "argument_value"]
    assert "'remove' is none of" in finding.message
    assert ("error", "argument_value") not in codes(edit.replace("remove", "delete"), tools=tools)


def test_a_facet_has_all_of_its_members() -> None:
    profile = copy.deepcopy(PROFILE)
    profile["operations"]["calendar.freebusy"]["facet"] = "reminders"
    assert ("error", "member_missing") in codes("profiles:=>facets: {reminders: 1.0.0}\nprofiles:", profile=profile)
    assert ("error", "member_missing") not in codes(profile=profile)
    busy = "  calendar.freebusy: {tool: raw-sync, args: {}, result: {busy: $input.from & $input.to}}\ncoverage:"
    assert ("error", "facet_undeclared") in codes(f"coverage:=>{busy}", profile=profile)


def test_what_code_does_is_noted_and_not_judged() -> None:
    text = TEXT.replace("profiles:", f"code: a:B\ncodeDigest: sha256:{'0' * 64}\nprofiles:")
    start, end = text.index("  calendar.create:"), text.index("  calendar.update:")
    text = f"{text[:start]}  calendar.create: {{code: true}}\n{text[end:]}"
    findings = check(parse(text), TOOLS, PROFILE)
    assert [(item.level, item.code) for item in findings if item.level != "warning"] == [("note", "by_code")]


def test_the_matrix_has_a_row_for_every_tool() -> None:
    text = TEXT.replace("  raw-sync: raw_only\n", "")
    assert matrix(parse(text), TOOLS) == (
        Row("create-event", "mapped", None, ("calendar.create",)),
        Row("delete-event", "mapped", None, ("calendar.delete",)),
        Row("list-calendars", "mapped", None, ("calendar.calendars",)),
        Row("list-events", "approximated", "Ends are inclusive", ("calendar.search", "calendar.get")),
        Row("raw-sync", None, None, ()),
        Row("update-event", "mapped", None, ("calendar.update",)),
    )
