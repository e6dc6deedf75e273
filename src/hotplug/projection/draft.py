"""Drafting a projection: which tool does which operation, argument by argument, with everything unsure marked `TODO`.

A draft saves typing and nothing else. It goes by names, schemas and the first sentence of descriptions, all of which
may mislead: a person reads it, and `check` refuses it until every `TODO` is gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from typing import Any, Final, cast

from hotplug.projection.fingerprint import Tool, tools_digest
from hotplug.projection.schema import entry, resolve, types_of
from hotplug.projection.words import concept_of, is_filler, is_gate, kind_of, singular, squeeze, verb_of, words

__all__ = ["Argument", "Draft", "Score", "draft"]

ACCEPTED: Final = 0.62
"""The score from which a tool is taken for an operation."""

SURE: Final = 0.8
"""The score from which a tool, and 0.9 from which an argument, is not marked."""

_DISPATCH: Final = frozenset({"action", "operation", "command", "op", "method", "mode"})
_WRAPPER: Final = re.compile(r"^(?:body|data|params|input|payload|arg(?:ument)?s|.*request)$", re.IGNORECASE)
_DEPTH: Final = 3
_MAX_PARAMETERS: Final = 400


@dataclass(frozen=True)
class Argument:
    """One parameter of the tool: the field of the profile's input that goes into it, and how sure that is."""

    parameter: tuple[str, ...]
    field: tuple[str, ...] | None
    score: float


@dataclass(frozen=True)
class Score:
    """The tool chosen for a member, or none.

    Args:
        member: The operation or read.
        tool: The tool; `None` where nothing comes near enough.
        action: For a tool that does several things, the parameter and the value that choose this one.
        score: Of the tool, 0 to 1.
        arguments: Of the tool, matched and required ones.
        others: The next best tools with their scores.
    """

    member: str
    tool: str | None
    action: tuple[str, str] | None
    score: float
    arguments: tuple[Argument, ...] = ()
    others: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Draft:
    """A drafted document, which parses and is refused by `check`, and how it came about."""

    yaml_text: str
    scores: tuple[Score, ...]


@dataclass(frozen=True)
class _Parameter:
    path: tuple[str, ...]
    spellings: tuple[str, ...]
    required: bool
    types: frozenset[str]


@dataclass(frozen=True)
class _Field:
    path: tuple[str, ...]
    required: bool
    types: frozenset[str]
    kind: str | None


@dataclass(frozen=True)
class _Member:
    profile: str
    name: str
    verb: str
    kind: str | None
    description: str
    effects: bool
    fields: tuple[_Field, ...]
    output: tuple[str, ...]


@dataclass(frozen=True)
class _Candidate:
    tool: str
    action: tuple[str, str] | None
    verb: str | None
    head: str | None
    kind: str | None
    plural: bool
    odd: int
    first: str
    mentioned: frozenset[str]
    parameters: tuple[_Parameter, ...]


@dataclass(frozen=True)
class _Match:
    candidate: _Candidate
    score: float
    arguments: tuple[Argument, ...]


def draft(
    profile: Map[str, Any], tools: Sequence[Tool], package: str = "command:unknown", version: str | None = None
) -> Draft:
    """Drafts the projection of a profile onto a tool list.

    Args:
        profile: The profile's document (`hotplug.profile/1`).
        tools: The upstream's tool list.
        package: `npm:name`, `pypi:name` or `command:name`.
        version: Of the package, where it is known.
    """
    members = tuple(_members(profile))
    candidates = tuple(_candidates(tools))
    ranked: dict[str, list[_Match]] = {
        member.name: sorted(
            (match for candidate in candidates if (match := _match(member, candidate)) is not None),
            key=lambda match: (-match.score, len(match.candidate.tool)),
        )
        for member in members
    }
    chosen: dict[str, _Match] = {}
    used: set[tuple[str, tuple[str, str] | None]] = set()
    everything = [(match.score, name, match) for name, matches in ranked.items() for match in matches]
    for score, name, match in sorted(everything, key=lambda item: (-item[0], item[1], len(item[2].candidate.tool))):
        key = (match.candidate.tool, match.candidate.action)
        if score >= ACCEPTED and name not in chosen and key not in used:
            chosen[name] = match
            used.add(key)
    scores = tuple(_score(member, chosen.get(member.name), ranked[member.name]) for member in members)
    return Draft(_Writer(profile, tools, package, version, members, scores).text(), scores)


def _score(member: _Member, match: _Match | None, ranked: list[_Match]) -> Score:
    others = tuple((other.candidate.tool, round(other.score, 2)) for other in ranked[:4] if other is not match)[:3]
    if match is None:
        best = ranked[0].score if ranked else 0.0
        return Score(member.name, None, None, round(best, 2), (), others)
    candidate = match.candidate
    return Score(member.name, candidate.tool, candidate.action, round(match.score, 2), match.arguments, others)


# What the profile asks for


def _members(profile: Map[str, Any]) -> Iterator[_Member]:
    own = str(profile.get("name"))
    parts: dict[str, Any] = {**profile.get("reads", {}), **profile.get("operations", {})}
    for name, part in parts.items():
        if part.get("facet") is not None:
            continue
        last = name.split(".")[-1]
        schema = cast("dict[str, Any]", part.get("input") or {})
        output = cast("dict[str, Any]", part.get("output") or {})
        fields = tuple(_fields(schema, schema, (), True))
        named = kind_of(last)
        if named is not None and verb_of(last) is None:
            verb, kind = ("search" if singular(last) != last else "get"), named
        else:
            verb = verb_of(last) or last.lower()
            kinds = [*_kinds(output, output, 0), *(item.kind for item in fields if item.kind)]
            kind = next((item for item in kinds if item != own), kinds[0] if kinds else None)
        wanted = [
            key
            for key in cast("list[str]", output.get("required") or [])
            if entry(entry(output.get("properties"), key), "x-receipt") is None
            and resolve(entry(output.get("properties"), key), output).get("x-receipt") is None
        ]
        yield _Member(
            own, name, verb, kind, str(part.get("description") or ""), bool(part.get("effects")), fields, tuple(wanted)
        )


def _fields(schema: Any, root: dict[str, Any], path: tuple[str, ...], required: bool) -> Iterator[_Field]:
    resolved = resolve(schema, root)
    needed = cast("list[str]", resolved.get("required") or [])
    for name, part in cast("dict[str, Any]", resolved.get("properties") or {}).items():
        inner = resolve(part, root)
        if entry(part, "x-facet") or inner.get("x-facet") or (not path and name == "accept"):
            continue
        here = (*path, name)
        reference: Any = entry(part, "x-ref") or inner.get("x-ref")
        if inner.get("properties") and not reference and len(here) < _DEPTH:
            yield from _fields(inner, root, here, False)
        else:
            kind = str(reference).split(".")[-1] if reference else None
            yield _Field(here, required and name in needed, types_of(part, root), kind)


def _kinds(schema: Any, root: dict[str, Any], depth: int) -> Iterator[str]:
    """The kinds of refs in a schema, in its order."""
    resolved = resolve(schema, root)
    reference: Any = entry(schema, "x-ref") or resolved.get("x-ref")
    if reference:
        yield str(reference).split(".")[-1]
    if depth < 4:
        for part in cast("dict[str, Any]", resolved.get("properties") or {}).values():
            yield from _kinds(part, root, depth + 1)
        if resolved.get("items"):
            yield from _kinds(resolved["items"], root, depth + 1)


# What the server offers


def _candidates(tools: Sequence[Tool]) -> Iterator[_Candidate]:
    prefix = _prefix([words(str(tool["name"])) for tool in tools])
    for tool in tools:
        name = str(tool["name"])
        parts = words(name)
        parts = parts[len(prefix) :] if parts[: len(prefix)] == prefix and len(parts) > len(prefix) else parts
        schema = cast("dict[str, Any]", tool.get("inputSchema") or {})
        parameters = tuple(_parameters(schema, schema, (), True))[:_MAX_PARAMETERS]
        first = _first_sentence(str(tool.get("description") or ""))
        dispatch = _dispatch(schema)
        if dispatch is None:
            yield _candidate(name, parts, None, first, parameters)
            continue
        parameter, values = dispatch
        rest = tuple(item for item in parameters if item.path != (parameter,))
        nouns = tuple(word for word in parts if verb_of(word) is None)
        for value in values:
            yield _candidate(name, (*words(value), *nouns), (parameter, value), first, rest)


def _candidate(
    name: str, parts: tuple[str, ...], action: tuple[str, str] | None, first: str, parameters: tuple[_Parameter, ...]
) -> _Candidate:
    verb = next((group for word in parts if (group := verb_of(word)) is not None and kind_of(word) is None), None)
    at = -1 if verb is None else next(number for number, word in enumerate(parts) if verb_of(word) == verb)
    nouns = [word for word in parts if not is_filler(word) and (verb_of(word) is None or kind_of(word) is not None)]
    head = nouns[-1] if nouns else None
    odd = sum(1 for word in parts[at + 1 :] if word in nouns and word != head and kind_of(word) is None)
    mentioned = frozenset(kind for word in words(first) if (kind := kind_of(word)) is not None)
    return _Candidate(
        tool=name,
        action=action,
        verb=verb,
        head=head,
        kind=None if head is None else kind_of(head),
        plural=head is not None and singular(head) != head,
        odd=odd,
        first=first,
        mentioned=mentioned,
        parameters=parameters,
    )


def _prefix(names: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The first word of most of the names: a server's own name, which says nothing."""
    if len(names) < 3:
        return ()
    counts: dict[str, int] = {}
    for name in names:
        if len(name) > 1 and verb_of(name[0]) is None:
            counts[name[0]] = counts.get(name[0], 0) + 1
    word = max(counts, key=lambda key: counts[key], default=None)
    return (word,) if word is not None and counts[word] >= 0.6 * len(names) else ()


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s|\n\s*\n", text.strip(), maxsplit=1)[0][:300]


def _dispatch(schema: dict[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    for name in cast("list[str]", schema.get("required") or []):
        options: Any = resolve(entry(schema.get("properties"), name), schema).get("enum")
        if squeeze(name) in _DISPATCH and isinstance(options, list):
            return name, tuple(item for item in cast("list[Any]", options) if isinstance(item, str))
    return None


def _parameters(schema: Any, root: dict[str, Any], path: tuple[str, ...], required: bool) -> Iterator[_Parameter]:
    resolved = resolve(schema, root)
    needed = cast("list[str]", resolved.get("required") or [])
    for name, part in cast("dict[str, Any]", resolved.get("properties") or {}).items():
        here = (*path, name)
        inner = resolve(part, root)
        if inner.get("properties") and len(here) < _DEPTH:
            yield from _parameters(inner, root, here, required and name in needed)
            continue
        spellings = (name,) if not path or _WRAPPER.match(path[-1]) else (f"{path[-1]}{name}", name)
        yield _Parameter(here, spellings, required and name in needed, types_of(part, root))


# How well they go together


def _match(member: _Member, candidate: _Candidate) -> _Match | None:
    verb = _verb_score(member, candidate)
    noun = _noun_score(member, candidate)
    if verb <= 0 or noun <= 0:
        return None
    arguments, fit = _arguments(member, candidate)
    said = {singular(word) for word in words(candidate.first)} - {""}
    asked = {singular(word) for word in words(member.description) if not is_filler(word)}
    overlap = len(said & asked) / len(asked) if asked else 0.0
    score = 0.35 * verb + 0.3 * noun + 0.3 * fit + 0.05 * overlap - min(0.12 * candidate.odd, 0.36)
    return _Match(candidate, max(0.0, min(1.0, score)), arguments)


def _verb_score(member: _Member, candidate: _Candidate) -> float:
    wanted, verb, plural = member.verb, candidate.verb, candidate.plural
    if wanted == verb:
        # One thing at a time: `create-events` and `get_events` take or give many.
        return (0.5 if wanted != "get" else 0.0) if plural and wanted != "search" else 1.0
    if wanted == "search":
        if verb == "get":
            return 0.9 if plural else 0.5
        return 0.85 if verb is None and plural else 0.0
    if wanted == "get" and verb is None and candidate.head is not None and not plural:
        return 0.0 if candidate.odd else 0.8
    return 1.0 if verb is None and wanted in words(candidate.tool) else 0.0


def _noun_score(member: _Member, candidate: _Candidate) -> float:
    if member.kind is None:
        return 0.6
    if candidate.head is None:
        # Only a verb, the noun being the server's own: the description has to say what it is about.
        if member.kind in candidate.mentioned:
            return 0.8
        return 0.0
    if candidate.kind == member.kind:
        return 1.0
    if candidate.kind is not None:
        return 0.0
    if member.kind == member.profile and len(candidate.mentioned) > 1:
        return 0.0  # "calendar events" are events
    return 0.5 if member.kind in candidate.mentioned else 0.0


def _arguments(member: _Member, candidate: _Candidate) -> tuple[tuple[Argument, ...], float]:
    pairs: list[tuple[float, int, int]] = []
    for at, own in enumerate(member.fields):
        for number, parameter in enumerate(candidate.parameters):
            score = concept_of(own.path[-1], parameter.spellings)
            if own.kind is not None:
                score = max(score, concept_of(own.kind, parameter.spellings))
            if not score:
                continue
            if own.kind is None and own.types and parameter.types and not _alike(own.types, parameter.types):
                score *= 0.5
            pairs.append((score - 0.02 * (len(parameter.path) - 1), at, number))
    pairs.sort(key=lambda pair: (-pair[0], pair[2]))
    by_field: dict[int, tuple[float, int]] = {}
    taken: set[int] = set()
    for score, at, number in pairs:
        if at not in by_field and number not in taken:
            by_field[at] = (score, number)
            taken.add(number)
    owner = {number: (at, score) for at, (score, number) in by_field.items()}
    arguments = tuple(
        Argument(parameter.path, member.fields[owner[number][0]].path, round(owner[number][1], 2))
        if number in owner
        else Argument(parameter.path, None, 0.0)
        for number, parameter in enumerate(candidate.parameters)
        if number in owner or parameter.required
    )
    return arguments, _fit(member, candidate, by_field, owner)


def _fit(
    member: _Member,
    candidate: _Candidate,
    by_field: Map[int, tuple[float, int]],
    owner: Map[int, tuple[int, float]],
) -> float:
    required = [at for at, own in enumerate(member.fields) if own.required]
    optional = [at for at, own in enumerate(member.fields) if not own.required]
    demanded = [number for number, parameter in enumerate(candidate.parameters) if parameter.required]
    met = sum(by_field[at][0] for at in required if at in by_field) / len(required) if required else 1.0
    extra = sum(by_field[at][0] for at in optional if at in by_field) / len(optional) if optional else 1.0
    # What the tool demands has to come from somewhere: worst where no field has it, bad where the caller may leave it.
    loose = sum(1 for number in demanded if number in owner and not member.fields[owner[number][0]].required)
    absent = sum(1 for number in demanded if number not in owner)
    served = max(0.0, 1 - 0.35 * loose - 0.6 * absent)
    return 0.5 * met + 0.2 * extra + 0.3 * served


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    numbers = {"integer", "number"}
    return bool(one & other) or bool(one & numbers and other & numbers)


# Writing it down


@dataclass
class _Writer:
    profile: Map[str, Any]
    tools: Sequence[Tool]
    package: str
    version: str | None
    members: tuple[_Member, ...]
    scores: tuple[Score, ...]
    lines: list[str] = field(default_factory=list[str])

    def text(self) -> str:
        name = re.sub(r"[^a-z0-9-]+", "-", self.package.split(":", 1)[-1].lower()).strip("-") or "server"
        package = self.package if re.fullmatch(r"(?:npm|pypi|command):\S+", self.package) else f"command:{name}"
        known = re.fullmatch(r"\d[\w.+-]*", self.version or "")
        versions = f"={self.version}" if known else ">=0"
        self._add("# Drafted by names and schemas. Every TODO has to be decided by a person; `check` refuses them.")
        self._add(f"projection: {_quoted(f'local.{name}')}")
        self._add("version: 0.1.0")
        self._add("upstream:")
        self._add(f"  package: {_quoted(package)}")
        self._add(f"  versions: {_quoted(versions)}", "" if known else "TODO the versions that it was tried with")
        self._add(f"  tools: {_quoted(tools_digest(self.tools))}")
        self._add(f"profiles: {{{_quoted(str(self.profile['name']))}: {_quoted(str(self.profile['version']))}}}")
        self._add("failure: {flag: true}", "TODO try a call that fails: field or text may be needed too")
        self._add("operations:")
        parts: dict[str, Any] = {**self.profile.get("reads", {}), **self.profile.get("operations", {})}
        for member, score in zip(self.members, self.scores, strict=True):
            if score.tool is not None:
                self._operation(member, score)
            elif parts[member.name].get("required", True):
                self._missing(member, score)
        self._coverage()
        return "\n".join(self.lines) + "\n"

    def _operation(self, member: _Member, score: Score) -> None:
        others = ", ".join(f"{tool} {value:.2f}" for tool, value in score.others)
        sure = score.score >= SURE and all(score.score - value >= 0.03 for _, value in score.others)
        self._add(f"  {_quoted(member.name)}:", f"{score.score:.2f}" + (f"; also {others}" if others else ""))
        self._add(f"    tool: {_quoted(score.tool or '')}", "" if sure else "TODO is it this one?")
        tree, todo = self._tree(member, score)
        if tree:
            self._add("    args:")
            self._shape(tree, todo, 6, ())
        if not self._structured(score.tool or ""):
            self._add("    codec: json", "TODO call it, and see what its text is")
        self._left_out(member, score)
        self._result(member)

    def _tree(self, member: _Member, score: Score) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
        tree: dict[str, Any] = {}
        todo: dict[tuple[str, ...], str] = {}
        kinds = {own.path: own.kind for own in member.fields}
        compound = any(argument.field is None and _is_handle(argument.parameter) for argument in score.arguments)
        if score.action is not None:
            tree[score.action[0]] = json.dumps(score.action[1])
        for argument in score.arguments:
            source = '"TODO"'
            if argument.field is not None:
                source = ".".join(argument.field)
                own_kind = kinds.get(argument.field)
                if own_kind == member.kind and own_kind is not None and compound and len(argument.field) == 1:
                    source = f"{source}.{_name(argument.parameter[-1])}"
                    todo[argument.parameter] = "TODO the handle is an object; `result` has to make it so"
                elif argument.score < 0.9:
                    todo[argument.parameter] = f"TODO {argument.score:.2f}"
            elif compound and _is_handle(argument.parameter) and self._ref(member) is not None:
                source = f"{self._ref(member)}.{_name(argument.parameter[-1])}"
                todo[argument.parameter] = "TODO part of the handle?"
            node = tree
            for part in argument.parameter[:-1]:
                node = node.setdefault(part, {})
            node[argument.parameter[-1]] = source
        for name in self._gates(score.tool or ""):
            if name not in tree:
                tree[name] = "true"
                todo[(name,)] = "TODO a gate: is it to be passed on every call?"
        return tree, todo

    def _gates(self, tool: str) -> list[str]:
        schema: Any = next((item.get("inputSchema") for item in self.tools if item["name"] == tool), None)
        properties = cast("dict[str, Any]", entry(schema, "properties") or {})
        return [name for name, part in properties.items() if is_gate(name) and "boolean" in types_of(part, schema)]

    @staticmethod
    def _ref(member: _Member) -> str | None:
        return next((own.path[0] for own in member.fields if own.kind == member.kind and len(own.path) == 1), None)

    def _shape(self, tree: dict[str, Any], todo: Map[tuple[str, ...], str], indent: int, path: tuple[str, ...]) -> None:
        for name, part in tree.items():
            here = (*path, name)
            if isinstance(part, dict):
                self._add(f"{' ' * indent}{_quoted(name)}:")
                self._shape(cast("dict[str, Any]", part), todo, indent + 2, here)
            else:
                self._add(f"{' ' * indent}{_quoted(name)}: {_quoted(str(part))}", todo.get(here, ""))

    def _left_out(self, member: _Member, score: Score) -> None:
        used = {argument.field for argument in score.arguments}
        left = [own for own in member.fields if own.path not in used]
        refused = [own for own in left if member.effects and not own.required]
        dropped = [own for own in left if own not in refused]
        if refused:
            self._add("    refuse:", "TODO what the tool can't take is refused; map what it can")
            for own in refused:
                path, last = ".".join(own.path), own.path[-1]
                message = _quoted(f"The server keeps no {last}")
                self._add(f"      - {{when: $exists({path}), message: {message}, lost: [{_quoted(last)}]}}")
        if dropped:
            self._add("    unread:")
            for own in dropped:
                self._add(f"      {_quoted('.'.join(own.path))}: {_quoted('TODO no parameter takes it')}")

    def _result(self, member: _Member) -> None:
        if not member.output:
            self._add("    result: {}")
            return
        self._add("    result:")
        for name in member.output:
            self._add(f"      {_quoted(name)}: {_quoted(json.dumps('TODO'))}")

    def _missing(self, member: _Member, score: Score) -> None:
        others = ", ".join(f"{tool} {value:.2f}" for tool, value in score.others) or "none comes near"
        self._add(f"  {_quoted(member.name)}:", f"no tool fits: {others}")
        self._add("    tool: TODO", "steps, or `code: true` with a class")
        required = [own for own in member.fields if own.required]
        optional = [own for own in member.fields if not own.required]
        if required or optional:
            self._add("    unread:")
            for own in (*required, *optional):
                self._add(f"      {_quoted('.'.join(own.path))}: {_quoted('TODO')}")
        self._result(member)

    def _coverage(self) -> None:
        used = {score.tool for score in self.scores}
        self._add("coverage:" if self.tools else "coverage: {}")
        for name in sorted({str(tool["name"]) for tool in self.tools}):
            state = (
                "mapped" if name in used else f"{{unmapped: {_quoted('TODO decide: mapped, raw_only or unmapped')}}}"
            )
            self._add(f"  {_quoted(name)}: {state}")

    def _structured(self, tool: str) -> bool:
        schema: Any = next((item.get("outputSchema") for item in self.tools if item["name"] == tool), None)
        properties: Any = entry(schema, "properties")
        return isinstance(properties, dict) and set(cast("dict[str, Any]", properties)) not in (set(), {"result"})

    def _add(self, line: str, comment: str = "") -> None:
        self.lines.append(f"{line}  # {' '.join(comment.split())}" if comment else line)


def _is_handle(path: tuple[str, ...]) -> bool:
    """Whether a parameter looks like a part of what names a thing: an id, a URL, a tag."""
    tail = squeeze(path[-1])
    return bool(re.search(r"(?:id|uid|url|uri|href|key|etag|path|name|calendar)$", tail))


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name.replace('`', '')}`"


def _quoted(text: str) -> str:
    """A YAML scalar that is read back as this text: plain where that is sure, else in double quotes."""
    if re.fullmatch(r"[A-Za-z_$][\w./$()-]*", text) and text.lower() not in ("true", "false", "null", "yes", "no"):
        return text
    if re.fullmatch(r"\d+\.\d+\.\d+", text):
        return text
    escaped = json.dumps(text, ensure_ascii=False)
    return "".join(
        char if " " <= char <= "~" else f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\U{ord(char):08x}"
        for char in escaped
    )
