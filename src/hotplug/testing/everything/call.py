"""A request for a tool or a prompt, and how one asks the client something while it is answered.

`Call.ask` is the same to a tool in both eras. A legacy client is asked over the open stream. A modern client gets an
`InputRequiredResult` and calls again: the tool then runs from its start, and what was answered before is in the
request's state, which the SDK seals.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.connection import allowed_log_levels
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    INVALID_PARAMS,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageResult,
    ElicitRequest,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    ProgressNotification,
    ProgressNotificationParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

__all__ = ["Answers", "Asking", "Call"]

Context = ServerRequestContext[Any, Any]
Answers = dict[str, dict[str, Any]]
"""What the client answered, by the names that it was asked with; each as the wire has it."""

_ANSWER_TO: Final[Mapping[str, type[BaseModel]]] = {
    "elicitation/create": ElicitResult,
    "sampling/createMessage": CreateMessageResult,
    "roots/list": ListRootsResult,
}


class Asking(Exception):
    """The client has to be asked before a result can be given: how a tool ends a round, and no failure."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("the client is asked")
        self.result = result


@dataclass(frozen=True, slots=True)
class Call:
    """One `tools/call` or `prompts/get`.

    Args:
        context: The SDK's.
        arguments: As they came; nothing has checked them.
        responses: What a modern client answered in this round.
        state: Of the round before, as we gave it out.
    """

    context: Context
    arguments: Mapping[str, Any]
    responses: Mapping[str, BaseModel] = field(default_factory=dict[str, BaseModel])
    state: str | None = None

    @property
    def is_modern(self) -> bool:
        """Whether the client speaks 2026-07-28 or later."""
        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def capabilities(self) -> ClientCapabilities | None:
        """What the client said it can do; None where it said nothing."""
        return self.context.session.client_capabilities

    def can(self, request: InputRequest) -> bool:
        """Whether the client declared what it takes to answer that request; True where it declared nothing at all."""
        said = self.capabilities
        if said is None:
            return True
        match request:
            case ElicitRequest():
                return said.elicitation is not None
            case CreateMessageRequest():
                return said.sampling is not None
            case ListRootsRequest():
                return said.roots is not None

    async def log(self, text: str) -> None:
        """Tell the client something at level info; nothing is sent where it didn't opt in (modern)."""
        if "info" not in allowed_log_levels(self.context.protocol_version, self.context.meta):
            return
        params = LoggingMessageNotificationParams(level="info", logger="everything", data=text)
        await self.context.session.send_notification(
            LoggingMessageNotification(params=params), related_request_id=self.context.request_id
        )

    async def progress(self, done: float, total: float, message: str) -> None:
        """Say how far the call is; nothing is sent where the client gave no token."""
        token = self.progress_token
        if token is None:
            return
        params = ProgressNotificationParams(progress_token=token, progress=done, total=total, message=message)
        await self.context.session.send_notification(
            ProgressNotification(params=params), related_request_id=self.context.request_id
        )

    @property
    def progress_token(self) -> str | int | None:
        """The client's, None where it wants no notes."""
        return (self.context.meta or {}).get("progress_token")

    async def ask(self, **requests: InputRequest) -> Answers:
        """The client's answers to all of these.

        Raises:
            Asking: A modern client hasn't answered all of them yet; whoever runs the tool passes its result on.
            MCPError: A legacy client refused, or the state is none of ours.
        """
        if not self.is_modern:
            return {name: await self._ask_now(request) for name, request in requests.items()}
        answers = self._answers()
        missing = {
            name: request
            for name, request in requests.items()
            if name not in answers or not _answers_it(request, answers[name])
        }
        if missing:
            raise Asking(InputRequiredResult(input_requests=missing, request_state=json.dumps(answers)))
        return {name: answers[name] for name in requests}

    async def _ask_now(self, request: InputRequest) -> dict[str, Any]:
        # Related to the call: sent on its own stream. The standalone one may not be open, and would lose it.
        related = ServerMessageMetadata(related_request_id=self.context.request_id)
        answer = await self.context.session.send_request(request, _ANSWER_TO[request.method], metadata=related)
        return _wire(answer)

    def _answers(self) -> Answers:
        earlier: Answers = {}
        if self.state is not None:
            try:
                earlier = json.loads(self.state)
            except ValueError as error:
                raise MCPError(code=INVALID_PARAMS, message="requestState is none that was given out here") from error
        return {**earlier, **{name: _wire(answer) for name, answer in self.responses.items()}}


def _wire(answer: BaseModel) -> dict[str, Any]:
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def _answers_it(request: InputRequest, answer: Mapping[str, Any]) -> bool:
    try:
        _ANSWER_TO[request.method].model_validate(answer, by_name=False)
    except ValidationError:
        return False
    return True
