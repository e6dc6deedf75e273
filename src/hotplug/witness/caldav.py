"""A CalDAV server as a witness: its collections, read by plain HTTP (RFC 4918, RFC 4791)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from xml.etree import ElementTree as ET

import httpx2

from hotplug.connect.masking import Masker, mask_url
from hotplug.errors import ConfigError
from hotplug.witness.calendar import Stored, StoredCalendars, Unreadable, holdings_of
from hotplug.witness.watching import CannotLook

__all__ = ["CalDav"]

_DAV: Final = "{DAV:}"
_CALDAV: Final = "{urn:ietf:params:xml:ns:caldav}"
_LARGEST: Final = 64 << 20
_AGAIN: Final = 2
_REDIRECTS: Final = 5

_ASK_PLACE: Final = b"""<?xml version="1.0" encoding="utf-8"?>
<d:propfind xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">
  <d:prop><d:resourcetype/><d:current-user-principal/><c:calendar-home-set/></d:prop>
</d:propfind>"""
_ASK_LIST: Final = b"""<?xml version="1.0" encoding="utf-8"?>
<d:propfind xmlns:d="DAV:"><d:prop><d:resourcetype/><d:getetag/><d:getcontenttype/></d:prop></d:propfind>"""
_ASK_OBJECTS: Final = b"""<?xml version="1.0" encoding="utf-8"?>
<c:calendar-query xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">
  <d:prop><d:getetag/><c:calendar-data/></d:prop>
  <c:filter><c:comp-filter name="VCALENDAR"/></c:filter>
</c:calendar-query>"""


class CalDav(StoredCalendars):
    """What a CalDAV server keeps, asked of the server itself.

    Each calendar is listed and its objects are read; only where both agree is something that is missing taken for
    gone. An object or a calendar that the server doesn't give, and a listing that it cut short, are blind spots.
    The credential goes to the origin of `url` alone.

    Args:
        url: A calendar, the home that holds the calendars, the principal, or the root.
        username: For HTTP Basic; may stand in the URL too.
        password: Never shown.
        describe: How it looks, for a report.
        timeout: Seconds that one look may take.

    Raises:
        ConfigError: The URL isn't one of HTTP.
    """

    what = "CalDAV, read directly"

    def __init__(
        self,
        url: str,
        username: str | None = None,
        password: str | None = None,
        *,
        describe: str | None = None,
        timeout: float = 15.0,
        name: str = "caldav",
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("a CalDAV server has a URL with http:// or https://", hint="give its address")
        super().__init__(name, mask_url(url), timeout=timeout)
        self.what = describe or self.what
        self._url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        user = username if username is not None else unquote(parts.username or "")
        secret = password if password is not None else unquote(parts.password or "")
        self._auth = httpx2.BasicAuth(user, secret) if user or secret else None
        self._mask = Masker([secret] if secret else ())

    async def _stored(self) -> Stored:
        found = Stored()
        try:
            async with httpx2.AsyncClient(auth=self._auth, timeout=self.timeout, trust_env=False) as http:
                server = _Server(http, self._url)
                calendars = await server.calendars(found)
                read = 0
                for calendar in calendars:
                    try:
                        await _read_calendar(server, calendar, found)
                        read += 1
                    except CannotLook as error:
                        found.gap(f"the calendar {mask_url(calendar)} can't be read: {self._mask.line(error.detail)}")
                if not read:
                    raise CannotLook("; ".join(gap.detail for gap in found.gaps[:3]) or "no calendar is there")
        except httpx2.TimeoutException:
            raise TimeoutError from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise CannotLook(self._mask.line(str(error)) or type(error).__name__) from None
        return found


class _Object(NamedTuple):
    etag: str
    text: str


@dataclass(slots=True)
class _Response:
    """One member of a multistatus: its path, its status where it has one alone, and the properties that were given."""

    path: str
    status: int | None
    props: Mapping[str, ET.Element]
    refused: Mapping[str, int]

    def is_a(self, *kinds: str) -> bool:
        """Whether it is a resource of all these types."""
        types = self.props.get(f"{_DAV}resourcetype")
        return types is not None and all(types.find(kind) is not None for kind in kinds)

    def text(self, name: str) -> str | None:
        """A property's text."""
        found = self.props.get(name)
        return None if found is None else found.text or ""

    def href(self, name: str) -> str | None:
        """The address in a property."""
        found = self.props.get(name)
        return None if found is None else found.findtext(f"{_DAV}href")


class _Server:
    """Asks one origin."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http = http
        self.url = url

    async def calendars(self, found: Stored) -> list[str]:
        """The addresses of the calendars that the URL leads to.

        Raises:
            CannotLook: There is none, or it can't be told.
        """
        home = self.url
        for _ in range(3):
            place = next(iter(await self.ask("PROPFIND", home, _ASK_PLACE, "0")), None)
            if place is None:
                raise CannotLook("it says nothing about itself", remedy="is this the address of a CalDAV server?")
            if place.is_a(f"{_CALDAV}calendar"):
                return [home]
            further = place.href(f"{_CALDAV}calendar-home-set") or place.href(f"{_DAV}current-user-principal")
            if further is None or self._absolute(further) == home:
                break
            home = self._absolute(further)
        listed = await self.ask("PROPFIND", home, _ASK_LIST, "1")
        for one in listed:
            if one.status is not None and one.status >= 300:
                found.gap(f"{one.path} is not shown: {one.status}", is_cut=one.status == 507)
        return sorted(self._absolute(one.path) for one in listed if one.is_a(f"{_CALDAV}calendar"))

    async def ask(self, method: str, url: str, body: bytes, depth: str) -> list[_Response]:
        """The members of the multistatus that it answers with.

        Raises:
            CannotLook: It answers anything else.
        """
        headers = {"Content-Type": "application/xml; charset=utf-8", "Depth": depth}
        for _ in range(_REDIRECTS):
            async with self._http.stream(method, url, content=body, headers=headers) as answer:
                if answer.status_code in (301, 302, 307, 308) and "location" in answer.headers:
                    url = self._absolute(urljoin(url, answer.headers["location"]))
                    continue
                if answer.status_code in (401, 403):
                    raise CannotLook(f"the server refused the credential ({answer.status_code})")
                if answer.status_code != 207:
                    raise CannotLook(f"the server answered {method} with {answer.status_code}")
                content = bytearray()
                async for chunk in answer.aiter_bytes():
                    content += chunk
                    if len(content) > _LARGEST:
                        raise CannotLook(f"the answer is larger than {_LARGEST >> 20} MiB", kind="buffer-truncated")
                return _responses(bytes(content))
        raise CannotLook("it leads from one address to the next without end")

    def _absolute(self, href: str) -> str:
        address = urljoin(self.url, href)
        if urlsplit(address)[:2] != urlsplit(self.url)[:2]:
            host = urlsplit(address).hostname
            raise CannotLook(f"it leads to another origin, {host}", remedy="give that address, if you trust it")
        return address


@dataclass(slots=True)
class _Reading:
    """A calendar as its listing and its objects show it."""

    listed: Mapping[str, str]
    objects: Mapping[str, _Object]
    gaps: list[tuple[str, bool]]

    @property
    def apart(self) -> list[str]:
        """The paths that the two don't agree on."""
        return sorted(path for path in {**self.listed, **self.objects} if not self._agrees(path))

    def _agrees(self, path: str) -> bool:
        one, etag = self.objects.get(path), self.listed.get(path)
        return one is not None and etag is not None and (not one.etag or not etag or one.etag == etag)


async def _read_calendar(server: _Server, calendar: str, found: Stored) -> None:
    """Read a calendar, again where somebody wrote into it meanwhile."""
    name = unquote(urlsplit(calendar).path.rstrip("/").rpartition("/")[2])
    reading = await _reading(server, calendar)
    for _ in range(_AGAIN):
        if reading.apart or reading.gaps:
            reading = await _reading(server, calendar)
    for path in reading.apart:
        found.gap(f"{path} is in one listing of {name} and not in the other, or changes all the time")
    for detail, is_cut in reading.gaps:
        found.gap(detail, is_cut=is_cut)
    for path, one in sorted(reading.objects.items()):
        try:
            # An XML reader has turned CRLF into LF.
            found.holdings += holdings_of(one.text.replace("\r\n", "\n").replace("\n", "\r\n"), name)
        except Unreadable as error:
            found.gap(f"{path} can't be read: {error}")


async def _reading(server: _Server, calendar: str) -> _Reading:
    gaps: list[tuple[str, bool]] = []
    listed = {
        one.path: one.text(f"{_DAV}getetag") or ""
        for one in _given(await server.ask("PROPFIND", calendar, _ASK_LIST, "1"), gaps)
        if not one.is_a(f"{_DAV}collection") and _may_be_calendar(one.text(f"{_DAV}getcontenttype"))
    }
    objects: dict[str, _Object] = {}
    for one in _given(await server.ask("REPORT", calendar, _ASK_OBJECTS, "1"), gaps):
        text = one.text(f"{_CALDAV}calendar-data")
        if text is not None:
            objects[one.path] = _Object(one.text(f"{_DAV}getetag") or "", text)
        else:
            gaps.append((f"{one.path} is listed and not given", False))
    return _Reading(listed, objects, gaps)


def _given(responses: list[_Response], gaps: list[tuple[str, bool]]) -> list[_Response]:
    """Those that were given; the others are gaps."""
    kept: list[_Response] = []
    for one in responses:
        status = one.status if one.status is not None else one.refused.get(f"{_CALDAV}calendar-data", 200)
        if status >= 300:
            gaps.append((f"{one.path} is not given: {status}", status == 507))
        else:
            kept.append(one)
    return kept


def _may_be_calendar(content_type: str | None) -> bool:
    return not content_type or content_type.lower().startswith("text/calendar")


def _responses(body: bytes) -> list[_Response]:
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        raise CannotLook("the answer has a document type of its own, which is not read")
    try:
        root = ET.fromstring(body)  # noqa: S314 - without a document type there are no entities to expand
    except ET.ParseError as error:
        raise CannotLook(f"the answer is no XML: {error}") from None
    if root.tag != f"{_DAV}multistatus":
        raise CannotLook(f"the answer is {root.tag[:80]!r} and no multistatus")
    return [_response(one) for one in root.findall(f"{_DAV}response")]


def _response(element: ET.Element) -> _Response:
    props: dict[str, ET.Element] = {}
    refused: dict[str, int] = {}
    for group in element.findall(f"{_DAV}propstat"):
        status = _status(group.findtext(f"{_DAV}status"))
        for prop in group.find(f"{_DAV}prop") or ():
            if status is None or status < 300:
                props[prop.tag] = prop
            else:
                refused[prop.tag] = status
    # Servers differ in how they write the same path.
    path = unquote(urlsplit(element.findtext(f"{_DAV}href", "").strip()).path)
    return _Response(path, _status(element.findtext(f"{_DAV}status")), props, refused)


def _status(line: str | None) -> int | None:
    """The code of a status line (`HTTP/1.1 507 Insufficient Storage`); one that can't be read counts as an error."""
    if line is None:
        return None
    words = line.split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 500
