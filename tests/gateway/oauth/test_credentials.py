"""Requests to a server that asks for OAuth: with the token of the login, renewed when it ends or is refused."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.pooling import initialize, until

import hotplug
from hotplug.connect.secrets import NoSecrets
from hotplug.errors import Unavailable
from hotplug.gateway.asking import ask
from hotplug.gateway.link import Era, Link, LinkLost
from hotplug.gateway.message import loads
from hotplug.gateway.oauth import Login, OAuthCredentials, keeper_of
from hotplug.gateway.oauth.kept import bound_to
from hotplug.gateway.oauth.login import log_in, log_out
from hotplug.gateway.pool import Pool
from hotplug.gateway.upstream import LinkKey

from .guarded import Guarded, Hour, browser, guarded

pytestmark = pytest.mark.anyio
ONE = LinkKey("t_one", "s1")
ERAS: tuple[Era, ...] = ("legacy", "modern")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logins"


async def log_in_at(server: Guarded, folder: Path, hour: Hour, **settings: Any) -> Any:
    login, _ = await log_in(server.config(**settings), NoSecrets(), show=browser, limit=20, folder=folder, clock=hour)
    return login


@asynccontextmanager
async def pooled(server: Guarded, folder: Path, hour: Hour) -> AsyncGenerator[Pool]:
    credentials = OAuthCredentials(folder=folder, clock=hour)
    async with Pool({"remote": server.config()}, credentials=credentials) as pool:
        yield pool


async def linked(pool: Pool, era: Era) -> Link:
    return await pool.upstreams["remote"].link(era, ONE, initialize=initialize() if era == "legacy" else None)


async def authorization(link: Link) -> str | None:
    """What the server got as `Authorization` with this call."""
    answer = await ask(link, "tools/call", {"name": "seen", "arguments": {}})
    headers = dict(loads(answer.result["structuredContent"])["headers"])
    return headers.get("authorization")


def stored(server: Guarded, folder: Path) -> Any:
    login = keeper_of("remote", server.url, folder=folder).read()
    assert login is not None
    return login


@pytest.mark.parametrize("era", ERAS)
async def test_requests_carry_the_token_of_the_login(folder: Path, era: Era) -> None:
    hour = Hour()
    async with guarded() as server:
        login = await log_in_at(server, folder, hour)
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, era)
            assert await authorization(link) == f"Bearer {login.access_token}"
        assert server.accounts.renewals == 0


async def test_without_a_login_it_says_what_to_do(folder: Path) -> None:
    async with guarded() as server, pooled(server, folder, Hour()) as pool:
        with pytest.raises(Unavailable, match=r"nobody is logged in: hotplug server login remote"):
            await linked(pool, "modern")
        assert server.resource.requests == []


@pytest.mark.parametrize("era", ERAS)
async def test_a_token_that_has_ended_is_renewed_and_both_tokens_are_other_ones(folder: Path, era: Era) -> None:
    hour = Hour()
    async with guarded() as server:
        login = await log_in_at(server, folder, hour)
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, era)
            hour.now += 3601
            server.accounts.take_back()
            got = await authorization(link)
        new = stored(server, folder)
        assert got == f"Bearer {new.access_token}" != f"Bearer {login.access_token}"
        assert new.tokens["refresh_token"] != login.tokens["refresh_token"]
        assert new.expires_at == hour.now + 3600
        assert server.accounts.renewals == 1
        # What renews it went to who gave it, also in a process that has never talked to it before.
        assert all(login.tokens["refresh_token"].encode() not in one.body for one in server.resource.requests)


async def test_a_token_about_to_end_is_renewed_beside_the_calls(folder: Path) -> None:
    hour = Hour()
    async with guarded() as server:
        login = await log_in_at(server, folder, hour)
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, "modern")
            hour.now += 3550
            server.accounts.gate = asyncio.Event()
            assert await authorization(link) == f"Bearer {login.access_token}"
            await until(lambda: server.accounts.renewals == 1)
            assert await authorization(link) == f"Bearer {login.access_token}"
            server.accounts.gate.set()
            await until(lambda: stored(server, folder).access_token != login.access_token)
            await until(lambda: not _renewing(pool))
            assert await authorization(link) == f"Bearer {stored(server, folder).access_token}"
        assert server.accounts.renewals == 1


def _renewing(pool: Pool) -> bool:
    return any("_renew" in repr(task.get_coro()) for task in asyncio.all_tasks())


@pytest.mark.parametrize("era", ERAS)
async def test_a_refused_token_is_renewed_once_for_all_who_were_refused(folder: Path, era: Era) -> None:
    hour = Hour()
    async with guarded() as server:
        login = await log_in_at(server, folder, hour)
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, era)
            server.accounts.take_back()
            got = await asyncio.gather(*(authorization(link) for _ in range(8)))
        assert set(got) == {f"Bearer {stored(server, folder).access_token}"}
        assert server.accounts.renewals == 1
        assert stored(server, folder).access_token != login.access_token


async def test_a_server_that_keeps_what_renews_is_renewed_again_and_again(folder: Path) -> None:
    hour = Hour()
    async with guarded() as server:
        login = await log_in_at(server, folder, hour)
        server.accounts.rotates = False
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, "modern")
            for _ in range(3):
                hour.now += 3601
                await authorization(link)
        assert server.accounts.renewals == 3
        assert stored(server, folder).tokens["refresh_token"] == login.tokens["refresh_token"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_refused_renewal_makes_it_unavailable_until_somebody_logs_in_again(folder: Path, era: Era) -> None:
    hour = Hour()
    async with guarded() as server:
        await log_in_at(server, folder, hour)
        server.accounts.refuse_renewals = True
        hour.now += 3601
        async with pooled(server, folder, hour) as pool:
            with pytest.raises(Unavailable, match=r"it was taken back.*log in again.*hotplug server login remote"):
                await linked(pool, era)
            assert pool.upstreams["remote"].state.kind == "failed"
            server.accounts.refuse_renewals = False
            await log_in_at(server, folder, hour)
            # At once, without a pause and without a restart.
            assert await authorization(await linked(pool, era)) is not None
            assert pool.upstreams["remote"].state.kind == "up"
        assert server.accounts.renewals == 1


async def test_a_login_that_ends_while_it_is_used_fails_the_call_and_is_asked_of_nobody_again(folder: Path) -> None:
    hour = Hour()
    async with guarded() as server:
        await log_in_at(server, folder, hour)
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, "modern")
            server.accounts.refuse_renewals = True
            server.accounts.take_back()
            for _ in range(3):
                with pytest.raises(LinkLost, match=r"log in again") as raised:
                    await authorization(link)
                assert not raised.value.sent
            assert server.accounts.renewals == 1
            server.accounts.refuse_renewals = False
            login = await log_in_at(server, folder, hour)
            assert await authorization(link) == f"Bearer {login.access_token}"


async def test_a_server_that_refuses_every_token_ends_no_chain_of_renewals(folder: Path) -> None:
    hour = Hour()
    async with guarded() as server:
        await log_in_at(server, folder, hour)
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, "modern")
            server.accounts.load_access_token = _nobody  # type: ignore[method-assign]
            for _ in range(5):
                with pytest.raises(LinkLost, match=r"401"):
                    await authorization(link)
        assert server.accounts.renewals == 1


async def _nobody(token: str) -> None:
    return None


async def test_an_authorization_server_that_is_away_costs_no_login(folder: Path) -> None:
    hour = Hour()
    async with guarded() as server:
        login = await log_in_at(server, folder, hour)
        server.accounts.exchange_refresh_token = _broken  # type: ignore[method-assign]
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, "modern")
            hour.now += 3601
            with pytest.raises(LinkLost, match=r"can't be renewed now: its authorization server answers HTTP 500"):
                await authorization(link)
            with pytest.raises(LinkLost, match=r"can't be renewed now"):
                await authorization(link)
            del server.accounts.exchange_refresh_token
            hour.now += 6
            assert await authorization(link) != f"Bearer {login.access_token}"


async def _broken(*_: Any) -> Any:
    raise RuntimeError("the database is away")


async def test_a_restart_keeps_the_login(folder: Path) -> None:
    hour = Hour()
    async with guarded() as server:
        login = await log_in_at(server, folder, hour)
        for _ in range(2):
            async with pooled(server, folder, hour) as pool:
                assert await authorization(await linked(pool, "modern")) == f"Bearer {login.access_token}"
        assert server.accounts.renewals == 0


async def test_two_processes_renew_one_login_once(folder: Path) -> None:
    """Each pool stands for a process: they share the file alone."""
    hour = Hour()
    async with guarded() as server:
        await log_in_at(server, folder, hour)
        async with pooled(server, folder, hour) as first, pooled(server, folder, hour) as second:
            links = [await linked(pool, "modern") for pool in (first, second)]
            hour.now += 3601
            server.accounts.take_back()
            got = await asyncio.gather(*(authorization(link) for link in links))
        assert set(got) == {f"Bearer {stored(server, folder).access_token}"}
        assert server.accounts.renewals == 1


async def test_logging_out_ends_what_runs(folder: Path) -> None:
    hour = Hour()
    async with guarded() as server:
        login = await log_in_at(server, folder, hour)
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, "modern")
            await authorization(link)
            done = await log_out(server.config(), NoSecrets(), folder=folder)
            assert (done.was, done.revoked, done.problem) == (True, True, None)
            hour.now += 2
            with pytest.raises(LinkLost, match=r"nobody is logged in"):
                await authorization(link)
        assert set(server.accounts.revoked) == {login.access_token, login.tokens["refresh_token"]}
        assert not list(folder.glob("*.json"))


async def test_a_changed_address_needs_a_new_login(folder: Path) -> None:
    hour = Hour()
    async with guarded() as server:
        await log_in_at(server, folder, hour)
        there = server.config()
        moved = replace(there, target=replace(there.target, url=server.url + "?v=2"))  # type: ignore[type-var]
        async with Pool({"remote": moved}, credentials=OAuthCredentials(folder=folder, clock=hour)) as pool:
            with pytest.raises(Unavailable, match=r"nobody is logged in"):
                await linked(pool, "modern")


async def test_another_scope_that_a_call_wants_is_named(folder: Path) -> None:
    hour = Hour()
    async with guarded(scopes=["read", "write"]) as server:
        await log_in(server.config(), NoSecrets(), show=browser, scopes=("read",), limit=20, folder=folder, clock=hour)
        async with pooled(server, folder, hour) as pool:
            link = await linked(pool, "modern")
            server.required.append("write")
            with pytest.raises(LinkLost, match=r"doesn't reach far enough.*log in again"):
                await authorization(link)


async def test_no_token_is_in_logs_errors_or_names(
    folder: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    hour = Hour()
    texts: list[str] = []
    caplog.set_level(logging.DEBUG)
    async with guarded() as server:
        login = await log_in_at(server, folder, hour)
        credentials = OAuthCredentials(folder=folder, clock=hour)
        async with Pool({"remote": server.config()}, credentials=credentials) as pool:
            link = await linked(pool, "modern")
            hour.now += 3601
            await authorization(link)
            renewed = stored(server, folder)
            texts += [repr(pool), repr(link), repr(credentials), repr(login), str(renewed)]
            texts.append(pool.upstreams["remote"].mask(f"it got Bearer {renewed.access_token}"))
            server.accounts.refuse_renewals = True
            server.accounts.take_back()
            hour.now += 100
            with pytest.raises(LinkLost) as raised:
                await authorization(link)
            texts.append(str(raised.value))
    written = capsys.readouterr()
    texts += [caplog.text, written.out, written.err, *(repr(one.__dict__) for one in caplog.records)]
    values = [*login.secret_values, *renewed.secret_values]
    assert len(set(values)) == 5
    for value in values:
        assert all(value not in text for text in texts)
    assert "it got Bearer [secret]" in texts[5]


async def test_it_is_kept_where_only_its_owner_can_read_it(folder: Path) -> None:
    async with guarded() as server:
        await log_in_at(server, folder, Hour())
        (path,) = folder.glob("*.json")
        assert path.stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700
        assert json.loads(path.read_text())["schema"] == "hotplug.login/1"
        path.chmod(0o644)
        async with pooled(server, folder, Hour()) as pool:
            with pytest.raises(Unavailable, match=r"is open to other users .*chmod 600"):
                await linked(pool, "modern")
        path.chmod(0o600)
        path.write_text("{")
        async with pooled(server, folder, Hour()) as pool:
            with pytest.raises(Unavailable, match=r"holds no login that can be read .*log in again"):
                await linked(pool, "modern")


class Ring:
    """The `keyring` package, in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, user: str) -> str | None:
        return self.kept.get((service, user))

    def set_password(self, service: str, user: str, password: str) -> None:
        self.kept[service, user] = password

    def delete_password(self, service: str, user: str) -> None:
        del self.kept[service, user]


async def test_it_is_kept_in_the_keyring_where_that_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring, hour = Ring(), Hour()
    monkeypatch.setitem(sys.modules, "keyring", ring)
    async with guarded() as server:
        config = server.config(keep="keyring")
        login = await log_in_at(server, folder, hour, keep="keyring")
        assert len(ring.kept) == 1
        assert not list(folder.glob("*.json"))
        async with Pool({"remote": config}, credentials=OAuthCredentials(folder=folder, clock=hour)) as pool:
            link = await linked(pool, "modern")
            assert await authorization(link) == f"Bearer {login.access_token}"
            hour.now += 3601
            server.accounts.take_back()
            assert await authorization(link) != f"Bearer {login.access_token}"
            assert (await log_out(config, NoSecrets(), folder=folder)).revoked
            assert ring.kept == {}
            with pytest.raises(LinkLost, match=r"log in again|nobody is logged in"):
                await authorization(link)
        monkeypatch.setitem(sys.modules, "keyring", None)
        async with Pool({"remote": config}, credentials=OAuthCredentials(folder=folder, clock=hour)) as pool:
            with pytest.raises(Unavailable, match=r"hotplug\[keyring\]"):
                await linked(pool, "modern")


def test_neither_the_sdk_nor_its_http_client_is_loaded_while_a_token_is_good(tmp_path: Path) -> None:
    url = "https://remote.example/mcp"
    keeper = keeper_of("remote", url, folder=tmp_path)
    with keeper.alone():
        keeper.write(Login("remote", url, bound_to(url), {"access_token": "at-1"}, obtained_at=0.0))
    code = (
        "import asyncio, sys, pathlib\n"
        "import hotplug.gateway.app\n"
        "from hotplug.connect.target import HttpTarget\n"
        "from hotplug.gateway.config import ServerConfig\n"
        "from hotplug.gateway.oauth import OAuthCredentials\n"
        "credentials = OAuthCredentials(folder=pathlib.Path(sys.argv[1]))\n"
        "headers, _ = credentials.of(ServerConfig('remote', HttpTarget(sys.argv[2]), oauth=True))\n"
        "print(asyncio.run(headers()), [one for one in ('mcp', 'mcp_types', 'httpx2') if one in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(hotplug.__file__).parents[1])}
    words = [sys.executable, "-c", code, str(tmp_path), url]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    assert shown.stdout == "{'authorization': 'Bearer at-1'} []\n"


async def test_a_server_that_wants_a_credential_without_oauth_in_its_entry_says_what_to_do(folder: Path) -> None:
    async with guarded() as server:
        plain = replace(server.config(), oauth=False)
        async with Pool({"remote": plain}, credentials=OAuthCredentials(folder=folder)) as pool:
            with pytest.raises(
                Unavailable,
                match=r"HTTP 401.*asks for OAuth: oauth = true in its entry, then hotplug server login remote",
            ):
                await linked(pool, "modern")
    async with guarded(metadata=False) as server:
        plain = replace(server.config(), oauth=False)
        async with Pool({"remote": plain}, credentials=OAuthCredentials(folder=folder)) as pool:
            with pytest.raises(Unavailable, match=r'Bearer secret:NAME" }; or if it asks for OAuth: oauth = true'):
                await linked(pool, "modern")
