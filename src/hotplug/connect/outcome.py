"""What an error says about a call: the server's answer, HTTP's refusal, or the end of the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hotplug.connect.connection import Connection
from hotplug.connect.failures import refusal
from hotplug.errors import AuthError, ConnectionFailed, Disconnected, Internal, RateLimited, TooLarge, Unavailable

if TYPE_CHECKING:
    from mcp import MCPError

    from hotplug.connect.http import Exchange

__all__ = ["raise_if_gone"]

_CLOSED: Final = -32000
_FOLDED: Final = "Server returned an error response"


def raise_if_gone(
    error: MCPError, live: Connection, exchange: Exchange | None, what: str, *, read: bool = False
) -> None:
    """Raises unless the error is the server's own answer.

    Args:
        exchange: What HTTP said to this call's requests.
        what: The tool or method, for the message.
        read: It changes nothing, so there is nothing whose state could be unknown.

    Raises:
        Disconnected: `details["state"]` is `not_sent` or `unknown`; none for a read.
        TooLarge: The answer was longer than a message may be, which ends the connection.
        AuthError, RateLimited, TooLarge, Unavailable, Internal: HTTP said so.
    """
    try:
        _raise_if_gone(error, live, exchange, what, "got no answer" if read else "may or may not have been done")
    except ConnectionFailed as failed:
        if read and failed.details.get("state") == "unknown":
            failed.details.pop("state", None)
        raise


def _raise_if_gone(error: MCPError, live: Connection, exchange: Exchange | None, what: str, open_: str) -> None:
    if exchange is not None and exchange.failure is None:
        _raise_for_status(error, live, exchange, what)
    if not _ended(error, live, exchange):
        return
    unsent = exchange is not None and exchange.unsent
    details: dict[str, Any] = {"state": "not_sent" if unsent else "unknown"}
    if log := live.log.tail(5):
        details["log"] = list(log)
    reason = (exchange.failure or error.message) if exchange is not None else live.ending()
    done = "wasn't sent" if unsent else open_
    if live.child is not None and live.child.too_large is not None:
        details["limitBytes"] = live.child.too_large
        raise TooLarge(
            live.mask(f"{live.name} answered more than can be taken ({reason}): {what} {done}"), details=details
        ) from None
    raise Disconnected(
        live.mask(f"the connection to {live.name} ended ({reason}): {what} {done}"), details=details
    ) from None


def _ended(error: MCPError, live: Connection, exchange: Exchange | None) -> bool:
    if exchange is not None and exchange.failure is not None:
        return True
    if error.code != _CLOSED:
        return False
    # A server may use this code for errors of its own; the SDK's words for an end are these.
    return live.lost or error.message == "Connection closed" or error.message.startswith("SSE stream")


def _raise_for_status(error: MCPError, live: Connection, exchange: Exchange, what: str) -> None:
    status = exchange.status
    if status is None or status < 400:
        return
    details: dict[str, Any] = {"status": status}
    match status:
        case 401 | 403:
            raise AuthError(
                f"{live.name} refused {what}: {refusal(status, exchange.challenge)}",
                target=live.name,
                transport="http",
                protocol=live.session.protocol_version if live.session else None,
            ) from None
        case 400 | 404 if live.era == "legacy" and (status == 404 or "session" in error.message.lower()):
            # Its session is gone, and with it this connection; the request was refused, not begun.
            live.stop.set()
            raise Disconnected(
                f"{live.name} has ended the session: {what} wasn't done", details={**details, "state": "not_sent"}
            ) from None
        case 413:
            raise TooLarge(f"{live.name} refused the size of {what}", details=details) from None
        case 429:
            if exchange.retry_after_ms is not None:
                details["retryAfterMs"] = exchange.retry_after_ms
            raise RateLimited(f"{live.name} has had too many calls", details=details) from None
        case _ if error.message != _FOLDED:
            return  # it came with a JSON-RPC error of its own
        case 502 | 504:
            details["state"] = "unknown"
            raise Disconnected(f"a gateway before {live.name} answered {what} with HTTP {status}", details=details)
        case 503:
            raise Unavailable(f"{live.name} answered {what} with HTTP 503", details={**details, "state": "unknown"})
        case _:
            details["state"] = "unknown"
            raise Internal(f"{live.name} answered {what} with HTTP {status}", details=details) from None
