from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from hotplug.connect.masking import MASK, Masker, mask_argv, mask_url, neutral


def test_a_secret_is_masked_as_it_stands_and_encoded() -> None:
    mask = Masker(['p"a ss/ö'])
    for text in ('p"a ss/ö', 'p\\"a ss/\\u00f6', "p%22a%20ss%2F%C3%B6"):
        assert mask(f"<{text}>") == "<[secret]>"


def test_a_longer_secret_is_masked_before_one_that_it_contains() -> None:
    assert Masker(["abc", "abcdef"])("xabcdefx") == "x[secret]x"


def test_each_line_of_a_key_is_masked() -> None:
    mask = Masker(["-----BEGIN KEY-----\nMIIEvAIBADANBg\n-----END KEY-----"])
    assert mask("read MIIEvAIBADANBg") == "read [secret]"


def test_values_of_credential_like_names_are_masked_and_short_ones_left() -> None:
    mask = Masker.of({"API_TOKEN": "tok-12345", "DEBUG": "verbose", "PASSWORD": "1", "Authorization": "Bearer abcdef"})
    assert mask("tok-12345 verbose 1 abcdef") == "[secret] verbose 1 [secret]"


def test_control_characters_are_taken_out_of_foreign_text() -> None:
    assert neutral("\x1b[31mred\x1b[0m\x1b]0;title\x07 \u202ex\x00\ty") == "red x y"
    assert len(neutral("x" * 10_000)) < 2_100


def test_a_secret_split_by_an_escape_is_masked_too() -> None:
    assert Masker(["hunter22"]).line("hun\x1b[1mter22") == "[secret]"


def test_urls_and_arguments_lose_their_credentials() -> None:
    assert mask_url("https://u:p@h:1/x?token=abc&y=1") == "https://h:1/x?token=[secret]&y=1"
    assert mask_argv(["x", "--api-key", "k", "--port", "1", "--password=p"]) == (
        "x", "--api-key", "[secret]", "--port", "1", "--password=[secret]",
    )  # fmt: skip


@given(st.text(min_size=4, max_size=24), st.binary(max_size=8), st.binary(max_size=8))
def test_a_secret_is_masked_wherever_it_stands_in_base64(secret: str, before: bytes, after: bytes) -> None:
    mask = Masker([secret])
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert MASK in mask(encode(before + secret.encode() + after).decode())


@given(st.text(min_size=1, max_size=24))
def test_a_secret_is_masked_in_every_form_of_a_url_and_of_json(secret: str) -> None:
    mask = Masker([secret])
    for text in (
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
    ):
        assert MASK in mask(text)


def test_what_is_learned_later_is_masked_too_and_the_oldest_forgotten() -> None:
    masker = Masker(["given-secret"])
    for number in range(17):
        masker.learn(f"token-{number:02}")
    masker.learn("token-16")
    assert masker("given-secret token-01 token-16") == f"{MASK} {MASK} {MASK}"
    assert masker("token-00") == "token-00"
