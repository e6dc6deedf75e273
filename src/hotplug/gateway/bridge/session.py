"""One legacy session at the upstream, shared by all modern requests that declare the same capabilities."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Protocol

from msgspec import Raw

from hotplug.gateway.bridge.notices import Notices
from hotplug.gateway.bridge.polling import whole_exchange
from hotplug.gateway.bridge.words import LEVELS, change_notice, refusal
from hotplug.gateway.link import Link, LinkLost, Outgoing
from hotplug.gateway.message import INTERNAL_ERROR, Message, Object, split

__all__ = ["Asker", "Listener", "Session"]

_MOST_HELD: Final = 16
_LEVEL_WAIT: Final = 10.0
# The SDK's client gives a call up that asks for input more than ten times.
_MANY_ROUNDS: Final = 5
_ids: Final = count(1)


class Asker(Protocol):
    """A call that a question of the server's can be asked in."""

    @property
    def asking(self) -> bool:
        """Whether it has questions already."""
        ...

    @property
    def rounds(self) -> int:
        """How often the client was asked for input in it so far."""
        ...

    @property
    def token(self) -> Raw | None:
        """That it goes by at the server, for progress."""
        ...

    def withdraw(self, id_: bytes) -> None:
        """The server doesn't ask this any more."""
        ...

    def tell(self, note: Message) -> None:
        """Take progress or a log message that came outside of any call."""
        ...

    def offer(self, question: Message) -> bool:
        """Take a question that came outside of any call; False where it can't be asked here any more."""
        ...


@dataclass(eq=False, slots=True)
class Listener:
    """Someone who wants to hear of changes.

    Args:
        kinds: Of which lists, by the words of a `subscriptions/listen` filter.
        uris: Of which resources.
    """

    kinds: frozenset[str]
    uris: set[str] = field(default_factory=set[str])
    notices: Notices = field(default_factory=Notices)


class Session:
    """A legacy link, and what has to be kept for it.

    What the server sends outside of calls is read all the time: its pings are answered, its notices go to whoever
    listens. A question of the server's that names no call goes to the newest call without one that wasn't asked often
    yet: all calls are of one owner with the same abilities, and a legacy client wouldn't know more. `roots/list`,
    which servers ask as soon as they are initialized, waits for the next call.

    Args:
        can: What the clients of this session declared, for the server's questions.
        told: Called with each list's notification method.
    """

    def __init__(self, link: Link, can: dict[str, Any], told: Callable[[str], None]) -> None:
        self.link = link
        self.can = can
        self.used = 0
        self.plain = 0
        self.askers: dict[Asker, None] = {}
        self.listeners: dict[Listener, None] = {}
        self._told = told
        self._server = split(link.hello.result["capabilities"]) if "capabilities" in link.hello.result else None
        self._level: str | None = None
        self._setting = asyncio.Lock()
        self._uris: Counter[str] = Counter()
        self._subscribing = asyncio.Lock()
        self._held: deque[Message] = deque()
        self._jobs: set[asyncio.Task[None]] = set()
        self._unhook = link.on_change(self._changed)
        self._reader = asyncio.create_task(self._read())

    @property
    def busy(self) -> bool:
        """Whether something of it is in use: a call, also a parked one, or a subscription."""
        return self.used > 0

    def offers(self, capability: str, option: str | None = None) -> bool:
        """Whether the server declared something."""
        server: Object = self._server or {}
        if option is None:
            return capability in server
        options = split(server[capability]) if capability in server else None
        return options is not None and bytes(options.get(option, b"")) == b"true"

    async def log_from(self, level: str | None) -> None:
        """Let the server log at least from this level on; it is never made quieter, as others may listen."""
        if level is None or level not in LEVELS or not self.offers("logging"):
            return
        async with self._setting:
            if self._level is None or LEVELS.index(level) < LEVELS.index(self._level):
                # One that says nothing to it must not keep every request from going on.
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LEVEL_WAIT):
                        await self._request("logging/setLevel", {"level": level})
                self._level = level

    async def subscribe(self, uri: str) -> bool:
        """Let the server tell of a resource; False where it refuses. Each needs its `unsubscribe`."""
        async with self._subscribing:
            if not self._uris[uri]:
                answer = await self._request("resources/subscribe", {"uri": uri})
                if answer is None or answer.kind == "error":
                    return False
            self._uris[uri] += 1
            return True

    def unsubscribe(self, uris: frozenset[str]) -> None:
        """Need a resource's notices no more; the server is told in the background."""
        self._start(self._unsubscribe(uris))

    async def _unsubscribe(self, uris: frozenset[str]) -> None:
        async with self._subscribing:
            for uri in uris:
                self._uris[uri] -= 1
                if self._uris[uri] <= 0:
                    del self._uris[uri]
                    try:
                        await self._request("resources/unsubscribe", {"uri": uri})
                    except LinkLost:
                        return

    def notice(self, message: Message) -> bool:
        """Tell a notice of a change to those who listen for it; False where it is none."""
        kind = change_notice(message)
        if kind is None:
            return False
        uri = message.text("uri")
        among = [
            listener for listener in self.listeners if kind in listener.kinds or (uri is not None and listener.uris)
        ]
        # A part of a subscribed resource may change too: who subscribed to exactly this one is asked first.
        exactly = [listener for listener in among if uri in listener.uris]
        for listener in (exactly or among) if uri is not None else among:
            listener.notices.add(message)
        return True

    async def refuse(self, question: Message, why: str | None = None) -> None:
        """Answer a server's request that nobody can be asked; a ping gets what it wants."""
        if question.method == "ping":
            answer = Message.result_of(question.id or b"null", {})
        else:
            found = refusal(question, self.can)
            code, words = found or (INTERNAL_ERROR, why or f"the client can't be asked for {question.method} now")
            answer = Message.error_of(question.id, code, words)
        # A server that is gone is noticed by those who wait for it.
        with suppress(LinkLost):
            await self.link.send(answer)

    def done(self) -> None:
        """One call less is under way that isn't among `askers`."""
        self.plain -= 1

    def again(self, question: Message) -> None:
        """Ask a question in another call."""
        self._start(self._asked(question))

    def held(self) -> list[Message]:
        """The server's questions that waited for a call, for one that begins."""
        questions = list(self._held)
        self._held.clear()
        return questions

    async def aclose(self) -> None:
        """End the session."""
        self._unhook()
        tasks = [self._reader, *self._jobs]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._end(LinkLost("the session was closed", sent=True))
        await self.link.aclose()

    def _start(self, job: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    async def _read(self) -> None:
        try:
            async for frame in self.link.general():
                message = frame.message
                if message is None or self.notice(message):
                    continue
                if message.kind == "request":
                    await self._asked(message)
                elif message.method == "notifications/cancelled":
                    self._withdraw(bytes(message.params.get("requestId", b"null")))
                else:
                    self._stray(message)
        except LinkLost as lost:
            self._end(lost)

    def _withdraw(self, id_: bytes) -> None:
        self._held = deque(question for question in self._held if question.id != id_)
        for call in self.askers:
            call.withdraw(id_)

    def _stray(self, note: Message) -> None:
        """Many servers send progress and logs beside the call that they belong to; no log is given to a guess."""
        if note.method == "notifications/progress":
            calls = [call for call in self.askers if call.token == note.params.get("progressToken")]
        else:
            calls = list(self.askers) if note.method == "notifications/message" and not self.plain else []
        if len(calls) == 1:
            calls[0].tell(note)

    async def _asked(self, question: Message) -> None:
        if question.method != "ping" and refusal(question, self.can) is None:
            newest_first = list(reversed(self.askers))
            newest_first.sort(key=_reluctance)
            for asker in newest_first:
                if asker.offer(question):
                    return
            if question.method == "roots/list" and len(self._held) < _MOST_HELD:
                self._held.append(question)
                return
        await self.refuse(question, "no call is there in which the client could be asked")

    def _changed(self, method: str) -> None:
        if method == "lost":
            self._end(LinkLost(self.link.lost or "the connection was lost", sent=True))
        else:
            self._told(method)

    def _end(self, lost: LinkLost) -> None:
        for listener in self.listeners:
            listener.notices.end(lost)

    async def _request(self, method: str, params: dict[str, Any]) -> Message | None:
        request = Outgoing(Message.request(f"bridge-{next(_ids)}", method, params))
        async with whole_exchange(self.link, request) as answer:
            if answer.frames is None:
                return answer.message
            async for frame in answer.frames:
                message = frame.message
                if message is not None and message.is_answer:
                    return message
                # On a pipe, what belongs to no request comes with the only one that is under way.
                if message is not None and not self.notice(message) and message.kind == "request":
                    await self._asked(message)
        return None


def _reluctance(asker: Asker) -> tuple[bool, bool, int]:
    """How little a call is the one to ask in. One that asks nothing yet is best: its client isn't thinking now.

    Where it has gone round often already, another takes the question up that asks something: a client that answers in
    one call only would be asked for all others' sake in it, until it gives that call up.
    """
    often = asker.rounds >= _MANY_ROUNDS
    return often, asker.asking and not often, asker.rounds
