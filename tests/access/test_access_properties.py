"""What holds of any settings: nothing that is added, removed, moved or broken ever widens a thread."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hotplug.access import (
    Access,
    Host,
    PatchRefused,
    Thread,
    Toolkit,
    apply_patch,
    parse,
    read_settings,
    resolve,
    write,
)
from hotplug.access.document import ObjectNode, parse_node, write_node

HOST = Host(
    {"s1": ["a", "b", "c"], "s2": ["a", "d"]},
    {"k1": Toolkit("g1", ("o", "p")), "k2": Toolkit("g2", ("q",)), "core": Toolkit(None, ("find",))},
    {"find": "core"},
)
PROFILES = ("p1", "p2", "p3")
THREADS = ("t1", "t2", "t3", "t4")
JUDGED = settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)

tools = st.sampled_from(["a", "b", "c", "d"])
names_of = lambda names: st.just("all") | st.lists(st.sampled_from(names), max_size=3)  # noqa: E731
rules = st.fixed_dictionaries({"allow": st.lists(tools, max_size=3)}) | st.fixed_dictionaries(
    {"deny": st.lists(tools, max_size=3)}
)
profiles = st.fixed_dictionaries(
    {"servers": names_of(["s1", "s2", "gone"]), "groups": names_of(["g1", "g2", "nope"])},
    optional={"tools": st.dictionaries(st.sampled_from(["s1", "s2"]), rules, max_size=2)},
)
name = st.sampled_from([*PROFILES, "all", "host-only", "missing"])
files = st.fixed_dictionaries(
    {},
    optional={
        "mcpProfiles": st.dictionaries(st.sampled_from(PROFILES), profiles),
        "mcpProfile": name,
        "mcpSubagentProfile": name | st.just("inherit"),
        "mcpThreadProfiles": st.dictionaries(st.sampled_from(THREADS), name),
        "projects": st.dictionaries(
            st.sampled_from(["x", "y"]),
            st.fixed_dictionaries(
                {},
                optional={
                    "mcpProfile": name,
                    "mcpSubagentProfile": name | st.just("inherit"),
                    "scripts": st.just([1.5]),
                },
            ),
        ),
        "theme": st.just({"dark": [True, 1.5]}),
    },
)
lineages = st.fixed_dictionaries(
    {
        thread: st.fixed_dictionaries(
            {
                "parent": st.sampled_from([None, *THREADS[:number]]),
                "delegated": st.booleans(),
                "project": st.sampled_from([None, "x", "y"]),
            }
        )
        for number, thread in enumerate(THREADS)
    }
).map(lambda found: {one: Thread(one, **what) for one, what in found.items()})

Gets = dict[str, frozenset[tuple[str, str]]]


def gets(text: str | None, lineage: dict[str, Thread]) -> Gets:
    """All that each thread gets; nothing for one that is refused."""
    read = read_settings(text)
    found: Gets = {}
    for thread in lineage:
        answer = resolve(read, thread, lineage, HOST)
        found[thread] = frozenset(answer.tools) if isinstance(answer, Access) else frozenset()
    return found


def narrower(new: Gets, old: Gets) -> bool:
    return all(new[thread] <= old[thread] for thread in old)


@JUDGED
@given(files, lineages, st.data())
def test_adding_a_denial_never_widens(file: dict[str, Any], lineage: dict[str, Thread], data: st.DataObject) -> None:
    assume(file.get("mcpProfiles"))
    before = gets(json.dumps(file), lineage)
    profile = data.draw(st.sampled_from(sorted(file["mcpProfiles"])))
    server = data.draw(st.sampled_from(["s1", "s2"]))
    new = copy.deepcopy(file)
    rule = new["mcpProfiles"][profile].setdefault("tools", {}).setdefault(server, {})
    rule["deny"] = [*rule.get("deny", []), data.draw(tools)] if data.draw(st.booleans()) else "all"
    assert narrower(gets(json.dumps(new), lineage), before)


@JUDGED
@given(files, lineages)
def test_a_child_without_its_own_pick_never_has_more_than_its_parent(
    file: dict[str, Any], lineage: dict[str, Thread]
) -> None:
    found = gets(json.dumps(file), lineage)
    for name, thread in lineage.items():
        if thread.parent is not None and name not in file.get("mcpThreadProfiles", {}):
            assert found[name] <= found[thread.parent]


@JUDGED
@given(files, lineages, st.sampled_from(PROFILES))
def test_removing_a_profile_never_widens_anyone(file: dict[str, Any], lineage: dict[str, Thread], gone: str) -> None:
    new = copy.deepcopy(file)
    new.get("mcpProfiles", {}).pop(gone, None)
    assert narrower(gets(json.dumps(new), lineage), gets(json.dumps(file), lineage))


@JUDGED
@given(files, lineages, st.randoms())
def test_the_order_of_keys_never_matters(
    file: dict[str, Any], lineage: dict[str, Thread], order: random.Random
) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            order.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        if isinstance(value, list):
            return order.sample(value, len(value))
        return value

    one, other = read_settings(json.dumps(file)), read_settings(json.dumps(shuffled(file)))
    for thread in lineage:
        left, right = resolve(one, thread, lineage, HOST), resolve(other, thread, lineage, HOST)
        assert type(left) is type(right)
        if isinstance(left, Access) and isinstance(right, Access):
            assert left.tools == right.tools
            assert (left.unknown_servers, left.unknown_groups) == (right.unknown_servers, right.unknown_groups)
        assert [left.allows("s1", tool) for tool in "abcx"] == [right.allows("s1", tool) for tool in "abcx"]


JUNK = st.sampled_from(
    [
        "5",
        "-0.10",
        "1e400",
        "true",
        "false",
        '["x"]',
        "[[]]",
        '{"?": {}}',
        '" lean! "',
        '"\\ud83d"',
        "[1, null]",
        '{"a": 1, "a": 2}',
    ]
)
"""Values that mean nothing at any place of the settings; what has a meaning there (null, "", "all", []) is no junk."""


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*path, key))


def _with(text: str, path: tuple[Any, ...], junk: str) -> str:
    """The file with junk in the place of one value."""
    value = json.loads(text)
    mark = "\x00junk\x00"
    place = value
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = mark
    return json.dumps(value).replace(json.dumps(mark), junk)


def _meaningful(path: tuple[Any, ...], junk: str) -> bool:
    """Whether junk happens to be a valid value at a place: another name in a list, a map with other entries."""
    value = json.loads(junk)
    if isinstance(value, str):
        return isinstance(path[-1], int)
    if path[-1] in ("allow", "deny", "servers", "groups"):
        return value == ["x"]
    is_map = path in (("mcpThreadProfiles",), ("mcpProfiles",), ("projects",)) or (path[0], len(path)) == (
        "projects",
        2,
    )
    return isinstance(value, dict) and is_map


@JUDGED
@given(files, lineages, st.data())
def test_junk_in_the_place_of_any_value_widens_no_thread_and_loses_no_other_value(
    file: dict[str, Any], lineage: dict[str, Thread], data: st.DataObject
) -> None:
    text = json.dumps(file)
    places = [path for path in _places(file) if path]
    assume(places)
    path, junk = data.draw(st.sampled_from(places)), data.draw(JUNK)
    assume(not _meaningful(path, junk))
    broken = _with(text, path, junk)
    assert narrower(gets(broken, lineage), gets(text, lineage))
    _keeps_all(broken)


@JUDGED
@given(files, lineages, st.data())
def test_a_junk_key_beside_any_other_widens_no_thread_and_loses_no_other_value(
    file: dict[str, Any], lineage: dict[str, Thread], data: st.DataObject
) -> None:
    """Also a second value under a key that is there: junk of that kind has the key's name."""
    text = json.dumps(file)
    objects = [path for path in _places(file) if isinstance(_at(file, path), dict)]
    path = data.draw(st.sampled_from(objects))
    here = _at(file, path)
    key = data.draw(st.sampled_from([*here, "?", ""]) if here else st.sampled_from(["?", ""]))
    value = data.draw(JUNK | st.sampled_from(["null", '""', '"all"', "[]", "{}"]))
    new = copy.deepcopy(file)
    mark = "\x00more\x00"
    _at(new, path)[mark] = 0
    broken = json.dumps(new).replace(f"{json.dumps(mark)}: 0", f"{json.dumps(key)}: {value}")
    assert narrower(gets(broken, lineage), gets(text, lineage))
    _keeps_all(broken)


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@JUDGED
@given(files, lineages, st.data())
def test_a_file_that_is_cut_off_anywhere_widens_no_thread(
    file: dict[str, Any], lineage: dict[str, Thread], data: st.DataObject
) -> None:
    text = json.dumps(file, indent=data.draw(st.sampled_from([None, 2])))
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    assert all(not found for found in gets(cut, lineage).values())
    last_good = read_settings(cut, last_good=text)
    assert last_good.read_only
    assert all(
        resolve(last_good, thread, lineage, HOST).allows("s1", "a")
        == resolve(read_settings(text), thread, lineage, HOST).allows("s1", "a")
        for thread in lineage
    )


@JUDGED
@given(files, lineages, st.data())
def test_junk_between_the_characters_widens_no_thread(
    file: dict[str, Any], lineage: dict[str, Thread], data: st.DataObject
) -> None:
    text = json.dumps(file)
    at = data.draw(st.integers(0, len(text)))
    # Letters and quotes would make other names, which are settings too.
    junk = data.draw(st.text(alphabet="{}[]:,\x00\\", min_size=1, max_size=4))
    broken = text[:at] + junk + text[at:]
    try:
        parse(broken)
    except ValueError:
        assert all(not found for found in gets(broken, lineage).values())
    else:
        _keeps_all(broken)


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_any_text_at_all_is_read_and_every_thread_is_answered(text: str | bytes) -> None:
    found = read_settings(text)
    answer = resolve(found, "t", {"t": Thread("t", project="p")}, HOST)
    assert answer.allows("s1", "a").reason
    if found.unreadable is not None:
        assert not answer.allows("s1", "a").allowed


def _keeps_all(text: str) -> None:
    """An unrelated save leaves every other value as it is written, digits included."""
    before = parse_node(text)
    assert isinstance(before, ObjectNode)
    after = parse(write(apply_patch(parse(text), {"unrelated": True}, role="person", host=HOST))).root
    assert isinstance(after, ObjectNode)
    assert write_node(after.without("unrelated"), indent=None) == write_node(before, indent=None)


@JUDGED
@given(files, st.data())
def test_a_save_is_whole_or_refused_and_touches_only_what_it_names(file: dict[str, Any], data: st.DataObject) -> None:
    patch = data.draw(files)
    document = parse(json.dumps(file))
    try:
        after = json.loads(write(apply_patch(document, patch, role="person", host=HOST)))
    except PatchRefused:
        assert json.loads(write(document)) == file
        return
    for key, value in file.items():
        if key not in patch:
            assert after[key] == value
    for key in ("mcpThreadProfiles", "mcpProfiles"):
        for name, value in {**file.get(key, {}), **patch.get(key, {})}.items():
            assert after[key][name] == value
