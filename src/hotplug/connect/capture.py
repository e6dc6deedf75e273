"""Answers as they came: the SDK's session checks and reshapes what it hands over, and one odd item costs all.

Its dispatcher sees them before that. What a caller wants to see unchanged, it captures.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestId

__all__ = ["CAPTURED", "CapturingDispatcher"]

CAPTURED: Final[ContextVar[list[dict[str, Any]] | None]] = ContextVar("hotplug_captured", default=None)
"""Where the answers to the requests of the current context are kept."""


class CapturingDispatcher(JSONRPCDispatcher[TransportContext]):
    """The SDK's dispatcher; keeps each answer in `CAPTURED` before anybody checks it."""

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """Sends a request and waits for its answer.

        Raises:
            MCPError: As the SDK's.
        """
        raw = await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)
        captured = CAPTURED.get()
        if captured is not None:
            captured.append(raw)
        return raw
