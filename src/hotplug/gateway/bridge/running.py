"""A call at a legacy server that outlives the request that began it: while it waits for input, nobody is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from msgspec import Raw

from hotplug.gateway.bridge.polling import whole_exchange
from hotplug.gateway.bridge.session import Session
from hotplug.gateway.bridge.stopping import Stop
from hotplug.gateway.bridge.words import items, modern_note, refusal
from hotplug.gateway.link import Answer, LinkLost, Outgoing
from hotplug.gateway.message import Message, split

__all__ = ["Running", "Visit"]

_logger: Final = logging.getLogger("hotplug.gateway")
_MOST_WAITING: Final = 256

_Item = Message | Answer | LinkLost | None


class Visit:
    """A call that the server didn't begin: a URL has to be visited first, then the retry is the call.

    Args:
        error: What the server answered.
    """

    def __init__(self, error: Message) -> None:
        fields = split(error.fields["error"]) or {}
        data = split(fields["data"]) if "data" in fields else None
        wanted = items((data or {}).get("elicitations", Raw(b"[]")))
        self.questions = {
            f"elicitation-{number}": Message({"method": Raw(b'"elicitation/create"'), "params": one})
            for number, one in enumerate(wanted, 1)
        }

    def expire(self) -> None:
        """Nothing is there to end."""

    def agreed(self, answers: Mapping[str, Raw]) -> bool:
        """Whether the user went to all of them."""
        replies = [split(answers[name]) or {} for name in self.questions if name in answers]
        return len(replies) == len(self.questions) and all(reply.get("action") == Raw(b'"accept"') for reply in replies)


class Running:
    """A call under way in a task of its own.

    Args:
        outgoing: The request as the legacy server shall see it.
        room: Whether one more call may be parked.
        over: Called when it is over.
    """

    def __init__(
        self, session: Session, outgoing: Outgoing, room: Callable[[], bool], over: Callable[[Running], None]
    ) -> None:
        self.session = session
        self.questions: dict[str, Message] = {}
        self._outgoing = outgoing
        self._room = room
        self._token = outgoing.message.meta.get("progressToken")
        self._items: asyncio.Queue[_Item] = asyncio.Queue(_MOST_WAITING)
        self._withdrawn: set[bytes] = set()
        self._asked = 0
        self._rounds = 0
        self._parked = False
        self._answered = False
        self._over = False
        self._offered: dict[bytes, Message] = {}
        session.used += 1
        session.askers[self] = None
        for question in session.held():
            self.offer(question)
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(lambda _: over(self))

    @property
    def asking(self) -> bool:
        return bool(self.questions or self._offered)

    @property
    def rounds(self) -> int:
        return self._rounds

    @property
    def token(self) -> Raw | None:
        return self._token

    def tell(self, note: Message) -> None:
        if not self._answered and not self._items.full():
            self._items.put_nowait(note)

    def offer(self, question: Message) -> bool:
        if self._over or self._answered or self._items.full():
            return False
        self._offered[question.id or b"null"] = question
        self._items.put_nowait(question)
        return True

    def expire(self) -> None:
        self._task.cancel()
        self._release()
        self._hand_back()

    async def aclose(self) -> None:
        """End it; where it wasn't answered yet it is cancelled at the server."""
        self.expire()
        await asyncio.gather(self._task, return_exceptions=True)

    async def first(self, stop: Stop) -> Message | Answer | None:
        """What came first, for an answer without a stream; it isn't taken out unless it is the answer.

        Raises:
            LinkLost: The server is gone.
            Stopped: The caller cancelled.
        """
        item = await stop.wait(self._items.get())
        if isinstance(item, LinkLost):
            raise item
        return item

    async def messages(
        self, stop: Stop, first: Message | Answer | None, token: Raw | None, level: str | None
    ) -> AsyncIterator[Message]:
        """What the server sends for the call, until it is answered or asks: then `questions` are there.

        Args:
            token: Of the present request: progress goes by it, and nowhere without one.
            level: From which on it wants logs.

        Raises:
            LinkLost: The server is gone.
            Stopped: The caller cancelled.
        """
        item: _Item = first
        while True:
            match item:
                case LinkLost():
                    raise item
                case Message() if item.is_answer:
                    self.questions.clear()
                    self._hand_back()
                    yield item
                    return
                case Message() if item.kind == "request":
                    await self._take(item)
                case Message():
                    if (note := self._note(item, token, level)) is not None:
                        yield note
                case _:
                    raise LinkLost("the server ended the call without an answer", sent=True)
            if self.questions and self._items.empty():
                # What it asks in the same breath is asked together.
                await asyncio.sleep(0)
                if self.questions and self._items.empty():
                    self._parked = True
                    self._rounds += 1
                    return
            item = await stop.wait(self._items.get())

    async def resume(self, answers: Mapping[str, Raw]) -> None:
        """Pass on what the client answered; what it didn't answer stays asked.

        Raises:
            LinkLost: The server is gone.
        """
        self._parked = False
        for name, question in tuple(self.questions.items()):
            if name not in answers:
                continue
            del self.questions[name]
            self._offered.pop(question.id or b"null", None)
            answer = Message.result_of(question.id or b"null", answers[name])
            try:
                await self.session.link.send(answer, scope=self._outgoing.scope)
            except LinkLost as lost:
                # The answer may not have been sent; the call was.
                raise LinkLost(lost.reason, sent=True) from None

    async def _take(self, question: Message) -> None:
        id_ = question.id or b"null"
        if id_ in self._withdrawn:
            return
        if question.method == "ping" or refusal(question, self.session.can) is not None:
            await self.session.refuse(question)
        elif not self.questions and not self._room():
            self._offered.pop(id_, None)
            await self.session.refuse(question, "too many calls wait for input")
        else:
            self._asked += 1
            self.questions[f"{(question.method or '').partition('/')[0]}-{self._asked}"] = question

    def _note(self, message: Message, token: Raw | None, level: str | None) -> Message | None:
        if message.method == "notifications/progress":
            if token is None:
                return None
            return message if token == self._token else message.with_param("progressToken", token)
        return modern_note(message, level)

    async def _run(self) -> None:
        try:
            async with whole_exchange(self.session.link, self._outgoing) as answer:
                if answer.frames is None:
                    self._answered = True
                    await self._items.put(answer.message or answer)
                else:
                    async for frame in answer.frames:
                        if frame.message is not None:
                            await self._came(frame.message)
        except LinkLost as lost:
            await self._items.put(lost)
        except Exception:
            # Whoever waits for the answer must not wait for ever.
            _logger.exception("carrying a call failed")
            await self._items.put(LinkLost("carrying the call failed", sent=True))
        else:
            await self._items.put(None)
        finally:
            self._release()

    async def _came(self, message: Message) -> None:
        if self.session.notice(message):
            return
        if message.is_answer:
            self._answered = True
        if message.method == "notifications/cancelled":
            self.withdraw(bytes(message.params.get("requestId", b"null")))
            return
        if self._parked and self._items.full() and message.kind == "notification":
            # Nobody reads while a person thinks; the server must not wait for room for its progress.
            return
        await self._items.put(message)

    def withdraw(self, id_: bytes) -> None:
        self._withdrawn.add(id_)
        self._offered.pop(id_, None)
        for name, question in tuple(self.questions.items()):
            if question.id == id_:
                del self.questions[name]

    def _hand_back(self) -> None:
        """What others asked and this call didn't put to the client is asked in another."""
        questions = list(self._offered.values())
        self._offered.clear()
        for question in questions:
            if question.id not in self._withdrawn:
                self.session.again(question)

    def _release(self) -> None:
        if not self._over:
            self._over = True
            self.session.used -= 1
            self.session.askers.pop(self, None)
