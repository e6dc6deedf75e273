"""A connection as the protocol's realm: its window, what it tells of, what it can't see, and what was done through it.

Source: Open Verification Protocol 1, realms; the design's pages verification and wire ("connection@1").
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, cast

import anyio

from hotplug.catalog.connection import Connection
from hotplug.connect.claims.translation import descriptor, refusal_reason, surface_of, trust
from hotplug.connect.client import Link
from hotplug.errors import ConnectionFailed, Disconnected, HotplugError, NotFound
from hotplug.evidence import (
    Action,
    ActionReceipt,
    Anomaly,
    BlindSpot,
    ChannelDescriptor,
    CloseCondition,
    EvidenceError,
    Observation,
    Provenance,
    SubjectRef,
)
from hotplug.profile import Definition, Part, Sense
from hotplug.profile.summaries import state_fact, summary_fault

__all__ = ["Closing", "Realm", "now_ms"]

_PAGE: Final = 500
_MOST_PAGES: Final = 100
"""Pages of events that one look reads: a server that never stops telling doesn't hold it up."""
_ACTOR: Final = "hotplug"
_LOOK: Final = "/look:"
"""What the id of an observation by a look has in it."""
_UNREADABLE: Final = (HotplugError, EvidenceError, LookupError, TypeError, ValueError, AttributeError)
"""What a server's answers may come to: a refusal, or something that no server should give."""


def now_ms() -> int:
    """Milliseconds of the clock that windows and records are dated by."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Closing:
    """How a place that looks ended its window.

    Args:
        closed_by: None where it has no window of its own to end.
        spots: What it couldn't see; None where it can't list that.
        observed: The channels that it really watched.
    """

    closed_by: CloseCondition | None
    spots: tuple[BlindSpot, ...] | None
    observed: tuple[str, ...]


@dataclass
class Realm:
    """The subject of a claim, seen through its own connection.

    Args:
        link: The connection.
        window: The id of the window, in which its observations stand.
    """

    link: Link
    window: str
    identity: SubjectRef = field(init=False)
    channels: tuple[ChannelDescriptor, ...] = ()
    actions: list[Action] = field(default_factory=list[Action])
    receipts: list[ActionReceipt] = field(default_factory=list[ActionReceipt])
    lost: str | None = None
    """Why it can't be seen any more, once it can't."""
    replaced: bool = False
    """Whether that is because another instance stands there now."""
    acted: float | None = None
    """When the last operation was answered, on the event loop's clock."""
    unknown: list[str] = field(default_factory=list[str])
    """Operations of which nobody knows whether they were, or still will be, done."""
    under_way: int = 0
    _watched: tuple[str, ...] = ()
    _opened: str | None = None
    _cursor: str | None = None
    _missed: bool = False
    _behind: bool = False
    """Whether it told more than was read."""
    _looked_after: int = 0
    _looks_made: int = 0
    _seen: list[Observation] = field(default_factory=list[Observation])
    _told: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    """By which names its events are known: their ids, and what they tell of."""
    _unread: dict[str, str] = field(default_factory=dict[str, str])
    """Why the last look by a read failed, by the read."""
    _garbled: dict[str, str] = field(default_factory=dict[str, str])
    """What it told that can't be read, a sentence for each kind of event."""
    _ended_at: int | None = None

    @property
    def _definition(self) -> Definition:
        return self.link.spoken.definition

    async def open(self, budget_ms: int) -> None:
        """Ask what is there, and open the window before anything is done."""
        described = await self.link.describe()
        self.meet(described)
        parts = Connection.definition.parts
        if self.link.spoken.way("connection.window.open") is not None:
            made = await self.link.call_wire(parts["connection.window.open"], {"budgetMs": budget_ms})
            self._opened, self._cursor = str(made["window"]), str(made["cursor"])
        self.link.listeners.append(self._listen)

    def meet(self, described: Mapping[str, Any]) -> None:
        """Take down which subject it is and what it watches, as it says itself."""
        worths = self._senses(described)
        self._watched = tuple(sorted(worths))
        self.channels = tuple(descriptor(name, worth) for name, worth in sorted(worths.items()))
        self.identity = SubjectRef(
            surface=surface_of(self._definition),
            instance=self._instance(described),
            locator=self.link.channel.target,
        )

    def _instance(self, described: Mapping[str, Any]) -> str:
        """The instance; where a server has none of its own, the process that answers is what lasts."""
        return str(described.get("instance") or described.get("epoch") or self.link.channel.target)

    def _senses(self, described: Mapping[str, Any]) -> dict[str, Sense]:
        """What it watches: as it says itself, else as it declares, else what the profile's events have."""
        declared = dict(self.link.spoken.declaration.senses)
        for one in reversed([*self._definition.lineage()]):
            declared = {**one.senses, **declared}
        said = described.get("senses")
        if isinstance(said, Mapping):
            names = [*cast("Mapping[str, Any]", said)]
            for name, worth in cast("Mapping[str, Mapping[str, str]]", said).items():
                declared[name] = Sense(worth["independence"], worth["grade"])
        elif self.link.spoken.declaration.senses:
            names = [*self.link.spoken.declaration.senses]
        else:
            events = [part for part in self._definition.all_parts.values() if part.kind == "event"]
            names = [part.flags.sense for part in events if part.flags.sense]
        if not self._tells:
            names = []  # declared, and there is no way to hear of it: silence would read as absence
        names += [part.flags.sense for part in self._looks() if part.flags.sense]
        found = {name: trust(name, declared) for name in names}
        return {name: worth for name, worth in found.items() if worth is not None}

    @property
    def _tells(self) -> bool:
        """Whether its events can be read from a place in time on."""
        return all(self.link.spoken.way(f"connection.{one}") is not None for one in ("events", "window.open"))

    def _looks(self) -> Iterator[Part]:
        """The reads that follow an effectful operation and need no arguments."""
        for part in self.link.spoken.known.values():
            looks = part.kind == "read" and part.flags.look == "effect" and not part.input.schema.get("required")
            if looks and self.link.spoken.way(part.name) is not None:
                yield part

    @property
    def looked_at(self) -> frozenset[str]:
        """The senses that are seen by looking, beside what it tells by itself."""
        return frozenset(part.flags.sense or "state" for part in self._looks())

    async def before(self) -> tuple[Observation, ...]:
        """Facts as they stood when the window was opened."""
        return tuple(await self._look())

    async def observe(self, *, looks: bool = False) -> tuple[Observation, ...]:
        """Everything seen so far; a connection that is gone is remembered as lost, and raises nothing.

        Args:
            looks: Read the facts again even where nothing was done since: they may come true later than the answer.
        """
        if self.lost is None and self._ended_at is None:
            try:
                await self._events()
                await self._look_again(always=looks)
            except _UNREADABLE as error:
                self.lost = _said(error)
        return tuple(self._seen)

    async def _look_again(self, *, always: bool) -> None:
        if not always and len(self.receipts) == self._looked_after:
            return
        self._looked_after = len(self.receipts)
        found = await self._look()
        # A later look stands in the place of an earlier one: a fact is what holds now. What holds on keeps its id.
        earlier = {(one.channel, one.summary): one for one in self._seen if _LOOK in one.id}
        self._seen = [one for one in self._seen if _LOOK not in one.id]
        for one in found:
            known = earlier.get((one.channel, one.summary))
            self._seen.append(known if known is not None and known.value == one.value else one)

    async def _events(self) -> None:
        """Read what it told since; what it goes on telling is read at the next look."""
        part = Connection.definition.parts["connection.events"]
        if self._cursor is None or self.link.spoken.way(part.name) is None:
            return
        for _ in range(_MOST_PAGES):
            page = await self.link.call_wire(part, {"cursor": self._cursor, "limit": _PAGE})
            self._missed = self._missed or bool(page.get("missed"))
            records = cast("list[dict[str, Any]]", page["events"])
            fresh = [record for record in records if self._is_new(record)]
            for record in fresh:
                self._take(record)
            self._cursor = str(page["cursor"])
            if not fresh:
                return
        self._behind = True

    def _is_new(self, record: Mapping[str, Any]) -> bool:
        """Whether it is told for the first time: a server may tell again what it isn't sure was heard."""
        names: set[tuple[str, ...]] = {("id", str(record.get("id")))}
        if record.get("happening"):
            names.add(("happening", str(record.get("instance")), str(record["happening"])))
        new = self._told.isdisjoint(names)
        self._told |= names
        return new

    def _take(self, record: Mapping[str, Any]) -> None:
        try:
            self._seen.append(self._observed(record))
        except _UNREADABLE as error:
            kind = str(record.get("type"))
            self._garbled[kind] = f"it told a {kind} that can't be read: {_said(error)}"

    def _observed(self, record: Mapping[str, Any]) -> Observation:
        body: dict[str, Any] = {
            "id": f"{self.window}/{record['id']}",
            "window": self.window,
            "channel": record["sense"],
            "at": _ms(str(record["at"])),
            "value": record.get("payload"),
            "summary": record["summary"],
        }
        if record.get("actionId"):
            body["actionId"] = record["actionId"]
        return Observation.read(body)

    async def _look(self) -> list[Observation]:
        """What each read shows that needs no arguments; one that fails takes nothing from the others."""
        found: list[Observation] = []
        self._looks_made += 1
        for part in self._looks():
            sense = part.flags.sense or "state"
            try:
                content = await self.link.call_wire(part, {})
                summaries = _summaries(part, sense, content)
                for index, summary in enumerate(summaries):
                    body = {
                        "id": f"{self.window}{_LOOK}{part.name}:{self._looks_made}.{index}",
                        "window": self.window,
                        "channel": sense,
                        "at": now_ms(),
                    }
                    found.append(Observation.read({**body, "value": content, "summary": summary}))
                self._unread.pop(part.name, None)
            except Disconnected:
                raise
            except _UNREADABLE as error:
                self._unread[part.name] = _said(error)
        return found

    def provenance(self, one: Observation) -> Provenance:
        """How one of its observations came to be known."""
        method = one.id.partition(_LOOK)[2].partition(":")[0] or "connection.events"
        source = self.link.channel.target
        return Provenance(class_="observed", source=source, method=method, subject=self.identity, at=one.at)

    def _listen(self, part: Part, arguments: Mapping[str, Any]) -> Any:
        """Take down an operation as it is sent, and what came of it."""
        if not part.flags.effects:
            return None
        number, at = len(self.actions) + 1, now_ms()
        self.under_way += 1
        # The place in the list is taken now: actions stand in the order in which they were sent.
        self.actions.append(Action(id=f"{self.window}.act{number}", actor=_ACTOR, capability=part.name, at=at))

        def done(content: Mapping[str, Any] | None, error: BaseException | None) -> None:
            self.under_way -= 1
            self.acted = anyio.current_time()
            receipt = cast("Mapping[str, Any]", (content or {}).get("receipt") or {})
            action = self.actions[number - 1]
            said = receipt.get("actionId")
            # A call that was repeated under its key has the receipt of the first: two calls, and one id for both.
            if said and all(one.id != said for one in self.actions):
                action = self.actions[number - 1] = action.model_copy(update={"id": str(said)})
            body: dict[str, Any] = {"action": action.id, "at": now_ms(), "subject": self.identity.document()}
            state = error.details.get("state") if isinstance(error, ConnectionFailed) else None
            if error is None or state not in (None, "not_sent"):
                body["dispatched"] = True
                if error is not None:
                    self.unknown.append(f"{part.name}: {error}")
            elif isinstance(error, ConnectionFailed):
                reason = refusal_reason(error.code)
                body |= {"dispatched": False, "refused": {"reason": reason, "detail": str(error) or error.code}}
            else:
                # Given up by the caller, or failed on this side: it may have been sent.
                body["dispatched"] = True
                self.unknown.append(f"{part.name} was given up ({type(error).__name__})")
            self.receipts.append(ActionReceipt.read(body))

        return done

    async def close(self, patience: float | None = None, *, looks: bool = False) -> Closing:
        """End the window as the server ends it, and say what it couldn't see.

        Args:
            patience: Seconds that this may take; after that it counts as lost.
            looks: Whether facts are read once more.
        """
        self.leave()
        closed_by: CloseCondition | None = None
        spots: list[BlindSpot] | None = None
        if self.lost is None:
            try:
                with anyio.fail_after(patience):
                    await self._look_again(always=looks)
                    closed_by, spots = await self._ended()
            except TimeoutError:
                self.lost = f"it didn't close its window within {patience:g} s"
            except _UNREADABLE as error:
                self.lost = f"{_said(error)}: its window can't be closed any more"
        self._ended_at = now_ms()
        if self.lost is not None:
            return Closing(None, (*self._gone(), *(spots or ())), ())
        if self._missed:
            missed = "events were missed: the server had dropped them before they were read"
            spots = [*(spots or ()), *(_spot("buffer-truncated", one, missed) for one in self._watched)]
        if self._behind:
            behind = "it told more than could be read before the end of the window"
            spots = [*(spots or ()), *(_spot("buffer-truncated", one, behind) for one in self._watched)]
        for detail in self._garbled.values():
            spots = [*(spots or ()), *(_spot("channel-unobserved", one, detail) for one in self._watched)]
        for name, detail in self._unread.items():
            sense = self.link.spoken.known[name].flags.sense or "state"
            spots = [*(spots or ()), _spot("channel-unobserved", sense, f"{name} could not be read: {detail}")]
        return Closing(closed_by, None if spots is None else tuple(spots), self._watched)

    def leave(self) -> None:
        """Listen to the connection's operations no more."""
        if self._listen in self.link.listeners:
            self.link.listeners.remove(self._listen)

    async def _ended(self) -> tuple[CloseCondition | None, list[BlindSpot] | None]:
        if self._opened is None:
            return None, None
        part = Connection.definition.parts["connection.window.close"]
        try:
            body = await self.link.call_wire(part, {"window": self._opened})
        except NotFound:
            raise HotplugError("the server doesn't know the window any more: it was restarted") from None
        self._behind = False
        await self._events()
        described = await self.link.describe()
        if (instance := self._instance(described)) != self.identity.instance:
            self.replaced = True
            raise HotplugError(f"what stood behind the connection was replaced: {instance} is another instance")
        closed = cast("CloseCondition", body["closedBy"])
        coverage = cast("Mapping[str, Any]", body["coverage"])
        listed = cast("Sequence[Mapping[str, Any]] | None", coverage.get("blindSpots"))
        if listed is None:
            return closed, None
        spots: list[BlindSpot] = []
        for one in listed:
            renamed = {"channel" if name == "sense" else name: value for name, value in one.items()}
            spots.append(BlindSpot.read({"impeaching": False, **renamed}))
        return closed, spots

    def _gone(self) -> Iterator[BlindSpot]:
        """That nothing can be said of what happened there, whichever sense a claim reads."""
        detail = f"the subject can't be seen any more: {self.lost}"
        for channel in self._watched:
            yield _spot("channel-unobserved", channel, detail)
        yield BlindSpot(
            kind="channel-unobserved",
            detail=detail,
            impeaching=True,
            remedy="read what is there now, and claim anew over a connection that holds",
        )

    def detect(self, seen: Sequence[Observation]) -> Iterator[Anomaly]:
        """Contradictions in what was seen: one action whose mutation shows twice."""
        counted: dict[tuple[str, str, str], list[Observation]] = {}
        mine = {action.id for action in self.actions}
        for one in seen:
            action = (one.model_extra or {}).get("actionId")
            if action in mine and one.summary.rpartition(" ")[2] in {"created", "deleted"}:
                counted.setdefault((str(action), one.channel, one.summary), []).append(one)
        for (action, channel, summary), twice in counted.items():
            if len(twice) > 1:
                yield Anomaly(
                    kind="duplicated-effect",
                    tier="observed",
                    claim=f"the action {action} was sent once",
                    counter=f"{summary}, {len(twice)} times",
                    between=(channel, channel),
                    evidence=tuple(one.id for one in twice),
                )


def _summaries(part: Part, sense: str, content: Mapping[str, Any]) -> list[str]:
    """The facts of a look: as its result says them, else a fact for each of its plain fields."""
    said = getattr(part.output.read(content, strict=False), "summaries", None)
    if callable(said):
        return [str(one) for one in cast("Sequence[str]", said())]
    if sense != "state":
        return []
    found = [
        state_fact(f"{part.name}.{name}", value)
        for name, value in content.items()
        if name not in part.sensitive and (value is None or isinstance(value, str | int | float))
    ]
    return [one for one in found if summary_fault("state", one) is None]


def _spot(kind: Any, channel: str | None, detail: str) -> BlindSpot:
    return BlindSpot.read(
        {"kind": kind, "detail": detail, "impeaching": False} | ({"channel": channel} if channel else {})
    )


def _said(error: BaseException) -> str:
    """What went wrong; of what a server wrote wrongly, only what kind of fault that is."""
    if isinstance(error, HotplugError | EvidenceError):
        return str(error)
    return f"its answer is in no form that it may have ({type(error).__name__})"


def _ms(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return now_ms()
