"""A server that speaks a profile itself, over MCP: its operations are passed on, and bound to the thread on the way.

The upstream takes the gateway for one principal. So what it hands to one thread is sealed once more for that thread:
a ref of another thread's is `not_found` before anything is sent, and the keys of two threads never meet.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from msgspec import Raw

from hotplug.connect import Spoken
from hotplug.errors import ConnectionFailed, Guarded, InvalidArgument, NotFound, StaleReference, Unsupported
from hotplug.gateway.message import loads
from hotplug.gateway.raw_channel import Conversation, raw_result_of
from hotplug.profile import Definition, Determinism, Extension, Part, Sense, without_nulls
from hotplug.profile.schema import JsonSchema, map_refs
from hotplug.profile.versions import parse_version
from hotplug.serve import AUTHORIZED_META, INSTANCE_META, KEY_META, NOTES_META, Bound, Memory, ProjectionRef, Seal, bind

__all__ = ["WINDOW", "Passage", "RemoteProvider", "Sent", "ThreadSeal", "masked", "opened_window", "read_arguments"]

_LONGEST_KEY: Final = 255
WINDOW: Final = "connection.window"
"""The kind under which the names of windows are sealed."""
_INSTANCE: Final = "connection.instance"
_TAG: Final = 8


class ThreadSeal(Seal):
    """Seals refs for one thread; a volatile one stays short, and dies with the instance that it was minted in.

    Args:
        instance: The id of what is behind at this moment.
    """

    __slots__ = ("_key", "_place", "instance")

    def __init__(self, key: bytes, server: str, thread: str, instance: Callable[[], str]) -> None:
        super().__init__(key, server, thread)
        self._key = key
        self._place = f"{server}\n{thread}"
        self.instance = instance

    def seal(self, kind: str, handle: str, *, volatile: bool = False) -> str:
        if not volatile:
            return super().seal(kind, handle)
        return f"{self._tag(kind)}.{handle}"

    def unseal(self, kind: str, ref: str, *, volatile: bool = False) -> str:
        if not volatile:
            return super().unseal(kind, ref)
        tag, _, handle = ref.partition(".")
        if not handle or not hmac.compare_digest(tag.encode(), self._tag(kind).encode()):
            shown = ref if len(ref) <= 60 else ref[:60] + "…"
            raise StaleReference(f"{shown!r} is no {kind} of what is there now", hint="look again, and use what is new")
        return handle

    def _tag(self, kind: str) -> str:
        said = f"{self._place}\n{self.instance()}\n{kind}".encode()
        return base64.urlsafe_b64encode(hmac.new(self._key, said, hashlib.sha256).digest()).decode()[:_TAG]


@dataclass
class RemoteProvider:
    """The parts that a server declares, for the listing; and for one that keeps no keys, what calls them.

    Args:
        title: What stands behind, for a person.
    """

    definition: Definition
    spoken: Spoken
    conversation: Conversation
    title: str
    takes: Literal["typed", "wire"] = "wire"
    extensions: tuple[type[Extension], ...] = ()
    projection: ProjectionRef | None = None
    atomic: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def implemented(self) -> frozenset[str]:
        return frozenset(self.definition.all_parts) & frozenset(self.spoken.ways)

    @property
    def facets(self) -> frozenset[str]:
        return self.spoken.facets & frozenset(self.definition.all_facets)

    @property
    def instance(self) -> str:
        return self.conversation.instance

    @property
    def emits(self) -> frozenset[str]:
        """None: without connection@1 there is no way to be told."""
        return frozenset()

    @property
    def senses(self) -> Mapping[str, Sense]:
        return self.spoken.declaration.senses

    @property
    def determinism(self) -> Determinism:
        return self.definition.determinism

    def join(self, emit: Any, memory: Memory) -> None:
        """Nothing is emitted here."""

    async def aopen(self) -> None:
        """Nothing to open: the conversation is the pool's."""

    async def aclose(self) -> None:
        """Nothing to close."""

    async def invoke(self, part: Part, arguments: Mapping[str, Any]) -> Any:
        from hotplug.serve import current_call

        way = self.spoken.ways[part.name]
        params: dict[str, Any] = {"name": way.tool, "arguments": {**arguments, **way.fixed}}
        if part.flags.guarded:
            params["_meta"] = {AUTHORIZED_META: [self.definition.member(part.name)]}
        answer = await self.conversation.request("tools/call", params, thread=current_call().principal)
        result = raw_result_of(answer)
        failed = result.failed()
        if failed is not None:
            raise failed
        if result.input_required:
            raise Unsupported(f"{part.name} of {self.title} asks for input in the middle of a call")
        return result.structured


@dataclass(frozen=True, slots=True)
class Sent:
    """A call as it goes up.

    Args:
        params: Of `tools/call`.
        opened: What each ref means upstream, and how the caller wrote it.
        notes: What was taken for what, for the caller.
    """

    part: str
    params: dict[str, Any] = field(repr=False)
    opened: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    notes: tuple[str, ...] = ()


class Passage:
    """What is changed in a call on its way to a server that speaks the profile, and in the answer on its way back.

    Refs are known by the profile's schemas. So a tool of the server's own that takes a ref of the profile, or an
    extension's field that holds one, takes it as the server wrote it, and a thread has only its own form of it.

    Args:
        spoken: What the server speaks.
        seal: Gives the seal of a thread.
        key: Keys the derived idempotency keys.
    """

    def __init__(
        self,
        spoken: Spoken,
        provider: RemoteProvider,
        connection: RemoteProvider | None,
        seal: Callable[[str], Seal],
        key: bytes,
    ) -> None:
        self.spoken = spoken
        self.provider = provider
        self.bound: dict[str, Bound] = {one.part.name: one for one in bind(provider)}
        if connection is not None:
            self.bound |= {one.part.name: one for one in bind(connection)}
        self._seal = seal
        self._key = key
        self._newer = parse_version(spoken.version) > parse_version(spoken.definition.version)

    def outgoing(
        self,
        part: str,
        arguments: Any,
        meta: Mapping[str, Any],
        *,
        thread: str,
        authorized: bool = False,
        instance: str | None = None,
    ) -> Sent:
        """The params of the call as the server gets it.

        Args:
            meta: The caller's `_meta`; what it says of authorisations is left out.
            authorized: Whether an access profile or a person allowed it, where it is guarded.
            instance: One of the server's own instances.

        Raises:
            ConnectionFailed: It is refused here, and nothing is sent.
        """
        bound = self.bound[part]
        contract = bound.part
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise InvalidArgument(f"arguments are {type(arguments).__name__}, not an object", hint="give them by name")
        given = cast("dict[str, Any]", without_nulls(cast("dict[str, Any]", arguments), contract.patches))
        ext = given.pop("ext", None) if self.spoken.extensions else None
        bound.check_facets(given)
        if contract.flags.guarded and not authorized:
            raise Guarded(f"{part} is destructive or costly, and this call carries no authorisation for it")
        notes: list[str] = []
        given = self._checked(contract, given, notes)
        seal, opened = self._seal(thread), dict[str, str]()

        def open_(schema: JsonSchema, ref: Any) -> Any:
            if not isinstance(ref, str):
                return ref
            handle = seal.unseal(schema["x-ref"], ref, volatile=schema.get("x-volatile") is True)
            opened[handle] = ref
            return handle

        given = cast("dict[str, Any]", map_refs(contract.input.schema, given, open_))
        if part == "connection.window.close":
            given = opened_window(seal, given)
        if part == "connection.events" and isinstance(given.get("where"), dict):
            given["where"] = self._opened_where(given["where"], open_)
        way = self.spoken.ways[part]
        params: dict[str, Any] = {
            "name": way.tool,
            "arguments": {**given, **({"ext": ext} if ext is not None else {}), **way.fixed},
        }
        sent_meta = {key: value for key, value in meta.items() if key not in _OURS}
        if contract.flags.once and (key := meta.get(KEY_META)) is not None:
            sent_meta[KEY_META] = self._derived(key, thread)
        if contract.flags.guarded:
            sent_meta[AUTHORIZED_META] = [bound.member]
        if instance is not None:
            sent_meta[INSTANCE_META] = instance
        if sent_meta:
            params["_meta"] = sent_meta
        return Sent(part, params, opened, tuple(notes))

    def incoming(self, sent: Sent, result: Mapping[str, Any], *, thread: str) -> dict[str, Any]:
        """The result as the caller gets it: refs are the thread's own; everything else is as the server gave it.

        A ref that a server puts into an error's details is known to nobody: only those that the caller gave are
        written as the caller wrote them.
        """
        changed = dict(result)
        structured: Any = result.get("structuredContent")
        if result.get("isError") is True:
            # A short one may be any word.
            said = {upstream: ref for upstream, ref in sent.opened.items() if len(upstream) > _TAG}
            if said:
                changed = cast("dict[str, Any]", _replaced(changed, said))
            changed = cast("dict[str, Any]", masked(changed, self.provider.conversation.mask))
        elif isinstance(structured, dict):
            sealed = self._sealed(sent.part, cast("dict[str, Any]", structured), self._seal(thread))
            if sealed != structured:
                changed["structuredContent"] = sealed
                changed["content"] = _told(result.get("content"), structured, sealed)
        if sent.notes:
            meta = cast("Mapping[str, Any]", result.get("_meta") or {})
            theirs: Any = meta.get(NOTES_META)
            theirs = cast("list[Any]", theirs) if isinstance(theirs, list) else []
            changed["_meta"] = {**meta, NOTES_META: [*sent.notes, *theirs]}
        return changed

    def opened_instance(self, ref: str, thread: str) -> str | None:
        """The server's own id of an instance that a thread opened; None where it is none of that thread's."""
        try:
            return self._seal(thread).unseal(_INSTANCE, ref)
        except NotFound:
            return None

    def _checked(self, part: Part, given: dict[str, Any], notes: list[str]) -> dict[str, Any]:
        try:
            part.input.read(given, notes=notes)
        except InvalidArgument:
            if self._newer:
                # The server's version may know arguments that the one at hand doesn't: it judges them itself.
                return given
            raise
        return cast("dict[str, Any]", part.input.settled(given)) if notes else given

    def _derived(self, key: Any, thread: str) -> str:
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
            raise InvalidArgument(
                f"the idempotency key is {type(key).__name__} of length {len(str(key))}",
                hint=f"a text of 1 to {_LONGEST_KEY} characters",
            )
        said = f"{thread}\n{key}".encode("utf-8", "surrogatepass")
        return f"hg_{base64.urlsafe_b64encode(hmac.new(self._key, said, hashlib.sha256).digest()).decode().rstrip('=')}"

    def _sealed(self, part: str, content: dict[str, Any], seal: Seal) -> dict[str, Any]:
        contract = self.bound[part].part

        def close(schema: JsonSchema, ref: Any) -> Any:
            if not isinstance(ref, str):
                return ref
            return seal.seal(schema["x-ref"], ref, volatile=schema.get("x-volatile") is True)

        found = cast("dict[str, Any]", map_refs(contract.output.schema, content, close))
        if part == "connection.window.open" and isinstance(found.get("window"), str):
            found["window"] = seal.seal(WINDOW, found["window"])
        if part == "connection.open" and isinstance(found.get("instance"), str):
            found["instance"] = seal.seal(_INSTANCE, found["instance"])
        events: Any = found.get("events")
        if part == "connection.events" and isinstance(events, list):
            found["events"] = [self._event(one, seal) for one in cast("list[Any]", events)]
        return found

    def _event(self, record: Any, seal: Seal) -> Any:
        if not isinstance(record, dict):
            return record
        event = cast("dict[str, Any]", record)
        kind = self.spoken.known.get(str(event.get("type")))
        payload: Any = event.get("payload")
        if kind is None or kind.kind != "event" or not isinstance(payload, dict):
            return event
        sealed: dict[str, str] = {}

        def close(schema: JsonSchema, ref: Any) -> Any:
            if not isinstance(ref, str):
                return ref
            sealed[ref] = seal.seal(schema["x-ref"], ref, volatile=schema.get("x-volatile") is True)
            return sealed[ref]

        changed = {**event, "payload": map_refs(kind.output.schema, cast("dict[str, Any]", payload), close)}
        summary: Any = event.get("summary")
        if isinstance(summary, str):
            # `kind ref change-word`, in a sense of state.
            changed["summary"] = " ".join(sealed.get(word, word) for word in summary.split(" "))
        return changed

    def _opened_where(self, where: Mapping[str, Any], open_: Callable[[JsonSchema, Any], Any]) -> dict[str, Any]:
        """The filter with the caller's refs opened, by the payloads in which a field of that name is a ref."""
        found = dict(where)
        for part in self.spoken.known.values():
            if part.kind != "event":
                continue
            for name, one in where.items():
                if found[name] != one:
                    continue
                try:
                    changed = map_refs(part.output.schema, {name: one}, open_)
                except ConnectionFailed:
                    continue
                found[name] = cast("dict[str, Any]", changed)[name]
        return found


_OURS: Final = frozenset({AUTHORIZED_META, INSTANCE_META, KEY_META, "progressToken"})


def opened_window(seal: Seal, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `connection.window.close` with the window as its server calls it.

    Raises:
        NotFound: It is none of this thread's.
    """
    window = arguments.get("window")
    if not isinstance(window, str):
        return arguments
    try:
        return {**arguments, "window": seal.unseal(WINDOW, window)}
    except NotFound:
        raise NotFound(f"there is no window {window[:60]!r}", hint="it was closed, or it is another thread's") from None


def _told(content: Any, old: Any, new: Any) -> Any:
    """The content in which what said the structured content as JSON says the new one."""
    if not isinstance(content, list):
        return content
    told: list[Any] = []
    for item in cast("list[Any]", content):
        text: Any = cast("dict[str, Any]", item).get("text") if isinstance(item, dict) else None
        if isinstance(text, str) and text.lstrip().startswith("{"):
            try:
                said: Any = json.loads(text)
            except (ValueError, RecursionError):
                said = None
            if said == old:
                item = {**cast("dict[str, Any]", item), "text": json.dumps(new, ensure_ascii=False)}
        told.append(item)
    return told


def _replaced(value: Any, said: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        whole = "|".join(re.escape(one) for one in sorted(said, key=len, reverse=True))
        return re.sub(rf"(?<![\w.-])(?:{whole})(?![\w-])", lambda found: said[found[0]], value)
    if isinstance(value, dict):
        return {key: _replaced(one, said) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_replaced(one, said) for one in cast("list[Any]", value)]
    return value


def read_arguments(arguments: Any) -> Any:
    """Arguments as values, where they are raw JSON.

    Raises:
        InvalidArgument: They are nested too deeply.
    """
    if not isinstance(arguments, Raw | bytes):
        return arguments
    try:
        return loads(arguments)
    except ValueError as error:
        raise InvalidArgument(f"the arguments can't be read: {error}") from None


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """JSON with every text in it masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {name: masked(one, mask) for name, one in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [masked(one, mask) for one in cast("list[Any]", value)]
    return value
