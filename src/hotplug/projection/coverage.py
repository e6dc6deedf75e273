"""What a projection leaves out, found without a server: `hotplug projection check`.

Silent loss is the mistake looked for: an upstream tool that nobody decided about, an argument of the profile that no
expression reads, an argument that the upstream demands and nothing writes.

What an expression reads comes from the engine. What it writes is decided so: an `args` that is an object writes its
keys; an `args` that is one expression writes the keys that stand in it as texts before a colon, and those that come out
when it is applied to a sample made from the profile's schema. So a key that only exists under a condition counts as
written; the sample with nothing but the required fields then shows whether it is left out, which is a warning.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Map
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from hotplug.errors import HotplugError, ProjectionError
from hotplug.projection.document import CoverageState, Source
from hotplug.projection.fingerprint import Tool, tools_digest
from hotplug.projection.mapping import UNDEFINED, Function, Mapping, Read, Template
from hotplug.projection.plan import Call, Plan, compile_plans
from hotplug.projection.schema import entry, resolve, sample, types_of
from hotplug.projection.words import is_gate

__all__ = ["Finding", "Row", "check", "matrix"]

Level: TypeAlias = Literal["error", "warning", "note"]

_KEY: Final = re.compile(r""""((?:\\.|[^"\\])*)"\s*:|'((?:\\.|[^'\\])*)'\s*:""")
_DEPTH: Final = 3
_RUNTIME: Final = frozenset({"accept"})
"""Input fields that the runtime itself reads."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, doubtful or worth knowing.

    Args:
        level: An `error` keeps a projection from being frozen, a `warning` asks for a look, a `note` only tells.
        code: Stable, for programs: `coverage_missing`, `field_unread`, `argument_unwritten`, ...
        where: File, line and part.
        message: For a person.
    """

    level: Level
    code: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.level}: {self.message} [{self.code}]"


@dataclass(frozen=True)
class Row:
    """One upstream tool in the coverage matrix; `state` is `None` where nobody decided about it."""

    tool: str
    state: CoverageState | None
    note: str | None
    members: tuple[str, ...]


def matrix(source: Source, tools: Iterable[Tool]) -> tuple[Row, ...]:
    """The coverage matrix: every upstream tool by name, with what becomes of it and the members that call it."""
    used: dict[str, list[str]] = {}
    for member, operation in source.document.operations.items():
        for _, step in operation.calls():
            if member not in used.setdefault(step.tool, []):
                used[step.tool].append(member)
    rows: list[Row] = []
    for name in sorted({str(tool["name"]) for tool in tools}):
        entry = source.document.coverage.get(name)
        rows.append(Row(name, entry and entry.state, entry and entry.note, tuple(used.get(name, ()))))
    return tuple(rows)


def check(
    source: Source,
    tools: Sequence[Tool],
    profile: Map[str, Any],
    *,
    functions: Map[str, Function] | None = None,
) -> tuple[Finding, ...]:
    """Everything that can be found without a server, errors first.

    Args:
        source: The projection.
        tools: The upstream's tool list.
        profile: The profile's document (`hotplug.profile/1`).
        functions: The functions that expressions may call.
    """
    findings = [
        *_todos(source),
        *_frozen(source, tools),
        *_coverage(source, tools),
        *_members(source, profile),
    ]
    try:
        plans = compile_plans(source, functions=functions)
    except ProjectionError as error:
        findings.extend(Finding("error", "expression", source.file, line) for line in str(error).splitlines())
    else:
        by_name = {str(tool["name"]): tool for tool in tools}
        for plan in plans.values():
            findings.extend(_plan(source, plan, by_name, profile))
    order = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(findings, key=lambda finding: order[finding.level]))


def _todos(source: Source) -> Iterator[Finding]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if re.search(r"\bTODO\b", line):
            yield Finding("error", "todo", f"{source.file}:{number}", f"still to be decided: {line.strip()[:120]}")


def _frozen(source: Source, tools: Sequence[Tool]) -> Iterator[Finding]:
    document = source.document
    frozen = document.upstream.tools
    if frozen is None:
        yield Finding("warning", "unfrozen", source.where("upstream"), "the tool list is not frozen yet")
    elif frozen != tools_digest(tools):
        yield Finding(
            "error", "tools_digest", source.where("upstream", "tools"), "the digest is not that of this tool list"
        )
    if document.code is not None and document.code_digest is None:
        yield Finding("warning", "unfrozen", source.where("code"), "the code is not frozen yet")


def _coverage(source: Source, tools: Sequence[Tool]) -> Iterator[Finding]:
    rows = matrix(source, tools)
    listed = {row.tool for row in rows}
    by_code = any(operation.by_code for operation in source.document.operations.values())
    for row in rows:
        where = source.where("coverage", row.tool)
        if row.state is None:
            yield Finding("error", "coverage_missing", where, f"the tool {row.tool!r} is not in the coverage")
        elif row.state == "approximated" and not row.note:
            yield Finding("error", "note_missing", where, "`approximated` needs a note of what is not exact")
        elif row.members and row.state in ("raw_only", "unmapped"):
            yield Finding(
                "error", "coverage_contradicts", where, f"is {row.state}, but {', '.join(row.members)} calls it"
            )
        elif not row.members and row.state in ("mapped", "approximated") and not by_code:
            yield Finding("error", "coverage_contradicts", where, f"is {row.state}, but no operation calls it")
    for name in source.document.coverage:
        if name not in listed:
            yield Finding(
                "error",
                "coverage_unknown",
                source.where("coverage", name),
                f"the server has no tool {name!r}{_nearest(name, listed)}",
            )
    for member, operation in source.document.operations.items():
        for path, step in operation.calls():
            if step.tool not in listed:
                yield Finding(
                    "error",
                    "tool_unknown",
                    source.where("operations", member, *path, "tool"),
                    f"the server has no tool {step.tool!r}{_nearest(step.tool, listed)}",
                )


def _parts(profile: Map[str, Any]) -> dict[str, Map[str, Any]]:
    return {**profile.get("operations", {}), **profile.get("reads", {})}


def _members(source: Source, profile: Map[str, Any]) -> Iterator[Finding]:
    document = source.document
    name = str(profile.get("name"))
    if name not in document.profiles:
        yield Finding("error", "profile_missing", source.where("profiles"), f"the profile {name} is not named")
        return
    if document.profiles[name] != profile.get("version"):
        yield Finding(
            "error",
            "profile_version",
            source.where("profiles", name),
            f"is for {name} {document.profiles[name]}, this is {profile.get('version')}",
        )
    facets: Map[str, Any] = profile.get("facets", {})
    parts = _parts(profile)
    only = len(document.profiles) == 1
    for facet in document.facets:
        if facet not in facets and only:
            yield Finding(
                "error",
                "facet_unknown",
                source.where("facets", facet),
                f"{name} has no facet {facet!r}{_nearest(facet, facets)}",
            )
    for member, part in parts.items():
        facet = part.get("facet")
        wanted = part.get("required", True) if facet is None else facet in document.facets
        if wanted and member not in document.operations:
            of = "the core" if facet is None else f"the facet {facet}"
            yield Finding("error", "member_missing", source.where("operations"), f"{member} of {of} is missing")
        if facet is not None and member in document.operations and facet not in document.facets:
            yield Finding(
                "error",
                "facet_undeclared",
                source.where("operations", member),
                f"belongs to the facet {facet}, which is not declared",
            )
    for member in document.operations:
        if member not in parts and only:
            yield Finding(
                "error",
                "member_unknown",
                source.where("operations", member),
                f"{name} has no operation or read {member!r}{_nearest(member, parts)}",
            )


def _plan(source: Source, plan: Plan, tools: Map[str, Tool], profile: Map[str, Any]) -> Iterator[Finding]:
    part = _parts(profile).get(plan.name)
    if part is None:
        return
    if plan.result is None:
        yield Finding("note", "by_code", plan.where, "is done by code: its arguments are not checked here")
        return
    schema = cast("dict[str, Any]", part.get("input") or {})
    yield from _unread(source, plan, schema)
    samples = (sample(schema, schema, full=True), sample(schema, schema, full=False))
    for call in plan.calls:
        tool = tools.get(call.tool)
        if tool is not None:
            yield from _arguments(call, cast("dict[str, Any]", tool.get("inputSchema") or {}), samples)
    yield from _outputs(plan, cast("dict[str, Any]", part.get("output") or {}))


def _unread(source: Source, plan: Plan, schema: dict[str, Any]) -> Iterator[Finding]:
    reads: list[Read] = []
    for mapping, of_input in _with_context(plan):
        found = mapping.reads()
        if of_input and found.input is not None:
            reads.append(found.input)
        if "input" in found.bindings:
            reads.append(found.bindings["input"])
    refused = {name for guard in plan.guards for name in guard.rule.lost}
    fields = list(_fields(schema, schema, (), source.document.facets))
    for path in fields:
        name = ".".join(path)
        excused = {".".join(path[:length]) for length in range(1, len(path) + 1)} & (plan.unread.keys() | refused)
        excused = excused or path[-1] in refused
        if not excused and not any(_reads(read, path) for read in reads):
            yield Finding(
                "error",
                "field_unread",
                plan.where,
                f"no expression reads `{name}`: map it, refuse it, or say in `unread` why it may be dropped",
            )
    known = {".".join(path[:length]) for path in fields for length in range(1, len(path) + 1)}
    for name in plan.unread:
        where = source.where("operations", plan.name, "unread", name)
        if name not in known:
            yield Finding("warning", "unread_unknown", where, f"the input has no field {name!r}{_nearest(name, known)}")
        elif any(_reads(read, tuple(name.split("."))) for read in reads):
            yield Finding("warning", "unread_read", where, "this field is read after all")


def _with_context(plan: Plan) -> Iterator[tuple[Mapping, bool]]:
    """The expressions of a plan, and whether `$` is the operation's input in them."""
    for guard in plan.guards:
        yield guard.when, True
    for call in plan.calls:
        yield from ((part, True) for part in (call.when, call.each) if part is not None)
        yield from ((mapping, True) for _, mapping in (call.args.leaves() if call.args else ()))
        yield from ((when, False) for when, _ in call.fails)
    yield from ((mapping, False) for _, mapping in (plan.result.leaves() if plan.result else ()))


def _fields(
    schema: Any, root: dict[str, Any], path: tuple[str, ...], facets: Map[str, str]
) -> Iterator[tuple[str, ...]]:
    properties = cast("dict[str, Any]", resolve(schema, root).get("properties") or {})
    for name, field in properties.items():
        resolved = resolve(field, root)
        facet = _extra(field, resolved, "x-facet")
        if (facet is not None and facet not in facets) or (not path and name in _RUNTIME):
            continue
        here = (*path, name)
        opaque = _extra(field, resolved, "x-ref") is not None or len(here) >= _DEPTH
        if not opaque and resolved.get("properties"):
            yield from _fields(resolved, root, here, facets)
        else:
            yield here


def _extra(field: Any, resolved: Map[str, Any], name: str) -> Any:
    own = entry(field, name)
    return resolved.get(name) if own is None else own


def _reads(read: Read, path: Sequence[str]) -> bool:
    for name in path:
        if read is True:
            return True
        if name not in read:
            return False
        read = read[name]
    # A read of a field's own fields is a read of it; `$exists(x)` reads nothing inside, and counts: what to do with
    # the field was decided.
    return True


def _arguments(call: Call, schema: dict[str, Any], samples: tuple[dict[str, Any], dict[str, Any]]) -> Iterator[Finding]:
    properties = cast("dict[str, Any]", schema.get("properties") or {})
    closed = bool(properties) and schema.get("additionalProperties") in (None, False)
    required = set(_required(schema, schema, ()))
    leaves, exact_keys = _written(call.args, samples[0])
    objects = {path[:length] for path in leaves for length in range(1, len(path))}
    given = {path[0] for path in leaves}
    where = f"{call.where} ({call.tool})"
    for path in sorted(required - leaves - objects):
        # What is inside an argument is asked for only where that object is written key by key.
        if len(path) == 1 or path[:-1] in objects:
            yield Finding(
                "error", "argument_unwritten", where, f"the tool requires `{'.'.join(path)}`, nothing writes it"
            )
    if closed and exact_keys:
        for name in sorted(given - properties.keys()):
            yield Finding(
                "error", "argument_unknown", where, f"the tool has no argument {name!r}{_nearest(name, properties)}"
            )
    for name in properties:
        if is_gate(name) and name not in given and "boolean" in types_of(properties[name], schema):
            yield Finding("warning", "gate", where, f"`{name}` may be a gate that has to be passed; nothing writes it")
    if call.args is None:
        return
    for path, mapping in call.args.leaves():
        if not path:
            continue
        problem = _misfit(mapping, _at(schema, path))
        if problem:
            yield Finding("error", "argument_value", mapping.where, problem)
        by_input = not mapping.reads().bindings.keys() - {"input"}
        if path in required and by_input and _gives_nothing(mapping, samples[1]):
            yield Finding(
                "warning",
                "argument_conditional",
                mapping.where,
                f"the tool requires `{'.'.join(path)}`; it is left out when the call gives only what it must",
            )


def _written(args: Template | None, sample: dict[str, Any]) -> tuple[set[tuple[str, ...]], bool]:
    """The paths of what is written, and whether they are exact."""
    if args is None:
        return set(), True
    leaves = args.leaves()
    if len(leaves) != 1 or leaves[0][0]:
        return {path for path, _ in leaves}, True
    mapping = leaves[0][1]
    keys = {double or single for double, single in _KEY.findall(mapping.source)}
    made = _applied(mapping, sample)
    if isinstance(made, dict):
        keys |= cast("dict[str, Any]", made).keys()
    return {(key,) for key in keys}, False


def _required(schema: Any, root: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    resolved = resolve(schema, root)
    properties = cast("dict[str, Any]", resolved.get("properties") or {})
    for name in cast("list[str]", resolved.get("required") or []):
        yield (*path, name)
        if len(path) < _DEPTH and name in properties:
            yield from _required(properties[name], root, (*path, name))


def _at(root: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    schema = resolve(root, root)
    for name in path:
        schema = resolve(entry(schema.get("properties"), name), root)
    return schema


def _misfit(mapping: Mapping, schema: Map[str, Any]) -> str | None:
    try:
        value = json.loads(mapping.source)
    except ValueError:
        return None
    options = schema.get("enum")
    if isinstance(options, list) and value not in options:
        return f"{value!r} is none of {json.dumps(options)[:200]}"
    return None


def _applied(mapping: Mapping, sample: dict[str, Any]) -> Any:
    try:
        return mapping.apply(sample, {"input": sample})
    except HotplugError:
        return None  # a sample is made from types alone: an expression may rightly refuse it


def _gives_nothing(mapping: Mapping, sample: dict[str, Any]) -> bool:
    try:
        return mapping.apply(sample, {"input": sample}) is UNDEFINED
    except HotplugError:
        return False


def _outputs(plan: Plan, schema: dict[str, Any]) -> Iterator[Finding]:
    if plan.result is None:
        return
    leaves = plan.result.leaves()
    written: set[str] = set()
    for path, mapping in leaves:
        if path:
            written.add(path[0])
        else:
            keys = {double or single for double, single in _KEY.findall(mapping.source)}
            if not keys:
                return  # an expression that passes an object on: nothing can be said
            written |= keys
    resolved = resolve(schema, schema)
    properties = cast("dict[str, Any]", resolved.get("properties") or {})
    for name in cast("list[str]", resolved.get("required") or []):
        field = properties.get(name, {})
        if name not in written and _extra(field, resolve(field, schema), "x-receipt") is None:
            yield Finding(
                "warning", "output_unwritten", plan.where, f"the result has to have `{name}`, nothing writes it"
            )


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""
