"""What changed between two versions of a profile's document, and which version that takes at least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from hotplug.errors import ProfileError
from hotplug.profile.branches import Root, Schema
from hotplug.profile.compare import Answer, Unproven, Yes, accepts_all, seal
from hotplug.profile.senses import DETERMINISM, SENSES, Sense, exceeds, is_stronger
from hotplug.profile.versions import numbers, parse_version

__all__ = ["Change", "Diff", "Level", "claimed_version_ok", "diff"]

Level = Literal["none", "patch", "minor", "major"]

_LEVELS: Final[tuple[Level, ...]] = ("none", "patch", "minor", "major")
_KINDS: Final = {"operations": "operation", "reads": "read", "events": "event"}
_INCOMING: Final = ("input", "arguments")
_OUTGOING: Final = ("output", "payload")
_MARKS: Final = ("x-ref", "x-target", "x-sensitive", "x-facet", "x-receipt")

# Flag, its default, and the level of a change to the default and away from it.
_FLAGS: Final[tuple[tuple[str, object, Level, Level], ...]] = (
    ("effects", False, "minor", "major"),
    ("once", False, "major", "minor"),
    ("guarded", False, "major", "major"),
    ("eager", False, "minor", "minor"),
)
_WORDS: Final = ("description", "without")


@dataclass(frozen=True, slots=True)
class Change:
    """One change: how much it takes, the part it is of (`$` is the profile itself), its kind, words for a person."""

    level: Level
    part: str
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Diff:
    """All changes between two documents; `level` is the highest of theirs, and `none` where they say the same."""

    level: Level
    changes: tuple[Change, ...]


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> Diff:
    """Compares two documents of one profile, part by part; the version that they claim doesn't count.

    Where the schemas' structure doesn't show that everything still fits, that is a major change of kind `unproven`.

    Raises:
        ProfileError: the documents are of two profiles.
    """
    if old.get("name") != new.get("name"):
        raise ProfileError(
            f"{old.get('name')!r} and {new.get('name')!r} are two profiles: only versions of one compare"
        )
    changes = tuple(
        change
        for compare in (_profile_words, _extends, _refs, _facets, _parts, _senses, _determinism, _setup)
        for change in compare(old, new)
    )
    level: Level = "none"
    for change in changes:
        level = change.level if _LEVELS.index(change.level) > _LEVELS.index(level) else level
    return Diff(level, changes)


def claimed_version_ok(found: Diff, old_version: str, new_version: str) -> bool:
    """Whether the new version is at least as high as the changes take.

    Before 1.0.0 the minor number stands for the major and the patch for the others, as `^` reads it. A document that
    changed needs a higher version in any case.

    Raises:
        ProfileError: one of them isn't a version.
    """
    old, new = parse_version(old_version), parse_version(new_version)
    if found.level == "none":
        return new >= old
    if new <= old:
        return False
    before, after = numbers(old), numbers(new)
    if old.prerelease and before == after:
        return True
    if found.level == "major":
        return after[0] > before[0] or (before[0] == 0 and after[1] > before[1])
    if found.level == "minor" and before[0] > 0:
        return after[:2] > before[:2]
    return after > before


_Changes = Iterator[Change]
_Document = Mapping[str, Any]


def _profile_words(old: _Document, new: _Document) -> _Changes:
    yield from _words(old, new, "$")


def _words(old: _Document, new: _Document, part: str) -> _Changes:
    for key in _WORDS:
        if old.get(key) != new.get(key):
            yield Change("patch", part, "words", f"the {key} is worded differently")


def _extends(old: _Document, new: _Document) -> _Changes:
    before, after = _table(old, "extends"), _table(new, "extends")
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield Change("major", "$", "parent_removed", f"no longer extends {name}, whose parts are gone with it")
        elif name not in before:
            yield Change("major", "$", "parent_added", f"extends {name}, whose parts every server must have now")
        elif before[name] != after[name]:
            message = f"extends {name} {after[name]} instead of {before[name]}"
            yield Change("major", "$", "parent_range", message)


def _refs(old: _Document, new: _Document) -> _Changes:
    before, after = _table(old, "refs"), _table(new, "refs")
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield Change("major", name, "ref_removed", "the kind of ref is gone")
        elif name not in before:
            yield Change("minor", name, "ref_added", "a kind of ref is new")
        else:
            yield from _words(before[name], after[name], name)
            for flag, level_on, level_off in (("volatile", "major", "minor"), ("public", "minor", "major")):
                was, now = before[name].get(flag, False), after[name].get(flag, False)
                if was != now:
                    level = cast("Level", level_on if now else level_off)
                    yield Change(level, name, flag, f"the ref is {'now' if now else 'no longer'} {flag}")


def _facets(old: _Document, new: _Document) -> _Changes:
    before, after = _table(old, "facets"), _table(new, "facets")
    for name in sorted(before.keys() | after.keys()):
        part = f"facet {name}"
        if name not in after:
            yield Change("major", part, "facet_removed", "the facet is gone")
        elif name not in before:
            yield Change("minor", part, "facet_added", "the facet is new")
        else:
            yield from _words(before[name], after[name], part)
            was, now = str(before[name].get("version")), str(after[name].get("version"))
            if was != now:
                yield Change(_step(was, now), part, "facet_version", f"the facet is {now} instead of {was}")


def _step(was: str, now: str) -> Level:
    old, new = numbers(parse_version(was)), numbers(parse_version(now))
    if new < old or new[0] != old[0] or (old[0] == 0 and new[1] != old[1]):
        return "major"
    return "minor" if new[1] != old[1] else "patch"


def _parts(old: _Document, new: _Document) -> _Changes:
    before = {name: (kind, part) for kind in _KINDS for name, part in _table(old, kind).items()}
    after = {name: (kind, part) for kind in _KINDS for name, part in _table(new, kind).items()}
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield Change("major", name, "part_removed", f"the {_KINDS[before[name][0]]} is gone")
        elif name not in before:
            yield _added(name, *after[name])
        elif before[name][0] != after[name][0]:
            message = f"stands under {after[name][0]} instead of {before[name][0]}"
            yield Change("major", name, "part_kind", message)
        else:
            yield from _part(name, before[name][1], after[name][1])


def _added(name: str, kind: str, part: _Document) -> Change:
    if _optional(part):
        return Change("minor", name, "part_added", f"the {_KINDS[kind]} is new, and optional")
    return Change("major", name, "part_required", f"the {_KINDS[kind]} is new, and every server must have it")


def _optional(part: _Document) -> bool:
    return part.get("required", True) is False or part.get("facet") is not None


def _part(name: str, old: _Document, new: _Document) -> _Changes:
    yield from _words(old, new, name)
    if old.get("facet") != new.get("facet"):
        yield Change("major", name, "facet", f"belongs to {_facet(new)} instead of {_facet(old)}")
    was, now = old.get("required", True), new.get("required", True)
    if now and not was:
        yield Change("major", name, "part_required", "was optional, and every server must have it now")
    if was and not now:
        yield Change("major", name, "part_optional", "was always there, and may be missing now")
    for flag, default, level_to, level_away in _FLAGS:
        before, after = old.get(flag, default), new.get(flag, default)
        if before != after:
            level = level_to if after == default else level_away
            yield Change(level, name, flag, f"`{flag}` is {_said(after)} instead of {_said(before)}")
    for flag in ("timeoutMs", "look"):
        if old.get(flag) != new.get(flag):
            yield Change("minor", name, flag, f"`{flag}` is {_said(new.get(flag))} instead of {_said(old.get(flag))}")
    yield from _evidence(name, old, new)
    for key in _INCOMING:
        yield from _incoming(name, key, old.get(key), new.get(key))
    for key in _OUTGOING:
        yield from _outgoing(name, key, old.get(key), new.get(key))


def _evidence(name: str, old: _Document, new: _Document) -> _Changes:
    if old.get("sense") != new.get("sense"):
        was, now = SENSES.get(str(old.get("sense"))), SENSES.get(str(new.get("sense")))
        less = ", a weaker sense" if was and now and exceeds(was, now) else ""
        message = f"speaks for {new.get('sense')} instead of {old.get('sense')}{less}, and its summaries change"
        yield Change("major", name, "sense", message)
    was_kept, is_kept = old.get("replay", "live"), new.get("replay", "live")
    if was_kept != is_kept:
        level: Level = "minor" if is_kept == "durable" else "major"
        yield Change(level, name, "replay", f"events are {is_kept} instead of {was_kept}")
    if old.get("thread") != new.get("thread"):
        level = "minor" if old.get("thread") is None else "major"
        message = f"the thread stands in {_said(new.get('thread'))} instead of {_said(old.get('thread'))}"
        yield Change(level, name, "thread", message)


def _senses(old: _Document, new: _Document) -> _Changes:
    before, after = _senses_of(old), _senses_of(new)
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield Change("major", "$", "sense_removed", f"says nothing of the sense {name} any more")
        elif name not in before:
            yield Change("minor", "$", "sense_added", f"says what the sense {name} is worth")
        elif exceeds(before[name], after[name]):
            yield Change(
                "major", "$", "sense_weaker", f"{name} is {_worth(after[name])} instead of {_worth(before[name])}"
            )
        elif before[name] != after[name]:
            yield Change(
                "minor", "$", "sense_stronger", f"{name} is {_worth(after[name])} instead of {_worth(before[name])}"
            )


def _senses_of(document: _Document) -> dict[str, Sense]:
    stated = {
        name: Sense(str(value.get("independence")), str(value.get("grade")))
        for name, value in _table(document, "senses").items()
    }
    return {**SENSES, **stated}


def _worth(sense: Sense) -> str:
    return f"{sense.independence}, {sense.grade}"


def _determinism(old: _Document, new: _Document) -> _Changes:
    before, after = _table(old, "determinism"), _table(new, "determinism")
    for field in DETERMINISM:
        was, now = str(before.get(field)), str(after.get(field))
        if was != now:
            weaker = field not in after or (field in before and is_stronger(field, was, now))
            kind = "determinism_weaker" if weaker else "determinism_stronger"
            message = f"{field} is {_said(after.get(field))} instead of {_said(before.get(field))}"
            yield Change("major" if weaker else "minor", "$", kind, message)


def _setup(old: _Document, new: _Document) -> _Changes:
    yield from _incoming("$", "setup", old.get("setup"), new.get("setup"))


def _incoming(part: str, key: str, old: Schema | None, new: Schema | None) -> _Changes:
    """What callers write: all that they could write before has to be taken still."""
    if old is None or new is None:
        if old is not None:
            yield Change("major", part, f"{key}_removed", f"takes no {key} any more")
        elif new is not None:
            yield Change("minor", part, f"{key}_added", f"takes {key} now")
        return
    before, after = seal(old), seal(new)
    if Root(before).plain(before) != Root(after).plain(after):
        taken = accepts_all(after, before, named_only=True)
        if not isinstance(taken, Yes):
            yield _unfit(part, f"{key}_narrowed", f"the {key} takes less", taken)
        elif not isinstance(accepts_all(before, after, named_only=True), Yes):
            yield Change("minor", part, f"{key}_widened", f"the {key} takes more")
    yield from _marks_and_words(part, key, old, new)


def _outgoing(part: str, key: str, old: Schema | None, new: Schema | None) -> _Changes:
    """What callers read: all that comes has to be what they could read before, new members aside."""
    if old is None or new is None:
        if old is not None:
            yield Change("major", part, f"{key}_removed", f"gives no {key} any more")
        elif new is not None:
            yield Change("minor", part, f"{key}_added", f"gives {key} now")
        return
    if Root(old).plain(old) != Root(new).plain(new):
        readable = accepts_all(old, new, named_only=True, lenient=True)
        if not isinstance(readable, Yes):
            yield _unfit(part, f"{key}_widened", f"the {key} can be what it couldn't be before", readable)
        elif not isinstance(accepts_all(seal(old), seal(new), named_only=True), Yes):
            yield Change("minor", part, f"{key}_extended", f"the {key} has members that it hadn't")
        elif not isinstance(accepts_all(seal(new), seal(old), named_only=True), Yes):
            yield Change("minor", part, f"{key}_narrowed", f"the {key} is never again some of what it could be")
    yield from _marks_and_words(part, key, old, new)


def _unfit(part: str, kind: str, message: str, answer: Answer) -> Change:
    if isinstance(answer, Yes):
        raise AssertionError("an answer that fits")
    if isinstance(answer, Unproven):
        return Change(
            "major", part, "unproven", f"can't show otherwise than that {message}: {answer.reason} at {answer.path}"
        )
    return Change("major", part, kind, f"{message}: {answer.reason} at {answer.path}")


def _marks_and_words(part: str, key: str, old: Schema, new: Schema) -> _Changes:
    before, after = _marks(Root(old), old), _marks(Root(new), new)
    for path in before.keys() & after.keys():
        if before[path] != after[path]:
            names = ", ".join(sorted({mark for mark, _ in before[path] ^ after[path]}))
            yield Change("major", part, "mark", f"{names} of {key}{path} is another")
    if old != new and before == after and Root(old).plain(old) == Root(new).plain(new):
        yield Change("patch", part, "words", f"the {key} is worded differently")


def _marks(root: Root, schema: Schema) -> dict[str, frozenset[tuple[str, str]]]:
    """The `x-` keywords with a meaning, by the path of the member that they mark."""
    found: dict[str, set[tuple[str, str]]] = {}

    def visit(node: Any, path: str, following: frozenset[str]) -> None:
        if not isinstance(node, Mapping):
            return
        schema = cast("Mapping[str, Any]", node)
        here = found.setdefault(path, set())
        here.update((mark, str(schema[mark])) for mark in _MARKS if mark in schema)
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in following:
            visit(root.target(reference), path, following | {reference})
        for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
            for member in cast("Sequence[Any]", schema.get(keyword, ())):
                visit(member, path, following)
        for name, member in cast("Mapping[str, Any]", schema.get("properties", {})).items():
            visit(member, f"{path}.{name}", following)
        visit(schema.get("items"), f"{path}[]", following)
        visit(schema.get("additionalProperties"), f"{path}.*", following)

    visit(schema, "", frozenset())
    return {path: frozenset(marks) for path, marks in found.items()}


def _table(document: _Document, key: str) -> Mapping[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, Mapping):
        raise ProfileError(f"{key} of a profile's document is an object, not {value!r}")
    return cast("Mapping[str, Any]", value)


def _facet(part: _Document) -> str:
    return f"the facet {part['facet']}" if part.get("facet") else "the core"


def _said(value: object) -> str:
    return "nothing" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
