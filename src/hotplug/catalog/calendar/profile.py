"""The calendar profile, version 1."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, Required

from pydantic import Field
from typing_extensions import TypedDict, Unpack

from hotplug.profile import (
    Determinism,
    Event,
    Extension,
    Facet,
    Model,
    Patch,
    Profile,
    Receipt,
    Ref,
    event,
    in_facet,
    operation,
    read,
    receipt,
)

__all__ = [
    "Alert",
    "Calendar",
    "CalendarChange",
    "CalendarEvent",
    "CalendarInfo",
    "CalendarRef",
    "Calendars",
    "Changes",
    "Deleted",
    "DeletedEvent",
    "DeletedEvents",
    "EventRef",
    "Found",
    "GoogleMeet",
    "MeetCreated",
    "NDay",
    "NewEvent",
    "Participant",
    "RecurrenceRule",
    "Written",
]

Status = Literal["confirmed", "tentative", "cancelled"]
FreeBusy = Literal["free", "busy"]
Scope = Literal["this", "following", "all"]
Notify = Literal["none", "all"]
Participation = Literal["needs-action", "accepted", "declined", "tentative", "delegated"]
Answer = Literal["accepted", "declined", "tentative"]


class CalendarRef(Ref, kind="calendar.calendar"):
    """A calendar of the server."""


class EventRef(Ref, kind="calendar.event"):
    """An event, or a whole series; it lasts until the event is deleted."""


class NDay(Model):
    """A weekday in a rule (RFC 8984, 4.3.3): every one of them, or the nth of the period."""

    day: Literal["mo", "tu", "we", "th", "fr", "sa", "su"]
    nth_of_period: int | None = None


class RecurrenceRule(Model):
    """How an event repeats (RFC 8984, 4.3.3)."""

    frequency: Literal["yearly", "monthly", "weekly", "daily", "hourly", "minutely", "secondly"]
    interval: Annotated[int, Field(ge=1)] | None = None
    first_day_of_week: Literal["mo", "tu", "we", "th", "fr", "sa", "su"] | None = None
    by_day: list[NDay] | None = None
    by_month_day: list[int] | None = None
    by_month: list[str] | None = None
    by_year_day: list[int] | None = None
    by_week_no: list[int] | None = None
    by_hour: list[int] | None = None
    by_minute: list[int] | None = None
    by_second: list[int] | None = None
    by_set_position: list[int] | None = None
    count: Annotated[int, Field(ge=1)] | None = None
    until: str | None = None
    """The last start that may occur, in the form of the event's start: local time, or a date."""


class Participant(Model):
    """Someone invited (RFC 8984, 4.4.6)."""

    email: str
    name: str | None = None
    optional: bool | None = None
    participation_status: Participation | None = None


class Alert(Model):
    """A reminder before or after the start (RFC 8984, 4.5.2)."""

    id: str | None = None
    offset: str
    """ISO 8601 duration from the start, `-PT15M` for a quarter of an hour before."""
    action: Literal["display", "email"] = "display"


Override = Patch
"""What differs in one occurrence: `{"excluded": true}`, or properties of the event with their new values."""


class CalendarInfo(Model):
    """A calendar that the connection can see."""

    calendar: CalendarRef
    name: str
    zone: str | None = None
    """The zone that the calendar itself names, if any; it is never applied by itself."""
    writable: bool


class Calendars(Model):
    calendars: list[CalendarInfo]


class CalendarEvent(Model):
    """An event; property names are those of JSCalendar (RFC 8984).

    Four kinds of time: an instant (`start` with an offset, no `timeZone`), zoned wall time (`start` local and an IANA
    `timeZone`), floating (`timeZone` is `"floating"`), all-day (`showWithoutTime`, dates, the end exclusive).
    """

    event: EventRef
    calendar: CalendarRef
    title: str
    description: str | None = None
    location: str | None = None
    start: str
    end: str | None = None
    """In the form of the start; exclusive for all-day events."""
    duration: str | None = None
    time_zone: str | None = None
    show_without_time: bool | None = None
    utc_start: str | None = None
    utc_end: str | None = None
    status: Status | None = None
    free_busy_status: FreeBusy | None = None
    recurring: bool | None = None
    """The event is the first of a series; without the facet recurrence it can't be edited."""
    unknown: list[str] | None = None
    """Properties that the server can't know of this event: never a guess."""
    recurrence_rules: Annotated[list[RecurrenceRule] | None, in_facet("recurrence")] = None
    recurrence_overrides: Annotated[dict[str, Override] | None, in_facet("recurrence")] = None
    occurrence: Annotated[str | None, in_facet("recurrence")] = None
    """Which occurrence of the series this is: its original start."""
    participants: Annotated[list[Participant] | None, in_facet("invitations")] = None
    alerts: Annotated[list[Alert] | None, in_facet("reminders")] = None
    revision: Annotated[str | None, in_facet("revisions")] = None


class Found(Model):
    events: list[CalendarEvent]
    cursor: str | None = None
    """Present when there is more: give it to the next search with the same arguments."""


class Written(Model):
    event: EventRef
    revision: Annotated[str | None, in_facet("revisions")] = None
    scope: Annotated[Scope | None, in_facet("recurrence")] = None
    """The scope that was applied to a series."""
    receipt: Receipt = receipt()


class Deleted(Model):
    scope: Annotated[Scope | None, in_facet("recurrence")] = None
    receipt: Receipt = receipt()


class DeletedEvent(Model):
    event: EventRef
    calendar: CalendarRef
    at: str
    """When: RFC 3339 in UTC."""


class DeletedEvents(Model):
    deleted: list[DeletedEvent]
    cursor: str


Start = Annotated[
    str,
    Field(
        description="With an offset (`2026-10-26T09:00:00+01:00`, an instant), local with timeZone, or a date with "
        "showWithoutTime."
    ),
]


class _Times(TypedDict, total=False):
    end: Annotated[str, Field(description="In the form of start; exclusive for dates. Give end or duration, not both.")]
    duration: Annotated[str, Field(description="ISO 8601: `PT1H`, `P1D`. Give end or duration, not both.")]
    time_zone: Annotated[
        str,
        Field(description='An IANA zone name, or "floating" for a time of no zone. Left out: start needs an offset.'),
    ]
    show_without_time: Annotated[bool, Field(description="All-day: start and end are dates.")]


class _Text(TypedDict, total=False):
    description: str
    location: str
    status: Status
    free_busy_status: FreeBusy


class _Series(TypedDict, total=False):
    recurrence_rules: Annotated[list[RecurrenceRule], in_facet("recurrence")]
    recurrence_overrides: Annotated[dict[str, Override], in_facet("recurrence")]


class NewEvent(_Times, _Text, _Series, total=False):
    """The fields of an event to create."""

    calendar: Required[CalendarRef]
    title: Required[str]
    start: Required[Start]
    accept: Annotated[
        list[str],
        Field(description="Losses that the caller accepts by name, as `details.lost` of a refusal gave them."),
    ]
    participants: Annotated[list[Participant], in_facet("invitations")]
    notify: Annotated[
        Notify, in_facet("invitations"), Field(description="Whether invitations are sent; required with participants.")
    ]
    alerts: Annotated[list[Alert], in_facet("reminders")]


class Changes(_Times, _Text, _Series, total=False):
    """The fields of an event that change; a field left out stays as it is."""

    title: str
    start: Start


class UpdateOptions(TypedDict):
    """What an update takes besides the changes."""

    clear: NotRequired[Annotated[list[str], Field(description="Names of fields to empty: description, location, …")]]
    accept: NotRequired[list[str]]
    revision: NotRequired[Annotated[str, in_facet("revisions")]]
    scope: NotRequired[
        Annotated[Scope, in_facet("recurrence"), Field(description="Required for an event of a series.")]
    ]
    occurrence: NotRequired[
        Annotated[str, in_facet("recurrence"), Field(description="The original start of the occurrence meant.")]
    ]
    notify: NotRequired[Annotated[Notify, in_facet("invitations")]]
    add_participants: NotRequired[Annotated[list[Participant], in_facet("invitations")]]
    remove_participants: NotRequired[Annotated[list[str], in_facet("invitations"), Field(description="Their emails.")]]
    replace_participants: NotRequired[Annotated[list[Participant], in_facet("invitations")]]
    add_alerts: NotRequired[Annotated[list[Alert], in_facet("reminders")]]
    remove_alerts: NotRequired[Annotated[list[str], in_facet("reminders"), Field(description="Their ids.")]]
    replace_alerts: NotRequired[Annotated[list[Alert], in_facet("reminders")]]


class DeleteOptions(TypedDict):
    """What a deletion takes besides the event."""

    accept: NotRequired[list[str]]
    revision: NotRequired[Annotated[str, in_facet("revisions")]]
    scope: NotRequired[Annotated[Scope, in_facet("recurrence")]]
    occurrence: NotRequired[Annotated[str, in_facet("recurrence")]]
    notify: NotRequired[Annotated[Notify, in_facet("invitations")]]


class AnswerOptions(TypedDict):
    """What an answer takes besides the event and the answer."""

    revision: NotRequired[Annotated[str, in_facet("revisions")]]
    scope: NotRequired[
        Annotated[Scope, in_facet("recurrence"), Field(description="Required for an event of a series.")]
    ]
    occurrence: NotRequired[
        Annotated[str, in_facet("recurrence"), Field(description="The original start of the occurrence meant.")]
    ]


class SearchOptions(TypedDict, total=False):
    """What narrows a search."""

    time_zone: Annotated[str, Field(description="The zone in which `from` and `to` are dates.")]
    calendar: CalendarRef
    query: Annotated[str, Field(description="Text in title, description or location, without regard to case.")]
    limit: Annotated[int, Field(ge=1, le=1000)]
    cursor: str
    expand: Annotated[
        bool, in_facet("recurrence"), Field(description="Give each occurrence of a series instead of the series.")
    ]


class Calendar(
    Profile,
    name="calendar",
    version="1.0.0",
    facets={
        "revisions": Facet(
            "1.0.0",
            "Events carry a revision, and an edit based on one that has moved is refused with `conflict`.",
            "When two people edit at once, the last one wins and nobody is told.",
        ),
        "recurrence": Facet(
            "1.0.0",
            "Series: rules, exceptions, single occurrences; edits name their scope: this, following or all.",
            "A series shows as its first event and can't be edited.",
        ),
        "invitations": Facet(
            "1.0.0",
            "Participants; whether they are notified is said with every act that could do it.",
            "Nobody can be invited, and who is invited isn't shown.",
        ),
        "rsvp": Facet("1.0.0", "Answering an invitation.", "An invitation has to be answered elsewhere."),
        "reminders": Facet("1.0.0", "Alerts before or after the start.", "No reminder can be set or seen."),
        "tombstones": Facet(
            "1.0.0",
            "What was deleted since a cursor.",
            "A deletion shows only as an event that isn't found any more.",
        ),
    },
    determinism=Determinism(
        reset="none", replay_prefix="unsafe", time="wall", observation="exact", actions="irreversible"
    ),
):
    """Calendars: records you own. Durable identifiers, bounded effects, loud failures; time is the whole subject.

    The core is six verbs. A calendar without any of them is not one: it has to name its calendars, find events in a
    range, show one, take a new one, change one and remove one. Nothing is converted, guessed or defaulted in silence:
    a local start that says neither zone nor floating is refused, so is a wall time that doesn't exist;
    what a server can't keep exactly it refuses with `unsupported` and `details.lost`, unless `accept` names that loss.
    Null reads as left out. Property names are those of JSCalendar (RFC 8984).
    """

    @read("calendar.calendars", sense="state", eager=True)
    async def calendars(self) -> Calendars:
        """List the calendars that can be seen."""
        ...

    @read("calendar.search", sense="state", eager=True)
    async def search(self, from_: str, to: str, **range_: Unpack[SearchOptions]) -> Found:
        """Find the events that overlap [from, to): instants with an offset, or dates with a timeZone.

        A series with an occurrence in the range appears once; its occurrences only with `expand`.
        """
        ...

    @read("calendar.get", sense="state", eager=True)
    async def get(self, event: EventRef) -> CalendarEvent:
        """Show one event with everything that is known of it."""
        ...

    @operation("calendar.create", eager=True, effects=True, once=True)
    async def create(self, **event: Unpack[NewEvent]) -> Written:
        """Put a new event into a calendar: `calendar`, `title`, `start`, and one of `end` and `duration`."""
        ...

    @operation("calendar.update", eager=True, effects=True, once=True)
    async def update(self, event: EventRef, changes: Changes, **options: Unpack[UpdateOptions]) -> Written:
        """Change an event: fields left out stay, `clear` empties by name."""
        ...

    @operation("calendar.delete", effects=True, once=True)
    async def delete(self, event: EventRef, **options: Unpack[DeleteOptions]) -> Deleted:
        """Remove an event. Removing it again is `not_found`."""
        ...

    @operation("calendar.rsvp", facet="rsvp", effects=True, once=True)
    async def rsvp(
        self, event: EventRef, participation: Answer, notify: Notify, **options: Unpack[AnswerOptions]
    ) -> Written:
        """Answer an invitation, and say whether the organizer is told: it sets one's own participationStatus."""
        ...

    @read("calendar.deleted", sense="state", facet="tombstones")
    async def deleted(self, cursor: str | None = None, limit: int | None = None) -> DeletedEvents:
        """List what was deleted since a cursor; without one, all that is remembered."""
        ...

    @event(
        "calendar.event.changed",
        sense="state",
        replay="durable",
        required=False,
        without="Changes made by others show only when one looks.",
    )
    class EventChanged(Event):
        """An event was created, updated or deleted."""

        event: EventRef
        calendar: CalendarRef
        change: Literal["created", "updated", "deleted"]
        revision: str | None = None

        class Filter(Event.Filter):
            calendar: CalendarRef | None = None

        def summary(self) -> str:
            """The summary of the sense state: kind, ref, change word."""
            return f"calendar.event {self.event} {self.change}"


CalendarChange = Calendar.EventChanged


class MeetCreated(Model):
    url: str
    receipt: Receipt = receipt()


class GoogleMeet(Extension, id="com.google.calendar", version="1.0.0", requires={"calendar": "^1"}):
    """Google Calendar's own additions, shown as the example of a vendor member."""

    @operation("com.google.calendar.meet.create", effects=True, once=True)
    async def meet(self, event: EventRef) -> MeetCreated:
        """Attach a Google Meet conference to an event."""
        ...
