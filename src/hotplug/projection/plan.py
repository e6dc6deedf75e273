"""A projection document compiled: what the runtime runs and the check reads.

Everything that can be wrong without a server is found here, at load: expressions that don't parse, variables that
nothing binds, codecs that don't fit their options.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from collections.abc import Mapping as Map
from dataclasses import dataclass
from typing import Any, Final

from hotplug.errors import Internal, ProjectionError, failure
from hotplug.projection.codecs import RAW_TEXT, Codec
from hotplug.projection.document import CodecSpec, ErrorRule, Fail, Failure, Operation, Refuse, Source, Step
from hotplug.projection.located import Keys
from hotplug.projection.mapping import DEFAULT_BOUNDS, Bounds, Function, Mapping, Template

__all__ = ["Call", "Guard", "Plan", "compile_plans"]

_SAID: Final = 300
"""Characters of the upstream's text that go into a message; more of it is in the details."""


@dataclass(frozen=True)
class Guard:
    """A condition that refuses a call before anything is sent."""

    when: Mapping
    rule: Refuse

    def check(self, value: Map[str, Any]) -> None:
        """Raises the rule's error where it applies to the input, unless the input accepts all that would be lost."""
        accepted: Any = value.get("accept") or ()
        if self.rule.lost and set(self.rule.lost) <= set(accepted):
            return
        if self.when.test(value, {"input": value}):
            details = {"lost": list(self.rule.lost)} if self.rule.lost else None
            raise failure(self.rule.code, self.rule.message, details)


@dataclass(frozen=True)
class Call:
    """One tool call of a plan; the fields are those of `document.Step`, compiled."""

    name: str
    tool: str
    where: str
    when: Mapping | None
    each: Mapping | None
    args: Template | None
    codec: Codec | None
    failure: Failure
    errors: tuple[ErrorRule, ...]
    fails: tuple[tuple[Mapping, Fail], ...]

    def data(self, is_error: bool, text: str, structured: Any = None) -> Any:
        """The data in one answer of the tool.

        Args:
            is_error: The answer's `isError`.
            text: Its text items, joined by newlines.
            structured: Its `structuredContent`, where it has one.

        Raises:
            ConnectionFailed: The failure rule says so; the code is of the first error rule that fits the text, else
                `internal`. `details` has `tool` and the text as `upstream`.
            Internal: The answer can't be understood.
        """
        shown = structured
        if shown is None and self.failure.field is not None:
            shown = _json_or_none(text)
        if self.failure.failed(is_error, text, shown):
            rule = next((rule for rule in self.errors if rule.found(text)), None)
            said = " ".join(text.split())
            message = (rule and rule.message) or f"{self.tool}: {said[:_SAID] or 'failed without a word'}"
            details = {"tool": self.tool, "upstream": text[:RAW_TEXT]}
            raise failure(rule.code if rule else "internal", message, details)
        if self.codec is not None:
            return self.codec.parse(text)
        if structured is None:
            raise Internal(
                f"{self.where}: {self.tool} answered without structured content, and no codec reads its text",
                details={"where": self.where, "tool": self.tool, "text": text[:RAW_TEXT]},
            )
        return structured

    def check(self, data: Any, bindings: Map[str, Any]) -> None:
        """Raises the first failure that the data shows (with `each`, the whole list of `{item, answer}`)."""
        accepted: Any = bindings.get("input", {}).get("accept") or ()
        for when, rule in self.fails:
            if rule.lost and set(rule.lost) <= set(accepted):
                continue
            if when.test(data, bindings):
                lost = {"lost": list(rule.lost)} if rule.lost else {}
                raise failure(rule.code, rule.message, {"tool": self.tool, **lost})


@dataclass(frozen=True)
class Plan:
    """An operation, compiled. Without `result` it is the work of the document's class."""

    name: str
    where: str
    guards: tuple[Guard, ...]
    calls: tuple[Call, ...]
    result: Template | None
    unread: Map[str, str]

    def mappings(self) -> Iterator[Mapping]:
        """Every expression of the plan."""
        yield from (guard.when for guard in self.guards)
        for call in self.calls:
            yield from (part for part in (call.when, call.each) if part is not None)
            yield from (mapping for _, mapping in (call.args.leaves() if call.args else ()))
            yield from (when for when, _ in call.fails)
        yield from (mapping for _, mapping in (self.result.leaves() if self.result else ()))


def compile_plans(
    source: Source, *, functions: Map[str, Function] | None = None, bounds: Bounds = DEFAULT_BOUNDS
) -> dict[str, Plan]:
    """Compiles every operation of a document, by name.

    Raises:
        ProjectionError: With the place of each part that doesn't compile; all of them, a line each.
    """
    plans: dict[str, Plan] = {}
    errors: list[str] = []
    for name, operation in source.document.operations.items():
        try:
            plans[name] = _Compiler(source, ("operations", name), functions or {}, bounds).plan(name, operation)
        except ProjectionError as error:
            errors.append(str(error))
    if errors:
        raise ProjectionError("\n".join(errors))
    return plans


class _Compiler:
    def __init__(self, source: Source, path: Keys, functions: Map[str, Function], bounds: Bounds) -> None:
        self._source = source
        self._path = path
        self._functions = functions
        self._bounds = bounds
        self._bound: list[str] = ["input"]

    def plan(self, name: str, operation: Operation) -> Plan:
        guards = tuple(
            Guard(self._mapping(rule.when, ("refuse", number, "when")), rule)
            for number, rule in enumerate(operation.refuse)
        )
        calls = tuple(self._call(path, step) for path, step in operation.calls())
        result = None if operation.result is None else self._template(operation.result, ("result",))
        return Plan(name, self._source.where(*self._path), guards, calls, result, operation.unread)

    def _call(self, path: Keys, step: Step) -> Call:
        if step.name in self._functions:
            raise ProjectionError(f"{self._where(*path)}: ${step.name} is a function, choose another name")
        when = None if step.when is None else self._mapping(step.when, (*path, "when"))
        each = None if step.each is None else self._mapping(step.each, (*path, "each"))
        extra = () if each is None else ("item",)
        args = None if step.args is None else self._template(step.args, (*path, "args"), extra)
        codec = None if step.codec is None else self._codec(step.codec, (*path, "codec"))
        self._bound.append(step.name)
        fails = tuple(
            (self._mapping(rule.when, (*path, "fail", number, "when")), rule) for number, rule in enumerate(step.fail)
        )
        document = self._source.document
        return Call(
            name=step.name,
            tool=step.tool,
            where=self._where(*path),
            when=when,
            each=each,
            args=args,
            codec=codec,
            failure=step.failure or document.failure,
            errors=(*step.errors, *document.errors),
            fails=fails,
        )

    def _codec(self, spec: CodecSpec, path: Keys) -> Codec:
        return Codec(
            spec.name, self._where(*path), pattern=spec.pattern, each=spec.each, skip=spec.skip, empty=spec.empty
        )

    def _template(self, shape: Any, path: Keys, extra: tuple[str, ...] = ()) -> Template:
        template = Template(
            shape, lambda *below: self._where(*path, *below), functions=self._functions, bounds=self._bounds
        )
        for _, mapping in template.leaves():
            self._check_variables(mapping, extra)
        return template

    def _mapping(self, expression: str, path: Keys) -> Mapping:
        mapping = Mapping(expression, self._where(*path), functions=self._functions, bounds=self._bounds)
        self._check_variables(mapping)
        return mapping

    def _check_variables(self, mapping: Mapping, extra: tuple[str, ...] = ()) -> None:
        known = [*self._bound, *extra]
        for name in mapping.reads().bindings:
            if name not in known:
                near = difflib.get_close_matches(name, [*known, *self._functions], n=1)
                hint = f", did you mean ${near[0]}?" if near else f"; bound are ${', $'.join(known)}"
                raise ProjectionError(f"{mapping.where}: nothing binds ${name}{hint}")

    def _where(self, *path: str | int) -> str:
        return self._source.where(*self._path, *path)


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
