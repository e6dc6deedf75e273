"""Summaries: exact to the wire page's table, and patterns that match no more than they say."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotplug.profile.summaries import (
    CHANGE_WORDS,
    Pattern,
    artifact_summary,
    credential_name,
    exit_summary,
    frame_summary,
    in_flight_summary,
    is_state_fact,
    literal,
    log_summary,
    net_summary,
    route_summary,
    settled_summary,
    signal_summary,
    state_change,
    state_fact,
    storage_summary,
    summary_fault,
    termination_summary,
    ui_summary,
)

SECRET = "S3cr3tValue"
words = st.sampled_from(CHANGE_WORDS)
texts = st.text(max_size=40)
names = st.text(alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("sense", "made", "expected"),
    [
        ("net", net_summary("POST", "/orders", 201), "POST /orders 201"),
        ("net", net_summary("post", "/orders?id=1#x"), "POST /orders failed"),
        ("net", net_summary("GET", "https://api.example/x?y", 200), "GET //api.example/x 200"),
        ("net", net_summary("GET", "https://a.example", 0, own_origin="https://a.example:443"), "GET / failed"),
        ("net", net_summary("GET", "wss://a.example/live", 101, own_origin="https://a.example"), "GET /live 101"),
        ("net", net_summary("GET", "http://a.example/x", 200, own_origin="https://a.example"), "GET //a.example/x 200"),
        ("net", net_summary("GET", "http://u:pw@h:8080/x", 200), "GET //h:8080/x 200"),
        ("net", net_summary("GET", "//h/x", 200, own_origin="http://h"), "GET /x 200"),
        ("net", net_summary("GET", "http://h//evil/x", 200, own_origin="http://h"), "GET /.//evil/x 200"),
        ("net", net_summary("GET", "/a b/ü", 200), "GET /a%20b/%C3%BC 200"),
        ("net", net_summary("GET", '/a"<b>|{c}', 200), "GET /a%22%3Cb%3E%7C%7Bc%7D 200"),
        ("net", net_summary("OPTIONS", "*", 204), "OPTIONS * 204"),
        ("net", net_summary("CONNECT", "h:443", 200), "CONNECT //h/ 200"),
        ("net", net_summary("GET", "/x;jsessionid=ABC/y", 200), "GET /x;jsessionid=[redacted]/y 200"),
        ("log", log_summary("ERROR", "\nTypeError: x is undefined\n  at y"), "error: TypeError: x is undefined"),
        ("log", log_summary("info", ""), "info: (empty)"),
        ("log", log_summary("info", "login token=abc user=bob"), "info: login token=[redacted] user=bob"),
        ("log", log_summary("info", "Authorization: Bearer abc.def-ghi"), "info: Authorization: Bearer [redacted]"),
        ("route", route_summary("/orders/42?tab=items"), "/orders/42?tab=items"),
        ("route", route_summary("https://h/cb?access_token=abc&x=1#frag"), "/cb?access_token=[redacted]&x=1"),
        ("route", route_summary("/cb?code=abc&state=def"), "/cb?code=[redacted]&state=[redacted]"),
        ("route", route_summary("/shop?code=DE"), "/shop?code=DE"),
        ("route", route_summary("/in?next=%2Fx%3Ftoken%3Dabc"), "/in?next=[redacted]"),
        ("state", state_fact("volume", 5), "volume = 5"),
        ("state", state_fact("orders.count", 3.0), "orders.count = 3"),
        ("state", state_fact("open", True), "open = true"),
        ("state", state_fact("note", ""), 'note = ""'),
        ("state", state_change("calendar.event", "e1", "created"), "calendar.event e1 created"),
        ("state", state_change("person", "Jane Doe", "updated"), "person Jane Doe updated"),
        ("signal", signal_summary("order:placed"), "order:placed"),
        ("ui", ui_summary("button", "Pay", "disabled"), 'button "Pay" disabled'),
        ("ui", ui_summary("alert", "", "appeared"), 'alert "" appeared'),
        ("storage", storage_summary("local", "cart", "set"), "local:cart set"),
        ("time", in_flight_summary(2), "2 requests in flight"),
        ("time", in_flight_summary(1), "1 request in flight"),
        ("time", settled_summary("animations"), "animations settled"),
        ("visual", frame_summary(17, 1280, 720), "frame 17 1280x720"),
        ("x-exit", exit_summary(1), "exit 1"),
        ("x-exit", exit_summary(-1073741819), "exit -1073741819"),
        ("x-termination", termination_summary(9), "SIGKILL"),
        ("x-termination", termination_summary("sigrtmin+3"), "SIGRTMIN+3"),
        ("x-artifact", artifact_summary("out/report 1.pdf", "created"), "out/report 1.pdf created"),
    ],
)
def test_each_sense_has_the_form_of_the_wire_page(sense: str, made: str, expected: str) -> None:
    assert made == expected
    assert summary_fault(sense, made) is None
    assert Pattern.parse(sense, literal(made)).exact == made


@pytest.mark.parametrize(
    ("sense", "text"),
    [
        ("net", "post /orders 201"),
        ("net", "POST /orders"),
        ("net", "POST /orders?token=x 201"),
        ("net", "POST /orders 2xx"),
        ("net", "POST orders 201"),
        ("net", "POST //host 201"),
        ("net", "POST //u:p@host/x 201"),
        ("net", "POST /ü 201"),
        ("net", "POST /a b 201"),
        ("net", "POST /{id} 201"),
        ("net", "GET /x;jsessionid=ABC 200"),
        ("log", "TypeError"),
        ("log", "Error: x"),
        ("log", "error: "),
        ("route", "orders"),
        ("route", "//host/orders"),
        ("route", "/cb?token=abc"),
        ("route", "/cb#frag"),
        ("state", "order placed"),
        ("state", "order e1 placed"),
        ("state", " = 3"),
        ("ui", "button Pay disabled"),
        ("ui", 'button "Pay" clicked'),
        ("storage", "cart set"),
        ("storage", "local:cart = 5"),
        ("time", "soon"),
        ("visual", "frame 17 1280x0"),
        ("x-exit", "1"),
        ("x-exit", "exit 01"),
        ("x-termination", "9"),
        ("x-artifact", "report.pdf"),
        ("signal", "two\nlines"),
        ("signal", " padded"),
        ("signal", ""),
        ("x-own", "a\u202eb"),
        ("net2", "GET / 200"),
    ],
)
def test_what_is_not_in_the_form_is_at_fault_and_makes_no_pattern(sense: str, text: str) -> None:
    assert summary_fault(sense, text) is not None
    if text != "POST /orders 2xx":
        with pytest.raises(ValueError, match=r"no .* summary can be"):
            Pattern.parse(sense, text)


def test_an_own_sense_only_has_to_be_one_line() -> None:
    assert summary_fault("x-orders-state", "anything goes") is None


def made(build: Callable[[], str]) -> str | None:
    """What a formatter gives, or None where it refuses."""
    try:
        return build()
    except ValueError:
        return None


paths = st.one_of(st.text(max_size=30).map(lambda text: "/" + text), texts, st.just("https://h/") | st.just("http://["))


@given(method=texts | st.sampled_from(["get", "POST", "M-SEARCH"]), url=paths, status=st.none() | st.integers())
def test_a_net_summary_passes_whatever_it_is_made_of(method: str, url: str, status: int | None) -> None:
    for origin in (None, "https://h"):
        summary = made(lambda origin=origin: net_summary(method, url, status, own_origin=origin))
        assert summary is None or summary_fault("net", summary) is None


@given(
    level=texts | st.just("error"), message=texts, url=paths, a=texts, b=texts, word=words, value=st.integers() | texts
)
def test_every_formatter_gives_what_passes(
    level: str, message: str, url: str, a: str, b: str, word: str, value: object
) -> None:
    for sense, build in {
        "log": lambda: log_summary(level, message),
        "route": lambda: route_summary(url),
        "signal": lambda: signal_summary(a),
        "ui": lambda: ui_summary("button", a, word),
        "storage": lambda: storage_summary("local", a, word),
        "time": lambda: settled_summary(a),
        "visual": lambda: frame_summary(a, 1, 2),
        "x-artifact": lambda: artifact_summary(a, word),
    }.items():
        summary = made(build)
        assert summary is None or summary_fault(sense, summary) is None, (sense, summary)
    fact, change = made(lambda: state_fact(a, value)), made(lambda: state_change("kind", b, word))
    assert fact is None or (summary_fault("state", fact) is None and is_state_fact(fact))
    assert change is None or (summary_fault("state", change) is None and not is_state_fact(change))


@given(st.text(min_size=1, max_size=30), words)
def test_a_file_name_is_never_refused(name: str, word: str) -> None:
    assert summary_fault("x-artifact", artifact_summary(name, word)) is None


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "access_token",
        "accessToken",
        "X-Api-Key",
        "apikey",
        "PHPSESSID",
        "session_id",
        "user_password",
        "passwd",
        "cookie",
        "Authorization",
        "sig",
        "X-Amz-Signature",
        "X-Amz-Credential",
        "client_secret",
        "key",
        "jwt",
        "SAMLResponse",
        "csrf-token",
    ],
)
def test_a_credential_never_stands_in_a_route_and_a_query_never_in_net(name: str) -> None:
    assert credential_name(name)
    for url in (
        f"/cb?a=1&{name}={SECRET}",
        f"/cb?{name}={SECRET}",
        f"/cb?{quote(name[0]).upper()}{name[1:]}={SECRET};b=2",
        f"/cb?%{ord(name[0]):x}{name[1:]}={SECRET}",
        f"/cb;{name}={SECRET}/x",
        f"/cb?next={quote(f'/x?{name}={SECRET}')}",
        f"/cb?next={quote(quote(f'/x?{name}={SECRET}'))}",
        f"https://user:{SECRET}@h/cb#{SECRET}",
    ):
        route, net = route_summary(url), net_summary("GET", url, 200, own_origin="https://h")
        assert SECRET not in route
        assert SECRET not in net
        assert "?" not in net
        assert route_summary(route) == route


@pytest.mark.parametrize(
    "name", ["tab", "page", "id", "country", "code", "sort", "q", "monkey", "keyboard", "passenger", "author", "pinned"]
)
def test_an_ordinary_name_is_no_credential(name: str) -> None:
    assert not credential_name(name)


@given(texts)
def test_a_pattern_without_wildcard_fits_itself_alone(text: str) -> None:
    summary = made(lambda: signal_summary(text))
    if summary is None:
        return
    pattern = Pattern.parse("signal", literal(summary))
    assert pattern.exact == summary
    assert pattern.matches(summary)
    assert not pattern.matches(summary + "x")
    assert not pattern.matches("x" + summary)


segments = st.text(alphabet="ab*", max_size=6)


@given(before=segments, after=segments, inside=st.text(alphabet="ab*/", max_size=8))
def test_a_star_never_crosses_a_slash(before: str, after: str, inside: str) -> None:
    b, a = before.replace("*", "\\*"), after.replace("*", "\\*")
    summary = f"GET /{before}{inside}{after} 200"
    route = f"/{before}{inside}{after}"
    is_form = summary_fault("net", summary) is None and summary_fault("route", route) is None
    fits = "/" not in inside
    if is_form:
        assert Pattern.parse("net", f"GET /{b}*{a} 200").matches(summary) is fits
        assert Pattern.parse("route", f"/{b}*{a}").matches(route) is fits
        assert Pattern.parse("state", f"f = /{b}*{a}").matches(f"f = {route}")


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab", max_size=10))
def test_stars_fit_as_their_meaning_says(pattern: str, text: str) -> None:
    def fits(rest: str, seen: str) -> bool:
        if not rest:
            return not seen
        if rest[0] == "*":
            return any(fits(rest[1:], seen[at:]) for at in range(len(seen) + 1))
        return bool(seen) and seen[0] == rest[0] and fits(rest[1:], seen[1:])

    assert Pattern.parse("signal", "x" + pattern).matches("x" + text) is fits(pattern, text)


def test_a_backslash_before_a_star_is_a_star() -> None:
    pattern = Pattern.parse("signal", r"a\*b")
    assert pattern.exact == "a*b"
    assert not pattern.matches("axb")
    assert Pattern.parse("signal", r"c:\x").exact == r"c:\x"
    assert Pattern.parse("net", r"OPTIONS \* 204").exact == "OPTIONS * 204"
    assert Pattern.parse("signal", r"a\**").matches("a*bc")


def test_a_status_class_is_for_net_alone_and_only_at_its_end() -> None:
    pattern = Pattern.parse("net", "POST /orders 2xx")
    assert pattern.exact is None
    assert [code for code in (199, 200, 204, 299, 300, 422) if pattern.matches(f"POST /orders {code}")] == [
        200,
        204,
        299,
    ]
    assert not pattern.matches("POST /orders failed")
    assert Pattern.parse("net", "GET /2xx 404").exact == "GET /2xx 404"
    assert Pattern.parse("signal", "got 2xx").exact == "got 2xx"
    for text in ("POST /orders 0xx", "POST /orders 20x", "POST /orders 2XX"):
        with pytest.raises(ValueError, match="no status"):
            Pattern.parse("net", text)


def test_a_star_in_net_and_route_stays_where_it_stands() -> None:
    assert Pattern.parse("net", "GET /orders/* 200").matches("GET /orders/42 200")
    assert not Pattern.parse("net", "GET /orders/* 200").matches("GET /orders/42/items 200")
    assert not Pattern.parse("net", "GET /*/x 200").matches("GET //x/x 200")
    assert not Pattern.parse("net", "GET /*/*/x 200").matches("GET //h/x 200")
    assert Pattern.parse("net", "GET //*.example/x 200").matches("GET //api.example/x 200")
    assert Pattern.parse("net", "* /orders *").matches("PUT /orders failed")
    assert not Pattern.parse("route", "/orders/*").matches("/orders/42?tab=items")
    assert Pattern.parse("route", "/orders/*?tab=*").matches("/orders/42?tab=items")
    assert Pattern.parse("state", "* deleted").matches("calendar.event e1/2 deleted")


@pytest.mark.parametrize(
    "text", ["POST /payments", "POST /payments/* ", "GET * 200", "*", "GET /a* 9*9x", "GET /x?* 200"]
)
def test_a_pattern_that_nothing_could_ever_fit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no net summary can be"):
        Pattern.parse("net", text)


def test_many_stars_against_a_long_line_take_no_time() -> None:
    hostile = Pattern.parse("signal", "*a" * 60 + "*b")
    started = time.perf_counter()
    assert not hostile.matches("a" * 200_000)
    assert not Pattern.parse("net", "GET /" + "*a" * 60 + "*b 200").matches("GET /" + "a" * 200_000 + " 200")
    log_summary("info", "Bearer " + " " * 100_000 + "://" * 50_000 + "a" * 100_000)
    route_summary("/x?" + "a=;" * 100_000)
    assert time.perf_counter() - started < 5
