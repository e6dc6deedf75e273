"""Hotplug: plug in an MCP server your agent has never seen, and it works.

```python
from hotplug import connect
from hotplug.catalog import Calendar

async with connect(Calendar, "npx -y caldav-mcp@0.10.0") as cal:
    found = await cal.calendars()
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotplug.door import connect
    from hotplug.errors import ConnectionFailed, HotplugError
    from hotplug.profile import Extension, Profile, secret

__all__ = ["ConnectionFailed", "Extension", "HotplugError", "Profile", "connect", "secret"]

_HOMES = {
    "ConnectionFailed": "hotplug.errors",
    "Extension": "hotplug.profile",
    "HotplugError": "hotplug.errors",
    "Profile": "hotplug.profile",
    "connect": "hotplug.door",
    "secret": "hotplug.profile",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line starts in a fraction of the time that all of it takes.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hotplug' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)
