"""A server of the SDK's, in both eras, whose tools change its lists and resources, wait, visit a URL and count."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    EmptyResult,
    InputRequiredResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ProgressNotification,
    ProgressNotificationParams,
    SubscribeRequestParams,
    TextContent,
    Tool,
    UnsubscribeRequestParams,
)

Context = ServerRequestContext[Any, Any]

VISIT = ElicitRequestURLParams(message="Go.", url="https://a.example/b", elicitation_id="e1")


class ChangingServer(Server[Any]):
    """See above.

    Args:
        waiting: Set when the tool `wait` began.
        stopped: Set when it was cancelled.
    """

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.waiting = asyncio.Event()
        self.stopped = asyncio.Event()
        self.subscribed: list[str] = []
        self.visited = False
        super().__init__(
            "changing",
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=self._list_resources,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=ListenHandler(self.bus),
        )

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> InitializationOptions:
        return super().create_initialization_options(NotificationOptions(tools_changed=True))

    async def _list(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        names = ("change", "touch", "wait", "visit", "require", "count")
        return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in names])

    async def _list_resources(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[])

    async def _subscribe(self, _: Context, params: SubscribeRequestParams) -> EmptyResult:
        self.subscribed.append(str(params.uri))
        return EmptyResult()

    async def _unsubscribe(self, _: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        self.subscribed.remove(str(params.uri))
        return EmptyResult()

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        modern = context.protocol_version == "2026-07-28"
        match params.name:
            case "change" if modern:
                await self.bus.publish(ToolsListChanged())
            case "change":
                await context.session.send_tool_list_changed()
            case "touch" if modern:
                await self.bus.publish(ResourceUpdated("x://a"))
            case "touch":
                await context.session.send_resource_updated("x://a")
            case "wait":
                self.waiting.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.stopped.set()
            case "visit" if modern:
                if not params.input_responses:
                    return InputRequiredResult(input_requests={"go": ElicitRequest(params=VISIT)}, request_state="s")
                return _said(str(params.input_responses["go"]))
            case "visit":
                answer: ElicitResult = await context.session.elicit_url(
                    VISIT.message, VISIT.url, "e1", related_request_id=context.request_id
                )
                return _said(str(answer))
            case "require":
                if not self.visited:
                    self.visited = True
                    raise UrlElicitationRequiredError([VISIT])
            case _:
                token = (context.meta or {}).get("progress_token")
                for done in range(1, 4):
                    note = ProgressNotificationParams(progress_token=token or 0, progress=done, total=3)
                    await context.session.send_notification(
                        ProgressNotification(params=note), related_request_id=context.request_id
                    )
        return _said("done")


def _said(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)])
