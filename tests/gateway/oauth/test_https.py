"""TLS with a private authority: `SSL_CERT_FILE` counts for links as it does for everything else."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import trustme
from tests.gateway.pooling import initialize

from hotplug.connect.target import HttpTarget
from hotplug.errors import Unavailable
from hotplug.gateway.asking import ask
from hotplug.gateway.config import ServerConfig
from hotplug.gateway.link import Era
from hotplug.gateway.message import loads
from hotplug.gateway.pool import Pool
from hotplug.gateway.upstream import LinkKey
from hotplug.testing.odd import odd_app

from .guarded import serving

pytestmark = pytest.mark.anyio
ONE = LinkKey("t_one", "s1")
ERAS: tuple[Era, ...] = ("legacy", "modern")


@pytest.mark.parametrize("era", ERAS)
async def test_calls_go_over_tls_where_the_private_authority_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: Era
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    here = {"remote": ServerConfig("remote", HttpTarget(f"https://127.0.0.1:{port}/mcp", {"X-Mark": "m"}))}
    there = {"remote": ServerConfig("remote", HttpTarget(f"https://localhost:{port}/mcp"))}
    given = initialize() if era == "legacy" else None
    async with serving(odd_app(), sock, authority.issue_cert("127.0.0.1")):
        async with Pool(here) as pool:
            with pytest.raises(Unavailable, match=r"its certificate isn't trusted"):
                await pool.upstreams["remote"].link(era, ONE, initialize=given)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        async with Pool(here) as pool:
            link = await pool.upstreams["remote"].link(era, ONE, initialize=given)
            for _ in range(3):
                answer = await ask(link, "tools/call", {"name": "seen", "arguments": {}})
                assert ["x-mark", "m"] in loads(answer.result["structuredContent"])["headers"]
        # The right authority, and another name.
        async with Pool(there) as pool:
            with pytest.raises(Unavailable, match=r"certificate isn't trusted.*localhost"):
                await pool.upstreams["remote"].link(era, ONE, initialize=given)
