"""What a failure looks like from outside: an exit code, and one block of text or one JSON object on stderr."""

from __future__ import annotations

import json
import sys
import traceback
from enum import IntEnum
from typing import Any, Final

from hotplug.cli.output import Format
from hotplug.cli.printing import block, cut, safe_json
from hotplug.errors import (
    AuthError,
    ConfigError,
    ConnectError,
    ConnectionFailed,
    HotplugError,
    ProfileError,
    ProjectionError,
    StoreError,
)

__all__ = ["ERROR_SCHEMA", "Exit", "exit_code", "particulars", "report"]

ERROR_SCHEMA: Final = "hotplug.error/1"


class Exit(IntEnum):
    """What the exit codes mean."""

    YES = 0
    NO = 1
    """A check failed, something was denied or made worse."""
    USAGE = 2
    """The command line or a configuration can't be used as it stands."""
    AUTH = 3
    UNREACHABLE = 4
    """Nothing answered, or what answers isn't MCP."""
    INCOMPLETE = 5
    """It could not be decided."""
    BUG = 70
    """Ours."""
    INTERRUPTED = 130
    PIPE = 141
    """Whoever read stdout went away; the shell's own number for it."""


_CALLS: Final = {
    "invalid_argument": Exit.USAGE,
    "disconnected": Exit.UNREACHABLE,
    "in_doubt": Exit.INCOMPLETE,
    "timeout": Exit.INCOMPLETE,
}
"""A failed call is a no, but for these codes of the wire."""

_CLASSES: Final[tuple[tuple[type[HotplugError], Exit], ...]] = (
    (AuthError, Exit.AUTH),
    (ConnectError, Exit.UNREACHABLE),
    (ProfileError, Exit.USAGE),
    (ProjectionError, Exit.USAGE),
    (ConfigError, Exit.USAGE),
    (StoreError, Exit.USAGE),
)


def exit_code(error: HotplugError) -> Exit:
    """The exit code of an error of ours; one that no row names is a bug."""
    if isinstance(error, ConnectionFailed):
        if error.details.get("state") == "unknown":
            return Exit.INCOMPLETE
        return _CALLS.get(error.code, Exit.NO)
    return next((code for kind, code in _CLASSES if isinstance(error, kind)), Exit.BUG)


def report(
    code: str,
    message: str,
    *,
    hint: str | None,
    form: Format,
    more: dict[str, Any] | None = None,
    trace: BaseException | None = None,
) -> None:
    """Write one error to stderr.

    Args:
        more: Further members of the document; in text, one line each.
        trace: The exception whose traceback is wanted as well.
    """
    lines = [] if trace is None else "".join(traceback.format_exception(trace)).splitlines()
    if form is not Format.TEXT:
        document: dict[str, Any] = {"schema": ERROR_SCHEMA, "code": code, "message": message}
        if hint:
            document["hint"] = hint
        document |= more or {}
        if lines:
            document["traceback"] = lines
        sys.stderr.write(safe_json(json.dumps(document, default=str)) + "\n")
        return
    written = [*lines, f"error: {message}"]
    for name, value in (more or {}).items():
        if isinstance(value, (list, tuple)):
            written += [f"  {name}:", *(f"    {one}" for one in value)]  # pyright: ignore[reportUnknownVariableType]
        else:
            written.append(f"  {name}: {value if isinstance(value, str) else json.dumps(value, default=str)}")
    if hint:
        written.append(f"hint: {hint}")
    encoding = sys.stderr.encoding or "utf-8"
    text = block(line for one in written for line in _continued(one)) + "\n"
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _continued(text: str) -> list[str]:
    """A text of several lines with all but the first marked: none of them passes for one of ours."""
    first, *others = text.split("\n")
    return [first, *(f"  | {line}" for line in others)]


def particulars(error: HotplugError) -> dict[str, Any]:
    """What an error knows besides its message: the target and transport of a connection, the details of a call."""
    if isinstance(error, ConnectError):
        known = {
            "target": error.target,
            "transport": error.transport,
            "protocol": error.protocol,
            "cause": error.cause,
            "log": [cut(line) for line in error.log],
        }
        return {name: value for name, value in known.items() if value}
    if isinstance(error, ConnectionFailed) and error.details:
        details = dict(error.details)
        if isinstance(details.get("log"), list):
            details["log"] = [cut(str(line)) for line in details["log"]]
        return {"details": details}
    return {}
