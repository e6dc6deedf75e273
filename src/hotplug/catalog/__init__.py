"""The profiles that ship, a package each; by name here, so that none is imported before it is wanted."""

from collections.abc import Mapping
from typing import Final

__all__ = ["PROFILES"]

PROFILES: Final[Mapping[str, str]] = {
    "calendar": "hotplug.catalog.calendar:Calendar",
    "connection": "hotplug.catalog.connection:Connection",
}
"""The class of each profile, `module:Class`, by the profile's name."""
