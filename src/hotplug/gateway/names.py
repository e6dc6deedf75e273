"""The names that clients see of tools and prompts, so that each leads back to one thing on one server, for ever.

A name is worked out of the tool alone (its server's prefix, its own name, the style), never of what else is there or
of who came first. So it comes out the same in whatever order servers start:

- `dotted`: a profile operation by its part (`calendar.create`), a raw tool as `prefix.tool`.
- `underscored`, for providers that take `[a-zA-Z0-9_-]` only: `calendar_create`, `prefix__tool`.

Where that doesn't fit, or could be another tool's too (a sign that the style has no room for, a name that is too long,
or one that is ours), the name is made to fit and a digest of the tool follows: `prefix__computer_click-1f0c9a7e`.
With an empty prefix a tool keeps its own name; two servers that then want the same one collide (`NamesCollide`).

What was once given is remembered (`known`) and given to nothing else, not even when its tool is gone: whoever was
granted a name would find another tool behind it.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from hotplug.errors import ConfigError
from hotplug.gateway.config import NameStyle

__all__ = [
    "LONGEST_CLIENT_PREFIX",
    "LONGEST_NAME",
    "NAMES_PER_SERVER",
    "OURS",
    "PROFILE_PARTS",
    "Assigned",
    "Holder",
    "NamesCollide",
    "Wanted",
    "assign",
    "assign_prompts",
    "settle",
    "unusable",
]

Holder: TypeAlias = tuple[str, str]
"""Whose a name is: the server and its own name there; the server is empty for profile operations and for ours."""

Kind = Literal["member", "raw", "ours"]
Collisions = Literal["refuse", "leave_out"]

OURS: Final = ("hotplug", "connection")
"""What stands before the dot of names that are the gateway's own."""
PROFILE_PARTS: Final = frozenset(
    f"calendar.{name}" for name in ("calendars", "create", "delete", "deleted", "get", "rsvp", "search", "update")
)
"""What the catalog's profiles have, written down so that no profile has to be loaded; `connection` is ours anyway."""
LONGEST_NAME: Final = 1024
"""Characters of an upstream's name that is taken; one that is too long for a client is shortened."""
LONGEST_CLIENT_PREFIX: Final = 40
"""Characters that a client's own prefix may take of the 64."""
NAMES_PER_SERVER: Final = 100_000
"""Names that are remembered for one server: one that invents new ones all the time fills no store."""

_LONGEST: Final = 64
_DIGITS: Final = (8, 12, 16)
_TAIL: Final = re.compile(r"-[0-9a-f]{8}(?:[0-9a-f]{4}){0,2}$")
_BETWEEN: Final[Mapping[NameStyle, str]] = {"dotted": ".", "underscored": "__"}
_ODD: Final[Mapping[NameStyle, re.Pattern[str]]] = {
    "dotted": re.compile(r"[^A-Za-z0-9_.-]+"),
    "underscored": re.compile(r"[^A-Za-z0-9_-]+"),
}
_ODD_PREFIX: Final = re.compile(r"[^A-Za-z0-9_-]+")


class NamesCollide(ConfigError):
    """Two servers want to give one name to two tools.

    Args:
        name: The name.
        holders: Each server with its own name of the tool.
    """

    code = "names_collide"

    def __init__(self, name: str, holders: Collection[Holder]) -> None:
        servers = " and ".join(repr(server) for server, _ in sorted(holders))
        super().__init__(
            f"the servers {servers} both have a tool that would be named {name!r}",
            hint='give one of them another prefix in its entry: prefix = "…", or none, which is its own name',
        )
        self.name = name
        self.holders = tuple(sorted(holders))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Something that needs a name.

    Args:
        server: Whose it is, by its name in the configuration. Of a profile operation or of ours it doesn't count:
            several servers offer one operation under one name.
        own: Its name there; the part (`calendar.create`) for a profile operation.
        prefix: Stands before a raw tool's own name; empty: it keeps its own.
        kind: `member` is a profile's operation or read, `raw` an upstream's own tool, `ours` the gateway's.
    """

    server: str
    own: str
    prefix: str = ""
    kind: Kind = "raw"

    @property
    def holder(self) -> Holder:
        """Whose the name will be."""
        return (self.server if self.kind == "raw" else "", self.own)


@dataclass(frozen=True, slots=True)
class Assigned:
    """Who got which name.

    Args:
        exposed: The name that clients see, by holder.
        new: Names in it that weren't known before: to be remembered before a client sees them.
        left_out: Holders without a name, each with the reason.
    """

    exposed: Mapping[Holder, str]
    new: Mapping[str, Holder] = field(default_factory=dict[str, Holder])
    left_out: Mapping[Holder, str] = field(default_factory=dict[Holder, str])

    def back(self) -> dict[str, Holder]:
        """The holder by the name that clients see."""
        return {name: holder for holder, name in self.exposed.items()}


@dataclass(frozen=True, slots=True)
class _Form:
    """How a name is written, and whether it says all by itself.

    Args:
        head: What may be cut to a quarter where the whole is too long.
        whole: Whether nothing was replaced in it, so that no other tool comes to the same name.
    """

    head: str
    between: str
    rest: str
    whole: bool

    @property
    def text(self) -> str:
        return self.head + self.between + self.rest


def unusable(name: str) -> str | None:
    """Why an upstream's name can't be used at all; None where it can."""
    if not name.strip():
        return "it has an empty name"
    if len(name) > LONGEST_NAME:
        return f"its name has {len(name)} characters, and {LONGEST_NAME} are the most"
    if not name.isprintable() and any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in name):
        return "its name has control characters"
    return None


def assign(
    wanted: Iterable[Wanted],
    *,
    style: NameStyle,
    client_prefix: int,
    known: Mapping[str, Holder],
    reserved: Collection[str] = (),
    collisions: Collisions = "refuse",
) -> Assigned:
    """Give each tool its name, the same whatever the order of `wanted`.

    Args:
        wanted: All that may be shown; the same thing may be in it twice.
        style: How names are written. Known names are those of this style: one client's style is no other's.
        client_prefix: Characters of the 64 that the client puts before each name, 0 to 40.
        known: Every name that was ever given in this style, with its holder. These stay.
        reserved: Parts of every profile that is known here, offered or not: no raw tool takes their names.
        collisions: Of two tools that want one name, `refuse` raises; `leave_out` leaves the name to who had it before,
            or to nobody, and says so.

    Raises:
        NamesCollide: Two servers with the same prefix (an empty one is one) have a tool of the same name.
        ConfigError: The client's prefix leaves too little room.
    """
    limit = room(client_prefix)
    by_holder = {one.holder: one for one in sorted(wanted, key=_order)}
    left_out: dict[Holder, str] = {}
    forms: dict[Holder, _Form] = {}
    for holder, one in by_holder.items():
        if reason := unusable(one.own):
            left_out[holder] = reason
        else:
            forms[holder] = _form(one, style)
    parts = {*reserved, *(one.own for one in by_holder.values() if one.kind != "raw")}
    not_raw = {_part_form(part, style).text.lower() for part in parts}
    wishes: dict[Holder, tuple[str, ...]] = {}
    plain: dict[str, list[Holder]] = {}
    for holder, form in forms.items():
        raw = by_holder[holder].kind == "raw"
        taken = raw and (form.text.lower() in not_raw or _is_ours(form.text, style))
        names = _names(form, holder, style, limit, taken=taken, known=known)
        wishes[holder] = names
        if raw and names[0] == form.text:
            plain.setdefault(form.text, []).append(holder)
    for name, holders in sorted(plain.items()):
        if len(holders) > 1:
            if collisions == "refuse":
                raise NamesCollide(name, holders)
            for holder in _losers(name, holders, by_holder, known):
                left_out[holder] = str(NamesCollide(name, holders))
                del wishes[holder]
    # Ours and the profiles' first: what they get is gone before a raw tool is asked.
    first = [holder for holder in wishes if by_holder[holder].kind != "raw"]
    rest = [holder for holder in wishes if by_holder[holder].kind == "raw"]
    return settle([{h: wishes[h] for h in first}, {h: wishes[h] for h in rest}], known, left_out)


def assign_prompts(
    wanted: Iterable[Wanted], *, style: NameStyle, client_prefix: int, known: Mapping[str, Holder]
) -> Assigned:
    """Give each prompt its own name, or, where two servers have it, each a name with its prefix (or its server's name).

    A prompt that has its own name already keeps it: only those that come later get a prefix. Arguments as of `assign`;
    the kind doesn't count.

    Raises:
        ConfigError: The client's prefix leaves too little room.
    """
    limit = room(client_prefix)
    left_out: dict[Holder, str] = {}
    wishes: dict[Holder, tuple[str, ...]] = {}
    for one in sorted(wanted, key=_order):
        holder = (one.server, one.own)
        if reason := unusable(one.own):
            left_out[holder] = reason
            continue
        form = _raw_form(one.own, one.prefix or one.server, style)
        names = _names(form, holder, style, limit, taken=_is_ours(form.text, style), known=known)
        own = () if _is_ours(one.own, style) else (one.own,)
        wishes[holder] = (*own, *names)
    return settle([wishes], known, left_out)


def settle(
    groups: Iterable[Mapping[Holder, tuple[str, ...]]], known: Mapping[str, Holder], left_out: Mapping[Holder, str]
) -> Assigned:
    """Give each holder one of the names that it would take, best first, so that no order of theirs counts.

    A holder keeps a name that is known to be its own. Else all ask for their best one that nobody has or ever had, and
    where several ask for the same one none gets it. Groups come one after the other.
    """
    exposed: dict[Holder, str] = {}
    new: dict[str, Holder] = {}
    left = dict(left_out)
    given: set[str] = set()
    spent: set[str] = set()
    counts = Counter[str]() if not known else Counter(server for server, _ in known.values())
    for group in groups:
        asking: dict[Holder, Iterator[str]] = {}
        for holder in sorted(group):
            kept = next((name for name in group[holder] if known.get(name) == holder and name not in given), None)
            if kept is None:
                asking[holder] = iter(group[holder])
            else:
                exposed[holder] = kept
                given.add(kept)
        while asking:
            asked: dict[str, list[Holder]] = {}
            for holder, names in tuple(asking.items()):
                name = next((one for one in names if one not in known and one not in given and one not in spent), None)
                if name is None:
                    left[holder] = "every name that it could have is another's"
                    del asking[holder]
                elif holder[0] and counts[holder[0]] >= NAMES_PER_SERVER:
                    left[holder] = f"its server has had {NAMES_PER_SERVER} names, and that is the most"
                    del asking[holder]
                else:
                    asked.setdefault(name, []).append(holder)
            for name, holders in asked.items():
                if len(holders) > 1:
                    spent.add(name)
                    continue
                (holder,) = holders
                exposed[holder] = name
                new[name] = holder
                given.add(name)
                counts[holder[0]] += 1
                del asking[holder]
    return Assigned(exposed, new, left)


def room(client_prefix: int) -> int:
    """How many characters a name may have behind a client's prefix.

    Raises:
        ConfigError: Too few are left.
    """
    if not 0 <= client_prefix <= LONGEST_CLIENT_PREFIX:
        raise ConfigError(
            f"client_prefix is {client_prefix}", hint=f"0 to {LONGEST_CLIENT_PREFIX}: 64 is the most for a whole name"
        )
    return _LONGEST - client_prefix


def _order(one: Wanted) -> tuple[str, str, str, str]:
    return (one.kind, one.server, one.own, one.prefix)


def _form(one: Wanted, style: NameStyle) -> _Form:
    return _raw_form(one.own, one.prefix, style) if one.kind == "raw" else _part_form(one.own, style)


def _part_form(part: str, style: NameStyle) -> _Form:
    """A profile's part. Underscored, its dots are underscores: with one in it already, another part may be the same."""
    whole = _ODD["dotted"].search(part) is None and not (style == "underscored" and "_" in part)
    text = _ODD["dotted"].sub("_", part)
    return _Form("", "", text.replace(".", "_") if style == "underscored" else text, whole)


def _raw_form(own: str, prefix: str, style: NameStyle) -> _Form:
    rest = _ODD[style].sub("_", own)
    if not prefix:
        return _Form("", "", rest, rest == own)
    # Read from the left, the first place that parts prefix and name has to be the one: `a__b_c` is b_c of a.
    head = _ODD_PREFIX.sub("_", prefix)
    between = _BETWEEN[style]
    whole = head == prefix and rest == own and (head + between + rest).find(between) == len(head)
    return _Form(head, between, rest, whole)


def _names(
    form: _Form, holder: Holder, style: NameStyle, limit: int, *, taken: bool, known: Mapping[str, Holder]
) -> tuple[str, ...]:
    """The names that a thing would take, best first; `taken`: what it would be called is not for it."""
    text = form.text
    if known.get(text) == holder and len(text) <= limit:
        return (text,)
    fits = form.whole and len(text) <= limit and not _TAIL.search(text)
    best = (text,) if fits and not taken else ()
    key = hashlib.sha256(json.dumps(holder).encode()).hexdigest()
    return (*best, *(f"{_cut(form, holder, style, limit - digits - 1)}-{key[:digits]}" for digits in _DIGITS))


def _cut(form: _Form, holder: Holder, style: NameStyle, length: int) -> str:
    """As much of both sides as there is room for: a long prefix leaves three quarters to the name."""
    text = form.text
    if len(text) > length:
        head = form.head[: max(length // 4, length - len(form.between) - len(form.rest))].rstrip("_-.")
        text = (head + form.between + form.rest)[:length].rstrip("_-.") or "x"
    # Looked at when it is cut: what is left of a longer word may be one of ours.
    return f"x-{text}"[:length] if holder[0] and _is_ours(text, style) else text


def _is_ours(name: str, style: NameStyle) -> bool:
    return name.lower().startswith(tuple(root + _BETWEEN[style][0] for root in OURS))


def _losers(
    name: str, holders: Collection[Holder], by_holder: Mapping[Holder, Wanted], known: Mapping[str, Holder]
) -> set[Holder]:
    """Who goes without: all but the one that had the name before, or the only one that has a prefix."""
    if known.get(name) in holders:
        return {one for one in holders if one != known[name]}
    if name in known:
        return set()
    prefixed: list[Holder] = [one for one in holders if by_holder[one].prefix]
    return set(holders) - set(prefixed if len(prefixed) == 1 else ())
