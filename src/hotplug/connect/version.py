"""Which build this is, as it tells others."""

from __future__ import annotations

__all__ = ["own_version"]


def own_version() -> str:
    """The installed distribution's version; `0` in a source tree that isn't installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hotplug")
    except PackageNotFoundError:
        return "0"
