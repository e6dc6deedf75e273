import copy
from collections.abc import Callable
from typing import Any

import pytest

from hotplug.errors import ProfileError
from hotplug.profile.diff import Diff, claimed_version_ok, diff

Document = dict[str, Any]

OLD: Document = {
    "schema": "hotplug.profile/1",
    "name": "notes",
    "version": "1.0.0",
    "description": "Notes.",
    "extends": {"ui": "^1"},
    "refs": {"notes.note": {"public": False}},
    "facets": {"tags": {"version": "1.0.0", "description": "Tags.", "without": "No tags."}},
    "operations": {
        "notes.write": {
            "description": "Write a note.",
            "effects": True,
            "timeoutMs": 1000,
            "input": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "title": "Text"},
                    "size": {"type": "integer", "minimum": 0, "maximum": 9},
                    "note": {"anyOf": [{"type": "string", "x-ref": "notes.note"}, {"type": "null"}]},
                },
                "required": ["text"],
            },
            "output": {
                "type": "object",
                "properties": {"kind": {"enum": ["a", "b"]}, "note": {"$ref": "#/$defs/Note"}},
                "required": ["kind"],
                "$defs": {"Note": {"type": "string", "x-ref": "notes.note"}},
            },
        },
        "notes.purge": {
            "required": False,
            "without": "Nothing is purged.",
            "input": {"type": "object"},
            "output": {"type": "object"},
        },
    },
    "reads": {
        "notes.count": {"sense": "net", "look": "turn", "input": {"type": "object"}, "output": {"type": "object"}}
    },
    "events": {
        "notes.written": {"sense": "state", "replay": "durable", "thread": "note", "payload": {"type": "object"}}
    },
    "senses": {"x-ink": {"independence": "independent", "grade": "presence"}},
    "determinism": {
        "reset": "cheap",
        "replayPrefix": "costly",
        "time": "wall",
        "observation": "exact",
        "actions": "irreversible",
    },
    "setup": {"type": "object", "properties": {"path": {"type": "string"}}},
}
PART = {"description": "Find.", "input": {"type": "object"}, "output": {"type": "object"}}


def write(document: Document) -> Document:
    return document["operations"]["notes.write"]


def fields(document: Document, key: str) -> Document:
    return write(document)[key]["properties"]


Edit = Callable[[Document], object]

EDITS: list[tuple[str, str, str, str, Edit]] = [
    ("a removed part", "major", "notes.write", "part_removed", lambda d: d["operations"].pop("notes.write")),
    ("a removed optional part", "major", "notes.purge", "part_removed", lambda d: d["operations"].pop("notes.purge")),
    ("a removed read", "major", "notes.count", "part_removed", lambda d: d.pop("reads")),
    (
        "a part that becomes a read",
        "major",
        "notes.purge",
        "part_kind",
        lambda d: d["reads"].update({"notes.purge": d["operations"].pop("notes.purge")}),
    ),
    (
        "an optional part that is required",
        "major",
        "notes.purge",
        "part_required",
        lambda d: d["operations"]["notes.purge"].pop("required"),
    ),
    (
        "a required part that is optional",
        "major",
        "notes.write",
        "part_optional",
        lambda d: write(d).update(required=False),
    ),
    (
        "a new optional part",
        "minor",
        "notes.find",
        "part_added",
        lambda d: d["operations"].update({"notes.find": {**PART, "required": False}}),
    ),
    (
        "a new part of a facet",
        "minor",
        "notes.find",
        "part_added",
        lambda d: d["reads"].update({"notes.find": {**PART, "facet": "tags"}}),
    ),
    (
        "a new required part",
        "major",
        "notes.find",
        "part_required",
        lambda d: d["operations"].update({"notes.find": PART}),
    ),
    (
        "a part that moves into a facet",
        "major",
        "notes.count",
        "facet",
        lambda d: d["reads"]["notes.count"].update(facet="tags"),
    ),
    (
        "an input range that is narrower",
        "major",
        "notes.write",
        "input_narrowed",
        lambda d: fields(d, "input")["size"].update(maximum=8),
    ),
    (
        "an input field that is required",
        "major",
        "notes.write",
        "input_narrowed",
        lambda d: write(d)["input"]["required"].append("size"),
    ),
    ("an input field that is gone", "major", "notes.write", "input_narrowed", lambda d: fields(d, "input").pop("size")),
    (
        "a new required input field",
        "major",
        "notes.write",
        "input_narrowed",
        lambda d: write(d)["input"].update(
            required=["text", "to"], properties={**fields(d, "input"), "to": {"type": "string"}}
        ),
    ),
    (
        "a pattern that can't be compared",
        "major",
        "notes.write",
        "unproven",
        lambda d: fields(d, "input")["text"].update(pattern=r"^(?s:.)*$"),
    ),
    (
        "a new optional input field",
        "minor",
        "notes.write",
        "input_widened",
        lambda d: fields(d, "input").update(to={"type": "string"}),
    ),
    (
        "an input range that is wider",
        "minor",
        "notes.write",
        "input_widened",
        lambda d: fields(d, "input")["size"].update(maximum=10),
    ),
    (
        "an output value that is new",
        "major",
        "notes.write",
        "output_widened",
        lambda d: fields(d, "output")["kind"]["enum"].append("c"),
    ),
    (
        "an output field that may be missing",
        "major",
        "notes.write",
        "output_widened",
        lambda d: write(d)["output"].update(required=[]),
    ),
    (
        "an output field of another type",
        "major",
        "notes.write",
        "output_widened",
        lambda d: write(d)["output"]["$defs"]["Note"].update(type="integer"),
    ),
    (
        "a new output field",
        "minor",
        "notes.write",
        "output_extended",
        lambda d: fields(d, "output").update(at={"type": "string"}),
    ),
    (
        "an output value that is gone",
        "minor",
        "notes.write",
        "output_narrowed",
        lambda d: fields(d, "output").update(kind={"const": "a"}),
    ),
    (
        "another kind of ref",
        "major",
        "notes.write",
        "mark",
        lambda d: fields(d, "input")["note"]["anyOf"][0].update({"x-ref": "notes.book"}),
    ),
    (
        "a field that is sensitive",
        "major",
        "notes.write",
        "mark",
        lambda d: fields(d, "input")["text"].update({"x-sensitive": True}),
    ),
    ("more effects", "major", "notes.purge", "effects", lambda d: d["operations"]["notes.purge"].update(effects=True)),
    ("fewer effects", "minor", "notes.write", "effects", lambda d: write(d).pop("effects")),
    ("once", "minor", "notes.write", "once", lambda d: write(d).update(once=True)),
    ("guarded", "major", "notes.write", "guarded", lambda d: write(d).update(guarded=True)),
    ("eager", "minor", "notes.write", "eager", lambda d: write(d).update(eager=True)),
    ("another time limit", "minor", "notes.write", "timeoutMs", lambda d: write(d).update(timeoutMs=5)),
    ("another look", "minor", "notes.count", "look", lambda d: d["reads"]["notes.count"].update(look="ask")),
    ("a weaker sense", "major", "notes.count", "sense", lambda d: d["reads"]["notes.count"].update(sense="log")),
    ("a sense worth less", "major", "$", "sense_weaker", lambda d: d["senses"]["x-ink"].update(grade="context")),
    ("a sense worth more", "minor", "$", "sense_stronger", lambda d: d["senses"]["x-ink"].update(grade="consequence")),
    (
        "a sense of the table worth less",
        "major",
        "$",
        "sense_weaker",
        lambda d: d["senses"].update(net={"independence": "independent", "grade": "presence"}),
    ),
    ("a sense that is gone", "major", "$", "sense_removed", lambda d: d.pop("senses")),
    (
        "a new sense",
        "minor",
        "$",
        "sense_added",
        lambda d: d["senses"].update({"x-wax": {"independence": "independent", "grade": "context"}}),
    ),
    (
        "events that don't last",
        "major",
        "notes.written",
        "replay",
        lambda d: d["events"]["notes.written"].update(replay="live"),
    ),
    (
        "another thread",
        "major",
        "notes.written",
        "thread",
        lambda d: d["events"]["notes.written"].update(thread="book"),
    ),
    (
        "arguments of an event",
        "minor",
        "notes.written",
        "arguments_added",
        lambda d: d["events"]["notes.written"].update(arguments={"type": "object"}),
    ),
    ("weaker determinism", "major", "$", "determinism_weaker", lambda d: d["determinism"].update(reset="costly")),
    (
        "stronger determinism",
        "minor",
        "$",
        "determinism_stronger",
        lambda d: d["determinism"].update(replayPrefix="free"),
    ),
    ("a parent less", "major", "$", "parent_removed", lambda d: d.pop("extends")),
    ("a parent more", "major", "$", "parent_added", lambda d: d["extends"].update(screen="^1")),
    ("another range of a parent", "major", "$", "parent_range", lambda d: d["extends"].update(ui="^1.1")),
    ("a facet less", "major", "facet tags", "facet_removed", lambda d: d.pop("facets")),
    ("a facet more", "minor", "facet links", "facet_added", lambda d: d["facets"].update(links={"version": "1.0.0"})),
    (
        "a facet of another major",
        "major",
        "facet tags",
        "facet_version",
        lambda d: d["facets"]["tags"].update(version="2.0.0"),
    ),
    (
        "a facet of another minor",
        "minor",
        "facet tags",
        "facet_version",
        lambda d: d["facets"]["tags"].update(version="1.1.0"),
    ),
    ("a volatile ref", "major", "notes.note", "volatile", lambda d: d["refs"]["notes.note"].update(volatile=True)),
    ("a public ref", "minor", "notes.note", "public", lambda d: d["refs"]["notes.note"].update(public=True)),
    ("a setup that takes less", "major", "$", "setup_narrowed", lambda d: d["setup"].update(required=["path"])),
    ("a setup that is gone", "major", "$", "setup_removed", lambda d: d.pop("setup")),
    ("words of the profile", "patch", "$", "words", lambda d: d.update(description="Other words.")),
    (
        "words of a part",
        "patch",
        "notes.purge",
        "words",
        lambda d: d["operations"]["notes.purge"].update(without="Other words."),
    ),
    (
        "words in a schema",
        "patch",
        "notes.write",
        "words",
        lambda d: fields(d, "input")["text"].update(title="Other words"),
    ),
]


def edited(edit: Edit) -> Diff:
    new = copy.deepcopy(OLD)
    edit(new)
    return diff(OLD, new)


@pytest.mark.parametrize(("level", "part", "kind", "edit"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_one_change_has_its_level_part_and_kind(level: str, part: str, kind: str, edit: Edit) -> None:
    found = edited(edit)
    assert (level, part, kind) in {(change.level, change.part, change.kind) for change in found.changes}
    assert found.level == level
    assert all(change.message for change in found.changes)


def test_the_same_document_has_no_changes_whatever_version_it_claims() -> None:
    assert edited(lambda d: d.update(version="2.0.0")) == Diff("none", ())


def test_another_spelling_of_the_same_schema_is_no_change_of_what_fits() -> None:
    found = edited(lambda d: fields(d, "output").update(note={"type": "string", "x-ref": "notes.note"}))
    assert found.level in ("none", "patch")


def test_the_highest_level_wins_and_all_changes_are_told() -> None:
    def edit(document: Document) -> None:
        document.update(description="Other words.")
        fields(document, "input").update(to={"type": "string"})
        document["operations"].pop("notes.purge")

    found = edited(edit)
    assert found.level == "major"
    assert {change.level for change in found.changes} == {"major", "minor", "patch"}


def test_a_refused_input_is_told_with_an_example() -> None:
    (change,) = edited(lambda d: fields(d, "input")["size"].update(maximum=8)).changes
    assert "$.size" in change.message
    assert "9" in change.message


def test_two_profiles_dont_compare() -> None:
    with pytest.raises(ProfileError, match="'notes' and 'chat'"):
        diff(OLD, {**OLD, "name": "chat"})


@pytest.mark.parametrize(
    ("level", "old", "good", "bad"),
    [
        ("none", "1.0.0", "1.0.0 1.0.1 2.0.0", "0.9.0"),
        ("patch", "1.0.0", "1.0.1 1.1.0 2.0.0", "1.0.0 0.9.9 1.0.0-rc.1"),
        ("minor", "1.2.3", "1.3.0 2.0.0", "1.2.4 1.2.3 1.1.0"),
        ("major", "1.2.3", "2.0.0 2.0.0-rc.1", "1.3.0 1.2.4 1.2.3"),
        ("major", "0.1.0", "0.2.0 1.0.0", "0.1.1"),
        ("minor", "0.1.0", "0.1.1 0.2.0", "0.1.0"),
        ("major", "2.0.0-rc.1", "2.0.0-rc.2 2.0.0", "2.0.0-beta.1 2.0.1"),
    ],
)
def test_the_claimed_version_is_not_lower_than_the_changes_take(level: Any, old: str, good: str, bad: str) -> None:
    for version in good.split():
        assert claimed_version_ok(Diff(level, ()), old, version), version
    for version in bad.split():
        assert not claimed_version_ok(Diff(level, ()), old, version), version
