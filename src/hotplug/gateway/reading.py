"""From a server's pages to a catalog: every page of each list, as raw JSON, and what is wrong with it said."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Raw

from hotplug.gateway.catalog import KINDS, Catalog, Item, Listing, ListKind
from hotplug.gateway.link import Hello, LinkLost
from hotplug.gateway.message import METHOD_NOT_FOUND, Message, Object, loads, split, split_list

__all__ = ["Ask", "catalog_of", "declared", "notifies", "read_listing"]

Ask = Callable[[str, Mapping[str, Any] | None], Awaitable[Message]]
"""Asks the server: method, params; gives its answer, or raises LinkLost."""

PAGES: Final = 5_000
ITEMS: Final = 50_000
BYTES: Final = 64 * 1024 * 1024
NAME: Final = 8_192
_CAPABILITY: Final[Mapping[ListKind, str]] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "templates": "resources",
}


def _capability(hello: Hello, kind: ListKind) -> Object | None:
    raw = hello.result.get("capabilities")
    found = ((split(raw) if raw is not None else None) or {}).get(_CAPABILITY[kind])
    return split(found) if found is not None else None


def declared(hello: Hello, kind: ListKind) -> bool:
    """Whether the server says that it has this kind at all."""
    return _capability(hello, kind) is not None


def notifies(hello: Hello, kind: ListKind) -> bool:
    """Whether the server says that it tells when this list changes."""
    return bytes((_capability(hello, kind) or {}).get("listChanged", b"")) == b"true"


async def read_listing(ask: Ask, kind: ListKind, *, page_limit: float = 10.0) -> Listing:
    """All pages of one list; never raises for what the server does: the listing then says why it is incomplete.

    Bounded: 50,000 items, 64 MiB, 5,000 pages; a cursor that comes twice ends it.

    Args:
        page_limit: Seconds for each page.

    Raises:
        LinkLost: The link ended on the first page, so that nothing is known at all.
    """
    method, key, names = KINDS[kind]
    reading = _Reading(key, names)
    cursor: str | None = None
    seen: set[str] = set()
    for page in range(1, PAGES + 1):
        where = f"page {page} of {method}"
        try:
            async with asyncio.timeout(page_limit):
                answer = await ask(method, {"cursor": cursor} if cursor is not None else None)
        except TimeoutError:
            return reading.listing(f"{where} wasn't answered in {page_limit:g} s")
        except LinkLost as error:
            if page == 1:
                raise
            return reading.listing(f"{where} failed: {error.reason}")
        if answer.kind == "error":
            if page == 1 and answer.error_code == METHOD_NOT_FOUND:
                # Declared for resources, templates may still be missing: no fault worth a word.
                problem = None if kind == "templates" else f"it declares {kind} and doesn't know {method}"
                return Listing(problem=problem, offered=False)
            return reading.listing(f"{where} failed: {_error(answer)}")
        problem = reading.take(answer.result)
        if problem is not None:
            return reading.listing(f"{where}: {problem}")
        cursor = reading.cursor
        if cursor is None:
            return reading.listing(None)
        if cursor in seen:
            return reading.listing(f"{where} goes on with a cursor that it gave before")
        seen.add(cursor)
    return reading.listing(f"{method} has more than {PAGES} pages")


def catalog_of(listings: Mapping[ListKind, Listing]) -> Catalog:
    """The listings as one catalog; equal content gives an equal version, on every link and after every start."""
    # Pins are checked once for each version, so nobody may find two catalogs that have the same.
    digest = hashlib.blake2b(digest_size=32)
    for kind in KINDS:
        listing = listings[kind]
        for part in (kind, str(listing.offered), listing.problem or "", repr(sorted(listing.unusable.items()))):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
        for fields in (listing.extra, *(item.raw for item in listing.items)):
            for name, raw in fields.items():
                digest.update(name.encode("utf-8", "surrogatepass") + b"\0" + bytes(raw) + b"\0")
            digest.update(b"\1")
    return Catalog(int.from_bytes(digest.digest()), **{kind: listings[kind] for kind in KINDS})


class _Reading:
    def __init__(self, key: str, names: str) -> None:
        self._key = key
        self._names = names
        self._items: dict[str, Item] = {}
        self._unusable: dict[str, str] = {}
        self._extra: Object | None = None
        self._count = 0
        self._bytes = 0
        self.cursor: str | None = None

    def take(self, result: Object) -> str | None:
        """One page; gives what is wrong with it."""
        raw = result.get(self._key)
        try:
            items = split_list(raw) if raw is not None else None
        except ValueError:
            items = None
        if items is None:
            return f"it holds no list {self._key!r}"
        if self._extra is None:
            self._extra = {name: value for name, value in result.items() if name not in (self._key, "nextCursor")}
        for item in items:
            self._count += 1
            self._bytes += len(bytes(item))
            if self._count > ITEMS:
                return f"there are more than {ITEMS:,} {self._key}"
            if self._bytes > BYTES:
                return f"the {self._key} are more than {BYTES // 1024 // 1024} MiB"
            self._add(item)
        following = result.get("nextCursor")
        cursor = loads(following) if following is not None else None
        if cursor is not None and not isinstance(cursor, str):
            return "its nextCursor is no string"
        # An empty cursor is how some servers say that there is none.
        self.cursor = cursor or None
        return None

    def _add(self, item: Raw) -> None:
        fields = split(item)
        name = loads(fields[self._names]) if fields is not None and self._names in fields else None
        if fields is None or not isinstance(name, str) or not name:
            self._unusable[f"#{self._count}"] = f"it has no {self._names}" if fields is not None else "it is no object"
        elif len(name) > NAME:
            self._unusable[f"#{self._count}"] = f"its {self._names} has {len(name):,} characters"
        elif name in self._items:
            self._unusable[f"#{self._count}"] = f"{name[:100]!r} is there twice; the first is used"
        else:
            self._items[name] = Item(name, fields)

    def listing(self, problem: str | None) -> Listing:
        """What was read so far."""
        extra = self._extra or {}
        ttl = loads(extra["ttlMs"]) if "ttlMs" in extra else None
        usable = isinstance(ttl, int) and not isinstance(ttl, bool) and ttl >= 0
        return Listing(tuple(self._items.values()), extra, problem, self._unusable, ttl if usable else None)


def _error(answer: Message) -> str:
    raw = answer.fields.get("error")
    message = ((split(raw) if raw is not None else None) or {}).get("message")
    text = loads(message) if message is not None else None
    words = " ".join(text.split())[:300] if isinstance(text, str) else "an error without a message"
    return f"{words} ({answer.error_code})"
