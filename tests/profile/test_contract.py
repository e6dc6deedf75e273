"""Profiles, servers and extensions as classes: what they give, and every definition that is refused."""

import json
import types
from typing import Annotated, NotRequired, Required

import pytest
from typing_extensions import TypedDict, Unpack

from hotplug.errors import HotplugError, ProfileError
from hotplug.profile import (
    Event,
    Extension,
    Facet,
    Model,
    Profile,
    Receipt,
    Ref,
    event,
    extends,
    in_facet,
    operation,
    read,
    receipt,
)


class Note(Ref, kind="notes.note", public=True):
    """A note."""


class Cursor(Ref, kind="notes.cursor", volatile=True):
    """A place in a note."""


class Kept(Model):
    note: Note
    receipt: Receipt = receipt()


class Shown(Model):
    text: str
    word_count: int | None = None
    tags: Annotated[list[str] | None, in_facet("tags")] = None


class NewNote(TypedDict, total=False):
    text: Required[str]
    from_: str
    tags: Annotated[list[str], in_facet("tags")]


class More(TypedDict):
    note: Note
    loud: NotRequired[bool]


FACETS = {"tags": Facet("1.0.0", "Notes have tags.", "Notes can't be sorted.")}


class Notes(Profile, name="notes", version="1.2.0", facets=FACETS):
    """Notes that one keeps."""

    @operation(eager=True, effects=True, once=True)
    async def keep(self, **note: Unpack[NewNote]) -> Kept:
        """Keep a note."""
        ...

    @read(sense="state", look="effect")
    async def show(self, note: Note, at: Cursor | None = None) -> Shown:
        """Show a note."""
        ...

    @operation("notes.tag.add", facet="tags", effects=True)
    async def tag(self, note: Note, tag: str) -> Kept:
        """Tag a note."""
        ...

    @operation(required=False, without="Notes are silent.", effects=True)
    async def speak(self, **more: Unpack[More]) -> Kept:
        """Read a note aloud."""
        ...

    @event("notes.kept", sense="state", replay="durable", thread="note_ref")
    class NoteKept(Event):
        """A note was kept."""

        note_ref: Note

        class Filter(Event.Filter):
            note_ref: Note | None = None


class DeskNotes(Notes, name="desknotes", version="1.0.0"):
    """Notes on a desk."""

    @read("desknotes.desk", sense="state")
    async def desk(self) -> Shown:
        """Show the desk."""
        ...


def test_wire_names_are_camel_case_under_the_profile_and_lose_a_trailing_underscore():
    schema = Notes.definition.parts["notes.keep"].input.schema

    assert set(Notes.definition.parts) == {"notes.keep", "notes.show", "notes.tag.add", "notes.speak", "notes.kept"}
    assert set(schema["properties"]) == {"text", "from", "tags"}
    assert "wordCount" in Notes.definition.parts["notes.show"].output.schema["properties"]
    assert Notes.definition.parts["notes.kept"].flags.thread == "noteRef"


def test_what_is_required_in_a_typed_dict_is_required_on_the_wire():
    parts = Notes.definition.parts

    assert parts["notes.keep"].input.schema["required"] == ["text"]
    assert parts["notes.speak"].input.schema["required"] == ["note"]


def test_an_output_with_effects_lists_its_receipt_as_required():
    schema = Notes.definition.parts["notes.keep"].output.schema

    assert schema["required"] == ["note", "receipt"]
    assert "default" not in json.dumps(schema["properties"]["receipt"])


def test_refs_carry_their_kind_in_the_schema_and_their_nature_in_the_document():
    document = Notes.definition.document()

    assert document["refs"] == {"notes.cursor": {"volatile": True}, "notes.note": {"public": True}}
    assert document["reads"]["notes.show"]["input"]["properties"]["note"]["x-ref"] == "notes.note"


def test_schemas_have_no_generated_titles_and_keep_a_property_called_title():
    class Titled(Model):
        title: str

    class Books(Profile, name="books", version="1.0.0"):
        """Books."""

        @read(sense="state")
        async def first(self, title: str) -> Titled:
            """The first."""
            ...

    part = Books.definition.parts["books.first"]
    assert part.input.schema == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
        "additionalProperties": False,
    }
    assert part.output.schema["properties"] == {"title": {"type": "string"}}


def test_a_document_loads_to_a_profile_with_the_same_digest():
    document = json.loads(json.dumps(Notes.definition.document()))

    loaded = Profile.load(document)

    assert loaded.definition.digest == Notes.definition.digest
    assert loaded.definition.document() == Notes.definition.document()


def test_a_document_file_loads(tmp_path):
    path = tmp_path / "notes.profile.json"
    path.write_text(json.dumps(Notes.definition.document()))

    assert Profile.load(path).definition.name == "notes"


def test_a_document_with_a_member_given_twice_is_refused(tmp_path):
    path = tmp_path / "x.profile.json"
    path.write_text('{"schema": "hotplug.profile/1", "name": "a", "name": "b"}')

    with pytest.raises(ProfileError, match="name"):
        Profile.load(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "hotplug.profile/9"}, "hotplug.profile/9"),
        ({"colour": "blue"}, "colour"),
        ({"version": "1"}, "'1'"),
        ({"name": ""}, "name"),
        ({"determinism": {"reset": "no", "speed": 1}}, "speed"),
        ({"extends": {"ui": "nonsense"}}, "nonsense"),
    ],
)
def test_a_document_that_is_no_profile_is_refused_with_the_place(change, said):
    document = {**Notes.definition.document(), **change}

    with pytest.raises(ProfileError, match=said):
        Profile.load(document)


def test_a_profile_that_extends_another_has_its_parts_and_documents_only_its_own():
    definition = DeskNotes.definition

    assert set(definition.all_parts) == {*Notes.definition.parts, "desknotes.desk"}
    assert list(definition.document()["reads"]) == ["desknotes.desk"]
    assert definition.document()["extends"] == {"notes": "^1.2.0"}
    assert definition.member("notes.keep") == "notes@1/notes.keep"
    assert definition.member("desknotes.desk") == "desknotes@1/desknotes.desk"


class Server(Notes, partial=True):
    """The core."""

    async def keep(self, **note: Unpack[NewNote]) -> Kept:
        return Kept(note=Note("n1"))

    async def show(self, note: Note, at: Cursor | None = None) -> Shown:
        return Shown(text="x")


def test_a_server_offers_the_core_and_what_else_it_overrides():
    class WithTags(Server):
        async def tag(self, note: Note, tag: str) -> Kept:
            return Kept(note=note)

    assert WithTags.implemented == {"notes.keep", "notes.show", "notes.tag.add"}
    assert WithTags.facets == {"tags"}


def test_a_server_without_a_core_part_is_refused_when_the_class_is_made():
    with pytest.raises(ProfileError, match=r"notes\.show"):

        class Half(Notes):
            async def keep(self, **note: Unpack[NewNote]) -> Kept:
                return Kept(note=Note("n1"))


def test_a_server_cannot_declare_a_facet_whose_parts_it_lacks():
    with pytest.raises(ProfileError, match=r"notes\.tag\.add"):

        class Claims(Server, facets=["tags"]):
            pass


def test_a_server_cannot_declare_a_facet_that_there_is_not():
    with pytest.raises(ProfileError, match="colours"):

        class Claims(Server, facets=["colours"]):
            pass


def test_a_facet_is_offered_whole_or_not_at_all():
    class Pair(Profile, name="pair", version="1.0.0", facets={"two": Facet("1.0.0", "Two.", "One.")}):
        """Two parts."""

        @read(sense="state", facet="two")
        async def left(self) -> Shown:
            """Left."""
            ...

        @read(sense="state", facet="two")
        async def right(self) -> Shown:
            """Right."""
            ...

    with pytest.raises(ProfileError, match=r"pair\.right"):

        class OnlyLeft(Pair):
            async def left(self) -> Shown:
                return Shown(text="x")


def _profile(**members):
    def make(keywords=None):
        return type("X", (Profile,), {"__doc__": "X.", **members}, **(keywords or {"name": "x", "version": "1.0.0"}))

    return make


async def _no_docstring(self) -> Shown: ...


async def _loud(self, x) -> Shown:
    """Untyped."""


async def _bare(self) -> dict:
    """No model."""


async def _star(self, *x: int) -> Shown:
    """Star."""


async def _plain_keywords(self, **x: int) -> Shown:
    """Keywords."""


def _sync(self) -> Shown:
    """Not async."""


async def _fine(self) -> Shown:
    """Fine."""


async def _no_receipt(self) -> Shown:
    """No receipt."""


def _copy(function):
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    made.__doc__, made.__annotations__ = function.__doc__, function.__annotations__
    return made


@pytest.mark.parametrize(
    ("members", "keywords", "said"),
    [
        ({"a": operation()(_copy(_no_docstring))}, None, "no docstring"),
        ({"a": operation()(_copy(_loud))}, None, "no type"),
        ({"a": operation()(_copy(_bare))}, None, "subclass of hotplug.profile.Model"),
        ({"a": operation()(_copy(_star))}, None, "take a list"),
        ({"a": operation()(_copy(_plain_keywords))}, None, "Unpack"),
        ({"a": operation()(_copy(_sync))}, None, "async"),
        ({"a": operation(effects=True)(_copy(_no_receipt))}, None, "receipt"),
        ({"a": operation(once=True)(_copy(_fine))}, None, "without `effects`"),
        ({"a": operation(required=False)(_copy(_fine))}, None, "without"),
        ({"a": operation(facet="ghost")(_copy(_fine))}, None, "ghost"),
        ({"a": operation("y.a")(_copy(_fine))}, None, "doesn't stand under"),
        ({"a": operation("x.a b")(_copy(_fine))}, None, "no name of a part"),
        ({"claim": operation()(_copy(_fine))}, None, "claim"),
        ({"events": operation()(_copy(_fine))}, None, "events"),
        (
            {"a": operation("x.same")(_copy(_fine)), "b": read("x.same", sense="state")(_copy(_no_receipt))},
            None,
            "two parts",
        ),
        ({}, {"name": "X y", "version": "1.0.0"}, "no name of a profile"),
        ({}, {"name": "x"}, "no version"),
        ({}, {"name": "x", "version": "1.0"}, "1.0"),
        ({"__doc__": None}, None, "no docstring"),
    ],
)
def test_a_definition_that_is_wrong_is_refused_with_what_to_change(members, keywords, said):
    with pytest.raises(ProfileError, match=said):
        _profile(**members)(keywords)


def test_a_part_of_the_parent_cannot_be_defined_again():
    with pytest.raises(ProfileError, match=r"doesn't stand under|again"):

        class Again(Notes, name="again", version="1.0.0"):
            """Again."""

            @read("notes.show", sense="state")
            async def look_at(self) -> Shown:
                """Show."""
                ...


class Ink(Extension, id="com.example.ink", version="2.1.0", requires={"notes": "^1"}):
    """Coloured notes."""

    @operation(effects=True)
    async def paint(self, note: Note, colour: str) -> Kept:
        """Paint a note."""
        ...

    @extends("notes.keep")
    class KeepInk(Model):
        colour: str | None = None


def test_an_extension_names_its_operations_under_its_id_and_adds_optional_fields():
    assert list(Ink.parts) == ["com.example.ink.paint"]
    assert Ink.extras["notes.keep"].model is Ink.KeepInk


def test_a_server_of_an_extension_implements_its_operations():
    class Painted(Server, Ink):
        async def paint(self, note: Note, colour: str) -> Kept:
            return Kept(note=note)

    assert "com.example.ink.paint" in Painted.implemented
    assert Painted.extensions() == (Ink,)

    with pytest.raises(ProfileError, match=r"com\.example\.ink\.paint"):

        class Unpainted(Server, Ink):
            pass


class _Required(Model):
    colour: str


@pytest.mark.parametrize(
    ("keywords", "members", "said"),
    [
        ({"id": "com.ink", "version": "1.0.0", "requires": {"notes": "^1"}}, {}, "three labels"),
        ({"id": "ink", "version": "1.0.0", "requires": {"notes": "^1"}}, {}, "three labels"),
        ({"id": "com.example.ink", "requires": {"notes": "^1"}}, {}, "no version"),
        ({"id": "com.example.ink", "version": "1.0.0"}, {}, "requires no profile"),
        ({"id": "com.example.ink", "version": "1.0.0", "requires": {"notes": "?"}}, {}, "range"),
        (
            {"id": "com.example.ink", "version": "1.0.0", "requires": {"notes": "^1"}},
            {"K": extends("notes.keep")(type("K", (_Required,), {}))},
            "only adds optional",
        ),
        (
            {"id": "com.example.ink", "version": "1.0.0", "requires": {"notes": "^1"}},
            {"K": extends("other.keep")(type("K", (Model,), {}))},
            "doesn't require other",
        ),
        (
            {"id": "com.example.ink", "version": "1.0.0", "requires": {"notes": "^1"}},
            {"a": operation("notes.keep")(_copy(_fine))},
            "doesn't stand under",
        ),
    ],
)
def test_an_extension_that_would_change_a_profile_is_refused(keywords, members, said):
    with pytest.raises(ProfileError, match=said):
        type("E", (Extension,), {"__doc__": "E.", **members}, **keywords)


@pytest.mark.anyio
async def test_what_belongs_to_a_connection_says_so_on_a_server():
    class Whole(Server):
        pass

    with pytest.raises(HotplugError, match="is a server, not a connection"):
        Whole().using(key="k")
    with pytest.raises(HotplugError, match="isn't attached"):
        await Whole().emit(Notes.NoteKept(note_ref=Note("n")))


def test_an_event_has_no_field_that_extensions_or_every_event_have() -> None:
    class Extended(Event):
        """Something with a field in the place of extensions."""

        ext: str

    with pytest.raises(ProfileError, match="a field 'ext'"):

        class Logs(Profile, name="logs", version="1.0.0"):
            """For this test."""

            Written = event("logs.written", sense="log")(Extended)

    with pytest.warns(UserWarning, match="shadows"):

        class Named(Event):
            """Something with a field in the place of a method."""

            happening: str  # type: ignore[assignment]

    with pytest.raises(ProfileError, match="a field 'happening'"):

        class Names(Profile, name="names", version="1.0.0"):
            """For this test."""

            Written = event("names.written", sense="log")(Named)


def test_an_event_tells_of_nothing_in_particular_unless_its_class_says_so() -> None:
    class Told(Event):
        """Told."""

    assert Told().happening() is None
