"""Ten set-ups that fail, each provoked for real: the doctor names the cause and what to do, and its codes agree."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.cli.conftest import Run

from hotplug.cli.doctor_causes import CAUSES

CLI = Path(__file__).parent / "servers"
CHILDREN = Path(__file__).parent.parent / "connect" / "servers"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # What the machine has is another test's; looking at it takes a second.
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "config" / "hotplug.toml"
    path.parent.mkdir()
    return path


def child(script: Path | str, *more: str) -> str:
    """An entry that starts a Python script."""
    return "\n".join([f'command = "{sys.executable}"', f'args = ["{script}"]', *more])


def one(run: Run, config: Path, entry: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the only server's document and its text."""
    config.write_text(f"[servers.it]\n{entry}\n")
    ran = run("doctor", "--json")
    (server,) = ran.document["servers"]
    text = run("doctor")
    assert text.code == ran.code
    return ran.code, server, text.out


def flat(text: str) -> str:
    return " ".join(text.split())


def judged(
    found: tuple[int, dict[str, Any], str], *, exit_code: int, cause: str, said: str, fix: str
) -> dict[str, Any]:
    """The server's document, after everything that a person and a program read of it agreed."""
    code, server, text = found
    assert code == exit_code
    (only,) = server["causes"]
    assert only["code"] == cause
    assert cause in CAUSES
    assert said in only["message"]
    assert fix in only["fix"]
    assert said in flat(text)
    assert f"fix: {only['fix']}" in flat(text)
    return server


def test_1_a_command_that_is_missing(run: Run, config: Path) -> None:
    found = one(run, config, 'command = "no-such-program"')
    server = judged(found, exit_code=4, cause="missing_command", said="no-such-program", fix="write its whole path")
    assert (server["state"], server["error"]["code"]) == ("unreachable", "config")


@pytest.mark.parametrize(
    ("name", "fix"), [("run.sh", "chmod +x"), ("server.py", 'command = "python"'), ("folder", "the program in it")]
)
def test_1_a_command_that_can_t_be_run(run: Run, config: Path, name: str, fix: str) -> None:
    path = config.parent / name
    if name == "folder":
        path.mkdir()
    else:
        path.write_text("")
    judged(one(run, config, f'command = "{path}"'), exit_code=4, cause="missing_command", said="executed", fix=fix)


def test_1_npx_that_is_missing_says_what_to_install(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = one(run, config, 'command = "npx"\nargs = ["-y", "x"]')
    judged(found, exit_code=4, cause="missing_command", said="'npx' is not on the path", fix="install Node.js")


def test_2_a_command_that_exits_at_once(run: Run, config: Path) -> None:
    found = one(run, config, child(CLI / "dies.py"))
    server = judged(found, exit_code=4, cause="exits", said="exited with code 7", fix="run it yourself to see why:")
    assert (server["error"]["code"], server["error"]["cause"]) == ("connect", "exits")
    assert server["error"]["log"] == ["no such account"]
    assert str(CLI / "dies.py") in server["causes"][0]["fix"]
    assert "no such account" in found[2]


def test_3_a_command_that_prints_what_is_no_message(run: Run, config: Path) -> None:
    found = one(run, config, child(CLI / "banner.py").replace('.py"]', '.py", "flood"]'))
    server = judged(found, exit_code=4, cause="noise", said="to its standard output what is no message", fix="standard")
    assert server["error"]["code"] == "connect"


def test_3_a_command_that_prints_a_banner_and_waits(run: Run, config: Path) -> None:
    found = one(run, config, child(CLI / "banner.py", "start_timeout = 2"))
    judged(found, exit_code=4, cause="noise", said="what is no message: Welcome to banner 1.0!", fix="MCP server")


def test_3_a_command_that_prints_its_usage_and_exits(run: Run, config: Path) -> None:
    found = one(run, config, child(CHILDREN / "only_banner.py"))
    judged(found, exit_code=4, cause="exits", said="what is no message: Usage: only_banner", fix="MCP server")


def test_4_a_command_that_hangs(run: Run, config: Path) -> None:
    found = one(run, config, child(CHILDREN / "never_answers.py", "start_timeout = 2"))
    server = judged(
        found, exit_code=4, cause="hangs", said="no answer to the handshake within 2 s", fix="start_timeout"
    )
    assert "--stdio" in server["causes"][0]["fix"]
    assert server["error"]["code"] == "connect"


def test_5_a_server_of_an_unknown_revision(run: Run, config: Path) -> None:
    found = one(run, config, child(CHILDREN / "unknown_revision.py"))
    server = judged(found, exit_code=4, cause="revision", said="2031-01-01", fix="a newer Hotplug")
    assert server["error"]["code"] == "connect"


class Answering(BaseHTTPRequestHandler):
    """Answers every request in one way."""

    status = 404
    headers_sent: tuple[tuple[str, str], ...] = ()
    body = b"{}"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.send_response(self.status)
        for name, value in self.headers_sent:
            self.send_header(name, value)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Says nothing."""


@contextmanager
def answering(
    status: int, *headers: tuple[str, str], body: bytes = b"{}", tls: ssl.SSLContext | None = None
) -> Generator[int]:
    """A server on a free port of this machine; gives the port."""
    handler = type("Handler", (Answering,), {"status": status, "headers_sent": headers, "body": body})
    server = Quiet(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Quiet(ThreadingHTTPServer):
    """A handshake that a client gives up is what these tests want."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing."""


@dataclass(frozen=True)
class Certificate:
    """A certificate that nobody but itself issued."""

    path: Path
    context: ssl.SSLContext


def self_signed(folder: Path, *, days: int = 1, host: str | None = None) -> Certificate:
    """For 127.0.0.1, or for another host alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(host)] if host else [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=10))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path, key_path = folder / "cert.pem", folder / "key.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, key_path)
    return Certificate(path, context)


def test_6_a_certificate_that_nobody_known_issued_and_what_the_fix_does(
    run: Run, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = self_signed(tmp_path)
    with answering(404, tls=certificate.context) as port:
        entry = f'url = "https://127.0.0.1:{port}/mcp"'
        found = one(run, config, entry)
        server = judged(found, exit_code=4, cause="tls", said="self-signed certificate", fix="SSL_CERT_FILE")
        assert (server["error"]["code"], server["error"]["cause"]) == ("connect", "tls")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.path))
        assert one(run, config, entry)[1]["causes"][0]["code"] == "wrong_url"


@pytest.mark.parametrize(
    ("days", "host", "said", "fix"),
    [
        (1, "other.example", "not valid for '127.0.0.1'", "write one of them in the URL"),
        (-1, None, "expired", "renewed"),
    ],
)
def test_6_a_certificate_for_another_host_or_an_expired_one(
    run: Run,
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    days: int,
    host: str | None,
    said: str,
    fix: str,
) -> None:
    certificate = self_signed(tmp_path, days=days, host=host)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.path))
    with answering(404, tls=certificate.context) as port:
        judged(one(run, config, f'url = "https://127.0.0.1:{port}/mcp"'), exit_code=4, cause="tls", said=said, fix=fix)


def test_6_https_at_a_port_that_speaks_http(run: Run, config: Path) -> None:
    with answering(404) as port:
        found = one(run, config, f'url = "https://127.0.0.1:{port}/mcp"')
        judged(found, exit_code=4, cause="tls", said="SSL", fix="is it HTTPS")


def test_7_a_credential_that_is_wanted(run: Run, config: Path) -> None:
    with answering(401, ("www-authenticate", 'Bearer realm="x"')) as port:
        url = f'url = "http://127.0.0.1:{port}/mcp"'
        found = one(run, config, url)
        server = judged(found, exit_code=3, cause="auth", said="HTTP 401", fix='Authorization = "Bearer secret:NAME"')
        assert "hotplug server login it" in server["causes"][0]["fix"]
        assert server["error"]["code"] == "auth"
        found = one(run, config, f'{url}\nheaders = {{ Authorization = "Bearer hunter2222" }}')
        judged(found, exit_code=3, cause="auth", said="HTTP 401", fix="renew it")
        assert "hunter2222" not in found[2] + str(found[1])


@pytest.mark.parametrize("status", [401, 403])
def test_7_a_refusal_with_a_page_for_people_is_one_too(run: Run, config: Path, status: int) -> None:
    with answering(status, ("content-type", "text/html"), body=b"<html>no</html>") as port:
        url = f'url = "http://127.0.0.1:{port}/mcp"'
        judged(one(run, config, url), exit_code=3, cause="auth", said=f"HTTP {status}", fix="give it a credential")
        found = one(run, config, f'{url}\nheaders = {{ Authorization = "Bearer hunter2222" }}')
        judged(found, exit_code=3, cause="auth", said=f"HTTP {status}", fix="renew it")


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (404, "application/json", "HTTP 404"),
        (404, "text/html", "HTTP 404"),
        (200, "text/html; charset=utf-8", ""),
        (405, "text/plain", "HTTP 405"),
        (200, "application/json", "no message of MCP"),
        (200, "text/event-stream", ""),
    ],
)
def test_8_a_url_that_is_wrong(run: Run, config: Path, status: int, kind: str, said: str) -> None:
    with answering(status, ("content-type", kind), body=b"<html>Hello</html>") as port:
        found = one(run, config, f'url = "http://127.0.0.1:{port}/wrong"')
        server = judged(found, exit_code=4, cause="wrong_url", said=said, fix="path")
        assert server["error"]["code"] == "connect"


@pytest.mark.parametrize(
    ("status", "fix"), [(429, "wait"), (500, "its own log"), (502, "its own log"), (503, "its own log")]
)
@pytest.mark.parametrize("kind", ["application/json", "text/html", "text/plain"])
def test_8_a_server_that_fails_by_itself_is_not_a_wrong_url(
    run: Run, config: Path, status: int, fix: str, kind: str
) -> None:
    with answering(status, ("content-type", kind), body=b"{}") as port:
        found = one(run, config, f'url = "http://127.0.0.1:{port}/mcp"')
        judged(found, exit_code=4, cause="unreachable", said=f"HTTP {status}", fix=fix)


def test_8_nothing_that_listens(run: Run, config: Path) -> None:
    with answering(404) as port:
        pass
    found = one(run, config, f'url = "http://127.0.0.1:{port}/mcp"')
    judged(found, exit_code=4, cause="unreachable", said="failed", fix="is it running")


def tiny(function: str = "server") -> str:
    """An entry that starts the tiny calendar, or what became of it, as a child."""
    code = f"import sys; sys.path.insert(0, '{CLI}'); import tiny_calendar; tiny_calendar.{function}().run('stdio')"
    return f'command = "{sys.executable}"\nargs = ["-c", "{code}"]'


def test_9_a_profile_that_isn_t_spoken(run: Run, config: Path) -> None:
    found = one(run, config, f'{tiny()}\nprofile = "calendar"')
    server = judged(found, exit_code=1, cause="profile", said="doesn't speak it (it speaks none)", fix="projection")
    assert (server["state"], server["era"] in ("modern", "legacy"), server["tools"]) == ("wrong", True, 7)
    assert server["gets"] == [{"threads": ["a new thread", "a sub-agent"], "tools": 7, "of": 7}]


def test_9_a_profile_that_nobody_knows_or_of_another_version(run: Run, config: Path) -> None:
    judged(
        one(run, config, f'{tiny()}\nprofile = "calender"'),
        exit_code=1,
        cause="profile",
        said="which nobody knows here",
        fix="Did you mean 'calendar'?",
    )
    assert run("call", "sqlite:///config/home.db", "calendar.calendars").code == 0
    native = 'target = "sqlite:///home.db"'
    judged(
        one(run, config, f'{native}\nprofile = "calendar@^9"'),
        exit_code=1,
        cause="profile",
        said="it speaks calendar 1.",
        fix="ask for a range",
    )
    assert one(run, config, f'{native}\nprofile = "calendar@^1"')[0] == 0


def test_9_a_profile_that_is_declared_and_not_offered(run: Run, config: Path) -> None:
    code, server, text = one(run, config, f'{child(CLI / "liar.py")}\nprofile = "calendar"')
    assert code == 1
    assert [each["code"] for each in server["causes"]] == ["profile"]
    assert "the server has to declare what it offers" in flat(text)


def test_10_a_projection_that_drifted(run: Run, config: Path) -> None:
    projection = config.parent / "tiny.yaml"
    projection.write_text((CLI / "tiny.yaml").read_text())
    frozen = run("projection", "freeze", str(projection), "--target", f"{CLI / 'tiny_calendar.py'}:server")
    assert frozen.code == 0
    speaks = 'profile = "calendar"\nprojection = "tiny.yaml"'
    fine = one(run, config, f"{tiny()}\n{speaks}")
    assert (fine[0], fine[1]["profiles"][0]["via"]) == (0, "projected")
    found = one(run, config, f"{tiny('changed')}\n{speaks}")
    server = judged(found, exit_code=1, cause="drift", said="delete_event", fix="hotplug projection diff")
    assert server["profiles"][0]["projection"]["broken"] == ["delete_event"]


def test_a_projection_that_isn_t_there_says_nothing_against_the_server(run: Run, config: Path) -> None:
    code, server, _ = one(run, config, f'{tiny()}\nprojection = "none.yaml"')
    assert (code, server["state"]) in ((1, "wrong"), (4, "unreachable"))
    assert server["causes"][0]["code"] in ("projection", "config")


def test_a_secret_that_may_not_go_there_or_isn_t_set(run: Run, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = child(CLI / "dies.py", 'env = { A = "secret:a" }')
    judged(one(run, config, secret), exit_code=4, cause="secret", said="may not go to server 'it'", fix="[secrets.a]")
    monkeypatch.delenv("NOT_SET", raising=False)
    found = one(run, config, f'{secret}\n[secrets.a]\nenv = "NOT_SET"\nservers = ["it"]')
    judged(found, exit_code=4, cause="secret", said="NOT_SET is not set", fix="give it a value")


def test_each_server_of_the_gateway_is_looked_at_for_itself(run: Run, config: Path) -> None:
    config.write_text(
        f'[servers.tiny]\n{tiny()}\n[servers.bad]\nx = 1\n[servers.off]\ncommand = "x"\ndisabled = true\n'
        '[servers.away]\ncommand = "no-such-program"\n'
    )
    ran = run("doctor", "--json")
    assert ran.code == 4
    states = {each["name"]: each["state"] for each in ran.document["servers"]}
    assert states == {"tiny": "fine", "off": "disabled", "away": "unreachable", "bad": "unreachable"}


def test_a_native_server_that_its_first_call_will_make_is_fine(run: Run, config: Path) -> None:
    code, server, text = one(run, config, 'target = "sqlite:///home.db"\nprofile = "calendar"')
    assert (code, server["state"]) == (0, "fine")
    assert "✓ it: it isn't there yet: its first call makes it" in text
    assert not (config.parent / "home.db").exists()


def test_what_threads_would_get_is_said_with_the_reason(run: Run, config: Path) -> None:
    assert run("access", "profile", "add", "lean", "--servers", "it", "--groups", "all", "--deny", "it/wipe").code == 0
    assert run("access", "set", "mcpSubagentProfile", "lean").code == 0
    assert run("access", "pick", "t-1", "host-only").code == 0
    code, server, text = one(run, config, tiny())
    assert code == 0
    gets = {each["threads"][0]: each for each in server["gets"]}
    assert gets["a new thread"]["tools"] == 7
    assert (gets["a sub-agent"]["tools"], "denies it" in gets["a sub-agent"]["reason"]) == (6, True)
    assert (gets["t-1"]["tools"], "leaves out" in gets["t-1"]["reason"]) == (0, True)
    assert "a sub-agent: 6 of 7 tools" in flat(text)


def test_an_open_thread_is_told_with_the_rest(run: Run, config: Path) -> None:
    store = f"sqlite:///{config.parent / 'gateway.sqlite3'}"
    opened = run("thread", "open", "--store", store, "--json").document["thread"]
    assert run("access", "pick", opened["id"], "host-only").code == 0
    _, server, _ = one(run, config, f'{tiny()}\n[store]\nurl = "{store}"')
    assert {each["threads"][0]: each["tools"] for each in server["gets"]} == {"a new thread": 7, opened["id"]: 0}


def test_a_project_s_narrowing_is_told(run: Run, config: Path, tmp_path: Path) -> None:
    (tmp_path / "hotplug.toml").write_text('[access]\ntools = { it = { allow = ["get_event"] } }\n')
    assert run("trust", "hotplug.toml").code == 0
    _, server, _ = one(run, config, tiny())
    (gets,) = server["gets"]
    assert (gets["tools"], gets["of"]) == (1, 7)
    assert str(tmp_path / "hotplug.toml") in gets["reason"]


@pytest.fixture(autouse=True)
def _no_remembered_eras() -> Iterator[None]:
    from hotplug.connect.negotiation import forget_eras

    forget_eras()
    yield
    forget_eras()
