"""Everything that is wrong, doubtful or worth knowing of a projection, found without a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotplug.cli.lookup import find_profile

if TYPE_CHECKING:
    from hotplug.projection import Source
    from hotplug.projection.coverage import Finding

__all__ = ["MARKS", "counts", "finding_document", "findings_of", "findings_text"]

MARKS: Mapping[str, str] = {"error": "✗", "warning": "!", "note": "–"}


def findings_of(
    source: Source, tools: Sequence[Mapping[str, Any]], path: Path, *, code: bool = True
) -> tuple[Finding, ...]:
    """The findings of `hotplug.projection.coverage` for every profile that the document names, and of its code's file.

    Args:
        code: Look at the code's digest as well.

    Raises:
        ConfigError: The document names a profile that isn't known here.
    """
    from hotplug.projection.coverage import check
    from hotplug.projection.functions import functions_of

    functions = functions_of(source.document.profiles)
    found: dict[Finding, None] = {}
    for name in source.document.profiles:
        profile = find_profile(name).document
        found.update(dict.fromkeys(check(source, tools, profile, functions=functions)))
    found.update(dict.fromkeys(_code(source, path, digest=code)))
    order = list(MARKS)
    return tuple(sorted(found, key=lambda finding: order.index(finding.level)))


def _code(source: Source, path: Path, *, digest: bool) -> Iterable[Finding]:
    from hotplug.projection.coverage import Finding
    from hotplug.projection.files import code_file
    from hotplug.projection.fingerprint import code_digest

    file = code_file(path, source.document)
    if file is None:
        return
    try:
        have = code_digest(file)
    except OSError:
        yield Finding("error", "code_missing", source.where("code"), f"there is no {file.name} beside the document")
        return
    frozen = source.document.code_digest
    if digest and frozen is not None and have != frozen:
        yield Finding("error", "code_digest", source.where("codeDigest"), f"the digest is not that of {file.name}")


def finding_document(finding: Finding) -> dict[str, Any]:
    return asdict(finding)


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """How many findings there are of each level."""
    levels = [finding.level for finding in findings]
    return {f"{level}s": levels.count(level) for level in MARKS}


def findings_text(findings: Sequence[Finding], *, verdict: str | None = None) -> str:
    """The findings a line each, and what they come to."""
    lines = [f"{MARKS[one.level]} {one}" for one in findings]
    many = counts(findings)
    said = ", ".join(f"{count} {word[:-1] if count == 1 else word}" for word, count in many.items() if count)
    mark = "✗" if many["errors"] else "✓"
    return "\n".join([*lines, verdict or f"{mark} {said or 'nothing found'}"])
