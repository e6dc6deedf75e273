"""Tokens: made at random, compared in constant time, taken from one header only."""

from __future__ import annotations

import hashlib

import pytest

from hotplug.gateway.tokens import bearer_of, new_token, opener_of, same_hash, token_hash


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer hpt_x", "hpt_x"),
        ("bearer hpt_x", "hpt_x"),
        ("BEARER  hpt_x ", "hpt_x"),
        ("Basic hpt_x", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("hpt_x", None),
        ("", None),
        (None, None),
    ],
)
def test_a_token_comes_in_a_bearer_header(header: str | None, token: str | None) -> None:
    assert bearer_of(header) == token


def test_a_hash_is_sha256_and_no_hash_is_never_the_same() -> None:
    token = new_token()
    given = token_hash(token)
    assert given == hashlib.sha256(token.encode()).digest()
    assert same_hash(given, token_hash(token))
    assert not same_hash(None, given)
    assert not same_hash(token_hash(new_token()), given)


def test_an_opener_is_known_by_the_hash_of_its_token() -> None:
    openers = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("editor", "phone")}
    openers["phone"] = openers["phone"].upper()
    assert opener_of(openers, "editor") == "editor"
    assert opener_of(openers, "phone") == "phone"
    assert opener_of(openers, "other") is None
    assert opener_of({}, "editor") is None
    assert opener_of({"odd": "ü"}, "editor") is None
