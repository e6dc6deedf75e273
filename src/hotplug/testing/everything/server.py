"""The server, put together from its tools, prompts and resources."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

from hotplug.testing.everything.call import Asking, Call
from hotplug.testing.everything.contents import CONTENT_TOOLS
from hotplug.testing.everything.notices import notice_tools
from hotplug.testing.everything.prompts import PROMPTS
from hotplug.testing.everything.questions import QUESTION_TOOLS
from hotplug.testing.everything.replay import Replay
from hotplug.testing.everything.resources import RESOURCES, TEMPLATES, read
from hotplug.testing.everything.tool import EverythingTool, text

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["everything_app", "everything_server"]

_NAME: Final = "hotplug-everything"
_RETRY_MS: Final = 100
_WORDS: Final = ("paris", "park", "party", "testing")

_log = logging.getLogger(__name__)

Era = Literal["legacy", "modern"]
Context = ServerRequestContext[Any, Any]
Page = PaginatedRequestParams | None


def everything_app(only: Era | None = None) -> Starlette:
    """The server over streamable HTTP at `/mcp`; a client that lost a stream can read on."""
    return everything_server(only).streamable_http_app(event_store=Replay(), retry_interval=_RETRY_MS)


def everything_server(only: Era | None = None) -> Server[Any]:
    """The server; each has subscriptions and a key for request states of its own.

    Args:
        only: Refuse the first request of the other era, as a server does that doesn't know it.
    """
    bus = InMemorySubscriptionBus()
    tools = {tool.name: tool for tool in (*CONTENT_TOOLS, *QUESTION_TOOLS, *notice_tools(bus))}

    async def list_tools(_: Context, __: Page) -> ListToolsResult:
        return ListToolsResult(tools=[tool.listed() for tool in tools.values()])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no tool {params.name!r}")
        return await _run(
            tool, Call(context, params.arguments or {}, params.input_responses or {}, params.request_state)
        )

    server = Server[Any](
        _NAME,
        version="1.0.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read,
        on_subscribe_resource=_subscribe,
        on_unsubscribe_resource=_unsubscribe,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
    )
    # Not by `on_set_logging_level`, which warns that the era that has it is the older one.
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=_NAME))
    if only is not None:
        server.middleware.insert(0, _without("initialize" if only == "modern" else "server/discover"))
    return server


def _without(method: str) -> Any:
    async def refuse(context: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
        if context.method == method:
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=method)
        return await call_next(context)

    return refuse


async def _run(tool: EverythingTool, call: Call) -> CallToolResult | InputRequiredResult:
    try:
        given = await tool.run(call)
    except Asking as asking:
        return asking.result
    except MCPError:
        raise
    except Exception as error:
        _log.info("%s failed: %r", tool.name, error)
        return CallToolResult(content=[text(str(error))], is_error=True)
    return CallToolResult(content=[text(given)] if isinstance(given, str) else list(given))


async def _list_prompts(_: Context, __: Page) -> ListPromptsResult:
    return ListPromptsResult(prompts=[prompt.listed() for prompt in PROMPTS])


async def _get_prompt(context: Context, params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
    call = Call(context, params.arguments or {}, params.input_responses or {}, params.request_state)
    prompt = next((prompt for prompt in PROMPTS if prompt.name == params.name), None)
    if prompt is None:
        raise MCPError(code=INVALID_PARAMS, message=f"there is no prompt {params.name!r}")
    if missing := prompt.missing(call):
        raise MCPError(code=INVALID_PARAMS, message=f"{prompt.name} needs {', '.join(missing)}")
    try:
        return GetPromptResult(description=prompt.description, messages=await prompt.messages(call))
    except Asking as asking:
        return asking.result


async def _list_resources(_: Context, __: Page) -> ListResourcesResult:
    return ListResourcesResult(resources=list(RESOURCES))


async def _list_templates(_: Context, __: Page) -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult(resource_templates=list(TEMPLATES))


async def _read(_: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    return read(params.uri)


async def _subscribe(_: Context, __: SubscribeRequestParams) -> EmptyResult:
    """No resource here ever changes, so there is nothing to remember."""
    return EmptyResult()


async def _unsubscribe(_: Context, __: UnsubscribeRequestParams) -> EmptyResult:
    return EmptyResult()


async def _set_level(_: Context, __: SetLevelRequestParams) -> EmptyResult:
    """The only level that is ever sent is info, whatever is asked for."""
    return EmptyResult()


async def _complete(_: Context, params: CompleteRequestParams) -> CompleteResult:
    fitting = [word for word in _WORDS if word.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=fitting, total=len(fitting), has_more=False))
