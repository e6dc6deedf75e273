"""What every witness does: windows, steady ids, and a failed look that is said and never read as absence."""

from __future__ import annotations

import re
import secrets
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import anyio

from hotplug.connect.claims.looking import Looking
from hotplug.errors import ConfigError, HotplugError
from hotplug.evidence.channels import ChannelDescriptor
from hotplug.evidence.coverage import BlindSpot, Coverage
from hotplug.evidence.observation import Observation
from hotplug.evidence.subject import SubjectRef
from hotplug.evidence.vocabulary import BlindSpotKind, CloseCondition, ProvenanceClass
from hotplug.evidence.window import Window
from hotplug.profile.summaries import REDACTED, credential_name

__all__ = ["CannotLook", "Session", "Watching", "now", "redact", "spot"]

_NAME: Final = re.compile(r"[a-z0-9-]+")
_KEPT: Final = 64
"""Closed windows that can still be asked."""


class CannotLook(Exception):
    """A look failed; the message says why, without any secret."""

    def __init__(self, detail: str, *, remedy: str | None = None, kind: BlindSpotKind = "channel-unobserved") -> None:
        super().__init__(detail)
        self.detail = detail
        self.remedy = remedy
        self.kind: BlindSpotKind = kind


def spot(kind: BlindSpotKind, channel: str | None, detail: str, remedy: str | None = None) -> BlindSpot:
    """A gap; one on a channel impeaches every claim that reads it, one without impeaches none."""
    return BlindSpot(kind=kind, channel=channel, detail=detail, impeaching=False, remedy=remedy)


def redact(value: Any, names: frozenset[str] = frozenset()) -> tuple[Any, frozenset[str]]:
    """A JSON value without what stands under credential-like names or `names`, and the names that were redacted."""
    if isinstance(value, dict):
        kept: dict[str, Any] = {}
        hidden: frozenset[str] = frozenset()
        for key, item in cast("dict[Any, Any]", value).items():
            if credential_name(str(key)) or str(key) in names:
                kept[str(key)], more = REDACTED, frozenset({str(key)})
            else:
                kept[str(key)], more = redact(item, names)
            hidden |= more
        return kept, hidden
    if isinstance(value, list | tuple):
        found = [redact(item, names) for item in cast("Sequence[Any]", value)]
        return [item for item, _ in found], frozenset[str]().union(*(more for _, more in found))
    return value, frozenset()


@dataclass(slots=True)
class Session:
    """What a witness knows of one window.

    Args:
        seen: What happened in it so far, in order.
        facts: What held at the last look.
        before: What held at the opening.
        spots: The gaps of the last look.
        lasting: Gaps that stay for the whole window.
        failed: Whether the last look failed.
        state: What the witness itself keeps.
    """

    window: Window
    state: Any = None
    seen: list[Observation] = field(default_factory=list[Observation])
    facts: tuple[Observation, ...] = ()
    before: tuple[Observation, ...] = ()
    spots: tuple[BlindSpot, ...] = ()
    lasting: list[BlindSpot] = field(default_factory=list[BlindSpot])
    failed: bool = False
    made: int = 0

    def observation(self, channel: str, summary: str, value: Any) -> Observation:
        """A new observation of this window; its id stays."""
        self.made += 1
        return Observation(
            id=f"{self.window.id}.{self.made}",
            window=self.window.id,
            channel=channel,
            at=now(),
            value=value,
            summary=summary,
        )


def now() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Watching(Looking):
    """A witness with its windows; a subclass says what it sees.

    Args:
        name: How it is called in runs: `a-z`, `0-9` and `-`.
        locator: Where it looks, without secrets.
        timeout: Seconds that one look may take.

    Raises:
        ConfigError: The name has other characters.
    """

    closes: CloseCondition = "ack"

    def __init__(self, name: str, locator: str, *, timeout: float = 10.0) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"a witness can't be called {name!r}", hint="use a-z, 0-9 and -, such as orders-db")
        if timeout <= 0:
            raise ConfigError(f"a look can't take {timeout!r} s", hint="give a timeout over 0")
        self.name = name
        self.locator = locator
        self.timeout = timeout
        self._token = secrets.token_hex(4)
        self._lock = anyio.Lock()
        self._sessions: dict[str, Session] = {}

    @property
    def describe(self) -> str:
        """How it looks, for a report."""
        return f"{self.locator}, read directly"

    def identity(self) -> SubjectRef:
        """What it looks at."""
        return SubjectRef(surface="service", instance=self._instance(), locator=self.locator)

    def _instance(self) -> str:
        return f"{self.name}-{self._token}"

    @abstractmethod
    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """What it can see."""

    @abstractmethod
    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        """How its observations come to be."""

    @abstractmethod
    async def _begin(self, session: Session) -> None:
        """Look for the first time.

        Raises:
            CannotLook: It can't.
        """

    @abstractmethod
    async def _look(self, session: Session) -> Sequence[BlindSpot]:
        """Look again: add to `session.seen`, set `session.facts`, give the gaps of this look.

        Raises:
            CannotLook: It can't.
        """

    def _closed_by(self, session: Session) -> CloseCondition:
        del session
        return "ack"

    async def _settle(self, session: Session) -> bool:
        """Wait before the last look until nothing more is to come; whether it came to that."""
        del session
        return True

    def _let_go(self, session: Session) -> None:
        """Let go of what a window holds open."""
        del session

    async def open_window(self, budget_ms: int) -> Window:
        """Look once, for the state before, and open a window."""
        window = Window(
            id=f"{self.name}-{secrets.token_hex(6)}",
            opened_at=now(),
            budget_ms=budget_ms,
            closes=self.closes,
            subject=self.identity(),
        )
        session = Session(window)
        async with self._lock:
            try:
                with anyio.fail_after(self.timeout):
                    await self._begin(session)
            except (CannotLook, TimeoutError) as error:
                for one in self._failed(session, error, "at the opening"):
                    session.lasting.append(one)
            self._sessions[window.id] = session
            self._forget()
        return window

    async def before(self, window: Window) -> tuple[Observation, ...]:
        """The facts at the opening."""
        return self._session(window).before

    async def observe(self, window: Window) -> tuple[Observation, ...]:
        """Look again, and give everything that was seen in this window so far. After the close it looks no more."""
        session = self._session(window)
        async with self._lock:
            if session.window.closed_at is None:
                await self._look_again(session)
        return (*session.seen, *session.facts)

    async def coverage(self, window: Window) -> Coverage:
        """What the last look could and could not see."""
        session = self._session(window)
        watched = () if session.failed else tuple(channel.id for channel in self.channels())
        return Coverage(window=window.id, observed=watched, blind_spots=(*session.lasting, *session.spots))

    async def close_window(self, window: Window) -> Window:
        """Look for the last time, and close."""
        session = self._session(window)
        settled = session.window.closed_at is not None or await self._settle(session)
        async with self._lock:
            if session.window.closed_at is None:
                await self._look_again(session)
                given_up = session.failed or not settled
                session.window = session.window.model_copy(
                    update={
                        "closed_at": max(now(), window.opened_at),
                        "closed_by": "budget-exhausted" if given_up else self._closed_by(session),
                    }
                )
                self._let_go(session)
        return session.window

    async def aclose(self) -> None:
        """Let go of everything; windows can't be asked any more."""
        for session in self._sessions.values():
            self._let_go(session)
        self._sessions.clear()

    async def _look_again(self, session: Session) -> None:
        try:
            with anyio.fail_after(self.timeout):
                session.spots = tuple(await self._look(session))
            session.failed = False
        except (CannotLook, TimeoutError) as error:
            session.failed = True
            session.facts = ()
            session.spots = self._failed(session, error, "at the last look")

    def _failed(self, session: Session, error: CannotLook | TimeoutError, when: str) -> tuple[BlindSpot, ...]:
        del session
        if not isinstance(error, CannotLook):
            error = CannotLook(f"no answer within {self.timeout:g} s", remedy="give it more time with timeout=")
        detail = f"{self.locator} could not be seen {when}: {error.detail}"
        return tuple(spot(error.kind, channel.id, detail, error.remedy) for channel in self.channels())

    def _session(self, window: Window) -> Session:
        found = self._sessions.get(window.id)
        if found is None:
            raise HotplugError(f"{self.name} has no window {window.id!r}", hint="it was opened elsewhere, or is let go")
        return found

    def _forget(self) -> None:
        closed = [key for key, session in self._sessions.items() if session.window.closed_at is not None]
        for key in closed[:-_KEPT]:
            del self._sessions[key]
