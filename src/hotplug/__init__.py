"""Hotplug: plug in an MCP server your agent has never seen, and it works.

```python
from hotplug import connect
from hotplug.catalog import Calendar

async with connect(Calendar, "npx -y caldav-mcp@0.10.0") as cal:
    found = await cal.calendars()
```
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotplug.connect.claims import (
        constraint,
        log,
        net,
        route,
        sense,
        signal,
        state,
        storage,
        time,
        ui,
        visual,
    )
    from hotplug.door import connect
    from hotplug.errors import ConnectionFailed, HotplugError
    from hotplug.profile import Extension, Profile, secret

__all__ = [
    "ConnectionFailed",
    "Extension",
    "HotplugError",
    "Profile",
    "connect",
    "constraint",
    "log",
    "net",
    "route",
    "secret",
    "sense",
    "signal",
    "state",
    "storage",
    "time",
    "ui",
    "visual",
]

_CLAIMS = "hotplug.connect.claims"
_HOMES = {
    **dict.fromkeys(
        ("constraint", "log", "net", "route", "sense", "signal", "state", "storage", "time", "ui", "visual"), _CLAIMS
    ),
    "ConnectionFailed": "hotplug.errors",
    "Extension": "hotplug.profile",
    "HotplugError": "hotplug.errors",
    "Profile": "hotplug.profile",
    "secret": "hotplug.profile",
}


class _Root(ModuleType):
    """The package as a module on which `connect` is the function, though a package has that name too.

    Importing `hotplug.connect` would otherwise put the package into the function's place.
    """

    @property
    def connect(self) -> Any:
        return importlib.import_module("hotplug.door").connect

    @connect.setter
    def connect(self, value: Any) -> None:
        """The import system offers the package; `hotplug.connect` is found in `sys.modules` all the same."""


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line starts in a fraction of the time that all of it takes.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hotplug' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


sys.modules[__name__].__class__ = _Root
