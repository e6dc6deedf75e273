"""`hotplug profile`: read, compare, start, document and publish profiles."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotplug.cli.command import command, group
from hotplug.cli.failure import Exit
from hotplug.cli.files import write_new, write_whole
from hotplug.cli.lookup import Found, find_profile, known_profiles
from hotplug.cli.output import Output
from hotplug.cli.printing import did_you_mean
from hotplug.cli.profile_diff import compare
from hotplug.cli.profile_new import profile_source
from hotplug.cli.profile_publish import plan
from hotplug.cli.profile_text import first_sentence, overview, page, part_text, sides
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.profile import Part

app = group("Profiles: contracts for one kind of thing, as data.")


def _names(incomplete: str) -> list[str]:
    return [name for name in known_profiles() if name.startswith(incomplete)]


Which = Annotated[
    str,
    typer.Argument(
        help="A profile of the catalog, a profile.json (- for stdin), module:Class or file.py:Class.",
        autocompletion=_names,
        show_default=False,
    ),
]


def _find(out: Output, word: str) -> Found:
    found = find_profile(word)
    out.used(f"profile: {found.definition.name} {found.definition.version} from {found.origin}")
    return found


def _part(found: Found, name: str) -> Part:
    parts = found.definition.all_parts
    part = parts.get(name) or parts.get(f"{found.definition.name}.{name}")
    if part is None:
        raise ConfigError(
            f"{found.definition.name} has no part {name!r}",
            hint=did_you_mean(name, parts) or f"`hotplug profile show {found.definition.name}` lists them",
        )
    return part


@command(app, "list")
def list_(out: Output) -> None:
    """List the profiles that are installed."""
    rows: list[dict[str, Any]] = []
    for name in known_profiles():
        definition = find_profile(name).definition
        rows.append(
            {
                "name": name,
                "version": definition.version,
                "digest": definition.digest,
                "summary": first_sentence(definition.description),
                "parts": len(definition.all_parts),
                "facets": list(definition.facets),
            }
        )

    def text() -> str:
        width = max((len(row["name"]) for row in rows), default=0)
        return "\n".join(f"{row['name']:<{width}}  {row['version']}  {row['summary']}" for row in rows)

    out.answer("hotplug.profile-list/1", {"profiles": rows}, text, rows=("hotplug.profile-list.entry/1", rows))


@command(app, "show")
def show(
    out: Output,
    which: Which,
    part: Annotated[
        str | None, typer.Argument(help="One part: calendar.create, or create.", show_default=False)
    ] = None,
) -> None:
    """Show what a profile, or one part of it, asks for. As JSON a profile is its very profile.json."""
    found = _find(out, which)
    if part is None:
        document = found.document
        out.answer(document.pop("schema"), document, lambda: overview(found.definition))
        return
    one = _part(found, part)
    section = found.definition.member(one.name)
    body: dict[str, Any] = {"member": section, "name": one.name, "kind": one.kind, "description": one.description}
    body |= {side: dict(schema) for side, schema in sides(one)}
    out.answer("hotplug.profile-part/1", body, lambda: part_text(found.definition, one))


@command(app, "schema")
def schema(
    out: Output,
    which: Which,
    part: Annotated[str | None, typer.Argument(help="One part; without it, all of them.", show_default=False)] = None,
) -> None:
    """Print the JSON Schemas of a profile's parts, whatever the format."""
    found = _find(out, which)
    chosen = [_part(found, part)] if part else list(found.definition.all_parts.values())
    rows = [{"name": one.name, **{side: dict(body) for side, body in sides(one)}} for one in chosen]
    body = {"profile": found.definition.name, "version": found.definition.version, "parts": rows}
    out.answer(
        "hotplug.profile-schemas/1",
        body,
        lambda: json.dumps({row.pop("name"): row for row in rows}, indent=2, ensure_ascii=False),
        rows=("hotplug.profile-schemas.part/1", rows),
    )


@command(app, "digest")
def digest(
    out: Output,
    which: Which,
    expect: Annotated[str | None, typer.Option(help="Exit with 1 unless it is this one.", show_default=False)] = None,
) -> int:
    """Print the digest of a profile: SHA-256 over its canonical JSON (RFC 8785)."""
    found = _find(out, which)
    definition = found.definition
    same = expect is None or expect == definition.digest
    body: dict[str, Any] = {"profile": definition.name, "version": definition.version, "digest": definition.digest}
    if expect is not None:
        body |= {"expected": expect, "same": same}
    note = "" if same else f"\n✗ not the expected {expect}"
    out.answer(
        "hotplug.profile-digest/1", body, lambda: f"{definition.digest}  {definition.name} {definition.version}{note}"
    )
    return Exit.YES if same else Exit.NO


@command(app, "diff")
def diff(
    out: Output,
    old: Annotated[str, typer.Argument(help="The older one, named as elsewhere.", show_default=False)],
    new: Annotated[str, typer.Argument(help="The newer one.", show_default=False)],
) -> int:
    """Compare two versions of a profile, part by part. Exits with 1 if the newer version's number is too low.

    Major: someone who relied on the old one may break. Minor: something was added. Patch: words.
    """
    comparison = compare(_find(out, old).document, _find(out, new).document)
    changes = [asdict(change) for change in comparison.diff.changes]
    body = {
        "old": comparison.old,
        "new": comparison.new,
        "level": comparison.diff.level,
        "enough": comparison.fits,
        "least": comparison.least,
        "changes": changes,
    }

    def text() -> str:
        width = max((len(change["part"]) for change in changes), default=0)
        lines = [f"{change['level']:<5}  {change['part']:<{width}}  {change['message']}" for change in changes]
        if comparison.fits:
            return "\n".join([*lines, f"✓ {comparison.old} → {comparison.new}: {comparison.verdict}"])
        verdict = (
            f"✗ {comparison.old} → {comparison.new} is too low: {comparison.verdict}, so {comparison.least} at least"
        )
        return "\n".join([*lines, verdict])

    out.answer("hotplug.profile-diff/1", body, text, rows=("hotplug.profile-diff.change/1", changes))
    return Exit.YES if comparison.fits else Exit.NO


@command(app, "new")
def new(
    out: Output,
    name: Annotated[str, typer.Argument(help="The profile's name: one lower-case word.", show_default=False)],
    to: Annotated[Path | None, typer.Option(help="The file to write; NAME.py by default.", show_default=False)] = None,
) -> None:
    """Start a profile: a Python class that is whole and valid, to be changed. An existing file is never overwritten."""
    source = profile_source(name)
    if name in known_profiles():
        out.note(f"note: {name!r} is the name of an installed profile; yours can only be meant by its path")
    path = to or Path(f"{name}.py")
    write_new(path, source)
    spec = f"{path}:{name.title()}"
    out.answer(
        "hotplug.profile-new/1",
        {"file": str(path), "profile": spec},
        lambda: f"wrote {path}\nnext: hotplug profile show {spec}",
    )


@command(app, "docs")
def docs(
    out: Output,
    which: Which,
    to: Annotated[Path | None, typer.Option(help="A file to write instead of stdout.", show_default=False)] = None,
) -> None:
    """Write a profile's documentation as Markdown."""
    found = _find(out, which)
    markdown = page(found.definition)
    body: dict[str, Any] = {"profile": found.definition.name, "version": found.definition.version}
    if to is not None:
        write_whole({to: markdown})
        out.answer("hotplug.profile-docs/1", {**body, "file": str(to)}, lambda: f"wrote {to}")
        return
    out.answer("hotplug.profile-docs/1", {**body, "markdown": markdown}, lambda: markdown)


@command(app, "publish")
def publish(
    out: Output,
    which: Which,
    to: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the document and its lock; the document's own, or this one.", show_default=False
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if something would be written.")
    ] = False,
) -> int:
    """Freeze a profile: write its document, and name, version and digest into profiles.lock.

    A name and version that the lock has with another digest is refused: published things don't change.
    """
    found = _find(out, which)
    folder = to or (Path(found.origin).parent if found.origin.endswith(".json") else Path())
    publication = plan(found, folder)
    if not check:
        write_whole({path: publication.texts[path] for path in publication.changed})
    definition = found.definition
    body = {
        "profile": definition.name,
        "version": definition.version,
        "digest": definition.digest,
        "document": str(publication.document),
        "lock": str(publication.lock),
        "changed": [str(path) for path in publication.changed],
        "written": not check,
    }

    def text() -> str:
        lines = [f"{definition.name} {definition.version}  {definition.digest}"]
        if not publication.changed:
            return "\n".join([*lines, f"✓ published already: {publication.document}, {publication.lock}"])
        verb = "✗ would write" if check else "✓ wrote"
        return "\n".join(lines + [f"{verb} {path}" for path in publication.changed])

    out.answer("hotplug.profile-publish/1", body, text)
    return Exit.NO if check and publication.changed else Exit.YES
