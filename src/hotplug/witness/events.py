"""The events of another connection as a witness."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from hotplug.catalog.connection import Connection
from hotplug.connect import link_of
from hotplug.errors import ConfigError, HotplugError
from hotplug.evidence.channels import CHANNEL_TABLE, ChannelDescriptor
from hotplug.evidence.coverage import BlindSpot
from hotplug.evidence.vocabulary import ProvenanceClass
from hotplug.evidence.window import Window
from hotplug.profile import Part, Profile
from hotplug.profile.summaries import summary_fault
from hotplug.witness.watching import CannotLook, Session, Watching, redact, spot

__all__ = ["OtherEvents"]

_PAGE: Final = 200
_MOST_PAGES: Final = 100
"""Pages that one look reads: a server that never stops telling doesn't hold it up."""


class OtherEvents(Watching):
    """What another connection is told: its events, each in its sense, `calendar.event REF created`.

    Refs are those of the other connection; they mean nothing to the one that acts. Look for what the value holds.

    An event is what a server says of itself. So its senses are declared actuation-derived, unless you say that this
    server doesn't depend on the one that acts (`independent=True`), as another account's mailbox. Events that the
    server had dropped before they were read are a blind spot, and what it lists as out of its own sight is, too.

    Args:
        connection: A connection to a server with `connection@1`, open for as long as the witness is used.
        types: The events by their wire names; by default all that it offers.
        independent: Whether the action's own code path doesn't decide what is told there.
        timeout: Seconds that one look may take.

    Raises:
        ConfigError: The connection has no events, or not one of these.
    """

    def __init__(
        self,
        connection: Profile,
        types: Collection[str] = (),
        *,
        independent: bool = False,
        timeout: float = 20.0,
        name: str = "other-events",
    ) -> None:
        self._link = link_of(connection)
        super().__init__(name, str(self._link.channel.target), timeout=timeout)
        if any(self._link.spoken.way(f"connection.{part}") is None for part in ("events", "window.open")):
            raise ConfigError(f"{self.locator} tells no events", hint="look at what its reads show: OtherConnection")
        known = {name: part for name, part in self._link.spoken.known.items() if part.kind == "event"}
        unknown = sorted(set(types) - known.keys())
        if unknown or not known:
            raise ConfigError(f"{self.locator} has no event {', '.join(unknown)}", hint=f"it has {', '.join(known)}")
        self._types = sorted(types or known)
        self._independent = independent
        self._channels = tuple(
            self._descriptor(sense) for sense in sorted({_sense(known[name]) for name in self._types})
        )

    @property
    def describe(self) -> str:
        """How it looks, for a report."""
        return f"the events of another connection, to {self.locator}"

    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """The senses of its events."""
        return self._channels

    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        """The other server; what it told."""
        del channel
        return self.locator, f"events that it told: {', '.join(self._types)}", "observed"

    def _descriptor(self, sense: str) -> ChannelDescriptor:
        """A sense as the server declares it, never above the table, and not independent by itself."""
        declared = self._link.spoken.declaration.senses.get(sense)
        row = CHANNEL_TABLE.get(sense)
        grade: Any = row.grade if row is not None else declared.grade if declared is not None else "context"
        if row is not None and declared is not None and declared.grade == "context":
            grade = "context"
        return ChannelDescriptor(
            id=sense, independence="independent" if self._independent else "actuation-derived", grade=grade
        )

    async def _begin(self, session: Session) -> None:
        made = await self._call("connection.window.open", {"budgetMs": session.window.budget_ms})
        session.state = _State(str(made["window"]), str(made["cursor"]))

    async def _look(self, session: Session) -> Sequence[BlindSpot]:
        state: _State | None = session.state
        if state is None:
            return ()
        for _ in range(_MOST_PAGES):
            request = {"types": self._types, "cursor": state.cursor, "limit": _PAGE}
            page = await self._call("connection.events", request)
            if page.get("missed"):
                said = f"{self.locator} had dropped events before they were read"
                session.lasting += [spot("buffer-truncated", one.id, said) for one in self._channels]
            fresh = [one for one in cast("list[dict[str, Any]]", page["events"]) if state.is_new(one)]
            for record in fresh:
                self._take(session, record)
            state.cursor = str(page["cursor"])
            if not fresh:
                return ()
        said = f"{self.locator} tells more than a look reads"
        return [spot("buffer-truncated", one.id, said, "look for fewer kinds with types=") for one in self._channels]

    def _take(self, session: Session, record: Mapping[str, Any]) -> None:
        sense, summary = str(record["sense"]), str(record["summary"])
        if not self.observes(sense) or summary_fault(sense, summary) is not None:
            said = f"{self.locator} told a {record['type']} that is in no form of {sense}"
            session.lasting += [spot("channel-unobserved", one.id, said) for one in self._channels]
            return
        value, _ = redact(record.get("payload"))
        session.seen.append(session.observation(sense, summary, value))

    async def close_window(self, window: Window) -> Window:
        """Look for the last time, close, and take over what the server says that it couldn't see."""
        session = self._session(window)
        was_open = session.window.closed_at is None
        closed = await super().close_window(window)
        if was_open and session.state is not None:
            try:
                ended = await self._call("connection.window.close", {"window": session.state.window})
            except CannotLook as error:
                session.spots = (*session.spots, *self._failed(session, error, "at the close"))
            else:
                session.lasting += _theirs(ended.get("coverage"))
        return closed

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await self._link.call_wire(Connection.definition.parts[name], arguments)
        except HotplugError as error:
            raise CannotLook(f"{name} failed: {error}") from None


@dataclass(slots=True)
class _State:
    """A window at the other server, and how far its events were read."""

    window: str
    cursor: str
    told: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])

    def is_new(self, record: Mapping[str, Any]) -> bool:
        """Whether it is told for the first time: a server may tell again what it isn't sure was heard."""
        names: set[tuple[str, ...]] = {("id", str(record.get("id")))}
        if record.get("happening"):
            names.add(("happening", str(record.get("instance")), str(record["happening"])))
        new = self.told.isdisjoint(names)
        self.told |= names
        return new


def _sense(part: Part) -> str:
    return part.flags.sense or "state"


def _theirs(coverage: Any) -> list[BlindSpot]:
    """The gaps that a server lists, its senses as channels."""
    listed = cast("Mapping[str, Any]", coverage or {}).get("blindSpots") or ()
    return [
        BlindSpot.read({"impeaching": False, **{"channel" if name == "sense" else name: v for name, v in one.items()}})
        for one in cast("Sequence[Mapping[str, Any]]", listed)
    ]
