"""The `[access]` table of a project's file: an access profile that can only narrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from hotplug.access import AccessError, Profile
from hotplug.access.document import node_of
from hotplug.access.profiles import Fault, read_profile

__all__ = ["NOTHING", "read_access"]

NOTHING: Final = Profile("nothing", frozenset(), frozenset())
"""What a table that can't be read leaves: every doubt closes."""


def read_access(table: object, *, name: str) -> Profile | Fault:
    """The profile that `[access]` describes: `servers`, `groups` (both by default `all`) and `tools`. Pure.

    Args:
        name: What reasons call it.
    """
    if not isinstance(table, Mapping):
        return Fault((), "is no table", 'write [access] with servers = ["NAME"]')
    given = {"servers": "all", "groups": "all", **cast("Mapping[str, Any]", table)}
    try:
        return read_profile(name, node_of(given))
    except AccessError as error:
        return Fault((), f"can't be read: {error}", "write names only")
