"""Messages leave as the bytes that came, and are read the same way on both sides."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.gateway.message import Message, NotAMessage, Raw, dumps, loads, split, split_list

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def _message(**fields: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def test_what_nobody_changes_leaves_as_the_bytes_that_came() -> None:
    data = (
        b'{ "jsonrpc":"2.0", "id" : 1.50, "method":"x",'
        b'"params":{"n":1180591620717411303424, "f":1e-7,"e":"\\u2028\\/"} }'
    )
    assert Message.parse(data).encode() == data


def test_a_changed_name_leaves_everything_beside_it_as_it_was() -> None:
    data = (
        b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":'
        b'{"name":"x","arguments":{"n":1e400, "s":"\\ud83d\\ude00"},"later":[ 1 ]}}'
    )
    changed = Message.parse(data).with_param("name", "y").encode()
    assert changed == data.replace(b'"name":"x"', b'"name":"y"')


@given(_JSON)
def test_any_json_comes_through_a_rewriting_unchanged(value: object) -> None:
    message = Message.parse(_message(id=1, method="m", params={"value": value, "other": 1}))
    assert json.loads(message.with_param("other", 2).encode())["params"] == {"value": value, "other": 2}


@given(st.dictionaries(st.text(), _JSON, max_size=5))
def test_the_slow_reader_splits_as_the_fast_one(value: dict[str, object]) -> None:
    text = json.dumps(value)
    marked = text[:-1] + (", " if value else "") + '"\\ud800mark": 1}'  # only the slow one takes half of a pair
    slow = split(marked.encode())
    assert slow is not None
    assert bytes(slow.pop("\ud800mark")) == b"1"
    fast = split(text.encode())
    assert fast is not None
    assert {key: bytes(raw) for key, raw in slow.items()} == {key: bytes(raw) for key, raw in fast.items()}


@pytest.mark.parametrize("value", ["9" * 5000, "-" + "9" * 5000, f"[{'1' * 5000}]", f'{{"a": {"1" * 5000}}}'])
def test_an_integer_of_more_digits_than_python_reads_is_read_wherever_it_stands(value: str) -> None:
    data = (
        f'{{"jsonrpc":"2.0","id":{value if value[0] in "-9" else 1},"method":"m","params":{{"_meta":{{"k":{value}}}}}}}'
    )
    message = Message.parse(data.encode())
    loads(message.meta["k"])
    assert message.settled().encode() == data.encode()
    assert split(f'{{"\\ud800": {value}}}'.encode()) is not None
    assert Message.parse(f'{{"jsonrpc":"2.0","id":1,"error":{{"code":{value}}}}}'.encode()).error_code is None


def test_half_of_a_surrogate_pair_passes_as_the_escape_that_it_is() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"result":{"text":"a\\ud800b"}}'
    message = Message.parse(data)
    assert message.encode() == data
    assert bytes(message.result["text"]) == b'"a\\ud800b"'


def test_a_key_that_is_given_twice_is_there_once_after_settling() -> None:
    data = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open","name":"shut",'
        b'"_meta":{"k":1,"k":2},"_meta":{"k":3,"k":4}}}'
    )
    message = Message.parse(data)
    assert message.text("name") == "shut"
    settled = message.settled().encode()
    assert settled.count(b'"name"') == 1
    assert settled.count(b'"k"') == 1
    assert json.loads(settled)["params"] == {"name": "shut", "_meta": {"k": 4}}


def test_a_line_has_no_break_inside() -> None:
    pretty = (
        json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": "a\nb"}}, indent=2).replace("\n", "\r\n").encode()
    )
    line = Message.parse(pretty).line()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert b"\r" not in line
    assert json.loads(line)["result"] == {"text": "a\nb"}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
        (b'{"jsonrpc":"2.0","a":"\\ud800","x":Infinity}', -32700),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", -32700),
        (b"[]", -32600),
        (b"1", -32600),
        (b'{"id":1,"method":"m"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"m"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', -32600),
    ],
)
def test_what_is_no_message_is_refused_with_its_code(data: bytes, code: int) -> None:
    with pytest.raises(NotAMessage) as refused:
        Message.parse(data)
    assert refused.value.code == code


def test_ids_of_other_kinds_are_other_ids() -> None:
    number = Message.parse(_message(id=1, method="m"))
    string = Message.parse(_message(id="1", method="m"))
    assert number.id != string.id


def test_a_message_shows_no_values_of_itself() -> None:
    message = Message.parse(_message(id=1, method="m", params={"password": "hunter2"}))
    assert "hunter2" not in repr(message)


def test_params_that_are_no_object_have_no_fields() -> None:
    message = Message.parse(_message(id=1, method="m", params=[1, 2]))
    assert message.params == {}
    assert message.meta == {}
    assert json.loads(message.settled().encode())["params"] == [1, 2]


def test_values_that_the_fast_writer_refuses_are_written_too() -> None:
    assert json.loads(dumps({"n": 2**70, "raw": Raw(b"1")})) == {"n": 2**70, "raw": 1}
    assert json.loads(dumps("\ud800")) == "\ud800"


def test_a_key_with_half_of_a_surrogate_pair_leaves_what_is_beside_it_as_it_was() -> None:
    data = rb'{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"k \ud83d":1.50,"n":1E+2},"p \udc00":1e400}}'
    changed = Message.parse(data).with_meta({"mine": 2**70})
    meta = rb'"_meta":{"k \ud83d":1.50,"n":1E+2,"mine":1180591620717411303424},"p \udc00":1e400'
    assert changed.encode() == b'{"jsonrpc":"2.0","id":1,"method":"x","params":{' + meta + b"}}"
    odd = Message.parse(rb'{"jsonrpc":"2.0","id":1,"method":"x","top \ud83d":[1.0]}').with_id(2)
    assert odd.encode() == rb'{"jsonrpc":"2.0","id":2,"method":"x","top \ud83d":[1.0]}'


@given(st.text(), st.booleans())
def test_a_text_is_read_as_json_says(text: str, ascii_only: bool) -> None:
    data = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"t": text}}, ensure_ascii=ascii_only)
    try:
        encoded = data.encode()
    except UnicodeEncodeError:
        return
    assert Message.parse(encoded).text("t") == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[]", []),
        (' [ 1 , {"a": [2]} ,"x"] ', ["1", '{"a": [2]}', '"x"']),
        (r'[{"a":"\ud800"}, [], "\udc00" ]', [r'{"a":"\ud800"}', "[]", r'"\udc00"']),
        (r' [ "\ud800" ] ', [r'"\ud800"']),
        ('{"a":1}', None),
        (r'{"a":"\ud800"}', None),
        ("5", None),
    ],
)
def test_a_list_is_split_into_what_stands_there_with_every_escape(text: str, found: list[str] | None) -> None:
    split = split_list(text.encode())
    assert (None if split is None else [bytes(one).decode() for one in split]) == found


@pytest.mark.parametrize("text", ["[1", "[1,]", r'["\ud800"', "[NaN]", "", "x"])
def test_what_is_no_json_is_no_list(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of two kinds
        split_list(text.encode())
