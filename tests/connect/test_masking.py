from __future__ import annotations

from hotplug.connect.masking import Masker, mask_argv, mask_url, neutral


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
