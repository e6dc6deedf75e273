"""Threads from a file."""

from __future__ import annotations

import pytest

from hotplug.access import AccessError, NotJson, Thread, read_lineage


def test_a_lineage_is_read_from_its_document() -> None:
    text = (
        '{"a": {}, "b": {"parent": "a", "delegated": true, "project": "p"}, "c": {"parent": null, "delegated": null}}'
    )
    assert read_lineage(text) == {"a": Thread("a"), "b": Thread("b", "a", True, "p"), "c": Thread("c")}
    assert read_lineage({"a": {"parent": "b"}}) == {"a": Thread("a", "b")}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "is a list"),
        ('{"a": 5}', "a in the lineage is no object"),
        ('{"a": {"parent": 5}}', "a.parent is a number"),
        ('{"a": {"delegated": "yes"}}', "a.delegated is a text"),
        ('{"a": {"delegate": true}}', "a.delegate is no part"),
        ('{"a": {}, "a": {}}', 'gives "a" twice'),
        ('{"a": {"parent": "b", "parent": "c"}}', 'gives "parent" twice'),
    ],
)
def test_a_lineage_of_another_shape_is_refused_with_the_place(text: str, says: str) -> None:
    with pytest.raises(AccessError) as caught:
        read_lineage(text)
    assert says in str(caught.value)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(NotJson):
        read_lineage("{")
