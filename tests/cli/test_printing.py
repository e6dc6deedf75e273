"""Text from elsewhere can't act on the terminal."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from hotplug.cli.printing import did_you_mean, printable, safe_json

TEXTS = st.text(st.characters(codec="utf-16", categories=None, exclude_categories=("Cs",)))


def test_escape_sequences_are_shown_not_sent() -> None:
    assert printable("a\x1b[31mred\x07\r") == r"a\x1b[31mred\x07\x0d"


def test_c1_controls_and_turned_text_are_shown() -> None:
    assert printable("\x9b2J \u202eevil\u2066") == r"\x9b2J \u202eevil\u2066"


def test_characters_that_only_a_model_sees_are_shown() -> None:
    assert printable("hi\U000e0041\u200b") == r"hi\U000e0041\u200b"


def test_half_a_surrogate_pair_can_be_written() -> None:
    assert printable("\ud83d").encode() == rb"\ud83d"


def test_line_feeds_stay_only_where_lines_are_wanted() -> None:
    assert printable("a\n\tb") == r"a\x0a\x09b"
    assert printable("a\n\tb\r", lines=True) == "a\n\tb\\x0d"


def test_letters_of_any_language_stay() -> None:
    assert printable("Zażółć 日本 🎉 نص") == "Zażółć 日本 🎉 نص"


@given(TEXTS)
def test_json_made_safe_is_the_same_document(text: str) -> None:
    safe = safe_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(safe) == {"text": text}
    assert printable(safe, lines=True) == safe


def test_close_words_are_offered_and_far_ones_not() -> None:
    assert did_you_mean("calender", ["browser", "calendar"]) == "Did you mean 'calendar'?"
    assert did_you_mean("zzz", ["browser", "calendar"]) is None
