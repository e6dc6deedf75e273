"""What a projection does, for a reader: operations × tools, and everything that is refused or not exact."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hotplug.cli.lookup import find_profile, known_profiles

if TYPE_CHECKING:
    from hotplug.projection import Loaded

__all__ = ["document_of", "text_of"]

_WIDTH = 100
_MARKS = {"mapped": "✓", "approximated": "~", "raw_only": "·", "unmapped": "–", None: "✗"}


def document_of(loaded: Loaded) -> dict[str, Any]:
    """The projection as data."""
    from hotplug.projection import digest
    from hotplug.projection.coverage import matrix

    document = loaded.source.document
    body: dict[str, Any] = {
        "projection": document.projection,
        "version": document.version,
        "digest": digest(document),
        "file": str(loaded.path),
        "package": document.upstream.package,
        "versions": document.upstream.versions,
        "frozen": document.upstream.tools is not None and (document.code is None or document.code_digest is not None),
        "profiles": dict(document.profiles),
        "facets": dict(document.facets),
        "requires": {"env": list(document.requires.env)},
        "operations": [
            {
                "member": name,
                "tools": list(dict.fromkeys(step.tool for _, step in operation.calls())),
                "code": operation.by_code,
                "refuses": [
                    {"code": rule.code, "message": rule.message, "when": rule.when, "lost": list(rule.lost)}
                    for rule in operation.refuse
                ],
                "unread": dict(operation.unread),
            }
            for name, operation in document.operations.items()
        ],
        "coverage": [
            {"tool": row.tool, "state": row.state, "note": row.note, "members": list(row.members)}
            for row in matrix(loaded.source, loaded.tools)
        ],
        "missing": list(_missing(loaded)),
    }
    if document.requires.note:
        body["requires"]["note"] = document.requires.note
    return body


def _missing(loaded: Loaded) -> Iterator[dict[str, Any]]:
    document = loaded.source.document
    for name in document.profiles:
        if name not in known_profiles():
            continue
        definition = find_profile(name).definition
        for part in definition.all_parts.values():
            if part.name in document.operations:
                continue
            facet = definition.all_facets.get(part.flags.facet or "")
            without = part.flags.without or (facet.without if facet else None)
            yield {"part": part.name, **({"without": without} if without else {})}


def text_of(body: dict[str, Any]) -> str:
    """The same as text."""
    profiles = ", ".join(f"{name} {version}" for name, version in body["profiles"].items())
    lines = [
        f"{body['projection']} {body['version']}{'' if body['frozen'] else ' (not frozen)'}",
        f"  {profiles} on {body['package']} {body['versions']}",
    ]
    if body["facets"]:
        lines += _wrapped("  facets", ", ".join(body["facets"]))
    if body["requires"]["env"]:
        lines += _wrapped("  needs", ", ".join(body["requires"]["env"]))
    if body["requires"].get("note"):
        lines += _wrapped("  note", body["requires"]["note"])
    lines += ["", *_matrix(body)]
    refused = [
        line
        for one in body["operations"]
        for rule in one["refuses"]
        for line in _wrapped(f"  {one['member']} ({rule['code']})", rule["message"] + _lost(rule["lost"]))
    ]
    if refused:
        lines += ["", "refused before anything is sent", *refused]
    unread = [
        line
        for one in body["operations"]
        for field, reason in one["unread"].items()
        for line in _wrapped(f"  {one['member']} {field}", reason)
    ]
    if unread:
        lines += ["", "left out", *unread]
    for state, title in (("approximated", "not exact"), ("raw_only", "only raw"), ("unmapped", "not used")):
        rows = [row for row in body["coverage"] if row["state"] == state]
        if rows:
            lines += ["", title]
            lines += [line for row in rows for line in _wrapped(f"  {row['tool']}", row["note"] or "")]
    if body["missing"]:
        lines += ["", "missing"]
        lines += [line for one in body["missing"] for line in _wrapped(f"  {one['part']}", one.get("without", ""))]
    return "\n".join(lines)


def _lost(names: list[str]) -> str:
    return f" (unless accepted: {', '.join(names)})" if names else ""


def _matrix(body: dict[str, Any]) -> Iterator[str]:
    operations = body["operations"]
    members = [one["member"].partition(".")[2] for one in operations]
    width = max((len(row["tool"]) for row in body["coverage"]), default=4)
    yield "  ".join([f"  {'tool':<{width}}", *members]).rstrip()
    for row in body["coverage"]:
        cells = [
            f"{'●' if one['member'] in row['members'] else '':^{len(member)}}"
            for one, member in zip(operations, members, strict=True)
        ]
        yield "  ".join([f"{_MARKS[row['state']]} {row['tool']:<{width}}", *cells]).rstrip()
    coded = [member for one, member in zip(operations, members, strict=True) if one["code"]]
    if coded:
        yield f"  by code: {', '.join(coded)}"
    yield "  ✓ mapped  ~ approximated  · raw only  – not used  ● calls it"


def _wrapped(head: str, text: str) -> list[str]:
    joined = " ".join(f"{head.strip()}: {text}".split()) if text else head.strip()
    return textwrap.wrap(joined, _WIDTH, initial_indent="  ", subsequent_indent="      ")
