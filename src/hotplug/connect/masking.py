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
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlencode, urlsplit, urlunsplit

__all__ = [
    "MASK",
    "Masker",
    "argv_secrets",
    "credential_like",
    "credential_named",
    "mask_argv",
    "mask_url",
    "neutral",
    "token_like",
    "url_secrets",
]

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
_HARMLESS: Final = re.compile(
    r"(?:_|-)(?:path|file|dir|folder|url|uri|host|port|method|mode|type|name|scheme|provider|ttl|expiry|timeout|"
    r"length|count|limit|header|ids?|enabled|required)$",
    re.IGNORECASE,
)
_USER: Final = re.compile(r"//[^/?#]*@")
# `-e NAME=VALUE`, `--env=NAME=VALUE`, `--header=Name: VALUE`, or one of these by itself.
_SETTING: Final = re.compile(r"(?:-e|-H|--[\w-]+=)?(?P<name>[A-Za-z_][\w.-]*)(?:=|:[ \t]*)(?P<value>.*)", re.DOTALL)
_REFERENCE: Final = re.compile(r"\$\{[^}]*\}|\$\w+|%\w+%|secret:\S+|<[^<>]*>")
_TOKEN: Final = re.compile(
    r"(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}"
    r"|gh[opusr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}"
    r"|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|hp[ot]_[\w-]{40,}"
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*",
    re.DOTALL,
)
_MIN_GUESSED: Final = 4
_MIN_LINE: Final = 8
_SWITCHES: Final = frozenset({"true", "false", "none", "null"})
_LEARNED: Final = 16


def credential_like(name: str) -> bool:
    """Whether a variable, header, option or query parameter of this name usually holds a credential."""
    return _CREDENTIAL.search(name) is not None


def credential_named(name: str) -> bool:
    """Whether what is called so usually is a credential itself, and no path to one, kind of one or the like."""
    return credential_like(name) and _HARMLESS.search(name) is None


def neutral(text: str, *, limit: int = 2000) -> str:
    """One line of foreign text without terminal escapes, control and invisible characters; cut after `limit`."""
    clean = _INVISIBLE.sub("", _CONTROL.sub("", text.replace("\t", " "))).replace("\n", " ").strip()
    return clean if len(clean) <= limit else f"{clean[:limit]}… ({len(clean)} characters)"


class Masker:
    """Replaces known secret values in text, also where they are JSON, percent or base64 encoded.

    Args:
        secrets: Values that are secret for certain: each is replaced, however short.
        guessed: Values of credential-like names that were given in plain: replaced from 4 characters on, since a
            short one (`1`, `yes`) would spoil every line; no switch (`true`).
    """

    def __init__(self, secrets: Iterable[str] = (), guessed: Iterable[str] = ()) -> None:
        self._given: set[str] = set()
        for value in (*secrets, *filter(_worth_masking, guessed)):
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
    def of(cls, named: Mapping[str, str], secrets: Iterable[str] = (), guessed: Iterable[str] = ()) -> Masker:
        """A masker for `secrets`, `guessed` ones, and what in `named` has a credential-like name or stands in a URL."""
        values = [part for name, value in named.items() if credential_like(name) for part in _parts(value)]
        values += [part for value in named.values() if "://" in value for part in url_secrets(value)]
        return cls(secrets, [*values, *guessed])

    def __call__(self, text: str) -> str:
        """The text with each secret value as `[secret]`."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def line(self, text: str) -> str:
        """One masked line without control characters: for logs and error texts."""
        return self(neutral(self(text)))

    def __repr__(self) -> str:
        return "Masker(…)"


def _worth_masking(guessed: str) -> bool:
    """Whether it may be a credential: a switch would spoil every line."""
    return len(guessed) >= _MIN_GUESSED and guessed.lower() not in _SWITCHES


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
    if not url_secrets(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        head, mark, query = url.partition("?")
        return f"{_USER.sub('//', head)}{mark}{_mask_query(query)}"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, _mask_query(parts.query), parts.fragment))


def _mask_query(query: str) -> str:
    pairs = parse_qsl(query)
    if not any(credential_like(name) for name, _ in pairs):
        return query
    return urlencode([(name, MASK if credential_like(name) else value) for name, value in pairs], safe="[]")


def mask_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """The arguments without the credentials in them.

    Masked are values of credential-like options (`--token x`, `--api-key=x`), variables (`-e API_KEY=x`) and headers
    (`--header "Authorization: x"`), credentials in URLs, and what has the form of a token.
    """
    shown = tuple(
        f"{head}{MASK}" if value else mask_url(head) if "://" in head else head for head, value in _parted(argv)
    )
    line = _line(argv)
    return (" ".join(mask_argv(line)), *shown[1:]) if argv_secrets(line) else shown


def argv_secrets(argv: Sequence[str]) -> tuple[str, ...]:
    """The credentials that `mask_argv` masks, but for references to a variable (`$TOKEN`, `${TOKEN}`)."""
    found: list[str] = [*argv_secrets(line)] if (line := _line(argv)) else []
    for head, value in _parted(argv):
        if value and not _REFERENCE.fullmatch(_bare(value)) and value.lower() not in _SWITCHES:
            found += _parts(value)
        elif "://" in head:
            found += url_secrets(head)
    return tuple(found)


def token_like(text: str) -> bool:
    """Whether a text has the form of a token or key that some service gives out."""
    return _TOKEN.fullmatch(text) is not None


def _line(argv: Sequence[str]) -> list[str]:
    """The words of a whole line that stands where only a program belongs, a slip that many make; none otherwise."""
    words = argv[0].split() if argv else []
    return words if len(words) > 1 else []


def _parted(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each argument as what may be shown of it, and the credential that follows, empty where there is none."""
    value_follows = False
    for argument in argv:
        if value_follows and not argument.startswith("-"):
            value_follows = False
            yield "", argument
            continue
        name, equals, value = argument.partition("=")
        option = argument.startswith("-") and credential_like(name)
        value_follows = option and not equals
        named = _SETTING.fullmatch(argument)
        if option and equals:
            yield f"{name}=", value
        elif named is not None and credential_named(named["name"]):
            yield argument[: named.start("value")], named["value"]
        elif token_like(value if argument.startswith("-") else argument):
            yield (f"{name}=", value) if argument.startswith("-") else ("", argument)
        else:
            yield argument, ""


def url_secrets(url: str) -> list[str]:
    """What `mask_url` takes out of a URL, and the password as it is without its encoding."""
    user = found[0][2:-1] if (found := _USER.search(url)) else ""
    query = url.partition("?")[2].partition("#")[0]
    values = [value for name, value in parse_qsl(query) if credential_like(name)]
    return [one for one in (user, unquote(user.partition(":")[2]), *values) if one]


def _bare(value: str) -> str:
    """A value without the scheme before it."""
    scheme, blank, rest = value.partition(" ")
    return rest if blank and scheme.isalpha() else value
