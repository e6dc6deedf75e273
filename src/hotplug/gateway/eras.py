"""What the two protocol eras differ in, as far as a gateway decides by it: revisions, required envelope, statuses.

The check of a modern request is ours, because the SDK's can't be imported without a second of start-up; a property test
holds it to the SDK's, answer for answer (`mcp.shared.inbound`, protocol revision 2026-07-28).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hotplug.gateway.link import Era
from hotplug.gateway.message import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, Message, loads

__all__ = [
    "CAPABILITIES_META",
    "CLIENT_META",
    "HANDSHAKE_VERSIONS",
    "HEADER_MISMATCH",
    "LOG_LEVEL_META",
    "MODERN_VERSIONS",
    "NAMED_BY",
    "SERVER_META",
    "SUBSCRIPTION_META",
    "VERSION_META",
    "Rejection",
    "check_modern",
    "decode_header",
    "duplicated_header",
    "encode_header",
    "era_of_header",
    "http_status",
    "unsupported",
]

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS: Final = ("2026-07-28",)

VERSION_META: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_META: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_META: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_META: Final = "io.modelcontextprotocol/logLevel"
SERVER_META: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_META: Final = "io.modelcontextprotocol/subscriptionId"

HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

NAMED_BY: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that `Mcp-Name` repeats, by method."""

_STATUS: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
_ROUTING: Final = frozenset({"mcp-protocol-version", "mcp-method", "mcp-name"})
_ENCODED: Final = re.compile(r"^=\?base64\?(?P<payload>.*)\?=$")
_SAFE: Final = re.compile(r"[\x20-\x7E]*")


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a request isn't served, as the JSON-RPC error that says it."""

    code: int
    message: str
    data: Any = None

    def answer(self, id_: bytes | None) -> Message:
        """The error as the answer to a request."""
        return Message.error_of(id_, self.code, self.message, self.data)


def era_of_header(version: str | None) -> Era:
    """The era that `MCP-Protocol-Version` means. Unknown ones are modern: they are told there what is supported."""
    return "legacy" if version is None or version in HANDSHAKE_VERSIONS else "modern"


def http_status(code: int | None) -> int:
    """The status of HTTP that goes with an error's code in the modern era; None (a result) and other codes: 200."""
    return 200 if code is None else _STATUS.get(code, 200)


def encode_header(value: str) -> str:
    """A value for an HTTP field: as it is, or in the protocol's base64 form where it wouldn't survive."""
    if _SAFE.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode('ascii')}?="


def decode_header(value: str | None) -> str | None:
    """The value that a field carries; None where it is missing or its base64 form is broken."""
    if value is None:
        return None
    found = _ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        decoded = base64.b64decode(found["payload"], validate=True)
        canonical = base64.b64encode(decoded).decode("ascii") == found["payload"]
        return decoded.decode() if canonical else None
    except (binascii.Error, ValueError):
        return None


def duplicated_header(names: Iterable[str]) -> str | None:
    """A routing header that stands there twice: two readers could take different ones."""
    seen: set[str] = set()
    for name in names:
        if name in _ROUTING:
            if name in seen:
                return name
            seen.add(name)
    return None


def check_modern(
    message: Message, headers: Mapping[str, str] | None, *, supported: Sequence[str] = MODERN_VERSIONS
) -> Rejection | None:
    """Why a modern request can't be served; None where nothing is wrong with its envelope.

    Args:
        headers: Of HTTP, by lower-case name; None over standard streams, where there are none to agree with.
    """
    meta = message.meta
    if "_meta" not in message.params or bytes(message.params["_meta"])[:1] != b"{":
        return Rejection(
            INVALID_PARAMS,
            f"params._meta must be an object carrying the required {VERSION_META!r} and {CAPABILITIES_META!r} "
            "envelope keys",
        )
    missing = [key for key in (VERSION_META, CAPABILITIES_META) if key not in meta]
    if missing:
        return Rejection(INVALID_PARAMS, f"params._meta is missing the required envelope key(s): {', '.join(missing)}")
    version = loads(meta[VERSION_META])
    if headers is not None:
        mismatch = _mismatch(message, headers, version)
        if mismatch is not None:
            return Rejection(HEADER_MISMATCH, mismatch)
    if not isinstance(version, str):
        return Rejection(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in supported:
        return unsupported(version, supported)
    return None


def unsupported(version: str, supported: Sequence[str] = MODERN_VERSIONS) -> Rejection:
    """The rejection of a revision that isn't spoken here."""
    return Rejection(
        UNSUPPORTED_VERSION, "Unsupported protocol version", {"supported": list(supported), "requested": version}
    )


def _mismatch(message: Message, headers: Mapping[str, str], version: Any) -> str | None:
    given = headers.get("mcp-protocol-version")
    if given is None or given != version:
        return "mcp-protocol-version header does not match the request envelope's protocol version"
    if headers.get("mcp-method") != message.method:
        return "mcp-method header does not match the request body's method"
    key = NAMED_BY.get(message.method or "")
    if key is not None:
        value = message.value(key)
        if value is not None and decode_header(headers.get("mcp-name")) != value:
            return f"mcp-name header does not match the request body's {key!r} parameter"
    return None
