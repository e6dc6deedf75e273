"""Every error that Hotplug raises.

```
HotplugError
├── ProfileError          a profile, an extension or a document is defined wrongly
│   └── CanonicalError    a value has no canonical JSON form
├── ProjectionError       a projection document is wrong, incomplete or drifted
├── ConfigError           a target, a settings file or a journey can't be used as it stands
├── StoreError            the store can't be opened, or is of a newer build
├── ConnectError          a server can't be reached, or what answers isn't MCP
│   └── AuthError         it answered that the credential isn't good enough
└── ConnectionFailed      a call was refused or failed; one class a wire code
    ├── InvalidArgument   NotFound   Ambiguous   StaleReference   Unavailable   Unsupported
    ├── Undeclared   Guarded   InDoubt   Conflict   PermissionDenied   RateLimited
    └── TooLarge   Timeout   Disconnected   Internal
```

A failed check or a denial is a value, not an exception; broken use and broken worlds raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = [
    "CODES",
    "Ambiguous",
    "AuthError",
    "CanonicalError",
    "ConfigError",
    "Conflict",
    "ConnectError",
    "ConnectionFailed",
    "Disconnected",
    "Guarded",
    "HotplugError",
    "InDoubt",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "PermissionDenied",
    "ProfileError",
    "ProjectionError",
    "RateLimited",
    "StaleReference",
    "StoreError",
    "Timeout",
    "TooLarge",
    "Unavailable",
    "Undeclared",
    "Unsupported",
    "failure",
]


class HotplugError(Exception):
    """The root of all errors of Hotplug: a message with the value seen, and a hint where one helps.

    Args:
        message: What was wrong, where, with the value seen.
        hint: What to do about it, in one sentence.
    """

    code: str = "error"
    """Stable, for programs; the wording of messages is not."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ProfileError(HotplugError):
    """A profile, an extension or one of their documents is defined wrongly."""

    code = "profile"


class CanonicalError(ProfileError):
    """A value has no canonical JSON form (RFC 8785); `path` says where."""

    code = "canonical"

    def __init__(self, message: str, *, path: str = "$", hint: str | None = None) -> None:
        super().__init__(f"{message} at {path}", hint=hint)
        self.path = path


class ProjectionError(HotplugError):
    """A projection document is wrong, incomplete or no longer fits its server."""

    code = "projection"


class ConfigError(HotplugError):
    """A target, a configuration file or a journey can't be used as it stands."""

    code = "config"


class StoreError(HotplugError):
    """The store can't be opened, read or written, or was made by a newer build."""

    code = "store"


class ConnectError(HotplugError):
    """A server can't be reached, or what answers isn't MCP.

    Args:
        target: The target as the caller wrote it.
        transport: `stdio`, `http` or `memory`.
        protocol: The protocol revision tried last, if it came so far.
        log: The last lines that the server wrote to standard error, or the last messages.
        cause: Which kind of cause, where it is known, for programs: `missing_command`, `exits`, `noise`, `hangs`,
            `revision`, `tls`, `auth`, `wrong_url`, `unreachable`.
    """

    code = "connect"

    def __init__(
        self,
        message: str,
        *,
        target: str | None = None,
        transport: str | None = None,
        protocol: str | None = None,
        log: tuple[str, ...] = (),
        hint: str | None = None,
        cause: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.cause = cause
        self.target = target
        self.transport = transport
        self.protocol = protocol
        self.log = log


class AuthError(ConnectError):
    """The server answered that the credential is missing or isn't good enough."""

    code = "auth"


class ConnectionFailed(HotplugError):
    """A call was refused or failed, with one of the codes of the wire.

    Args:
        message: What was wrong, for a person.
        details: Data for programs, by code: `matches` of `ambiguous`, `lost` of `unsupported`, `state`, ...
    """

    code: str = "internal"

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.details: dict[str, Any] = dict(details or {})

    def as_wire(self) -> dict[str, Any]:
        """The error as it stands in `structuredContent`: `{code, message, details?}`."""
        body: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.details:
            body["details"] = self.details
        return body


class InvalidArgument(ConnectionFailed):
    """The arguments don't fit; nothing was defaulted, nothing was tried."""

    code = "invalid_argument"


class NotFound(ConnectionFailed):
    """The target or ref names nothing here."""

    code = "not_found"


class Ambiguous(ConnectionFailed):
    """A locator matches several; `details["matches"]` lists them and none was chosen."""

    code = "ambiguous"


class StaleReference(ConnectionFailed):
    """The ref or frame is of something that has moved on."""

    code = "stale_reference"


class Unavailable(ConnectionFailed):
    """Found, but it can't accept this now: disabled, covered, locked."""

    code = "unavailable"


class Unsupported(ConnectionFailed):
    """An optional part or argument that this server doesn't offer, or can't do exactly (`details["lost"]`)."""

    code = "unsupported"


class Undeclared(ConnectionFailed):
    """No such part in what was declared."""

    code = "undeclared"


class Guarded(ConnectionFailed):
    """Destructive or costly, and the call carries no authorisation."""

    code = "guarded"


class InDoubt(ConnectionFailed):
    """It may or may not have been done: read before anything else, nothing repeats it by itself."""

    code = "in_doubt"


class Conflict(ConnectionFailed):
    """The same idempotency key with other arguments, or the thing changed since it was read."""

    code = "conflict"


class PermissionDenied(ConnectionFailed):
    """The server or the host doesn't allow it."""

    code = "permission_denied"


class RateLimited(ConnectionFailed):
    """Too many calls; `details["retryAfterMs"]` says when to try again."""

    code = "rate_limited"


class TooLarge(ConnectionFailed):
    """An argument or a result is over a limit."""

    code = "too_large"


class Timeout(ConnectionFailed):
    """The time limit passed; `details["state"]` is `unknown` where it may have been done."""

    code = "timeout"


class Disconnected(ConnectionFailed):
    """The connection ended; `details["state"]` is `unknown` where it may have been done."""

    code = "disconnected"


class Internal(ConnectionFailed):
    """The server's own fault, or an answer that can't be understood (raw text in `details`)."""

    code = "internal"


CODES: Final[Mapping[str, type[ConnectionFailed]]] = {
    cls.code: cls
    for cls in (
        InvalidArgument,
        NotFound,
        Ambiguous,
        StaleReference,
        Unavailable,
        Unsupported,
        Undeclared,
        Guarded,
        InDoubt,
        Conflict,
        PermissionDenied,
        RateLimited,
        TooLarge,
        Timeout,
        Disconnected,
        Internal,
    )
}
"""The wire codes and the class of each."""


def failure(code: str, message: str, details: Mapping[str, Any] | None = None) -> ConnectionFailed:
    """The exception of a wire code; an unknown code becomes `Internal` that keeps the code in its details."""
    cls = CODES.get(code)
    if cls is None:
        return Internal(message, details={**(details or {}), "code": code})
    return cls(message, details=details)
