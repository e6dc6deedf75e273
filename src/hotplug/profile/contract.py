"""Contracts as classes: a profile, an extension, and the native servers that subclass them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar, cast, overload

from hotplug.errors import HotplugError, InvalidArgument, ProfileError, Unsupported
from hotplug.profile.canonical import parse
from hotplug.profile.claimed import Claimed, ClaimWindow
from hotplug.profile.definition import RESERVED, Definition, Determinism, RefKind
from hotplug.profile.extras import EXTENSION, EXTRA, Extra, extends
from hotplug.profile.fields import Model, Ref, wire_name
from hotplug.profile.listening import Health, Told
from hotplug.profile.parts import Event, Facet, Part, flags_of, read_event, read_method
from hotplug.profile.schema import JsonSchema, fields_of_facets, subschemas
from hotplug.profile.senses import Sense
from hotplug.profile.shape import TypedShape
from hotplug.profile.versions import Range, default_range, parse_version

__all__ = ["RESERVED", "Caller", "Contract", "Extension", "Extra", "Profile", "Requirement", "extends"]

_PROFILE_NAME = re.compile(r"[a-z][a-z0-9]*")
_WIRE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_EXTENSION_ID = re.compile(r"[a-z][a-z0-9-]*(\.[a-zA-Z0-9][a-zA-Z0-9-]*){2,}")

P = TypeVar("P", bound="Profile")
E = TypeVar("E", bound=Event)
X = TypeVar("X", bound="Extension")


class Caller(Protocol):
    """What a connection does for the typed client in front of it."""

    async def call(self, part: Part, arguments: Mapping[str, Any]) -> Any: ...

    def using(self, client: Any, options: Mapping[str, Any]) -> Any: ...

    def extension(self, extension: type[Extension]) -> Any: ...

    async def describe(self) -> Mapping[str, Any]: ...

    async def look(self, moment: str) -> Mapping[str, Any]: ...

    def claim(
        self, statement: str, conditions: Sequence[Any], within: Any, quiet: Any
    ) -> AbstractAsyncContextManager[Any]: ...

    def claims(self, within: Any, quiet: Any) -> AbstractAsyncContextManager[Any]: ...

    def with_witness(self, client: Any, witnesses: Sequence[Any]) -> Any: ...

    def recorded(self) -> AbstractAsyncContextManager[Any]: ...

    def events(
        self, kinds: Sequence[type[Event]], arguments: Mapping[str, Any], cursor: str | None
    ) -> AsyncGenerator[Told[Any], None]: ...

    def health(self) -> Health: ...

    def window(self, budget_ms: int) -> AbstractAsyncContextManager[Any]: ...


class Contract:
    """What profiles and extensions share: a class whose marked members are parts."""

    parts: ClassVar[Mapping[str, Part]] = {}
    """The parts that this very class defines, by wire name."""

    @classmethod
    def _collect(cls, owner: str) -> dict[str, Part]:
        found: dict[str, Part] = {}
        names = {key: value for key, value in vars(cls).items() if isinstance(value, type)}
        for attribute, member in vars(cls).items():
            flags = flags_of(member)
            if flags is None:
                continue
            if attribute in RESERVED:
                raise ProfileError(
                    f"{owner}: no part may be called {attribute!r}", hint="the client itself has that name"
                )
            part = (
                read_event(member, attribute)
                if flags.kind == "event"
                else read_method(owner, attribute, member, flags, names)
            )
            _check_part(owner, part)
            if part.name in found:
                raise ProfileError(f"{owner}: two parts are called {part.name!r}")
            found[part.name] = part
        return found


def _check_part(owner: str, part: Part) -> None:
    flags = part.flags
    if not _WIRE_NAME.fullmatch(part.name):
        raise ProfileError(f"{part.name!r} is no name of a part", hint="letters, digits, _, - and . only, at most 128")
    if not part.name.startswith(f"{owner}."):
        raise ProfileError(f"{part.name!r} doesn't stand under {owner!r}", hint=f"name it {owner}.something")
    if not part.description:
        raise ProfileError(f"{part.name} has no docstring", hint="say in a sentence what it does: models read it")
    if not flags.required and flags.facet is None and not flags.without:
        raise ProfileError(f"{part.name} is optional and doesn't say what is lost without it", hint='add without="…"')
    if flags.facet is not None and not flags.required:
        raise ProfileError(
            f"{part.name} is of facet {flags.facet!r} and optional", hint="a facet has all of its parts or none"
        )


class Profile(Contract):
    """A contract for one kind of thing: one class gives document, schemas, typed client and the server's base.

    `class Chat(Profile, name="chat", version="1.0.0")` defines one; `class Browser(Ui, name="browser", version=...)`
    extends one; `class MyChat(Chat)` is a native server of it, which overrides the core and whatever else it offers.

    Args of the class statement:
        name, version: Those of a profile; absent for a server.
        facets: For a profile, name → `Facet`; for a server, the names of facets that it offers though they only add
            fields.
        senses: Trust of senses outside OVP's table, or weaker than it.
        determinism: The default for servers of the profile.
        setup: A model of what a connection may be opened with.
        partial: A base class of servers, not a server yet.

    Raises:
        ProfileError: The definition, or the server, isn't whole; the message says what to add.
    """

    definition: ClassVar[Definition]
    facets: ClassVar[frozenset[str]] = frozenset()
    """The facets that a server offers."""
    implemented: ClassVar[frozenset[str]] = frozenset()
    """The wire names of the parts that a server offers."""

    _named: ClassVar[frozenset[str]] = frozenset()
    _caller: Caller | None = None

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        version: str | None = None,
        facets: Mapping[str, Facet] | Iterable[str] = (),
        senses: Mapping[str, Sense] | None = None,
        determinism: Determinism | None = None,
        setup: type[Model] | None = None,
        partial: bool = False,
        document: Definition | None = None,
    ) -> None:
        super().__init_subclass__()
        if document is not None:
            cls.definition = document
        elif name is not None:
            if facets and not isinstance(facets, Mapping):
                raise ProfileError(f"{name}: facets need a version each", hint='write facets={"name": Facet(...)}')
            cls.definition = cls._define(
                name,
                version,
                cast("Mapping[str, Facet]", facets or {}),
                senses or {},
                determinism or Determinism(),
                setup,
            )
            cls.parts = cls.definition.parts
        else:
            cls._named = cls._named | frozenset(facets)
            if not partial:
                cls._check_server(cls._named)

    @classmethod
    def _define(
        cls,
        name: str,
        version: str | None,
        facets: Mapping[str, Facet],
        senses: Mapping[str, Sense],
        determinism: Determinism,
        setup: type[Model] | None,
    ) -> Definition:
        if not _PROFILE_NAME.fullmatch(name):
            raise ProfileError(f"{name!r} is no name of a profile", hint="lower-case letters and digits")
        if version is None:
            raise ProfileError(f"{name} has no version", hint='add version="1.0.0"')
        parse_version(version)
        parents = [base for base in cls.__mro__[1:] if "definition" in vars(base)]
        parent = cast("type[Profile]", parents[0]).definition if parents else None
        parts = cls._collect(name)
        schemas = [shape.schema for part in parts.values() for shape in (part.input, part.output)]
        for part in parts.values():
            for facet in {part.flags.facet, *fields_of_facets(part.input.schema).values()} - {
                None,
                *facets,
                *(parent.all_facets if parent else ()),
            }:
                raise ProfileError(
                    f"{part.name} is of facet {facet!r}, which {name} doesn't have", hint="add it to facets="
                )
            inherited = parent.all_parts.get(part.name) if parent else None
            if inherited is not None:
                raise ProfileError(
                    f"{name} defines {part.name} again", hint=f"it is a part of {cast('Definition', parent).name}"
                )
        return Definition(
            name=name,
            version=version,
            description=_docstring(cls, name),
            parts=parts,
            facets=dict(facets),
            refs=_ref_kinds(name, schemas),
            senses=dict(senses),
            determinism=determinism,
            setup=TypedShape(setup).schema if setup else None,
            parent=parent,
            extends={parent.name: str(default_range(parent.version))} if parent else {},
        )

    @classmethod
    def _check_server(cls, named: frozenset[str]) -> None:
        """Refuse a server that isn't whole, and note what it offers."""
        implemented: set[str] = set()
        facets = set(named)
        for profile in cls.profiles():
            definition = profile.definition
            for part in definition.all_parts.values():
                if part.kind != "event" and getattr(cls, part.method, None) is not getattr(profile, part.method, None):
                    implemented.add(part.name)
            missing = [
                part.name
                for part in definition.all_parts.values()
                if part.core and part.kind != "event" and part.name not in implemented
            ]
            if missing:
                raise ProfileError(
                    f"{cls.__name__} doesn't implement {', '.join(missing)}",
                    hint=f"the core of {definition.name} is all or nothing; a base class of servers says partial=True",
                )
            for facet in definition.all_facets:
                parts = [part.name for part in definition.facet_parts(facet) if part.kind != "event"]
                done = [part for part in parts if part in implemented]
                if done and len(done) < len(parts):
                    missing = sorted(set(parts) - set(done))
                    raise ProfileError(
                        f"{cls.__name__} has {', '.join(done)} of facet {facet!r} and not {', '.join(missing)}",
                        hint="a facet has all of its parts or none",
                    )
                if facet in named and len(done) < len(parts):
                    raise ProfileError(
                        f"{cls.__name__} declares facet {facet!r} without {', '.join(sorted(set(parts) - set(done)))}"
                    )
                if done:
                    facets.add(facet)
        known = {facet for profile in cls.profiles() for facet in profile.definition.all_facets}
        if facets - known:
            raise ProfileError(
                f"{cls.__name__} declares unknown facets: {', '.join(sorted(facets - known))}",
                hint=f"known here: {', '.join(sorted(known)) or 'none'}",
            )
        for extension in cls.extensions():
            implemented |= extension.implemented_by(cls)
        cls.facets = frozenset(facets)
        cls.implemented = frozenset(implemented)

    @classmethod
    def profiles(cls) -> tuple[type[Profile], ...]:
        """The profiles that a server implements; those that another of them extends are not listed."""
        found = [cast("type[Profile]", base) for base in cls.__mro__ if "definition" in vars(base)]
        return tuple(one for one in found if not any(other is not one and issubclass(other, one) for other in found))

    @classmethod
    def extensions(cls) -> tuple[type[Extension], ...]:
        """The extensions that a server implements."""
        return tuple(base for base in cls.__mro__ if issubclass(base, Extension) and "id" in vars(base))

    @classmethod
    def range(cls, versions: str) -> Requirement[Self]:
        """The profile in another range of versions than the installed one's: `Browser.range("^1.1")`."""
        return Requirement(cls, Range(versions))

    @staticmethod
    def load(source: str | Path | Mapping[str, Any], *, parent: type[Profile] | None = None) -> type[Profile]:
        """The profile of a document, used as one defined by a class is, untyped.

        Args:
            source: A `profile.json` (reading it is the only I/O of this package), or its parsed content.
            parent: The profile that it extends, if it extends one.

        Raises:
            ProfileError: The file isn't canonical JSON or isn't a profile; the message names the place.
        """
        if isinstance(source, Mapping):
            document: Any = source
        else:
            try:
                document = parse(Path(source).read_bytes())
            except OSError as error:
                raise ProfileError(f"{source} can't be read: {error.strerror}") from None
        if not isinstance(document, Mapping):
            raise ProfileError(f"{source} holds no JSON object")
        definition = Definition.from_document(
            cast("Mapping[str, Any]", document), parent=parent.definition if parent else None
        )
        members: dict[str, Any] = {"__doc__": definition.description, "__module__": __name__}
        for part in definition.parts.values():
            if part.kind != "event":
                members[part.method] = _untyped(part)
        bases = (parent or Profile,)
        return cast("type[Profile]", _new_class(definition.name.title(), bases, members, document=definition))

    def using(
        self,
        *,
        key: str | None = None,
        timeout: float | None = None,
        instance: str | None = None,
        authorized: Iterable[str] = (),
        ext: Mapping[str, Any] | None = None,
    ) -> Self:
        """The same connection with options for the calls made through it.

        Args:
            key: The idempotency key of one logical call of a `once` operation.
            timeout: Seconds before the call counts as timed out.
            instance: Which instance of a server that has several.
            authorized: Members of guarded operations that these calls may use.
            ext: Arguments of extensions, by extension id.

        Raises:
            InvalidArgument: The key is empty, or the timeout isn't positive.
        """
        if key == "":
            raise InvalidArgument(
                "the idempotency key is empty", hint="leave it out, and each call gets one of its own"
            )
        if timeout is not None and timeout <= 0:
            raise InvalidArgument(f"the timeout is {timeout:g} s", hint="give a positive number of seconds")
        options = {"key": key, "timeout": timeout, "instance": instance, "ext": ext}
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if members := tuple(authorized):
            given["authorized"] = members
        return self._connected().using(self, given)

    async def describe(self) -> Mapping[str, Any]:
        """What stands behind the connection: `connection.describe`."""
        return await self._connected().describe()

    async def look(self, moment: str = "ask") -> Mapping[str, Any]:
        """Every read without required arguments that is marked for a moment: `turn`, `effect` or `ask`."""
        return await self._connected().look(moment)

    @overload
    def events(
        self,
        kind: type[E],
        /,
        *more: type[E],
        cursor: str | None = None,
        records: Literal[False] = False,
        **arguments: Any,
    ) -> AsyncGenerator[E, None]: ...

    @overload
    def events(
        self, kind: type[E], /, *more: type[E], cursor: str | None = None, records: Literal[True], **arguments: Any
    ) -> AsyncGenerator[Told[E], None]: ...

    def events(
        self,
        kind: type[Event],
        /,
        *more: type[Event],
        cursor: str | None = None,
        records: bool = False,
        **arguments: Any,
    ) -> AsyncGenerator[Any, None]:
        """Events of some kinds as they come, without end, each happening once and in order, over gaps of a minute.

        Two events tell of the same happening where they have the same id, the same `happening` (the server's, or the
        event class's own), or, from a server that says none, the same kind, instance, moment and payload.

        Args:
            kind, more: Event classes of the profile.
            cursor: Goes on after a place: `Told.cursor` of the event that was handled last, or a window's. Without one,
                durable events come from the oldest that is kept, live ones from now on.
            records: Give `Told` records, with cursor, id, time and what extensions add, instead of the events alone.
            arguments: What narrows the kinds, by their `Filter`: each has to know each.

        Raises:
            Disconnected: The connection was away for longer than a minute; `details["cursor"]` says where to go on.
            HotplugError: Events were missed: the cursor has expired.
        """
        told = self._connected().events((kind, *more), arguments, cursor)
        return told if records else _events_of(told)

    def health(self) -> Health:
        """Whether events can arrive now: `up` only while subscriptions are answered.

        A connection that ended or fell silent is no longer `up` after 5 seconds at the most. This itself asks nothing:
        it says what the open subscriptions have seen, and `idle` where none has asked for 4 seconds, because there is
        none or its loop is busy with an event.
        """
        return self._connected().health()

    def window(self, *, budget_ms: int = 10_000) -> AbstractAsyncContextManager[Any]:
        """A stretch of time in which live events are kept: `async with app.window() as window`."""
        return self._connected().window(budget_ms)

    def claim(
        self, statement: str, *conditions: Any, within: Any = "2s", quiet: Any = None
    ) -> AbstractAsyncContextManager[Claimed]:
        """Write a claim down, act, and get its verdict.

        `async with app.claim("the order is placed", net("POST /orders 201").exactly(1), within="5s") as claim:`
        Entering opens a window and writes the claim down; leaving waits until things have settled, closes the window,
        and judges. Where acting fails with an error of the connection, the claim is judged all the same.

        Args:
            conditions: Conditions (`net(…).exactly(1)`) that have to hold together, and constraints of the window.
            within: How long after the last action it may take to come true: `"5s"`, seconds, or a timedelta.
            quiet: What something late could spoil (`exactly`, `at_most`, `absent`, facts, constraints) is watched for
                all of `within`; with this, only until nothing new that bears on it has come for so long.

        Raises:
            InvalidArgument: It says nothing, or names nothing that could be evaluated.
        """
        return self._connected().claim(statement, conditions, within, quiet)

    def claims(self, *, within: Any = "2s", quiet: Any = None) -> AbstractAsyncContextManager[ClaimWindow]:
        """A window for several claims: `async with app.claims() as window`, then `window.claim(…)`; see `claim`.

        A claim that is written after something was done in the window is recorded as such, and never proved.
        """
        return self._connected().claims(within, quiet)

    def with_witness(self, *witnesses: Any) -> Self:
        """The same connection with witnesses, which look in every window that is opened through it."""
        return self._connected().with_witness(self, witnesses)

    def recorded(self) -> AbstractAsyncContextManager[Any]:
        """Keep every window from here on: `async with app.recorded() as recording`, then `recording.save(path)`."""
        return self._connected().recorded()

    def _connected(self) -> Caller:
        if self._caller is None:
            raise HotplugError(
                f"{type(self).__name__} is a server, not a connection", hint="connect to it: async with connect(…) as …"
            )
        return self._caller

    _emitter: Any = None
    """Of the runtime that was made last."""
    _emitters: tuple[Any, ...] = ()
    """Of the runtimes that are open: one object may serve several connections in a process."""

    async def emit(self, event: Event, *extras: Model, happening: str | None = None) -> None:
        """Tell whoever listens: from a server's own methods (events get the action's id), or from outside of any call.

        Args:
            extras: What the server's extensions add to the event (`@extends` models), under `ext[id]` of its payload.
            happening: What it tells of, by a name that is the same each time and in every kind of event that tells of
                it; default: `event.happening()`. A second event of the same kind about it is not told.

        Raises:
            HotplugError: The server isn't attached or running yet; or an extra is none of its extensions' for this
                kind of event.
        """
        if self._emitter is None:
            raise HotplugError(f"{type(self).__name__} isn't attached to a server yet, nobody can be told")
        kept: set[Any] = set()
        for emitter in self._emitters or (self._emitter,):
            await emitter(event, extras, happening, kept)


@dataclass(frozen=True)
class Requirement(Generic[P]):
    """A profile or an extension in a range of versions, passed where the profile itself could be."""

    contract: type[P]
    versions: Range


class Extension(Contract):
    """A vendor's versioned, namespaced additions; it can never change a profile.

    `class SlackBlocks(Extension, id="com.slack.blocks", version="3.0.0", requires={"chat": "^1"})`.
    Its operations stand under its id; `@extends("chat.post")` models add optional fields under `ext[id]`.

    Raises:
        ProfileError: At definition, where it would change a profile, has a bad id, or makes anything required.
    """

    id: ClassVar[str]
    version: ClassVar[str]
    requires: ClassVar[Mapping[str, str]] = {}
    extras: ClassVar[Mapping[str, Extra]] = {}

    def __init_subclass__(
        cls,
        *,
        id: str | None = None,  # noqa: A002  # the word of the wire
        version: str | None = None,
        requires: Mapping[str, str] | None = None,
        **rest: Any,
    ) -> None:
        super().__init_subclass__(**rest)
        if id is None:
            return
        if not _EXTENSION_ID.fullmatch(id):
            raise ProfileError(
                f"{id!r} is no id of an extension",
                hint="a reverse domain and a name, three labels at least: com.slack.blocks",
            )
        if version is None:
            raise ProfileError(f"{id} has no version", hint='add version="1.0.0"')
        parse_version(version)
        if not requires:
            raise ProfileError(f"{id} requires no profile", hint='add requires={"chat": "^1"}')
        for range_ in requires.values():
            Range(range_)
        cls.id, cls.version, cls.requires = id, version, dict(requires)
        cls.parts = cls._collect(id)
        for part in cls.parts.values():
            if part.flags.facet is not None:
                raise ProfileError(f"{part.name}: an extension has no facets")
        cls.extras = cls._collect_extras(id)

    @classmethod
    def _collect_extras(cls, id_: str) -> dict[str, Extra]:
        found: dict[str, Extra] = {}
        for member in vars(cls).values():
            part = getattr(member, EXTRA, None)
            if part is None:
                continue
            owner = part.partition(".")[0]
            if owner not in cls.requires:
                raise ProfileError(
                    f"{id_} extends {part}, and doesn't require {owner}", hint=f'add "{owner}" to requires='
                )
            model = cast("type[Model]", member)
            needed = [name for name, field in model.model_fields.items() if field.is_required()]
            if needed:
                raise ProfileError(
                    f"{id_} makes {', '.join(map(wire_name, needed))} required in {part}",
                    hint="an extension only adds optional fields",
                )
            if part in found:
                raise ProfileError(f"{id_} extends {part} twice")
            found[part] = Extra(part, model)
            setattr(model, EXTENSION, id_)
        return found

    @classmethod
    def implemented_by(cls, server: type) -> frozenset[str]:
        """The wire names of its operations that a server overrides.

        Raises:
            ProfileError: A required one is left out.
        """
        done = {
            part.name
            for part in cls.parts.values()
            if getattr(server, part.method, None) is not getattr(cls, part.method)
        }
        missing = [
            part.name
            for part in cls.parts.values()
            if part.flags.required and part.kind != "event" and part.name not in done
        ]
        if missing:
            raise ProfileError(f"{server.__name__} doesn't implement {', '.join(missing)} of {cls.id}")
        return frozenset(done)

    @classmethod
    def range(cls, versions: str) -> tuple[type[Extension], Range]:
        """The extension in a range of versions: `SlackBlocks.range("^3")`."""
        return cls, Range(versions)

    @classmethod
    def on(cls, connection: Profile) -> Self:
        """The extension's operations on a connection: `SlackBlocks.on(team).post(…)`.

        Raises:
            Unsupported: The server doesn't declare the extension.
        """
        caller: Caller | None = getattr(connection, "_caller", None)
        if caller is None:
            raise Unsupported(f"{type(connection).__name__} is no connection, so {cls.id} can't be used on it")
        return caller.extension(cls)


async def _events_of(told: AsyncGenerator[Told[E], None]) -> AsyncGenerator[E, None]:
    async with aclosing(told):
        async for one in told:
            yield one.event


def _docstring(cls: type, name: str) -> str:
    import inspect

    text = inspect.cleandoc(cls.__doc__ or "")
    if not text:
        raise ProfileError(
            f"{name} has no docstring",
            hint="say what the kind of thing is, and why each core part passes the plug-in test",
        )
    return text


def _ref_kinds(name: str, schemas: Iterable[JsonSchema]) -> dict[str, RefKind]:
    """The kinds of refs in schemas that stand under a profile's name."""
    kinds: dict[str, RefKind] = {}
    classes = {ref.kind: ref for ref in _subclasses(Ref)}
    for schema in schemas:
        for node in subschemas(schema):
            kind = node.get("x-ref")
            if isinstance(kind, str) and kind.startswith(f"{name}."):
                ref = classes.get(kind, Ref)
                kinds[kind] = RefKind(volatile=ref.volatile, public=ref.public)
    return kinds


def _subclasses(cls: type[Ref]) -> Iterable[type[Ref]]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _untyped(part: Part) -> Any:
    async def call(self: Profile, **arguments: Any) -> Any:
        raise NotImplementedError(f"{part.name} is not implemented by {type(self).__name__}")

    call.__name__ = part.method
    call.__doc__ = part.description
    return call


def _new_class(name: str, bases: tuple[type, ...], members: dict[str, Any], **keywords: Any) -> type:
    import types

    return types.new_class(name, bases, keywords, lambda namespace: namespace.update(members))
