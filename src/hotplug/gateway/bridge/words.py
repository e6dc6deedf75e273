"""What the two eras say differently: requests, results, errors and notices of one in the other's words.

Everything is raw and one level deep where it can be: fields that neither era knows stay as they are.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from msgspec import Raw

from hotplug.gateway.link import Hello
from hotplug.gateway.message import INVALID_PARAMS, METHOD_NOT_FOUND, Message, Object, dumps, loads, split, split_list

__all__ = ["CACHEABLE", "CAPABILITIES", "CLIENT_INFO", "HANDSHAKES", "INPUT_METHODS", "LEGACY_ONLY", "LEVELS"]
__all__ += ["LOG_LEVEL", "MISSING_CAPABILITY", "MODERN", "MODERN_ONLY", "PROTOCOL", "RESOURCE_NOT_FOUND"]
__all__ += ["SERVER_INFO", "SUBSCRIPTION", "URL_REQUIRED", "Refusal", "asked", "capabilities_for_handshake"]
__all__ += ["capabilities_for_request", "change_notice", "declared", "input_request", "is_input_required", "items"]
__all__ += ["legacy_answer", "legacy_hello", "legacy_note", "legacy_request", "modern_answer", "modern_hello"]
__all__ += ["modern_note", "not_found", "refusal"]

MODERN: Final = "2026-07-28"
HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions with a handshake, oldest first."""

PROTOCOL: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

CACHEABLE: Final = frozenset(
    {"prompts/list", "resources/list", "resources/read", "resources/templates/list", "server/discover", "tools/list"}
)
"""Methods whose modern results say how long they may be kept."""

INPUT_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods in the middle of which a modern server may ask for input."""

LEGACY_ONLY: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
MODERN_ONLY: Final = frozenset({"server/discover", "subscriptions/listen"})

RESOURCE_NOT_FOUND: Final = -32002
"""Retired in the modern era, which says invalid params."""
URL_REQUIRED: Final = -32042
"""A URL has to be visited before the call is tried again; retired in the modern era, which says `input_required`."""
MISSING_CAPABILITY: Final = -32021

_CHANGES: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
_UNNAMED: Final = {"name": "unnamed", "version": "unknown"}


class Refusal(NamedTuple):
    """Why something can't be asked of a client."""

    code: int
    message: str


def legacy_hello(discovered: Hello, wanted: str | None) -> Hello:
    """A modern server's `server/discover` result as the `initialize` result for a client that wants a revision."""
    result = dict(discovered.result)
    for gone in ("supportedVersions", "resultType", "ttlMs", "cacheScope"):
        result.pop(gone, None)
    protocol = wanted if wanted in HANDSHAKES else HANDSHAKES[-1]
    meta = _object(result.pop("_meta", None))
    info = meta.pop(SERVER_INFO, None)
    front: Object = {
        "protocolVersion": Raw(dumps(protocol)),
        "capabilities": result.pop("capabilities", Raw(b"{}")),
        "serverInfo": info if info is not None and bytes(info) != b"null" else Raw(dumps(_UNNAMED)),
    }
    if meta:
        result["_meta"] = Raw(dumps(meta))
    return Hello({**front, **result}, protocol)


def modern_hello(initialized: Hello) -> Hello:
    """A legacy server's `initialize` result as a `server/discover` result."""
    result = dict(initialized.result)
    result.pop("protocolVersion", None)
    capabilities = _object(result.pop("capabilities", None))
    # Tasks left the core with the modern revision; there is nothing of theirs that could be called.
    capabilities.pop("tasks", None)
    info = result.pop("serverInfo", None) or Raw(dumps(_UNNAMED))
    result["supportedVersions"] = Raw(dumps([MODERN]))
    result["capabilities"] = Raw(dumps(capabilities))
    return Hello(_modern_result("server/discover", result, info), MODERN)


def capabilities_for_request(handshake: Raw | None) -> Object:
    """What a legacy client can do, for the envelope of its requests."""
    return _without_legacy_habits(_object(handshake))


def capabilities_for_handshake(envelope: Raw | None) -> Object:
    """What a modern client can do, for a handshake: null is as good as missing."""
    return _without_legacy_habits(_object(envelope))


def _without_legacy_habits(capabilities: Object) -> Object:
    kept = {name: value for name, value in capabilities.items() if name != "tasks" and bytes(value) != b"null"}
    if "roots" in kept:
        # Nobody could pass a notice of changed roots on: the modern era has none.
        roots = _object(kept["roots"])
        roots.pop("listChanged", None)
        kept["roots"] = Raw(dumps(roots))
    return kept


def declared(capabilities: Object) -> dict[str, Any]:
    """The capabilities that concern a server's questions, as Python values."""
    names = ("elicitation", "sampling", "roots")
    return {name: loads(capabilities[name]) for name in names if name in capabilities}


def refusal(question: Message, can: Mapping[str, Any]) -> Refusal | None:
    """Why a server's question can't be asked of a client that declared this; None where it can."""
    name = {
        "elicitation/create": "elicitation",
        "sampling/createMessage": "sampling",
        "roots/list": "roots",
    }.get(question.method or "")
    ability: Any = can.get(name) if name else None
    if name is None or not isinstance(ability, dict):
        return Refusal(METHOD_NOT_FOUND, f"Method not found: the client can't answer {question.method}")
    options = cast("dict[str, Any]", ability)
    if name == "elicitation":
        mode = question.text("mode") or "form"
        # Without any mode it means forms: the only ones that there were once.
        able = options.get("url") is not None if mode == "url" else mode == "form" and _forms(options)
        if not able:
            return Refusal(INVALID_PARAMS, f"the client didn't declare elicitation of mode {mode[:20]}")
    if name == "sampling" and options.get("tools") is None and {"tools", "toolChoice"} & question.params.keys():
        return Refusal(INVALID_PARAMS, "the client didn't declare sampling with tools")
    return None


def _forms(elicitation: Mapping[str, Any]) -> bool:
    return elicitation.get("form") is not None or elicitation.get("url") is None


def modern_request(message: Message, envelope: Mapping[str, Any]) -> Message:
    """A legacy client's request in the modern envelope."""
    return message.with_meta(envelope)


def legacy_request(message: Message) -> Message:
    """A modern client's request without envelope, answers and state."""
    bare = message.with_meta({PROTOCOL: None, CLIENT_INFO: None, CAPABILITIES: None, LOG_LEVEL: None})
    gone = {"inputResponses": None, "requestState": None} if message.method in INPUT_METHODS else {}
    return bare.with_params(gone)


def legacy_answer(message: Message, request: Message) -> Message:
    """A modern server's answer in the legacy form, with the request's id."""
    # Errors keep their codes: those of the modern era mean nothing else in the legacy one.
    if (result := _result(message)) is not None:
        message = message.with_result(_legacy_result(request.method, result))
    return message.with_id(Raw(request.id or b"null"))


def modern_answer(message: Message, request: Message, server_info: Raw | None) -> Message:
    """A legacy server's answer in the modern form, with the request's id."""
    if message.kind == "error":
        if request.method == "resources/read" and message.error_code == RESOURCE_NOT_FOUND:
            message = _with_code(message, INVALID_PARAMS)
    elif (result := _result(message)) is not None:
        message = message.with_result(_modern_result(request.method, result, server_info))
    return message.with_id(Raw(request.id or b"null"))


def _legacy_result(method: str | None, result: Object) -> Object:
    result = dict(result)
    if result.get("resultType") == Raw(b'"complete"'):
        del result["resultType"]
    if method in CACHEABLE:
        result.pop("ttlMs", None)
        result.pop("cacheScope", None)
    if "_meta" in result:
        meta = _object(result["_meta"])
        if meta.pop(SERVER_INFO, None) is not None:
            result["_meta"] = Raw(dumps(meta))
            if not meta:
                del result["_meta"]
    if method == "tools/list" and b"outputSchema" in bytes(result.get("tools", b"")):
        result["tools"] = Raw(dumps([_legacy_tool(tool) for tool in items(result["tools"])]))
    if method == "tools/call" and "structuredContent" in result:
        return _with_an_object_or_text(result)
    return result


def _legacy_tool(raw: Raw) -> Any:
    # A legacy client takes only objects as structured content, and refuses a list with any other schema in it.
    tool = split(raw)
    if tool is None or "outputSchema" not in tool:
        return raw
    schema = split(tool["outputSchema"])
    if schema is not None and bytes(schema.get("type", b"")) == b'"object"':
        return raw
    return {name: value for name, value in tool.items() if name != "outputSchema"}


def _with_an_object_or_text(result: Object) -> Object:
    value = bytes(result["structuredContent"])
    if value.startswith(b"{"):
        return result
    del result["structuredContent"]
    content = items(result.get("content", Raw(b"[]")))
    if value != b"null" and not any((split(block) or {}).get("type") == Raw(b'"text"') for block in content):
        result["content"] = Raw(dumps([*content, {"type": "text", "text": value.decode()}]))
    return result


def _modern_result(method: str | None, result: Object, server_info: Raw | None) -> Object:
    result = dict(result)
    result.setdefault("resultType", Raw(b'"complete"'))
    if method in CACHEABLE:
        result.setdefault("ttlMs", Raw(b"0"))
        result.setdefault("cacheScope", Raw(b'"private"'))
    if server_info is not None:
        meta = _object(result.get("_meta"))
        meta.setdefault(SERVER_INFO, server_info)
        result["_meta"] = Raw(dumps(meta))
    return result


def legacy_note(message: Message) -> Message | None:
    """A modern server's notification for a legacy client; None where it has no word for it."""
    if message.method == "notifications/subscriptions/acknowledged":
        return None
    return message.with_meta({SUBSCRIPTION: None}) if SUBSCRIPTION in message.meta else message


def modern_note(message: Message, level: str | None) -> Message | None:
    """A legacy server's notification within a modern request that asked for logs from this level on (None: for none).

    Notices of changes aren't among them: they belong to subscriptions (`change_notice`).
    """
    if message.method == "notifications/message":
        said = message.text("level")
        wanted = level in LEVELS and said in LEVELS and LEVELS.index(said) >= LEVELS.index(level)
        return message if wanted else None
    gone = {"notifications/elicitation/complete", "notifications/cancelled"}
    return None if message.method in gone or change_notice(message) else message


def change_notice(message: Message) -> str | None:
    """What of a `subscriptions/listen` filter a server's notification is about; None where it is none of a change."""
    if message.method == "notifications/resources/updated":
        return "resourceSubscriptions"
    return _CHANGES.get(message.method or "")


def is_input_required(message: Message) -> bool:
    """Whether an answer asks for input instead of answering."""
    return message.kind == "result" and message.result.get("resultType") == Raw(b'"input_required"')


def input_request(question: Message) -> Object:
    """A legacy server's question as one of the `inputRequests`."""
    return {name: question.fields[name] for name in ("method", "params") if name in question.fields}


def asked(id_: str, wanted: Raw) -> Message | None:
    """One of the `inputRequests` as a request to a legacy client; None where it is none."""
    fields = split(wanted) or {}
    method = loads(fields["method"]) if "method" in fields else None
    if not isinstance(method, str):
        return None
    message = Message.request(id_, method)
    if "params" in fields:
        message = Message({**message.fields, "params": fields["params"]})
    if message.text("mode") == "url" and "elicitationId" not in message.params:
        message = message.with_param("elicitationId", secrets.token_hex(8))
    return message


def not_found(request: Message) -> Message:
    """The answer to a request whose method the client's era doesn't have."""
    return Message.error_of(request.id, METHOD_NOT_FOUND, "Method not found", request.method)


def _with_code(message: Message, code: int) -> Message:
    error = _object(message.fields["error"])
    return Message({**message.fields, "error": Raw(dumps({**error, "code": code}))})


def _result(message: Message) -> Object | None:
    raw = message.fields.get("result")
    return split(raw) if raw is not None else None


def _object(raw: Raw | None) -> Object:
    return (split(raw) if raw is not None else None) or {}


def items(raw: Raw) -> list[Raw]:
    """A list, each item raw; empty where it is something else."""
    try:
        return split_list(raw) or []
    except ValueError:
        return []
