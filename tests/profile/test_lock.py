import json

import pytest

from hotplug.errors import CanonicalError, ProfileError
from hotplug.profile.canonical import digest
from hotplug.profile.lock import Kind, Lock, publish

ONE = digest({"name": "calendar", "version": "1.0.0"})
TWO = digest({"name": "calendar", "version": "1.0.0", "description": "Changed."})


def test_what_is_published_stands_in_the_lock_and_reads_back() -> None:
    lock = publish(Lock(), "profiles", "calendar", "1.0.0", ONE)
    lock = publish(lock, "extensions", "com.slack.blocks", "3.0.0", TWO)
    lock = publish(lock, "projections", "dev.hotplug.caldav-mcp", "0.1.0", ONE)
    assert json.loads(lock.dump()) == {
        "schema": "hotplug.lock/1",
        "profiles": {"calendar": {"1.0.0": ONE}},
        "extensions": {"com.slack.blocks": {"3.0.0": TWO}},
        "projections": {"dev.hotplug.caldav-mcp": {"0.1.0": ONE}},
    }
    again = Lock.parse(lock.dump())
    assert again.dump() == lock.dump()
    assert again.digest("profiles", "calendar", "1.0.0") == ONE
    assert again.digest("profiles", "calendar", "1.0.1") is None
    assert again.digest("extensions", "calendar", "1.0.0") is None


@pytest.mark.parametrize("kind", ["profiles", "extensions", "projections"])
def test_publishing_the_same_document_again_changes_nothing(kind: Kind) -> None:
    lock = publish(Lock(), kind, "calendar", "1.0.0", ONE)
    assert publish(lock, kind, "calendar", "1.0.0", ONE) is lock


@pytest.mark.parametrize("kind", ["profiles", "extensions", "projections"])
def test_the_same_version_with_another_digest_is_refused_naming_both(kind: Kind) -> None:
    lock = publish(Lock(), kind, "calendar", "1.0.0", ONE)
    with pytest.raises(ProfileError) as caught:
        publish(lock, kind, "calendar", "1.0.0", TWO)
    assert ONE in str(caught.value)
    assert TWO in str(caught.value)
    assert lock.digest(kind, "calendar", "1.0.0") == ONE


def test_versions_are_written_in_their_order_and_names_sorted() -> None:
    lock = Lock()
    for name, version in [("ui", "1.0.0"), ("calendar", "1.10.0"), ("calendar", "1.9.0"), ("calendar", "1.10.0-rc.1")]:
        lock = publish(lock, "profiles", name, version, ONE)
    written = json.loads(lock.dump())["profiles"]
    assert list(written) == ["calendar", "ui"]
    assert list(written["calendar"]) == ["1.9.0", "1.10.0-rc.1", "1.10.0"]


def test_a_lock_isnt_changed_by_publishing_into_it() -> None:
    lock = publish(Lock(), "profiles", "calendar", "1.0.0", ONE)
    publish(lock, "profiles", "calendar", "1.1.0", TWO)
    assert lock.digest("profiles", "calendar", "1.1.0") is None


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "a lock is an object"),
        ({}, "schema None"),
        ({"schema": "hotplug.lock/2"}, "'hotplug.lock/2'"),
        ({"schema": "hotplug.lock/1", "servers": {}}, "'servers'"),
        ({"schema": "hotplug.lock/1", "profiles": []}, "profiles of a lock"),
        ({"schema": "hotplug.lock/1", "profiles": {"ui": ONE}}, "profiles.ui of a lock"),
        ({"schema": "hotplug.lock/1", "profiles": {"ui": {"1": ONE}}}, "'1' isn't a version"),
        ({"schema": "hotplug.lock/1", "profiles": {"ui": {"1.0.0": ONE.upper()}}}, "profiles.ui.1.0.0 isn't a digest"),
    ],
)
def test_a_wrong_lock_is_refused_at_its_place(document: object, words: str) -> None:
    with pytest.raises(ProfileError) as caught:
        Lock.parse(json.dumps(document))
    assert words in str(caught.value)


def test_a_version_that_stands_in_the_lock_twice_is_refused() -> None:
    text = f'{{"schema":"hotplug.lock/1","profiles":{{"ui":{{"1.0.0":"{ONE}","1.0.0":"{TWO}"}}}}}}'
    with pytest.raises(CanonicalError) as caught:
        Lock.parse(text)
    assert caught.value.path == '$.profiles.ui["1.0.0"]'


def test_publishing_what_isnt_a_version_or_a_digest_is_refused() -> None:
    with pytest.raises(ProfileError, match="isn't a version"):
        publish(Lock(), "profiles", "ui", "1", ONE)
    with pytest.raises(ProfileError, match="isn't a digest"):
        publish(Lock(), "profiles", "ui", "1.0.0", "sha256:12")
