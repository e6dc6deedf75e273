"""Summaries: the one line by which an observation is known, in the same form on every server, and patterns over them.

A formatter makes the line, `summary_fault` says why a line isn't in its sense's form, `Pattern` is what a claim is
written with. Secrets, query strings of requests, bodies and cookies never stand in a summary: formatters drop them or
write `[redacted]`, and a line that has them is at fault. Source: the wire page, "Senses and summaries".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from hotplug.profile.credentials import REDACTED, USERINFO, credential_name, redact_parameters, redact_query
from hotplug.profile.stars import Piece, cut_at, items_of, split

__all__ = [
    "CHANGE_WORDS",
    "REDACTED",
    "Pattern",
    "artifact_summary",
    "credential_name",
    "exit_summary",
    "frame_summary",
    "in_flight_summary",
    "is_state_fact",
    "literal",
    "log_summary",
    "net_summary",
    "route_summary",
    "settled_summary",
    "signal_summary",
    "state_change",
    "state_fact",
    "storage_summary",
    "summary_fault",
    "termination_summary",
    "ui_summary",
]

CHANGE_WORDS: Final = (
    "created",
    "updated",
    "deleted",
    "set",
    "removed",
    "appeared",
    "gone",
    "enabled",
    "disabled",
    "changed",
)
"""Every word that may say what happened to a thing."""

_LONGEST: Final = 2000

# Line separators, controls, and what reorders or hides text on a terminal.
_UNPRINTABLE: Final = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ud800-\\udfff]"
)
_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_WEB: Final = {"ws": "http", "wss": "https"}
# All that may stand in a URL as it is, and `%`: what is encoded already stays (RFC 3986, section 2).
_URL_CHARACTERS: Final = "!#$%&'()*+,/:;=?@[]-._~"
_NO_URL: Final = re.compile(r"[^A-Za-z0-9!#$%&'()*+,/:;=?@\[\]._~-]")

_LOG_PAIR: Final = re.compile(r"\b([A-Za-z][A-Za-z0-9_.-]{0,63})=(?:\"[^\"]*\"|[^\s&;,\"]+)")
_LOG_SCHEME: Final = re.compile(r"\b(Bearer|Basic|Digest|Negotiate) +[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)


def net_summary(method: str, url: str, status: int | None = None, *, own_origin: str | None = None) -> str:
    """`POST /orders 201`: a request and its answer, without query, fragment, user name and password.

    Args:
        method: In any case; shown in capitals.
        url: A URL, or a path as in a request line.
        status: The answer's status; `None` or 0 where none came (`failed`).
        own_origin: The origin whose requests show only the path, such as `https://shop.example`; web sockets of the
            same host and port belong to it. Others show as `//host/path`.

    Raises:
        ValueError: The method is no token, the URL has no path (`data:`, `about:`), or the status no three digits.
    """
    verb = method.strip().upper()
    if not _METHOD.fullmatch(verb):
        raise ValueError(f"{method[:40]!r} is no HTTP method")
    if status is not None and not (status == 0 or 100 <= status <= 999):
        raise ValueError(f"{status!r} is no HTTP status")
    where = f"//{url}/" if verb == "CONNECT" and "/" not in url else url
    return f"{verb} {_net_path(where, own_origin)} {status or 'failed'}"


def log_summary(level: str, message: str) -> str:
    """`error: TypeError: x is undefined`: the level and the first line that isn't blank.

    Values of credential-like `name=value` pairs, what follows `Bearer` and user names in URLs are redacted.

    Raises:
        ValueError: The level is no word.
    """
    word = level.strip().lower()
    if not _LEVEL.fullmatch(word):
        raise ValueError(f"{level[:40]!r} is no log level")
    first = next((line for line in map(_line, re.split(r"[\r\n\u2028\u2029]", message)) if line), "(empty)")
    shown = _LOG_SCHEME.sub(lambda found: f"{found[1]} {REDACTED}", USERINFO.sub(f"{REDACTED}@", first))
    shown = _LOG_PAIR.sub(lambda found: f"{found[1]}={REDACTED}" if credential_name(found[1]) else found[0], shown)
    return _cut(f"{word}: {shown}")


def route_summary(url: str) -> str:
    """`/orders/42?tab=items`: path and query of where the user is, credential-like values as `[redacted]`.

    Raises:
        ValueError: The URL has no path (`about:blank`).
    """
    path = url if url.startswith("/") and not url.startswith("//") else _path_of(url)
    path, _, _ = path.partition("#")
    path, mark, query = path.partition("?")
    shown = redact_parameters(_printed(path))
    return _rooted(shown) + (mark + redact_query(_printed(query)) if query else "")


def state_fact(name: str, value: object) -> str:
    """`volume = 5`: something that holds. The caller keeps sensitive fields out.

    Text stands as it is (on one line; empty text as `""`), everything else as compact JSON.

    Raises:
        ValueError: The name is empty or has ` = ` in it.
    """
    shown = _line(name)
    if not shown or " = " in shown or shown.endswith(" ="):
        raise ValueError(f"{name[:80]!r} is no name of a fact")
    return _cut(f"{shown} = {_value(value)}")


def state_change(kind: str, ref: object, word: str) -> str:
    """`calendar.event e1 created`: what happened to a thing.

    Args:
        kind: One word.
        ref: What the thing is known by; control characters in it are percent-encoded.
        word: One of `CHANGE_WORDS`.

    Raises:
        ValueError: The kind is no word, the ref is empty, or the word is none of `CHANGE_WORDS`.
    """
    name = _key(str(ref))
    if not _WORD.fullmatch(kind):
        raise ValueError(f"{kind[:80]!r} is no kind: one word without blanks")
    if not name:
        raise ValueError("the ref is empty")
    if " = " in f" {name} ":  # not to be read as a fact
        name = name.replace("=", "%3D")
    return f"{kind} {name} {_change_word(word)}"


def is_state_fact(summary: str) -> bool:
    """Whether a `state` summary is a fact (`name = value`) and not a change."""
    return " = " in summary


def signal_summary(name: str) -> str:
    """`order:placed`: the name of an announcement.

    Raises:
        ValueError: The name is empty.
    """
    shown = _line(name)
    if not shown:
        raise ValueError("a signal without a name")
    return _cut(shown)


def ui_summary(role: str, name: str, word: str) -> str:
    """`button "Pay" disabled`: what happened to something on screen; the name may be empty.

    Raises:
        ValueError: The role is no word, or the word is none of `CHANGE_WORDS`.
    """
    if not _WORD.fullmatch(role):
        raise ValueError(f"{role[:80]!r} is no role")
    return f'{role} "{_cut(_line(name))}" {_change_word(word)}'


def storage_summary(area: str, key: str, word: str) -> str:
    """`local:cart set`: what happened to a stored value, which never stands here.

    Raises:
        ValueError: The area is no name, the key is empty, or the word is none of `CHANGE_WORDS`.
    """
    name = _key(key)
    if not _LEVEL.fullmatch(area):
        raise ValueError(f"{area[:80]!r} is no storage area")
    if not name:
        raise ValueError("the key is empty")
    return f"{area}:{name} {_change_word(word)}"


def in_flight_summary(count: int, what: str = "request") -> str:
    """`2 requests in flight`.

    Raises:
        ValueError: The count is negative, or `what` is no word.
    """
    if count < 0 or not _WORD.fullmatch(what):
        raise ValueError(f"{count} {what[:80]!r} can't be in flight")
    return f"{count} {what}{'' if count == 1 else 's'} in flight"


def settled_summary(what: str) -> str:
    """`animations settled`.

    Raises:
        ValueError: `what` is empty.
    """
    shown = _line(what)
    if not shown:
        raise ValueError("it isn't said what settled")
    return f"{_cut(shown)} settled"


def frame_summary(frame: object, width: int, height: int) -> str:
    """`frame 17 1280x720`: a picture, by its id and its size in pixels.

    Raises:
        ValueError: The id has blanks or is empty, or a size isn't positive.
    """
    if not _WORD.fullmatch(str(frame)) or width < 1 or height < 1:
        raise ValueError(f"{str(frame)[:80]!r} of {width}x{height} is no frame")
    return f"frame {frame} {width}x{height}"


def exit_summary(code: int) -> str:
    """`exit 1`: with what code a program ended by itself."""
    return f"exit {code}"


def termination_summary(signal: int | str) -> str:
    """`SIGKILL`: what a program was ended by from outside. Numbers are those that POSIX fixes, others `SIG34`.

    Raises:
        ValueError: That is no signal.
    """
    name = signal.upper() if isinstance(signal, str) else _SIGNALS.get(signal, f"SIG{signal}")
    if not _SIGNAL.fullmatch(name):
        raise ValueError(f"{signal!r} is no signal")
    return name


def artifact_summary(path: str, word: str) -> str:
    """`report.pdf created`: what happened to a file, by its path below the folder that is looked at, with `/`.

    Raises:
        ValueError: The path is empty, or the word is none of `CHANGE_WORDS`.
    """
    name = _key(path)
    if not name:
        raise ValueError("the path is empty")
    return f"{name} {_change_word(word)}"


def summary_fault(sense: str, text: str) -> str | None:
    """Why a line isn't in the form of its sense, in a few words; None where it is.

    A sense of an implementation (`x-…` without a form of its own) only has to be one printable line.
    """
    if not text:
        return "it is empty"
    if _UNPRINTABLE.search(text):
        return "it has line breaks, control characters or invisible ones"
    if text != text.strip():
        return "it has blanks at its edges"
    check = _CHECKS.get(sense)
    if check is None:
        return None if sense.startswith("x-") else f"{sense!r} is no sense"
    return check(text)


@dataclass(frozen=True, slots=True)
class Pattern:
    r"""A summary to look for: exact text, or with `*` for any run of characters.

    In `net` and `route` a star stays within one path segment: it crosses neither `/`, nor a blank, nor `?`. `\*` is a
    star. In `net` the status may be a class: `POST /orders 2xx`. Made by `Pattern.parse`.
    """

    sense: str
    text: str
    exact: str | None
    """The summary that alone fits, or None where there is a star or a status class."""
    pieces: tuple[Piece, ...]
    separators: str

    @classmethod
    def parse(cls, sense: str, text: str) -> Pattern:
        """Read a pattern.

        Raises:
            ValueError: No summary of the sense could ever fit it, so that an `absent` of it would hold always.
        """
        items = items_of(text)
        pieces, separators = split(items, _SEPARATORS.get(sense, ""))
        if sense == "net" and len(pieces) > 1 and separators[-1] == " " and len(pieces[-1].texts) == 1:
            last = pieces[-1].texts[0]
            if len(last) == 3 and last[0] in "12345" and last[1:] == "xx":
                pieces = (*pieces[:-1], Piece((), last[0]))
        starred = any(len(piece.texts) > 1 for piece in pieces)
        fault = None
        if not starred or sense in _SEPARATORS:
            fault = summary_fault(sense, _instance(sense, pieces, separators))
        elif sense not in _CHECKS and not sense.startswith("x-"):
            fault = f"{sense!r} is no sense"
        if fault is not None:
            raise ValueError(f"no {sense} summary can be {text[:200]!r}: {fault}")
        is_exact = not starred and all(piece.status is None for piece in pieces)
        return cls(sense, text, "".join(char or "" for char in items) if is_exact else None, pieces, separators)

    def matches(self, summary: str) -> bool:
        """Whether the summary fits, letter by letter outside the stars."""
        if self.exact is not None:
            return summary == self.exact
        if not self.separators and self.sense not in _SEPARATORS:
            return self.pieces[0].matches(summary)
        parts, separators = cut_at(summary, _SEPARATORS[self.sense])
        if separators != self.separators:
            return False
        if self.sense == "net" and (" //" in summary) != (" //" in self.text):
            return False  # an empty star must not turn a path into another host
        return all(piece.matches(part) for piece, part in zip(self.pieces, parts, strict=True))

    def __str__(self) -> str:
        return self.text


def literal(summary: str) -> str:
    """The pattern that only this summary fits."""
    return summary.replace("*", "\\*")


# What a star may not cross. A summary of a request has its three parts between blanks.
_SEPARATORS: Final[Mapping[str, str]] = {"net": " /", "route": "/?"}
_METHOD: Final = re.compile(r"[A-Z][A-Z0-9_-]{0,31}")
_LEVEL: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_WORD: Final = re.compile(r"[^\s\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+")
_SIGNAL: Final = re.compile(r"SIG[A-Z0-9]+([+-][0-9]+)?")
_EXIT: Final = re.compile(r"exit (0|-?[1-9][0-9]*)")
_FRAME: Final = re.compile(r"frame \S+ [1-9][0-9]*x[1-9][0-9]*")
_STATUS: Final = re.compile(r"[1-9][0-9][0-9]|failed")
_IN_FLIGHT: Final = re.compile(r"(0|[1-9][0-9]*) \S+ in flight")
_SIGNALS: Final = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE",
    14: "SIGALRM", 15: "SIGTERM", 4: "SIGILL", 5: "SIGTRAP", 7: "SIGBUS",
}  # fmt: skip


def _instance(sense: str, pieces: tuple[Piece, ...], separators: str) -> str:
    """A summary that the pattern fits, to see whether any in the sense's form does."""
    fill = REDACTED if sense == "route" else "X"
    shown: list[str] = []
    for at, piece in enumerate(pieces):
        if piece.status is not None:
            shown.append(f"{piece.status}00")
        elif sense == "net" and at == len(pieces) - 1 and len(piece.texts) > 1:
            shown.append(next((text for text in _STATUSES if piece.matches(text)), fill.join(piece.texts)))
        else:
            shown.append(fill.join(piece.texts))
    return "".join(part + separator for part, separator in zip(shown, (*separators, ""), strict=True))


_STATUSES: Final = (*map(str, range(100, 1000)), "failed")


def _net_fault(text: str) -> str | None:
    parts = text.split(" ")
    if len(parts) != 3:
        return "the form is `METHOD path status`"
    method, path, status = parts
    if not _METHOD.fullmatch(method):
        return f"{method[:40]!r} is no method in capitals"
    if not _STATUS.fullmatch(status):
        return f"{status[:40]!r} is no status (three digits, or `failed`)"
    if "?" in path or "#" in path:
        return "a path here has neither query nor fragment"
    if path == "*":
        return None
    if not path.startswith("/"):
        return "the path has to begin with `/` (or `//host/`)"
    if _NO_URL.search(path):
        return "what can't stand in a URL is percent-encoded"
    if path.startswith("//"):
        host, slash, _ = path[2:].partition("/")
        if not host or not slash:
            return "another origin is `//host/path`"
        if "@" in host:
            return "a user name or password stands before the host"
    return _parameters_fault(path)


def _route_fault(text: str) -> str | None:
    path, _, query = text.partition("?")
    if "#" in text:
        return "a route has no fragment"
    if not path.startswith("/") or path.startswith("//"):
        return "a route begins with one `/`"
    if _NO_URL.search(text):
        return "what can't stand in a URL is percent-encoded"
    if redact_query(query) != query:
        return f"a credential-like value has to be {REDACTED}"
    return _parameters_fault(path)


def _parameters_fault(path: str) -> str | None:
    return None if redact_parameters(path) == path else f"a credential-like value has to be {REDACTED}"


def _log_fault(text: str) -> str | None:
    level, colon, line = text.partition(": ")
    return None if colon and _LEVEL.fullmatch(level) and line else "the form is `level: first line`"


def _state_fault(text: str) -> str | None:
    if is_state_fact(text):
        return None if text.partition(" = ")[0] else "the fact has no name"
    kind, _, rest = text.partition(" ")
    ref, _, word = rest.rpartition(" ")
    if not kind or not ref:
        return "the form is `name = value`, or `kind ref change-word`"
    return _word_fault(word)


def _ui_fault(text: str) -> str | None:
    role, quote_mark, rest = text.partition(' "')
    _, end_mark, word = rest.rpartition('" ')
    if not quote_mark or not end_mark or not _WORD.fullmatch(role):
        return 'the form is `role "name" change-word`'
    return _word_fault(word)


def _storage_fault(text: str) -> str | None:
    place, _, word = text.rpartition(" ")
    area, colon, key = place.partition(":")
    if not colon or not key or not _LEVEL.fullmatch(area):
        return "the form is `area:key change-word`"
    return _word_fault(word)


def _artifact_fault(text: str) -> str | None:
    path, _, word = text.rpartition(" ")
    return _word_fault(word) if path else "the form is `path change-word`"


def _word_fault(word: str) -> str | None:
    return None if word in CHANGE_WORDS else f"{word[:40]!r} is no change word ({' '.join(CHANGE_WORDS)})"


def _form(pattern: re.Pattern[str], form: str) -> Callable[[str], str | None]:
    return lambda text: None if pattern.fullmatch(text) else f"the form is {form}"


def _time_fault(text: str) -> str | None:
    right = _IN_FLIGHT.fullmatch(text) or (text.endswith(" settled") and len(text) > len(" settled"))
    return None if right else "the form is `2 requests in flight`, or `… settled`"


def _anything(text: str) -> str | None:
    del text


_CHECKS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "net": _net_fault,
    "log": _log_fault,
    "route": _route_fault,
    "state": _state_fault,
    "signal": _anything,
    "ui": _ui_fault,
    "storage": _storage_fault,
    "time": _time_fault,
    "visual": _form(_FRAME, "`frame id WIDTHxHEIGHT`"),
    "x-exit": _form(_EXIT, "`exit code`"),
    "x-termination": _form(_SIGNAL, "a signal's name"),
    "x-artifact": _artifact_fault,
}


def _net_path(url: str, own_origin: str | None) -> str:
    if url == "*":
        return "*"
    if url.startswith("/") and not url.startswith("//"):
        path, host = re.split(r"[?#]", url, maxsplit=1)[0], None
    else:
        path, host = _path_of(url), _host_of(url, own_origin)
        path = re.split(r"[?#]", path, maxsplit=1)[0]
    shown = redact_parameters(_printed(path))
    return _rooted(shown) if host is None else f"//{host}{shown or '/'}"


def _path_of(url: str) -> str:
    """Path and query of a URL; `/` where it has none."""
    parts = urlsplit(url)
    if not parts.netloc:
        raise ValueError(f"a URL of scheme {parts.scheme[:40]!r} without a host has no path")
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _host_of(url: str, own_origin: str | None) -> str | None:
    """Host, and port unless it is the scheme's own; None for the own origin."""
    own = None if own_origin is None else _origin(own_origin, "https")
    origin = _origin(url, "https" if own is None else own[0])
    if origin == own:
        return None
    scheme, host, port = origin
    return host if port is None or port == _PORTS.get(scheme) else f"{host}:{port}"


def _origin(url: str, scheme: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    named = parts.scheme or scheme
    host = (parts.hostname or "").rstrip(".")
    if not host:
        raise ValueError("the URL has no host")
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    shown = quote(host, safe="-._~:")
    return _WEB.get(named, named), f"[{shown}]" if ":" in shown else shown, parts.port or _PORTS.get(named)


def _rooted(path: str) -> str:
    """A path that no reader takes for `//host/…` (RFC 3986, section 3.3 and 5.2.4 say how)."""
    if not path.startswith("/"):
        path = f"/{path}"
    return f"/.{path}" if path.startswith("//") else path


def _printed(text: str) -> str:
    """What can't stand in a URL percent-encoded."""
    return quote(text.encode("utf-8", "replace"), safe=_URL_CHARACTERS)


def _change_word(word: str) -> str:
    if word not in CHANGE_WORDS:
        raise ValueError(f"{word[:40]!r} is no change word; there are {', '.join(CHANGE_WORDS)}")
    return word


def _line(text: str) -> str:
    """The text on one line: breaks and tabs as blanks, no control or invisible characters, no blanks at the edges."""
    return _UNPRINTABLE.sub("", re.sub(r"[\t\r\n\v\f\x85\u2028\u2029]+", " ", text)).strip()


def _key(text: str) -> str:
    """A name that has to stay itself: what can't stand on one line is percent-encoded."""
    shown = _UNPRINTABLE.sub(lambda found: quote(found[0].encode("utf-8", "surrogatepass"), safe=""), text)
    inner = shown.strip()
    lead, trail = shown[: len(shown) - len(shown.lstrip())], shown[len(shown.rstrip()) :]
    return f"{quote(lead)}{inner}{quote(trail)}" if inner else quote(shown)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _line(value) or '""'
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    return _line(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
