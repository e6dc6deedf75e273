"""The version of this build."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

__all__ = ["version"]


def version() -> str:
    """The installed distribution's version; `unknown` in a source tree that isn't installed."""
    try:
        return installed("hotplug")
    except PackageNotFoundError:
        return "unknown"
