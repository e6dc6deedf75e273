"""The catalog: `from hotplug.catalog import Calendar`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hotplug.catalog.calendar import Calendar
    from hotplug.catalog.connection import Connection
    from hotplug.profile import Profile

__all__ = ["PROFILES", "Calendar", "Connection", "profile_class"]

PROFILES: Final = {
    "calendar": "hotplug.catalog.calendar:Calendar",
    "connection": "hotplug.catalog.connection:Connection",
}
"""The profiles of the catalog by name, each as `module:Class`: imported when first used."""


def profile_class(name: str) -> type[Profile]:
    """The profile of that name.

    Raises:
        KeyError: The catalog has none of that name.
    """
    import importlib

    module, _, attribute = PROFILES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def __getattr__(name: str) -> Any:
    for home in PROFILES.values():
        module, _, attribute = home.partition(":")
        if attribute == name:
            import importlib

            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'hotplug.catalog' has no attribute {name!r}")
