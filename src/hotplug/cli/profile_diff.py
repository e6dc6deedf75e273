"""Two versions of a profile side by side: what changed, and whether the newer version's number says as much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotplug.profile.diff import Diff

__all__ = ["Comparison", "compare", "least_version"]


@dataclass(frozen=True)
class Comparison:
    """What a diff says, and what it asks of the version."""

    old: str
    new: str
    """The versions that the documents claim."""
    diff: Diff
    fits: bool
    """The newer version is high enough."""
    least: str
    """The lowest version that would be."""

    @property
    def verdict(self) -> str:
        """How much changed, in a few words."""
        return "nothing changed" if self.diff.level == "none" else f"the change is {self.diff.level}"


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """Compare two documents of one profile.

    Raises:
        ProfileError: They are of two profiles.
    """
    from hotplug.profile.diff import claimed_version_ok, diff

    found = diff(old, new)
    before, after = str(old["version"]), str(new["version"])
    return Comparison(
        before, after, found, claimed_version_ok(found, before, after), least_version(found.level, before)
    )


def least_version(level: str, old: str) -> str:
    """The lowest version after `old` for such a change; before 1.0.0 each level moves the next lower number."""
    from hotplug.profile.versions import numbers, parse_version

    version = parse_version(old)
    major, minor, patch = numbers(version)
    if level == "none":
        return old
    if version.prerelease:
        return f"{major}.{minor}.{patch}"
    if major == 0:
        return f"0.{minor + 1}.0" if level == "major" else f"0.{minor}.{patch + 1}"
    if level == "major":
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if level == "minor" else f"{major}.{minor}.{patch + 1}"
