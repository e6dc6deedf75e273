"""The headers of a modern request, held to the SDK's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from mcp.shared.inbound import classify_inbound_request, encode_header_value, mcp_param_headers, x_mcp_header_map

from hotplug.gateway.bridge.headers import encoded, mirrored, routing
from hotplug.gateway.message import Message, loads

from .wire import ENVELOPE


@given(some.text())
def test_a_value_is_encoded_as_the_sdk_encodes_it(value: str) -> None:
    try:
        expected = encode_header_value(value)
    except UnicodeEncodeError:
        return
    assert encoded(value) == expected


scalars = some.one_of(some.text(), some.integers(), some.booleans(), some.none(), some.floats(allow_nan=False))


@given(
    some.fixed_dictionaries(
        {}, optional={"a": scalars, "b": some.one_of(scalars, some.dictionaries(some.text("cd"), scalars))}
    )
)
def test_arguments_are_mirrored_as_the_sdk_mirrors_them(arguments: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "x-mcp-header": "A-a"},
            "b": {"type": "object", "properties": {"c": {"type": "integer", "x-mcp-header": "C"}, "d": True}},
        },
    }
    try:
        expected = mcp_param_headers(x_mcp_header_map(schema), arguments)
    except UnicodeEncodeError:
        return
    assert mirrored(schema, arguments) == {name.lower(): value for name, value in expected.items()}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "größe"}),
        ("prompts/get", {"name": " p "}),
        ("resources/read", {"uri": "x://a\nb"}),
        ("tools/list", {}),
        ("vendor/thing", {"name": "n"}),
    ],
)
def test_a_requests_headers_agree_with_its_body_by_the_sdks_word(method: str, params: Any) -> None:
    message = Message.request(1, method, {**params, "_meta": ENVELOPE})
    found = classify_inbound_request(loads(message.encode()), headers=routing(message))
    assert type(found).__name__ == "InboundModernRoute"
