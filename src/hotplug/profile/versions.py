"""Versions and ranges: SemVer 2.0, npm-style ranges, and the manifest that says what is required."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, cast

from semantic_version import NpmSpec, Version  # pyright: ignore[reportMissingTypeStubs]

from hotplug.errors import ProfileError

__all__ = ["Manifest", "Range", "Version", "default_range", "numbers", "parse_version"]

_RANGES: Final = "write a range as ^1, ^1.1, ~1.2, 1.2.3 or '>=1 <2'"
_OPERATOR_GAP: Final = re.compile(r"(<=|>=|<|>|=|\^|~)\s+")
_TILDE_OF_PRERELEASE: Final = re.compile(r"~(\d+)\.(\d+)\.(\d+)-([0-9A-Za-z.-]+)(?=\s|$)")


def parse_version(text: object) -> Version:
    """A version of three numbers with an optional pre-release, as SemVer 2.0 writes it.

    Raises:
        ProfileError: not a version, or one with build metadata, which would give one precedence to two documents.
    """
    if not isinstance(text, str):
        raise ProfileError(f"{_shown(text)} isn't a version", hint="write it as text, as in 1.2.0")
    try:
        version = Version(text)
    except ValueError:
        raise ProfileError(f"{_shown(text)} isn't a version", hint="write three numbers, as in 1.2.0") from None
    if "+" in text:
        raise ProfileError(f"the version {_shown(text)} has build metadata", hint="leave out what follows the +")
    return version


def numbers(version: Version) -> tuple[int, int, int]:
    """Major, minor and patch."""
    found: Any = version
    return (found.major, found.minor, found.patch)


def default_range(version: str | Version) -> Range:
    """What is required where nothing else is said: `^major.minor.patch` of the installed version."""
    return Range(f"^{parse_version(str(version))}")


@dataclass(frozen=True, slots=True)
class Range:
    """An npm-style range: `^1`, `^1.1`, `~1.2`, `>=1 <2`, `1.x`, `^1 || ^2`. Prints as it was written.

    As in npm, a pre-release satisfies a range only where the range names a pre-release of the same three numbers.

    Raises:
        ProfileError: the text isn't a range.
    """

    text: str
    _spec: NpmSpec = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        text = cast("object", self.text)
        if not isinstance(text, str) or not text.strip() or "+" in text:
            raise ProfileError(f"{_shown(text)} isn't a range of versions", hint=_RANGES)
        try:
            spec = NpmSpec(_spelled(text))
        except (ValueError, AttributeError, AssertionError):  # the library's own failures on a malformed hyphen range
            raise ProfileError(f"{_shown(text)} isn't a range of versions", hint=_RANGES) from None
        object.__setattr__(self, "_spec", spec)

    def satisfied_by(self, version: str | Version) -> bool:
        """Whether the version lies in the range. Raises `ProfileError` where it isn't a version."""
        return cast("bool", self._spec.match(parse_version(str(version))))  # pyright: ignore[reportUnknownMemberType]

    def __str__(self) -> str:
        return self.text


def _no_ranges() -> Mapping[str, Range]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is required: `{"profiles": {"browser": "^1.1"}, "extensions": {"com.slack.blocks": "^3"}}`."""

    profiles: Mapping[str, Range] = field(default_factory=_no_ranges)
    extensions: Mapping[str, Range] = field(default_factory=_no_ranges)

    @classmethod
    def parse(cls, document: object) -> Manifest:
        """Reads the parsed JSON; both members may be missing.

        Raises:
            ProfileError: another shape, another member, or a value that isn't a range, named by its place.
        """
        if not isinstance(document, Mapping):
            raise ProfileError(f"a manifest is an object, not {_shown(document)}")
        members = cast("Mapping[str, Any]", document)
        if unknown := sorted(set(members) - {"profiles", "extensions"}):
            raise ProfileError(f"a manifest has no member {_shown(unknown[0])}", hint="it has profiles and extensions")
        return cls(
            profiles=_ranges(members.get("profiles", {}), "profiles"),
            extensions=_ranges(members.get("extensions", {}), "extensions"),
        )

    def document(self) -> dict[str, dict[str, str]]:
        """The manifest as JSON again, without empty members."""
        both = {"profiles": self.profiles, "extensions": self.extensions}
        return {kind: {name: str(wanted) for name, wanted in ranges.items()} for kind, ranges in both.items() if ranges}


def _ranges(value: object, place: str) -> Mapping[str, Range]:
    if not isinstance(value, Mapping):
        raise ProfileError(f"{place} of a manifest is an object of ranges by name, not {_shown(value)}")
    found: dict[str, Range] = {}
    for name, text in cast("Mapping[str, object]", value).items():
        try:
            found[name] = Range(cast("str", text))
        except ProfileError as error:
            raise ProfileError(f"{place}.{name}: {error.message}", hint=error.hint) from None
    return MappingProxyType(found)


def _spelled(text: str) -> str:
    """npm's spelling in the library's: it takes single spaces, and cuts `~1.2.0-rc.1` off at 1.2.0."""
    text = _OPERATOR_GAP.sub(r"\1", " ".join(text.split()))
    return _TILDE_OF_PRERELEASE.sub(lambda m: f">={m[1]}.{m[2]}.{m[3]}-{m[4]} <{m[1]}.{int(m[2]) + 1}.0", text)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:60] + "…"
