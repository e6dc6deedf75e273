"""Prompts: without and with arguments, with a picture and a resource in them, and one that asks the client first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from mcp_types import (
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextResourceContents,
)

from hotplug.testing.everything.call import Call
from hotplug.testing.everything.questions import entered, form, one_field
from hotplug.testing.everything.samples import PNG
from hotplug.testing.everything.tool import text

__all__ = ["PROMPTS", "EverythingPrompt"]

Messages = Sequence[ContentBlock]


@dataclass(frozen=True, slots=True)
class EverythingPrompt:
    """A prompt.

    Args:
        name: On the wire.
        description: On the wire.
        run: Gives what the user says, a message for each block.
        arguments: Names and descriptions; all of them have to be given.
    """

    name: str
    description: str
    run: Callable[[Call], Awaitable[Messages]]
    arguments: tuple[tuple[str, str], ...] = ()

    def listed(self) -> Prompt:
        """As `prompts/list` shows it."""
        arguments = [
            PromptArgument(name=name, description=description, required=True) for name, description in self.arguments
        ]
        return Prompt(name=self.name, description=self.description, arguments=arguments)

    def missing(self, call: Call) -> list[str]:
        """The arguments that weren't given."""
        return [name for name, _ in self.arguments if name not in call.arguments]

    async def messages(self, call: Call) -> list[PromptMessage]:
        """What it says."""
        return [PromptMessage(role="user", content=block) for block in await self.run(call)]


async def _simple(_: Call) -> Messages:
    return [text("This is a simple prompt for testing.")]


async def _with_arguments(call: Call) -> Messages:
    first, second = call.arguments["arg1"], call.arguments["arg2"]
    return [text(f"Prompt with arguments: arg1='{first}', arg2='{second}'")]


async def _with_resource(call: Call) -> Messages:
    resource = TextResourceContents(
        uri=str(call.arguments["resourceUri"]),
        mime_type="text/plain",
        text="Embedded resource content for testing.",
    )
    embedded = EmbeddedResource(type="resource", resource=resource)
    return [embedded, text("Please process the embedded resource above.")]


async def _with_image(_: Call) -> Messages:
    picture = ImageContent(type="image", data=PNG, mime_type="image/png")
    return [picture, text("Please analyze the image above.")]


async def _with_question(call: Call) -> Messages:
    question = form("What context should the prompt use?", one_field("context"))
    answers = await call.ask(user_context=question)
    return [text(f"Use the following context: {entered(answers['user_context'], 'context')}")]


PROMPTS: Final = (
    EverythingPrompt("test_simple_prompt", "Without arguments.", _simple),
    EverythingPrompt(
        "test_prompt_with_arguments",
        "With two arguments.",
        _with_arguments,
        (("arg1", "First test argument"), ("arg2", "Second test argument")),
    ),
    EverythingPrompt(
        "test_prompt_with_embedded_resource",
        "With a resource in it.",
        _with_resource,
        (("resourceUri", "URI of the resource to embed"),),
    ),
    EverythingPrompt("test_prompt_with_image", "With a picture in it.", _with_image),
    EverythingPrompt("test_input_required_result_prompt", "Asks the user for a context first.", _with_question),
)
