"""What is wrong between a declaration, the profiles' definitions and a server's tools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["HARMLESS", "Code", "Finding", "available"]

Code = Literal[
    "unknown_profile",
    "missing_parent",
    "parent_out_of_range",
    "digest_mismatch",
    "missing_part",
    "facet_incomplete",
    "input_narrower",
    "output_wider",
    "sense_overclaimed",
    "determinism_overclaimed",
    "x_sense_undeclared",
    "alias_tool_missing",
    "alias_fixed_unknown",
    "extension_requires_unmet",
    "unknown_instance",
    "bad_name",
    "dialects_disagree",
    "unproven",
]

HARMLESS: Final[frozenset[Code]] = frozenset({"unproven"})
"""Codes that make nothing unavailable, and count as no pass either."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that doesn't hold.

    Args:
        code: Stable, for programs.
        part: The profile, extension or part that it is about; None where it is about the declaration as a whole.
        message: What was seen, for a person.
        fix: What the server's author does about it.
    """

    code: Code
    part: str | None
    message: str
    fix: str


def available(findings: Iterable[Finding]) -> bool:
    """Whether what was checked can be used: `unproven` alone makes nothing unavailable, everything else does."""
    return all(finding.code in HARMLESS for finding in findings)
