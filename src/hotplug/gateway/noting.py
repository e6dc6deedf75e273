"""What is noted of a request while it is answered: for its record and its span."""

from __future__ import annotations

from time import monotonic, time
from typing import Final

from hotplug.errors import CODES
from hotplug.gateway.message import Message, Raw, loads, split
from hotplug.gateway.records import CallRecord, Records
from hotplug.gateway.tracing import CallSpan

__all__ = ["Noting", "outcome_of"]

_RECORDED: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


class Noting:
    """Follows one request to its answer; a context manager.

    Args:
        records: Takes the record; None keeps none.
        span: The request's.
    """

    def __init__(self, records: Records | None, span: CallSpan, thread: str, message: Message) -> None:
        self.span = span
        self.server: str | None = None
        self.member: str | None = None
        self.projection: str | None = None
        self.input_schema: Raw | None = None
        self._records = records if message.method in _RECORDED else None
        self._thread = thread
        self._message = message
        self._at = time()
        self._began = monotonic()
        self._answer: Message | None = None
        self._refused = False

    def refused(self) -> None:
        """It was not passed on, because it isn't given or doesn't exist."""
        self._refused = True

    def answered(self, message: Message) -> None:
        """The answer, as the caller gets it."""
        self._answer = message

    def __enter__(self) -> Noting:
        self.span.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        answer = self._answer
        if self._refused:
            outcome = "refused"
        elif answer is None:
            outcome = "cancelled"
        else:
            outcome = outcome_of(answer)
        self.span.ended(outcome, member=self.member, server=self.server)
        self.span.__exit__(None, None, None)
        if self._records is None:
            return
        message = self._message
        self._records.add(
            CallRecord(
                kind=message.method or "",
                outcome=outcome,
                duration_ms=(monotonic() - self._began) * 1000,
                thread=self._thread,
                server=self.server,
                member=self.member,
                projection=self.projection,
                action_id=_action_of(answer),
                trace_id=self.span.trace_id,
                bytes_in=len(message.encode()),
                bytes_out=len(answer.encode()) if answer is not None else None,
                at=self._at,
            ),
            arguments=message.params.get("arguments"),
            result=answer.fields.get("result") if answer is not None else None,
            input_schema=self.input_schema,
        )


def outcome_of(answer: Message) -> str:
    """How a call ended, by its answer: `ok`, `tool_error`, `input_required`, or a code."""
    if answer.kind == "error":
        error = split(answer.fields["error"]) or {}
        data = error.get("data")
        return _code((split(data) if data is not None else None) or {}) or str(answer.error_code)
    result = answer.result
    if bytes(result.get("isError", b"false")) == b"true":
        structured = result.get("structuredContent")
        return _code((split(structured) if structured is not None else None) or {}) or "tool_error"
    return "input_required" if bytes(result.get("resultType", b"")) == b'"input_required"' else "ok"


def _code(fields: dict[str, Raw]) -> str | None:
    raw = fields.get("code")
    code = loads(raw) if raw is not None else None
    return code if isinstance(code, str) and code in CODES else None


def _action_of(answer: Message | None) -> str | None:
    """The action of the receipt in a result, if there is one."""
    if answer is None or b'"actionId"' not in answer.encode():
        return None
    structured = answer.result.get("structuredContent")
    fields = split(structured) if structured is not None else None
    receipt = split(fields["receipt"]) if fields and "receipt" in fields else None
    action = loads(receipt["actionId"]) if receipt and "actionId" in receipt else None
    return action if isinstance(action, str) else None
