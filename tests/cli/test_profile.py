"""`hotplug profile`: a profile is started, shown, documented, compared by digest and published."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, validated

from hotplug.catalog.calendar import Calendar
from hotplug.cli.failure import Exit
from hotplug.cli.lookup import known_profiles
from hotplug.cli.profile_diff import least_version
from hotplug.profile.diff import Change, Diff, Level, claimed_version_ok


@pytest.fixture
def mail(run: Run) -> Path:
    """The file of a new profile `mail`, in the folder that commands run in."""
    assert run("profile", "new", "mail").code == 0
    return Path("mail.py")


def _change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_every_profile_of_the_catalog_is_listed(run: Run) -> None:
    ran = run("profile", "list")
    assert ran.code == 0
    for name in known_profiles():
        assert any(line.startswith(f"{name} ") for line in ran.out.splitlines())
    rows = run("profile", "list", "--json").document["profiles"]
    assert {row["name"] for row in rows} == set(known_profiles())


def test_the_list_as_json_lines_is_one_document_a_profile(run: Run) -> None:
    lines = run("profile", "list", "--format", "jsonl").out.splitlines()
    assert [validated(line)["name"] for line in lines] == list(known_profiles())


def test_a_profile_shown_as_json_is_its_very_document(run: Run) -> None:
    assert run("profile", "show", "calendar", "--json").document == Calendar.definition.document()


def test_a_profile_is_shown_with_core_facets_and_what_is_lost_without_them(run: Run) -> None:
    shown = run("profile", "show", "calendar").out
    for expected in (
        "calendar.create",
        Calendar.definition.digest,
        "Facet recurrence",
        "Without it:",
        "calendar.event",
    ):
        assert expected in shown


def test_a_part_is_shown_with_its_fields(run: Run) -> None:
    ran = run("profile", "show", "calendar", "create")
    assert ran.code == 0
    assert "calendar@1/calendar.create" in ran.out
    assert "ref calendar.calendar" in ran.out
    assert ran == run("profile", "show", "calendar", "calendar.create")
    document = run("profile", "show", "calendar", "create", "--json").document
    assert document["input"] == Calendar.definition.all_parts["calendar.create"].input.schema


def test_an_event_has_arguments_and_a_payload(run: Run) -> None:
    document = run("profile", "show", "calendar", "calendar.event.changed", "--json").document
    assert document["kind"] == "event"
    assert "payload" in document


def test_an_unknown_part_gets_the_closest_one(run: Run) -> None:
    error = run("profile", "show", "calendar", "calendar.creat", "--json").error
    assert "calendar.create" in error["hint"]


def test_an_unknown_profile_gets_the_closest_one(run: Run) -> None:
    ran = run("profile", "show", "calender")
    assert ran.code == Exit.USAGE
    assert "Did you mean 'calendar'?" in ran.err


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("nowhere/x.json", "there is no file nowhere/x.json"),
        ("no.such.module:Thing", "No module named"),
        ("hotplug.errors:HotplugError", "isn't a profile's class"),
        ("hotplug.profile:Profile", "isn't a profile's class"),
        ("gone.py:Thing", "there is no file gone.py"),
    ],
)
def test_what_means_no_profile_is_refused_with_a_reason(run: Run, word: str, expected: str) -> None:
    ran = run("profile", "digest", word)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert expected in ran.err


def test_a_file_that_is_no_profile_is_refused_with_its_name(run: Run) -> None:
    Path("x.json").write_text('{"schema": "hotplug.profile/1", "name": "x", "name": "y"}', encoding="utf-8")
    error = run("profile", "show", "x.json", "--json").error
    assert error["message"].startswith("x.json: ")


def test_v_says_which_profile_was_used_beside_the_answer(run: Run) -> None:
    ran = run("profile", "digest", "calendar", "-v")
    assert "calendar 1.0.0 from hotplug.catalog" in ran.err
    assert ran.out == run("profile", "digest", "calendar").out


def test_class_document_and_stdin_have_one_digest(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = run("profile", "digest", "calendar", "--json").document["digest"]
    assert digest == Calendar.definition.digest
    text = run("profile", "show", "calendar", "--json").out
    Path("profile.json").write_text(text, encoding="utf-8")
    for word in ("profile.json", ".", "hotplug.catalog.calendar:Calendar"):
        assert run("profile", "digest", word, "--json").document["digest"] == digest
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run("profile", "digest", "-", "--json").document["digest"] == digest


def test_another_digest_than_the_expected_one_is_a_no(run: Run) -> None:
    right = Calendar.definition.digest
    assert run("profile", "digest", "calendar", "--expect", right).code == Exit.YES
    ran = run("profile", "digest", "calendar", "--expect", "sha256:0", "--json")
    assert ran.code == Exit.NO
    assert ran.document["same"] is False


def test_schemas_of_all_parts_come_as_one_answer_or_by_line(run: Run) -> None:
    parts = run("profile", "schema", "calendar", "--json").document["parts"]
    assert {part["name"] for part in parts} == set(Calendar.definition.all_parts)
    lines = run("profile", "schema", "calendar", "--format", "jsonl").out.splitlines()
    assert [validated(line)["name"] for line in lines] == [part["name"] for part in parts]
    assert set(json.loads(run("profile", "schema", "calendar", "create").out)) == {"calendar.create"}


def test_a_new_profile_is_valid_as_it_stands(run: Run, mail: Path) -> None:
    ran = run("profile", "show", f"{mail}:Mail")
    assert ran.code == 0
    assert "mail.add" in ran.out


def test_a_new_profile_overwrites_nothing(run: Run, mail: Path) -> None:
    mail.write_text("mine", encoding="utf-8")
    ran = run("profile", "new", "mail")
    assert ran.code == Exit.USAGE
    assert mail.read_text(encoding="utf-8") == "mine"
    assert run("profile", "new", "mail", "--to", "other.py", "--json").document["file"] == "other.py"


@pytest.mark.parametrize("name", ["Mail", "my mail", "1st", "", "e-mail"])
def test_a_name_that_no_profile_can_have_is_refused(run: Run, name: str) -> None:
    assert run("profile", "new", "--", name).code == Exit.USAGE
    assert list(Path().iterdir()) == []


def test_the_documentation_names_every_part_and_field_and_is_the_same_each_time(run: Run) -> None:
    page = run("profile", "docs", "calendar").out
    for part in Calendar.definition.all_parts.values():
        assert f"### `{part.name}`" in page
        for side in (part.input.schema, part.output.schema):
            for field in side.get("properties", {}):
                assert f"`{field}`" in page
    assert run("profile", "docs", "calendar", "--to", "calendar.md").code == 0
    assert Path("calendar.md").read_text(encoding="utf-8") == page
    assert run("profile", "docs", "calendar", "--json").document["markdown"] == page


def test_publishing_writes_document_and_lock_once(run: Run, mail: Path) -> None:
    spec = f"{mail}:Mail"
    assert run("profile", "publish", spec, "--check").code == Exit.NO
    assert not Path("profiles.lock").exists()
    first = run("profile", "publish", spec, "--json").document
    assert set(first["changed"]) == {"mail.profile.json", "profiles.lock"}
    assert run("profile", "digest", "mail.profile.json", "--json").document["digest"] == first["digest"]
    assert run("profile", "publish", spec, "--json").document["changed"] == []
    assert run("profile", "publish", spec, "--check").code == Exit.YES


def test_a_published_version_never_changes(run: Run, mail: Path) -> None:
    run("profile", "publish", f"{mail}:Mail")
    before = {path: path.read_text(encoding="utf-8") for path in (Path("mail.profile.json"), Path("profiles.lock"))}
    _change(mail, "Add an item.", "Put an item.")
    ran = run("profile", "publish", f"{mail}:Mail")
    assert ran.code == Exit.USAGE
    assert "new version" in ran.err
    assert {path: path.read_text(encoding="utf-8") for path in before} == before


def test_a_new_version_is_published_beside_the_old_one(run: Run, mail: Path) -> None:
    run("profile", "publish", f"{mail}:Mail")
    _change(mail, "Add an item.", "Put an item.")
    _change(mail, "0.1.0", "0.1.1")
    assert run("profile", "publish", f"{mail}:Mail").code == 0
    assert set(json.loads(Path("profiles.lock").read_text(encoding="utf-8"))["profiles"]["mail"]) == {"0.1.0", "0.1.1"}


def test_a_lock_that_is_no_lock_is_left_as_it_is(run: Run, mail: Path) -> None:
    Path("profiles.lock").write_text("{}", encoding="utf-8")
    ran = run("profile", "publish", f"{mail}:Mail")
    assert ran.code == Exit.USAGE
    assert "profiles.lock" in ran.err
    assert Path("profiles.lock").read_text(encoding="utf-8") == "{}"
    assert not Path("mail.profile.json").exists()


def test_a_version_that_is_too_low_for_what_changed_is_not_published(run: Run, mail: Path) -> None:
    _change(mail, "0.1.0", "1.0.0")
    run("profile", "publish", f"{mail}:Mail")
    _change(mail, "1.0.0", "1.0.1")
    _change(mail, "async def add(self, title: str)", "async def add(self, title: str, size: int)")
    ran = run("profile", "publish", f"{mail}:Mail")
    assert ran.code == Exit.USAGE
    assert "2.0.0 at least" in ran.err
    assert "1.0.1" not in Path("profiles.lock").read_text(encoding="utf-8")


def test_a_diff_says_what_changed_and_which_version_that_takes(run: Run, mail: Path) -> None:
    _change(mail, "0.1.0", "1.0.0")
    run("profile", "publish", f"{mail}:Mail")
    _change(mail, "async def add(self, title: str)", "async def add(self, title: str, size: int)")
    ran = run("profile", "diff", "mail.profile.json", f"{mail}:Mail")
    assert ran.code == Exit.NO
    assert "mail.add" in ran.out
    assert "2.0.0 at least" in ran.out
    document = run("profile", "diff", "mail.profile.json", f"{mail}:Mail", "--json").document
    assert (document["level"], document["least"], document["enough"]) == ("major", "2.0.0", False)
    lines = run("profile", "diff", "mail.profile.json", f"{mail}:Mail", "--format", "jsonl").out.splitlines()
    assert [validated(line)["part"] for line in lines] == ["mail.add"]
    _change(mail, "1.0.0", "2.0.0")
    assert run("profile", "diff", "mail.profile.json", f"{mail}:Mail").code == Exit.YES


@pytest.mark.parametrize(
    ("old", "level", "least"),
    [
        ("1.2.3", "none", "1.2.3"),
        ("1.2.3", "patch", "1.2.4"),
        ("1.2.3", "minor", "1.3.0"),
        ("1.2.3", "major", "2.0.0"),
        ("0.2.3", "minor", "0.2.4"),
        ("0.2.3", "major", "0.3.0"),
        ("2.0.0-rc.1", "major", "2.0.0"),
    ],
)
def test_the_least_version_is_one_that_the_profile_rules_accept(old: str, level: Level, least: str) -> None:
    changes = () if level == "none" else (Change(level, "$", "words", "x"),)
    assert least_version(level, old) == least
    assert claimed_version_ok(Diff(level, changes), old, least)


def test_versions_of_two_profiles_do_not_compare(run: Run) -> None:
    assert run("profile", "diff", "calendar", "connection").code == Exit.USAGE
