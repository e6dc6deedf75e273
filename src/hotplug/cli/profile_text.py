"""A profile in words: for the terminal, and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Final

from hotplug.cli.schema_text import Field, fields

if TYPE_CHECKING:
    from hotplug.profile import Definition, Part

__all__ = ["first_sentence", "overview", "page", "part_text", "sides"]

_SIDES: Final[Mapping[str, tuple[str, str]]] = {
    "operation": ("input", "output"),
    "read": ("input", "output"),
    "event": ("arguments", "payload"),
}


def sides(part: Part) -> tuple[tuple[str, Mapping[str, Any]], tuple[str, Mapping[str, Any]]]:
    """The two schemas of a part under the names that they have in a document."""
    inner, outer = _SIDES[part.kind]
    return (inner, part.input.schema), (outer, part.output.schema)


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join(cleandoc(text).split("\n\n")[0].split())
    head, stop, _ = paragraph.partition(". ")
    return head + "." if stop else paragraph


def overview(definition: Definition) -> str:
    """The profile on one screen: its core, its facets with what is lost without them, refs and senses."""
    lines = [f"{definition.name} {definition.version}  {definition.digest}", "", cleandoc(definition.description), ""]
    if definition.extends:
        lines += [f"Extends {', '.join(f'{name} {versions}' for name, versions in definition.extends.items())}", ""]
    for title, note, parts in _chapters(definition):
        lines += [
            title,
            *([f"  {note}"] if note else []),
            *_rows([(part.name, _tags(part), first_sentence(part.description)) for part in parts]),
            "",
        ]
    if definition.refs:
        lines += [
            "Refs",
            *_rows([(kind, _ref_tags(ref.volatile, ref.public), "") for kind, ref in sorted(definition.refs.items())]),
            "",
        ]
    if definition.senses:
        lines += [
            "Senses",
            *_rows([(name, sense.independence, sense.grade) for name, sense in definition.senses.items()]),
            "",
        ]
    if definition.setup:
        lines += ["Setup", *_field_rows(fields(definition.setup)), ""]
    return "\n".join(lines)


def part_text(definition: Definition, part: Part) -> str:
    """One part with its flags and every field of what it takes and gives."""
    lines = [f"{part.name}  {definition.member(part.name)}  {_tags(part)}", "", cleandoc(part.description), ""]
    if part.flags.without:
        lines += [f"Without it: {part.flags.without}", ""]
    for name, schema in sides(part):
        lines += [name.capitalize(), *(_field_rows(fields(schema)) or ["  nothing"]), ""]
    return "\n".join(lines)


def page(definition: Definition) -> str:
    """The profile as a page of Markdown, complete and in a fixed order, so that it can be committed and compared."""
    lines = [
        f"# {definition.name} {definition.version}",
        "",
        cleandoc(definition.description),
        "",
        f"Digest: `{definition.digest}`",
        "",
    ]
    if definition.extends:
        lines += [
            f"Extends {', '.join(f'`{name}` `{versions}`' for name, versions in definition.extends.items())}.",
            "",
        ]
    for title, note, parts in _chapters(definition):
        lines += [f"## {title}", "", *([note, ""] if note else [])]
        for part in parts:
            lines += [f"### `{part.name}`", "", f"*{_tags(part)}*", "", cleandoc(part.description), ""]
            if part.flags.without:
                lines += [f"Without it: {part.flags.without}", ""]
            for name, schema in sides(part):
                lines += _table(name.capitalize(), list(fields(schema)))
    if definition.refs:
        lines += ["## Refs", "", "| kind | |", "| --- | --- |"]
        lines += [
            f"| `{kind}` | {_ref_tags(ref.volatile, ref.public)} |" for kind, ref in sorted(definition.refs.items())
        ] + [""]
    if definition.senses:
        lines += ["## Senses", "", "| sense | independence | grade |", "| --- | --- | --- |"]
        lines += [
            f"| `{name}` | {sense.independence} | {sense.grade} |" for name, sense in definition.senses.items()
        ] + [""]
    determinism = definition.determinism.document()
    lines += [
        "## Determinism",
        "",
        "| aspect | default |",
        "| --- | --- |",
        *(f"| {key} | {value} |" for key, value in determinism.items()),
        "",
    ]
    if definition.setup:
        lines += ["## Setup", "", *_table("What a connection may be opened with", list(fields(definition.setup)))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _chapters(definition: Definition) -> Iterator[tuple[str, str, list[Part]]]:
    """The parts in groups: the core, what is optional by itself, then each facet with its note."""
    parts = list(definition.all_parts.values())
    yield "Core", "", [part for part in parts if part.flags.facet is None and part.flags.required]
    optional = [part for part in parts if part.flags.facet is None and not part.flags.required]
    if optional:
        yield "Optional", "", optional
    for name, facet in definition.facets.items():
        note = " ".join(
            filter(None, [cleandoc(facet.description), f"Without it: {facet.without}" if facet.without else ""])
        )
        yield f"Facet {name} {facet.version}", note, list(definition.facet_parts(name))


def _tags(part: Part) -> str:
    flags = part.flags
    tags: list[str] = [part.kind]
    tags += [name for name in ("effects", "once", "guarded", "eager") if getattr(flags, name)]
    if flags.sense:
        tags.append(f"sense {flags.sense}")
    if part.kind == "read":
        tags.append(f"look {flags.look}")
    if part.kind == "event":
        tags.append(flags.replay)
    if flags.timeout_ms:
        tags.append(f"{flags.timeout_ms} ms")
    return ", ".join(tags)


def _ref_tags(volatile: bool, public: bool) -> str:
    return ", ".join(["volatile" if volatile else "lasting", *(["public"] if public else [])])


def _rows(rows: list[tuple[str, str, str]]) -> list[str]:
    if not rows:
        return []
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [f"  {name:<{first}}  {tags:<{second}}  {text}".rstrip() for name, tags, text in rows]


def _field_rows(found: Iterator[Field]) -> list[str]:
    first = sorted(found, key=lambda field: not field.required)
    return _rows(
        [
            (_marked(field), field.type, " ".join(filter(None, [field.description, _with_facet(field)])))
            for field in first
        ]
    )


def _table(title: str, found: list[Field]) -> list[str]:
    if not found:
        return [f"{title}: nothing.", ""]
    lines = [f"{title}:", "", "| field | type | |", "| --- | --- | --- |"]
    for field in found:
        optional = "" if field.required else " (optional)"
        text = " ".join(filter(None, [field.description, _with_facet(field)]))
        lines.append(f"| `{field.name}`{optional} | {_cell(field.type)} | {_cell(text)} |")
    return [*lines, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _marked(field: Field) -> str:
    return field.name if field.required else f"{field.name}?"


def _with_facet(field: Field) -> str:
    return f"With the facet {field.facet}." if field.facet else ""
