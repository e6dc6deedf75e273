"""Why a connection didn't come up, in words: "cannot connect" without a reason is this field's most frequent pain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from hotplug.errors import AuthError, ConnectError, HotplugError

if TYPE_CHECKING:
    from hotplug.connect.http import Exchange
    from hotplug.connect.stdio import Child
    from hotplug.connect.upstream_log import UpstreamLog

__all__ = ["advice", "explain", "refusal", "unpacked"]

_HINTS: Final = (
    ("No module named 'mcp.server.fastmcp'", "it was written for mcp 1.x: uvx --with 'mcp<2' PACKAGE"),
    ("object has no attribute 'list_tools'", "it was written for mcp 1.x: uvx --with 'mcp<2' PACKAGE"),
    ("npm error 404", "npm has no such package or version"),
    ("npm ERR! 404", "npm has no such package or version"),
    ("No solution found when resolving", "the package or version doesn't exist, or its requirements can't be met"),
    ("ENOTFOUND", "the registry's name can't be resolved: check the network"),
    ("EACCES", "it may not read or write something: check permissions"),
)
_PATH: Final = "is the path right? it is often /mcp"
_OLD: Final = "it may speak only the HTTP+SSE transport of 2024-11-05, or the path is wrong"


def unpacked(error: BaseException) -> BaseException:
    """The one exception that matters in nested groups: ours first, then the first that isn't a mere closing."""
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, HotplugError):
            return leaf
    return next((leaf for leaf in leaves if type(leaf).__name__ not in _CLOSING), leaves[0] if leaves else error)


_CLOSING: Final = frozenset({"ClosedResourceError", "BrokenResourceError", "EndOfStream", "CancelledError"})


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return [leaf for each in inner for leaf in _leaves(each)]
    return [error]


def explain(
    error: BaseException, child: Child | None, exchange: Exchange | None, log: UpstreamLog, *, died: bool
) -> tuple[str, str | None, str | None]:
    """The cause in one sentence, what to do about it where that is known, and which kind of cause it is.

    Args:
        died: Whether the child ended before we ended it.
    """
    words = _words(error)
    hint = error.hint if isinstance(error, HotplugError) else None
    cause = error.cause if isinstance(error, ConnectError) else None
    if child is not None:
        if died:
            cause = cause or ("noise" if child.problem and log.first_noise else "exits")
            words = child.ending() + ("" if child.answered else " before it answered")
        elif isinstance(error, TimeoutError):
            cause = "hangs"
            words = f"it is running and gave {words}"
        if log.first_noise and not child.answered:
            words += f"; it wrote to its standard output what is no message: {log.first_noise}"
            hint = hint or "is it an MCP server on standard streams?"
            cause = "noise" if cause == "hangs" else cause
        hint = hint or advice(log)
    elif exchange is not None and exchange.failure is None and exchange.status is not None:
        if exchange.status >= 400 and not isinstance(error, HotplugError):
            words = f"HTTP {exchange.status}" + ("" if words == "Server returned an error response" else f", {words}")
        if not isinstance(error, AuthError):
            said, advised, kind = _answered(words, exchange.status, exchange.content_type)
            words, hint, cause = said, hint or advised, cause or kind
    elif exchange is not None and isinstance(error, TimeoutError):
        cause = "hangs"
    return words, hint, cause


def _answered(words: str, status: int, media: str) -> tuple[str, str | None, str | None]:
    """What an answer of HTTP that can't be used means: words, what to do, which cause."""
    if status == 405:
        return words, _OLD, "wrong_url"
    if status == 404 or (status < 400 and media.startswith("text/html")):
        return words, _PATH, "wrong_url"
    if status == 429:
        return words, "it has had too many requests: wait, then try again", "unreachable"
    if status >= 500:
        return words, "the server, or a proxy before it, fails by itself: its own log says why", "unreachable"
    if status < 400 and words.startswith("Failed to parse JSON response"):
        return "it answers with JSON that is no message of MCP", _PATH, "wrong_url"
    if status < 400 and words.startswith("SSE stream ended"):
        return words, _OLD, "wrong_url"
    return words, None, None


def advice(log: UpstreamLog) -> str | None:
    """What to do about a known cause that the server's last lines show."""
    lines = "\n".join(log.tail())
    return next((words for sign, words in _HINTS if sign in lines), None)


def refusal(status: int, challenge: str | None) -> str:
    """The refusal of a credential in words: with the scheme that is asked for."""
    scheme = (challenge or "").split(" ", 1)[0].strip(",")
    if status == 401:
        return f"HTTP 401, it wants a credential{f' ({scheme})' if scheme else ''}"
    return "HTTP 403, the credential isn't good enough"


def _words(error: BaseException) -> str:
    if isinstance(error, HotplugError):
        return error.message
    if isinstance(error, TimeoutError):
        return str(error) or "no answer to the handshake in time"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    text = " ".join(str(error).split())
    return text[:500] if text else type(error).__name__
