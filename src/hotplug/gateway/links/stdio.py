"""A link over a child's pipes: many exchanges on one pair of them.

Everything that can be told from a message goes to the exchange that it belongs to: answers and progress by our ids,
a subscription's events by its id. What carries no request (log messages, the server's own requests) belongs to the
only exchange in flight where there is exactly one, and else to `general()`; a `subscriptions/listen` counts as none,
and neither does a request of the gateway's own (one without a scope). Lists that changed and resources that were
updated always go to `general()` in the old era; in the new one nothing does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final

from msgspec import Raw

from hotplug.connect.failures import advice
from hotplug.connect.launch import StdioLaunch
from hotplug.connect.process import ChildProcess, Lines, exit_words
from hotplug.connect.upstream_log import UpstreamLog
from hotplug.gateway.link import Answer, Era, Frame, Hello, LinkLost, Outgoing
from hotplug.gateway.links.batches import messages_in
from hotplug.gateway.links.changes import Changes
from hotplug.gateway.links.flow import Flow
from hotplug.gateway.links.handshake import INITIALIZED, first_request, hello_of
from hotplug.gateway.links.ids import Ids, Ticket
from hotplug.gateway.message import METHOD_NOT_FOUND, PARSE_ERROR, Message, NotAMessage, Object, split

__all__ = ["StdioLink", "open_stdio"]

_LINE_LIMIT: Final = 64 * 1024 * 1024
_NOISE_LIMIT: Final = 1000
_TAIL_WAIT: Final = 0.3
_TAIL_LINES: Final = 5
_BUFFER: Final = 4 * 1024 * 1024
_SHARED_BUFFER: Final = 32 * 1024 * 1024
_TIGHT_BUFFER: Final = 256 * 1024
_UNREAD: Final = 1024 * 1024
_UNSENT: Final = 64 * 1024 * 1024
_PATIENCE: Final = 5.0
_PROBE_GRACE: Final = 0.2
_CLOSED: Final = "it was closed here"
_DEAF: Final = "it closed its standard input"
_ASKED: Final = 1000
_ANSWER_TO: Final = re.compile(rb'"id"\s*:\s*("h\d+")')
_A_MESSAGE: Final = re.compile(rb'\s*\{.{0,64}"jsonrpc"', re.DOTALL)
_ANNOUNCING: Final = frozenset({"notifications/resources/updated", "notifications/elicitation/complete"})
_logger = logging.getLogger("hotplug.gateway")


async def open_stdio(
    launch: StdioLaunch,
    era: Era,
    *,
    initialize: Object | None = None,
    limit: float = 30.0,
    log: UpstreamLog | None = None,
    patience: float = _PATIENCE,
) -> StdioLink:
    """Start a child and shake hands with it in one era.

    That is `initialize` and `notifications/initialized`, or `server/discover`. A caller's own
    `notifications/initialized` is swallowed by `send`: the handshake is done. On any failure, and where the caller is
    cancelled, the child and its whole process group have ended before this returns.

    Args:
        initialize: The legacy client's params, passed on as they are; None: the gateway's own, with no capabilities.
        limit: Seconds for start and handshake together.
        log: Takes standard error and noise; None: one of the link's own. It masks what it keeps.
        patience: Seconds in all that one slow reader may hold up the other exchanges; then it alone is ended.

    Raises:
        EraRefused: It answered, and not as a server of this era.
        LinkLost: It couldn't be started, ended, or gave no answer in time; with the end of its standard error.
    """
    masker = launch.masker()
    try:
        process = await ChildProcess.start(launch.argv, env=launch.env, cwd=launch.cwd)
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise LinkLost(f"it can't be started: {masker.line(words or type(error).__name__)}", sent=False) from None
    link = StdioLink(process, launch, era, log, patience)
    opened = False
    try:
        async with asyncio.timeout(limit):
            async with link.exchange(Outgoing(first_request(era, initialize))) as answer:
                message = answer.message
                if message is None:
                    assert answer.frames is not None
                    async for frame in answer.frames:
                        message = frame.message
            assert message is not None
            link.greet(hello_of(era, message, masker))
            if era == "legacy":
                await link.send_own(INITIALIZED)
        opened = True
    except TimeoutError:
        method = "server/discover" if era == "modern" else "initialize"
        raise LinkLost(link.explained(f"it gave no answer to {method} in {limit:g} s"), sent=False) from None
    except LinkLost as error:
        if type(error) is not LinkLost:
            raise
        raise LinkLost(f"before it answered, {error.reason}", sent=False) from None
    finally:
        if not opened:
            await link.end(_PROBE_GRACE)
    return link


class StdioLink:
    """A `Link` over one child's pipes; made by `open_stdio`."""

    hello: Hello

    def __init__(
        self, process: ChildProcess, launch: StdioLaunch, era: Era, log: UpstreamLog | None, patience: float
    ) -> None:
        self.era: Era = era
        self._masker = launch.masker()
        self._name = self._masker.line(launch.argv[0])
        self.log = log or UpstreamLog(self._name, self._masker)
        self.lost: str | None = None
        self._process = process
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._ids = Ids()
        self._flying: dict[Ticket, _Exchange] = {}
        self._able = 0
        self._asked: dict[bytes, _Exchange | None] = {}
        self._general = Flow(self.room_made)
        self._general_read = False
        self._dropped = 0
        self._full: Flow | None = None
        self._room: asyncio.Future[None] | None = None
        self._low = 0
        self._last_sent: _Exchange | None = None
        self._changes = Changes()
        self._heard = self._loop.time()
        self._noise = 0
        self._greeted = False
        self._deaf: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        self._tasks = (self._loop.create_task(self._read()), self._loop.create_task(self._keep_log()))

    @property
    def in_flight(self) -> int:
        """How many exchanges are open."""
        return len(self._flying)

    @property
    def heard(self) -> float:
        """When the last message came (`loop.time()`), for who looks for a hang."""
        return self._heard

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def exchange(self, outgoing: Outgoing) -> AbstractAsyncContextManager[Answer]:
        """See `Link`. Entering waits for the first message: `Answer.message` if that is the answer, else `frames`."""
        return _Exchange(self, outgoing)

    async def send(self, message: Message, *, scope: str = "", headers: Mapping[str, str] | None = None) -> None:
        """See `Link`. `notifications/initialized` goes nowhere, and neither does cancelling what isn't in flight."""
        if message.method == "notifications/initialized":
            return
        if message.is_answer:
            self._asked.pop(message.id or b"null", None)
        going = self._ids.upward(message, scope)
        if going is None:
            return
        await self.send_own(going)

    async def send_own(self, message: Message) -> None:
        """Writes a message as it is.

        Raises:
            LinkLost: The child is gone.
        """
        self._write(message)
        try:
            await self._process.drain()
        except OSError:
            self._reads_no_more()
            raise LinkLost(self.lost or _DEAF, sent=True) from None

    def general(self) -> AsyncIterator[Frame]:
        """See `Link`. What nobody reads is kept up to a megabyte; then the oldest goes, and a request is refused."""
        self._general_read = True
        return self._general

    def resume(self, event_id: str) -> AbstractAsyncContextManager[Answer]:
        """See `Link`: status 405."""
        return contextlib.nullcontext(Answer(body=b"", status=405))

    def on_change(self, told: Callable[[str], None]) -> Callable[[], None]:
        """See `Link`. Told also of notices that nobody reads."""
        return self._changes.add(told)

    def greet(self, hello: Hello) -> None:
        """The handshake is done."""
        self.hello = hello
        self._greeted = True

    async def aclose(self) -> None:
        """Ends the exchanges (`LinkLost`), the child and its process group. May be called twice, and at once."""
        await self.end()

    async def end(self, grace: float = 2.0) -> None:
        """The same with seconds that the child has to exit by itself."""
        if self._ending is None:
            self._lose(_CLOSED)
            self._ending = self._loop.create_task(self._end(grace))
        try:
            await asyncio.shield(self._ending)
        except asyncio.CancelledError:
            if not self._ending.done():
                # No time for manners; the rest is then a matter of a moment.
                self._process.kill()
                await self._ending
            raise

    async def _end(self, grace: float) -> None:
        try:
            await self._process.end(grace)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._process.close()

    # Going up

    def begin(self, exchange: _Exchange, outgoing: Outgoing) -> Ticket:
        """Writes a request. Raises `LinkLost` (not sent)."""
        if self.lost is not None:
            raise LinkLost(self.lost, sent=False)
        ticket, message = self._ids.issue(outgoing)
        try:
            self._write(message)
        except BaseException:
            self._ids.forget(ticket)
            raise
        self._flying[ticket] = exchange
        self._able += _may_own(ticket)
        self._last_sent = exchange
        # Others wait from now on behind a slow reader.
        self._look_again()
        return ticket

    async def sent(self) -> None:
        """Waits until the pipe takes more."""
        try:
            await self._process.drain()
        except OSError:
            self._reads_no_more()

    def leave(self, ticket: Ticket, flow: Flow, *, answered: bool) -> None:
        """An exchange's reader has gone; the server is told where its answer hasn't come."""
        if not answered and ticket in self._flying:
            if not ticket.cancelled and self._greeted and self.lost is None:
                self._cancel(ticket)
            self._drop(ticket)
        flow.leave()

    def _cancel(self, ticket: Ticket) -> None:
        params = {"requestId": Raw(ticket.own), "reason": "the caller has gone"}
        with contextlib.suppress(LinkLost):
            self._write(Message.notification("notifications/cancelled", params))

    def _drop(self, ticket: Ticket, *, more_comes: bool = False) -> None:
        if self._flying.pop(ticket, None) is not None:
            self._able -= _may_own(ticket)
        if more_comes:
            self._ids.park(ticket)
        else:
            self._ids.forget(ticket)

    def _write(self, message: Message) -> None:
        stdin = self._process.stdin
        if self.lost is not None:
            raise LinkLost(self.lost, sent=False)
        if stdin.transport.is_closing():
            self._reads_no_more()
            raise LinkLost(_DEAF, sent=False)
        if stdin.transport.get_write_buffer_size() > _UNSENT:
            raise LinkLost("it doesn't read what is sent to it", sent=False)
        self._last_sent = None
        stdin.write(message.line())

    def _reads_no_more(self) -> None:
        # Whoever reads the other pipe knows more, if it has ended: how. This bounds the case in which it lives on.
        if self._deaf is None and self.lost is None:
            self._deaf = self._loop.call_later(2 * _TAIL_WAIT, self._lose, _DEAF)

    # Coming down

    async def _read(self) -> None:
        lines = Lines(_LINE_LIMIT)
        problem: str | None = None
        try:
            while problem is None and (chunk := await self._process.read()):
                for line in lines.feed(chunk):
                    self._take_line(line)
                    if self._noise > _NOISE_LIMIT:
                        break
                    if self._full is not None:
                        await self._wait_for_room(self._full)
                        self._full = None
                if lines.over:
                    problem = f"it wrote a line of more than {_LINE_LIMIT // 1024 // 1024} MiB"
                elif self._noise > _NOISE_LIMIT:
                    problem = f"it writes to its standard output what is no message: {self.log.first_noise}"
            self.log.noise(lines.rest())
            if problem is None:
                problem = await self._how_it_ended()
            self._lose(self.explained(problem))
            # A child that still writes must not block on a full pipe while it is asked to end.
            while await self._process.read():
                pass
        except Exception:
            _logger.exception("reading a server's output failed")
            self._lose("reading its output failed")

    async def _how_it_ended(self) -> str:
        # The tail of standard error belongs to the error that this end causes.
        await asyncio.wait(self._tasks[1:], timeout=_TAIL_WAIT)
        await self._process.exited(_TAIL_WAIT)
        code = self._process.returncode
        return "it closed its standard output" if code is None else exit_words(code)

    def explained(self, problem: str) -> str:
        """What went wrong, with what the child wrote last."""
        parts = [problem]
        if self.log.first_noise and self.log.first_noise not in problem and not self._greeted:
            parts.append(f"it wrote to its standard output what is no message: {self.log.first_noise}")
        tail = [line for line in self.log.tail(_TAIL_LINES) if not line.startswith("stdout: ")]
        if tail:
            parts.append("its last lines: " + " | ".join(tail))
        hint = advice(self.log)
        return "; ".join(parts) + (f" ({hint})" if hint else "")

    async def _keep_log(self) -> None:
        try:
            while chunk := await self._process.read_error():
                self.log.feed(chunk)
        finally:
            self.log.finish()

    def _take_line(self, line: bytes) -> None:
        try:
            messages = messages_in(line)
        except NotAMessage as error:
            if line.strip():
                self._noise += 1
                self.log.noise(line)
                self._fail_unreadable(line, error)
            return
        self._noise = 0
        self._heard = self._loop.time()
        for message in messages:
            self._take(message)

    def _fail_unreadable(self, line: bytes, error: NotAMessage) -> None:
        """An answer that can't be read ends its exchange: nothing else will come for it.

        `NaN` is the usual cause, a missing `jsonrpc` another one. A line of a log that names our id is no answer.
        """
        own: bytes | None = None
        if error.code == PARSE_ERROR:
            found = _ANSWER_TO.search(line) if _A_MESSAGE.match(line) else None
            own = found[1] if found is not None else None
        else:
            fields = split(line) or {}
            if "result" in fields or "error" in fields:
                own = error.id
        ticket = self._ids.find(own)
        exchange = self._flying.get(ticket) if ticket is not None else None
        if ticket is not None and exchange is not None:
            self._drop(ticket)
            exchange.flow.fail(LinkLost("its answer is no JSON-RPC", sent=True))

    def _take(self, message: Message) -> None:
        ticket = self._ids.named_by(message)
        if ticket is None:
            self._take_unnamed(message)
            return
        exchange = self._flying.get(ticket)
        given = ticket.restored(message)
        if exchange is None:
            # Of a request whose exchange has ended: the progress of its task.
            self._give_general(given)
            return
        if message.is_answer:
            self._drop(ticket, more_comes=ticket.token is not None and "task" in message.result)
            exchange.flow.put(given)
            exchange.answered = True
            exchange.flow.end()
            return
        self._changes.look(message)
        self._give(exchange, given)

    def _take_unnamed(self, message: Message) -> None:
        if message.is_answer:
            # An error without an id: what was sent last couldn't be read.
            exchange = self._last_sent
            if message.kind == "error" and message.id in (None, b"null") and exchange is not None:
                ticket = exchange.ticket
                if ticket is not None and self._flying.get(ticket) is exchange and len(self._flying) == 1:
                    self._take(message.with_id(ticket.own))
            return
        method = message.method or ""
        self._changes.look(message)
        if method == "notifications/progress" or (method.startswith("notifications/") and self._announces(method)):
            if method != "notifications/progress":
                self._give_general(message)
            return
        exchange = self._only()
        if method == "notifications/cancelled":
            exchange = self._asked.pop(bytes(message.params.get("requestId", b"null")), exchange)
        elif message.kind == "request":
            self._asked[message.id or b"null"] = exchange
            if len(self._asked) > _ASKED:
                del self._asked[next(iter(self._asked))]
            if exchange is None and method == "ping" and not self._general.reading:
                self._answer(Message.result_of(message.id or b"null", {}))
                return
        if exchange is not None and not exchange.flow.closed:
            self._give(exchange, message)
        else:
            self._give_general(message)

    def _announces(self, method: str) -> bool:
        return method.endswith("/list_changed") or method in _ANNOUNCING

    def _only(self) -> _Exchange | None:
        """The only exchange in flight that something without a name can belong to."""
        if self._able != 1:
            return None
        return next(exchange for ticket, exchange in self._flying.items() if _may_own(ticket))

    def _give(self, exchange: _Exchange, message: Message) -> None:
        exchange.flow.put(message)
        if exchange.flow.size > self._allowed():
            self._full = exchange.flow

    def _allowed(self) -> int:
        if len(self._flying) < _SHARED_BUFFER // _BUFFER:
            return _BUFFER
        total = sum(each.flow.size for each in self._flying.values())
        return _BUFFER if total <= _SHARED_BUFFER else _TIGHT_BUFFER

    def _give_general(self, message: Message) -> None:
        if self.era == "modern":
            # Nothing of this era belongs to nobody.
            self._dropped += 1
            return
        self._general.put(message)
        while self._general.size > (_BUFFER if self._general_read else _UNREAD):
            dropped = self._general.drop_oldest()
            if dropped is None:
                break
            if not self._dropped:
                _logger.warning("%s sends more than anybody reads; the oldest is dropped", self._name)
            self._dropped += 1
            if dropped.kind == "request":
                self._asked.pop(dropped.id or b"null", None)
                self._answer(Message.error_of(dropped.id, METHOD_NOT_FOUND, "nobody is there to answer"))

    def _answer(self, message: Message) -> None:
        self._asked.pop(message.id or b"null", None)
        with contextlib.suppress(LinkLost):
            self._write(message)

    async def _wait_for_room(self, flow: Flow) -> None:
        """Holds the pipe until a reader has taken enough, as long as others can bear it."""
        exchange = next((each for each in self._flying.values() if each.flow is flow), None)
        while exchange is not None and not flow.closed and self.lost is None and flow.size > self._allowed():
            self._low = self._allowed() // 2
            others = len(self._flying) > 1 or self._general.reading
            self._room = self._loop.create_future()
            started = self._loop.time()
            try:
                async with asyncio.timeout(exchange.patience if others else None):
                    await self._room
            except TimeoutError:
                pass
            finally:
                self._room = None
            if others:
                exchange.patience -= self._loop.time() - started
                if exchange.patience <= 0 and exchange.ticket is not None and flow.size > self._allowed():
                    self._cancel(exchange.ticket)
                    self._drop(exchange.ticket)
                    flow.fail(LinkLost("its messages were read too slowly, and others waited", sent=True), at_once=True)

    def room_made(self) -> None:
        """A reader took something, or left."""
        if self._full is None or self._full.closed or self._full.size <= self._low:
            self._look_again()

    def _look_again(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _lose(self, reason: str) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        if self._deaf is not None:
            self._deaf.cancel()
        failure = LinkLost(reason, sent=True)
        for ticket, exchange in list(self._flying.items()):
            self._drop(ticket)
            exchange.flow.fail(failure)
        self._general.end()
        self._look_again()
        self._changes.lost()

    @property
    def patience(self) -> float:
        """Seconds in all that one slow reader may hold up the others."""
        return self._patience


def _may_own(ticket: Ticket) -> bool:
    return ticket.scope != "" and not ticket.listens


class _Exchange:
    """One request on the pipe; the context manager that `exchange` gives."""

    __slots__ = ("_link", "_outgoing", "answered", "flow", "patience", "ticket")

    def __init__(self, link: StdioLink, outgoing: Outgoing) -> None:
        self._link = link
        self._outgoing = outgoing
        self.flow = Flow(link.room_made)
        self.patience = link.patience
        self.answered = False
        self.ticket: Ticket | None = None

    async def __aenter__(self) -> Answer:
        self.ticket = self._link.begin(self, self._outgoing)
        try:
            await self._link.sent()
            first = await self.flow.take()
        except StopAsyncIteration:
            raise LinkLost(_CLOSED, sent=True) from None
        except BaseException:
            self._leave()
            raise
        if first.is_answer:
            return Answer(message=first)
        return Answer(frames=_Frames(first, self.flow))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if self.ticket is not None:
            self._link.leave(self.ticket, self.flow, answered=self.answered)


class _Frames:
    """The first frame, which was read already, and the others."""

    __slots__ = ("_first", "_flow")

    def __init__(self, first: Message, flow: Flow) -> None:
        self._first: Message | None = first
        self._flow = flow

    def __aiter__(self) -> _Frames:
        return self

    async def __anext__(self) -> Frame:
        if self._first is not None:
            first, self._first = self._first, None
            return Frame(first)
        return Frame(await self._flow.take())
