"""The URIs that clients see of resources and templates, and which server a URI leads to.

A URI stays as it is, unless two servers have it. Then it gets its server's name in front, `hotplug+work:file:///a`, and
so does a template, `hotplug+work:file:///{path}`: what a client makes of that leads back without a table. Such a URI is
understood whether or not there was a collision. One that is kept leads to whoever lists it; one that nobody lists, to
the server whose template says most of it; and where two servers' templates say as much of it, to nobody (it is then to
be read with a server's name in front).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from hotplug.gateway.names import Assigned, Holder, settle

__all__ = ["LONGEST_URI", "assign_uris", "fitting", "matches", "prefixed", "unprefixed"]

LONGEST_URI: Final = 8192
"""Characters of a URI or a template that is taken."""

_SCHEME: Final = "hotplug+"
_PLAIN: Final = re.compile(r"[a-z0-9.-]")
_PREFIXED: Final = re.compile(r"hotplug\+((?:[a-z0-9.-]|\+[0-9a-f]{2})+):(.*)", re.DOTALL)
_ENCODED: Final = re.compile(r"\+([0-9a-f]{2})")
_EXPRESSION: Final = re.compile(r"\{[^{}]*\}")


def prefixed(server: str, uri: str) -> str:
    """A server's URI, or template, with its name in front: what a scheme has no sign for is `+` and two hex digits."""
    name = "".join(one if _PLAIN.fullmatch(one) else "".join(f"+{byte:02x}" for byte in one.encode()) for one in server)
    return f"{_SCHEME}{name}:{uri}"


def unprefixed(uri: str) -> Holder | None:
    """The server and its own URI, of one with a server's name in front; None for any other.

    The server need not be there.
    """
    found = _PREFIXED.fullmatch(uri)
    if found is None:
        return None
    try:
        server = b"".join(
            bytes.fromhex(part) if at % 2 else part.encode() for at, part in enumerate(_ENCODED.split(found[1]))
        ).decode()
    except UnicodeDecodeError:
        return None
    # Only the one spelling that `prefixed` gives: two URIs never lead to one thing.
    return (server, found[2]) if prefixed(server, found[2]) == uri else None


def assign_uris(wanted: Iterable[Holder], *, known: Mapping[str, Holder]) -> Assigned:
    """Give each server's URI, or template, the form that clients see; the same whatever the order.

    Where several servers have the same one, all of them get their name in front, but for the one that is known to have
    had it without.

    Args:
        wanted: Servers with the URIs that they list.
        known: Those that were given before, with whose they were; may be empty: then a URI can become another
            server's when a server goes.
    """
    left_out: dict[Holder, str] = {}
    wishes: dict[Holder, tuple[str, ...]] = {}
    for server, uri in wanted:
        if not uri or len(uri) > LONGEST_URI:
            left_out[server, uri] = f"its URI has {len(uri)} characters, and 1 to {LONGEST_URI} can be used"
        elif not uri.isprintable():
            left_out[server, uri] = "its URI has control characters"
        else:
            own = () if uri.startswith(_SCHEME) else (uri,)
            wishes[server, uri] = (*own, prefixed(server, uri))
    return settle([wishes], known, left_out)


def matches(template: str, uri: str) -> int | None:
    """How many characters of a URI a template says by itself, if it could have been made of it; else None.

    Read loosely (RFC 6570's expressions stand for any text), in linear time: this finds a server, which then judges.
    """
    literals = _EXPRESSION.split(template)
    first, last = literals[0], literals[-1]
    if len(literals) == 1:
        return len(uri) if uri == template else None
    if not uri.startswith(first) or not uri.endswith(last) or len(uri) < len(first) + len(last):
        return None
    at, end = len(first), len(uri) - len(last)
    for literal in literals[1:-1]:
        found = uri.find(literal, at, end)
        if found < 0:
            return None
        at = found + len(literal)
    return sum(map(len, literals))


def fitting(
    uri: str, *, resources: Mapping[str, Holder], templates: Mapping[str, Holder], offering: Collection[str]
) -> Holder | None:
    """Whose a URI is that a client wants to read, and how its server knows it; None where that can't be told.

    One that nobody lists and no template fits (a tool's result may name it) leads to the one server that offers
    resources, if there is only one.

    Args:
        uri: As the client has it; a template as it stands, where it asks for a completion.
        resources: What each exposed URI is; only of what the caller may use.
        templates: The same of exposed templates.
        offering: The servers that the caller may use and that offer resources at all.
    """
    if listed := resources.get(uri) or templates.get(uri):
        return listed
    if (named := unprefixed(uri)) is not None:
        return named if named[0] in offering else None
    best: dict[int, set[str]] = {}
    for template, (server, _) in templates.items():
        if (said := matches(template, uri)) is not None:
            best.setdefault(said, set()).add(server)
    found = best[max(best)] if best else set(offering)
    return (next(iter(found)), uri) if len(found) == 1 else None
