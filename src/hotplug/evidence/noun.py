"""What every noun of the protocol can do: be read leniently, be written strictly, show its schema.

Read from a document, members that nobody here knows are kept and written back, never looked at; null is the same as
absent, except inside opaque values; nothing is coerced. Rules that tie members together stand twice: in the model,
and in `RULES` as JSON Schema, so that the published schema says them too.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self, cast

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, ErrorDetails

from hotplug.evidence.errors import EvidenceError
from hotplug.evidence.vocabulary import OPAQUE
from hotplug.evidence.wire import parse_json, path, write_json

__all__ = ["DIALECT", "Noun", "Schema", "only_if"]

Schema = dict[str, Any]
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def _wire_name(name: str) -> str:
    return to_camel(name.removesuffix("_"))


def only_if(member: str, condition: Schema) -> Schema:
    """A rule: the member is there exactly when the object fits the condition."""
    return {"if": condition, "then": {"required": [member]}, "else": {"not": {"required": [member]}}}


class Noun(BaseModel):
    """A thing that the protocol names: frozen, camelCase on the wire, snake_case here."""

    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=_wire_name, validate_by_name=True, validate_by_alias=True
    )

    RULES: ClassVar[tuple[Schema, ...]] = ()
    """What the members' types do not say, as JSON Schema."""
    NULL_IS_ABSENT: ClassVar[bool] = True
    _kept: ClassVar[frozenset[str]] = frozenset()  # the opaque members, by their name here
    _nullable: ClassVar[frozenset[str]] = frozenset()  # the others, by their name on the wire

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        fields = cls.model_fields.items()
        opaque = [(name, field) for name, field in fields if any(mark is OPAQUE for mark in field.metadata)]
        cls._kept = frozenset(name for name, _ in opaque)
        cls._nullable = frozenset(field.alias or name for name, field in fields if (name, field) not in opaque)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not cls.NULL_IS_ABSENT:
            return cast("object", value)
        members = cast("dict[str, Any]", value)
        if all(one is not None for one in members.values()):
            return members
        return {name: one for name, one in members.items() if one is not None or name not in cls._nullable}

    @classmethod
    def read(cls, document: object) -> Self:
        """The noun that a JSON value is.

        Raises:
            EvidenceError: It is none; `where` says at which place.
        """
        try:
            return cls.model_validate(document, by_alias=True, by_name=False)
        except ValidationError as error:
            raise _refusal(error, document) from None
        except RecursionError:
            raise EvidenceError("is nested too deeply to be read") from None

    @classmethod
    def read_text(cls, text: str | bytes) -> Self:
        """The noun that a JSON text holds.

        Raises:
            EvidenceError: It is no JSON, is ambiguous, or holds no such noun.
        """
        return cls.read(parse_json(text))

    def document(self, *, unknown: bool = True) -> dict[str, Any]:
        """The noun as a JSON object: what was given, without absent members.

        Args:
            unknown: Write back the members that nobody here knows; without them it fits the published schema.
        """
        given: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            if self.carries(name):
                value: Any = getattr(self, name)
                given[field.alias or name] = value if name in self._kept else _written(value, unknown)
        if unknown:
            given |= self.model_extra or {}
        return given

    def text(self) -> str:
        """The noun as one line of JSON."""
        return write_json(self.document())

    def carries(self, name: str) -> bool:
        """Whether a member (by its name here) was given; an opaque one may be given as null."""
        if getattr(self, name) is not None:
            return name in self.model_fields_set
        # An unknown member that is called as ours is here is in `model_fields_set`, too.
        return name in self._kept and name in self.model_fields_set and name not in (self.model_extra or {})

    @classmethod
    def published_schema(cls) -> Schema:
        """The closed JSON Schema (2020-12) of what `document` writes, without `$id`."""
        return {"$schema": DIALECT, **cls.model_json_schema(by_alias=True)}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        schema.pop("title", None)
        schema["description"] = inspect.cleandoc(cls.__doc__ or "").split("\n\nArgs:")[0]
        schema["additionalProperties"] = False
        schema["properties"] = {name: _member(one) for name, one in schema.get("properties", {}).items()}
        if cls.RULES:
            schema["allOf"] = list(cls.RULES)
        return reference


def _member(schema: Schema) -> Schema:
    """A member as it is published: it is left out, never null."""
    kept = {key: value for key, value in schema.items() if key != "title" and (key, value) != ("default", None)}
    if "anyOf" not in kept:
        return kept
    branches = [one for one in kept.pop("anyOf") if one != {"type": "null"}]
    return {**kept, **branches[0]} if len(branches) == 1 else {**kept, "anyOf": branches}


def _written(value: Any, unknown: bool) -> Any:
    if isinstance(value, Noun):
        return value.document(unknown=unknown)
    if isinstance(value, tuple):
        return [_written(one, unknown) for one in cast("tuple[Any, ...]", value)]
    return value


def _refusal(error: ValidationError, document: object) -> EvidenceError:
    found = [
        (path(_steps(fault["loc"], document)), _said(fault))
        for fault in error.errors(include_url=False, include_context=False)
    ]
    (where, problem), *more = found
    return EvidenceError(problem, where=where, more=tuple(more))


def _said(fault: ErrorDetails) -> str:
    message = fault["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    seen: Any = fault["input"]
    if isinstance(seen, str) and fault["type"] in ("literal_error", "value_error") and len(seen) <= 60:
        return f"{seen!r}: {message}"
    return message


def _steps(location: tuple[str | int, ...], document: object) -> list[str | int]:
    """The part of pydantic's location that lies in the document; it names branches of unions too."""
    steps: list[str | int] = []
    here: object = document
    for position, step in enumerate(location):
        if isinstance(step, int) and isinstance(here, list | tuple):
            items = cast("list[object]", here)
            here = items[step] if step < len(items) else None
            steps.append(step)
        elif isinstance(step, str) and isinstance(here, Mapping):
            members = cast("Mapping[str, object]", here)
            if step in members or position == len(location) - 1:
                here = members.get(step)
                steps.append(step)
    return steps
