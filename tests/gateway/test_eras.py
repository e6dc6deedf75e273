"""The check of a modern request says what the SDK's says, answer for answer."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from hotplug.gateway import eras
from hotplug.gateway.message import Message

_VERSIONS = st.sampled_from(["2026-07-28", "2025-11-25", "2099-01-01", "", "\u00e9"]) | st.none() | st.integers()
_NAMES = st.sampled_from(["a", "\u00e9", " a ", "=?base64?YQ==?=", "", "x\n"]) | st.none() | st.integers(0, 3)
_METHODS = st.sampled_from(["tools/call", "prompts/get", "resources/read", "tools/list", "vendor/x"])


@st.composite
def _requests(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, str]]:
    meta: Any = {}
    if draw(st.booleans()):
        meta[eras.VERSION_META] = draw(_VERSIONS)
    if draw(st.booleans()):
        meta[eras.CAPABILITIES_META] = draw(st.sampled_from([{}, None, 1]))
    meta = draw(st.sampled_from([meta, meta, meta, None, [], "x"]))
    params: dict[str, Any] = {"_meta": meta} if draw(st.integers(0, 9)) else {}
    name, uri = draw(_NAMES), draw(_NAMES)
    params |= {"name": name, "uri": uri}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": draw(_METHODS), "params": params}
    given = {"mcp-protocol-version": draw(_VERSIONS), "mcp-method": draw(_METHODS)}
    headers = {key: value for key, value in given.items() if isinstance(value, str)}
    shown = draw(st.sampled_from([name, uri, "other", "=?base64?!?="]))
    if isinstance(shown, str):
        headers["mcp-name"] = draw(st.sampled_from([shown, inbound.encode_header_value(shown)]))
    return body, headers


@given(_requests(), st.booleans())
def test_a_modern_request_is_refused_as_the_sdk_refuses_it(
    case: tuple[dict[str, Any], dict[str, str]], over_http: bool
) -> None:
    body, headers = case
    ours = eras.check_modern(Message.parse(json.dumps(body).encode()), headers if over_http else None)
    theirs = inbound.classify_inbound_request(body, headers=headers if over_http else None)
    if isinstance(theirs, inbound.InboundModernRoute):
        assert ours is None
    else:
        assert ours is not None
        assert (ours.code, ours.message, ours.data) == (theirs.code, theirs.message, theirs.data)


@given(st.text())
def test_header_values_are_written_and_read_as_the_sdk_does(value: str) -> None:
    if any(0xD800 <= ord(one) <= 0xDFFF for one in value):
        return
    assert eras.encode_header(value) == inbound.encode_header_value(value)
    assert eras.decode_header(eras.encode_header(value)) == value


@given(st.sampled_from(["=?base64?", ""]), st.text("abcXYZ019+/=", max_size=9), st.sampled_from(["?=", ""]))
def test_broken_header_values_are_read_as_the_sdk_reads_them(start: str, payload: str, end: str) -> None:
    value = start + payload + end
    assert eras.decode_header(value) == inbound.decode_header_value(value)


@given(st.lists(st.sampled_from(["mcp-name", "mcp-method", "mcp-protocol-version", "accept"])))
def test_a_routing_header_twice_is_found_as_the_sdk_finds_it(names: list[str]) -> None:
    assert eras.duplicated_header(names) == inbound.find_duplicated_routing_header([(name, "") for name in names])


def test_errors_have_the_statuses_of_the_sdk() -> None:
    for code in range(-32800, -31900):
        assert eras.http_status(code) == inbound.ERROR_CODE_HTTP_STATUS.get(code, 200)
    assert eras.http_status(None) == 200


def test_the_revisions_are_those_of_the_sdk() -> None:
    from mcp_types import version

    assert version.HANDSHAKE_PROTOCOL_VERSIONS == eras.HANDSHAKE_VERSIONS
    assert version.MODERN_PROTOCOL_VERSIONS == eras.MODERN_VERSIONS
