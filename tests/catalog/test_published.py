"""What is published of the catalog is what the classes say."""

import json
from importlib import resources

import pytest

from hotplug.catalog import PROFILES, profile_class
from hotplug.profile import Profile
from hotplug.profile.canonical import digest, parse
from hotplug.profile.lock import Lock


def _file(name: str, file: str) -> str:
    return resources.files(f"hotplug.catalog.{name}").joinpath(file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PROFILES)
def test_the_published_document_is_the_one_that_the_class_makes(name: str) -> None:
    definition = profile_class(name).definition

    assert parse(_file(name, "profile.json")) == json.loads(json.dumps(definition.document()))


@pytest.mark.parametrize("name", PROFILES)
def test_the_lock_holds_the_digest_of_the_published_version(name: str) -> None:
    definition = profile_class(name).definition
    lock = Lock.parse(_file(name, "profiles.lock"))

    assert lock.digest("profiles", name, definition.version) == definition.digest


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_loaded_from_its_document_has_the_same_digest(name: str) -> None:
    document = parse(_file(name, "profile.json"))

    assert Profile.load(document).definition.digest == digest(document) == profile_class(name).definition.digest


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_says_how_it_is_used_in_under_150_lines_and_why_it_is_as_it_is(name: str) -> None:
    skill, reasons = _file(name, "SKILL.md"), _file(name, "PROFILE.md")

    assert 10 < len(skill.splitlines()) < 150
    core = [part for part in profile_class(name).definition.parts.values() if part.core]
    assert all(f"`{part.name}`" in reasons for part in core)


@pytest.mark.parametrize("name", PROFILES)
def test_every_optional_part_and_facet_says_what_is_lost_without_it(name: str) -> None:
    definition = profile_class(name).definition

    assert all(facet.without for facet in definition.facets.values())
    assert all(part.flags.without for part in definition.parts.values() if not part.flags.required)


@pytest.mark.parametrize("name", PROFILES)
def test_published_schemas_are_plain_2020_12_and_complete_in_themselves(name: str) -> None:
    import jsonschema

    for part in profile_class(name).definition.parts.values():
        for schema in (part.input.schema, part.output.schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            text = json.dumps(schema)
            for reference in {word.split('"')[0] for word in text.split('"$ref": "')[1:]}:
                assert reference.removeprefix("#/$defs/") in schema["$defs"], reference
