"""Whether a value that stands in a file in plain is a credential, told by its name and its form."""

from __future__ import annotations

import re
from typing import Final

from hotplug.connect.masking import credential_like, mask_argv, mask_url

__all__ = ["argv_holds_secret", "looks_secret", "url_holds_secret"]

_SHORTEST: Final = 4
_HARMLESS: Final = re.compile(
    r"(?:_|-)(?:path|file|dir|folder|url|uri|host|port|method|mode|type|name|scheme|provider|ttl|expiry|timeout|"
    r"length|count|limit|header|ids?|enabled|required)$",
    re.IGNORECASE,
)
_WORDS: Final = frozenset(
    {"true", "false", "none", "null", "basic", "bearer", "oauth", "oauth2", "required", "optional"}
)
_TOKEN: Final = re.compile(
    r"(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}"
    r"|gh[opusr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}"
    r"|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{30,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|hpt_[\w-]{40,}"
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*",
    re.DOTALL,
)
_REFERENCE: Final = re.compile(r"\$\{[^}]*\}|\$\w+|secret:\S+|<[^<>]*>")


def looks_secret(name: str, value: str) -> bool:
    """Whether the value of a variable or header is probably a credential.

    A reference (`${TOKEN}`, `secret:name`) isn't one, nor is a switch or a path.
    """
    bare = value.partition(" ")[2] if value.partition(" ")[0].lower() in {"bearer", "basic", "token"} else value
    if len(bare) < _SHORTEST or bare.lower() in _WORDS or _REFERENCE.fullmatch(bare):
        return False
    if _TOKEN.fullmatch(bare):
        return True
    return credential_like(name) and not _HARMLESS.search(name)


def argv_holds_secret(argv: tuple[str, ...]) -> bool:
    """Whether a command line holds a credential: by an option's name, in a URL, or by its own form."""
    if any(_TOKEN.fullmatch(part.partition("=")[2] if part.startswith("-") else part) for part in argv):
        return True
    shown = mask_argv(argv)
    return any(one != other and not _REFERENCE.fullmatch(one) for one, other in zip(argv, shown, strict=True))


def url_holds_secret(url: str) -> bool:
    """Whether a URL holds a password, or a credential among its parameters."""
    return mask_url(url) != url
