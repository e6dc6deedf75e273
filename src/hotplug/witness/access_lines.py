"""Reading one line of an access log: which request it tells of, and what was answered."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from hotplug.errors import ConfigError
from hotplug.profile.summaries import net_summary

__all__ = ["FORMATS", "Exchange", "LineReader", "NotHttp", "line_reader"]

FORMATS: Final = ("combined", "common", "json")


class Exchange(NamedTuple):
    """A request and its answer; `status` is None where none was sent."""

    summary: str
    status: int | None


class NotHttp(Exception):
    """The line is in the format, and tells of something that was no HTTP request."""


LineReader: TypeAlias = Callable[[str], Exchange | None]
"""Gives what a line tells; None for a record that isn't of a request. Raises ValueError where it can't be read."""

_COMMON: Final = re.compile(
    r'(?P<host>\S+) \S+ [^\["]*\[[^\]]*\] "(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}|-)(?P<rest>(?: .*)?)'
)
_COMBINED_REST: Final = re.compile(r' (?:\d+|-) "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*".*')
_REQUEST: Final = re.compile(r"(?P<method>[A-Za-z][A-Za-z0-9_-]*) (?P<target>\S.*?)(?: HTTP/[0-9.]+)?")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))")

# nginx, Caddy, Traefik, pino and bunyan, Google's load balancer; the first that is there counts.
_JSON_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "method": (
        "method", "request_method", "request.method", "RequestMethod", "req.method", "httpRequest.requestMethod",
        "verb", "http.request.method",
    ),
    "path": (
        "path", "request_uri", "uri", "request.uri", "RequestPath", "req.url", "httpRequest.requestUrl", "url",
        "url.path", "target",
    ),
    "status": (
        "status", "status_code", "DownstreamStatus", "res.statusCode", "httpRequest.status", "statusCode",
        "http.response.status_code", "response.status",
    ),
}  # fmt: skip


def line_reader(format: str, fields: Mapping[str, str], origin: str | None = None) -> LineReader:  # noqa: A002
    """The reader of a format: `combined`, `common`, `json`, or a regular expression with named groups.

    Raises:
        ConfigError: It is none of these.
    """
    unknown = fields.keys() - _JSON_FIELDS.keys()
    if unknown or (fields and format != "json"):
        raise ConfigError("fields= names where method, path and status stand in a log of format `json`")
    if format == "json":
        places = {name: (fields[name],) if name in fields else known for name, known in _JSON_FIELDS.items()}
        return lambda line: _json_line(line, places, origin)
    if format in FORMATS:
        return lambda line: _clf_line(line, origin, is_combined=format == "combined")
    try:
        pattern = re.compile(format)
    except re.error as error:
        raise ConfigError(f"the log format {format!r} is no regular expression: {error}") from None
    lacking = sorted(_JSON_FIELDS.keys() - pattern.groupindex.keys())
    if lacking:
        raise ConfigError(
            f"the log format {format!r} has no group {', '.join(lacking)}",
            hint=f"one of {', '.join(FORMATS)}, or a regular expression with (?P<method>…), (?P<path>…), (?P<status>…)",
        )
    return lambda line: _pattern_line(line, pattern, origin)


def _clf_line(line: str, origin: str | None, *, is_combined: bool) -> Exchange:
    found = _COMMON.fullmatch(line)
    if found is None or (is_combined and not _COMBINED_REST.fullmatch(found["rest"])):
        raise ValueError(f"the line is not in the {'combined' if is_combined else 'common'} format")
    request = _REQUEST.fullmatch(found["request"])
    if request is None:
        raise NotHttp
    return _exchange(request["method"], _unescaped(request["target"]), found["status"], origin)


def _pattern_line(line: str, pattern: re.Pattern[str], origin: str | None) -> Exchange:
    found = pattern.search(line)
    if found is None:
        raise ValueError("the line does not fit the pattern")
    return _exchange(found["method"], found["path"], found["status"], origin)


def _json_line(line: str, places: Mapping[str, tuple[str, ...]], origin: str | None) -> Exchange | None:
    try:
        record: Any = json.loads(line)
    except RecursionError:
        raise ValueError("the line is nested too deeply") from None
    if not isinstance(record, dict):
        raise ValueError("the line is no JSON object")
    given = {name: _first(cast("dict[str, Any]", record), known) for name, known in places.items()}
    if given["method"] is None and given["status"] is None:
        return None
    if given["method"] is None or given["path"] is None or given["status"] is None:
        raise ValueError(f"the record has no {', '.join(name for name, value in given.items() if value is None)}")
    return _exchange(str(given["method"]), str(given["path"]), str(given["status"]), origin)


def _first(record: Mapping[str, Any], places: tuple[str, ...]) -> Any:
    for place in places:
        found: Any = record.get(place)
        if found is None and "." in place:
            found = record
            for name in place.split("."):
                found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
        if isinstance(found, str | int) and not isinstance(found, bool):
            return found
    return None


def _exchange(method: str, target: str, status: str, origin: str | None) -> Exchange:
    answered = None if status in ("-", "0", "000") else int(status)
    # In a request line two slashes begin a path, not a host.
    path = f"/.{target}" if target.startswith("//") else target
    return Exchange(net_summary(method, path, answered, own_origin=origin), answered)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: f"%{found[1].upper()}" if found[1] else found[2], text)
