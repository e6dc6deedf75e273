"""Whether a value that stands in a file in plain is a credential, told by its name and its form."""

from __future__ import annotations

import re
from typing import Final

from hotplug.connect.masking import argv_secrets, credential_named, token_like, url_secrets

__all__ = ["argv_holds_secret", "looks_secret", "url_holds_secret"]

_SHORTEST: Final = 4
_WORDS: Final = frozenset(
    {"true", "false", "none", "null", "basic", "bearer", "oauth", "oauth2", "required", "optional"}
)
_REFERENCE: Final = re.compile(r"\$\{[^}]*\}|\$\w+|secret:\S+|<[^<>]*>")


def looks_secret(name: str, value: str) -> bool:
    """Whether the value of a variable or header is probably a credential.

    A reference (`${TOKEN}`, `secret:name`) isn't one, nor is a switch or a path.
    """
    bare = value.partition(" ")[2] if value.partition(" ")[0].lower() in {"bearer", "basic", "token"} else value
    if len(bare) < _SHORTEST or bare.lower() in _WORDS or _REFERENCE.fullmatch(bare):
        return False
    if token_like(bare) or ("://" in bare and url_holds_secret(bare)):
        return True
    return credential_named(name)


def argv_holds_secret(argv: tuple[str, ...]) -> bool:
    """Whether a command line holds a credential: by the name before it, in a URL, or by its own form."""
    return bool(argv_secrets(argv))


def url_holds_secret(url: str) -> bool:
    """Whether a URL holds a password, or a credential among its parameters."""
    return bool(url_secrets(url))
