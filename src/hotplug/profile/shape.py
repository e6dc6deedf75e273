"""The shape of an input, an output or a payload: reads what came over the wire, writes what goes out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Protocol, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from hotplug.errors import InvalidArgument
from hotplug.profile.faults import (
    invalid,
    invalid_document,
    json_texts,
    read_json_texts,
    wants_structure,
    without_nulls,
)
from hotplug.profile.fields import RefSeal
from hotplug.profile.schema import JsonSchema, map_refs, patch_fields, plain, sensitive_fields, subschemas

__all__ = ["DocumentShape", "Shape", "TypedShape", "without_nulls"]


class Shape(Protocol):
    """What a part takes or gives, as a JSON Schema with a reader and a writer.

    `read` gives what a native server's method works on (typed values for a profile class, plain JSON for a document);
    `write` gives JSON. With `refs`, refs are unsealed on the way in and sealed on the way out.
    """

    @property
    def schema(self) -> JsonSchema: ...

    def read(
        self, value: Any, *, refs: RefSeal | None = None, strict: bool = True, notes: list[str] | None = None
    ) -> Any:
        """The value in Python.

        Args:
            strict: Unknown fields are refused (arguments); otherwise ignored (results of a newer server).
            notes: Gets a sentence for each argument that arrived as JSON text and was read as what it means.

        Raises:
            InvalidArgument: It doesn't fit; `details["errors"]` has a path and a problem for each fault.
        """
        ...

    def write(self, value: Any, *, refs: RefSeal | None = None, checked: bool = True) -> Any:
        """The value as JSON, fields that are None left out.

        Args:
            checked: What isn't of the shape raises; otherwise it is written as it is, and the reader judges.

        Raises:
            InvalidArgument: It can't be written as JSON, or isn't of the shape.
        """
        ...

    def settled(self, value: Any) -> Any:
        """Arguments as they were read: with JSON texts replaced by what they hold; raises as `read` does."""
        ...

    def wire(self, value: Any, *, refs: RefSeal | None = None, notes: list[str] | None = None) -> dict[str, Any]:
        """Arguments checked as `read` does, but kept in their wire form (refs unsealed)."""
        ...


class TypedShape:
    """A shape made from a Python type through pydantic."""

    def __init__(self, type_: Any, *, output: bool = False) -> None:
        self._type = type_
        self._output = output

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._type)

    @property
    def schema(self) -> JsonSchema:
        return self._schema

    @cached_property
    def _schema(self) -> JsonSchema:
        return plain(self._adapter.json_schema(by_alias=True, mode="validation"), output=self._output)

    @cached_property
    def _sensitive(self) -> frozenset[str]:
        return sensitive_fields(self.schema)

    def read(
        self, value: Any, *, refs: RefSeal | None = None, strict: bool = True, notes: list[str] | None = None
    ) -> Any:
        found, _, texts = self._read(value, refs, strict=strict)
        if notes is not None:
            notes.extend(f"{path} arrived as JSON text and was read as what it holds" for path in texts)
        return found

    def settled(self, value: Any) -> Any:
        return self._read(value, None, strict=True)[1]

    def _read(self, value: Any, refs: RefSeal | None, *, strict: bool) -> tuple[Any, Any, list[str]]:
        """What was read, what it was read from, and the places whose JSON text was read."""
        try:
            return self._parse(value, refs, strict=strict), value, []
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
        reread = json_texts(value, faults) if strict else None
        if reread is not None:
            with suppress(ValidationError):
                return self._parse(reread[0], refs, strict=True), *reread
        raise invalid(faults, self.schema, self._sensitive)

    def _parse(self, value: Any, refs: RefSeal | None, *, strict: bool) -> Any:
        try:
            text = to_json(value, inf_nan_mode="constants")
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"the arguments are not JSON: {_kind(error)}") from None
        if b"NaN" in text or b"Infinity" in text:
            _refuse_constants(value)
        return self._adapter.validate_json(
            text,
            strict=True,
            context={"refs": refs} if refs else None,
            extra="forbid" if strict else "ignore",
            by_alias=True,
            by_name=False,
        )

    def write(self, value: Any, *, refs: RefSeal | None = None, checked: bool = True) -> Any:
        context = {"refs": refs} if refs else None
        warnings = "error" if checked else "none"
        try:
            return self._adapter.dump_python(
                value, mode="json", by_alias=True, exclude_none=True, context=context, warnings=warnings
            )
        except PydanticSerializationError as error:
            # The library's message repeats values; where it stands is enough, and what it should be.
            place = re.findall(r"Expected `([^`]+)`.*?field_name='([^']+)'", str(error))
            text = "; ".join(f"{name} is no {wanted}" for wanted, name in place) or "it is not of the shape"
            raise InvalidArgument(f"it can't be written as JSON: {text}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"it can't be written as JSON: {_kind(error)}") from None

    def wire(self, value: Any, *, refs: RefSeal | None = None, notes: list[str] | None = None) -> dict[str, Any]:
        return self.write(self.read(value, refs=refs, notes=notes))


class DocumentShape:
    """A shape made from a JSON Schema: of a profile that exists only as a document."""

    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema

    @property
    def schema(self) -> JsonSchema:
        return self._schema

    @cached_property
    def _validate(self) -> Callable[[Any], list[Any]]:
        import jsonschema

        validator: Any = jsonschema.Draft202012Validator(self.schema)
        return lambda value: sorted(validator.iter_errors(value), key=lambda error: list(error.absolute_path))

    @cached_property
    def _sensitive(self) -> frozenset[str]:
        return sensitive_fields(self.schema)

    @cached_property
    def _patches(self) -> frozenset[str]:
        return patch_fields(self.schema)

    @cached_property
    def _ref_fields(self) -> bool:
        return any("x-ref" in node for node in subschemas(self.schema))

    def read(
        self, value: Any, *, refs: RefSeal | None = None, strict: bool = True, notes: list[str] | None = None
    ) -> Any:
        found, texts = self._checked(value, strict=strict)
        if notes is not None:
            notes.extend(f"{path} arrived as JSON text and was read as what it holds" for path in texts)
        return self._changed(found, refs.unseal) if refs and self._ref_fields else found

    def settled(self, value: Any) -> Any:
        return self._checked(value, strict=True)[0]

    def _checked(self, value: Any, *, strict: bool) -> tuple[Any, list[str]]:
        try:
            # What can't be JSON at all is found out here: the validator takes NaN for a number.
            to_json(value, inf_nan_mode="constants")
            _refuse_constants(value)
            errors = self._validate(value)
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"the arguments are not JSON: {_kind(error)}") from None
        if not errors:
            return value, []
        if strict and all(wants_structure(self.schema, error) for error in errors):
            reread = read_json_texts(value, [list(error.absolute_path) for error in errors])
            if reread is not None and not self._validate(reread[0]):
                return reread
        raise invalid_document(errors, self._sensitive)

    def write(self, value: Any, *, refs: RefSeal | None = None, checked: bool = True) -> Any:
        kept = without_nulls(value, self._patches)
        return self._changed(kept, refs.seal) if refs and self._ref_fields else kept

    def wire(self, value: Any, *, refs: RefSeal | None = None, notes: list[str] | None = None) -> dict[str, Any]:
        return self.read(value, refs=refs, notes=notes)

    def _changed(self, value: Any, change: Callable[..., str]) -> Any:
        def one(schema: JsonSchema, ref: Any) -> Any:
            return (
                change(schema["x-ref"], ref, volatile=schema.get("x-volatile") is True) if isinstance(ref, str) else ref
            )

        return map_refs(self.schema, value, one)


def _refuse_constants(value: Any) -> None:
    """Refuse NaN and the infinities, which JSON doesn't have."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgument(f"the arguments are not JSON: {value!r} is no number of JSON")
    if isinstance(value, Mapping):
        for item in cast("Mapping[Any, Any]", value).values():
            _refuse_constants(item)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            _refuse_constants(item)


def _kind(error: Exception) -> str:
    """What is wrong, without the library's repetition of the value."""
    text = str(error)
    if "surrogates" in text:
        return "half of a surrogate pair"
    if isinstance(error, RecursionError) or "depth" in text or "recursion" in text.lower():
        return "nested too deeply"
    return "a value of a kind that JSON doesn't have"
