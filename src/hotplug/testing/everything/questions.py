"""Tools that ask the client something. Each works in both eras (`Call.ask`), whatever era the suite asks it in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequest,
    ListRootsRequest,
    SamplingMessage,
)

from hotplug.testing.everything.call import Call
from hotplug.testing.everything.tool import Content, EverythingTool, text

__all__ = ["QUESTION_TOOLS", "entered", "form", "one_field"]

Schema = Mapping[str, Any]


def form(message: str, schema: Schema) -> ElicitRequest:
    """A form for the client's user."""
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=dict(schema)))


def one_field(name: str, kind: str = "string") -> Schema:
    """The schema of a form with one field, which has to be filled in."""
    return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}


def entered(answer: Mapping[str, Any], name: str) -> str:
    """What was filled in there; where nothing was, what was done instead, in brackets."""
    content: Mapping[str, Any] = answer.get("content") or {}
    return str(content.get(name, f"({answer['action']})"))


def _sample(prompt: str, tokens: int = 100) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=text(prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=tokens))


def _said(sample: Mapping[str, Any]) -> str:
    return str(sample["content"].get("text", "something that is no text"))


def _outcome(answer: Mapping[str, Any]) -> str:
    return f"action={answer['action']}, content={json.dumps(answer.get('content') or {})}"


async def _sampling(call: Call) -> Content:
    answers = await call.ask(sample=_sample(str(call.arguments.get("prompt", "Say something."))))
    return f"LLM response: {_said(answers['sample'])}"


async def _elicitation(call: Call) -> Content:
    message = str(call.arguments.get("message", "Please answer."))
    answers = await call.ask(answer=form(message, one_field("response")))
    return f"User response: {_outcome(answers['answer'])}"


async def _after_progress(call: Call) -> Content:
    await call.progress(1, 2, "A notice before the question")
    return await _elicitation(call)


async def _defaults(call: Call) -> Content:
    answers = await call.ask(answer=form("Please check what is filled in.", _DEFAULTS))
    return f"Elicitation completed: {_outcome(answers['answer'])}"


async def _choices(call: Call) -> Content:
    answers = await call.ask(answer=form("Please choose.", _CHOICES))
    return f"Elicitation completed: {_outcome(answers['answer'])}"


async def _name(call: Call) -> Content:
    answers = await call.ask(user_name=form("What is your name?", one_field("name")))
    return f"Hello, {entered(answers['user_name'], 'name')}!"


async def _capital(call: Call) -> Content:
    answers = await call.ask(capital_question=_sample("What is the capital of France?"))
    return f"The model said: {_said(answers['capital_question'])}"


async def _roots(call: Call) -> Content:
    answers = await call.ask(client_roots=ListRootsRequest())
    return f"The client has {len(answers['client_roots']['roots'])} roots."


async def _state(call: Call) -> Content:
    await call.ask(confirm=form("Please confirm", one_field("ok", "boolean")))
    return "state-ok: what was asked came back with its state."


async def _several(call: Call) -> Content:
    answers = await call.ask(
        user_name=form("What is your name?", one_field("name")),
        greeting=_sample("Generate a greeting", tokens=50),
        client_roots=ListRootsRequest(),
    )
    return f"{_said(answers['greeting'])} ({entered(answers['user_name'], 'name')}, {len(answers)} answers)"


async def _rounds(call: Call) -> Content:
    first = await call.ask(step1=form("Step 1: What is your name?", one_field("name")))
    second = await call.ask(step2=form("Step 2: What is your favorite color?", one_field("color")))
    return f"{entered(first['step1'], 'name')} likes {entered(second['step2'], 'color')}."


async def _able(call: Call) -> Content:
    wanted: dict[str, InputRequest] = {
        "ask": form("What is your name?", one_field("name")),
        "roots": ListRootsRequest(),
        "sample": _sample("Say hello", tokens=50),
    }
    answers = await call.ask(**{name: request for name, request in wanted.items() if call.can(request)})
    return f"Asked for and answered: {', '.join(answers) or 'nothing'}."


_DEFAULTS: Final[Schema] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Your name", "default": "John Doe"},
        "age": {"type": "integer", "description": "In years", "default": 30},
        "score": {"type": "number", "description": "Of 100", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}

_CHOICES: Final[Schema] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": "value1", "title": "First Choice"},
                    {"const": "value2", "title": "Second Choice"},
                    {"const": "value3", "title": "Third Choice"},
                ]
            },
        },
    },
    "required": ["untitledSingle"],
}

_ROUNDS: Final = "test_input_required_result_"

QUESTION_TOOLS: Final = (
    EverythingTool("test_sampling", "Asks the client's model.", _sampling, one_field("prompt")),
    EverythingTool("test_elicitation", "Asks the client's user.", _elicitation, one_field("message")),
    EverythingTool("test_streaming_elicitation", "Tells its progress, then asks the user.", _after_progress),
    EverythingTool("test_elicitation_sep1034_defaults", "Shows a form with a default in every field.", _defaults),
    EverythingTool("test_elicitation_sep1330_enums", "Shows a form with every kind of choice.", _choices),
    EverythingTool(f"{_ROUNDS}elicitation", "Asks the user's name.", _name),
    EverythingTool(f"{_ROUNDS}sampling", "Asks the client's model for a capital.", _capital),
    EverythingTool(f"{_ROUNDS}list_roots", "Asks for the client's roots.", _roots),
    EverythingTool(f"{_ROUNDS}request_state", "Asks for a confirmation, and wants its state back.", _state),
    EverythingTool(f"{_ROUNDS}multiple_inputs", "Asks three things in one round.", _several),
    EverythingTool(f"{_ROUNDS}multi_round", "Asks two things, one after the other.", _rounds),
    EverythingTool(f"{_ROUNDS}tampered_state", "Refuses a state that was changed on its way.", _state),
    EverythingTool(f"{_ROUNDS}capabilities", "Asks only what the client declared that it can answer.", _able),
)
