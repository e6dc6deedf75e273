from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from mcp_types import methods

from hotplug.gateway.bridge import words
from hotplug.gateway.message import Message, dumps, loads

from .wire import plain

json_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=10,
)
METHODS = ("tools/call", "tools/list", "resources/read", "prompts/get", "completion/complete", "vendor/x")
INFO = b'{"name":"s","version":"1"}'


@given(some.sampled_from(METHODS), some.dictionaries(some.text(), json_values))
def test_a_result_that_goes_to_the_other_era_and_back_is_the_same(method: str, result: dict[str, Any]) -> None:
    names = {"resultType", "ttlMs", "cacheScope", "structuredContent", "_meta"}
    result = {name: value for name, value in result.items() if name not in names}
    request = Message.request(1, method, {})
    answer = Message.result_of(b"1", result)
    modern = words.modern_answer(answer, request, words.Raw(INFO))
    assert plain(modern)["result"].items() >= result.items()
    assert plain(modern)["result"]["resultType"] == "complete"
    assert plain(words.legacy_answer(modern, request)) == plain(answer)


def test_the_methods_of_each_era_are_those_of_the_sdk() -> None:
    legacy = {method for method, revision in methods.CLIENT_REQUESTS if revision == "2025-11-25"} | {"initialize"}
    modern = {method for method, revision in methods.CLIENT_REQUESTS if revision == words.MODERN}
    assert legacy - modern == words.LEGACY_ONLY
    assert modern - legacy == words.MODERN_ONLY
    assert words.CACHEABLE == methods.CACHEABLE_METHODS
    assert words.INPUT_METHODS == methods.INPUT_REQUIRED_METHODS


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "vendor/own", "x": 1},
        {"resultType": "input_required", "inputRequests": {}},
    ],
)
def test_a_kind_of_result_that_legacy_has_no_form_for_keeps_its_name(result: Any) -> None:
    answer = Message.result_of(b"1", result)
    assert plain(words.legacy_answer(answer, Message.request(1, "tools/call")))["result"] == result


def test_a_result_that_is_no_object_is_left_as_it_is() -> None:
    answer = Message.result_of(b"1", [1])
    request = Message.request(1, "tools/call")
    assert plain(words.legacy_answer(answer, request)) == plain(answer)
    assert plain(words.modern_answer(answer, request, None)) == plain(answer)


def test_an_error_keeps_code_and_data() -> None:
    error = Message.parse(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32099,"message":"m","data":{"n":1e400},"x":1}}')
    request = Message.request("a", "tools/call")
    for carried in (words.legacy_answer(error, request), words.modern_answer(error, request, None)):
        assert carried.encode() == error.encode().replace(b'"id":null', b'"id":"a"')


def test_a_capability_that_is_null_is_none() -> None:
    said = words.Raw(dumps({"sampling": None, "roots": {}, "elicitation": None, "x": None}))
    assert {name: loads(value) for name, value in words.capabilities_for_handshake(said).items()} == {"roots": {}}


def test_the_bridges_load_no_sdk() -> None:
    code = (
        "import sys, hotplug.gateway.bridge\n"
        "print(sorted({'mcp', 'mcp_types', 'pydantic', 'fastmcp'} & set(sys.modules)))"
    )
    path = ":".join(path for path in sys.path if path)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": path}
    )
    assert ran.stdout.strip() == "[]"
