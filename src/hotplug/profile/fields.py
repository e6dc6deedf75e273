"""What stands in the inputs and outputs of a part: models, refs, targets, receipts, secrets, blobs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

__all__ = [
    "INLINE_BLOB_LIMIT",
    "Blob",
    "Duration",
    "InFacet",
    "Locator",
    "Masked",
    "Model",
    "Patch",
    "Receipt",
    "Ref",
    "RefSeal",
    "Secret",
    "Sensitive",
    "Target",
    "in_facet",
    "receipt",
    "reveal",
    "secret",
    "wire_name",
]

T = TypeVar("T")

INLINE_BLOB_LIMIT = 64 * 1024
"""Bytes up to which a blob's content is carried in the message; beyond, by handle."""


def wire_name(name: str) -> str:
    """The wire name of a Python name: camelCase, a trailing underscore dropped (`from_` is `from`)."""
    return to_camel(name.rstrip("_"))


class Model(BaseModel):
    """A structure of a profile: immutable, snake_case in Python, camelCase on the wire."""

    model_config = ConfigDict(
        alias_generator=wire_name,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        frozen=True,
        protected_namespaces=(),
    )


class RefSeal(Protocol):
    """Turns a handle of a server into the ref that callers see, and back.

    Passed to shapes by the server's runtime; without one, refs pass as they are, as they do at a client.
    """

    def seal(self, kind: str, handle: str, *, volatile: bool) -> str: ...

    def unseal(self, kind: str, ref: str, *, volatile: bool) -> str: ...


class Ref(str):
    """An opaque handle minted by a server: a string that only this server can read.

    Subclass it with a kind: `class Channel(Ref, kind="chat.channel", public=True)`.
    A `volatile` ref dies with what it names; a `public` one may be written into documents.
    """

    __slots__ = ()

    kind: ClassVar[str] = ""
    volatile: ClassVar[bool] = False
    public: ClassVar[bool] = False

    def __init_subclass__(cls, *, kind: str = "", volatile: bool = False, public: bool = False) -> None:
        super().__init_subclass__()
        if kind:
            cls.kind, cls.volatile, cls.public = kind, volatile, public

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        def read(value: str, info: core_schema.ValidationInfo[Any]) -> Ref:
            seal = _seal(info.context)
            return cls(seal.unseal(cls.kind, value, volatile=cls.volatile) if seal else value)

        def write(value: str, info: core_schema.SerializationInfo[Any]) -> str:
            seal = _seal(info.context)
            return seal.seal(cls.kind, value, volatile=cls.volatile) if seal else str(value)

        return core_schema.with_info_after_validator_function(
            read,
            core_schema.str_schema(min_length=1),
            serialization=core_schema.plain_serializer_function_ser_schema(write, info_arg=True, when_used="always"),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        marks = {"x-volatile": True} if cls.volatile else {}
        return {"type": "string", "minLength": 1, "x-ref": cls.kind, **marks}


def _seal(context: Any) -> RefSeal | None:
    return cast("dict[str, RefSeal]", context).get("refs") if isinstance(context, dict) else None


class Receipt(Model):
    """What an effectful operation returns: it was dispatched, never that it worked.

    Events that the action causes carry its `action_id`. The runtime fills it in.
    """

    model_config = ConfigDict(json_schema_extra={"x-receipt": True})

    action_id: str
    dispatched: Literal[True] = True
    at: str
    """When it was dispatched: RFC 3339 in UTC."""


_PENDING = Receipt(action_id="pending", at="pending")


def receipt() -> Any:
    """The default of an output's `receipt` field, so that a server's author never writes one.

    `receipt: Receipt = receipt()`; the runtime puts the real one in before the result leaves.
    """
    return _PENDING


class Locator(TypedDict, total=False):
    """Names an element by what it is; one that matches several is refused with `ambiguous`."""

    role: str
    name: str
    text: str
    label: str
    test_id: str
    exact: bool


class _Target(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(alias_generator=wire_name, extra="forbid")  # type: ignore[misc]

    ref: str
    role: str
    name: str
    text: str
    label: str
    test_id: str
    exact: bool


class _TargetRule:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        def exactly_one(value: dict[str, Any]) -> dict[str, Any]:
            if not value.keys() - {"exact"}:
                raise ValueError(
                    "a target is a ref or a locator, and this is neither: give ref, role, name, text, label or testId"
                )
            if "ref" in value and len(value) > 1:
                raise ValueError("a target is either a ref or a locator, and this has both: leave one out")
            return value

        return core_schema.no_info_after_validator_function(exactly_one, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        found = handler.resolve_ref_schema(handler(schema))
        return {**found, "minProperties": 1, "x-target": True}


Target: TypeAlias = Annotated[_Target, _TargetRule()]
"""What an operation on an interface acts on: `{"ref": …}` or a locator such as `{"role": "button", "name": "Pay"}`."""


class Secret:
    """Names a secret of the host; the value is put in at the last moment and stands nowhere else."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if not name:
            raise ValueError("a secret needs a name")
        self.name = name

    def __repr__(self) -> str:
        return f"secret({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.name == self.name

    def __hash__(self) -> int:
        return hash((Secret, self.name))


def secret(name: str) -> Secret:
    """The secret called `name`, to be passed where a `Sensitive` field is."""
    return Secret(name)


class Masked(Generic[T]):
    """A sensitive value as a server gets it: shows nothing until it is unwrapped by name."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        return "Masked(…)"

    __str__ = __repr__


class _SensitiveRule:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        inner = handler.generate_schema(get_args(source)[0])

        def read(value: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
            if isinstance(value, Secret | Masked):
                return cast("Secret | Masked[Any]", value)
            if isinstance(value, dict):
                named = cast("dict[str, Any]", value)
                if set(named) == {"secret"} and isinstance(named["secret"], str) and named["secret"]:
                    return Secret(named["secret"])
            return Masked(validate(value))

        def write(value: Any) -> Any:
            if isinstance(value, Secret):
                return {"secret": value.name}
            return cast("Masked[Any]", value).reveal() if isinstance(value, Masked) else value

        return core_schema.no_info_wrap_validator_function(
            read,
            inner,
            serialization=core_schema.plain_serializer_function_ser_schema(write),
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        inner = handler(cast("dict[str, Any]", schema)["schema"])
        named = {
            "type": "object",
            "properties": {"secret": {"type": "string", "minLength": 1}},
            "required": ["secret"],
            "additionalProperties": False,
        }
        return {"anyOf": [inner, named], "x-sensitive": True}


Sensitive: TypeAlias = Annotated[T | Secret | Masked[T], _SensitiveRule()]
"""A value that shows nowhere: callers give a `T` or `secret("NAME")`, servers get it masked and `reveal` it."""


def reveal(value: T | Secret | Masked[T]) -> T:
    """The value of a sensitive field, at the server that needs it.

    Raises:
        ValueError: It is still the name of a secret: no host has put the value in.
    """
    if isinstance(value, Secret):
        raise ValueError(f"the secret {value.name!r} has not been resolved by a host")
    return cast("Masked[T]", value).reveal() if isinstance(value, Masked) else value


class Blob(Model):
    """Content by digest: inline in base64 under 64 KiB, else by a handle of the server."""

    model_config = ConfigDict(json_schema_extra={"x-blob": True})

    digest: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
    media_type: str = "application/octet-stream"
    size: int
    data: str | None = None
    handle: str | None = None


class _Milliseconds:
    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "integer", "minimum": 0, "x-duration": "ms"}

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.int_schema(ge=0)


Duration: TypeAlias = Annotated[int, _Milliseconds()]
"""A length of time in whole milliseconds."""


class _PatchRule:
    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "x-patch": True}


Patch: TypeAlias = Annotated[dict[str, object], _PatchRule()]
"""What differs from something else: properties with new values, null for "without" (elsewhere null is left out)."""


class InFacet:
    """Marks a field that exists only where the server declares the facet; the schema says `x-facet`."""

    __slots__ = ("facet",)

    def __init__(self, facet: str) -> None:
        self.facet = facet

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "x-facet": self.facet}


def in_facet(facet: str) -> InFacet:
    """`Annotated[T | None, in_facet("recurrence")]`: a field of that facet."""
    return InFacet(facet)
