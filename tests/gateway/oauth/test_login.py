"""Logging in, with a small HTTP client in the browser's place: the whole way, and what can go wrong on it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import trustme
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from hotplug.connect.secrets import ConfiguredSecrets, NoSecrets, SecretName
from hotplug.connect.target import CommandTarget, HttpTarget
from hotplug.errors import AuthError, ConfigError, ConnectError, PermissionDenied
from hotplug.gateway.config import OAuthSettings, ServerConfig
from hotplug.gateway.oauth import Login, keeper_of
from hotplug.gateway.oauth.flow import Unanswered, safe_address, token_method
from hotplug.gateway.oauth.login import log_in, log_out

from .guarded import browser, guarded, serving

pytestmark = pytest.mark.anyio


Show = Callable[[str], Awaitable[None]]


async def try_in(config: ServerConfig, folder: Path, show: Show = browser, **how: Any) -> Login:
    login, _ = await log_in(config, how.pop("secrets", NoSecrets()), show=show, folder=folder, **{"limit": 20, **how})
    return login


async def test_the_whole_way(tmp_path: Path) -> None:
    addresses: list[str] = []

    async def show(address: str) -> None:
        addresses.append(address)
        await browser(address)

    async with guarded(scopes=["read", "write"]) as server:
        login = await try_in(server.config(), tmp_path, show)
        asked = {name: values[0] for name, values in parse_qs(urlsplit(addresses[0]).query).items()}
        assert (asked["code_challenge_method"], asked["response_type"]) == ("S256", "code")
        assert asked["resource"] == server.url
        assert urlsplit(asked["redirect_uri"]).hostname == "127.0.0.1"
        assert login.scopes == ("read", "write")
        assert login.renewable
        assert login.access_token in server.accounts.tokens
        assert keeper_of("remote", server.url, folder=tmp_path).read() == login
        (client,) = server.accounts.clients.values()
        assert (client.client_name, client.software_id) == ("Hotplug", "hotplug")
        # Nothing listens any more.
        port = urlsplit(asked["redirect_uri"]).port
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port or 0), timeout=1)


async def test_a_configured_client_with_a_secret_is_used_and_its_secret_isn_t_kept(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("cs-0123456789")
    secret.chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    how = {"client_id": "mine", "client_secret": _held("secret:client"), "port": port}
    secrets = ConfiguredSecrets.of_table({"client": {"file": str(secret), "servers": ["remote"]}})
    async with guarded(registration=False) as server:
        server.accounts.clients["mine"] = OAuthClientInformationFull(
            client_id="mine",
            client_secret="cs-0123456789",
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
            token_endpoint_auth_method="client_secret_post",
        )
        login = await try_in(server.config(**how), tmp_path, secrets=secrets)
        assert login.client == {"client_id": "mine"}
        assert "cs-0123456789" not in "".join(path.read_text() for path in tmp_path.glob("*.json"))
        with pytest.raises(PermissionDenied):
            await try_in(server.config(**how), tmp_path)
        assert "/register" not in server.paths()
        done = await log_out(server.config(**how), secrets, folder=tmp_path)
        assert done.revoked


def _held(text: str) -> Any:
    from hotplug.connect.secrets import held

    return held(text, "test")


@pytest.mark.parametrize(
    ("offered", "method"),
    [
        (None, "client_secret_basic"),
        (["client_secret_basic"], "client_secret_basic"),
        (["client_secret_basic", "client_secret_post"], "client_secret_post"),
        (["private_key_jwt"], "client_secret_basic"),
    ],
)
def test_a_client_with_a_secret_shows_it_as_the_server_takes_it(offered: list[str] | None, method: str) -> None:
    base = "https://as.example"
    endpoints = {f"{name}_endpoint": f"{base}/{name}" for name in ("authorization", "token")}
    metadata = OAuthMetadata.model_validate(
        {"issuer": base, **endpoints, "token_endpoint_auth_methods_supported": offered}
    )
    assert token_method(OAuthClientInformationFull(client_id="a", client_secret="b"), metadata) == method
    assert token_method(OAuthClientInformationFull(client_id="a"), metadata) == "none"


async def test_scopes_of_the_entry_are_asked_for_in_place_of_the_server_s(tmp_path: Path) -> None:
    async with guarded(scopes=["read", "write"]) as server:
        login = await try_in(server.config(scopes=("read",)), tmp_path)
        assert (login.scopes, server.accounts.asked[-1].scopes) == (("read",), ["read"])
        login = await try_in(server.config(scopes=("read",)), tmp_path, scopes=("write",))
        assert login.scopes == ("write",)


async def test_a_server_without_its_own_metadata_is_asked_by_the_old_rules(tmp_path: Path) -> None:
    """2025-03-26: the authorization server is the server itself; here it isn't, and nothing is found."""
    async with guarded(metadata=False) as server:
        with pytest.raises(AuthError, match="says nothing of how to log in") as raised:
            await try_in(server.config(), tmp_path)
        assert "Bearer secret:NAME" in str(raised.value.hint)
    assert not list(tmp_path.glob("*.json"))


async def test_a_denial_is_said(tmp_path: Path) -> None:
    async with guarded() as server:
        server.accounts.deny = True
        with pytest.raises(AuthError, match="remote: the login was denied"):
            await try_in(server.config(), tmp_path)


async def test_nobody_in_time_is_said(tmp_path: Path) -> None:
    async def nobody(address: str) -> None:
        pass

    async with guarded() as server:
        with pytest.raises(AuthError, match=r"nobody logged in within 0\.2 s \(try again"):
            await try_in(server.config(), tmp_path, nobody, limit=0.2)


async def test_an_answer_with_another_state_counts_for_nothing_and_is_told(tmp_path: Path) -> None:
    statuses: list[int] = []

    async def guess(address: str) -> None:
        back = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        async with httpx2.AsyncClient(trust_env=False) as client:
            answers = [await client.get(back + query) for query in ("?code=evil&state=guessed", "?code=evil", "/../x")]
        statuses.extend(answer.status_code for answer in answers)

    async def guess_and_go_on(address: str) -> None:
        await guess(address)
        await browser(address)

    async with guarded() as server:
        with pytest.raises(AuthError, match="2 answers came with a wrong state, and counted for nothing"):
            await try_in(server.config(), tmp_path, guess, limit=0.3)
        assert statuses == [400, 400, 404]
        assert (await try_in(server.config(), tmp_path, guess_and_go_on)).access_token in server.accounts.tokens


async def test_a_refused_registration_says_how_it_is_done_by_hand(tmp_path: Path) -> None:
    async with guarded() as server:
        server.accounts.refuse_clients = True
        with pytest.raises(AuthError, match=r"registers no client: HTTP 400 .*only known clients") as raised:
            await try_in(server.config(), tmp_path)
        assert "client_id" in str(raised.value.hint)
        assert "127.0.0.1:PORT/callback" in str(raised.value.hint)
    async with guarded(registration=False) as server:
        with pytest.raises(AuthError, match="registers no client: HTTP 404"):
            await try_in(server.config(), tmp_path)


async def test_metadata_that_names_another_issuer_is_refused(tmp_path: Path) -> None:
    """RFC 8414, 3.3: else one authorization server could pass for another."""
    async with _liar({"issuer": "https://other.example"}, []) as url:
        with pytest.raises(AuthError, match=r"its metadata doesn't fit: .*https://other\.example"):
            await try_in(ServerConfig("remote", HttpTarget(url), oauth=True), tmp_path, _straight_back)
    async with guarded() as right, guarded(issuer=right.issuer + "/tenant") as server:
        with pytest.raises(AuthError, match="says nothing of how to log in"):
            await try_in(server.config(), tmp_path)


@pytest.mark.parametrize("part", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
async def test_nothing_goes_to_an_address_that_isn_t_encrypted(tmp_path: Path, part: str) -> None:
    """A server's metadata may name any address."""
    seen: list[str] = []
    async with _liar({part: "http://mallory.example/x"}, seen) as url:
        config = ServerConfig("remote", HttpTarget(url), oauth=True)
        with pytest.raises(ConnectError, match=r"http://mallory\.example/x isn't encrypted"):
            await try_in(config, tmp_path, _straight_back)


@pytest.mark.parametrize(
    ("address", "server", "safe"),
    [
        ("https://as.example/token", "https://a.example/mcp", True),
        ("https://127.0.0.1/token", "https://a.example/mcp", True),
        ("http://as.example/token", "https://a.example/mcp", False),
        ("http://127.0.0.1:9200/token", "https://a.example/mcp", False),
        ("http://127.0.0.1:9200/token", "http://a.example/mcp", False),
        ("http://a.example/token", "https://a.example/mcp", False),
        ("http://a.example:81/token", "http://a.example/mcp", True),
        ("http://localhost:1/token", "http://127.0.0.1:2/mcp", True),
        ("http://[::1]:1/token", "http://localhost:2/mcp", True),
        ("ftp://a.example/token", "http://a.example/mcp", False),
    ],
)
def test_requests_go_only_where_they_are_safe(address: str, server: str, safe: bool) -> None:
    refused = contextlib.nullcontext() if safe else pytest.raises(Unanswered, match="isn't encrypted")
    with refused:
        safe_address(httpx2.URL(address), httpx2.URL(server))


async def _straight_back(address: str) -> None:
    asked = parse_qs(urlsplit(address).query)
    async with httpx2.AsyncClient(trust_env=False) as client:
        await client.get(f"{asked['redirect_uri'][0]}?code=c&state={asked['state'][0]}")


async def test_what_a_token_endpoint_answers_stands_in_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The SDK's own exceptions and logs hold the whole answer."""
    for answer in (
        JSONResponse({"access_token": "at-hidden-0123", "token_type": "Bearer", "expires_in": "x"}),
        JSONResponse({"access_token": "at-hidden-0123", "error": "invalid_grant"}, 400),
    ):
        async with _liar({}, [], answer) as url:
            config = ServerConfig("remote", HttpTarget(url), oauth=True)
            with pytest.raises(AuthError, match="gives no token: HTTP") as raised:
                await try_in(config, tmp_path, _straight_back)
            assert "hidden" not in f"{raised.value!r} {raised.value.hint} {caplog.text}"


def _liar(metadata: dict[str, str], seen: list[str], token: Response | None = None) -> Any:
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def run() -> Any:
        sock = socket.create_server(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{sock.getsockname()[1]}"

        async def endpoint(request: Request) -> Response:
            seen.append(request.url.path)
            if request.url.path == "/mcp":
                return Response(status_code=401)
            if request.url.path == "/register":
                return JSONResponse({**await request.json(), "client_id": "c"}, 201)
            if request.url.path == "/token":
                return token or Response(status_code=500)
            if "oauth-authorization-server" not in request.url.path:
                return Response(status_code=404)
            names = ("authorization", "authorize"), ("token", "token"), ("registration", "register")
            found = {f"{name}_endpoint": f"{base}/{path}" for name, path in names}
            return JSONResponse({"issuer": base, **found, "response_types_supported": ["code"], **metadata})

        async with serving(Starlette(routes=[Route("/{path:path}", endpoint, methods=["GET", "POST"])]), sock):
            yield f"{base}/mcp"

    return run()


async def test_what_isn_t_there_or_isn_t_remote_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    gone = ServerConfig("remote", HttpTarget(f"http://127.0.0.1:{port}/mcp"), oauth=True)
    with pytest.raises(ConnectError) as raised:
        await try_in(gone, tmp_path)
    assert raised.value.cause == "unreachable"
    with pytest.raises(ConfigError, match="has no URL"):
        await try_in(replace(gone, target=CommandTarget(("x",))), tmp_path)
    async with guarded() as server:
        other = replace(server.config(), target=HttpTarget(server.url + "x"))
        with pytest.raises(ConnectError, match="HTTP 404"):
            await try_in(other, tmp_path)


async def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = ServerConfig("remote", HttpTarget("http://127.0.0.1:9/mcp"), oauth=True)
        settings = replace(config.oauth_settings, port=port)
        with pytest.raises(ConfigError, match=f"its port is taken: 127.0.0.1:{port}"):
            await try_in(replace(config, oauth_settings=settings), tmp_path)


async def test_a_certificate_that_nobody_trusts_is_said_and_a_private_authority_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    async with guarded(tls=authority.issue_cert("127.0.0.1")) as server:
        with pytest.raises(ConnectError, match="certificate isn't trusted") as raised:
            await try_in(server.config(), tmp_path)
        assert raised.value.cause == "tls"
        assert "SSL_CERT_FILE" in str(raised.value.hint)
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert (await try_in(server.config(), tmp_path)).access_token in server.accounts.tokens


async def test_logging_out_removes_what_can_t_be_revoked(tmp_path: Path) -> None:
    async with guarded() as server:
        await try_in(server.config(), tmp_path)
        config = server.config()
    done = await log_out(config, NoSecrets(), folder=tmp_path)
    assert (done.was, done.revoked) == (True, False)
    assert done.problem is not None
    assert not list(tmp_path.glob("*.json"))
    done = await log_out(config, NoSecrets(), folder=tmp_path)
    assert not done.was


@pytest.mark.parametrize(
    ("settings", "kept", "said"),
    [
        (OAuthSettings("cid", SecretName("gone")), {}, "may not go to server"),
        (OAuthSettings(), {"client": {"client_id": 7}}, "ValidationError"),
        (OAuthSettings(), {"authorization": {"revocation_endpoint": "http://127.0.0.1:9/x"}}, "ValidationError"),
        (OAuthSettings(), {"resource": {"resource": "no url"}}, "ValidationError"),
    ],
)
async def test_logging_out_says_why_whatever_keeps_it_from_revoking(
    tmp_path: Path, settings: OAuthSettings, kept: dict[str, Any], said: str
) -> None:
    async with guarded() as server:
        login = await try_in(server.config(), tmp_path)
        config = replace(server.config(), oauth_settings=settings)
        keeper_of(config.name, server.url, folder=tmp_path).write(replace(login, **kept))
        done = await log_out(config, NoSecrets(), folder=tmp_path)
    assert done.was
    assert said in str(done.problem)
    assert not list(tmp_path.glob("*.json"))


async def test_two_who_log_in_at_once_come_back_each_to_their_own(tmp_path: Path) -> None:
    async with guarded() as server:
        first, second = await asyncio.gather(
            try_in(server.config(), tmp_path / "a"), try_in(server.config("other"), tmp_path / "b")
        )
        assert first.access_token != second.access_token


async def test_an_endpoint_that_redirects_elsewhere_gets_nothing_there(tmp_path: Path) -> None:
    seen: list[str] = []
    async with _liar({}, seen) as elsewhere:
        away = RedirectResponse(elsewhere.replace("/mcp", "/token"), 307)
        async with _liar({}, [], away) as url:
            config = ServerConfig("remote", HttpTarget(url), oauth=True)
            with pytest.raises(AuthError, match="gives no token: HTTP 307"):
                await try_in(config, tmp_path, _straight_back)
    assert seen == []
