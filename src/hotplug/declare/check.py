"""Checks a declaration against the profiles' definitions and the tools that a server really lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from hotplug.declare.declaration import Card, Declaration
from hotplug.declare.findings import Code, Finding
from hotplug.declare.names import is_extension, is_part, is_profile, is_sense
from hotplug.declare.routes import Route, routes
from hotplug.declare.schemas import input_fits, output_fits
from hotplug.errors import ProfileError
from hotplug.profile.canonical import digest
from hotplug.profile.compare import Answer, No, Yes
from hotplug.profile.senses import DETERMINISM, SENSES, Sense, exceeds, is_stronger
from hotplug.profile.versions import Range, numbers, parse_version

__all__ = ["check"]

INSTANCE_META: Final = "tools.noetic/instance"

_Document = Mapping[str, Any]
_Tool = Mapping[str, Any]


def check(
    declaration: Declaration, definitions: Mapping[str, _Document], tools: Sequence[Mapping[str, Any]]
) -> tuple[Finding, ...]:
    """Everything that doesn't hold; empty for a server that can be taken at its word.

    Args:
        declaration: What the server says.
        definitions: The documents at hand (`profile.json`) by name; an extension's by its id.
        tools: As the server lists them: `name`, `inputSchema`, `outputSchema`, `_meta`.
    """
    checker = _Checker(declaration, definitions, tools)
    found = dict.fromkeys((*declaration.problems, *checker.findings()))
    return tuple(found)


class _Checker:
    def __init__(self, declaration: Declaration, definitions: Mapping[str, _Document], tools: Sequence[_Tool]) -> None:
        self._declaration = declaration
        self._definitions = definitions
        self._tools = tools
        self._by_name = {str(tool.get("name")): tool for tool in tools}

    def findings(self) -> Iterator[Finding]:
        yield from self._names()
        for card in self._declaration.cards:
            document = self._definitions.get(card.profile)
            if document is None or not _same_major(document, card.version):
                yield _unknown(card, document)
                continue
            yield from self._digest(card, document)
            yield from self._parents(card, document)
            yield from self._facets(card, document)
            yield from self._parts(card, document)
        yield from self._extensions()
        yield from self._aliases()
        yield from self._senses()
        yield from self._determinism()
        yield from self._instances()

    def _known(self) -> list[tuple[Card, _Document]]:
        """The declared profiles whose definitions are at hand."""
        pairs = [(card, self._definitions.get(card.profile)) for card in self._declaration.cards]
        return [(card, document) for card, document in pairs if document and _same_major(document, card.version)]

    def _names(self) -> Iterator[Finding]:
        """Names of a declaration that was made rather than read."""
        declaration = self._declaration
        wrong = [card.profile for card in declaration.cards if not is_profile(card.profile)]
        wrong += [name for name in declaration.extensions if not is_extension(name)]
        wrong += [name for name in declaration.aliases if not is_part(name)]
        wrong += [name for name in declaration.senses if not is_sense(name)]
        for name in wrong:
            yield Finding("bad_name", name, f"{name!r} is no name of that kind", "use the name as its document has it")

    def _digest(self, card: Card, document: _Document) -> Iterator[Finding]:
        if card.digest is None or document.get("version") != card.version:
            return
        known = digest(document)
        if card.digest != known:
            message = f"{card.profile} {card.version} is declared with {card.digest}, and has {known}"
            fix = "implement the published document, or give a changed one another name"
            yield Finding("digest_mismatch", card.profile, message, fix)

    def _parents(self, card: Card, document: _Document) -> Iterator[Finding]:
        for parent, wanted in cast("Mapping[str, str]", document.get("extends", {})).items():
            declared = self._declaration.card(parent)
            if declared is None:
                message = f"{card.profile} extends {parent}, which isn't declared"
                yield Finding("missing_parent", card.profile, message, f"declare {parent} {wanted} too")
            elif not Range(wanted).satisfied_by(declared.version):
                message = f"{card.profile} extends {parent} {wanted}, and {declared.version} is declared"
                yield Finding("parent_out_of_range", card.profile, message, f"implement {parent} {wanted}")

    def _facets(self, card: Card, document: _Document) -> Iterator[Finding]:
        facets = cast("Mapping[str, Mapping[str, Any]]", document.get("facets", {}))
        newer = _order(card.version) > _order(document.get("version"))
        for name, version in card.facets.items():
            if name not in facets:
                if not newer:
                    message = f"{card.profile} {card.version} has no facet {name!r}"
                    yield Finding("facet_incomplete", card.profile, message, "declare facets of the profile only")
            elif version != facets[name].get("version") and document.get("version") == card.version:
                message = f"the facet {name} is declared as {version}, and is {facets[name].get('version')}"
                yield Finding("facet_incomplete", card.profile, message, "declare the facet's exact version")

    def _parts(self, card: Card, document: _Document) -> Iterator[Finding]:
        parts = _callable(document)
        older = _order(card.version) < _order(document.get("version"))
        found = self._routes(card.profile, card.version, parts)
        for name, part in parts.items():
            facet = part.get("facet")
            if facet is not None and facet not in card.facets:
                continue
            route = found.get(name)
            if route is not None:
                yield from self._schemas(name, part, route, card, older=older)
            elif facet is not None:
                message = f"{name} of the facet {facet} has no tool"
                fix = f"add the tool, or don't declare {facet}: a facet has all of its parts"
                yield Finding("facet_incomplete", name, message, fix)
            elif part.get("required", True):
                yield from self._missing(name, older=older)

    def _missing(self, name: str, *, older: bool) -> Iterator[Finding]:
        if older:
            message = f"{name} has no tool, and the definition at hand is of a later version"
            yield Finding("unproven", name, message, "check against the definition of the declared version")
            return
        fix = f"list a tool called {name}, or one whose _meta names it as its member"
        yield Finding("missing_part", name, f"{name} is required and has no tool", fix)

    def _routes(self, owner: str, version: str, parts: Mapping[str, _Document]) -> dict[str, Route]:
        identity = f"{owner}@{numbers(parse_version(version))[0]}"
        return routes(self._declaration, {name: f"{identity}/{name}" for name in parts}, self._tools)

    def _schemas(self, name: str, part: _Document, route: Route, card: Card, *, older: bool) -> Iterator[Finding]:
        tool = self._by_name.get(route.tool)
        if tool is None:
            return  # said of the alias
        taken = input_fits(tool, part, card.facets, route.fixed)
        message = f"the tool {route.tool!r} doesn't take all arguments of {name}"
        yield from _compared("input_narrower", name, message, taken, "accept what the profile's input allows", older)
        given = output_fits(tool, part, card.facets)
        message = f"the tool {route.tool!r} may answer what {name} can't"
        yield from _compared(
            "output_wider", name, message, given, "list an output schema that fits the profile's", older
        )

    def _extensions(self) -> Iterator[Finding]:
        for name, version in self._declaration.extensions.items():
            document = self._definitions.get(name)
            if document is None or not is_extension(name) or not _same_major(document, version):
                continue
            for profile, wanted in cast("Mapping[str, str]", document.get("requires", {})).items():
                card = self._declaration.card(profile)
                if card is None or not Range(wanted).satisfied_by(card.version):
                    has = "isn't declared" if card is None else f"is declared as {card.version}"
                    message = f"{name} requires {profile} {wanted}, which {has}"
                    yield Finding(
                        "extension_requires_unmet", name, message, f"declare {profile} {wanted}, or not {name}"
                    )
            yield from self._parts(Card(name, version), document)

    def _aliases(self) -> Iterator[Finding]:
        for part, alias in self._declaration.aliases.items():
            tool = self._by_name.get(alias.tool)
            if tool is None:
                message = f"{part} is the tool {alias.tool!r}, which isn't listed"
                yield Finding("alias_tool_missing", part, message, "name a tool that tools/list gives")
                continue
            schema = cast("Mapping[str, Any]", tool.get("inputSchema") or {})
            names: Mapping[str, Any] = schema.get("properties", {})
            for argument in alias.fixed:
                if argument not in names:
                    message = f"{part} fixes {argument!r}, which the tool {alias.tool!r} doesn't take"
                    yield Finding("alias_fixed_unknown", part, message, "fix arguments of the tool only")

    def _senses(self) -> Iterator[Finding]:
        for name, claimed in self._declaration.senses.items():
            limits = {card.profile: _stated(document).get(name) for card, document in self._known()}
            for owner, limit in {**limits, "the table": SENSES.get(name)}.items():
                if limit is not None and exceeds(claimed, limit):
                    message = (
                        f"{name} is declared as {claimed.independence}, {claimed.grade};"
                        f" at most it is {limit.independence}, {limit.grade} (by {owner})"
                    )
                    yield Finding("sense_overclaimed", None, message, "declare a sense as weak as it is, or not at all")
                    break
        yield from self._undeclared_senses()

    def _undeclared_senses(self) -> Iterator[Finding]:
        for card, document in self._known():
            stated = {**SENSES, **_stated(document)}
            for name, part in {**_callable(document), **_table(document, "events")}.items():
                sense = part.get("sense")
                if not isinstance(sense, str) or sense in stated or sense in self._declaration.senses:
                    continue
                message = f"{name} of {card.profile} speaks for {sense}, and nobody says what that is worth"
                yield Finding("x_sense_undeclared", name, message, f"declare {sense} with independence and grade")

    def _determinism(self) -> Iterator[Finding]:
        parents = {name for _, document in self._known() for name in document.get("extends", {})} | {"connection"}
        leaves = [document for card, document in self._known() if card.profile not in parents]
        for field, claimed in self._declaration.determinism.items():
            if field not in DETERMINISM or claimed not in DETERMINISM[field]:
                message = f"determinism {field} is {claimed!r}, which isn't one of its values"
                fix = f"use {', '.join(DETERMINISM.get(field, DETERMINISM))}"
                yield Finding("determinism_overclaimed", None, message, fix)
                continue
            for document in leaves:
                limit = _table(document, "determinism").get(field)
                if limit is not None and is_stronger(field, claimed, str(limit)):
                    message = f"determinism {field} is declared as {claimed}; {document.get('name')} is {limit}"
                    fix = "declare what the weakest of the profiles allows"
                    yield Finding("determinism_overclaimed", None, message, fix)

    def _instances(self) -> Iterator[Finding]:
        known = {instance.id for instance in self._declaration.instances}
        for name, tool in self._by_name.items():
            meta = tool.get("_meta")
            stated = cast("Mapping[str, Any]", meta).get(INSTANCE_META) if isinstance(meta, Mapping) else None
            for instance in cast("list[Any]", stated) if isinstance(stated, list) else [stated]:
                if instance is not None and instance not in known:
                    message = f"the tool {name!r} is of the instance {instance!r}, which isn't declared"
                    yield Finding("unknown_instance", None, message, "list the instance under instances")


def _compared(code: Code, part: str, message: str, answer: Answer, fix: str, older: bool) -> Iterator[Finding]:
    if isinstance(answer, Yes):
        return
    message = f"{message}: {answer.reason} at {answer.path}"
    if isinstance(answer, No) and not older:
        yield Finding(code, part, message, fix)
    else:
        doubt = "by the definition of a later version, " if older else "it can't be shown otherwise than that "
        yield Finding("unproven", part, doubt + message, f"let conformance try it, or {fix}")


def _unknown(card: Card, document: _Document | None) -> Finding:
    at_hand = f"only {document.get('version')} is at hand" if document else "no definition of it is at hand"
    message = f"{card.profile} {card.version} is declared, and {at_hand}"
    return Finding("unknown_profile", card.profile, message, "install the package that defines it")


def _callable(document: _Document) -> dict[str, _Document]:
    """The parts that have tools: operations and reads."""
    return {**_table(document, "operations"), **_table(document, "reads")}


def _table(document: _Document, key: str) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", document.get(key, {}))


def _stated(document: _Document) -> dict[str, Sense]:
    """What a profile itself says of senses."""
    stated = _table(document, "senses").items()
    return {name: Sense(str(one.get("independence")), str(one.get("grade"))) for name, one in stated}


def _order(version: object) -> tuple[int, int, int]:
    return numbers(parse_version(version))


def _same_major(document: _Document, version: str) -> bool:
    """Whether the document defines what is declared: a new major is another thing, and before 1.0.0 a new minor is."""
    try:
        one, other = _order(document.get("version")), _order(version)
    except ProfileError:
        return False
    return one[0] == other[0] and (one[0] > 0 or one[1] == other[1])
