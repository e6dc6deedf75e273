"""The file that `hotplug profile new` starts a profile with: whole and valid, to be changed step by step."""

from __future__ import annotations

import re
from typing import Final

from hotplug.errors import ConfigError

__all__ = ["profile_source"]

_NAME: Final = re.compile(r"[a-z][a-z0-9]*")

_SOURCE: Final = '''\
"""The profile `{name}`."""

from __future__ import annotations

from hotplug.profile import Event, Model, Profile, Receipt, Ref, event, operation, read, receipt


class Item(Ref, kind="{name}.item"):
    """What this profile is about: rename it to the word that its users say."""


class Added(Model):
    item: Item
    receipt: Receipt = receipt()


class Entry(Model):
    item: Item
    title: str


class Entries(Model):
    items: list[Entry]


class {title}(Profile, name="{name}", version="0.1.0"):
    """One sentence: what kind of thing this is, and for whom.

    Core: `add`, because a thing that can't take an item is not a {name}; `items`, because nothing could be found again.
    """

    @operation(effects=True, once=True)
    async def add(self, title: str) -> Added:
        """Add an item."""
        raise NotImplementedError

    @read("{name}.items", sense="state")
    async def items(self) -> Entries:
        """Every item, oldest first."""
        raise NotImplementedError

    @event("{name}.item.added", sense="state", replay="durable")
    class ItemAdded(Event):
        """An item was added, by whomever."""

        item: Item
        title: str
'''


def profile_source(name: str) -> str:
    """The Python source of a new profile called `name`.

    Raises:
        ConfigError: It can't be a profile's name.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} can't be a profile's name", hint="lower-case letters and digits, a letter first")
    return _SOURCE.format(name=name, title=name.title())
