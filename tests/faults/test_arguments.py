"""Faults of arguments: told at their place, never with a sensitive value, whatever kind of profile it is."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

import pytest
from typing_extensions import TypedDict

from hotplug.errors import InvalidArgument, ProfileError
from hotplug.profile import DocumentShape, Model, Profile, Sensitive, TypedShape
from hotplug.profile.schema import plain

SECRET = "hunter2"


class Key(Model):
    json_key: Sensitive[str]
    interval: int | None = None


class Lock(Model):
    """Its fields are called as pydantic calls the alternatives of a union."""

    strategy: Sensitive[str]
    integer: int | None = None
    function: str | None = None
    nullable: list[Key] | None = None
    either: str | Key | list[int] | None = None
    named: dict[str, Key] | None = None


TYPED = TypedShape(Lock)
DOCUMENT = DocumentShape(plain(TYPED.schema))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"strategy": "s", "integer": "x"}, "integer"),
        ({"strategy": "s", "function": 5}, "function"),
        ({"strategy": "s", "nullable": [{"jsonKey": "k", "interval": "x"}]}, "nullable.0.interval"),
        ({"strategy": "s", "named": {"int": {"jsonKey": "k", "interval": "x"}}}, "named.int.interval"),
        ({"strategy": "s", "more": 1}, "more"),
        ({}, "strategy"),
    ],
)
def test_a_fault_names_its_place_whatever_the_fields_are_called(value: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        TYPED.read(value)
    assert [fault["path"] for fault in caught.value.details["errors"]] == [path]


def test_the_alternatives_of_a_union_are_no_steps_of_a_place() -> None:
    with pytest.raises(InvalidArgument) as caught:
        TYPED.read({"strategy": "s", "either": {"jsonKey": "k", "interval": "x"}})
    paths = {fault["path"] for fault in caught.value.details["errors"]}
    assert paths == {"either", "either.interval"}


@pytest.mark.parametrize("shape", [TYPED, DOCUMENT], ids=["typed", "document"])
@pytest.mark.parametrize(
    "value",
    [
        {"strategy": [SECRET]},
        {"strategy": {"value": SECRET}},
        {"strategy": {"secret": "N", "value": SECRET}},
        {"strategy": "s", "nullable": [{"jsonKey": [SECRET]}]},
        {"strategy": "s", "nullable": {"jsonKey": SECRET}},
        {"strategy": "s", "nullable": [[{"jsonKey": SECRET}]]},
        {"strategy": "s", "nullable": '{"jsonKey": "hunter2"}'},
        {"strategy": "s", "nullable": '[{"jsonKey": ["hunter2"]}]'},
        {"strategy": "s", "named": {"a": [SECRET]}},
        {"strategy": "s", "named": "hunter2"},
        {"strategy": "s", "either": {"jsonKey": {"x": SECRET}}},
        [SECRET],
        SECRET,
    ],
)
def test_a_sensitive_value_is_in_no_fault_at_whatever_place_it_was_put(shape: Any, value: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        shape.read(value)
    assert SECRET not in str(caught.value) + str(caught.value.details)


@pytest.mark.parametrize("shape", [TYPED, DOCUMENT], ids=["typed", "document"])
def test_fr21_holds_for_profiles_of_classes_and_of_documents(shape: Any) -> None:
    notes: list[str] = []
    shape.read({"strategy": "s", "nullable": '[{"jsonKey": "k", "interval": null}]', "either": "[1]"}, notes=notes)
    assert notes == ["nullable arrived as JSON text and was read as what it holds"]
    settled = shape.settled({"strategy": "s", "nullable": '[{"jsonKey": "k"}]'})
    assert settled["nullable"] == [{"jsonKey": "k"}]
    for text in ('["x"]', "[", "{}", '"x"', "[" * 100_000):
        with pytest.raises(InvalidArgument, match="nullable"):
            shape.read({"strategy": "s", "nullable": text})


@pytest.mark.parametrize("shape", [TYPED, DOCUMENT], ids=["typed", "document"])
@pytest.mark.parametrize("value", [float("nan"), float("-inf"), b"\xff", object(), "\ud83d"])
def test_what_is_not_json_is_no_argument(shape: Any, value: Any) -> None:
    for junk in ({"strategy": value}, {"strategy": "s", "function": value}, {"strategy": "s", "named": {"a": value}}):
        with pytest.raises(InvalidArgument):
            shape.read(junk)


class Inner(TypedDict, total=False):
    time_zone: str
    rule: Key


class Outer(TypedDict):
    inner: NotRequired[Inner]
    size_m: NotRequired[Annotated[int, "metres"]]


def test_a_client_writes_what_it_does_not_know_so_that_the_server_refuses_it() -> None:
    from hotplug.profile.parts import _typed_dict  # pyright: ignore[reportPrivateUsage]

    shape = TypedShape(_typed_dict("Arguments", {"outer": NotRequired[Outer], "size_m": NotRequired[int]}))
    slip = {"size_m": 1, "sise_m": 2, "outer": {"inner": {"time_zone": "x", "timezone": "y"}, "oops": 1}}
    written = shape.write(slip, checked=False)
    assert written == {
        "sizeM": 1,
        "sise_m": 2,
        "outer": {"inner": {"timeZone": "x", "timezone": "y"}, "oops": 1},
    }
    with pytest.raises(InvalidArgument) as caught:
        shape.read(written)
    assert {fault["path"] for fault in caught.value.details["errors"]} == {
        "sise_m",
        "outer.oops",
        "outer.inner.timezone",
    }
    for node in (shape.schema, *shape.schema["$defs"].values()):
        assert node["additionalProperties"] is False


DOCUMENT_OF_HOUSE: dict[str, Any] = {
    "schema": "hotplug.profile/1",
    "name": "house",
    "version": "1.0.0",
    "description": "A house.",
    "operations": {
        name: {"description": "d", "input": {"type": "object"}, "output": {"type": "object"}}
        for name in ("house.door.open", "house.window.open", "house.describe", "house.import", "house.listAll")
    },
}


def test_parts_of_a_document_have_methods_of_their_own() -> None:
    loaded = Profile.load(DOCUMENT_OF_HOUSE)
    methods = {part.name: part.method for part in loaded.definition.parts.values()}
    assert methods == {
        "house.door.open": "door_open",
        "house.window.open": "window_open",
        "house.describe": "describe_",
        "house.import": "import_",
        "house.listAll": "list_all",
    }
    twice = {**DOCUMENT_OF_HOUSE["operations"], "house.list_all": DOCUMENT_OF_HOUSE["operations"]["house.listAll"]}
    with pytest.raises(ProfileError, match="list_all"):
        Profile.load({**DOCUMENT_OF_HOUSE, "operations": twice})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"facets": []}, "facets"),
        ({"facets": {"x": {"version": "1.0.0"}}}, r"facets\.x"),
        ({"refs": {"house.door": {"volatile": "yes"}}}, r"refs\.house\.door\.volatile"),
        ({"senses": {"x": {"independence": "some", "grade": "context"}}}, r"senses\.x\.independence"),
        ({"determinism": {"reset": "never"}}, r"determinism\.reset"),
        ({"setup": "x"}, "setup"),
        ({"operations": {"house.x": {"input": {"type": 5}, "output": {}}}}, r"house\.x\.input"),
        ({"operations": {"house.x": {"input": {}, "output": {}, "effects": "yes"}}}, r"house\.x\.effects"),
        ({"operations": {"house.x": {"input": {}, "output": {}, "timeoutMs": 0}}}, r"house\.x\.timeoutMs"),
        ({"operations": {"garden.x": {"input": {}, "output": {}}}}, r"garden\.x"),
        ({"reads": {"house.r": {"input": {}, "output": {}, "effects": True}}}, r"reads\.house\.r"),
        ({"events": {"house.e": {"arguments": {}}}}, r"events\.house\.e"),
    ],
)
def test_a_document_of_another_form_is_refused_at_its_place(change: dict[str, Any], place: str) -> None:
    with pytest.raises(ProfileError, match=place):
        Profile.load({**DOCUMENT_OF_HOUSE, **change})
