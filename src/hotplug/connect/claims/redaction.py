"""Keep credentials out of what is recorded: one redactor for everything that an observation carries.

On by default, and not to be turned off. Source: Open Verification Protocol 1, security obligations S2, S3, S14, S15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from hotplug.connect.masking import mask_url
from hotplug.evidence import Observation
from hotplug.evidence.noun import Noun
from hotplug.profile.fields import wire_name
from hotplug.profile.summaries import REDACTED, credential_name

__all__ = ["Redactor", "masked"]

_DEEPEST: Final = 64
_WORDS: Final = frozenset({"statement", "reads", "detail", "remedy", "summary", "pattern", "valueContains"})
"""Members in which somebody's own words stand, or a server's."""

N = TypeVar("N", bound=Noun)


def masked(noun: N, mask: Callable[[str], str]) -> N:
    """The noun without known secrets in the words that somebody wrote into it; its ids and names stay."""

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {
                name: mask(one) if name in _WORDS and isinstance(one, str) else walk(one)
                for name, one in members.items()
            }
        return value

    document = noun.document()
    shown = walk(document)
    return noun if shown == document else type(noun).read(shown)


@dataclass
class Redactor:
    """Redacts values and counts what it redacted.

    Args:
        sensitive: Names of fields whose values never show: those that the profile marks, beside credential-like names.
        mask: Replaces values that are known to be secret, wherever they stand and however they are encoded.
    """

    sensitive: Collection[str] = ()
    mask: Callable[[str], str] = str
    found: dict[str, int] = field(default_factory=dict[str, int])
    """How many values were redacted, by channel."""
    changed: list[tuple[Observation, Observation]] = field(default_factory=list[tuple[Observation, Observation]])
    """What was redacted: as it was seen, and as it shows."""
    _read: dict[int, tuple[Observation, Observation, int]] = field(
        default_factory=dict[int, tuple[Observation, Observation, int]]
    )

    def __post_init__(self) -> None:
        self._names = frozenset(name.lower() for one in self.sensitive for name in (one, wire_name(one)))

    def observation(self, seen: Observation) -> Observation:
        """The observation without credentials, in value and summary; one that was seen before is not read again."""
        known = self._read.get(id(seen))
        if known is None or known[0] is not seen:
            known = self._read[id(seen)] = (seen, *self._redacted(seen))
        _, shown, redacted = known
        if redacted:
            self.found[seen.channel] = self.found.get(seen.channel, 0) + redacted
            self.changed.append((seen, shown))
        return shown

    def _redacted(self, seen: Observation) -> tuple[Observation, int]:
        counted = _Count()
        value = self._value(seen.value, counted, 0)
        summary = self._text(seen.summary, counted)
        if not counted.redacted:
            same = value is seen.value or value == seen.value
            return seen if same else seen.model_copy(update={"value": value}), 0
        return seen.model_copy(update={"value": value, "summary": summary}), counted.redacted

    def forget(self, *, anew: bool) -> None:
        """The next observations are all that there are.

        Args:
            anew: Read even those again that were seen before: there may be more secrets by now.
        """
        if anew:
            self._read.clear()
        self.found.clear()
        self.changed.clear()

    def text(self, text: str) -> str:
        """A text without known secrets."""
        return self.mask(text)

    def _value(self, value: Any, counted: _Count, depth: int) -> Any:
        if depth > _DEEPEST:
            counted.redacted += 1
            return REDACTED
        if isinstance(value, str):
            return self._text(value, counted)
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            return {
                self._text(name, counted): self._named(name, item, counted, depth) for name, item in members.items()
            }
        if isinstance(value, list | tuple):
            items = cast("list[Any]", value)
            if len(items) == 2 and isinstance(items[0], str) and self._is_credential(items[0]):
                # A header as a pair.
                return [items[0], self._hidden(items[1], counted)]
            return [self._value(item, counted, depth + 1) for item in items]
        if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        # No JSON, and a run is JSON: a number that is none, or what a witness of somebody's own gave.
        return self._text(str(value), counted)

    def _named(self, name: str, value: Any, counted: _Count, depth: int) -> Any:
        if self._is_credential(name):
            return self._hidden(value, counted)
        return self._value(value, counted, depth + 1)

    def _is_credential(self, name: str) -> bool:
        return credential_name(name) or name.lower() in self._names

    def _hidden(self, value: Any, counted: _Count) -> Any:
        if value is None or value in ("", REDACTED):
            return value
        counted.redacted += 1
        return REDACTED

    def _text(self, text: str, counted: _Count) -> str:
        shown = self.mask(text)
        if "://" in shown and "\n" not in shown:
            shown = " ".join(mask_url(word) if "://" in word else word for word in shown.split(" "))
        if shown != text:
            counted.redacted += 1
        return shown


@dataclass
class _Count:
    redacted: int = 0
