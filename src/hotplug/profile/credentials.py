"""Credentials by the names under which they stand: in queries, paths, headers, columns, keys."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

__all__ = ["REDACTED", "USERINFO", "credential_name", "redact_parameters", "redact_query"]

REDACTED: Final = "[redacted]"
"""What stands in place of a value that may not be shown."""

_CREDENTIAL_PARTS: Final = (
    "authorization", "bearer", "cookie", "token", "secret", "passw", "passphrase", "pwd", "apikey", "accesskey",
    "privatekey", "session", "sessid", "credential", "signature", "jwt", "assertion", "samlresponse", "samlrequest",
)  # fmt: skip
_CREDENTIAL_WORDS: Final = frozenset({"auth", "hmac", "key", "otp", "pass", "pat", "pin", "sid", "sig", "ticket"})
_WORD_EDGE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
USERINFO: Final = re.compile(r"(?<=://)[^\s/?#@]{1,512}@")
"""The user name and password of an address within a text."""


def credential_name(name: str) -> bool:
    """Whether a query parameter, header, key or column of this name usually holds a credential.

    Goes by the words of the name, however they are joined: `accessToken`, `X-Api-Key`, `PHPSESSID`, `user_password`.
    `key`, `sid`, `auth` and the like count only as the whole name.
    """
    joined = "".join(_WORD_EDGE.split(name)).lower()
    return joined in _CREDENTIAL_WORDS or any(part in joined for part in _CREDENTIAL_PARTS)


def redact_parameters(path: str) -> str:
    """Path parameters (`;jsessionid=…`) of credential-like names without their values."""
    if ";" not in path:
        return path
    return "/".join(
        ";".join([first, *(_redact_pair(pair) for pair in rest)])
        for first, *rest in (segment.split(";") for segment in path.split("/"))
    )


def redact_query(query: str) -> str:
    """A query with `[redacted]` for the values of credential-like names, and of what itself holds a credential."""
    parts = re.split(r"([&;])", query)
    # The redirect of OAuth carries its code beside a state; a `code` alone is as often a country's.
    is_grant = {"code", "state"} <= {unquote_plus(part.partition("=")[0]).lower() for part in parts}
    return "".join(part if part in "&;" else _redact_pair(part, is_grant=is_grant) for part in parts)


def _redact_pair(pair: str, *, is_grant: bool = False) -> str:
    name, equals, value = pair.partition("=")
    if not equals or not value or value == REDACTED:
        return pair
    said = unquote_plus(name)
    if credential_name(said) or (is_grant and said.lower() in {"code", "state"}) or _holds_credential(value):
        return f"{name}={REDACTED}"
    return pair


def _holds_credential(value: str) -> bool:
    """Whether a value is itself an address that carries one: `next=/login?token=…`, `https://user:pass@host`."""
    for _ in range(3):
        if "://" in value and USERINFO.search(value):
            return True
        pairs = re.split(r"[?&;#]", value)[1:]
        if any(credential_name(name) and rest for name, _, rest in (pair.partition("=") for pair in pairs)):
            return True
        decoded = unquote_plus(value)
        if decoded == value:
            return False
        value = decoded
    return False
