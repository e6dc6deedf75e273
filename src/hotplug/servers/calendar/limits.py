"""How much text an event holds, and which, the same for all storages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from hotplug.catalog.calendar.records import PLAIN, EventRecord
from hotplug.errors import InvalidArgument, TooLarge

__all__ = ["LARGEST_EVENT", "LONGEST_TEXT", "check_size", "check_texts"]

LONGEST_TEXT: Final = 2**20
"""Bytes, as UTF-8, of one text: a title, a description, a participant's name."""

LARGEST_EVENT: Final = 10 * 2**20
"""Bytes, as UTF-8, of all texts of an event with its changed occurrences."""

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
"""What no TEXT of iCalendar holds (RFC 5545 section 3.1, CONTROL); its line ends are U+000A alone, when read."""


def check_texts(fields: Mapping[str, Any]) -> None:
    """Refuse wire fields with a text that no event may have.

    Raises:
        TooLarge: One is over `LONGEST_TEXT`, or all are over `LARGEST_EVENT` (`details`: `field`, `bytes`, `limit`).
        InvalidArgument: One has a control character other than U+0009 and U+000A (`details`: `field`).
    """
    whole = 0
    for name, value in fields.items():
        for text in _texts(value):
            size = _size(text)
            whole += size
            if size > LONGEST_TEXT:
                raise TooLarge(
                    f"{name} has a text of {size} bytes, and at most {LONGEST_TEXT} are kept",
                    details={"field": name, "bytes": size, "limit": LONGEST_TEXT},
                )
            found = _CONTROL.search(text)
            if found:
                raise InvalidArgument(
                    f"{name} has the control character U+{ord(found[0]):04X} at position {found.start()},"
                    " which iCalendar can't hold",
                    details={"field": name},
                    hint="end lines with U+000A alone" if found[0] == "\r" else "take it out",
                )
    if whole > LARGEST_EVENT:
        raise _too_large(whole)


def check_size(record: EventRecord, before: EventRecord | None = None) -> None:
    """Refuse an event that is too large; not a change that makes one smaller that was so already.

    Raises:
        TooLarge: Its texts are over `LARGEST_EVENT`.
    """
    whole = _whole(record)
    if whole > LARGEST_EVENT and (before is None or whole > _whole(before)):
        raise _too_large(whole)


def _too_large(whole: int) -> TooLarge:
    return TooLarge(
        f"the event would have {whole} bytes of text, and at most {LARGEST_EVENT} are kept",
        details={"bytes": whole, "limit": LARGEST_EVENT},
    )


def _whole(record: EventRecord) -> int:
    own = sum(_size(text) for attribute in PLAIN.values() for text in _texts(getattr(record, attribute)))
    return own + sum(_size(text) for each in record.overrides.values() for text in _texts(each.fields))


def _size(text: str) -> int:
    # halves of characters are refused where the fields are read
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in cast("Mapping[Any, Any]", value).items():
            yield from _texts(key)
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in cast("list[Any]", value):
            yield from _texts(each)
