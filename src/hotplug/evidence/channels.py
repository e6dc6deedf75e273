"""Channels: what a realm or a witness says it can see, and how much that is worth.

Source: OVP version 1, the channel table, rules OVP-CHAN-1 to OVP-CHAN-5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic.config import JsonDict

from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import CHANNEL_IDS, GRADES, ChannelId, Grade, Independence, Words

__all__ = [
    "CHANNEL_TABLE",
    "ChannelDescriptor",
    "Declared",
    "can_prove",
    "could_ever_prove",
    "declaration_faults",
    "declared",
    "disagreement_can_convict",
    "weaker_grade",
]


class ChannelDescriptor(Noun):
    """A channel as it is declared.

    Args:
        independence: `independent` where the code path that handles the action does not decide what is seen.
        grade: The most that an observation here may be worth.
    """

    id: ChannelId
    independence: Independence
    grade: Grade
    note: Words | None = None


def _once_each(channels: tuple[ChannelDescriptor, ...]) -> tuple[ChannelDescriptor, ...]:
    names = [channel.id for channel in channels]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"declares channel {name} twice: which one holds cannot be told")
    return channels


_EACH_ONCE: Final[JsonDict] = {
    "$comment": "No channel twice; a schema can say so only of names that it knows.",
    "allOf": [
        {"contains": {"properties": {"id": {"const": name}}}, "minContains": 0, "maxContains": 1}
        for name in CHANNEL_IDS
    ],
}
Declared = Annotated[
    tuple[ChannelDescriptor, ...],
    AfterValidator(_once_each),
    Field(json_schema_extra=_EACH_ONCE),
]
"""The channels of one declaration; one that is there twice is ambiguous and refused."""


CHANNEL_TABLE: Final[Mapping[ChannelId, ChannelDescriptor]] = {
    row.id: row
    for row in (
        ChannelDescriptor(id="ui", independence="actuation-derived", grade="presence"),
        ChannelDescriptor(id="net", independence="independent", grade="consequence"),
        ChannelDescriptor(id="state", independence="actuation-derived", grade="consequence"),
        ChannelDescriptor(id="signal", independence="actuation-derived", grade="consequence"),
        ChannelDescriptor(id="log", independence="independent", grade="context"),
        ChannelDescriptor(id="route", independence="actuation-derived", grade="presence"),
        ChannelDescriptor(id="storage", independence="actuation-derived", grade="consequence"),
        ChannelDescriptor(id="time", independence="independent", grade="context"),
        ChannelDescriptor(id="visual", independence="actuation-derived", grade="presence"),
    )
}
"""The most that a realm may claim for each channel. A name of one's own (`x-…`) has no row: its declaration is all."""


def weaker_grade(first: Grade, second: Grade) -> Grade:
    """The one of the two that is worth less."""
    return GRADES[max(GRADES.index(first), GRADES.index(second))]


def declaration_faults(channels: Sequence[ChannelDescriptor], *, witness: bool = False) -> tuple[str, ...]:
    """What is wrong with a declaration: a channel that is declared twice, or as worth more than the table says.

    Args:
        witness: It only looks. Its independence may exceed the table, since its data crossed the subject's boundary.
    """
    faults: list[str] = []
    seen: set[ChannelId] = set()
    for channel in channels:
        if channel.id in seen:
            faults.append(f"channel {channel.id} is declared twice: which one holds cannot be told")
        seen.add(channel.id)
        limit = CHANNEL_TABLE.get(channel.id)
        if limit is None:
            continue
        if channel.independence == "independent" != limit.independence and not witness:
            faults.append(
                f"channel {channel.id} is declared independent: what a realm sees there is made by the action's own "
                "code path, so declare it actuation-derived"
            )
        if weaker_grade(channel.grade, limit.grade) != channel.grade:
            faults.append(f"channel {channel.id} is declared as {channel.grade}: it can be {limit.grade} at most")
    return tuple(faults)


def declared(channels: Iterable[ChannelDescriptor]) -> dict[ChannelId, ChannelDescriptor]:
    """The descriptors by name; of one that is there twice, the first."""
    found: dict[ChannelId, ChannelDescriptor] = {}
    for channel in channels:
        found.setdefault(channel.id, channel)
    return found


def disagreement_can_convict(first: ChannelDescriptor, second: ChannelDescriptor) -> bool:
    """Whether two channels that contradict each other show a fault: one of them is independent; grade is no matter."""
    return "independent" in (first.independence, second.independence)


def could_ever_prove(channels: Iterable[ChannelDescriptor]) -> bool:
    """Whether some channel is independent and of consequence grade, so that a `yes` is possible at all."""
    return any(channel.independence == "independent" and channel.grade == "consequence" for channel in channels)


def can_prove(channels: Iterable[ChannelDescriptor]) -> bool:
    """Whether some channel is of consequence grade. Weaker than `could_ever_prove`; not a stand-in for it."""
    return any(channel.grade == "consequence" for channel in channels)
