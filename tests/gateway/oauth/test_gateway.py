"""The whole gateway in front of servers that want credentials: what goes up is the gateway's own, and nothing stays."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from hotplug.connect.secrets import ConfiguredSecrets, NoSecrets, Secrets, held
from hotplug.connect.target import HttpTarget
from hotplug.gateway.app import Gateway
from hotplug.gateway.config import GatewayConfig, RecordsConfig, ServerConfig
from hotplug.gateway.link import Era
from hotplug.gateway.oauth import Login
from hotplug.gateway.oauth.login import log_in
from hotplug.testing.odd import odd_app

from .guarded import Recorder, browser, guarded, serving

pytestmark = pytest.mark.anyio
ERAS: tuple[Era, ...] = ("legacy", "modern")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """One thread's client, which sends a credential of its own with every request: the thread's token."""

    def __init__(self, http: httpx2.AsyncClient, url: str, token: str, era: Era) -> None:
        self._http = http
        self._url = url
        self._headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/json, text/event-stream",
            "x-api-key": "a-key-of-the-caller",
            "cookie": "session=of-the-caller",
        }
        self._era = era

    async def begin(self) -> None:
        if self._era == "modern":
            return
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answer = await self._post("initialize", params)
        self._headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        self._headers["mcp-protocol-version"] = "2025-11-25"

    async def ask(self, method: str, **params: Any) -> Any:
        answer = await self._post(method, params)
        text = answer.text
        if answer.headers["content-type"].startswith("text/event-stream"):
            data = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
            text = next(line for line in data if '"result"' in line or '"error"' in line)
        return json.loads(text)

    async def _post(self, method: str, params: dict[str, Any]) -> httpx2.Response:
        headers = dict(self._headers)
        if self._era == "modern":
            params = {**params, "_meta": META}
            headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
            if "name" in params:
                headers["mcp-name"] = params["name"]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self._http.post(self._url, json=body, headers=headers)

    async def seen(self) -> dict[str, list[str]]:
        """The headers of this call as the server behind got them."""
        answer = await self.ask("tools/call", name="remote.seen", arguments={})
        assert "result" in answer, answer
        found: dict[str, list[str]] = {}
        for name, value in answer["result"]["structuredContent"]["headers"]:
            found.setdefault(name, []).append(value)
        return found


@asynccontextmanager
async def client(
    server: ServerConfig, folder: Path, era: Era, secrets: Secrets | None = None
) -> AsyncGenerator[tuple[Client, str]]:
    config = GatewayConfig(
        servers={"remote": server},
        secrets=secrets or NoSecrets(),
        settings=folder / "settings.json",
        store_url=f"sqlite:///{folder / 'gateway.db'}",
        records=RecordsConfig(arguments=True),
    )
    sock = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    async with Gateway(config) as gateway:
        record, token = await gateway.threads.open()
        async with serving(gateway.http(), sock), httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            one = Client(http, f"{base}/threads/{record.id}/mcp", token, era)
            await one.begin()
            yield one, token


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def kept(state: Path) -> bytes:
    """All that the gateway's store holds."""
    return b"".join(path.read_bytes() for path in state.glob("gateway.db*") if path.is_file())


async def logged_in(server: Any) -> Login:
    login, _ = await log_in(server.config(), NoSecrets(), show=browser, limit=20)
    return login


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_goes_up_with_the_login_and_with_nothing_of_the_caller(state: Path, era: Era) -> None:
    async with guarded() as server:
        login = await logged_in(server)
        async with client(server.config(), state, era) as (one, token):
            headers = await one.seen()
            assert headers["authorization"] == [f"Bearer {login.access_token}"]
            assert "cookie" not in headers
            assert "x-api-key" not in headers
        everything = b"".join(
            repr(request.headers).encode() + request.body for request in server.resource.requests
        ).decode()
        assert token not in everything
        assert "of-the-caller" not in everything
        # Arguments and results are kept in the records here, and the server says its token in one.
        assert b"seen" in kept(state)
        assert not [value for value in login.secret_values if value.encode() in kept(state)]


@pytest.mark.parametrize("era", ERAS)
async def test_a_login_outlives_the_gateway_and_is_renewed_by_the_next(state: Path, era: Era) -> None:
    async with guarded() as server:
        login = await logged_in(server)
        async with client(server.config(), state, era) as (one, _):
            assert (await one.seen())["authorization"] == [f"Bearer {login.access_token}"]
        server.accounts.take_back()
        async with client(server.config(), state, era) as (one, _):
            assert (await one.seen())["authorization"] != [f"Bearer {login.access_token}"]
        assert server.accounts.renewals == 1
        assert not [value for value in login.secret_values if value.encode() in kept(state)]


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_told_that_somebody_has_to_log_in_again(state: Path, era: Era) -> None:
    async with guarded() as server:
        await logged_in(server)
        async with client(server.config(), state, era) as (one, _):
            await one.seen()
            server.accounts.take_back()
            server.accounts.refuse_renewals = True
            answer = await one.ask("tools/call", name="remote.seen", arguments={})
            assert "log in again" in json.dumps(answer), answer


@pytest.mark.parametrize("era", ERAS)
async def test_a_bearer_token_from_a_secret_goes_up_and_stands_nowhere_else(
    state: Path, era: Era, caplog: pytest.LogCaptureFixture
) -> None:
    secret = state / "secret"
    secret.write_text("st-0123456789abcdef")
    secret.chmod(0o600)
    secrets = ConfiguredSecrets.of_table({"remote": {"file": str(secret), "servers": ["remote"]}})
    app = Recorder(odd_app())
    sock = socket.create_server(("127.0.0.1", 0))
    headers = {"Authorization": held("Bearer secret:remote", "test")}
    server = ServerConfig("remote", HttpTarget(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", headers))
    async with serving(app, sock):
        async with client(server, state, era, secrets) as (one, token):
            assert (await one.seen())["authorization"] == ["Bearer st-0123456789abcdef"]
            assert all(token not in repr(request.headers) for request in app.requests)
        assert app.requests
    assert "st-0123456789abcdef" not in caplog.text
    assert b"st-0123456789abcdef" not in kept(state)


@pytest.mark.parametrize("era", ERAS)
async def test_a_redirect_takes_no_token_to_another_origin(state: Path, era: Era) -> None:
    got: list[str] = []

    async def foreign(request: Request) -> Response:
        got.append(request.headers.get("authorization", ""))
        return Response(status_code=500)

    other = odd_app()
    other.router.routes[:] = [Route("/mcp", foreign, methods=["GET", "POST"])]
    sock = socket.create_server(("127.0.0.1", 0))
    away = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"

    async def redirect(request: Request) -> Response:
        return RedirectResponse(away, status_code=307)

    app = odd_app()
    app.router.routes[:] = [Route("/mcp", redirect, methods=["GET", "POST", "DELETE"])]
    async with serving(other, sock), guarded(app=app) as server:
        login = await logged_in(server)
        async with client(server.config(), state, era) as (one, _):
            answer = await one.ask("tools/call", name="remote.seen", arguments={})
            assert "result" not in answer or answer["result"].get("isError")
            assert login.access_token not in json.dumps(answer)
        assert any(login.access_token in repr(request.headers) for request in server.resource.requests)
    assert got == []
