"""The odd server gives what it promises, on standard streams and over HTTP, in both eras."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any, Protocol

import httpx2
import pytest

from hotplug.testing.odd.tools import LONG_NAME
from hotplug.testing.odd.writing import Raw, member, write
from hotplug.testing.program import started

PROGRAM = [sys.executable, "-m", "hotplug.testing.odd"]
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


class Peer(Protocol):
    """A client of one era on one transport: raw texts in, raw texts out."""

    modern: bool

    def exchange(self, text: str) -> Generator[str]:
        """All messages that a request brings, its answer last."""
        ...

    def say(self, text: str) -> None: ...


class Streams:
    def __init__(self, program: subprocess.Popen[bytes], modern: bool) -> None:
        self.modern = modern
        self._program = program

    def say(self, text: str) -> None:
        assert self._program.stdin is not None
        self._program.stdin.write(text.encode() + b"\n")
        self._program.stdin.flush()

    def exchange(self, text: str) -> Generator[str]:
        self.say(text)
        assert self._program.stdout is not None
        while line := self._program.stdout.readline():
            message = line.decode().rstrip("\n")
            yield message
            if "method" not in json.loads(message):
                return
        pytest.fail("the server ended without an answer")


class Web:
    def __init__(self, url: str, client: httpx2.Client, modern: bool) -> None:
        self.modern = modern
        self._url = url
        self._client = client
        if modern:
            client.headers["mcp-protocol-version"] = "2026-07-28"
        else:
            answer = client.post(url, content=request("initialize", INITIALIZE))
            client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
            self.say('{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def say(self, text: str) -> None:
        assert self._client.post(self._url, content=text).status_code == 202

    def exchange(self, text: str) -> Generator[str]:
        with self._client.stream("POST", self._url, content=text) as answer:
            yield from self._messages(answer)

    def general(self) -> Generator[str]:
        """What belongs to no request; the stream is open when this returns."""

        def messages(answer: httpx2.Response) -> Generator[str]:
            with closing(answer):
                yield from self._messages(answer)

        opened = self._client.send(self._client.build_request("GET", self._url), stream=True)
        return messages(opened)

    def _messages(self, answer: httpx2.Response) -> Generator[str]:
        if answer.headers["content-type"] == "application/json":
            answer.read()
            yield answer.content.decode()
            return
        buffer = ""
        for piece in answer.iter_bytes():
            buffer += piece.decode()
            # Not splitlines: what is sent unescaped would end a line there.
            *events, buffer = buffer.split("\n\n")
            yield from (event.split("\ndata: ", 1)[1] for event in events)


def request(method: str, params: dict[str, Any], number: Any = 7) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


@contextmanager
def streams(modern: bool) -> Generator[Peer]:
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        yield Streams(program, modern)
        assert program.stdin is not None
        program.stdin.close()
        assert program.wait(10) == 0


@contextmanager
def web(modern: bool) -> Generator[Peer]:
    with started([*PROGRAM, "--http", "0"]) as url, httpx2.Client(timeout=30) as client:
        yield Web(url, client, modern)


@pytest.fixture(
    scope="module",
    params=[(streams, False), (streams, True), (web, False), (web, True)],
    ids=["stdio-legacy", "stdio-modern", "http-legacy", "http-modern"],
)
def peer(request: pytest.FixtureRequest) -> Generator[Peer]:
    way, modern = request.param
    with way(modern) as connected:
        yield connected


def ask(peer: Peer, method: str, **params: Any) -> str:
    """The text of the answer."""
    if peer.modern:
        params["_meta"] = {**META, **params.get("_meta", {})}
    return list(peer.exchange(request(method, params)))[-1]


def call(peer: Peer, name: str, _meta: dict[str, Any] | None = None, **arguments: Any) -> str:
    return ask(peer, "tools/call", name=name, arguments=arguments, **({"_meta": _meta} if _meta else {}))


def structured(text: str) -> Any:
    return json.loads(text)["result"]["structuredContent"]


def test_the_result_of_a_vendor_method_is_its_parameters_as_they_came(peer: Peer) -> None:
    spelling = (
        r'{ "big": 1180591620717411303424, "float":1.0 ,"small": 1e-7, "huge": 1E400, "lone":"\ud800",'
        r' "line":"\u2028", "null":null, "_meta": {"io.modelcontextprotocol/protocolVersion":"2026-07-28"} }'
    )
    for method in ("vendor/echo", "vendor/announce"):
        text = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{spelling}}}'
        if not peer.modern:
            text = text.replace("io.modelcontextprotocol/protocolVersion", "vendor.example/none")
        *notices, answer = peer.exchange(text)
        sent = member(text, "params")
        assert member(answer, "result") == sent
        assert [member(notice, "params") for notice in notices] == ([sent] if method == "vendor/announce" else [])


def test_meta_goes_there_and_back(peer: Peer) -> None:
    sent = {"vendor.example/mine": {"null": None, "deep": [1, {"a": 2**70}]}}
    result = json.loads(call(peer, "echo", sent, x=1))["result"]
    assert result["_meta"]["vendor.example/seen"]["vendor.example/mine"] == sent["vendor.example/mine"]
    assert result["structuredContent"]["arguments"] == {"x": 1}


def test_every_level_has_a_field_that_nobody_knows(peer: Peer) -> None:
    result = json.loads(ask(peer, "tools/list"))["result"]
    tool = result["tools"][0]
    assert {"vendorResult", "tools"} <= result.keys()
    assert {"vendorField", "_meta"} <= tool.keys()
    assert "vendorHint" in tool["annotations"]
    assert "vendorField" in tool["icons"][0]
    contents = json.loads(call(peer, "contents"))["result"]["content"]
    assert [content["type"] for content in contents] == ["hologram", "text", "text"]
    assert "mood" in contents[1]["annotations"]
    failed = json.loads(call(peer, "fail"))["result"]
    assert failed["isError"] is True
    assert "vendorField" in failed
    greeting = ask(peer, "server/discover") if peer.modern else ask(peer, "initialize", **INITIALIZE)
    assert {"vendorField", "capabilities"} <= json.loads(greeting)["result"].keys()
    assert "vendorCapability" in json.loads(greeting)["result"]["capabilities"]


def test_numbers_are_spelt_as_their_names_say(peer: Peer) -> None:
    numbers = member(call(peer, "numbers"), "result", "structuredContent", "numbers")
    assert numbers is not None
    names = json.loads(numbers.text)
    assert {str(2**70), "1e-7", "1.0", "1e400"} <= names.keys()
    assert all(member(numbers.text, name) == Raw(name) for name in names)


def test_strings_have_every_escape_and_lone_surrogates(peer: Peer) -> None:
    answer = call(peer, "strings")
    content = member(answer, "result", "structuredContent")
    assert content is not None
    for name, spelling in {
        "short": r'"\" \\ \/ \b \f \n \r \t"',
        "separators": r'"\u2028\u2029"',
        "separatorsUnescaped": '"\u2028\u2029\x85"',
        "loneHigh": r'"\ud800"',
        "pair": r'"\ud83d\udd0c"',
        "pairUnescaped": '"\U0001f50c"',
    }.items():
        assert member(content.text, name) == Raw(spelling)
    assert json.loads(content.text)["controls"] == "".join(map(chr, range(32)))


def test_depth_and_size_are_as_asked(peer: Peer) -> None:
    assert "[" * 400 + "]" * 400 in call(peer, "deep", depth=400)
    assert len(json.loads(call(peer, "large", size=70_001))["result"]["content"][0]["text"]) == 70_001


def test_a_burst_arrives_whole_and_in_order(peer: Peer) -> None:
    meta: dict[str, Any] = {"progressToken": "burst", **(META if peer.modern else {})}
    *notices, answer = peer.exchange(request("tools/call", {"name": "burst", "_meta": meta}))
    told = [json.loads(notice)["params"] for notice in notices]
    assert [note["progress"] for note in told] == list(range(1, 3_001))
    assert {note["progressToken"] for note in told} == {"burst"}
    assert json.loads(answer)["result"]["content"][0]["text"] == "3000 notices were sent"


def test_an_error_has_data_and_the_code_that_was_asked_for(peer: Peer) -> None:
    error = json.loads(call(peer, "refuse", code=-32077))["error"]
    assert error["code"] == -32077
    assert error["data"]["number"] == 2**70
    assert error["data"]["lone"] == "\udead"
    assert "vendorField" in error
    assert json.loads(ask(peer, "vendor/nowhere"))["error"]["code"] == -32601
    assert json.loads(call(peer, "nowhere"))["error"]["code"] == -32602


def test_all_kinds_of_media_are_there(peer: Peer) -> None:
    content = json.loads(call(peer, "media"))["result"]["content"]
    assert [block["type"] for block in content] == ["image", "audio", "resource_link", "resource", "resource"]
    assert content[2]["size"] == 2**63


def test_a_name_may_have_128_characters(peer: Peer) -> None:
    assert len(LONG_NAME) == 128
    assert "its whole name" in call(peer, LONG_NAME)


def test_the_client_is_asked(peer: Peer) -> None:
    params: dict[str, Any] = {"name": "ask", "arguments": {}}
    if not peer.modern:
        messages = peer.exchange(request("tools/call", params))
        question = json.loads(next(messages))
        assert question["method"] == "elicitation/create"
        given = {"action": "accept", "content": {"color": "red"}, "vendorField": 1}
        peer.say(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": given}))
        assert structured(next(messages)) == {"answer": given}
        messages.close()
        return
    first = json.loads(ask(peer, "tools/call", **params))["result"]
    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["color"]["method"] == "elicitation/create"
    again = {"inputResponses": {"color": {"action": "accept", "n": 1.0}}, "requestState": first["requestState"]}
    answered = structured(ask(peer, "tools/call", **params, **again))
    assert answered == {"answer": {"action": "accept", "n": 1.0}, "state": "as it was given out"}


def test_log_entries_are_sent_from_the_level_that_is_wanted_on(peer: Peer) -> None:
    meta: dict[str, Any] = {}
    if peer.modern:
        meta = {**META, "io.modelcontextprotocol/logLevel": "warning"}
        assert len(list(peer.exchange(request("tools/call", {"name": "log", "_meta": META})))) == 1
    else:
        ask(peer, "logging/setLevel", level="warning")
    *entries, _ = peer.exchange(request("tools/call", {"name": "log", "_meta": meta}))
    levels = [json.loads(entry)["params"]["level"] for entry in entries]
    assert levels == ["warning", "error", "critical", "alert", "emergency"]


def test_resources_come_in_pages_and_by_template(peer: Peer) -> None:
    first = json.loads(ask(peer, "resources/list"))["result"]
    second = json.loads(ask(peer, "resources/list", cursor=first["nextCursor"]))["result"]
    assert [item["uri"] for page in (first, second) for item in page["resources"]] == ["odd://text", "odd://bytes"]
    assert json.loads(ask(peer, "resources/templates/list"))["result"]["resourceTemplates"][0]["name"] == "items"
    read = json.loads(ask(peer, "resources/read", uri="odd://items/ä b?detail=1"))["result"]
    assert read["contents"][0]["uri"] == "odd://items/ä b?detail=1"
    assert read["contents"][0]["text"] == "\u2028 \ud800"
    missing = json.loads(ask(peer, "resources/read", uri="odd://nowhere"))["error"]
    assert missing["code"] == (-32602 if peer.modern else -32002)


def test_prompts_and_completions_are_there(peer: Peer) -> None:
    assert json.loads(ask(peer, "prompts/list"))["result"]["prompts"][0]["name"] == "plain"
    prompt = json.loads(ask(peer, "prompts/get", name="plain", arguments={"topic": "\u2028"}))["result"]
    assert prompt["messages"][0]["content"]["text"] == "\u2028"
    argument = {"name": "topic", "value": "a"}
    ref = {"type": "ref/prompt", "name": "plain"}
    completed = json.loads(ask(peer, "completion/complete", ref=ref, argument=argument))["result"]
    assert completed["completion"]["values"] == ["a", "a-1", "a\u2028"]


def test_a_cancelled_call_is_counted_and_never_answered(peer: Peer) -> None:
    if isinstance(peer, Web) and peer.modern:
        meta = {**META, "progressToken": 1}
        messages = peer.exchange(request("tools/call", {"name": "wait", "_meta": meta}))
        next(messages)
        messages.close()
    else:
        meta = {**(META if peer.modern else {}), "progressToken": 1}
        messages = peer.exchange(request("tools/call", {"name": "wait", "_meta": meta}, "waiting"))
        next(messages)
        peer.say('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"waiting"}}')
    for _ in range(500):
        if structured(call(peer, "cancelled"))["n"] == 1:
            return
        threading.Event().wait(0.01)
    pytest.fail("the cancellation never arrived")


def test_a_list_changes_and_whoever_listens_is_told(peer: Peer) -> None:
    if isinstance(peer, Web):
        _told_over_http(peer)
        return
    if peer.modern:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["odd://text"]}
        listening = peer.exchange(request("subscriptions/listen", {"_meta": META, "notifications": wanted}, "sub"))
        acknowledged = json.loads(next(listening))
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    else:
        peer.say('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        ask(peer, "resources/subscribe", uri="odd://text")
    for what, method in (("odd://text", "resources/updated"), ("tools", "tools/list_changed"), ("odd://other", None)):
        params = {"name": "change", "arguments": {"what": what}, "_meta": META if peer.modern else {}}
        *told, _ = peer.exchange(request("tools/call", params))
        assert [json.loads(notice)["method"] for notice in told] == ([f"notifications/{method}"] if method else [])
        if peer.modern and told:
            meta = json.loads(told[0])["params"]["_meta"]
            assert meta["io.modelcontextprotocol/subscriptionId"] == "sub"
    names = [tool["name"] for tool in json.loads(ask(peer, "tools/list"))["result"]["tools"]]
    assert "grown" in names


def _told_over_http(peer: Web) -> None:
    changes = request("tools/call", {"name": "change", "_meta": META if peer.modern else {}})
    if peer.modern:
        wanted = {"_meta": META, "notifications": {"toolsListChanged": True}}
        listening = peer.exchange(request("subscriptions/listen", wanted, "sub"))
        assert json.loads(next(listening))["method"] == "notifications/subscriptions/acknowledged"
    else:
        listening = peer.general()
    list(peer.exchange(changes))
    assert json.loads(next(listening))["method"] == "notifications/tools/list_changed"
    listening.close()


def test_what_arrived_can_be_seen(peer: Peer) -> None:
    if not (isinstance(peer, Web) and peer.modern):
        peer.say('{"jsonrpc":"2.0","method":"notifications/vendor/hello","params":{"n":1.0}}')
        assert '"params":{"n":1.0}' in call(peer, "seen")
    headers = dict(structured(call(peer, "seen"))["headers"])
    assert ("mcp-protocol-version" in headers) == (isinstance(peer, Web) and peer.modern)


def test_a_crash_leaves_no_answer() -> None:
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        output, _ = program.communicate(request("tools/call", {"name": "crash"}).encode() + b"\n", timeout=30)
    assert (output, program.returncode) == (b"", 70)


def test_members_are_found_as_they_are_spelt() -> None:
    text = ' { "a" : { "b\\n" :\t[1.0, {"c": "}"}] } , "d":1E5,"a":{"b\\n":2.50} } '
    assert member(text, "a", "b\n") == Raw("2.50")
    assert member(text, "d") == Raw("1E5")
    assert member(text, "d", "e") is None
    assert member("{}", "a") is None
    assert write({"a": [Raw("1.50"), None, {"ä": "\ud800"}]}) == r'{"a":[1.50,null,{"\u00e4":"\ud800"}]}'
