"""Tools that answer at once: each kind of content, an error, and schemas that a gateway has to leave alone."""

from __future__ import annotations

import json
from typing import Final, NoReturn

from mcp import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    EmbeddedResource,
    ImageContent,
    TextResourceContents,
)

from hotplug.testing.everything.call import Call
from hotplug.testing.everything.samples import PNG, WAV
from hotplug.testing.everything.tool import Content, EverythingTool, text

__all__ = ["CONTENT_TOOLS"]

_PICTURE: Final = ImageContent(type="image", data=PNG, mime_type="image/png")


async def _text(_: Call) -> Content:
    return "This is a simple text response for testing."


async def _image(_: Call) -> Content:
    return [_PICTURE]


async def _audio(_: Call) -> Content:
    return [AudioContent(type="audio", data=WAV, mime_type="audio/wav")]


def _embedded(uri: str, mime_type: str, content: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=content))


async def _resource(_: Call) -> Content:
    return [_embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


async def _mixed(_: Call) -> Content:
    document = json.dumps({"test": "data", "value": 123})
    return [
        text("Multiple content types test:"),
        _PICTURE,
        _embedded("test://mixed-content-resource", "application/json", document),
    ]


async def _failing(_: Call) -> NoReturn:
    raise RuntimeError("This tool intentionally returns an error for testing")


async def _mirrored(call: Call) -> Content:
    return f"region: {call.arguments.get('region', 'none given')}"


async def _needs_sampling(call: Call) -> Content:
    said = call.capabilities
    if said is None or said.sampling is None:
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="this tool asks the client for a sample, and the client didn't declare that it can",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return "The client declared sampling."


async def _contact(_: Call) -> Content:
    return "The arguments are not looked at: what counts is how the schema is listed."


_MIRRORED_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "region": {
            "type": "string",
            "description": "Also sent as the header Mcp-Param-Region.",
            "x-mcp-header": "Region",
        }
    },
}

_CONTACT_SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "additionalProperties": False,
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
}

CONTENT_TOOLS: Final = (
    EverythingTool("test_simple_text", "Answers with one block of text.", _text),
    EverythingTool("test_image_content", "Answers with a picture.", _image),
    EverythingTool("test_audio_content", "Answers with a sound.", _audio),
    EverythingTool("test_embedded_resource", "Answers with a resource, embedded.", _resource),
    EverythingTool("test_multiple_content_types", "Answers with text, a picture and a resource.", _mixed),
    EverythingTool("test_error_handling", "Fails, and says so in its result.", _failing),
    EverythingTool("test_x_mcp_header", "Has an argument that is also sent as a header.", _mirrored, _MIRRORED_SCHEMA),
    EverythingTool("test_missing_capability", "Refuses clients that can't be asked for a sample.", _needs_sampling),
    EverythingTool("json_schema_2020_12_tool", "Has a schema with the keywords of 2020-12.", _contact, _CONTACT_SCHEMA),
)
