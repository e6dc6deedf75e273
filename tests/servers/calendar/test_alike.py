"""Whatever is done, both storages tell the same afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from hotplug.errors import HotplugError, Unsupported
from hotplug.servers.calendar import CalendarEngine, CalendarEntry, FolderStorage, SqliteStorage, Storage

YEAR = ("2026-09-01T00:00:00Z", "2027-06-01T00:00:00Z")

hours = st.sampled_from(["00:00:00", "02:30:00", "03:00:00", "09:00:00", "23:59:59"])
days = st.sampled_from(
    ["2026-10-19", "2026-10-24", "2026-10-25", "2026-10-26", "2027-03-27", "2027-03-28", "2027-03-29"]
)
lengths = st.sampled_from(["PT0S", "PT1H", "P1D", "PT24H", "P1DT2H", "P1W", "PT90M"])
zones = st.sampled_from(["Europe/Berlin", "America/New_York", "Etc/UTC", "Pacific/Apia"])


@st.composite
def times(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["zoned", "zoned", "instant", "floating", "all-day"]))
    day, hour = draw(days), draw(hours)
    if kind == "all-day":
        return {"start": day, "duration": draw(st.sampled_from(["P1D", "P2D", "P1W"])), "showWithoutTime": True}
    fields = {"start": f"{day}T{hour}", "duration": draw(lengths)}
    if kind == "instant":
        return {**fields, "start": fields["start"] + "Z"}
    return {**fields, "timeZone": "floating" if kind == "floating" else draw(zones)}


rules = st.sampled_from(
    [
        {"frequency": "daily", "count": 9},
        {"frequency": "daily"},
        {"frequency": "daily", "interval": 2, "count": 5},
        {"frequency": "weekly"},
        {"frequency": "weekly", "byDay": [{"day": "mo"}]},
        {"frequency": "weekly", "byDay": [{"day": "sa"}, {"day": "su"}, {"day": "mo"}], "count": 12},
        {"frequency": "monthly", "byDay": [{"day": "su", "nthOfPeriod": -1}], "count": 3},
    ]
)
texts = st.sampled_from(["", "a", "C:\\New, b;c", "two\nlines ", "👋🏽"])
fields = st.fixed_dictionaries(
    {},
    optional={
        "title": texts,
        "location": texts,
        "description": texts,
        "status": st.sampled_from(["tentative", "cancelled"]),
        "freeBusyStatus": st.sampled_from(["free", "busy"]),
        "alerts": st.dictionaries(
            st.sampled_from(["1", "2", "x"]),
            st.sampled_from(["-PT15M", "P1D"]).map(lambda each: {"trigger": {"offset": each}}),
            max_size=2,
        ),
    },
)


@st.composite
def changes(draw: st.DrawFn) -> dict[str, Any]:
    change = dict(draw(fields))
    what = draw(st.sampled_from(["none", "none", "start", "length", "zone", "all", "rules"]))
    if what == "start":
        change["start"] = f"{draw(days)}T{draw(hours)}"
    elif what == "length":
        change["duration"] = draw(lengths)
    elif what == "zone":
        change["timeZone"] = draw(zones)
    elif what == "all":
        change |= draw(times())
    elif what == "rules":
        change["recurrenceRules"] = [draw(rules)]
    return change


steps = st.lists(
    st.tuples(
        st.sampled_from(["update", "update", "update", "delete", "create"]),
        st.sampled_from(["this", "this", "following", "all"]),
        st.integers(0, 30),
        changes(),
        st.lists(st.sampled_from(["location", "description", "status", "alerts"]), max_size=1),
    ),
    max_size=6,
)


async def act(engine: CalendarEngine, step: Any) -> Any:
    kind, scope, number, change, clear = step
    if kind == "create":
        return (await engine.create({"calendar": "calendar", "title": "x", **change})).kind
    found, _ = await engine.search(*YEAR, expand=True, limit=100)
    if not found:
        return None
    each = found[number % len(found)]
    where = {"scope": scope, "occurrence": each.get("occurrence")} if each["recurring"] else {}
    clear = [name for name in clear if name not in change]
    if kind == "delete":
        return (await engine.delete(each["event"], **where)).kind
    return (await engine.update(each["event"], change, clear, **where)).kind


async def told(engine: CalendarEngine) -> list[Any]:
    whole: list[Any] = []
    for expand in (False, True):
        found, _ = await engine.search(*YEAR, expand=expand, limit=200)
        whole += [{name: value for name, value in each.items() if name != "revision"} for each in found]
    return whole


def open_engine(storage: Storage) -> CalendarEngine:
    numbers = count()
    return CalendarEngine(storage, clock=lambda: datetime(2026, 6, 1, tzinfo=UTC), new_uid=lambda: f"e{next(numbers)}")


async def outcome(doing: Callable[[], Any]) -> Any:
    try:
        return await doing()
    except HotplugError as error:
        return type(error).__name__, str(error)


@settings(max_examples=40, deadline=None)
@given(time=times(), more=fields, rule=st.none() | rules, doings=steps)
def test_both_storages_tell_the_same(time: Any, more: Any, rule: Any, doings: Any) -> None:
    async def compare(place: Path) -> None:
        storages: list[Storage] = [
            SqliteStorage(":memory:", [CalendarEntry("calendar", "calendar")]),
            FolderStorage(place),
        ]
        engines = [open_engine(storage) for storage in storages]
        first = {"calendar": "calendar", "title": "x", **time, **more}
        if rule:
            first["recurrenceRules"] = [rule]
        made = [await outcome(lambda engine=engine: engine.create(first)) for engine in engines]
        if isinstance(made[1], tuple) and made[1][0] == Unsupported.__name__:
            return
        assert str(made[0]).partition("revision")[0] == str(made[1]).partition("revision")[0]
        for step in doings:
            results = [await outcome(lambda engine=engine, step=step: act(engine, step)) for engine in engines]
            if isinstance(results[1], tuple) and results[1][0] == Unsupported.__name__:
                break  # a folder can't keep the second of two equal times
            assert results[0] == results[1], step
            assert await told(engines[0]) == await told(engines[1]), step
            assert await engines[1].problems() == []
        for engine in engines:
            await engine.close()

    with tempfile.TemporaryDirectory() as place:
        anyio.run(compare, Path(place) / "events")
