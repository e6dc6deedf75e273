"""Threads: opened, forked, closed, and known by their tokens.

A thread's id and token are made here. The thread, its lineage and the hash of its token are on record before the token
is given out, so no call can come from a thread that nobody knows. What another process does to threads holds at the
next question here: each asks the store for the number of the last change first.
"""

from __future__ import annotations

import builtins
import logging
import unicodedata
from collections.abc import AsyncGenerator, Callable, Collection
from datetime import UTC, datetime
from time import time
from types import MappingProxyType, TracebackType
from typing import Final, Literal, Self

import anyio

from hotplug.access import DEEPEST, Lineage, Thread
from hotplug.errors import HotplugError, StoreError
from hotplug.gateway.tokens import OWNER, new_thread_id, new_token, same_hash, token_hash
from hotplug.store.protocols import Store
from hotplug.store.settings import SettingsFile
from hotplug.store.threads import ThreadRecord, ThreadStore, threads_of

__all__ = ["MOST_OPEN", "ThreadRecord", "ThreadRefused", "Threads", "forget_picks", "thread_document"]

MOST_OPEN: Final = 20_000
"""Threads that may be open at once."""

_LONGEST_TITLE: Final = 200
_LONGEST_PROJECT: Final = 256
_CONTROLS: Final = ("Cc", "Cs", "Zl", "Zp")

_log = logging.getLogger(__name__)

Why = Literal["parent", "depth", "project", "limit", "delegated", "title"]


class ThreadRefused(HotplugError):
    """A thread can't be opened like this; nothing was recorded.

    Args:
        why: `parent`: that thread isn't open. `depth`, `limit`: there are too many, above it or at all. `project`,
            `delegated`, `title`: what was asked for.
    """

    code = "refused"

    def __init__(self, why: Why, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.why: Why = why


class Threads:
    """The threads of a gateway. One event loop, or one thread, uses it.

    Args:
        store: Where they are kept.
        most: How many may be open at once; children only up to nine tenths of it.
        clock: Seconds since the epoch.
    """

    def __init__(self, store: ThreadStore, *, most: int = MOST_OPEN, clock: Callable[[], float] = time) -> None:
        self._store = store
        self._most = most
        self._clock = clock
        self._last: int | None = None
        self._open: dict[str, ThreadRecord] = {}
        self._hashes: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        self._members: dict[str, Thread] = {}
        self._lineage: Lineage | None = None

    @classmethod
    def over(cls, store: Store, *, most: int = MOST_OPEN) -> Self:
        """The threads that a store keeps.

        Raises:
            ConfigError: This kind of store keeps none.
        """
        return cls(threads_of(store), most=most)

    async def open(
        self,
        *,
        parent: str | None = None,
        delegated: bool = False,
        project: str | None = None,
        title: str | None = None,
        opener: str | None = None,
    ) -> tuple[ThreadRecord, str]:
        """Open a thread; gives it as it stands on record, and its token, which nobody can ask for again.

        Who may open what is the caller's to check: with a thread's token, only children of that thread.

        Args:
            parent: The thread that forks, or delegates; None for a root.
            delegated: It is a sub-agent.
            project: A root's project. A child is in its parent's: None, or the same.
            title: For people; 1 to 200 characters on one line.
            opener: The name of the opener that asked, for a root.

        Raises:
            ThreadRefused: It can't be opened like this.
            StoreError: It could not be recorded.
        """
        _check(parent, delegated=delegated, project=project, title=title)
        while True:
            token = new_token()
            thread = ThreadRecord(
                id=new_thread_id(),
                parent=parent,
                delegated=delegated,
                project=project,
                title=title,
                opened=self._now(),
                opener=opener if parent is None else None,
            )
            # The last tenth is the owner's: no thread can keep him out by opening children.
            most = self._most if parent is None else self._most * 9 // 10
            added = await self._store.add(thread, token_hash(token), most=most, deepest=DEEPEST)
            if isinstance(added, ThreadRecord):
                return added, token
            if added != "taken":
                raise _refusal(added, project, most)

    async def owner(self) -> ThreadRecord:
        """The owner's own root thread, made or opened again where it isn't open."""
        self._look()
        known = self._open.get(OWNER)
        if known is not None:
            return known
        thread = ThreadRecord(OWNER, parent=None, delegated=False, project=None, title=None, opened=self._now())
        return await self._store.reopen(thread)

    async def close(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """Close a thread with its descendants; gives all that were open, the thread first, or nothing."""
        return await self._store.close(id, self._clock())

    def authenticate(self, id: str, token: str) -> bool:  # noqa: A002
        """Whether this is the token of that open thread. Unknown, closed and wrong are one answer, in the same time.

        Raises:
            StoreError: It can't be known: let nobody in.
        """
        self._look()
        return same_hash(self._hashes.get(id), token_hash(token))

    def of_token(self, token: str) -> ThreadRecord | None:
        """The open thread whose token this is; None: nobody's.

        Raises:
            StoreError: It can't be known: let nobody in.
        """
        self._look()
        given = token_hash(token)
        # What a search by hash tells by its time is of the hash, which is no way to the token.
        found = self._ids.get(given)
        matches = same_hash(None if found is None else self._hashes.get(found), given)
        return self._open[found] if matches and found is not None else None

    def is_open(self, id: str) -> bool:  # noqa: A002
        """Whether a thread is open now."""
        self._look()
        return id in self._open

    def is_within(self, id: str, above: str) -> bool:  # noqa: A002
        """Whether an open thread is that one or a descendant of it."""
        self._look()
        return any(one.id == above for one in self._line(id))

    def root(self, id: str) -> ThreadRecord | None:  # noqa: A002
        """The root above an open thread, or the thread itself where it is one."""
        self._look()
        line = self._line(id)
        return line[-1] if line else None

    def _line(self, id_: str) -> builtins.list[ThreadRecord]:
        """The thread and all above it; none where it isn't open."""
        line: list[ThreadRecord] = []
        at = self._open.get(id_)
        while at is not None and len(line) <= DEEPEST:
            line.append(at)
            at = None if at.parent is None else self._open.get(at.parent)
        return line

    def lineage(self) -> Lineage:
        """Every open thread with where it comes from, as of now; it doesn't change under its reader."""
        self._look()
        if self._lineage is None:
            self._lineage = MappingProxyType(self._members.copy())
        return self._lineage

    @property
    def version(self) -> int:
        """Changes with every thread that is opened or closed, by whomever."""
        self._look()
        assert self._last is not None
        return self._last

    def get(self, id: str) -> ThreadRecord | None:  # noqa: A002
        """A thread, open or closed, as far as it is remembered."""
        self._look()
        return self._open.get(id) or self._store.thread(id)

    def children(self, id: str) -> tuple[ThreadRecord, ...]:  # noqa: A002
        """The open threads right below one, the oldest first."""
        self._look()
        found = [one for one in self._open.values() if one.parent == id]
        return tuple(sorted(found, key=_by_age))

    def list(self, *, closed: int = 0) -> tuple[ThreadRecord, ...]:
        """The open threads, the oldest first; after them up to `closed` closed ones, the last closed first."""
        self._look()
        found = sorted(self._open.values(), key=_by_age)
        return (*found, *(self._store.closed(closed) if closed else ()))

    async def closings(self, *, every: float = 0.5) -> AsyncGenerator[frozenset[str]]:
        """The ids of threads as they are closed, by whomever, for those who hold something open for one.

        Nobody needs it for a single message: every other look here is of its moment.

        Args:
            every: Seconds between two looks.
        """
        self._look()
        before, version = frozenset(self._open), self._last
        while True:
            await anyio.sleep(every)
            self._look()
            if self._last != version:
                gone = before.difference(self._open)
                before, version = frozenset(self._open), self._last
                if gone:
                    yield gone

    async def aclose(self) -> None:
        """Let go of what was opened for reading; the store stays open."""
        await self._store.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def _look(self) -> None:
        """Take up what changed since the last look, by whomever."""
        if self._last is not None and self._store.last() == self._last:
            return
        changes = self._store.since(self._last)
        if changes.whole:
            self._open, self._hashes, self._ids, self._members = {}, {}, {}, {}
        for thread, token in changes.threads:
            self._forget(thread.id)
            if thread.closed is None:
                self._open[thread.id] = thread
                self._members[thread.id] = Thread(thread.id, thread.parent, thread.delegated, thread.project)
                if token is not None:
                    self._hashes[thread.id] = token
                    self._ids[token] = thread.id
        self._last = changes.last
        self._lineage = None

    def _forget(self, id_: str) -> None:
        self._open.pop(id_, None)
        self._members.pop(id_, None)
        token = self._hashes.pop(id_, None)
        if token is not None:
            self._ids.pop(token, None)


def forget_picks(settings: SettingsFile, closed: Collection[str]) -> None:
    """Take the access profiles that were picked for closed threads out of the settings: their ids never come back.

    Waits for whoever saves them. Where they can't be written it is left, and a warning says so.
    """
    gone = [one for one in closed if one != OWNER]  # the owner's own opens again
    if not gone or not settings.path.exists():
        return
    try:
        settings.prune(gone)
    except StoreError as error:
        _log.warning("what was picked for closed threads stays in the settings: %s", error)


def _by_age(thread: ThreadRecord) -> tuple[datetime, int, str]:
    return thread.opened, thread.depth, thread.id


def _refusal(why: Literal["parent", "depth", "project", "limit"], project: str | None, most: int) -> ThreadRefused:
    if why == "parent":
        return ThreadRefused("parent", "the parent isn't an open thread", hint="open a root, or name another")
    if why == "depth":
        return ThreadRefused(
            "depth", f"the parent has {DEEPEST} threads above it", hint=f"{DEEPEST} is the most: open it higher up"
        )
    if why == "project":
        return ThreadRefused(
            "project", f"a child is in its parent's project, not in {project!r}", hint="leave the project out"
        )
    return ThreadRefused("limit", f"as many threads are open as may be: {most}", hint="close some that are done")


def _check(parent: str | None, *, delegated: bool, project: str | None, title: str | None) -> None:
    if delegated and parent is None:
        raise ThreadRefused(
            "delegated", "a root can't be delegated: nobody delegates to it", hint="open it as a child of its parent"
        )
    for name, text, longest in (("project", project, _LONGEST_PROJECT), ("title", title, _LONGEST_TITLE)):
        if text is not None and not _is_plain(text, longest):
            why: Why = "project" if name == "project" else "title"
            raise ThreadRefused(
                why, f"the {name} isn't 1 to {longest} characters on one line", hint="no blank at an end, no controls"
            )


def _is_plain(text: str, longest: int) -> bool:
    return (
        0 < len(text) <= longest
        and text == text.strip()
        and not any(unicodedata.category(one) in _CONTROLS for one in text)
    )


def thread_document(thread: ThreadRecord) -> dict[str, str | bool | None]:
    """A thread as documents show it, over HTTP and on the command line."""
    return {
        "id": thread.id,
        "parent": thread.parent,
        "delegated": thread.delegated,
        "project": thread.project,
        "title": thread.title,
        "opened": _moment(thread.opened),
        "closed": None if thread.closed is None else _moment(thread.closed),
    }


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
