"""Keep secret values and control characters out of what people and programs read.

Everything that leaves `connect` as text (errors, logs, descriptions) and may hold what a server wrote or what a person
configured goes through here.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, quote, quote_plus, urlencode, urlsplit, urlunsplit

__all__ = ["MASK", "Masker", "credential_like", "mask_argv", "mask_url", "neutral"]

MASK: Final = "[secret]"
"""What stands in place of a secret value."""

_CREDENTIAL: Final = re.compile(
    r"(?:^|[^a-z])(?:api[-_]?key|access[-_]?key|private[-_]?key|auth(?:orization)?|bearer|cookie|credentials?|"
    r"pass(?:wd|word|phrase)?|pat|pwd|secret|sig(?:nature)?|token)s?(?:$|[^a-z])|(?:apikey|password|secret|token)s?$|key$",
    re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Unicode characters that reorder or hide text on a terminal.
_INVISIBLE: Final = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_MIN_GUESSED: Final = 4
_MIN_LINE: Final = 8
_LEARNED: Final = 16


def credential_like(name: str) -> bool:
    """Whether a variable, header, option or query parameter of this name usually holds a credential."""
    return _CREDENTIAL.search(name) is not None


def neutral(text: str, *, limit: int = 2000) -> str:
    """One line of foreign text without terminal escapes, control and invisible characters; cut after `limit`."""
    clean = _INVISIBLE.sub("", _CONTROL.sub("", text.replace("\t", " "))).replace("\n", " ").strip()
    return clean if len(clean) <= limit else f"{clean[:limit]}… ({len(clean)} characters)"


class Masker:
    """Replaces known secret values in text, also where they are JSON, percent or base64 encoded.

    Args:
        secrets: Values that are secret for certain: each is replaced, however short.
        guessed: Values of credential-like names that were given in plain: replaced from 4 characters on, since a
            short one (`1`, `yes`) would spoil every line.
    """

    def __init__(self, secrets: Iterable[str] = (), guessed: Iterable[str] = ()) -> None:
        self._given: set[str] = set()
        for value in (*secrets, *(value for value in guessed if len(value) >= _MIN_GUESSED)):
            self._given |= _forms(value)
        self._learned: dict[str, set[str]] = {}
        self._pattern = self._compiled()

    def learn(self, secret: str) -> None:
        """Mask this one too from now on: a token that came later. The last 16 that were learned are kept."""
        if secret in self._learned:
            return
        self._learned[secret] = _forms(secret)
        while len(self._learned) > _LEARNED:
            del self._learned[next(iter(self._learned))]
        self._pattern = self._compiled()

    def _compiled(self) -> re.Pattern[str] | None:
        longest_first = sorted(self._given.union(*self._learned.values()), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    @classmethod
    def of(cls, named: Mapping[str, str], secrets: Iterable[str] = ()) -> Masker:
        """A masker for `secrets` and for the values of the credential-like names in `named`."""
        return cls(secrets, [part for name, value in named.items() if credential_like(name) for part in _parts(value)])

    def __call__(self, text: str) -> str:
        """The text with each secret value as `[secret]`."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def line(self, text: str) -> str:
        """One masked line without control characters: for logs and error texts."""
        return self(neutral(self(text)))

    def __repr__(self) -> str:
        return "Masker(…)"


def _forms(value: str) -> set[str]:
    """How a value may stand in text; none for an empty one."""
    if not value:
        return set()
    forms = {value, quote(value, safe=""), quote(value), quote_plus(value), json.dumps(value)[1:-1]}
    forms |= {json.dumps(value, ensure_ascii=False)[1:-1], *_base64(value)}
    # A log is read line by line: the lines of a PEM key have to be known singly.
    return forms | {line.strip() for line in value.splitlines() if len(line.strip()) >= _MIN_LINE}


def _base64(value: str) -> Iterator[str]:
    """The letters that stand for a value in base64, wherever it begins in what was encoded."""
    raw = value.encode("utf-8", "surrogatepass")
    for lead in range(3):
        whole = base64.b64encode(b"\0" * lead + raw).decode().rstrip("=")
        # A letter that also holds bits of what stands before or after isn't the value's own.
        own = whole[-(-lead * 8 // 6) : (lead + len(raw)) * 8 // 6]
        if len(own) >= _MIN_GUESSED:
            yield own
            yield own.replace("+", "-").replace("/", "_")


def _parts(value: str) -> tuple[str, ...]:
    """A header's value, and the credential alone where a scheme stands before it (`Bearer x`)."""
    scheme, blank, rest = value.partition(" ")
    return (value, rest) if blank and scheme.isalpha() else (value,)


def mask_url(url: str) -> str:
    """The URL without user name and password, and with credential-like query values masked."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    host = parts.netloc.rpartition("@")[2]
    query = parts.query
    if any(credential_like(name) for name, _ in parse_qsl(query)):
        pairs = [(name, MASK if credential_like(name) else value) for name, value in parse_qsl(query)]
        query = urlencode(pairs, safe="[]")
    return urlunsplit((parts.scheme, host, parts.path, query, parts.fragment))


def mask_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """The arguments with the values of credential-like options (`--token x`, `--api-key=x`) and URLs masked."""
    masked: list[str] = []
    value_follows = False
    for argument in argv:
        if value_follows and not argument.startswith("-"):
            masked.append(MASK)
            value_follows = False
            continue
        name, equals, _ = argument.partition("=")
        secret = argument.startswith("-") and credential_like(name)
        value_follows = secret and not equals
        if secret and equals:
            masked.append(f"{name}={MASK}")
        else:
            masked.append(mask_url(argument) if "://" in argument else argument)
    return tuple(masked)
