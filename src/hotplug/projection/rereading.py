"""Reading once more by another way, for servers that briefly show what was before a write (FR-06).

A cache or a replica behind an upstream may answer one kind of request with an old version, or with none, while another
kind shows the new one already. So what contradicts a write of our own is never believed on one answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from hotplug.errors import ConnectionFailed, NotFound

__all__ = ["reread"]

T = TypeVar("T")


async def reread(
    first: Callable[[], Awaitable[T]], second: Callable[[], Awaitable[T | None]], *, good: Callable[[T], bool]
) -> T:
    """What one way of reading shows, or where that isn't what it should be, what another way shows, asked once.

    The caller looks whether it got what it should: a version that isn't is a conflict, and never "not found".

    Args:
        first: The usual way; raises `NotFound` where it shows nothing.
        second: Another one, best a request of another kind; raises `NotFound` or gives None where it shows nothing.
        good: Whether it is what should be there.

    Raises:
        NotFound: Both ways show nothing.
        ConnectionFailed: The first way shows nothing, and the second fails: not to be able to read is no absence
            (FR-42). Or the first fails, other than by `NotFound`; the second isn't asked then.
    """
    found: T | None = None
    missing: NotFound | None = None
    try:
        found = await first()
        if good(found):
            return found
    except NotFound as error:
        missing = error
    try:
        other = await second()
    except NotFound:
        other = None
    except ConnectionFailed:
        if found is None:
            raise
        other = None
    if other is not None:
        return other
    if found is not None:
        return found
    assert missing is not None
    raise missing
