"""Guarded operations are destructive or costly: a person says yes to each call of one, or it isn't made (wire page).

The person is asked through the client, by an elicitation: in the modern era the call is answered with it and made by
its retry, in the handshake era it is asked while the call waits. What an answer is for is this thread's call of this
operation with these arguments, once, within ten minutes.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from hotplug.errors import Guarded
from hotplug.gateway.instances import Chosen
from hotplug.gateway.keeping import kept_values
from hotplug.gateway.message import Message, Object, dumps, loads, split
from hotplug.gateway.states import StateSeal

__all__ = ["WAIT", "Ask", "Authorizing", "agreed", "can_be_asked", "question_for", "readable"]

WAIT: Final = 600.0
"""Seconds that a question stands."""
_NAME: Final = "authorize"
_LONGEST_SHOWN: Final = 1500
_MOST_OPEN: Final = 10_000


@dataclass(frozen=True, slots=True)
class Ask:
    """A call that a person has to say yes to first.

    Args:
        part: The operation.
        what: The call that a yes is for; see `Authorizing.what`.
        params: Of the `elicitation/create`.
    """

    part: str
    what: str
    params: Mapping[str, Any]

    def refused(self, why: str) -> Guarded:
        """What the call is answered with where nobody says yes."""
        return Guarded(f"{self.part} is destructive or costly: {why}", details={"part": self.part})


def can_be_asked(capabilities: Any) -> bool:
    """Whether a client with these capabilities shows forms to a person."""
    held = cast("Mapping[str, Any]", capabilities).get("elicitation") if isinstance(capabilities, Mapping) else None
    if not isinstance(held, Mapping):
        return False
    options = cast("Mapping[str, Any]", held)
    # Without any mode it means forms: the only ones that there were once.
    return options.get("form") is not None or options.get("url") is None


def agreed(answer: Any) -> bool:
    """Whether the result of an elicitation is a yes; a form that was sent off untouched is none."""
    if not isinstance(answer, Mapping):
        return False
    given = cast("Mapping[str, Any]", answer)
    content = given.get("content")
    return (
        given.get("action") == "accept"
        and isinstance(content, Mapping)
        and cast("Mapping[str, Any]", content).get(_NAME) is True
    )


def question_for(chosen: Chosen, what: str) -> Ask:
    """What a person is asked, in the profile's words; sensitive arguments aren't shown."""
    part = chosen.offer.shape
    schema = dumps(part.input.schema)
    shown, _ = kept_values(dumps(chosen.arguments), None, schemas=(schema,), mask=str)
    message = (
        f"Allow {part.name} at {chosen.named}? It is destructive or costly.\n"
        f"What it does: {part.description}\n"
        f"Arguments: {readable(shown or '{}')}"
    )
    form = {
        "type": "object",
        "properties": {_NAME: {"type": "boolean", "title": "Do it, this once", "default": False}},
        "required": [_NAME],
    }
    return Ask(part.name, what, {"mode": "form", "message": message, "requestedSchema": form})


class Authorizing:
    """The questions that stand, for calls of the modern era.

    Args:
        seal: Binds a question to its call.
        clock: Seconds since the epoch.
    """

    def __init__(self, seal: StateSeal, clock: Callable[[], float] = time.time) -> None:
        self._seal = seal
        self._clock = clock
        self._open: dict[str, float] = {}

    def what(self, chosen: Chosen) -> str:
        """Names the call: another server, operation, instance or argument makes it another one."""
        said = [chosen.speaker.server, chosen.offer.member, chosen.instance, chosen.arguments]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
        return f"authorized tools/call {digest}"

    def input_required(self, ask: Ask, *, thread: str) -> dict[str, Any]:
        """The result that asks, with the state that its retry brings back."""
        state = self._seal.seal(secrets.token_urlsafe(16), thread=thread, server="", what=ask.what)
        self.expect(state)
        return {
            "resultType": "input_required",
            "inputRequests": {_NAME: {"method": "elicitation/create", "params": dict(ask.params)}},
            "requestState": state,
        }

    def expect(self, state: str) -> None:
        """Let a state, as the caller gets it, be brought back: once, and in time."""
        now = self._clock()
        if len(self._open) >= _MOST_OPEN:
            self._open = {name: until for name, until in self._open.items() if until > now}
        while len(self._open) >= _MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._open[_digest(state)] = now + WAIT

    def answered(self, message: Message, what: str, *, thread: str) -> bool | None:
        """What a person answered to the question of this call; None where none stands, or it isn't answered."""
        answers = _answers(message)
        if _NAME not in answers or not self._taken(message, what, thread=thread, server=""):
            return None
        return agreed(loads(answers[_NAME]))

    def goes_on(self, message: Message, what: str, *, thread: str, server: str) -> bool:
        """Whether this is the retry of a call that was said yes to, and whose server then asked for more."""
        return self._taken(message, what, thread=thread, server=server)

    def _taken(self, message: Message, what: str, *, thread: str, server: str) -> bool:
        """Whether the request brings back a state that stands; then it stands no longer."""
        state = message.text("requestState")
        if state is None or self._seal.open(state, thread=thread, server=server, what=what) is None:
            return False
        until = self._open.pop(_digest(state), None)
        return until is not None and until > self._clock()


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()


def _answers(message: Message) -> Object:
    raw = message.params.get("inputResponses")
    return (split(raw) if raw is not None else None) or {}


def readable(arguments: str) -> str:
    """Arguments as a person reads them, with nothing in them that hides or turns around what stands there."""
    text = json.dumps(json.loads(arguments), ensure_ascii=False) if arguments[:1] in '{["' else arguments
    plain = "".join(one if unicodedata.category(one)[0] != "C" else f"\\u{ord(one):04x}" for one in text)
    return plain if len(plain) <= _LONGEST_SHOWN else plain[:_LONGEST_SHOWN] + "… (cut)"
