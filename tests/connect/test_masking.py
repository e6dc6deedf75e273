from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.connect.masking import MASK, Masker, argv_secrets, mask_argv, mask_url, neutral


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
    mask = Masker.of({"DATABASE_URL": "postgresql://me:hunter%2122@db/x", "PAGE": "https://h/x?page=2"})
    assert mask("me@db: hunter%2122, or hunter!22") == "me@db: [secret], or [secret]"


def test_a_switch_of_a_credential_like_name_spoils_no_line_and_is_none_on_a_command_line() -> None:
    mask = Masker.of({"USE_TOKEN": "true", "AUTH": "None"}, guessed=["False"])
    assert mask("true, None and False") == "true, None and False"
    assert argv_secrets(["x", "--use-token", "true", "-e", "TOKEN=null"]) == ()


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


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["docker", "run", "-e", "GITHUB_TOKEN=tok-secret", "img"], ["-e", "GITHUB_TOKEN=[secret]"]),
        (["docker", "run", "--env=API_KEY=tok-secret", "img"], ["--env=API_KEY=[secret]"]),
        (["env", "API_KEY=tok-secret", "server"], ["API_KEY=[secret]"]),
        (["mcp-remote", "https://h/mcp", "--header", "Authorization: Bearer tok-secret"], ["Authorization: [secret]"]),
        (["mcp-remote", "https://h/mcp", "--header", "X-Api-Key:tok-secret"], ["X-Api-Key:[secret]"]),
        (["curl", "--header=Cookie: tok-secret"], ["--header=Cookie: [secret]"]),
        (["curl", "-HX-Auth-Token: tok-secret"], ["-HX-Auth-Token: [secret]"]),
        (["server", "ghp_0123456789abcdefghijkl"], ["[secret]"]),
        (["server", "--use=ghp_0123456789abcdefghijkl"], ["--use=[secret]"]),
        (["server", "postgresql://me:tok-secret@h/db"], ["postgresql://h/db"]),
        (["server", "postgresql://h/db?password=tok-secret"], ["postgresql://h/db?password=[secret]"]),
        (["server", "http://me:tok-secret@[::1/mcp"], ["http://[::1/mcp"]),
        (["server", "--password", "tok-secret"], ["--password", "[secret]"]),
        (["npx -y server --token tok-secret", "more"], ["npx -y server --token [secret]", "more"]),
    ],
)
def test_a_credential_on_a_command_line_is_masked_where_it_is_shown_and_in_what_the_server_says(
    argv: list[str], shown: list[str]
) -> None:
    masked = mask_argv(argv)
    assert len(masked) == len(argv)
    assert set(shown) <= set(masked)
    assert not {"tok-secret", "ghp_0123456789abcdefghijkl"} & set(" ".join(masked).replace("=", " ").split())
    said = Masker(guessed=argv_secrets(argv))("refused: tok-secret ghp_0123456789abcdefghijkl")
    assert MASK in said


def test_what_is_no_credential_on_a_command_line_is_shown_and_a_reference_is_none() -> None:
    plain = ("npx", "-y", "x@1", "--root=/home/me", "C:\\work", "a:b", "-e", "TOKEN_PATH=/t", "https://h/mcp?page=1")
    assert mask_argv(plain) == plain
    assert (
        argv_secrets([*plain, "--token", "${TOKEN}", "--header", "Authorization: Bearer ${TOKEN}", "-e", "A=$B"]) == ()
    )


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
