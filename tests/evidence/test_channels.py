"""What a channel is worth, and that no realm may claim more."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from hotplug.evidence import (
    CHANNEL_TABLE,
    AdjudicationInput,
    ChannelDescriptor,
    EvidenceError,
    can_prove,
    could_ever_prove,
    declaration_faults,
    declared,
    disagreement_can_convict,
    weaker_grade,
)
from hotplug.evidence.vocabulary import CHANNEL_IDS, GRADES, INDEPENDENCES, Grade

from .making import LOG, NET, STATE, UI, case


def channel(name: str, independence: str, grade: str) -> ChannelDescriptor:
    return ChannelDescriptor.read({"id": name, "independence": independence, "grade": grade})


def test_the_table_is_the_protocols() -> None:
    assert {name: (one.id, one.independence, one.grade) for name, one in CHANNEL_TABLE.items()} == {
        "ui": ("ui", "actuation-derived", "presence"),
        "net": ("net", "independent", "consequence"),
        "state": ("state", "actuation-derived", "consequence"),
        "signal": ("signal", "actuation-derived", "consequence"),
        "log": ("log", "independent", "context"),
        "route": ("route", "actuation-derived", "presence"),
        "storage": ("storage", "actuation-derived", "consequence"),
        "time": ("time", "independent", "context"),
        "visual": ("visual", "actuation-derived", "presence"),
    }
    assert tuple(CHANNEL_TABLE) == CHANNEL_IDS


@pytest.mark.parametrize(("name", "independence", "grade"), list(product(CHANNEL_IDS, INDEPENDENCES, GRADES)))
def test_a_declaration_may_be_weaker_than_the_table_and_never_stronger(
    name: str, independence: str, grade: Grade
) -> None:
    row = CHANNEL_TABLE[name]
    too_independent = independence == "independent" and row.independence == "actuation-derived"
    too_good = GRADES.index(grade) < GRADES.index(row.grade)
    one = channel(name, independence, grade)
    assert len(declaration_faults([one])) == too_independent + too_good
    assert len(declaration_faults([one], witness=True)) == too_good


def test_a_fault_names_the_channel_and_what_it_may_be() -> None:
    independence, grade = declaration_faults([channel("ui", "independent", "consequence")])
    assert independence == (
        "channel ui is declared independent: what a realm sees there is made by the action's own code path, "
        "so declare it actuation-derived"
    )
    assert grade == "channel ui is declared as consequence: it can be presence at most"


def test_a_name_of_ones_own_is_worth_what_it_is_declared_as() -> None:
    assert declaration_faults([channel("x-mail", "independent", "consequence"), NET]) == ()


def test_a_channel_declared_twice_is_ambiguous() -> None:
    assert declaration_faults([NET, LOG, NET]) == ("channel net is declared twice: which one holds cannot be told",)
    assert len(declaration_faults([channel("x-a", "independent", "context")] * 3)) == 2
    document = case().document()
    with pytest.raises(EvidenceError, match="channel log twice") as caught:
        AdjudicationInput.read({**document, "channels": [*document["channels"], LOG.document()]})
    assert caught.value.where == "$.channels"


def test_of_a_channel_that_is_there_twice_the_first_holds() -> None:
    weak = channel("net", "actuation-derived", "context")
    assert declared(iter([LOG, NET, weak])) == {"log": LOG, "net": NET}


def test_the_weaker_grade() -> None:
    for first, second in product(get_args(Grade), repeat=2):
        assert weaker_grade(first, second) == max(first, second, key=GRADES.index)
    assert weaker_grade("presence", "context") == "context"


def test_a_disagreement_convicts_where_one_side_is_independent() -> None:
    assert disagreement_can_convict(LOG, UI)
    assert disagreement_can_convict(UI, LOG)
    assert disagreement_can_convict(LOG, NET)
    assert not disagreement_can_convict(UI, STATE)


def test_a_yes_is_possible_where_one_channel_is_independent_and_of_consequence_grade() -> None:
    assert could_ever_prove([LOG, NET])
    assert not could_ever_prove([LOG, STATE])
    assert can_prove([LOG, STATE])
    assert not can_prove([LOG, UI])
    assert not could_ever_prove([])
