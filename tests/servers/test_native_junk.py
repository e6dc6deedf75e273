"""Bad input: junk in any field of any operation is refused with a right code, and the calendar stays as it was."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotplug.catalog import Calendar
from hotplug.connect import link_of
from hotplug.errors import ConnectionFailed

from .native import KINDS, content, opened

pytestmark = pytest.mark.anyio

EXAMPLES = int(os.environ.get("HOTPLUG_EXAMPLES", "50"))
"""Calls of each part; any other number than the default's is drawn anew each time."""
RIGHT = {"invalid_argument", "not_found", "unsupported", "conflict"}
"""What a refusal of bad arguments may be called; never `internal`."""

EVENT: dict[str, Any] = {
    "title": "Planning",
    "start": "2026-06-11T17:00:00",
    "duration": "PT1H",
    "timeZone": "Asia/Jerusalem",
}
CHANGES: dict[str, Any] = {
    "title": "T",
    "start": "2026-06-12T10:00:00",
    "end": "2026-06-12T11:00:00",
    "timeZone": "Europe/Berlin",
    "description": "d",
    "location": "l",
    "status": "confirmed",
    "freeBusyStatus": "busy",
}
PARTS = [
    "calendar.calendars",
    "calendar.search",
    "calendar.get",
    "calendar.create",
    "calendar.update",
    "calendar.delete",
    "calendar.rsvp",
    "calendar.deleted",
]
ME = "me@example.org"

words = st.sampled_from(
    [
        *(
            "",
            " ",
            "x",
            "null",
            "[]",
            "{}",
            "[",
            "2026",
            "2026-13-01",
            "2026-06-11",
            "2026-06-11T25:00:00",
            "PT",
            "P-1D",
        ),
        *("2026-06-11T17:00:00Z", "2026-06-11T17:00:00+25:00", "9999-12-31T23:59:59", "0000-01-01T00:00:00", "PT1H"),
        *("Mars/Olympus", "floating", "Europe/Berlin", "../../etc/passwd", "P99999999999D", "this", "all", "9" * 5000),
        *(
            "a\x00b",
            "\u202e",
            "\u00e9",
            "\U0001f44b\U0001f3fd",
            "x" * 20_000,
            "following",
            "none",
            "-PT15M",
            "revision",
        ),
    ]
)
texts = words | st.text(max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.just(10**400) | texts
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
RULE: dict[str, Any] = {"frequency": "weekly", "count": 3}
RULE_FIELDS = [
    *("frequency", "interval", "firstDayOfWeek", "byDay", "byMonthDay", "byMonth", "byYearDay", "byWeekNo"),
    *("byHour", "byMinute", "bySecond", "bySetPosition", "count", "until"),
]


def one_field(valid: dict[str, Any], fields: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """A list with an entry that is right but for one field."""
    values = junk | st.lists(st.integers(-400, 400), max_size=2)
    return st.tuples(st.sampled_from(fields), values).map(lambda pair: [{**valid, pair[0]: pair[1]}])


near = {
    "recurrenceRules": one_field(RULE, RULE_FIELDS),
    "recurrenceOverrides": st.dictionaries(
        texts | st.sampled_from([EVENT["start"], CHANGES["start"]]),
        st.dictionaries(texts | st.sampled_from([*RULE_FIELDS, *CHANGES, "participants", "alerts", "excluded"]), junk),
    ),
    "participants": one_field({"email": "a@example.com"}, ["email", "name", "optional", "participationStatus"]),
    "addParticipants": one_field({"email": "a@example.com"}, ["email", "name", "optional", "participationStatus"]),
    "alerts": one_field({"offset": "-PT15M"}, ["id", "offset", "action"]),
    "addAlerts": one_field({"offset": "-PT15M"}, ["id", "offset", "action"]),
}
"""Junk deeper inside, for the fields that are structures."""
names = st.text(st.characters(codec="ascii", categories=["Ll", "Lu"]), min_size=1, max_size=8)


def base(part: str, where: str, event: str) -> dict[str, Any]:
    match part:
        case "calendar.create":
            return {"calendar": where, **EVENT}
        case "calendar.update":
            return {"event": event, "changes": dict(CHANGES)}
        case "calendar.search":
            return {"from": "2026-06-01T00:00:00Z", "to": "2026-07-01T00:00:00Z", "calendar": where, "limit": 5}
        case "calendar.get" | "calendar.delete":
            return {"event": event}
        case "calendar.rsvp":
            return {"event": event, "participation": "accepted", "notify": "none"}
        case _:
            return {}


@pytest.fixture(params=KINDS)
async def calendar(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncGenerator[tuple[str, Path, Calendar, str, str]]:
    async with opened(request.param, tmp_path, ME) as found:
        where = (await found.calendars()).calendars[0].calendar
        yield request.param, tmp_path, found, where, await kept(found, where)


@pytest.mark.parametrize("part", PARTS)
async def test_junk_in_any_field_changes_nothing_and_is_never_internal(
    part: str, calendar: tuple[str, Path, Calendar, str, str]
) -> None:
    kind, folder, client, where, event = calendar
    if part == "calendar.rsvp":
        event = await kept(client, where, participants=[{"email": "a@example.org"}, {"email": ME}], notify="none")
    link = link_of(client)
    fields = sorted(link.spoken.known[part].input.schema["properties"])
    inner = sorted(link.spoken.known["calendar.update"].input.schema["$defs"]["Changes"]["properties"])
    paths = [*fields, *(f"changes.{name}" for name in inner if part == "calendar.update")]
    calls: list[dict[str, Any]] = []

    def with_value(path: str) -> st.SearchStrategy[tuple[str, Any]]:
        return st.tuples(st.just(path), junk | near.get(path.rpartition(".")[2], junk))

    one = names.flatmap(with_value) | (st.sampled_from(paths).flatmap(with_value) if paths else st.nothing())
    changed = st.lists(one, min_size=1, max_size=2)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=EXAMPLES == 50,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(changed)
    def collect(changes: list[tuple[str, Any]]) -> None:
        arguments = base(part, where, event)
        for path, value in changes:
            head, _, rest = path.partition(".")
            if rest and isinstance(arguments.get(head), dict):
                arguments[head] = {**arguments[head], rest: value}
            else:
                arguments[head] = value
        calls.append(arguments)

    collect()
    known = link.spoken.known[part]
    first = event
    with anyio.fail_after(100):
        for given_ in calls:
            arguments = {**given_, "event": event} if given_.get("event") == first else given_
            before = content(kind, folder)
            reply = await link.channel.call(part, arguments, meta={})
            shown = (part, repr(arguments)[:600], reply.content)
            if reply.is_error:
                assert (reply.content or {})["code"] in RIGHT, shown
                assert content(kind, folder) == before, shown
                continue
            # It was all right after all: then the answer is what the profile says, and what is kept can be read.
            assert known.output.read(reply.content) is not None
            await client.search("0001-01-02T00:00:00Z", "9999-12-30T00:00:00Z")
            await client.search("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z", expand=True)
            if not known.flags.effects:
                assert content(kind, folder) == before, shown
            if part == "calendar.delete":
                event = await kept(client, where)


async def kept(client: Calendar, where: Any, **more: Any) -> str:
    made = await client.create(
        calendar=where, title="Kept", start="2026-06-11T17:00:00", duration="PT1H", time_zone="Asia/Jerusalem", **more
    )
    return made.event


@pytest.mark.parametrize(
    ("part", "arguments"),
    [
        ("calendar.get", {"event": "forged.ref"}),
        ("calendar.create", {"calendar": "forged.ref", **EVENT}),
        ("calendar.search", {"from": "2026-06-01", "to": "2026-07-01"}),
        ("calendar.search", {"from": "2026-07-01T00:00:00Z", "to": "2026-06-01T00:00:00Z"}),
        ("calendar.search", {"from": "2026-06-01T00:00:00Z", "to": "2026-07-01T00:00:00Z", "limit": 0}),
        ("calendar.search", {"from": "2026-06-01T00:00:00Z", "to": "2026-07-01T00:00:00Z", "cursor": "W10="}),
        ("calendar.deleted", {"cursor": "9" * 30}),
        ("calendar.deleted", {"cursor": "9" * 5000}),
        ("calendar.deleted", {"cursor": "-1"}),
        ("calendar.deleted", {"cursor": "٣"}),
        ("calendar.deleted", {"limit": 0}),
        ("calendar.deleted", {"limit": 10**30}),
    ],
)
async def test_what_looks_right_and_is_not_is_refused(
    part: str, arguments: dict[str, Any], calendar: tuple[str, Path, Calendar, str, str]
) -> None:
    kind, folder, client, _, _ = calendar
    before = content(kind, folder)
    with pytest.raises(ConnectionFailed) as caught:
        await link_of(client).call_wire(link_of(client).spoken.known[part], arguments)
    assert caught.value.code in RIGHT
    assert content(kind, folder) == before
