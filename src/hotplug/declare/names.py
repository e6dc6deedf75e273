"""What names of profiles, extensions, parts and senses look like."""

from __future__ import annotations

import re
from typing import Final

from hotplug.profile.senses import SENSES

__all__ = ["is_extension", "is_part", "is_profile", "is_sense"]

_PROFILE: Final = re.compile(r"[a-z][a-z0-9]*")
_EXTENSION: Final = re.compile(r"[a-z][a-z0-9-]*(\.[a-zA-Z0-9][a-zA-Z0-9-]*){2,}")
_PART: Final = re.compile(r"(?=.{1,128}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
_OTHER_SENSE: Final = re.compile(r"x-[a-z0-9-]+")


def is_profile(name: str) -> bool:
    """Lower-case letters and digits: `calendar`."""
    return _PROFILE.fullmatch(name) is not None


def is_extension(name: str) -> bool:
    """A reverse domain plus a name, three labels at least: `com.slack.blocks`."""
    return _EXTENSION.fullmatch(name) is not None


def is_part(name: str) -> bool:
    """A wire name under a profile or an extension: `calendar.create`, `com.example.focus.block`; 128 characters."""
    return _PART.fullmatch(name) is not None


def is_sense(name: str) -> bool:
    """One of OVP's channels, or `x-` and lower-case letters, digits and hyphens."""
    return name in SENSES or _OTHER_SENSE.fullmatch(name) is not None
