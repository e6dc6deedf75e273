"""What the suite leaves open of the everything server: standard streams, and each question in the other era too."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Literal

import pytest
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client import ClientRequestContext
from mcp.client.stdio import stdio_client

from hotplug.testing.everything import everything_server

pytestmark = pytest.mark.anyio

Era = Literal["legacy", "2026-07-28"]
ERAS: tuple[Era, ...] = ("legacy", "2026-07-28")


async def fill_in(_: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    assert isinstance(params, types.ElicitRequestFormParams)
    names = params.requested_schema["properties"]
    return types.ElicitResult(action="accept", content={name: f"my {name}" for name in names})


async def answer(_: ClientRequestContext, __: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text="Paris"), model="m")


async def roots(_: ClientRequestContext) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///one"), types.Root(uri="file:///two")])


def client(era: Era, server: Any = None) -> Client:
    with warnings.catch_warnings():
        # The SDK warns of what the newer era leaves out; here it is asked for on purpose.
        warnings.simplefilter("ignore")
        return Client(
            server or everything_server(),
            mode=era,
            elicitation_callback=fill_in,
            sampling_callback=answer,
            list_roots_callback=roots,
        )


def text_of(result: types.CallToolResult) -> str:
    assert not result.is_error, result
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("test_elicitation", 'User response: action=accept, content={"response": "my response"}'),
        ("test_sampling", "LLM response: Paris"),
        ("test_input_required_result_list_roots", "The client has 2 roots."),
        ("test_input_required_result_multi_round", "my name likes my color."),
        ("test_input_required_result_multiple_inputs", "Paris (my name, 3 answers)"),
        ("test_input_required_result_capabilities", "Asked for and answered: ask, roots, sample."),
    ],
)
async def test_a_question_is_answered_in_both_eras(era: Era, tool: str, said: str) -> None:
    async with client(era) as connected:
        assert text_of(await connected.call_tool(tool, {})) == said


@pytest.mark.parametrize("era", ERAS)
async def test_a_prompt_asks_in_both_eras(era: Era) -> None:
    async with client(era) as connected:
        prompt = await connected.get_prompt("test_input_required_result_prompt")
    assert prompt.messages[0].content == types.TextContent(type="text", text="Use the following context: my context")


async def test_what_the_client_cannot_do_is_not_asked() -> None:
    async with Client(everything_server(), mode="2026-07-28", elicitation_callback=fill_in) as connected:
        result = await connected.call_tool("test_input_required_result_capabilities", {})
    assert text_of(result) == "Asked for and answered: ask."


@pytest.mark.parametrize("era", ERAS)
async def test_unknown_names_are_errors_of_the_protocol(era: Era) -> None:
    async with client(era) as connected:
        with pytest.raises(MCPError, match="there is no tool 'nowhere'"):
            await connected.call_tool("nowhere", {})
        with pytest.raises(MCPError, match="there is no prompt 'nowhere'"):
            await connected.get_prompt("nowhere")
        with pytest.raises(MCPError, match="test_prompt_with_arguments needs arg2"):
            await connected.get_prompt("test_prompt_with_arguments", {"arg1": "x"})
        with pytest.raises(MCPError, match="there is no resource 'test://nowhere'"):
            await connected.read_resource("test://nowhere")


@pytest.mark.parametrize("era", ERAS)
async def test_it_serves_standard_streams(era: Era) -> None:
    transport = stdio_client(StdioServerParameters(command=sys.executable, args=["-m", "hotplug.testing.everything"]))
    async with client(era, transport) as connected:
        listed = {tool.name for tool in (await connected.list_tools()).tools}
        assert {"test_simple_text", "json_schema_2020_12_tool"} <= listed
        assert text_of(await connected.call_tool("test_elicitation", {"message": "?"})).startswith("User response")
