from __future__ import annotations

import pytest

from hotplug.projection.schema import resolve, types_of
from hotplug.projection.words import concept_of, is_filler, is_gate, kind_of, singular, verb_of, words


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("create_event", ("create", "event")),
        ("listCalendarEvents", ("list", "calendar", "events")),
        ("get-event-by-UID", ("get", "event", "by", "uid")),
        ("calendarURLs", ("calendar", "urls")),
        ("HTMLParser2", ("html", "parser", "2")),
        ("", ()),
    ],
)
def test_names_of_any_style_are_split_into_words(name: str, parts: tuple[str, ...]) -> None:
    assert words(name) == parts


def test_words_of_one_meaning_are_one_group() -> None:
    assert {verb_of(word) for word in ("create", "Creates".lower(), "added", "schedule")} == {"create"}
    assert verb_of("event") is None
    assert {kind_of(word) for word in ("event", "events", "vevent", "appointments")} == {"event"}
    assert kind_of("todos") == "todo"
    assert [singular(word) for word in ("events", "categories", "boxes", "status", "bus")] == [
        "event",
        "category",
        "box",
        "status",
        "bus",
    ]
    assert is_filler("details")
    assert not is_filler("today")


def test_a_field_is_known_by_the_spellings_of_the_corpus() -> None:
    assert concept_of("title", ["title"]) == 1
    assert concept_of("timeZone", ["time_zone"]) == 1
    for field, spelling in [
        ("title", "summary"),
        ("start", "dtstart"),
        ("from", "timeMin"),
        ("to", "date_to"),
        ("event", "event_uid"),
        ("event", "href"),
        ("calendar", "calendarUrl"),
        ("showWithoutTime", "whole_day"),
        ("revision", "If-Match"),
    ]:
        assert 0.7 < concept_of(field, [spelling]) < 1, (field, spelling)
    assert concept_of("title", ["start"]) == 0
    assert concept_of("unheard", ["of"]) == 0


def test_names_of_gates() -> None:
    assert all(map(is_gate, ("confirm", "confirmed", "force", "acknowledge_risk", "allow_write")))
    assert not any(map(is_gate, ("conference", "enforce", "title", "allowance")))


def test_references_and_optional_types_are_followed() -> None:
    root = {"$defs": {"A/B": {"type": "string"}, "Loop": {"$ref": "#/$defs/Loop"}}}
    assert resolve({"anyOf": [{"$ref": "#/$defs/A~1B"}, {"type": "null"}]}, root) == {"type": "string"}
    assert resolve({"$ref": "#/$defs/Loop"}, root) == {}
    assert resolve({"$ref": "#/$defs/None"}, root) == {}
    assert resolve(True, root) == {}
    assert types_of({"anyOf": [{"type": "string"}, {"type": ["array", "null"]}]}, root) == {"string", "array"}
