"""What the gateway says of itself, made of what its servers said."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from hotplug.gateway.hellos import joined_hello
from hotplug.gateway.link import Hello
from hotplug.gateway.message import dumps


def _hello(**said: str) -> Hello:
    return Hello({key: Raw(text.encode()) for key, text in said.items()}, "2025-11-25")


@pytest.mark.parametrize("key", ["capabilities", "instructions"])
@pytest.mark.parametrize("text", ["[" * 2000 + "]" * 2000, "9" * 5000, '{"logging": ' + "9" * 5000 + "}", '"\\ud800"'])
def test_what_one_server_says_of_itself_costs_the_others_nothing(key: str, text: str) -> None:
    good = _hello(capabilities='{"prompts": {}}', instructions='"be kind"')
    result = joined_hello(
        "legacy",
        [("odd", _hello(**{key: text})), ("good", good)],
        alone=False,
        protocol="2025-11-25",
        extensions={},
        own_tools=False,
    )
    said = json.loads(dumps(result))
    assert said["capabilities"]["prompts"] == {"listChanged": True}
    assert "be kind" in said["instructions"]
