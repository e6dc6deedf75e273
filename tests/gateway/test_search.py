"""Finding tools: the right one first, the same answer every time, and arguments checked."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec import Raw

from hotplug.errors import InvalidArgument
from hotplug.gateway.message import Object, dumps, loads
from hotplug.gateway.search import (
    CALL,
    LONGEST_ANSWER,
    LONGEST_QUERY,
    MOST_FOUND,
    SEARCH,
    Index,
    Searchable,
    call_arguments,
    call_tool,
    search_arguments,
    search_result,
    search_tool,
    words_of,
)

TOOL_LISTS = sorted((Path(__file__).parents[1] / "projection" / "tool_lists").glob("*.json"))


def raw(value: dict[str, Any]) -> Object:
    return {key: Raw(json.dumps(one).encode()) for key, one in value.items()}


def tool(name: str, description: str = "", server: str = "s", **properties: Any) -> Searchable:
    schema = {"type": "object", "properties": properties}
    return Searchable(name, server, raw({"name": name, "description": description, "inputSchema": schema}))


def published() -> list[Searchable]:
    found: list[Searchable] = []
    for file in TOOL_LISTS:
        server = file.stem.partition("@")[0].partition("-")[2]
        tools = json.loads(file.read_text(encoding="utf-8"))["tools"]
        found += [Searchable(f"{server}.{one['name']}", server, raw(one)) for one in tools]
    return found


def names(index: Index, query: str, limit: int = 10) -> list[str]:
    return [one.name for one in index.search(query, limit)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("calendar.create", ["calendar", "create"]),
        ("listCalendarEvents", ["list", "calendar", "event", "listcalendarevent"]),
        ("nc_calendar-list_events", ["nc", "calendar", "list", "event"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("Get the list of all repositories.", ["get", "list", "all", "repository"]),
        ("status class analysis", ["status", "class", "analysis"]),
        ("ms365", ["ms", "365", "ms365"]),
        ("Über uns", ["über", "uns"]),
        ("", []),
    ],
)
def test_words_are_split_as_names_are_written(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("create calendar event", "nextcloud-mcp-server.nc_calendar_create_event"),
        ("share a file with somebody", "nextcloud-mcp-server.nc_share_create"),
        ("delete a todo", "nextcloud-mcp-server.nc_calendar_delete_todo"),
        ("caldav-mcp list calendars", "caldav-mcp.list-calendars"),
        ("nc_notes_create_note", "nextcloud-mcp-server.nc_notes_create_note"),
        ("createNote", "nextcloud-mcp-server.nc_notes_create_note"),
    ],
)
def test_the_right_tool_of_real_servers_is_among_the_first(query: str, best: str) -> None:
    assert best in names(Index(published()), query, 5)


def test_the_order_of_tools_counts_for_nothing_and_ties_go_by_name() -> None:
    tools = published()
    straight = Index(tools)
    random.Random(3).shuffle(tools)
    shuffled = Index(tools)
    for query in ("list", "create event", "get note file board", "x"):
        assert straight.search(query, 50) == shuffled.search(query, 50)
    alike = Index([tool(name, "same words") for name in ("b_x", "a_x", "c_x")])
    assert names(alike, "same words") == ["a_x", "b_x", "c_x"]


def test_a_name_counts_more_than_a_mention() -> None:
    index = Index([tool("delete_file", "Gone for good."), tool("backup", "Keeps a copy before you delete a file.")])
    assert names(index, "delete file") == ["delete_file", "backup"]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    index = Index([*(tool(f"list_{number}", "list things") for number in range(20)), tool("webhook", "hooks")])
    assert names(index, "list webhook")[0] == "webhook"


def test_the_beginning_of_a_word_finds_it_after_the_word_itself() -> None:
    index = Index([tool("calendar"), tool("cal"), tool("recall")])
    assert names(index, "cal") == ["cal", "calendar"]
    assert names(index, "ca") == []


def test_an_exact_name_comes_first() -> None:
    index = Index([tool("the"), tool("get_it"), tool("get_it_all", "get it get it get it")])
    assert names(index, "get_it")[0] == "get_it"
    assert names(index, " the ") == ["the"]


def test_arguments_and_servers_are_found_too() -> None:
    index = Index([tool("a", thread_ts={"type": "string"}), tool("b", server="slack"), tool("c")])
    assert names(index, "thread") == ["a"]
    assert names(index, "slack") == ["b"]


def test_the_limit_holds_and_nothing_is_found_for_nothing() -> None:
    index = Index([tool(f"same_{number:03}") for number in range(100)])
    assert len(index.search("same", 3)) == 3
    assert len(index.search("same", 1000)) == MOST_FOUND
    assert index.search("") == ()
    assert index.search("the of") == ()
    assert Index([]).search("same") == ()
    assert len(index) == 100


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"description": 5, "inputSchema": []},
        {"description": None, "inputSchema": {"properties": []}},
        {"title": {}, "inputSchema": {"properties": None}},
    ],
)
def test_odd_definitions_are_found_by_their_names_and_fit_the_answer(odd: dict[str, Any]) -> None:
    found = Index([Searchable("odd_tool", "s", raw(odd))]).search("odd")
    result = search_result(found, 1)
    check_result(result)
    assert loads(result["structuredContent"])["tools"][0]["name"] == "odd_tool"


def check_result(result: Object) -> None:
    schema = loads(search_tool(SEARCH, CALL)["outputSchema"])
    structured = loads(result["structuredContent"])
    jsonschema.Draft202012Validator(schema).validate(structured)
    assert json.loads(loads(result["content"])[0]["text"]) == structured


def test_an_answer_holds_what_is_needed_to_call_as_it_came() -> None:
    odd = Raw(b'{"type": "object", "maximum": 123456789012345678901234567890, "x": 1.0}')
    found = Index(
        [Searchable("a.tool", "a", {"description": Raw(b'"\\ud83d\\ude00 \\/"'), "inputSchema": odd})]
    ).search("tool")
    result = search_result(found, 40)
    check_result(result)
    assert bytes(odd) in bytes(result["structuredContent"])
    assert b'"\\ud83d\\ude00 \\/"' in bytes(result["structuredContent"])
    assert loads(result["structuredContent"])["of"] == 40
    assert found[0].server == "a"
    assert found[0].score > 0


def test_an_answer_that_would_be_too_long_says_what_it_leaves_out() -> None:
    index = Index([tool(f"long_{number}", "x" * (LONGEST_ANSWER // 3)) for number in range(5)])
    result = search_result(index.search("long"), 5)
    check_result(result)
    structured = loads(result["structuredContent"])
    assert len(structured["tools"]) == 2
    assert structured["leftOut"] == 3
    only = search_result(Index([tool("long", "x" * LONGEST_ANSWER)]).search("long"), 1)
    assert len(loads(only["structuredContent"])["tools"]) == 1


def arguments(value: Any) -> Raw:
    return Raw(dumps(value))


def test_both_tools_are_definitions_that_hold_and_name_each_other() -> None:
    search, call = search_tool("hotplug_search", "hotplug_call"), call_tool("hotplug_call", "hotplug_search")
    for one, other in ((search, "hotplug_call"), (call, "hotplug_search")):
        schema = loads(one["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        assert other in loads(one["description"])
    assert loads(search["name"]) == "hotplug_search"
    assert loads(search["annotations"])["readOnlyHint"] is True
    assert loads(call["annotations"])["destructiveHint"] is True
    assert "outputSchema" not in call


SEARCHES: list[tuple[Any, bool]] = [
    ({"query": "a"}, True),
    ({"query": "a", "limit": 50}, True),
    ({"query": "a", "limit": 2.0}, True),
    ({"query": "x" * LONGEST_QUERY}, True),
    ({"query": "x" * (LONGEST_QUERY + 1)}, False),
    ({"query": ""}, False),
    ({"query": 5}, False),
    ({"query": "a", "limit": 0}, False),
    ({"query": "a", "limit": 51}, False),
    ({"query": "a", "limit": "5"}, False),
    ({"query": "a", "limit": True}, False),
    ({"query": "a", "limit": None}, False),
    ({"query": "a", "other": 1}, False),
    ({}, False),
    ([], False),
    (None, False),
]


@pytest.mark.parametrize(("given", "fits"), SEARCHES)
def test_arguments_of_a_search_are_checked_as_its_schema_says(given: Any, fits: bool) -> None:
    validator = jsonschema.Draft202012Validator(loads(search_tool(SEARCH, CALL)["inputSchema"]))
    assert validator.is_valid(given) == fits
    if fits:
        assert search_arguments(arguments(given)) == (given["query"], given.get("limit", 10))
    else:
        with pytest.raises(InvalidArgument):
            search_arguments(arguments(given))


CALLS: list[tuple[Any, bool]] = [
    ({"name": "a"}, True),
    ({"name": "a", "arguments": {"x": 1}}, True),
    ({"name": "a", "arguments": "{}"}, False),
    ({"name": "a", "arguments": None}, False),
    ({"name": "a", "arguments": []}, False),
    ({"name": ""}, False),
    ({"name": None}, False),
    ({"arguments": {}}, False),
    ({"name": "a", "args": {}}, False),
    ("a", False),
]


@pytest.mark.parametrize(("given", "fits"), CALLS)
def test_arguments_of_a_call_are_checked_as_its_schema_says(given: Any, fits: bool) -> None:
    validator = jsonschema.Draft202012Validator(loads(call_tool(CALL, SEARCH)["inputSchema"]))
    assert validator.is_valid(given) == fits
    if fits:
        name, inner = call_arguments(arguments(given))
        assert (name, loads(inner)) == (given["name"], given.get("arguments", {}))
    else:
        with pytest.raises(InvalidArgument):
            call_arguments(arguments(given))


def test_arguments_of_a_call_go_on_as_they_came() -> None:
    inner = b'{ "a": 123456789012345678901234567890, "b": "\\/" }'
    assert bytes(call_arguments(Raw(b'{"name": "x", "arguments": ' + inner + b"}"))[1]) == inner


def test_missing_arguments_are_said_to_be_missing() -> None:
    with pytest.raises(InvalidArgument, match="query is missing"):
        search_arguments(None)
    with pytest.raises(InvalidArgument, match="name is missing"):
        call_arguments(None)


def test_a_refusal_repeats_no_long_values() -> None:
    with pytest.raises(InvalidArgument) as caught:
        call_arguments(arguments({"name": "a", "arguments": "s3cret" * 20}))
    assert "s3cret" not in str(caught.value)
