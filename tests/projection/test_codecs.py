from __future__ import annotations

import json
import time
from typing import Any

import pytest

from hotplug.errors import Internal, ProjectionError
from hotplug.projection import patterns
from hotplug.projection.codecs import CODECS, RAW_TEXT, Codec

WHERE = "blade.yaml:30 operations.calendar.search.codec"

# Answers of real servers, from the corpus: caldav-mcp, caldav-blade-mcp, cal-scheduler-mcp, @playwright/mcp.
CALDAV_CALENDARS = (
    '[{"displayName":"Home","url":"/alice/home/","ctag":"\\"031d\\"","supportedComponents":["VEVENT"]},'
    '{"displayName":"Work","url":"/alice/office/","ctag":"\\"e5c2\\"","supportedComponents":["VEVENT"]}]'
)
CALDAV_REFUSED = "MCP error -32602: Input validation error: Invalid arguments for tool list-events: Invalid date string"
BLADE_EVENTS = """09:00-10:00 | Weekly | uid=5f2f5985-9d4e-439e-88ed-85bdc34c76bb
09:00-09:15 | Standup | location=Room 1 | uid=b6ef4c4a-f60e-4394-b205-154a57446161
All day | All day | uid=c08e144f-8030-4ed4-8bf9-efd0c043a86e
09:00-10:00 | A | B = "C"
D | uid=9b22a682-33cf-420a-b3d0-d3aff0c2a976

_meta: {"matched_total":8,"returned":8,"filtered_by":["calendar=Work"],"latency_ms":16,"next_cursor":null}"""
BLADE_NONE = '(no events)\n\n_meta: {"matched_total":0,"returned":0,"filtered_by":[],"latency_ms":57}'
BLADE_CREATED = """Created: Title: Standup
Time: 09:00-09:15
Start: 2026-10-23T09:00:00+00:00
End: 2026-10-23T09:15:00+00:00
Location: Room 1
UID: b6ef4c4a-f60e-4394-b205-154a57446161"""
BLADE_UNKNOWN = "Error: Event 'no-such-uid' not found in calendar 'Work'"
EVENT = (
    r"(?s:^(?P<time>All day|\d\d:\d\d-\d\d:\d\d) \| (?P<title>.*?)"
    r"(?: \| location=(?P<location>[^|\n]*))? \| uid=(?P<uid>\S+)$)"
)
META = r"_meta: \{.*\}"
SNAPSHOT = """### Page
- Page URL: http://127.0.0.1:8123/
- Page Title: Corner Shop
- Console: 1 errors, 0 warnings
### Snapshot
```yaml
- generic [active] [ref=e1]:
  - heading "Corner Shop" [level=1] [ref=e2]
  - navigation [ref=e3]:
    - link "About us" [ref=e4] [cursor=pointer]:
      - /url: /about
  - generic [ref=e14]:
    - text: Quantity
    - spinbutton "Quantity" [ref=e15]: "1"
  - combobox "Size" [ref=e18]:
    - option "Small"
    - option "Medium" [selected]
  - status [ref=e33]: "Cart: empty"
  - button "Sold out" [disabled] [ref=e44]
  - iframe [ref=e47]:
    - button "Inner button" [ref=f1e2]
```"""
MODAL = """### Error
Error: Tool "browser_snapshot" does not handle the modal state.
### Modal state
- ["confirm" dialog with message "Empty the cart?"]: can be handled by browser_handle_dialog"""


def refused(codec: Codec, text: str) -> Internal:
    with pytest.raises(Internal) as caught:
        codec.parse(text)
    assert caught.value.details["text"] == text[:RAW_TEXT]
    assert caught.value.details["where"] == WHERE
    return caught.value


def test_json_gives_the_value_and_keeps_every_digit() -> None:
    assert Codec("json", WHERE).parse(CALDAV_CALENDARS)[1]["url"] == "/alice/office/"
    assert Codec("json", WHERE).parse('{"id": 810234567890123457, "n": 3}') == {"id": "810234567890123457", "n": 3}
    assert Codec("json", WHERE).parse("9" * 5000) == "9" * 5000
    assert Codec("json", WHERE).parse("[]") == []


@pytest.mark.parametrize(
    "text", [CALDAV_REFUSED, "", '{"a": NaN}', "82c7530f-549e-4cb0-88c4-b7fedaad4c37", "[" * 10**5]
)
def test_a_text_that_is_not_json_is_internal_with_the_text(text: str) -> None:
    refused(Codec("json", WHERE), text)


def test_regex_one_gives_the_named_groups() -> None:
    codec = Codec("regex", WHERE, pattern=r"^UID: (?P<uid>\S+)$")
    assert codec.parse(BLADE_CREATED) == {"uid": "b6ef4c4a-f60e-4394-b205-154a57446161"}
    refused(codec, BLADE_UNKNOWN)


def test_regex_all_reads_records_that_span_lines_and_contain_the_separator() -> None:
    found = Codec("regex", WHERE, pattern=EVENT, each="all", skip=META).parse(BLADE_EVENTS)
    assert [item["title"] for item in found] == ["Weekly", "Standup", "All day", 'A | B = "C"\nD']
    assert [item["location"] for item in found] == [None, "Room 1", None, None]


def test_regex_all_refuses_a_line_that_nothing_accounts_for() -> None:
    codec = Codec("regex", WHERE, pattern=EVENT, each="all", skip=META, empty=r"\(no events\)\s+" + META)
    assert "Error: Event" in refused(codec, BLADE_UNKNOWN).details["cause"]
    refused(codec, BLADE_EVENTS + "\nand 3 more")
    refused(codec, "")


def test_an_empty_list_needs_a_text_that_says_so() -> None:
    codec = Codec("regex", WHERE, pattern=EVENT, each="all", skip=META, empty=r"\(no events\)\s+" + META)
    assert codec.parse(BLADE_NONE) == []
    refused(Codec("regex", WHERE, pattern=EVENT, each="all", skip=META), BLADE_NONE)
    assert Codec("lines", WHERE, empty="").parse(" \n") == []
    refused(Codec("lines", WHERE), "\n")


def test_lines_are_stripped_and_skipped_where_asked() -> None:
    text = 'Home | uid=home\nWork | uid=office\n\n_meta: {"matched_total":2}'
    assert Codec("lines", WHERE, skip=META).parse(text) == ["Home | uid=home", "Work | uid=office"]


def test_a_regex_reads_only_as_much_as_it_can_chew() -> None:
    big = "x" * 300_000
    error = Codec("regex", WHERE, pattern="(?P<a>y)")
    with pytest.raises(Internal, match="characters") as caught:
        error.parse(big)
    assert len(caught.value.details["text"]) == RAW_TEXT
    assert caught.value.details["cut"] is True


def test_the_raw_text_is_cut_at_a_whole_character() -> None:
    with pytest.raises(Internal) as caught:
        Codec("json", WHERE).parse("x" + "😀" * 3000)
    text: str = caught.value.details["text"]
    assert len(text.encode()) <= RAW_TEXT
    assert text.endswith("😀")


def test_a_markdown_table_gives_a_row_an_object() -> None:
    text = "2 found:\n\n| Name | UID |\n|:-----|----:|\n| Tea \\| cake | 1 |\n| | 2 |\n\nDone."
    assert Codec("markdown-table", WHERE).parse(text) == [{"Name": "Tea | cake", "UID": "1"}, {"Name": "", "UID": "2"}]
    assert Codec("markdown-table", WHERE).parse("a | b\n--|--\n") == []


@pytest.mark.parametrize("text", ["", "No events.", "| a | b |\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 |"])
def test_a_text_without_a_whole_table_is_internal(text: str) -> None:
    refused(Codec("markdown-table", WHERE), text)


ICAL = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//x//y//EN
BEGIN:VEVENT
UID:22cd9809-3302-48ca-89bd-b2d798da42e7
DTSTART;TZID=Europe/Berlin:20261022T090000
DTEND:20261022T080000Z
RRULE:FREQ=WEEKLY;COUNT=3
EXDATE;TZID=Europe/Berlin:20261029T090000,20261105T090000
SUMMARY:Tea\\, cake\\nand more
ATTENDEE;CN=Bob:mailto:bob@example.org
ATTENDEE:mailto:cleo@example.org
DURATION:PT1H
BEGIN:VALARM
TRIGGER:-PT15M
ACTION:DISPLAY
END:VALARM
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")


def test_ical_gives_components_with_every_property() -> None:
    (calendar,) = Codec("ical", WHERE).parse(ICAL)
    assert calendar["name"] == "VCALENDAR"
    (event,) = calendar["components"]
    properties = event["properties"]
    assert properties["DTSTART"] == [{"value": "2026-10-22T09:00:00", "params": {"TZID": "Europe/Berlin"}}]
    assert properties["DTEND"][0]["value"] == "2026-10-22T08:00:00Z"
    assert properties["SUMMARY"][0]["value"] == "Tea, cake\nand more"
    assert properties["RRULE"][0]["value"] == "FREQ=WEEKLY;COUNT=3"
    assert properties["EXDATE"][0]["value"] == ["2026-10-29T09:00:00", "2026-11-05T09:00:00"]
    assert properties["DURATION"][0]["value"] == "PT1H"
    assert [item["value"] for item in properties["ATTENDEE"]] == ["mailto:bob@example.org", "mailto:cleo@example.org"]
    assert event["components"][0]["properties"]["TRIGGER"][0]["value"] == "-PT15M"
    json.dumps(calendar)


def test_ical_reads_a_bare_event_as_the_corpus_stores_it() -> None:
    text = (
        "BEGIN:VEVENT\nUID:fc22\nDTSTART;VALUE=DATE:20261027\nDTEND;VALUE=DATE:20261029\nSUMMARY:All day\nEND:VEVENT\n"
    )
    (event,) = Codec("ical", WHERE).parse(text)
    assert event["properties"]["DTSTART"][0] == {"value": "2026-10-27", "params": {"VALUE": "DATE"}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        ICAL.replace("20261022T080000Z", "tomorrow"),
        ICAL.replace("SUMMARY:", "SUMMARY"),
        ICAL.replace("END:VEVENT\r\n", ""),
        ICAL + "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:2\r\n",
    ],
)
def test_broken_ical_is_internal_and_nothing_of_it_is_dropped(text: str) -> None:
    refused(Codec("ical", WHERE), text)


def test_a_snapshot_gives_a_tree_of_nodes() -> None:
    snapshot = Codec("aria-snapshot", WHERE).parse(SNAPSHOT)
    assert snapshot["url"] == "http://127.0.0.1:8123/"
    assert snapshot["title"] == "Corner Shop"
    (root,) = snapshot["nodes"]
    assert (root["role"], root["ref"], root["states"]) == ("generic", "e1", ["active"])
    heading, navigation, quantity, size, status, sold, frame = root["children"]
    assert heading["name"] == "Corner Shop"
    assert heading["attributes"] == {"level": "1"}
    assert navigation["children"][0]["properties"] == {"url": "/about"}
    assert quantity["children"][0]["text"] == "Quantity"
    assert quantity["children"][1]["text"] == "1"
    assert size["children"][1]["states"] == ["selected"]
    assert status["text"] == "Cart: empty"
    assert sold["states"] == ["disabled"]
    assert frame["children"][0]["ref"] == "f1e2"


def test_an_empty_page_is_an_empty_tree_and_a_quoted_key_is_read() -> None:
    empty = "### Page\n- Page URL: about:blank\n### Snapshot\n```yaml\n\n```"
    assert Codec("aria-snapshot", WHERE).parse(empty)["nodes"] == []
    quoted: dict[str, Any] = Codec("aria-snapshot", WHERE).parse('- \'link "a: \\"b\\" # c" [ref=e1]\': x')
    assert quoted["nodes"][0]["name"] == 'a: "b" # c'


@pytest.mark.parametrize("text", [MODAL, "", "[Snapshot](page.yml)", "### Snapshot\n- [Snapshot](page-1.yml)"])
def test_a_text_without_a_snapshot_is_internal(text: str) -> None:
    refused(Codec("aria-snapshot", WHERE), text)


def test_a_tree_that_repeats_itself_without_end_is_refused() -> None:
    bomb = "\n".join(
        ["- a: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        + [f"- a: &a{i} [{', '.join([f'{{b: *a{i - 1}}}'] * 10)}]" for i in range(1, 9)]
    )
    refused(Codec("aria-snapshot", WHERE), bomb)


def test_a_codec_that_does_not_fit_its_options_is_refused_at_load() -> None:
    for name, options in [
        ("jsn", {}),
        ("json", {"pattern": "x"}),
        ("regex", {}),
        ("regex", {"pattern": "(x"}),
        ("regex", {"pattern": "x+"}),
        ("ical", {"skip": "x"}),
        ("lines", {"empty": "("}),
    ]:
        with pytest.raises(ProjectionError, match="blade"):
            Codec(name, WHERE, **options)  # type: ignore[arg-type]
    assert "regex" in CODECS


def test_a_pattern_that_takes_for_ever_is_ended_and_said() -> None:
    started = time.monotonic()
    with pytest.raises(Internal, match="took longer"):
        patterns.found(r"(a|aa)+$", "a" * 60 + "b")
    assert time.monotonic() - started < 10
