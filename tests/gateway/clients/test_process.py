"""`hotplug serve` as a process: how it ends, what it writes, what it imports before the first answer."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .home import CALENDAR, Home, child, running

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "client", "version": "1"},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
}
HEAVY = re.compile(r"\| +(mcp|mcp_types|fastmcp|httpx2|starlette|jsonschema|icalendar|rich|sqlalchemy)$", re.MULTILINE)


class Process:
    """A program, its lines, and what it wrote besides."""

    def __init__(self, program: subprocess.Popen[bytes], errors: Path) -> None:
        self.program = program
        self._errors = errors
        self.written: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.program.stdout is not None
        for line in self.program.stdout:
            self.written.put(line)
        self.written.put(b"")

    def line(self) -> bytes:
        return self.written.get(timeout=60)

    def ask(self, id_: int, method: str, **params: Any) -> dict[str, Any]:
        """The answer; every line before it has to be a message too."""
        assert self.program.stdin is not None
        message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
        self.program.stdin.write(json.dumps(message).encode() + b"\n")
        self.program.stdin.flush()
        while True:
            got = json.loads(self.line())
            assert got["jsonrpc"] == "2.0"
            if got.get("id") == id_:
                return got

    def ended(self) -> int:
        """How it ended, and nothing but messages was left to read."""
        code = self.program.wait(30)
        while line := self.line():
            assert json.loads(line)["jsonrpc"] == "2.0"
        return code

    @property
    def errors(self) -> str:
        return self._errors.read_text()


@contextmanager
def serving(home: Home, *words: str, python: tuple[str, ...] = ()) -> Generator[Process]:
    errors = home.folder / "serve.err"
    with errors.open("w") as written:
        program = subprocess.Popen(
            (sys.executable, *python, "-m", "hotplug", "serve", *words),
            env=home.env,
            cwd=home.work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=written,
        )
    process = Process(program, errors)
    try:
        yield process
    finally:
        program.kill()
        program.wait()
        for stream in (program.stdin, program.stdout):
            if stream is not None:
                stream.close()


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT"])
@pytest.mark.parametrize("under_way", [False, True])
def test_over_stdio_it_ends_in_order_with_its_children(tmp_path: Path, how: str, under_way: bool) -> None:
    home = Home(tmp_path, child("plain", tmp_path) + child("noisy", tmp_path, "noisy") + CALENDAR)
    with serving(home) as process:
        process.ask(1, "initialize", **HELLO)
        tools = process.ask(2, "tools/list")["result"]["tools"]
        assert {"plain.echo", "noisy.echo", "calendar.create"} <= {one["name"] for one in tools}
        said = process.ask(3, "tools/call", name="noisy.echo", arguments={"a": 1})
        assert said["result"]["content"] == [{"type": "text", "text": '{"a": 1}'}]
        assert len(running(tmp_path)) == 2
        assert process.program.stdin is not None
        if under_way:
            call = {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "plain.silent"}}
            process.program.stdin.write(json.dumps(call).encode() + b"\n")
            process.program.stdin.flush()
            process.ask(5, "ping")
        if how == "end of input":
            process.program.stdin.close()
        else:
            process.program.send_signal(getattr(signal, how))
        assert process.ended() == 0
    assert running(tmp_path) == []
    assert "Traceback" not in process.errors


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
def test_over_http_it_ends_in_order_with_its_children(tmp_path: Path, how: str) -> None:
    home = Home(tmp_path, child("plain", tmp_path))
    opened = home.answer("thread", "open")
    with serving(home, "--http", "0") as process:
        url = process.line().decode().strip() + opened["path"]
        listed = posted(url, opened["token"], {"method": "tools/list", "params": {"_meta": META}})
        assert "plain.echo" in {one["name"] for one in listed["result"]["tools"]}
        assert len(running(tmp_path)) == 1
        process.program.send_signal(getattr(signal, how))
        assert process.program.wait(30) == 0
        assert process.line() == b""
    assert running(tmp_path) == []
    assert "Traceback" not in process.errors


def test_without_servers_it_says_what_to_do_and_lists_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with serving(home) as process:
        assert process.ask(1, "initialize", **HELLO)["result"]["serverInfo"]["name"] == "hotplug"
        assert process.ask(2, "tools/list")["result"] == {"tools": []}
        assert process.program.stdin is not None
        process.program.stdin.close()
        assert process.ended() == 0
    assert "no server is set up yet: hotplug server add" in process.errors


@pytest.mark.parametrize("given", ["a file", "nothing"])
def test_input_and_output_may_be_files(tmp_path: Path, given: str) -> None:
    home = Home(tmp_path, child("plain", tmp_path))
    asked = tmp_path / "asked"
    asked.write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n")
    answered = tmp_path / "answered"
    with (asked if given == "a file" else Path(os.devnull)).open("rb") as incoming, answered.open("wb") as outgoing:
        done = subprocess.run(
            home.command("serve"), env=home.env, stdin=incoming, stdout=outgoing, stderr=subprocess.PIPE, timeout=60
        )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in answered.read_text().splitlines()]
    assert answers == ([{"jsonrpc": "2.0", "id": 1, "result": {}}] if given == "a file" else [])


def test_the_sdk_is_not_imported_before_the_first_answer_over_stdio(tmp_path: Path) -> None:
    home = Home(tmp_path, child("plain", tmp_path) + CALENDAR)
    with serving(home, python=("-X", "importtime")) as process:
        process.ask(1, "initialize", **HELLO)
        tools = process.ask(2, "tools/list")["result"]["tools"]
        assert {"plain.echo", "calendar.create"} <= {one["name"] for one in tools}
        assert not process.ask(3, "tools/call", name="plain.echo")["result"].get("isError")
        assert "| hotplug.gateway.app" in re.sub(r" +", " ", process.errors)
        assert HEAVY.findall(process.errors) == []


def test_the_sdk_is_not_imported_before_the_first_answer_over_http(tmp_path: Path) -> None:
    home = Home(tmp_path, child("plain", tmp_path) + CALENDAR)
    opened = home.answer("thread", "open")
    with serving(home, "--http", "0", python=("-X", "importtime")) as process:
        url = process.line().decode().strip() + opened["path"]
        listed = posted(url, opened["token"], {"method": "tools/list", "params": {"_meta": META}})
        assert {"plain.echo", "calendar.create"} <= {one["name"] for one in listed["result"]["tools"]}
        assert "| hotplug.gateway.app" in re.sub(r" +", " ", process.errors)
        assert HEAVY.findall(process.errors) == []


def posted(url: str, token: str, message: dict[str, Any]) -> dict[str, Any]:
    import httpx2

    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": message["method"],
    }
    answer = httpx2.post(url, json={"jsonrpc": "2.0", "id": 1, **message}, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()
