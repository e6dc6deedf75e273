import pytest

from hotplug.errors import ProfileError
from hotplug.profile.versions import Manifest, Range, default_range, parse_version


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("^1", "1.0.0 1.9.3", "0.9.0 2.0.0 1.2.0-rc.1 2.0.0-rc.1"),
        ("^1.1", "1.1.0 1.9.0", "1.0.9 2.0.0"),
        ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0"),
        ("~1.2", "1.2.0 1.2.9", "1.3.0 1.1.9"),
        (">=1 <2", "1.0.0 1.9.9", "2.0.0 0.1.0"),
        (">= 1.2   < 2", "1.2.0", "1.1.0 2.0.0"),
        ("1.x", "1.0.0 1.4.0", "2.0.0"),
        ("^1 || ^3", "1.5.0 3.0.0", "2.0.0"),
        ("1.2.3", "1.2.3", "1.2.4"),
        ("*", "0.0.1 9.0.0", "1.0.0-rc.1"),
        ("1 - 2", "1.0.0 2.9.9", "3.0.0"),
        ("^1.2.0-rc.1", "1.2.0-rc.2 1.2.0 1.3.0", "1.3.0-rc.1 1.2.0-beta.1"),
        ("~1.2.0-rc.1", "1.2.0-rc.1 1.2.0 1.2.9", "1.3.0"),
    ],
)
def test_a_range_holds_what_npm_says(text: str, inside: str, outside: str) -> None:
    wanted = Range(text)
    assert str(wanted) == text
    for version in inside.split():
        assert wanted.satisfied_by(version), version
    for version in outside.split():
        assert not wanted.satisfied_by(version), version


@pytest.mark.parametrize(
    "text", ["", " ", "latest", "^01", "1.2.3.4", "bogus - 2", "1 - 2 - 3", "~*", ">=1,<2", "=1.2.3+b", 1, None]
)
def test_what_isnt_a_range_is_refused_with_the_value_seen(text: object) -> None:
    with pytest.raises(ProfileError) as caught:
        Range(text)  # type: ignore[arg-type]
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["1", "1.2", "01.2.3", "v1.2.3", "1.2.3+build.5", "", 1.2, None])
def test_what_isnt_a_version_is_refused_with_the_value_seen(text: object) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_version(text)
    assert repr(text) in str(caught.value)


def test_a_range_compares_by_its_text_and_can_be_a_key() -> None:
    assert {Range("^1"): 1}[Range("^1")] == 1
    assert Range("^1") != Range("^1.0")


def test_the_default_range_is_the_installed_version_and_what_is_compatible() -> None:
    assert str(default_range("1.2.0")) == "^1.2.0"
    assert default_range(parse_version("1.2.0")).satisfied_by("1.3.0")


def test_a_manifest_is_read_and_written() -> None:
    document = {"profiles": {"browser": "^1.1"}, "extensions": {"com.slack.blocks": "^3"}}
    manifest = Manifest.parse(document)
    assert manifest.profiles["browser"].satisfied_by("1.4.0")
    assert str(manifest.extensions["com.slack.blocks"]) == "^3"
    assert manifest.document() == document
    assert Manifest.parse({}).document() == {}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "a manifest is an object"),
        ({"profile": {}}, "'profile'"),
        ({"profiles": ["browser"]}, "profiles of a manifest"),
        ({"profiles": {"browser": "newest"}}, "profiles.browser: 'newest'"),
        ({"extensions": {"com.slack.blocks": 3}}, "extensions.com.slack.blocks: 3"),
    ],
)
def test_a_wrong_manifest_is_refused_at_its_place(document: object, words: str) -> None:
    with pytest.raises(ProfileError) as caught:
        Manifest.parse(document)
    assert words in str(caught.value)
