"""The parts of a contract: operations, reads and events, and the decorators that make them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NotRequired, Required, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ConfigDict
from typing_extensions import TypedDict, Unpack

from hotplug.errors import ProfileError
from hotplug.profile.fields import Model, Receipt, wire_name
from hotplug.profile.schema import patch_fields, sensitive_fields
from hotplug.profile.shape import Shape, TypedShape

__all__ = [
    "Event",
    "Facet",
    "Flags",
    "Look",
    "Part",
    "PartKind",
    "Replay",
    "event",
    "flags_of",
    "operation",
    "read",
    "read_event",
    "read_method",
]

PartKind = Literal["operation", "read", "event"]
Look = Literal["turn", "effect", "ask"]
Replay = Literal["live", "durable"]

F = TypeVar("F", bound=Callable[..., Any])
E = TypeVar("E", bound="type[Event]")

_MARK = "__hotplug_part__"


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What a part is marked with; the table of the page profile-model."""

    kind: PartKind
    name: str | None = None
    """The wire name; None means `<profile>.<method>`."""
    required: bool = True
    facet: str | None = None
    without: str | None = None
    """One sentence: what a user loses when the part is missing."""
    effects: bool = False
    once: bool = False
    guarded: bool = False
    eager: bool = False
    timeout_ms: int | None = None
    sense: str | None = None
    look: Look = "ask"
    replay: Replay = "live"
    thread: str | None = None


@dataclass(frozen=True, kw_only=True)
class Part:
    """One operation, read or event of a contract."""

    name: str
    """The wire name, such as `calendar.create`."""
    method: str
    """The Python name in the profile's class."""
    description: str
    flags: Flags
    input: Shape
    """Arguments of an operation or read; the filter of an event."""
    output: Shape
    """Result of an operation or read; the payload of an event."""
    signature: inspect.Signature | None = None
    type: type[Event] | None = field(default=None, repr=False)

    @property
    def kind(self) -> PartKind:
        return self.flags.kind

    @cached_property
    def patches(self) -> frozenset[str]:
        """Names of arguments that hold patches, in which null means "without"."""
        return patch_fields(self.input.schema)

    @cached_property
    def sensitive(self) -> frozenset[str]:
        """Names of arguments whose values must never be shown."""
        return sensitive_fields(self.input.schema)

    @property
    def core(self) -> bool:
        """Whether every implementation has it."""
        return self.flags.required and self.flags.facet is None


@dataclass(frozen=True)
class Facet:
    """A named optional job: declared by its exact version, never assumed."""

    version: str
    description: str
    without: str
    """One sentence: what a user loses when it is missing."""


class Event(Model):
    """The payload of an event; a nested class `Filter` gives the arguments that narrow a subscription."""

    class Filter(Model):
        """No arguments."""

    part: ClassVar[Flags | None] = None

    def happening(self) -> str | None:
        """What the event tells of, the same for every event that tells of it, of whatever kind; None if it can't say.

        A server keeps the second event of one kind about a happening out of its log, and who listens to several kinds
        is told of a happening once. So a revision that may come back (a digest of the content) is no part of it:
        a happening that was told once is not told again. Override it where the payload names one: the message that was
        posted, for its being posted and for its mentioning somebody.
        """
        return None


def operation(
    name: str | None = None,
    /,
    *,
    required: bool = True,
    facet: str | None = None,
    without: str | None = None,
    effects: bool = False,
    once: bool = False,
    guarded: bool = False,
    eager: bool = False,
    timeout_ms: int | None = None,
) -> Callable[[F], F]:
    """Do something: a method of a profile.

    Args:
        name: The wire name; `<profile>.<method>` by default.
        required: False makes it optional; calling it where it is missing is `unsupported`.
        facet: The facet that it belongs to: all parts of a facet, or none.
        without: What a user loses when it is missing, in one sentence; optional parts need it.
        effects: It changes something outside the connection, returns a receipt, and effect looks follow.
        once: It takes an idempotency key, and a repeat gets the first outcome.
        guarded: Destructive or costly: refused unless the call carries an authorisation.
        eager: Shown to a model up front.
        timeout_ms: The default time limit.
    """
    return _mark(
        Flags(
            kind="operation",
            name=name,
            required=required,
            facet=facet,
            without=without,
            effects=effects,
            once=once,
            guarded=guarded,
            eager=eager,
            timeout_ms=timeout_ms,
        )
    )


def read(
    name: str | None = None,
    /,
    *,
    sense: str,
    look: Look = "ask",
    required: bool = True,
    facet: str | None = None,
    without: str | None = None,
    eager: bool = False,
    timeout_ms: int | None = None,
) -> Callable[[F], F]:
    """Look at something: a method that changes nothing and speaks for an evidence channel.

    Args:
        sense: The evidence channel that it speaks for.
        look: `turn` (before each model turn), `effect` (after effectful operations) or `ask`.
    """
    return _mark(
        Flags(
            kind="read",
            name=name,
            sense=sense,
            look=look,
            required=required,
            facet=facet,
            without=without,
            eager=eager,
            timeout_ms=timeout_ms,
        )
    )


def event(
    name: str,
    /,
    *,
    sense: str,
    replay: Replay = "live",
    thread: str | None = None,
    required: bool = True,
    facet: str | None = None,
    without: str | None = None,
) -> Callable[[E], E]:
    """Be told of something: a class of a profile, its fields the payload, its nested `Filter` the arguments.

    Args:
        replay: `live` (only while a window is open) or `durable` (from a cursor, across restarts).
        thread: The payload field that names the conversation it belongs to.
    """
    flags = Flags(
        kind="event",
        name=name,
        sense=sense,
        replay=replay,
        thread=thread,
        required=required,
        facet=facet,
        without=without,
    )

    def mark(cls: E) -> E:
        cls.part = flags
        return cls

    return mark


def _mark(flags: Flags) -> Callable[[F], F]:
    def mark(function: F) -> F:
        setattr(function, _MARK, flags)
        return function

    return mark


def flags_of(member: object) -> Flags | None:
    """The flags of a class member, None where it is no part."""
    if inspect.isclass(member) and issubclass(member, Event):
        return member.part
    return getattr(member, _MARK, None)


def read_method(owner: str, method: str, function: Any, flags: Flags, names: Mapping[str, Any]) -> Part:
    """The part that a decorated method of a contract's class defines.

    Args:
        owner: The name of the profile or the id of the extension.
        names: Names that annotations may use besides the function's globals.

    Raises:
        ProfileError: The method can't be a part as it stands; the message says what to change.
    """
    where = f"{owner}: {method}"
    if not inspect.iscoroutinefunction(function):
        raise ProfileError(f"{where} is not async", hint="write `async def`, a part may have to wait")
    try:
        hints = get_type_hints(function, localns=dict(names), include_extras=True)
    except NameError as error:
        raise ProfileError(
            f"{where}: {error}", hint="annotations must name types of the module or of the profile's class"
        ) from None
    signature = inspect.signature(function)
    fields: dict[str, Any] = {}
    for parameter in list(signature.parameters.values())[1:]:
        hint = hints.get(parameter.name)
        if hint is None:
            raise ProfileError(f"{where}: the parameter {parameter.name!r} has no type", hint="annotate it")
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            fields.update(_unpacked(where, hint))
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise ProfileError(f"{where}: *{parameter.name} can't be written as JSON", hint="take a list")
        elif parameter.default is inspect.Parameter.empty:
            fields[parameter.name] = Required[hint]
        else:
            fields[parameter.name] = NotRequired[hint]
    result = hints.get("return")
    if not (inspect.isclass(result) and issubclass(result, Model)):
        raise ProfileError(f"{where} returns {result!r}", hint="return a subclass of hotplug.profile.Model")
    _check_receipt(where, flags, result)
    return Part(
        name=flags.name or f"{owner}.{wire_name(method)}",
        method=method,
        description=inspect.getdoc(function) or "",
        flags=flags,
        input=TypedShape(_typed_dict(f"{method}Arguments", fields)),
        output=TypedShape(result, output=True),
        signature=signature,
    )


def _unpacked(where: str, hint: Any) -> dict[str, Any]:
    if get_origin(hint) is not Unpack:
        raise ProfileError(f"{where}: **{hint} has no named fields", hint="write `**fields: Unpack[SomeTypedDict]`")
    source = get_args(hint)[0]
    fields: dict[str, Any] = {}
    for name, kind in get_type_hints(source, include_extras=True).items():
        if get_origin(kind) in {Required, NotRequired}:
            fields[name] = kind
        else:
            fields[name] = Required[kind] if name in source.__required_keys__ else NotRequired[kind]
    return fields


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    made: Any = TypedDict(name, fields)  # type: ignore[operator]  # made at run time from a signature
    # What isn't known is written as it stands, so that a client's slip is refused by the server and not dropped;
    # reading refuses it (`TypedShape.read`), and the schema is closed (`schema.plain`).
    made.__pydantic_config__ = ConfigDict(alias_generator=wire_name, extra="allow")
    return made


def _check_receipt(where: str, flags: Flags, result: type[Model]) -> None:
    holder = result.model_fields.get("receipt")
    has = holder is not None and holder.annotation is Receipt
    if flags.effects and not has:
        raise ProfileError(
            f"{where} has effects, and its output {result.__name__} has no receipt",
            hint="add the field `receipt: Receipt = receipt()`",
        )
    if flags.once and not flags.effects:
        raise ProfileError(f"{where} is `once` without `effects`", hint="only what changes something needs doing once")


def read_event(cls: type[Event], attribute: str) -> Part:
    """The part that a decorated event class of a contract defines."""
    flags = cls.part
    if flags is None or flags.name is None:
        raise ProfileError(
            f"the event {cls.__name__} has no name", hint='decorate it with `@event("profile.name", ...)`'
        )
    taken = sorted({"ext", "happening"} & {*cls.model_fields})
    if taken:
        raise ProfileError(
            f"{flags.name} has a field {taken[0]!r}",
            hint="`ext` is where extensions add to it, and `happening` is a method of every event: name it otherwise",
        )
    if flags.thread is not None and flags.thread not in {*cls.model_fields}:
        raise ProfileError(
            f"{flags.name}: thread={flags.thread!r} names no field of {cls.__name__}",
            hint=f"its fields are {', '.join(cls.model_fields)}",
        )
    return Part(
        name=flags.name,
        method=attribute,
        description=inspect.cleandoc(cls.__doc__ or ""),
        flags=replace(flags, thread=wire_name(flags.thread) if flags.thread else None),
        input=TypedShape(cls.Filter),
        output=TypedShape(cls, output=True),
        type=cls,
    )
