"""Shapes read what came over the wire and write what goes out."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.errors import InvalidArgument, NotFound
from hotplug.profile import (
    DocumentShape,
    Duration,
    Masked,
    Model,
    Ref,
    Secret,
    Sensitive,
    Target,
    TypedShape,
    reveal,
    secret,
    without_nulls,
)


class Door(Ref, kind="house.door"):
    """A door."""


class Room(Model):
    door: Door
    doors: list[Door] | None = None
    free: dict[str, Any] | None = None
    size_m: int | None = None


class Login(Model):
    password: Sensitive[str]
    user: str


class Wait(Model):
    quiet: Duration


class Click(Model):
    element: Target


class Upper:
    """A fake seal: upper case outside."""

    def seal(self, kind: str, handle: str, *, volatile: bool) -> str:
        return f"{kind}/{handle}".upper()

    def unseal(self, kind: str, ref: str, *, volatile: bool) -> str:
        if not ref.startswith(f"{kind}/".upper()):
            raise NotFound(f"{ref!r} is none of ours")
        return ref.rpartition("/")[2].lower()


@pytest.mark.parametrize("make", [TypedShape, lambda model: DocumentShape(TypedShape(model).schema)])
def test_refs_are_unsealed_on_the_way_in_and_sealed_on_the_way_out(make):
    shape = make(Room)
    wire = {"door": "HOUSE.DOOR/D1", "doors": ["HOUSE.DOOR/D2"]}

    inside = shape.read(wire, refs=Upper())

    assert shape.write(inside) == {"door": "d1", "doors": ["d2"]}
    assert shape.write(inside, refs=Upper()) == wire
    with pytest.raises(NotFound):
        shape.read({"door": "D1"}, refs=Upper())


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({}, "door"),
        ({"door": 1}, "door"),
        ({"door": ""}, "door"),
        ({"door": "d", "doors": "d"}, "doors"),
        ({"door": "d", "doors": ["a", 2]}, "doors.1"),
        ({"door": "d", "sizeM": "5"}, "sizeM"),
        ({"door": "d", "sizeM": True}, "sizeM"),
        ({"door": "d", "sizeM": 1.5}, "sizeM"),
        ({"door": "d", "size_m": 5}, "size_m"),
        ({"door": "d", "colour": "red"}, "colour"),
        ([], ""),
        ("x", ""),
        (None, ""),
    ],
)
def test_what_does_not_fit_is_an_invalid_argument_naming_the_path(value, path):
    with pytest.raises(InvalidArgument) as caught:
        TypedShape(Room).read(value)

    assert path in [fault["path"] for fault in caught.value.details["errors"]]


def test_the_value_seen_stands_in_the_message_cut_to_a_length():
    with pytest.raises(InvalidArgument, match="not '5'"):
        TypedShape(Room).read({"door": "d", "sizeM": "5"})
    with pytest.raises(InvalidArgument) as caught:
        TypedShape(Room).read({"door": "d", "sizeM": "x" * 10_000})
    assert len(str(caught.value)) < 300


def test_a_sensitive_value_never_stands_in_an_error():
    shape = TypedShape(Login)

    with pytest.raises(InvalidArgument) as caught:
        shape.read({"password": ["hunter2"], "user": "u"})

    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in str(caught.value.details)


def test_a_server_gets_a_sensitive_value_masked_and_unwraps_it_by_name():
    got = TypedShape(Login).read({"password": "hunter2", "user": "u"})

    assert isinstance(got.password, Masked)
    assert "hunter2" not in repr(got)
    assert reveal(got.password) == "hunter2"


def test_a_secret_travels_by_its_name():
    shape = TypedShape(Login)

    assert shape.write(Login(password=secret("db"), user="u")) == {"password": {"secret": "db"}, "user": "u"}
    assert shape.read({"password": {"secret": "db"}, "user": "u"}).password == Secret("db")
    with pytest.raises(ValueError, match="has not been resolved"):
        reveal(Secret("db"))


@pytest.mark.parametrize("element", [{}, {"exact": True}, {"ref": "e1", "role": "button"}, {"colour": "red"}, "e1"])
def test_a_target_is_a_ref_or_a_locator_and_nothing_else(element):
    with pytest.raises(InvalidArgument):
        TypedShape(Click).read({"element": element})


def test_a_target_keeps_what_it_was_given():
    assert TypedShape(Click).read({"element": {"testId": "pay"}}).element == {"test_id": "pay"}
    assert TypedShape(Click).read({"element": {"ref": "e1"}}).element == {"ref": "e1"}


@pytest.mark.parametrize("quiet", [-1, 1.5, "5", True])
def test_a_duration_is_whole_milliseconds(quiet):
    with pytest.raises(InvalidArgument):
        TypedShape(Wait).read({"quiet": quiet})


def test_fr21_json_text_is_read_only_where_an_object_or_list_is_wanted():
    notes: list[str] = []
    shape = TypedShape(Room)

    assert shape.read({"door": "d", "doors": '["a","b"]'}, notes=notes).doors == ["a", "b"]
    assert notes == ["doors arrived as JSON text and was read as what it holds"]


def test_fr21_a_string_where_a_string_is_allowed_is_never_parsed():
    class Either(Model):
        value: str | dict[str, Any]

    assert TypedShape(Either).read({"value": "{}"}).value == "{}"


@pytest.mark.parametrize("text", ["[1", '"x"', "5", "", "[1]", '{"a": 1}'])
def test_fr21_text_that_does_not_parse_to_what_fits_is_refused_naming_the_parameter(text):
    with pytest.raises(InvalidArgument, match="doors"):
        TypedShape(Room).read({"door": "d", "doors": text})


def test_fr22_an_optional_object_accepts_the_object_and_null_and_refuses_a_number():
    import jsonschema

    class Holder(Model):
        room: Room | None = None

    schema = TypedShape(Holder).schema
    validator = jsonschema.Draft202012Validator(schema)

    assert validator.is_valid({"room": {"door": "d"}})
    assert validator.is_valid({"room": None})
    assert not validator.is_valid({"room": 5})
    jsonschema.Draft202012Validator.check_schema(schema)


def test_results_of_a_newer_server_may_have_fields_that_are_not_known():
    assert TypedShape(Room).read({"door": "d", "colour": "red"}, strict=False).door == "d"


def test_null_reads_as_left_out():
    assert without_nulls({"a": None, "b": {"c": None, "d": [{"e": None}]}}) == {"b": {"d": [{}]}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_any_junk_is_an_invalid_argument_or_fits(value):
    shape = TypedShape(Room)
    try:
        found = shape.read(value)
    except InvalidArgument:
        return
    assert isinstance(found, Room)


class Small(Model):
    count: Annotated[int, "how many"] = 1


def test_a_default_stands_in_the_schema_and_null_defaults_do_not():
    assert TypedShape(Small).schema["properties"]["count"] == {"type": "integer", "default": 1}
    assert "default" not in str(TypedShape(Room).schema)
