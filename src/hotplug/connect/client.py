"""Typed clients: `await cal.create(...)` becomes a call of a tool and comes back as what the profile says."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar, cast, get_args

import anyio

from hotplug.catalog.connection import Connection, EventRecord, WindowClosed
from hotplug.connect.channel import Channel, Reply
from hotplug.connect.masking import Masker
from hotplug.connect.pulse import WAIT_MS, Listener, Pulse
from hotplug.connect.secrets import Destination, NoSecrets, Secrets
from hotplug.connect.spoken import Spoken
from hotplug.errors import (
    ConnectionFailed,
    Disconnected,
    HotplugError,
    Internal,
    InvalidArgument,
    RateLimited,
    Timeout,
    Unavailable,
    Undeclared,
    Unsupported,
    failure,
)
from hotplug.profile import Event, Extension, Health, Part, Profile, Told
from hotplug.profile.parts import Look

__all__ = ["Link", "Options", "Window", "link_of", "typed_client"]

P = TypeVar("P", bound=Profile)

_log = logging.getLogger(__name__)

KEY_META: Final = "tools.noetic/idempotency-key"
INSTANCE_META: Final = "tools.noetic/instance"
AUTHORIZED_META: Final = "tools.noetic/authorized"
NOTES_META: Final = "dev.hotplug/notes"

_ATTEMPTS = 3
"""Tries of a call that the contract makes safe to repeat."""
_LONGEST_GAP = 60.0
"""Seconds without a connection that a subscription to events bridges."""
_PATIENCE = 6.0
"""Seconds beyond its wait until a request for events is given up and another one made; twice that the next time.

Longer than it takes the health to show it: a server that is only slow is left the time to answer."""
_SHORTEST = 1.0
_LEAST_WAIT = 0.5
"""Seconds between two requests for events that are both answered at once with none."""
_REMEMBERED = 4_000
"""Names of events and happenings that a subscription keeps, to give each once."""


@dataclass(frozen=True)
class Options:
    """Options of the calls made through a client; see `Profile.using`."""

    key: str | None = None
    timeout: float | None = None
    instance: str | None = None
    authorized: tuple[str, ...] = ()
    ext: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Window:
    """An open window: where its events start, and after the end how it was closed."""

    id: str
    cursor: str
    closed: WindowClosed | None = None


Done: TypeAlias = Callable[["Mapping[str, Any] | None", "BaseException | None"], None]
CallListener: TypeAlias = Callable[[Part, "Mapping[str, Any]"], "Done | None"]
"""Is told of each call as it is made, and by what it gives back, of its result or its failure."""

OnNote: TypeAlias = Callable[[str, str], None]
"""Gets the part and a sentence that its server says besides a result: what it couldn't read, what it took for what."""


def _log_note(part: str, note: str) -> None:
    _log.info("%s: %s", part, note)


class Masks:
    """The values that went into sensitive fields, so that they can be kept out of what is recorded."""

    def __init__(self) -> None:
        self._certain: set[str] = set()
        self._given: set[str] = set()
        self._masker: Masker | None = None

    def add(self, value: str, *, certain: bool) -> None:
        """Remember a value: a secret for certain, or what a caller gave in plain, which may be any word."""
        kept = self._certain if certain else self._given
        if value not in kept:
            kept.add(value)
            self._masker = None

    def __call__(self, text: str) -> str:
        if self._masker is None:
            self._masker = Masker(self._certain, self._given)
        return self._masker(text)


class Link:
    """What a typed client calls through: names, keys, retries and errors.

    A call is repeated by itself only where the contract makes it safe: reads, and `once` operations of a server that
    keeps keys (one with connection@1), under the key of the first try. Anything else whose outcome is unknown raises.
    """

    def __init__(
        self,
        channel: Channel,
        spoken: Spoken,
        options: Options | None = None,
        *,
        vault: Secrets | None = None,
        on_note: OnNote | None = None,
        listeners: list[CallListener] | None = None,
        witnesses: tuple[Any, ...] = (),
        shown: Masks | None = None,
        recordings: list[Any] | None = None,
        pulse: Pulse | None = None,
    ) -> None:
        self.channel = channel
        self.spoken = spoken
        self.options = options or Options()
        self.vault: Secrets = vault or NoSecrets()
        self.on_note: OnNote = on_note or _log_note
        self.listeners: list[CallListener] = [] if listeners is None else listeners
        """Told of every call through this connection, with whatever options it is made."""
        self.witnesses = witnesses
        """What looks besides, in the windows of this connection."""
        self._masks = shown or Masks()
        self.recordings: list[Any] = [] if recordings is None else recordings
        """Takes the run of each window."""
        self.pulse = pulse or Pulse()

    def with_options(self, **options: Any) -> Link:
        """The same link with other options for its calls."""
        return self._like(self.spoken, replace(self.options, **options))

    def _like(self, spoken: Spoken, options: Options) -> Link:
        return Link(
            self.channel,
            spoken,
            options,
            vault=self.vault,
            on_note=self.on_note,
            listeners=self.listeners,
            witnesses=self.witnesses,
            shown=self._masks,
            recordings=self.recordings,
            pulse=self.pulse,
        )

    def mask(self, text: str) -> str:
        """A text without the secrets of the connection, and without what went into sensitive fields through it."""
        own = cast("Callable[[str], str]", getattr(self.channel, "mask", str))
        return self._masks(own(text))

    def using(self, client: Any, options: Mapping[str, Any]) -> Any:
        other = copy(client)
        other._caller = self.with_options(**options)
        return other

    async def call(self, part: Part, arguments: Mapping[str, Any]) -> Any:
        body = cast("dict[str, Any]", part.input.write(dict(arguments), checked=False))
        if self.options.ext:
            body["ext"] = dict(self.options.ext)
        content = await self.call_wire(part, body)
        try:
            return part.output.read(content, strict=False)
        except ConnectionFailed as error:
            raise Internal(
                f"{part.name} answered what its profile doesn't allow: {error.message}", details=error.details
            ) from None

    async def call_wire(
        self,
        part: Part,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # the channel's, which tells the far end
        attempts: int = _ATTEMPTS,
    ) -> Mapping[str, Any]:
        """Call a part with its arguments in wire form; the structured content comes back.

        Args:
            timeout: Seconds; default: those of the options, or the part's.
            attempts: How often it is tried at the most, where the contract makes that safe.
        """
        heard = [done for one in tuple(self.listeners) if (done := one(part, arguments)) is not None]
        if not heard:
            return await self._send(part, arguments, timeout, attempts)
        try:
            content = await self._send(part, arguments, timeout, attempts)
        except BaseException as error:
            for done in heard:
                done(None, error)
            raise
        for done in heard:
            done(content, None)
        return content

    async def _send(
        self,
        part: Part,
        arguments: Mapping[str, Any],
        timeout: float | None,  # noqa: ASYNC109  # as above
        attempts: int,
    ) -> Mapping[str, Any]:
        way = self.spoken.way(part.name)
        if way is None:
            if part.name in self.spoken.known:
                without = part.flags.without or self.spoken.lost.get(part.flags.facet or "")
                lost = f": {without}" if without else ""
                raise Unsupported(f"{self.channel.target} doesn't offer {part.name}{lost}", details={"part": part.name})
            raise Undeclared(f"{self.channel.target} doesn't declare {part.name}")
        if part.sensitive:
            arguments = await self._with_secrets(part, arguments)
        meta: dict[str, Any] = {}
        if self.options.instance:
            meta[INSTANCE_META] = self.options.instance
        if self.options.authorized:
            meta[AUTHORIZED_META] = list(self.options.authorized)
        if part.flags.once:
            meta[KEY_META] = self.options.key or f"k_{secrets.token_urlsafe(18)}"
        safe = part.kind == "read" or not part.flags.effects or (part.flags.once and self.spoken.keeps_keys)
        timeout = timeout or self.options.timeout or (part.flags.timeout_ms / 1000 if part.flags.timeout_ms else None)
        for attempt in range(1, attempts + 1):
            try:
                reply = await self.channel.call(way.tool, {**arguments, **way.fixed}, meta=meta, timeout=timeout)
            except (Disconnected, Timeout) as error:
                if not safe or attempt == attempts or (isinstance(error, Timeout) and self.options.timeout):
                    raise
                try:
                    await self.channel.restore()
                except Disconnected:
                    # What the first try did is as unknown as before.
                    raise error from None
                continue
            self._pass_on(part.name, reply)
            try:
                return _content(part.name, reply)
            except ConnectionFailed as error:
                raise self._without_secrets(error) from None
        raise HotplugError("unreachable")  # pragma: no cover

    def _without_secrets(self, error: ConnectionFailed) -> ConnectionFailed:
        """What a server said went wrong, without the secrets that it was given and says again."""
        message, details = self.mask(error.message), self._masked(error.details)
        if (message, details) == (error.message, error.details):
            return error
        return type(error)(message, hint=error.hint, details=details)

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, Mapping):
            return {name: self._masked(one) for name, one in cast("Mapping[str, Any]", value).items()}
        if isinstance(value, list):
            return [self._masked(one) for one in cast("list[Any]", value)]
        return value

    async def _with_secrets(self, part: Part, value: Any, name: str | None = None) -> Any:
        """The arguments with the value of each secret that stands in a sensitive field, put in at the last moment.

        Raises:
            PermissionDenied: The secret may not go there; nothing was sent.
        """
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            if name in part.sensitive and set(members) == {"secret"}:
                to = Destination(server=self.channel.target, member=part.name)
                value = (await self.vault.get(str(members["secret"]), to)).reveal()
                self._masks.add(value, certain=True)
                return value
            return {key: await self._with_secrets(part, item, key) for key, item in members.items()}
        if isinstance(value, list):
            return [await self._with_secrets(part, item, name) for item in cast("list[Any]", value)]
        if isinstance(value, str) and name in part.sensitive:
            self._masks.add(value, certain=False)
        return value

    def _pass_on(self, part: str, reply: Reply) -> None:
        notes = reply.meta.get(NOTES_META)
        for note in cast("list[Any]", notes) if isinstance(notes, list) else ():
            if isinstance(note, str):
                self.on_note(part, note)

    def extension(self, extension: type[Extension]) -> Any:
        made = _client_class(extension)()
        made._caller = self._like(self.spoken.extended(extension), self.options)
        return made

    async def describe(self) -> Mapping[str, Any]:
        part = Connection.definition.parts["connection.describe"]
        if self.spoken.way(part.name) is None:
            return {"surface": self.channel.target, **self.spoken.document(), "notes": {"connection": "not offered"}}
        return await self.call_wire(part, {})

    async def look(self, moment: str) -> Mapping[str, Any]:
        if moment not in get_args(Look):
            raise InvalidArgument(f"{moment!r} is no moment of a look", hint=f"one of {', '.join(get_args(Look))}")
        found: dict[str, Any] = {}
        for part in self.spoken.known.values():
            wanted = part.kind == "read" and part.flags.look == moment and not part.input.schema.get("required")
            if wanted and self.spoken.way(part.name) is not None:
                found[part.name] = await self.call_wire(part, {})
        return found

    def health(self) -> Health:
        return self.pulse.health()

    async def events(
        self, kinds: Sequence[type[Event]], arguments: Mapping[str, Any], cursor: str | None
    ) -> AsyncGenerator[Told[Any], None]:
        parts, where = self._narrowed(kinds, arguments)
        request: dict[str, Any] = {"types": list(parts), "limit": 100}
        if where:
            request["where"] = where
        seen = _Seen()
        listener = self.pulse.listen()
        try:
            while True:
                if cursor is not None:
                    request["cursor"] = cursor
                page = await self._poll(request, listener)
                if page.get("missed"):
                    raise HotplugError(
                        f"events of {', '.join(parts)} were missed: the cursor has expired",
                        hint="read the state anew and go on without a cursor",
                    )
                records = [EventRecord.model_validate(raw) for raw in cast("list[dict[str, Any]]", page["events"])]
                end = str(page["cursor"])
                for number, record in enumerate(records, start=1):
                    after = end if number == len(records) else record.cursor or cursor
                    part = parts.get(record.type)
                    if part is None:
                        continue  # nobody asked for it
                    told = _told(record, part, after)
                    if seen.is_new(record, told.event):
                        yield told
                cursor = end
        except HotplugError as error:
            listener.end(str(error))
            raise
        finally:
            listener.end()

    def _narrowed(
        self, kinds: Sequence[type[Event]], arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Part], dict[str, Any]]:
        """The parts of kinds of events by their wire names, and the filter in wire form."""
        parts: dict[str, Part] = {}
        where: dict[str, Any] = {}
        for kind in kinds:
            flags = kind.part
            if flags is None or flags.name is None:
                raise HotplugError(f"{kind.__name__} is no event of a profile")
            part = self.spoken.known.get(flags.name)
            if part is None:
                raise Undeclared(f"{self.channel.target} doesn't declare {flags.name}")
            unknown = sorted(arguments.keys() - kind.Filter.model_fields.keys())
            if unknown:
                raise InvalidArgument(
                    f"{flags.name} can't be narrowed by {', '.join(unknown)}",
                    hint=f"by {', '.join(kind.Filter.model_fields) or 'nothing'}",
                )
            parts[flags.name] = part
            where |= cast("dict[str, Any]", part.input.write(kind.Filter.model_validate(dict(arguments))))
        return parts, where

    async def _poll(self, request: Mapping[str, Any], listener: Listener) -> Mapping[str, Any]:
        """A page of events, over gaps of up to `_LONGEST_GAP` seconds in the connection.

        Raises:
            Disconnected: The gap is longer; `details["cursor"]` is where the subscription stands.
        """
        part = Connection.definition.parts["connection.events"]
        pause, patience, began = 0.05, _PATIENCE, anyio.current_time()
        while True:
            # What was asked before has failed, or is the first: an answer at once says that it works again.
            wait_ms = 0 if listener.proof is None or listener.trouble is not None else WAIT_MS
            left = began + _LONGEST_GAP - anyio.current_time()
            limit = wait_ms / 1000 + max(_SHORTEST, min(patience, left))
            listener.ask()
            asked = anyio.current_time()
            try:
                page = await self.call_wire(part, {**request, "waitMs": wait_ms}, timeout=limit, attempts=1)
            except (Disconnected, Timeout, RateLimited, Unavailable) as error:
                if isinstance(error, Unavailable) and "status" not in error.details:
                    raise  # it is the server itself that says so, not what stands before it
                listener.failed(error.message)
                patience = min(patience * 2, _LONGEST_GAP)
                pause = max(pause, cast("int", error.details.get("retryAfterMs", 0)) / 1000)
                if anyio.current_time() + pause - began > _LONGEST_GAP:
                    raise Disconnected(
                        f"no events of {', '.join(request['types'])} could be fetched for {_LONGEST_GAP:g} s: "
                        f"{error.message}",
                        hint="what happens meanwhile is not lost: listen again from details['cursor']",
                        details={**error.details, "cursor": request.get("cursor")},
                    ) from error
                await anyio.sleep(pause)
                pause = min(pause * 2, 2.0)
                with suppress(Disconnected):
                    await self.channel.restore()
                continue
            listener.answered()
            if wait_ms and not page["events"] and not page.get("missed"):
                # A server that doesn't wait as it was asked to isn't asked without end.
                await anyio.sleep(max(0.0, _LEAST_WAIT - (anyio.current_time() - asked)))
            return page

    def window(self, budget_ms: int) -> AbstractAsyncContextManager[Any]:
        @asynccontextmanager
        async def opened() -> AsyncGenerator[Window, None]:
            parts = Connection.definition.parts
            made = await self.call_wire(parts["connection.window.open"], {"budgetMs": budget_ms})
            window = Window(id=str(made["window"]), cursor=str(made["cursor"]))
            try:
                yield window
            finally:
                closed = await self.call_wire(parts["connection.window.close"], {"window": window.id})
                object.__setattr__(window, "closed", WindowClosed.model_validate(closed))

        return opened()

    def claims(self, within: Any, quiet: Any) -> AbstractAsyncContextManager[Any]:
        from hotplug.connect.claims.window import ClaimWindow

        return ClaimWindow(self, within=within, quiet=quiet)

    def claim(
        self, statement: str, conditions: Sequence[Any], within: Any, quiet: Any
    ) -> AbstractAsyncContextManager[Any]:
        from hotplug.connect.claims.window import claiming

        return claiming(self, statement, conditions, within=within, quiet=quiet)

    def with_witness(self, client: Any, witnesses: Sequence[Any]) -> Any:
        other = copy(client)
        link = other._caller = self._like(self.spoken, self.options)
        link.witnesses = (*self.witnesses, *witnesses)
        return other

    def recorded(self) -> AbstractAsyncContextManager[Any]:
        from hotplug.connect.claims.recording import Recording

        @asynccontextmanager
        async def recording() -> AsyncGenerator[Recording, None]:
            made = Recording()
            self.recordings.append(made)
            try:
                yield made
            finally:
                self.recordings.remove(made)

        return recording()


class _Seen:
    """What a subscription was told, by all names that it has: the event's id, and what it tells of.

    What it tells of is said by the server (`happening`) and by the event's class (`Event.happening`). Of a server that
    doesn't say it, two events are about the same happening too where kind, instance, moment and payload are the same.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], None] = {}

    def is_new(self, record: EventRecord, event: Any) -> bool:
        """Whether none of its names was seen; all of them are from now on."""
        names: list[tuple[str, ...]] = [("id", record.id)]
        own = event.happening() if isinstance(event, Event) else None
        if own is not None:
            names.append(("class", record.instance, own))
        if record.happening is not None:
            names.append(("server", record.instance, record.happening))
        elif own is None:
            payload = json.dumps(record.payload, sort_keys=True).encode()
            names.append(("same", record.type, record.instance, record.at, hashlib.sha256(payload).hexdigest()))
        new = not any(name in self._names for name in names)
        for name in names:
            self._names[name] = None
        while len(self._names) > _REMEMBERED:
            del self._names[next(iter(self._names))]
        return new


def _told(record: EventRecord, part: Part, cursor: str | None) -> Told[Any]:
    payload = dict(record.payload)
    # A profile that exists only as a document may have a field of that name.
    ext = None if "ext" in part.output.schema.get("properties", {}) else payload.pop("ext", None)
    return Told(
        event=part.output.read(payload, strict=False),
        id=record.id,
        type=record.type,
        at=record.at,
        sense=record.sense,
        summary=record.summary,
        instance=record.instance,
        happening=record.happening or record.id,
        cursor=cursor,
        action_id=record.action_id,
        window=record.window,
        epoch=record.epoch,
        ext=cast("Mapping[str, Any]", ext) if isinstance(ext, Mapping) else {},
    )


def _content(name: str, reply: Reply) -> Mapping[str, Any]:
    """The structured content of a reply, or the error that it says: the flag first, then the content, else the text."""
    content = reply.content if reply.content is not None else _json(reply.text)
    if reply.is_error:
        body = content or {}
        code, message = body.get("code"), body.get("message")
        if isinstance(code, str) and isinstance(message, str):
            details = body.get("details")
            raise failure(code, message, cast("Mapping[str, Any]", details) if isinstance(details, Mapping) else None)
        raise Internal(
            f"{name} failed: {reply.text[:500] or 'no reason was given'}", details={"raw": reply.text[:4096]}
        )
    if content is None:
        raise Internal(f"{name} answered without structured content", details={"raw": reply.text[:4096]})
    return content


def _json(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def link_of(connection: Profile) -> Link:
    """The link of a connection, for callers that work by wire names.

    Raises:
        HotplugError: It is a server, not a connection.
    """
    return _caller(connection)


def typed_client(profile: type[P], link: Link) -> P:
    """A typed client of a profile over a link."""
    made = _client_class(profile)()
    made._caller = link
    return cast("P", made)


@cache
def _client_class(contract: type[Any]) -> type[Any]:
    """The subclass of a contract whose parts call through the link."""
    parts: Mapping[str, Part]
    if issubclass(contract, Profile):
        parts, keywords = contract.definition.all_parts, {"partial": True}
    else:
        parts, keywords = contract.parts, cast("dict[str, Any]", {})
    members: dict[str, Any] = {"__doc__": contract.__doc__, "__module__": contract.__module__, "_caller": None}
    for part in parts.values():
        if part.kind != "event":
            members[part.method] = _stub(part)
    made: Any = type(contract)
    return made(f"{contract.__name__}Client", (contract,), members, **keywords)


def _stub(part: Part) -> Callable[..., Any]:
    signature = part.signature
    if signature is None:

        async def untyped(self: Any, **arguments: Any) -> Any:
            return await _caller(self).call(part, arguments)

        stub: Callable[..., Any] = untyped
    else:
        keywords = [one.name for one in signature.parameters.values() if one.kind is inspect.Parameter.VAR_KEYWORD]
        ordered = [one.name for one in list(signature.parameters.values())[1:] if one.name not in keywords]

        async def typed(self: Any, *positional: Any, **named: Any) -> Any:
            if len(positional) > len(ordered):
                raise TypeError(f"{part.name} takes {len(ordered)} positional arguments, not {len(positional)}")
            arguments = dict(zip(ordered, positional, strict=False))
            twice = arguments.keys() & named.keys()
            if twice:
                raise TypeError(f"{part.name} got {', '.join(sorted(twice))} twice")
            return await _caller(self).call(part, {**arguments, **named})

        stub = typed
    stub.__name__ = part.method
    stub.__doc__ = part.description
    return stub


def _caller(client: Any) -> Link:
    link = client._caller
    if link is None:
        raise HotplugError(f"{type(client).__name__} is a server, not a connection", hint="connect to it first")
    return cast("Link", link)
