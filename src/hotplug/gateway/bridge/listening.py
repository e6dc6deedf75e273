"""What a modern upstream tells of changes, for one legacy session: its `subscriptions/listen`, kept open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, cast

from hotplug.gateway.bridge.headers import routing
from hotplug.gateway.bridge.notices import Notices
from hotplug.gateway.bridge.words import change_notice, legacy_note, modern_request
from hotplug.gateway.link import Link, LinkLost, Outgoing
from hotplug.gateway.message import Message, Object, loads, split

__all__ = ["Listening", "NotHeard"]

_logger: Final = logging.getLogger("hotplug.gateway")
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_STEADY: Final = 20.0
"""Seconds for which a stream has to last to be opened again without a longer pause: its client is told each time."""
_PATIENCE: Final = 30.0
_KINDS: Final = {
    "tools": ("toolsListChanged", "notifications/tools/list_changed"),
    "prompts": ("promptsListChanged", "notifications/prompts/list_changed"),
    "resources": ("resourcesListChanged", "notifications/resources/list_changed"),
}


class NotHeard(Exception):
    """The server doesn't tell of it.

    Args:
        answer: The error that it answered, if it did.
    """

    def __init__(self, answer: Message | None = None) -> None:
        super().__init__("the server sends no notices of it")
        self.answer = answer


class Listening:
    """The changes that one session wants to hear of.

    Nothing is open before `start` or the first `subscribe`. A stream that breaks is opened again; then every change
    that could have been missed meanwhile is told.

    Args:
        scope: The session's, for ids below.
        told: Called with each list's notification method, as it comes.
    """

    def __init__(
        self,
        link: Link,
        capabilities: Object,
        envelope: Callable[[], Mapping[str, Any]],
        scope: str,
        told: Callable[[str], None],
    ) -> None:
        self._link = link
        self._envelope = envelope
        self._scope = scope
        self._told = told
        self._lists = {word: note for name, (word, note) in _KINDS.items() if _says(capabilities, name)}
        self._uris: set[str] = set()
        self._streams = 0
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changing = asyncio.Lock()
        self.notices = Notices()

    def start(self) -> None:
        """Hear of lists that change, where the server says that it tells."""
        if self._task is None and self._lists:
            self._task = self._begin(frozenset(self._uris), None)

    async def subscribe(self, uri: str) -> None:
        """Hear of a resource too.

        Raises:
            NotHeard: The server refuses it.
            LinkLost: The server can't be reached.
        """
        async with self._changing:
            if uri not in self._uris:
                await self._widen(frozenset(self._uris | {uri}), uri)
                self._uris.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        """Hear no more of a resource; of one that wasn't subscribed nothing changes.

        Raises:
            LinkLost: The server can't be reached.
        """
        async with self._changing:
            if uri in self._uris:
                self._uris.discard(uri)
                if self._uris or self._lists:
                    await self._widen(frozenset(self._uris), None)
                else:
                    await self._end(self._task)
                    self._task = None

    async def aclose(self) -> None:
        """End the stream."""
        self.notices.end()
        for task in tuple(self._tasks):
            await self._end(task)

    def _begin(self, uris: frozenset[str], opened: asyncio.Future[frozenset[str]] | None) -> asyncio.Task[None]:
        task = asyncio.create_task(self._keep(dict(self._lists), uris, opened))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _widen(self, uris: frozenset[str], needed: str | None) -> None:
        # The new stream is there before the old one ends, so nothing falls between them.
        opened: asyncio.Future[frozenset[str]] = asyncio.get_running_loop().create_future()
        task = self._begin(uris, opened)
        try:
            async with asyncio.timeout(_PATIENCE):
                honored = await opened
        except TimeoutError:
            await self._end(task)
            raise LinkLost(f"the server didn't acknowledge a subscription in {_PATIENCE:g} s", sent=True) from None
        except BaseException:
            await self._end(task)
            raise
        if needed is not None and needed not in honored:
            await self._end(task)
            raise NotHeard
        old, self._task = self._task, task
        await self._end(old)

    async def _keep(
        self, lists: dict[str, str], uris: frozenset[str], opened: asyncio.Future[frozenset[str]] | None
    ) -> None:
        pause = _FIRST_PAUSE
        heard = False
        while True:
            began = asyncio.get_running_loop().time()
            try:
                async for notice in self._stream(lists, uris):
                    if isinstance(notice, frozenset):
                        if opened is not None and not opened.done():
                            opened.set_result(notice)
                        if heard:
                            self._catch_up(lists, notice)
                        heard = True
                    else:
                        self._take(notice)
            except (LinkLost, NotHeard) as error:
                if opened is not None and not opened.done():
                    opened.set_exception(error)
                    return
                if isinstance(error, NotHeard):
                    return
            except Exception:
                _logger.exception("reading a subscription failed")
            if opened is not None and not opened.done():
                opened.set_exception(NotHeard())
                return
            if self._link.lost is not None:
                return
            if asyncio.get_running_loop().time() - began >= _STEADY:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _stream(self, lists: Mapping[str, str], uris: frozenset[str]) -> AsyncIterator[Message | frozenset[str]]:
        """The URIs that are honored, once; then each notice."""
        wanted: dict[str, Any] = dict.fromkeys(lists, True)
        if uris:
            wanted["resourceSubscriptions"] = sorted(uris)
        self._streams += 1
        request = modern_request(
            Message.request(f"listen-{self._streams}", "subscriptions/listen", {"notifications": wanted}),
            {**self._envelope()},
        )
        async with self._link.exchange(Outgoing(request, routing(request), self._scope)) as answer:
            if answer.body is not None:
                raise LinkLost(f"the server answered a subscription with status {answer.status}", sent=True)
            if answer.frames is None:
                raise NotHeard(answer.message if answer.message and answer.message.kind == "error" else None)
            async for frame in answer.frames:
                message = frame.message
                if message is None:
                    continue
                if message.kind == "error":
                    raise NotHeard(message)
                if message.is_answer:
                    return
                if message.method == "notifications/subscriptions/acknowledged":
                    yield _honored(message)
                elif change_notice(message):
                    yield message

    def _take(self, notice: Message) -> None:
        message = legacy_note(notice)
        if message is not None and message.method is not None:
            self.notices.add(message)
            if message.method.endswith("/list_changed"):
                self._told(message.method)

    def _catch_up(self, lists: Mapping[str, str], uris: frozenset[str]) -> None:
        for method in lists.values():
            self._take(Message.notification(method))
        for uri in sorted(uris):
            self._take(Message.notification("notifications/resources/updated", {"uri": uri}))

    @staticmethod
    async def _end(task: asyncio.Task[None] | None) -> None:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _says(capabilities: Object, name: str) -> bool:
    options = split(capabilities[name]) if name in capabilities else None
    return options is not None and bytes(options.get("listChanged", b"")) == b"true"


def _honored(message: Message) -> frozenset[str]:
    filter_ = split(message.params["notifications"]) if "notifications" in message.params else None
    uris = loads(filter_["resourceSubscriptions"]) if filter_ and "resourceSubscriptions" in filter_ else None
    if not isinstance(uris, list):
        return frozenset()
    return frozenset(uri for uri in cast("list[Any]", uris) if isinstance(uri, str))
