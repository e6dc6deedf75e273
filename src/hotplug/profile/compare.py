"""Whether one JSON Schema accepts everything that another allows.

Yes is proven from the schemas' structure, No comes with a value that the one allows and the other refuses, and whatever
is neither is Unproven: never a pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

from hotplug.profile.branches import FORMATS, Branch, Root, Schema, TooLarge, dump, has_type, rewrite, same, types_of

__all__ = ["Answer", "No", "Schema", "Unproven", "Yes", "accepts_all", "restrict", "seal"]

_MOST_STEPS: Final = 50_000
_LONGEST_EXAMPLE: Final = 160

_BY_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": (
        *("prefixItems", "items", "additionalItems", "minItems", "maxItems", "uniqueItems"),
        *("contains", "minContains", "maxContains", "unevaluatedItems"),
    ),
    "object": (
        *("required", "properties", "patternProperties", "additionalProperties", "minProperties", "maxProperties"),
        *("propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
    ),
}


@dataclass(frozen=True, slots=True)
class Yes:
    """Everything that the narrower schema allows fits the wider one."""


@dataclass(frozen=True, slots=True)
class No:
    """Something that the narrower schema allows doesn't fit the wider one: `example`, and why, where it first shows."""

    reason: str
    path: str
    example: Any


@dataclass(frozen=True, slots=True)
class Unproven:
    """Neither shown nor refuted, and where the proof got stuck."""

    reason: str
    path: str


Answer = Yes | No | Unproven


def accepts_all(wider: Schema, narrower: Schema, *, named_only: bool = False, lenient: bool = False) -> Answer:
    """Compares two JSON Schemas of dialect 2020-12; `x-` keywords and annotations don't count, `format` does.

    Args:
        wider: The schema that should accept.
        narrower: The schema that says what comes.
        named_only: What comes has only the properties that `narrower` names, where it neither lists
            `additionalProperties` nor `patternProperties`: as arguments that our own client writes do.
        lenient: What `wider` doesn't name is no reason to refuse (`additionalProperties: false` doesn't count): as a
            reader that ignores unknown members does.
    """
    if lenient:
        wider = rewrite(wider, _opened)
    prover = _Prover(Root(wider), Root(narrower), named_only)
    try:
        gap = prover.prove(wider, [narrower], "$")
    except RecursionError:
        gap = _Gap("the schemas are nested too deeply to compare", "$")
    except (AttributeError, KeyError, TypeError, ValueError, re.error) as error:
        # A keyword with a value of another kind than JSON Schema gives it; servers do list such schemas.
        gap = _Gap(f"a schema is malformed ({error})", "$")
    if gap is None:
        return Yes()
    from hotplug.profile.examples import NOTHING, counterexample

    example = counterexample(wider, narrower, named_only=named_only)
    if example is NOTHING:
        return Unproven(gap.reason, gap.path)
    shown = json.dumps(example, ensure_ascii=False)
    shown = shown if len(shown) <= _LONGEST_EXAMPLE else shown[:_LONGEST_EXAMPLE] + "…"
    return No(f"{gap.reason}; for example {shown}", gap.path, example)


def restrict(schema: Schema, facets: Collection[str]) -> Schema:
    """The schema without the fields of facets that aren't declared (`x-facet`), in `properties` and `required`."""

    def change(node: dict[str, Any]) -> dict[str, Any]:
        properties = node.get("properties")
        if not isinstance(properties, Mapping):
            return node
        fields = cast("Mapping[str, Any]", properties)
        gone = {name for name, field in fields.items() if _foreign(field, facets)}
        if gone:
            node["properties"] = {name: field for name, field in fields.items() if name not in gone}
            if isinstance(node.get("required"), list):
                node["required"] = [name for name in cast("list[str]", node["required"]) if name not in gone]
        return node

    return rewrite(schema, change, negative=True)


def seal(schema: Schema) -> Schema:
    """The schema with `additionalProperties: false` wherever it names properties and says nothing of others.

    A server that doesn't name an argument can't be honouring it, whatever its schema lets pass. Inside of an `allOf`,
    where one schema's properties are another's additional ones, nothing is sealed.
    """
    return rewrite(schema, _sealed, skip=("allOf",))


def _sealed(node: dict[str, Any]) -> dict[str, Any]:
    open_to = ("additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "$ref")
    if "properties" in node and not any(key in node for key in open_to):
        node["additionalProperties"] = False
    return node


def _foreign(field: object, facets: Collection[str]) -> bool:
    facet = cast("Mapping[str, Any]", field).get("x-facet") if isinstance(field, Mapping) else None
    return isinstance(facet, str) and facet not in facets


def _opened(node: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in node.items()
        if value is not False or key not in ("additionalProperties", "unevaluatedProperties")
    }


@dataclass(frozen=True, slots=True)
class _Gap:
    """Where a proof fails, and why."""

    reason: str
    path: str


class _Prover:
    """Proves that a node of one root accepts a conjunction of nodes of another, or says where it can't."""

    def __init__(self, wider: Root, narrower: Root, named_only: bool) -> None:
        self._wider = wider
        self._narrower = narrower
        self._named_only = named_only
        self._steps = 0
        self._depth = 0
        self._open: dict[str, int] = {}

    def prove(self, wider: Schema, nodes: Sequence[Schema], path: str) -> _Gap | None:
        if wider is True or False in nodes:
            return None
        if isinstance(wider, Mapping) and not wider:
            return None
        if any(self._alike(wider, node) for node in nodes):
            return None
        try:
            branches = self._narrower.branches(nodes)
        except TooLarge:
            return _Gap("there are too many alternatives to compare", path)
        for branch in branches:
            if gap := self._branch(wider, branch, path):
                return gap
        return None

    def _alike(self, wider: Schema, node: Schema) -> bool:
        return self._wider.plain(wider) == self._narrower.plain(node)

    def _branch(self, wider: Schema, branch: Branch, path: str) -> _Gap | None:
        if wider is True:
            return None
        if wider is False:
            return _Gap("nothing is accepted here", path)
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return _Gap("the schemas are too large to compare", path)
        key = f"{dump(wider)}\n{branch.key}"
        if key in self._open:
            # A finite value that goes one level down each time round ends some day; one that stays doesn't.
            return None if self._depth > self._open[key] else _Gap("the schema refers to itself", path)
        self._open[key] = self._depth
        try:
            return self._keywords(wider, branch, path)
        finally:
            del self._open[key]

    def _keywords(self, wider: Mapping[str, Any], branch: Branch, path: str) -> _Gap | None:
        if branch.values is not None:
            return self._values(wider, branch, path)
        own = wider
        if "$ref" in wider:
            target = self._wider.target(wider["$ref"])
            if target is None:
                return _Gap(f"the reference {wider['$ref']!r} doesn't resolve", path)
            if gap := self._branch(target, branch, path):
                return gap
            own = self._wider.rest(wider)
        for check in (self._alternatives, self._plain, self._typed):
            if gap := check(own, branch, path):
                return gap
        return None

    def _values(self, wider: Mapping[str, Any], branch: Branch, path: str) -> _Gap | None:
        for value in branch.values or ():
            if not self.holds(wider, value) and not any(self._alike(wider, flat) for flat in branch.flats):
                return _Gap(f"{_shown(value)} isn't accepted", path)
        return None

    def _alternatives(self, wider: Mapping[str, Any], branch: Branch, path: str) -> _Gap | None:
        for member in wider.get("allOf", ()):
            if gap := self._branch(member, branch, path):
                return gap
        if "anyOf" in wider:
            gaps: list[_Gap] = []
            for member in wider["anyOf"]:
                gap = self._branch(member, branch, path)
                if gap is None:
                    break
                gaps.append(gap)
            else:
                return self._nearest(gaps, wider["anyOf"], branch, path)
        if "oneOf" in wider:
            members: list[Schema] = wider["oneOf"]
            for index, member in enumerate(members):
                others = members[:index] + members[index + 1 :]
                if self._branch(member, branch, path) is None:
                    if all(self._disjoint(other, branch) for other in others):
                        return None
                    return _Gap("more than one alternative of a oneOf may fit", path)
            return _Gap("no alternative of a oneOf accepts it", path)
        return None

    def _nearest(self, gaps: Sequence[_Gap], members: Sequence[Schema], branch: Branch, path: str) -> _Gap:
        """The gap of the only alternative that could have been meant, else a summary."""
        near = [gap for gap, member in zip(gaps, members, strict=True) if not self._disjoint(member, branch)]
        return near[0] if len(near) == 1 else _Gap(f"no alternative accepts {_named(branch)}", path)

    def _plain(self, wider: Mapping[str, Any], branch: Branch, path: str) -> _Gap | None:
        """The keywords that apply to every type."""
        if "type" in wider:
            types = types_of(wider)
            if branch.type not in types and not (branch.type == "integer" and "number" in types):
                return _Gap(f"{_named(branch)} isn't accepted, only {' or '.join(sorted(types))}", path)
        for keyword in ("const", "enum"):
            if keyword in wider:
                return _Gap(f"any {branch.type} is allowed, only listed values are accepted", path)
        if "not" in wider and not self._implied(wider, branch, ("not",)):
            return _Gap("a `not` can't be compared", path)
        conditional = ("if", "then", "else")
        if "if" in wider and not self._implied(wider, branch, conditional):
            return _Gap("an `if` can't be compared", path)
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if keyword in wider:
                return _Gap(f"a {keyword} can't be compared", path)
        return None

    def _implied(self, wider: Mapping[str, Any], branch: Branch, keywords: Sequence[str]) -> bool:
        """Whether a schema of the branch has the very same keywords."""
        wanted = {key: wider[key] for key in keywords if key in wider}
        return any(self._alike(wanted, {key: flat[key] for key in keywords if key in flat}) for flat in branch.flats)

    def _typed(self, wider: Mapping[str, Any], branch: Branch, path: str) -> _Gap | None:
        kind = "number" if branch.type == "integer" else branch.type
        keywords = [key for key in _BY_TYPE.get(str(kind), ()) if key in wider]
        if not keywords:
            return None
        match kind:
            case "string":
                return self._string(wider, branch, path, keywords)
            case "number":
                return self._number(wider, branch, path)
            case "array":
                return self._array(wider, branch, path, keywords)
            case _:
                return self._object(wider, branch, path, keywords)

    def _string(self, wider: Mapping[str, Any], branch: Branch, path: str, keywords: list[str]) -> _Gap | None:
        for keyword in keywords:
            wanted = wider[keyword]
            if keyword == "minLength" and (branch.most("minLength") or 0) < wanted:
                return _Gap(f"shorter strings than {wanted} aren't accepted", path)
            if keyword == "maxLength" and not _at_most(branch.least("maxLength"), wanted):
                return _Gap(f"longer strings than {wanted} aren't accepted", path)
            if keyword in ("pattern", "format") and wanted not in list(branch.all(keyword)):
                return _Gap(f"only strings of the {keyword} {wanted!r} are accepted", path)
        return None

    def _number(self, wider: Mapping[str, Any], branch: Branch, path: str) -> _Gap | None:
        low, high = branch.range()
        wanted_low, wanted_high = Branch((wider,), branch.type).range()
        if wanted_low is not None and (low is None or low < wanted_low):
            return _Gap(f"numbers below {wanted_low[0]:g} aren't accepted", path)
        if wanted_high is not None and (high is None or (high[0], not high[1]) > (wanted_high[0], not wanted_high[1])):
            return _Gap(f"numbers above {wanted_high[0]:g} aren't accepted", path)
        for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
            if isinstance(wider.get(keyword), bool) and not self._implied(
                wider, branch, (keyword, keyword[9:].lower())
            ):
                return _Gap(f"a {keyword} of an older dialect can't be compared", path)
        step = wider.get("multipleOf")
        if step is not None and not any(_divides(step, own) for own in branch.all("multipleOf")):
            if step == 1 and branch.type == "integer":
                return None
            return _Gap(f"only multiples of {step:g} are accepted", path)
        return None

    def _array(self, wider: Mapping[str, Any], branch: Branch, path: str, keywords: list[str]) -> _Gap | None:
        most = branch.least("maxItems")
        prefix: list[Schema] = wider.get("prefixItems", [])
        items = wider.get("items", True)
        for keyword in keywords:
            wanted = wider[keyword]
            if keyword == "minItems" and (branch.most("minItems") or 0) < wanted:
                return _Gap(f"lists shorter than {wanted} aren't accepted", path)
            if keyword == "maxItems" and not _at_most(most, wanted):
                return _Gap(f"lists longer than {wanted} aren't accepted", path)
            if (
                keyword == "uniqueItems"
                and wanted
                and not any(branch.all("uniqueItems"))
                and (most is None or most > 1)
            ):
                return _Gap("lists with equal items aren't accepted", path)
            if keyword == "contains" and not self._implied(wider, branch, ("contains", "minContains", "maxContains")):
                return _Gap("a `contains` can't be compared", path)
            if keyword in ("unevaluatedItems", "additionalItems") or (keyword == "items" and isinstance(items, list)):
                return _Gap(f"`{keyword}` can't be compared", path)
        last = max(len(prefix), branch.prefix())
        for index in range(last + 1):
            if most is not None and index >= most:
                break
            node = branch.item(index if index < last else None)
            with self._deeper():
                place = f"{path}[{index if index < last else ''}]"
                if gap := self.prove(prefix[index] if index < len(prefix) else items, node, place):
                    return gap
        return None

    def _object(self, wider: Mapping[str, Any], branch: Branch, path: str, keywords: list[str]) -> _Gap | None:
        named, required = branch.named(), branch.required()
        extra = branch.extra(named_only=self._named_only)
        closed = extra == [False]
        for name in wider.get("required", ()):
            if name not in required:
                return _Gap(f"{name!r} is required, and may be missing", path)
        for keyword in keywords:
            if gap := self._object_keyword(keyword, wider, branch, path):
                return gap
        properties: Mapping[str, Schema] = wider.get("properties", {})
        patterns: Mapping[str, Schema] = wider.get("patternProperties", {})
        if patterns and not closed and not self._implied(wider, branch, ("patternProperties",)):
            return _Gap("`patternProperties` can't be compared", path)
        others: Schema = wider.get("additionalProperties", True)
        for name in [*named, *(name for name in properties if name not in named)]:
            if name not in named and closed:
                continue
            node = branch.member(name) if name in named else extra
            if False in node:
                continue
            matching = [schema for pattern, schema in patterns.items() if re.search(pattern, name)]
            wanted: list[Schema] = [properties[name]] if name in properties else matching or [others]
            if name in properties and closed:
                wanted += matching
            if wanted == [False]:
                return _Gap(f"the member {name!r} isn't accepted", path)
            for schema in wanted:
                with self._deeper():
                    if gap := self.prove(schema, node, f"{path}.{name}"):
                        return gap
        if closed or others is True:
            return None
        if others is False:
            return _Gap("members that aren't named aren't accepted", path)
        with self._deeper():
            return self.prove(others, extra, f"{path}.*")

    def _object_keyword(self, keyword: str, wider: Mapping[str, Any], branch: Branch, path: str) -> _Gap | None:
        wanted = wider[keyword]
        closed = branch.extra(named_only=self._named_only) == [False]
        match keyword:
            case "minProperties":
                if max(branch.most("minProperties") or 0, len(branch.required())) < wanted:
                    return _Gap(f"objects of fewer members than {wanted} aren't accepted", path)
            case "maxProperties":
                fewest = branch.least("maxProperties")
                if not _at_most(fewest, wanted) and not (closed and len(branch.named()) <= wanted):
                    return _Gap(f"objects of more members than {wanted} aren't accepted", path)
            case "propertyNames":
                listed = closed and all(self.holds(wanted, name) for name in branch.named())
                if not listed and not self._implied(wider, branch, (keyword,)):
                    return _Gap("not every name of a member is accepted", path)
            case "dependentRequired":
                needed = {name for names in wanted.values() for name in names}
                if not needed <= branch.required() and not self._implied(wider, branch, (keyword,)):
                    return _Gap("a `dependentRequired` can't be compared", path)
            case "dependentSchemas" | "dependencies":
                if not self._implied(wider, branch, (keyword,)):
                    return _Gap(f"`{keyword}` can't be compared", path)
            case "unevaluatedProperties":
                if wanted is not True:
                    return _Gap("`unevaluatedProperties` can't be compared", path)
            case _:
                pass
        return None

    def _disjoint(self, wider: Schema, branch: Branch) -> bool:
        """Whether nothing of the branch fits the schema, for sure."""
        if isinstance(wider, bool):
            return not wider
        try:
            options = self._wider.branches([wider])
        except TooLarge:
            return False
        return all(self._apart(option, branch) for option in options)

    def _apart(self, option: Branch, branch: Branch) -> bool:
        if branch.values is not None:
            if option.values is not None:
                return not any(same(one, other) for one in option.values for other in branch.values)
            types = {str(option.type)}
            return not any(has_type(value, types) for value in branch.values)
        if option.values is not None:
            types = {str(branch.type)}
            return not any(has_type(value, types) for value in option.values)
        if option.type != branch.type:
            return {option.type, branch.type} != {"integer", "number"}
        if branch.type != "object":
            return False
        closed = branch.extra(named_only=self._named_only) == [False]
        for name in option.required():
            if (closed and name not in branch.named()) or False in branch.member(name):
                return True
        for name in branch.required():
            if False in option.member(name):
                return True
            if name in option.named() and name in branch.named() and self._members_apart(option, branch, name):
                return True
        return False

    def _members_apart(self, option: Branch, branch: Branch, name: str) -> bool:
        try:
            ours = self._wider.branches(option.member(name))
            theirs = self._narrower.branches(branch.member(name))
        except TooLarge:
            return False
        return all(
            one.values is not None
            and other.values is not None
            and not any(same(left, right) for left in one.values for right in other.values)
            for one in ours
            for other in theirs
        )

    def holds(self, schema: Schema, value: Any, following: frozenset[str] = frozenset()) -> bool | None:
        """Whether a value fits a schema of the wider root; None where that isn't decided here."""
        if isinstance(schema, bool):
            return schema
        found: list[bool | None] = []
        own = schema
        if "$ref" in schema:
            reference = str(schema["$ref"])
            target = self._wider.target(reference)
            known = target is not None and reference not in following
            found.append(self.holds(target, value, following | {reference}) if known and target is not None else None)
            own = self._wider.rest(schema)
        found.extend(self.holds(member, value, following) for member in own.get("allOf", ()))
        if "anyOf" in own:
            any_of = [self.holds(member, value, following) for member in own["anyOf"]]
            found.append(True if True in any_of else None if None in any_of else False)
        if "oneOf" in own:
            one_of = [self.holds(member, value, following) for member in own["oneOf"]]
            found.append(None if None in one_of else one_of.count(True) == 1)
        if "not" in own:
            inner = self.holds(own["not"], value, following)
            found.append(None if inner is None else not inner)
        found.extend(None for keyword in ("if", "$dynamicRef", "$recursiveRef") if keyword in own)
        found.append(has_type(value, types_of(own)))
        if "const" in own:
            found.append(same(own["const"], value))
        if "enum" in own:
            found.append(any(same(listed, value) for listed in own["enum"]))
        found.extend(_scalar(own, value))
        return False if False in found else None if None in found else True

    @contextmanager
    def _deeper(self) -> Generator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1


def _scalar(schema: Mapping[str, Any], value: Any) -> Iterator[bool | None]:
    """The keywords of a value's own type; None for what only a validator decides."""
    if isinstance(value, (list, Mapping)):
        kind = "array" if isinstance(value, list) else "object"
        yield from (None for key in _BY_TYPE[kind] if key in schema)
    elif isinstance(value, str):
        if "minLength" in schema:
            yield len(value) >= schema["minLength"]
        if "maxLength" in schema:
            yield len(value) <= schema["maxLength"]
        if "pattern" in schema:
            yield _matches(schema["pattern"], value)
        if "format" in schema:
            pattern = FORMATS.get(schema["format"])
            yield True if pattern and pattern.fullmatch(value) else None
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if any(isinstance(schema.get(key), bool) for key in ("exclusiveMinimum", "exclusiveMaximum")):
            yield None
            return
        low, high = Branch((schema,), None).range()
        if low is not None:
            yield value > low[0] if low[1] else value >= low[0]
        if high is not None:
            yield value < high[0] if high[1] else value <= high[0]
        if "multipleOf" in schema:
            yield _divides(schema["multipleOf"], value)


def _divides(step: float, value: float) -> bool | None:
    """Whether a number is a multiple; None where fractions make that a matter of rounding."""
    if isinstance(step, int) and isinstance(value, int) and step:
        return value % step == 0
    return True if step == value else None


def _at_most(bound: float | None, limit: float) -> bool:
    return bound is not None and bound <= limit


def _matches(pattern: str, text: str) -> bool | None:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return None


def _named(branch: Branch) -> str:
    return f"an {branch.type}" if str(branch.type)[0] in "aoi" else f"a {branch.type}"


def _shown(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= _LONGEST_EXAMPLE else shown[:_LONGEST_EXAMPLE] + "…"
