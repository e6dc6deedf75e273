"""The shape of an input, an output or a payload: reads what came over the wire, writes what goes out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json

from hotplug.errors import InvalidArgument
from hotplug.profile.fields import RefSeal
from hotplug.profile.schema import JsonSchema, map_refs, plain, sensitive_fields, subschemas

__all__ = ["DocumentShape", "Shape", "TypedShape", "without_nulls"]

_SHOWN = 80
"""Characters of a wrong value that an error message repeats."""


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

    def wire(self, value: Any, *, refs: RefSeal | None = None, notes: list[str] | None = None) -> dict[str, Any]:
        """Arguments checked as `read` does, but kept in their wire form (refs unsealed)."""
        ...


def without_nulls(value: Any) -> Any:
    """The value with every member that is null left out: models send null for what they mean to leave out."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in cast("dict[Any, Any]", value).items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in cast("list[Any]", value)]
    return value


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
        context = {"refs": refs} if refs else None
        try:
            text = to_json(value, inf_nan_mode="strings")
        except (PydanticSerializationError, ValueError) as error:
            raise InvalidArgument(f"the arguments are not JSON: {error}") from None
        extra = "forbid" if strict else "ignore"
        try:
            return self._adapter.validate_json(
                text, strict=True, context=context, extra=extra, by_alias=True, by_name=False
            )
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
            reread = _read_json_texts(value, faults) if strict else None
            if reread is None:
                raise _invalid(faults, self._sensitive) from None
        try:
            found = self._adapter.validate_json(
                to_json(reread[0]), strict=True, context=context, extra=extra, by_alias=True, by_name=False
            )
        except ValidationError:
            raise _invalid(faults, self._sensitive) from None
        if notes is not None:
            notes.extend(f"{path} arrived as JSON text and was read as what it holds" for path in reread[1])
        return found

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
    def _ref_fields(self) -> bool:
        return any("x-ref" in node for node in subschemas(self.schema))

    def read(
        self, value: Any, *, refs: RefSeal | None = None, strict: bool = True, notes: list[str] | None = None
    ) -> Any:
        errors = self._validate(value)
        if errors:
            found = [
                {"path": ".".join(str(step) for step in error.absolute_path), "problem": str(error.message)[:200]}
                for error in errors
            ]
            raise InvalidArgument(
                "; ".join(f"{fault['path'] or 'arguments'}: {fault['problem']}" for fault in found[:5]),
                details={"errors": found},
            )
        return self._changed(value, refs.unseal) if refs and self._ref_fields else value

    def write(self, value: Any, *, refs: RefSeal | None = None, checked: bool = True) -> Any:
        kept = without_nulls(value)
        return self._changed(kept, refs.seal) if refs and self._ref_fields else kept

    def wire(self, value: Any, *, refs: RefSeal | None = None, notes: list[str] | None = None) -> dict[str, Any]:
        return self.read(value, refs=refs, notes=notes)

    def _changed(self, value: Any, change: Callable[..., str]) -> Any:
        def one(schema: JsonSchema, ref: Any) -> Any:
            return (
                change(schema["x-ref"], ref, volatile=schema.get("x-volatile") is True) if isinstance(ref, str) else ref
            )

        return map_refs(self.schema, value, one)


_WANTS_STRUCTURE = frozenset({"model_type", "dict_type", "list_type", "tuple_type", "model_attributes_type"})


def _read_json_texts(value: Any, faults: Sequence[ErrorDetails]) -> tuple[Any, list[str]] | None:
    """The value with strings replaced by what they hold, where every fault is a string in the place of an object or list.

    A string where the schema allows one raised no fault, so it is never touched.
    """
    if not faults or any(
        fault["type"] not in _WANTS_STRUCTURE or not isinstance(fault["input"], str) for fault in faults
    ):
        return None
    copy = json.loads(to_json(value))
    paths: list[str] = []
    for fault in faults:
        steps = fault["loc"]
        if not steps:
            return None
        holder = copy
        try:
            for step in steps[:-1]:
                holder = holder[step]
            parsed = json.loads(holder[steps[-1]])
        except (ValueError, KeyError, IndexError, TypeError):
            return None
        if not isinstance(parsed, dict | list):
            return None
        holder[steps[-1]] = parsed
        paths.append(".".join(map(str, steps)))
    return copy, paths


_UNION_STEP = re.compile(r"[\[\]()]|^(function|tagged|constrained|str|int|float|bool|nullable|lax|json)")


def _invalid(faults: Sequence[ErrorDetails], sensitive: frozenset[str]) -> InvalidArgument:
    found: list[dict[str, str]] = []
    for fault in faults:
        steps = [str(step) for step in fault["loc"] if isinstance(step, int) or not _UNION_STEP.search(step)]
        path = ".".join(steps)
        problem = _problem(fault, hidden=any(step in sensitive for step in steps))
        if {"path": path, "problem": problem} not in found:
            found.append({"path": path, "problem": problem})
    text = "; ".join(f"{fault['path'] or 'arguments'}: {fault['problem']}" for fault in found[:5])
    return InvalidArgument(text, details={"errors": found})


def _problem(fault: Mapping[str, Any], *, hidden: bool) -> str:
    kind = fault["type"]
    if kind == "missing":
        return "is required and missing"
    if kind == "extra_forbidden":
        return "is not an argument here"
    message = str(fault["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if hidden:
        return f"{message} (the value is sensitive and not shown)"
    shown = repr(fault["input"])
    return f"{message}, not {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"
