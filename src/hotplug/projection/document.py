"""The projection document: YAML, validated, with the line of every part.

The models here are the document's shape and nothing else; `hotplug.projection.plan` compiles it. The JSON Schema of the
shape is published as `schemas/projection.schema.json`; a test holds it to the models.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

from hotplug.errors import CODES, ProjectionError
from hotplug.projection import fingerprint, patterns
from hotplug.projection.codecs import CODECS
from hotplug.projection.located import Keys, Lines, located, place

__all__ = [
    "CodecSpec",
    "Coverage",
    "Document",
    "ErrorRule",
    "Fail",
    "Failure",
    "Operation",
    "RefSpec",
    "Refuse",
    "Sense",
    "Shape",
    "Source",
    "Step",
    "Upstream",
    "digest",
    "json_schema",
    "parse",
]

MAX_DOCUMENT: Final = 1024 * 1024
"""Characters of a document."""


MAX_MATCHED: Final = 64 * 1024
"""Characters of an answer that failure and error rules look at: Python's `re` has no time limit."""


def _known_code(code: str) -> str:
    if code not in CODES:
        raise ValueError(f"there is no code {code!r}{_nearest(code, CODES)}")
    return code


def _free_name(name: str) -> str:
    if name in ("input", "item"):
        raise ValueError(f"${name} is bound already, choose another name")
    return name


def _regex(pattern: str) -> str:
    patterns.checked(pattern)
    return pattern


Code: TypeAlias = Annotated[
    str, AfterValidator(_known_code), WithJsonSchema({"type": "string", "enum": sorted(CODES)}, mode="validation")
]
Regex: TypeAlias = Annotated[str, AfterValidator(_regex), Field(json_schema_extra={"format": "regex"})]
Digest: TypeAlias = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Version: TypeAlias = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$")]
Note: TypeAlias = Annotated[str, Field(min_length=1)]
Expression: TypeAlias = Annotated[str, Field(min_length=1, description="A JSONata expression.")]
Member: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*(\.[a-zA-Z][A-Za-z0-9_-]*)+$")]
StepName: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9_]*$"), AfterValidator(_free_name)]
if TYPE_CHECKING:
    Shape: TypeAlias = "str | bool | int | float | dict[str, Shape]"
else:
    # pydantic wants a recursive type to have a name of its own.
    Shape = TypeAliasType("Shape", "Annotated[str, Field(min_length=1)] | StrictBool | int | float | dict[str, Shape]")
"""An expression, a number or truth value as such, or an object of shapes."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Upstream(_Part):
    """The server that a projection is written for.

    Args:
        package: `npm:` or `pypi:` and the package's name, or `command:` and a program's name.
        versions: Bounds that all hold: `>=0.10 <0.11`. The versions that it was tried with, not a hope.
        tools: The structural digest of the tool list (`hotplug projection freeze` writes it); the list itself lies
            beside the document as `<stem>.tools.json`.
        env: Variables that the server is started with where its launch says nothing of them.
        notice: What the server may put before the text of an answer that has nothing to do with it; it is cut off.
    """

    package: Annotated[str, Field(pattern=r"^(npm|pypi|command):\S+$")]
    versions: Annotated[str, Field(pattern=r"^(>=|<=|>|<|=)\d[\w.+-]*(\s+(>=|<=|>|<|=)\d[\w.+-]*)*$")]
    tools: Digest | None = None
    env: dict[str, str] = Field(default_factory=dict)
    notice: Regex | None = None

    def fits(self, package: str, version: str) -> bool:
        """Whether a package (`npm:caldav-mcp`) at a version is the one meant. A pre-release is before its release."""
        if package.lower() != self.package.lower():
            return False
        have = _version_key(version)
        for bound in self.versions.split():
            operator = bound.rstrip("0123456789.+-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
            want = _version_key(bound[len(operator) :])
            order = (have > want) - (have < want)
            if order not in {">=": (0, 1), "<=": (0, -1), ">": (1,), "<": (-1,), "=": (0,)}[operator]:
                return False
        return True


class Sense(_Part):
    """What the observations of a sense are worth, where that is not the profile's default."""

    independence: Literal["independent", "actuation-derived"]
    grade: Annotated[str, Field(pattern=r"^[a-z][a-z-]*$")]


class Requires(_Part):
    """What the upstream needs to be of use: names of environment variables, and a note."""

    env: tuple[str, ...] = ()
    note: Note | None = None


class RefSpec(_Part):
    """How the upstream names a thing of a kind.

    Args:
        parts: The fields of the handle, where it is an object and not one text: `[calendarUrl, uid]`.
        note: For a person.
    """

    parts: tuple[str, ...] = ()
    note: Note | None = None


class CodecSpec(_Part):
    """A codec and its options (`hotplug.projection.codecs.Codec`); written as its name alone where it has none."""

    name: Annotated[str, WithJsonSchema({"type": "string", "enum": list(CODECS)})]
    pattern: Regex | None = None
    each: Literal["one", "all"] = "one"
    skip: Regex | None = None
    empty: Regex | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _known(self) -> CodecSpec:
        if self.name not in CODECS:
            raise ValueError(f"there is no codec {self.name!r}{_nearest(self.name, CODECS)}")
        if (self.pattern is None) == (self.name == "regex"):
            raise ValueError("`pattern` belongs to the codec `regex`, which needs one")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "anyOf": [
                {"enum": [name for name in CODECS if name != "regex"]},
                handler.resolve_ref_schema(handler(schema)),
            ]
        }


class Failure(_Part):
    """When an answer is a failure: one of these holds. It is never guessed from the look of the text.

    Args:
        flag: An answer with `isError` is a failure. `false` only for a server that sets it on successes.
        field: A field of the answer's data, dots between names, that is there and neither false, null nor empty.
        text: A regular expression that is found in the text; `^` is the text's start, not a line's.
    """

    flag: StrictBool = True
    field: Note | None = None
    text: Regex | None = None

    def failed(self, is_error: bool, text: str, data: Any = None) -> bool:
        """Whether an answer is a failure.

        Args:
            is_error: The answer's flag.
            text: Its text items, joined.
            data: Its `structuredContent`, or its text as JSON where it is JSON.
        """
        if self.flag and is_error:
            return True
        if self.field is not None:
            for name in self.field.split("."):
                data = cast("dict[str, Any]", data).get(name) if isinstance(data, dict) else None
            if data:
                return True
        return self.text is not None and patterns.found(self.text, text[:MAX_MATCHED])


class ErrorRule(_Part):
    """The code of a failure whose text `match` is found in; the first rule that fits decides, else it is `internal`."""

    match: Regex
    code: Code
    message: Note | None = None

    def found(self, text: str) -> bool:
        """Whether the rule fits a text."""
        return patterns.found(self.match, text[:MAX_MATCHED])


class Fail(_Part):
    """A failure that only the data shows: `when` holds over the step's answer (an empty list is a `not_found`).

    Args:
        when: Over the step's data.
        code: `not_found` unless said otherwise.
        message: For the caller.
        lost: With `unsupported`: what would be lost; a call whose `accept` names it all is let through.
    """

    when: Expression
    code: Code = "not_found"
    message: Note
    lost: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _lost_is_unsupported(self) -> Fail:
        if self.lost and self.code != "unsupported":
            raise ValueError(f"`lost` goes with code unsupported, not {self.code}")
        return self


class Refuse(_Part):
    """A call that the upstream can't carry out, refused before anything is sent.

    Args:
        when: Over the operation's input.
        code: `unsupported` unless said otherwise.
        message: For the caller.
        lost: The arguments that the upstream would lose; a call whose `accept` names them all is let through.
    """

    when: Expression
    code: Code = "unsupported"
    message: Note
    lost: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _lost_is_unsupported(self) -> Refuse:
        if self.lost and self.code != "unsupported":
            raise ValueError(f"`lost` goes with code unsupported, not {self.code}")
        return self


class _Call(_Part):
    when: Expression | None = None
    each: Expression | None = None
    args: Shape | None = None
    codec: CodecSpec | None = None
    failure: Failure | None = None
    errors: tuple[ErrorRule, ...] = ()
    fail: tuple[Fail, ...] = ()


class Step(_Call):
    """One tool call. Its data is bound to `$name` in everything after it.

    Args:
        name: Of the variable.
        tool: The upstream tool.
        when: Over the input; where it doesn't hold, the step is left out and its variable has no value.
        each: Over the input and the steps before, a list: one call for each item (bound to `$item`). The data is then
            a list of `{item, answer}`: `$lists.($c := item; answer.{"title": summary, "calendar": $c})`.
        args: Over the input (`$`, also `$input`) and the steps before: an expression, or an object of them. Without
            it the tool is called with no arguments.
        codec: How the text becomes data. Without one the data is `structuredContent`.
        failure: When an answer is a failure; without one the document's `failure`.
        errors: Codes of failures, before those of the document.
        fail: Failures that the data shows; `$` is the step's data.
    """

    name: StepName
    tool: Note


class Operation(_Call):
    """An operation or a read of a profile: one `tool`, or `steps`, or `by_code`.

    Args:
        tool: Sugar for one step named `answer`, with `when`, `each`, `args`, `codec`, `failure`, `errors`, `fail`.
        steps: Tool calls in order.
        by_code: The class of `code` does it.
        refuse: Checked in order before anything is sent.
        result: The operation's output: `$` is the data of the last step, `$input` the input, and every step by name.
        unread: Fields of the input that nothing reads, each with the reason; reviewed exceptions for the check.
    """

    tool: Note | None = None
    steps: tuple[Step, ...] = ()
    by_code: Annotated[StrictBool, Field(alias="code")] = False
    refuse: tuple[Refuse, ...] = ()
    result: Shape | None = None
    unread: dict[str, Note] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_way(self) -> Operation:
        if (self.tool is not None) + bool(self.steps) + self.by_code != 1:
            raise ValueError("an operation has one of `tool`, `steps` and `code: true`")
        if self.tool is None:
            for name in _Call.model_fields:
                if name in self.model_fields_set:
                    raise ValueError(f"`{name}` belongs to `tool`, or inside a step")
        if not self.by_code and self.result is None:
            raise ValueError("`result` is missing")
        if self.by_code and self.result is not None:
            raise ValueError("`result` is the class's own with `code: true`")
        names = [step.name for step in self.steps]
        if len(set(names)) != len(names):
            raise ValueError(f"two steps have one name among {', '.join(names)}")
        return self

    def calls(self) -> tuple[tuple[Keys, Step], ...]:
        """The steps, sugar resolved, each with its path inside the operation."""
        if self.tool is not None:
            given = {name: getattr(self, name) for name in _Call.model_fields}
            return (((), Step(name="answer", tool=self.tool, **given)),)
        return tuple((("steps", number), step) for number, step in enumerate(self.steps))


CoverageState: TypeAlias = Literal["mapped", "approximated", "raw_only", "unmapped"]


class Coverage(_Part):
    """What becomes of one upstream tool: a state alone, or `{state: "a note that a person can read"}`.

    Args:
        state: `mapped`; `approximated` (its note is not optional); `raw_only` (of use, but no part of the profiles);
            `unmapped`.
        note: Why.
    """

    state: CoverageState
    note: Note | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"state": value}
        if isinstance(value, dict):
            given = cast("dict[str, Any]", value)
            if len(given) == 1 and next(iter(given)) in get_args(CoverageState):
                state, note = next(iter(given.items()))
                return {"state": state, "note": note}
        return cast("Any", value)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        states = list(get_args(CoverageState))
        note = {"type": "string", "minLength": 1}
        return {
            "description": cls.__doc__ and cls.__doc__.splitlines()[0],
            "anyOf": [
                {"enum": states},
                {
                    "type": "object",
                    "properties": dict.fromkeys(states, note),
                    "additionalProperties": False,
                    "minProperties": 1,
                    "maxProperties": 1,
                },
            ],
        }


class Document(_Part):
    """A projection: profiles presented by an upstream server that knows nothing of them.

    Args:
        projection: The identity, in reverse DNS.
        version: Of the projection.
        upstream: The server.
        profiles: Versions of the profiles, by name.
        facets: Versions of the facets provided, by name.
        senses: Senses that are worth less than the profile says.
        requires: What the upstream needs.
        code: `module:Class` of a Python file beside the document, for what needs more than expressions.
        code_digest: The digest of that file; `hotplug projection freeze` writes it.
        failure: When an answer is a failure, for every step without its own; without it, by `isError` alone.
        errors: Codes of failures, after those of the step.
        operations: Operations and reads, by their names in the profile.
        refs: How things are named upstream, by ref kind.
        coverage: What becomes of every tool of the upstream. One that is not named is an error.
    """

    projection: Annotated[str, Field(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+$")]
    version: Version
    upstream: Upstream
    profiles: Annotated[dict[str, Version], Field(min_length=1)]
    facets: dict[str, Version] = Field(default_factory=dict)
    senses: dict[str, Sense] = Field(default_factory=dict)
    requires: Requires = Requires()
    code: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] | None = None
    code_digest: Annotated[Digest | None, Field(alias="codeDigest")] = None
    failure: Failure = Failure()
    errors: tuple[ErrorRule, ...] = ()
    operations: Annotated[dict[Member, Operation], Field(min_length=1)]
    refs: dict[Member, RefSpec] = Field(default_factory=dict)
    coverage: dict[str, Coverage]

    @model_validator(mode="after")
    def _code_is_there(self) -> Document:
        by_code = [name for name, operation in self.operations.items() if operation.by_code]
        if by_code and self.code is None:
            raise ValueError(f"{', '.join(by_code)}: `code: true` needs the document's `code: module:Class`")
        if self.code is None and self.code_digest is not None:
            raise ValueError("`codeDigest` without `code`")
        return self


def digest(document: Document) -> str:
    """The digest of a document as it was parsed, the code's digest included: comments and layout do not count."""
    return fingerprint.digest(document.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    schema = cast("dict[str, Any]", _without_null(Document.model_json_schema(by_alias=True)))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:hotplug:schema:projection:1",
        **schema,
        "title": "Projection",
    }


def _without_null(schema: Any) -> Any:
    # In the document a part is there or it isn't: null is how pydantic says "not there", and titles only repeat names.
    if isinstance(schema, list):
        return [_without_null(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, Any]", schema)
    result = {
        key: _without_null(value)
        for key, value in given.items()
        if not (key == "default" and value is None) and not (key == "title" and isinstance(value, str))
    }
    options = result.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        rest = [option for option in cast("list[Any]", options) if option != {"type": "null"}]
        del result["anyOf"]
        result |= rest[0] if len(rest) == 1 else {"anyOf": rest}
    return result


@dataclass(frozen=True)
class Source:
    """A document with the place it came from.

    Args:
        document: The validated document.
        file: The file's name for messages.
        text: The YAML.
        lines: The line of every part, from 1, by its path.
    """

    document: Document
    file: str
    text: str
    lines: Lines

    def where(self, *path: str | int) -> str:
        """`file:line operations.calendar.create.args`, for messages."""
        return place(self.file, self.lines, path)


def parse(text: str, file: str = "projection.yaml") -> Source:
    """Reads a document from YAML.

    YAML here is what JSON can say: no anchors, aliases or tags, no key twice, and `yes`, `no` and dates are texts.

    Raises:
        ProjectionError: Not YAML, or not a document: every error with file, line, key and the value seen.
    """
    if len(text) > MAX_DOCUMENT:
        raise ProjectionError(f"{file}: {len(text)} characters, more than {MAX_DOCUMENT}")
    tree, lines = located(text, file)
    try:
        document = Document.model_validate(tree, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ProjectionError("\n".join(_messages(error, file, lines))) from None
    return Source(document, file, text, lines)


def _messages(error: ValidationError, file: str, lines: Lines) -> Iterator[str]:
    for item in error.errors(include_url=False):
        path = _known_path(item["loc"], lines)
        kind, message = item["type"], item["msg"].removeprefix("Value error, ")
        if kind == "extra_forbidden":
            key = str(item["loc"][-1])
            path = path if path[-1:] == (key,) else (*path, key)
            message = f"there is no such key{_nearest(key, _keys_at(path[:-1]))}"
        elif kind == "missing":
            message = f"`{item['loc'][-1]}` is missing"
        elif kind == "string_pattern_mismatch":
            message = f"{_seen(item['input'])} doesn't have the form {item.get('ctx', {}).get('pattern')}"
        elif kind != "value_error":
            message = f"{message}, not {_seen(item['input'])}"
        elif not isinstance(item["input"], dict):
            message = f"{message}: {_seen(item['input'])}"
        yield f"{place(file, lines, path)}: {message}"


def _known_path(loc: Keys, lines: Lines) -> Keys:
    # pydantic puts names of union members and "[key]" between the keys; those are not in the document.
    path: Keys = ()
    for part in loc:
        if (*path, part) in lines:
            path = (*path, part)
    return path


def _keys_at(path: Keys) -> list[str]:
    at: Any = Document
    for part in path:
        if isinstance(at, type) and issubclass(at, BaseModel):
            fields = {field.alias or name: field for name, field in at.model_fields.items()}
            at = _bare(fields[str(part)].annotation) if part in fields else None
        else:
            at = next((_bare(argument) for argument in reversed(get_args(at)) if argument is not Ellipsis), None)
    if isinstance(at, type) and issubclass(at, BaseModel):
        return [field.alias or name for name, field in at.model_fields.items()]
    return []


def _bare(annotation: Any) -> Any:
    # X of `X | None`.
    models = [part for part in get_args(annotation) if isinstance(part, type) and issubclass(part, BaseModel)]
    return models[0] if models and type(None) in get_args(annotation) else annotation


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def _seen(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _version_key(version: str) -> tuple[Any, ...]:
    # 1.2.0-beta.1 and 1.2.0rc1 come before 1.2.0; a build after + does not count.
    release = re.match(r"v?(\d+(?:\.\d+)*)(.*)", version.split("+")[0])
    if release is None:
        return ((), 0, version)
    numbers = [int(part) for part in release.group(1).split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    rest = release.group(2).lstrip("-._").lower()
    return (tuple(numbers), 1 if not rest or rest.startswith("post") else 0, rest)
