import base64
import json
import random
import shutil
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.errors import CanonicalError
from hotplug.profile.canonical import canonical, digest, parse

ROOT = Path(__file__).parents[2]
VECTORS = sorted((ROOT / "tests/vectors/canonical").glob("*.json"))
SCRIPT = ROOT / "tools/vectors/check-canonical.mjs"

ALL: list[dict[str, Any]] = [vector for file in VECTORS for vector in json.loads(file.read_text("utf-8"))]
GOOD = [vector for vector in ALL if "canonical" in vector]
REFUSED = [vector for vector in ALL if "path" in vector]

NODE = shutil.which("node")

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def run_node(*files: Path) -> subprocess.CompletedProcess[str]:
    assert NODE is not None, "node isn't on the PATH; the second implementation of the digest needs Node 20 or newer"
    return subprocess.run([NODE, str(SCRIPT), *map(str, files)], capture_output=True, text=True, timeout=60)


def refusal(text: str | bytes) -> CanonicalError:
    with pytest.raises(CanonicalError) as caught:
        canonical(parse(text))
    return caught.value


@pytest.mark.parametrize("vector", GOOD, ids=lambda vector: vector["name"])
def test_a_vector_has_its_canonical_bytes_and_digest(vector: dict[str, Any]) -> None:
    value = parse(vector["input"])
    assert canonical(value).decode() == vector["canonical"]
    assert digest(value) == vector["digest"]


@pytest.mark.parametrize("vector", REFUSED, ids=lambda vector: vector["name"])
def test_a_refused_vector_names_its_place(vector: dict[str, Any]) -> None:
    text = base64.b64decode(vector["bytes"]) if "bytes" in vector else vector["input"]
    assert refusal(text).path == vector["path"]


def test_the_vectors_are_there_and_named_once() -> None:
    assert len(GOOD) >= 40
    assert len(REFUSED) >= 25
    for file in VECTORS:
        names = [vector["name"] for vector in json.loads(file.read_text("utf-8"))]
        assert len(names) == len(set(names))


def test_a_second_implementation_in_node_agrees_on_every_vector() -> None:
    done = run_node(*VECTORS)
    assert done.returncode == 0, done.stderr
    assert f"{len(ALL)} vectors, 0 different" in done.stdout


def test_node_agrees_on_doubles_and_keys_drawn_at_random(tmp_path: Path) -> None:
    source = random.Random(20260611)
    drawn: list[dict[str, Any]] = []
    while len(drawn) < 3000:
        number: float = struct.unpack("<d", source.randbytes(8))[0]
        if len(drawn) % 2:
            number = round(source.uniform(-1e6, 1e6), source.randrange(8)) * 10.0 ** source.randrange(-12, 24)
        if number - number != 0:
            continue
        key = "".join(chr(source.choice([0x41, 0xE9, 0xFB33, 0x1F600, 0x10FFFF])) for _ in range(3))
        value = {key: number, "é": [number], "\ufb33": None}
        text = canonical(value).decode()
        drawn.append({"name": f"{number!r}", "input": json.dumps(value), "canonical": text, "digest": digest(value)})
    file = tmp_path / "drawn.json"
    file.write_text(json.dumps(drawn), "utf-8")
    done = run_node(file)
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "digest", "input": "{}", "canonical": "{}", "digest": "sha256:00"},
        {"name": "bytes", "input": "{}", "canonical": "{ }", "digest": digest({})},
        {"name": "refused", "input": "{}", "path": "$.a"},
        {"name": "elsewhere", "input": '{"a":1,"a":2}', "path": "$.b"},
        {"name": "accepted", "input": "[NaN]", "canonical": "[null]", "digest": digest([None])},
    ],
    ids=lambda wrong: wrong["name"],
)
def test_the_node_check_notices_a_wrong_vector(tmp_path: Path, wrong: dict[str, Any]) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps([wrong]), "utf-8")
    done = run_node(file)
    assert done.returncode == 1
    assert wrong["name"] in done.stderr


def test_fr58_keys_are_ordered_by_utf_16_units() -> None:
    assert canonical({"\ufb33": 1, "\U0001f600": 2}).decode() == '{"\U0001f600":2,"\ufb33":1}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1e-7, "1e-7"),
        (0.000001, "0.000001"),
        (-0.0, "0"),
        (12.50, "12.5"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e25, "1e+25"),
        (5e-324, "5e-324"),
    ],
)
def test_fr59_numbers_follow_the_ecmascript_form(value: float, text: str) -> None:
    assert canonical(value).decode() == text


def test_fr60_a_duplicate_key_spelled_with_an_escape_is_refused_at_its_path() -> None:
    error = refusal(r'{"a":1,"\u0061":2}')
    assert error.path == "$.a"
    assert "given twice" in str(error)


def test_fr60_a_number_that_overflows_is_refused() -> None:
    assert "1E400" in str(refusal("[1E400]"))


def test_fr60_half_a_surrogate_pair_is_refused() -> None:
    assert "U+D83D" in str(refusal(r'["\ud83d"]'))


def test_fr60_two_spellings_of_a_letter_give_two_digests() -> None:
    assert digest("\u00e9") != digest("e\u0301")


def test_half_a_pair_that_stands_raw_in_the_text_is_refused() -> None:
    assert refusal('["a\ud83d"]').path == "character 3"


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        ({"a": [float("nan")]}, "$.a[0]", "nan"),
        ({"a": float("inf")}, "$.a", "inf"),
        ({"ids": [1, 2**53]}, "$.ids[1]", "write it as a string"),
        ({"ids": [-(2**53)]}, "$.ids[0]", "-9007199254740992"),
        ({"n": 10**5000}, "$.n", "bits"),
        ({"a": ("x", "\ud800")}, "$.a[1]", "U+D800"),
        ({"a": {"\udfff": 1}}, '$.a["\\udfff"]', "U+DFFF"),
        ({"a": {1: 2}}, "$.a", "the key 1 is a int"),
        ({"a": {2, 3}}, "$.a", "set"),
        ([b"x"], "$[0]", "bytes"),
    ],
)
def test_a_python_value_without_a_canonical_form_is_refused_at_its_path(value: object, path: str, words: str) -> None:
    with pytest.raises(CanonicalError) as caught:
        canonical(value)
    assert caught.value.path == path
    assert words in str(caught.value)


def test_what_is_nested_too_deeply_is_refused_both_ways() -> None:
    assert "too deeply" in str(refusal("[" * 100_000 + "]" * 100_000))
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(CanonicalError, match="too deeply"):
        canonical(loop)


def test_a_long_key_or_number_is_shortened_in_the_message() -> None:
    assert len(str(refusal("[" + "9" * 4000 + "]"))) < 200
    assert len(str(refusal(json.dumps({"k" * 999: 1})[:-1] + f',"{"k" * 999}":1}}'))) < 1300


def test_an_integer_that_is_its_doubles_form_is_read_as_that_double() -> None:
    assert canonical(parse("100000000000000000000")) == b"100000000000000000000"
    assert refusal("100000000000000000001").path == "$"


@given(JSON_VALUES)
def test_canonical_text_reads_back_to_the_same_canonical_text(value: object) -> None:
    text = canonical(value)
    assert canonical(parse(text)) == text
    assert canonical(parse(json.dumps(value))) == text


def test_a_megabyte_is_digested_in_reasonable_time() -> None:
    part = {"description": "What it does, in a sentence. " * 4, "input": {"type": "object", "properties": {"n": 1.5}}}
    document = {f"part.{index}": part for index in range(5000)}
    text = json.dumps(document)
    assert len(text) > 1_000_000
    started = time.process_time()
    digest(parse(text))
    assert time.process_time() - started < 3
