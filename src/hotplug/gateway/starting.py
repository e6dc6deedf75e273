"""Starts of one upstream: which era is tried, how many at a time, what a failure means for the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

from hotplug.connect.launch import launch_of
from hotplug.connect.secrets import Secrets
from hotplug.connect.upstream_log import UpstreamLog
from hotplug.errors import HotplugError, PermissionDenied, Unavailable
from hotplug.gateway.backoff import Backoff
from hotplug.gateway.clock import Clock
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.eramemory import EraMemory
from hotplug.gateway.link import Era, Link, LinkLost
from hotplug.gateway.links.handshake import LEGACY_REVISIONS, MODERN_REVISIONS
from hotplug.gateway.links.refusal import EraRefused, LoginNeeded
from hotplug.gateway.message import METHOD_NOT_FOUND, Object
from hotplug.gateway.opening import Opener, is_remote

__all__ = ["OtherEra", "StartGate", "Starter", "why"]

AT_ONCE: Final = 4


class OtherEra(Exception):
    """This era can't be had, or shouldn't be: the other one may be.

    Args:
        silent: It gave no answer.
        slow: It answered, but took so long that its silence in the other era may have been its start.
    """

    def __init__(self, reason: str, *, silent: bool, slow: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.silent = silent
        self.slow = slow


class StartGate:
    """Lets starts of one upstream through: one by one until one has worked, then four at once.

    Where many threads want a child each of the same server, the first shows whether it starts at all: while it
    doesn't, the others are refused by its failure rather than failing each for itself.
    """

    def __init__(self) -> None:
        self.proven = False
        """Whether the last start that ended came up."""
        self._one = asyncio.Lock()
        self._several = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def through(self) -> AsyncGenerator[None]:
        """Wait for the turn, and hold it."""
        if not self.proven:
            async with self._one:
                if not self.proven:
                    yield
                    return
        async with self._several:
            yield


class Starter:
    """Opens the links of one upstream.

    A failed start is remembered, and every other refused at once, until its pause is over; then the next who asks
    tries again.

    Args:
        probe: Seconds for an answer in an era of which it isn't known whether it is spoken; more where the server is
            known to take long to start.
        told: Called when a start failed, or came up after one had failed.
    """

    def __init__(
        self,
        config: ServerConfig,
        opener: Opener,
        memory: EraMemory,
        *,
        secrets: Secrets | None,
        clock: Clock,
        probe: float,
        told: Callable[[], None],
    ) -> None:
        self.config = config
        self.memory = memory
        self.backoff = Backoff(clock)
        self.failure: str | None = None
        """Why the last start failed; None where it came up."""
        self.log: UpstreamLog | None = None
        """The last lines of the child that was started last."""
        self._opener = opener
        self._secrets = secrets
        self._clock = clock
        self._probe = probe
        self._told = told
        self._gate = StartGate()
        self._took = 0.0
        """Seconds of the longest start that came up."""
        self._silent: dict[Era, float] = {}
        """How long no answer came in an era that isn't known to be spoken."""

    @property
    def unsure(self) -> bool:
        """Whether silence in the new era may have been a slow start."""
        return "modern" in self._silent and not self._settled("modern", self._took or self._silent["modern"])

    def choose(self, era: Era, tries: list[tuple[Era, OtherEra]], *, shared: bool) -> Era | None:
        """The era to try next with the server; None where there is nothing left to try."""
        if not tries:
            first: Era = "modern" if shared else era
            known = first in self.memory.speaks or first not in self.memory.lacks
            return first if known else _other(first)
        slow = next((at for at, (_, error) in enumerate(tries) if error.slow), None)
        if slow is not None:
            # The other era once more, with time enough; where there is none, the one that was slow.
            native = tries[slow][0]
            return (_other(native), native, None)[min(len(tries) - 1 - slow, 2)]
        if len(tries) == 1:
            return _other(tries[0][0])
        # Silent at the probe, and not of the old era: it is new, and slow.
        silent = any(native == "modern" and error.silent for native, error in tries)
        refused = any(native == "legacy" and not error.silent for native, error in tries)
        return "modern" if len(tries) == 2 and silent and refused else None

    async def start(self, era: Era, initialize: Object | None, *, last: bool, thread: str | None = None) -> Link:
        """A new link in this era, when its turn has come.

        Args:
            initialize: See `Opener.open`.
            thread: That it is for alone.
            last: Whether this is the last try: with all the time there is, and whatever is known of its eras.

        Raises:
            OtherEra: It doesn't seem to speak this one.
            Unavailable: It can't be started or reached; or that was so just now.
        """
        memory = self.memory
        async with self._gate.through():
            if self.failure is not None and (pause := self.backoff.remaining):
                raise self.unavailable(self.failure, pause)
            if era in memory.lacks and not last:
                raise OtherEra(f"it doesn't speak the {era} era", silent=False)
            began = self._clock.time()
            link = await self._open(era, initialize, last=last, thread=thread)
            took = self._clock.time() - began
            self._took = max(took, self._took)
            self._silent.pop(era, None)
            settled = self._settled(_other(era), took)
            self._gate.proven = True
            self.backoff.succeeded()
            failed, self.failure = self.failure, None
            try:
                await memory.found(era, link.hello, sure=settled or _other(era) in memory.speaks)
                if not settled and not last:
                    memory.trust(_other(era))
                    raise OtherEra(f"it took {took:.1f} s to start", silent=False, slow=True)
            except BaseException:
                # Nobody gets it any more.
                await link.aclose()
                raise
        if failed is not None:
            self._told()
        return link

    def _settled(self, era: Era, took: float) -> bool:
        """Whether the silence in an era was long enough to mean something, for a server that starts in this time."""
        return era not in self._silent or 2 * took <= self._silent[era]

    async def _open(self, era: Era, initialize: Object | None, *, last: bool, thread: str | None) -> Link:
        config, memory = self.config, self.memory
        # The new era is tried first, so it may be anything; the old one only where the new one is known.
        doubtful = era not in memory.speaks and (era == "modern" or _other(era) in memory.speaks)
        probing = doubtful and (not last or self._took > 0)
        limit = min(max(self._probe, 2 * self._took + 1), config.start_timeout) if probing else config.start_timeout
        began = self._clock.time()
        try:
            launch = await launch_of(config.target, secrets=self._secrets, name=config.name, thread=thread)
            self.log = UpstreamLog(config.name, launch.masker())
            return await self._opener.open(config, launch, era, initialize=initialize, limit=limit, log=self.log)
        except EraRefused as error:
            if error.supported and not set(error.supported).intersection(LEGACY_REVISIONS, MODERN_REVISIONS):
                raise await self.fail(_foreign(error.supported)) from None
            if initialize is not None and era in memory.speaks and _by_its_params(error):
                # This client's own doing: the others' handshakes are as good as before.
                raise Unavailable(
                    f"{config.name} refuses this client: {error.reason}", details={"server": config.name}
                ) from None
            if era in memory.speaks:
                # What was remembered is wrong, all of it.
                await memory.forget()
            self._silent.pop(era, None)
            memory.doubt(era)
            raise OtherEra(error.reason, silent=False) from None
        except LoginNeeded as error:
            # Without a pause: who has just logged in doesn't wait for it.
            raise self.refuse(error.reason) from None
        except LinkLost as error:
            # A child may hang or exit at a first request that it doesn't know. A URL where nothing listens, or that
            # wants a credential, is that in both eras; there only silence at the probe means the old one.
            silent = self._clock.time() - began >= 0.9 * limit
            if era in memory.speaks or (is_remote(self.config) and not (probing and silent)):
                raise await self.fail(error.reason) from None
            if silent:
                self._silent[era] = self._clock.time() - began
            memory.doubt(era)
            raise OtherEra(error.reason, silent=True) from None
        except PermissionDenied as error:
            if thread is None:
                raise await self.fail(str(error)) from None
            # Another thread's may come up: what one is refused closes nobody else's.
            raise self.unavailable(str(error), 0.0) from None
        except HotplugError as error:
            raise await self.fail(str(error)) from None
        except OSError as error:
            raise await self.fail(error.strerror or type(error).__name__) from None

    async def fail(self, reason: str) -> Unavailable:
        """It didn't come up: remembered until its pause is over; gives what to raise."""
        self.failure = reason
        self._gate.proven = False
        pause = self.backoff.failed()
        await self.memory.forget()
        self._told()
        return self.unavailable(reason, pause)

    def refuse(self, reason: str) -> Unavailable:
        """It isn't tried before a person has done something; gives what to raise."""
        told, self.failure = self.failure == reason, reason
        if not told:
            self._told()
        return self.unavailable(reason, 0.0)

    def unavailable(self, reason: str, pause: float) -> Unavailable:
        """What to raise, with the seconds until another try."""
        return Unavailable(
            f"{self.config.name} can't be {'reached' if is_remote(self.config) else 'started'}: {reason}",
            details={"server": self.config.name, "retryAfterMs": round(pause * 1000)},
        )

    def forget(self) -> None:
        """Start over: its entry was changed."""
        self.backoff.forget()
        self.failure = None
        self._gate = StartGate()
        self._took = 0.0
        self._silent.clear()


def _other(era: Era) -> Era:
    return "legacy" if era == "modern" else "modern"


def why(tries: list[tuple[Era, OtherEra]]) -> str:
    """One reason of several: what it answered says more than that it was silent, the old era's more than a probe's."""
    answered = [error.reason for _, error in tries if not error.silent]
    old = [error.reason for native, error in tries if native == "legacy"]
    return (old or answered or [error.reason for _, error in tries])[-1]


def _by_its_params(error: EraRefused) -> bool:
    """Whether a handshake was refused for what a client said in it, by a server that knows handshakes."""
    return error.answer is not None and error.answer.error_code not in (None, METHOD_NOT_FOUND) and not error.supported


def _foreign(versions: Iterable[str]) -> str:
    named = ", ".join(versions)
    known = ", ".join((*LEGACY_REVISIONS, *MODERN_REVISIONS))
    return f"it speaks only protocol revisions that aren't known here: {named} (known are {known})"
