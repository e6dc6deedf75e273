"""The lock of published documents: which digest a name and version have, for good."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from hotplug.errors import ProfileError
from hotplug.profile.canonical import parse
from hotplug.profile.versions import parse_version

__all__ = ["Kind", "Lock", "publish"]

SCHEMA: Final = "hotplug.lock/1"

Kind = Literal["profiles", "extensions", "projections"]

_KINDS: Final[tuple[Kind, ...]] = ("profiles", "extensions", "projections")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")

_Digests = Mapping[str, Mapping[str, str]]


def _none() -> _Digests:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Lock:
    """The contents of a `profiles.lock`: digest by version by name, for each kind of document."""

    profiles: _Digests = field(default_factory=_none)
    extensions: _Digests = field(default_factory=_none)
    projections: _Digests = field(default_factory=_none)

    @classmethod
    def parse(cls, text: str | bytes) -> Lock:
        """Reads the text of a lock.

        Raises:
            CanonicalError: not strict JSON; a version that stands there twice is one case.
            ProfileError: another schema or shape, or a value that isn't a version or a digest, named by its place.
        """
        document = parse(text)
        if not isinstance(document, dict):
            raise ProfileError(f"a lock is an object, not a {type(document).__name__}")
        members = cast("dict[str, Any]", document)
        if (schema := members.pop("schema", None)) != SCHEMA:
            raise ProfileError(f"the lock has the schema {schema!r}, not {SCHEMA!r}", hint="update Hotplug to read it")
        if unknown := sorted(set(members) - set(_KINDS)):
            raise ProfileError(f"a lock has no member {unknown[0]!r}", hint=f"it has {', '.join(_KINDS)}")
        return cls(**{kind: _digests(members.get(kind, {}), kind) for kind in _KINDS})

    def dump(self) -> str:
        """The text of the lock: names sorted, versions in their order, one a line, so that merges stay readable."""
        document: dict[str, Any] = {"schema": SCHEMA}
        for kind in _KINDS:
            if names := self.of(kind):
                document[kind] = {
                    name: {version: names[name][version] for version in sorted(names[name], key=parse_version)}
                    for name in sorted(names)
                }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    def of(self, kind: Kind) -> _Digests:
        """Digest by version by name of one kind."""
        return {"profiles": self.profiles, "extensions": self.extensions, "projections": self.projections}[kind]

    def digest(self, kind: Kind, name: str, version: str) -> str | None:
        """The digest published for a name and version, or None where there is none."""
        return self.of(kind).get(name, {}).get(version)


def publish(lock: Lock, kind: Kind, name: str, version: str, digest: str) -> Lock:
    """The lock with one more document in it; the same lock where the very digest is there already.

    Raises:
        ProfileError: that name and version has another digest (both are named), or the version or digest isn't one.
    """
    parse_version(version)
    _check_digest(digest, f"{kind}.{name}")
    known = lock.digest(kind, name, version)
    if known == digest:
        return lock
    if known is not None:
        raise ProfileError(
            f"{name} {version} is published with the digest {known}; this document has {digest}",
            hint="a published document never changes: give this one a new version",
        )
    names = {**lock.of(kind), name: MappingProxyType({**lock.of(kind).get(name, {}), version: digest})}
    match kind:
        case "profiles":
            return replace(lock, profiles=MappingProxyType(names))
        case "extensions":
            return replace(lock, extensions=MappingProxyType(names))
        case "projections":
            return replace(lock, projections=MappingProxyType(names))


def _digests(value: object, kind: str) -> _Digests:
    if not isinstance(value, dict):
        raise ProfileError(f"{kind} of a lock is an object by name, not a {type(value).__name__}")
    found: dict[str, Mapping[str, str]] = {}
    for name, versions in cast("dict[str, object]", value).items():
        if not isinstance(versions, dict):
            raise ProfileError(f"{kind}.{name} of a lock is an object by version, not a {type(versions).__name__}")
        for version, digest in cast("dict[str, object]", versions).items():
            parse_version(version)
            _check_digest(digest, f"{kind}.{name}.{version}")
        found[name] = MappingProxyType(cast("dict[str, str]", versions))
    return MappingProxyType(found)


def _check_digest(value: object, place: str) -> None:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ProfileError(f"{value!r} of {place} isn't a digest", hint="it is sha256: and 64 lower-case hex digits")
