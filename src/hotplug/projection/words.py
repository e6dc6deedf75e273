"""The words of tool and parameter names: splitting them, and which of them mean the same.

The groups come from counting the spellings in 113 public servers. They are for drafting only: nothing at run time
depends on a guess by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

__all__ = ["KINDS", "VERBS", "concept_of", "is_filler", "is_gate", "kind_of", "singular", "squeeze", "verb_of", "words"]

VERBS: Final[dict[str, tuple[str, ...]]] = {
    "create": ("create", "add", "schedule", "insert", "new", "make", "book", "compose"),
    "get": ("get", "read", "fetch", "show", "describe", "retrieve", "lookup", "view"),
    "search": ("search", "list", "find", "query", "browse"),
    "update": ("update", "edit", "modify", "patch", "change", "set"),
    "delete": ("delete", "remove", "destroy", "erase", "trash"),
    "send": ("send", "post", "publish"),
    "reply": ("reply", "respond", "answer"),
    "move": ("move", "copy", "transfer", "rename"),
    "manage": ("manage", "handle", "bulk", "batch"),
    "complete": ("complete", "finish", "mark", "done"),
    "cancel": ("cancel", "decline", "accept", "dismiss", "snooze", "forward", "tentatively", "exclude"),
    "check": ("check", "resolve", "debug", "health", "info", "test", "validate"),
    "put": ("put", "upload", "download", "import", "export"),
    "click": ("click", "tap", "press"),
    "type": ("type", "fill", "enter"),
    "navigate": ("navigate", "goto", "open"),
}
"""What tools do, and the words for it. A word has one meaning here; `get` of a plural is a search."""

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "event": ("event", "vevent", "appointment"),
    "calendar": ("calendar",),
    "todo": ("todo", "task", "vtodo", "reminder"),
    "message": ("message", "msg", "chat"),
    "mail": ("email", "mail", "mailbox"),
    "thread": ("thread", "topic", "conversation"),
    "channel": ("channel", "room", "stream", "group", "guild"),
    "contact": ("contact", "person", "people", "attendee"),
    "file": ("file", "document", "attachment", "folder"),
    "account": ("account", "user", "provider"),
    "page": ("page", "tab", "window"),
    "element": ("element", "node", "locator"),
    "permission": ("permission", "share", "acl"),
}
"""What tools do it to."""

_FILLER: Final = frozenset(
    {
        "a",
        "an",
        "the",
        "my",
        "all",
        "specific",
        "single",
        "one",
        "by",
        "id",
        "uid",
        "of",
        "for",
        "in",
        "on",
        "to",
        "with",
    }
    | {"from", "at", "and", "or", "detail", "full", "range", "date", "time", "between", "simple", "mcp", "api", "tool"}
)

_CONCEPTS: Final[dict[str, str]] = {
    "title": "title summary name subject eventtitle eventname",
    "start": "start dtstart starttime startdate startdatetime startat begin starts startsat from",
    "end": "end dtend endtime enddate enddatetime endat finish ends endsat to",
    "from": "from since start startdate starttime startdatetime timemin after datefrom min rangestart dtstart begin "
    "daterangestart startafter",
    "to": "to until end enddate endtime enddatetime timemax before dateto max rangeend dtend daterangeend endbefore",
    "event": "event eventid eventuid uid id href eventhref eventurl eventpath path",
    "calendar": "calendar calendarid calendarname calendarurl calendarpath collection calendaruid calendars "
    "calendarids calendarhref cal calid",
    "timeZone": "timezone tz timezonestr zone timezoneid starttimezone",
    "query": "query q search text term keyword keywords searchterm searchquery titlecontains textcontains filter "
    "pattern",
    "limit": "limit maxresults count top perpage pagesize size first maxitems maxcount numresults max",
    "cursor": "cursor pagetoken skiptoken nexttoken startcursor nextcursor continuation",
    "description": "description notes note details content bodycontent body desc",
    "location": "location place where venue locationdisplayname",
    "showWithoutTime": "showwithouttime allday wholeday isallday fullday",
    "duration": "duration durationminutes minutes length",
    "status": "status eventstatus",
    "freeBusyStatus": "freebusystatus transparency transp showas busy availability",
    "recurrenceRules": "recurrencerules rrule recurrence recurrencerule recurring rule repeat",
    "participants": "participants attendees guests invitees people",
    "alerts": "alerts reminders alarms reminderminutes alarmminutes alarm reminder",
    "revision": "revision etag ifmatch sequence version changekey",
    "scope": "scope modificationscope applyto range",
    "occurrence": "occurrence originalstarttime recurrenceid originalstart instance",
    "notify": "notify sendupdates sendnotifications sendinvitations",
    "message": "message messageid msgid eventid postid ts id",
    "thread": "thread threadid threadts rootid replyto replytoid parentid topic",
    "channel": "channel channelid channelname room roomid roomidoralias stream streamid chatid groupid to",
    "text": "text body message content msg markdown",
    "element": "element elementid ref uid target selector locator node nodeid index",
    "value": "value text content input",
    "url": "url uri href link address",
    "tab": "tab tabid page pageid window windowid",
}


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[str, ...]:
    """The words of a name in camel, snake or kebab case, lowered: `calendarURLs` gives `calendar`, `urls`."""
    parts = re.findall(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|\d+", text)
    return tuple(part.lower() for part in parts)


@lru_cache(maxsize=8192)
def singular(word: str) -> str:
    """A word without its plural ending, as far as English spelling goes."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def squeeze(name: str) -> str:
    """A name without case and separators: `start_time`, `startTime` and `start-time` are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _inverted(groups: dict[str, tuple[str, ...]]) -> dict[str, str]:
    return {word: group for group, members in groups.items() for word in members}


_VERB_OF: Final = _inverted(VERBS)
_KIND_OF: Final = _inverted(KINDS)
_SPELLINGS: Final[dict[str, dict[str, int]]] = {
    concept: {word: place for place, word in enumerate(spellings.split())} for concept, spellings in _CONCEPTS.items()
}


def verb_of(word: str) -> str | None:
    """The group of a verb, in any of its plain forms (`Creates`, `created`)."""
    for form in (
        word,
        word.removesuffix("s"),
        word.removesuffix("ed"),
        word.removesuffix("d"),
        word.removesuffix("es"),
    ):
        if form in _VERB_OF:
            return _VERB_OF[form]
    return None


def kind_of(word: str) -> str | None:
    """The group of a noun, plural or not."""
    return _KIND_OF.get(singular(word))


def is_filler(word: str) -> bool:
    """Whether a word says nothing about what a tool is for."""
    return singular(word) in _FILLER or word.isdigit() or len(word) == 1


_GATE: Final = re.compile(r"^(?:confirm\w*|acknowledge\w*|force|yes|approved?|i_understand|allow_\w+)$", re.IGNORECASE)


def is_gate(name: str) -> bool:
    """Whether a truth value of this name may be a gate that refuses a call unless it is passed."""
    return _GATE.match(name) is not None


def concept_of(field: str, spellings: Iterable[str]) -> float:
    """How well one of the spellings of a parameter names a field: 1 the same, 0 not at all."""
    own = squeeze(field)
    known = _SPELLINGS.get(field, {})
    best = 0.0
    for spelling in spellings:
        name = squeeze(spelling)
        if name == own:
            return 1.0
        if name in known:
            # The more usual a spelling is, the surer.
            best = max(best, 0.95 - 0.02 * min(known[name], 12))
    return best
