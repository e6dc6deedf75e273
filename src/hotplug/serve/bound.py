"""Parts bound to what does them, and how an MCP server lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from hotplug.errors import InvalidArgument, Unsupported
from hotplug.profile import Extra, Model, Part
from hotplug.profile.compare import restrict, rewrite
from hotplug.profile.schema import error_or, fields_of_facets, sensitive_fields
from hotplug.serve.provider import Provider
from hotplug.serve.refs import Seal

__all__ = ["MEMBER_META", "Bound", "Tool", "bind"]

MEMBER_META: Final = "org.classprofiles/member"


@dataclass(frozen=True)
class Tool:
    """A part as an MCP server lists it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    annotations: dict[str, Any]
    meta: dict[str, Any]

    def listed(self) -> dict[str, Any]:
        """The tool as it stands in `tools/list`."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
            "_meta": self.meta,
        }


@dataclass(frozen=True)
class Bound:
    """A part, and what stands behind it."""

    part: Part
    member: str
    provider: Provider

    @cached_property
    def undeclared(self) -> Mapping[str, str]:
        """Argument paths that belong to facets which the server doesn't offer."""
        paths = fields_of_facets(self.part.input.schema)
        return {path: facet for path, facet in paths.items() if facet not in self.provider.facets}

    @cached_property
    def extras(self) -> Mapping[str, Extra]:
        """What the server's extensions add to the part, by extension."""
        found = {one.id: one.extras.get(self.part.name) for one in self.provider.extensions}
        return {id_: extra for id_, extra in found.items() if extra is not None}

    @cached_property
    def sensitive(self) -> frozenset[str]:
        """Names of arguments, those of extensions too, whose values must never be shown."""
        return self.part.sensitive.union(*(sensitive_fields(one.shape.schema) for one in self.extras.values()))

    def check_facets(self, given: Mapping[str, Any]) -> None:
        """Refuse arguments of facets that aren't offered.

        Raises:
            Unsupported: There is one.
        """
        for path, facet in self.undeclared.items():
            if _has(given, path):
                raise Unsupported(
                    f"{path} belongs to the facet {facet!r}, which this server doesn't offer",
                    details={"argument": path, "facet": facet, "lost": [path.rpartition(".")[2]]},
                )

    def read_extras(self, extras: Any, seal: Seal) -> dict[str, Model]:
        """The arguments of extensions, `ext` of the call.

        Raises:
            InvalidArgument: They don't fit.
            Unsupported: One is of an extension that the server doesn't offer, or that adds nothing here.
        """
        if extras is None:
            return {}
        if not isinstance(extras, dict):
            raise InvalidArgument("ext is no object", hint="give it as {<extension id>: {…}}")
        found: dict[str, Model] = {}
        for id_, values in cast("dict[str, Any]", extras).items():
            extra = self.extras.get(id_)
            if extra is None:
                raise Unsupported(f"this server doesn't offer {id_} on {self.part.name}", details={"extension": id_})
            try:
                found[id_] = extra.shape.read(values, refs=seal)
            except InvalidArgument as error:
                raise InvalidArgument(f"ext.{id_}: {error.message}", details=error.details) from None
        return found

    @cached_property
    def tool(self) -> Tool:
        """The part as a tool."""
        part, facets = self.part, self.provider.facets
        return Tool(
            name=part.name,
            description=part.description,
            input_schema=_with_extras(cast("dict[str, Any]", restrict(part.input.schema, facets)), self.extras),
            output_schema=error_or(cast("dict[str, Any]", restrict(part.output.schema, facets))),
            annotations=_annotations(part),
            meta={MEMBER_META: self.member},
        )


def bind(provider: Provider) -> list[Bound]:
    """The parts that a provider offers, those of its extensions too, each with its identity."""
    definition = provider.definition
    found = [
        Bound(part, definition.member(part.name), provider)
        for part in definition.all_parts.values()
        if part.kind != "event" and part.name in provider.implemented
    ]
    for extension in provider.extensions:
        for part in extension.parts.values():
            if part.kind != "event" and part.name in provider.implemented:
                major = extension.version.partition(".")[0]
                found.append(Bound(part, f"{extension.id}@{major}/{part.name}", provider))
    return found


def _annotations(part: Part) -> dict[str, bool]:
    """Hints derived from the contract. What it doesn't say, whether an effect may destroy, is left out: the worse."""
    hints = {
        "readOnlyHint": not part.flags.effects,
        "idempotentHint": not part.flags.effects,
        "openWorldHint": part.flags.effects,
    }
    if not part.flags.effects or part.flags.guarded:
        hints["destructiveHint"] = part.flags.effects or part.flags.guarded
    return hints


def _with_extras(schema: dict[str, Any], extras: Mapping[str, Extra]) -> dict[str, Any]:
    """The input schema with what extensions add, under `ext`; definitions are lifted to the root under the id."""
    if not extras:
        return schema
    properties: dict[str, Any] = {}
    definitions = dict(schema.get("$defs", {}))
    for id_, extra in extras.items():

        def renamed(node: dict[str, Any], id_: str = id_) -> dict[str, Any]:
            reference = node.get("$ref")
            if isinstance(reference, str):
                node["$ref"] = reference.replace("#/$defs/", f"#/$defs/{id_}.")
            return node

        body = cast("dict[str, Any]", rewrite(extra.shape.schema, renamed, negative=True))
        definitions.update({f"{id_}.{name}": one for name, one in body.pop("$defs", {}).items()})
        properties[id_] = body
    ext = {"type": "object", "properties": properties, "additionalProperties": False}
    found = {**schema, "properties": {**schema.get("properties", {}), "ext": ext}}
    return {**found, "$defs": definitions} if definitions else found


def _has(arguments: Any, path: str) -> bool:
    head, _, rest = path.partition(".")
    if isinstance(arguments, list):
        return any(_has(item, path) for item in cast("list[Any]", arguments))
    if not isinstance(arguments, dict) or head not in arguments:
        return False
    return not rest or _has(cast("dict[str, Any]", arguments)[head], rest)
