"""A captured state may be put back only where it came from."""

from __future__ import annotations

from typing import Any

import pytest

from hotplug.evidence.fixtures import FixtureRef, fixture_usable
from hotplug.evidence.subject import SubjectRef


def subject(**changed: Any) -> SubjectRef:
    return SubjectRef.read({"surface": "web", "instance": "a@1", "epoch": 2} | changed)


@pytest.mark.parametrize(
    ("captured", "current", "usable"),
    [
        (subject(), subject(), True),
        (subject(revision="x"), subject(revision="y"), True),
        (subject(), subject(instance="a@2"), False),
        (subject(), subject(surface="desktop"), False),
        (subject(), subject(epoch=3), False),
        (subject(epoch=None), subject(epoch=None), True),
        (subject(epoch=None), subject(), False),
        (subject(), subject(epoch=None), False),
        (subject(epoch=0), subject(epoch=None), False),
    ],
)
def test_a_state_goes_back_where_surface_instance_and_epoch_agree(
    captured: SubjectRef, current: SubjectRef, usable: bool
) -> None:
    assert fixture_usable(FixtureRef(id="f", subject=captured, captured_at=1), current) is usable
