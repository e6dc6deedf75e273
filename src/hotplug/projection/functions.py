"""The functions that expressions may call, by profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hotplug.catalog.calendar.functions import FUNCTIONS as CALENDAR
from hotplug.projection.mapping import Function

__all__ = ["functions_of"]

_BY_PROFILE: Mapping[str, Mapping[str, Function]] = {"calendar": CALENDAR}


def functions_of(profiles: Iterable[str]) -> dict[str, Function]:
    """What expressions of a projection of these profiles may call, by name without `$`."""
    return {name: function for profile in profiles for name, function in _BY_PROFILE.get(profile, {}).items()}
