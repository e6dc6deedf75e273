"""`hotplug run`: a run is checked, shown in the terminal, and written as a page that trusts nothing in it."""

from __future__ import annotations

import html.parser
import io
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.evidence.shop import run_document

from hotplug.cli.failure import Exit

ATTACK = "</style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'><a href=javascript:alert(1)>x</a>"


def written(document: Any, name: str = "run.json") -> str:
    text = document if isinstance(document, str) else json.dumps(document)
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_a_run_without_fault_is_said_to_be_so_whatever_its_outcome(run: Run) -> None:
    ran = run("run", "verify", written(run_document()))
    assert ran.code == Exit.YES
    assert "nothing is wrong with run run-2026-06-11-a" in ran.out
    assert "outcome: fail" in ran.out
    document = run("run", "verify", "run.json", "--json").document
    assert (document["outcome"], document["faults"], document["readable"]) == ("fail", [], True)


def test_every_fault_is_told_with_its_place(run: Run) -> None:
    document = run_document()
    document["verdicts"][1] |= {"verdict": "yes", "ground": "proved", "grade": "consequence"}
    document["receipts"][0]["action"] = "gone"
    ran = run("run", "verify", written(document))
    assert ran.code == Exit.NO
    assert "$.verdicts[1]: says yes (proved); what the run holds gives no (assertion-failed)" in ran.out
    assert "$.receipts[0].action" in ran.out
    assert len(run("run", "verify", "run.json", "--json").document["faults"]) == 2


def test_an_outcome_shown_beside_it_is_compared(run: Run) -> None:
    file = written(run_document())
    assert run("run", "verify", file, "--shown", "pass").code == Exit.NO
    assert run("run", "verify", file, "--shown", "fail").code == Exit.YES


@pytest.mark.parametrize("document", ["no json", "[]", {"ovp": "2.0"}, '{"ovp": "1.0", "ovp": "1.0"}', {"ovp": "1.0"}])
def test_what_cannot_be_read_is_unknown(run: Run, document: Any) -> None:
    file = written(document)
    for verb in ("verify", "show"):
        ran = run("run", verb, file)
        assert ran.code == Exit.INCOMPLETE
        assert "unknown" in ran.out
        assert run("run", verb, file, "--json").document["outcome"] == "unknown"


def test_a_run_is_read_from_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(json.dumps(run_document()).encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert run("run", "verify", "-").code == Exit.YES


def test_a_missing_run_is_a_usage_error(run: Run) -> None:
    assert run("run", "verify", "nowhere.json").code == Exit.USAGE


def test_what_could_not_be_checked_is_told_and_counts_when_asked_to(run: Run) -> None:
    document = run_document()
    document["claims"][0]["assertions"][0]["predicate"] = {"of": "somebody else"}
    file = written(document)
    ran = run("run", "verify", file)
    assert ran.code == Exit.YES
    assert "not checked" in ran.out
    assert "nobody here speaks the predicate of 'as-1-1'" in ran.out
    assert run("run", "verify", file, "--strict").code == Exit.INCOMPLETE


def test_our_own_predicates_are_understood(run: Run) -> None:
    document = run_document()
    document["claims"][0]["assertions"][0]["predicate"] = {
        "kind": "x-hotplug-count",
        "match": {"channel": "net", "sense": "net", "pattern": "POST /orders 2xx"},
        "op": "exactly",
        "value": 1,
    }
    assert run("run", "verify", written(document), "--strict").code == Exit.YES
    document["claims"][0]["assertions"][0]["predicate"]["match"]["pattern"] = "POST /orders 4xx"
    assert run("run", "verify", written(document)).code == Exit.NO


def test_a_run_is_shown_with_all_that_a_person_needs(run: Run) -> None:
    ran = run("run", "show", written(run_document()))
    assert ran.code == Exit.YES
    for expected in (
        "✗ fail: run run-2026-06-11-a",
        "11 claims: 1 yes, 2 no, 7 unknown, 1 no-fault; violated: no payment twice",
        "✓ yes (proved): the order is placed",
        "? unknown (channel-not-observed): a receipt is mailed",
        "Look with `x-mail`",
        "✗ violated (blocking): no payment twice",
        "· no violation recorded (advisory): no error in the log",
        "send the idempotency key with every payment (shop/pay.ts:118)",
    ):
        assert expected in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_a_run_as_data_has_a_claim_for_each_verdict(run: Run) -> None:
    document = run("run", "show", written(run_document()), "--json").document
    assert [one["ground"] for one in document["claims"]][:2] == ["proved", "assertion-failed"]
    assert "Look with `x-mail`" in document["claims"][2]["next"]
    assert document["constraints"][0]["violations"] == ["a second payment"]


def test_a_run_that_contradicts_itself_is_shown_with_that_first(run: Run) -> None:
    document = run_document() | {"outcome": "pass"}
    ran = run("run", "show", written(document))
    assert ran.code == Exit.NO
    assert ran.out.index("is not to be believed") < ran.out.index("the order is placed")
    assert run("run", "show", "run.json", "--html", "run.html").code == Exit.NO
    assert "not to be believed" in Path("run.html").read_text(encoding="utf-8")


def test_a_claim_that_nobody_judged_says_so(run: Run) -> None:
    document = run_document()
    del document["verdicts"][10]
    written(document)
    assert "· not judged: nothing is said of the footer" in run("run", "show", "run.json").out
    assert run("run", "show", "run.json", "--html", "run.html").code == Exit.YES
    assert "· not judged" in Path("run.html").read_text(encoding="utf-8")


def test_a_corrected_verdict_stands_back(run: Run) -> None:
    document = run_document()
    document["verdicts"].append(
        {"id": "later", "claim": "claim-6", "window": "win-6", "verdict": "no", "at": 1}
        | {"supersedes": "run-2026-06-11-a#verdict-6"}
    )
    ran = run("run", "show", written(document))
    assert "(corrected by later)" in ran.out
    assert "11 claims: 1 yes, 3 no, 6 unknown" in ran.out
    assert "(corrected)" in page_of(run, document)


class Page(html.parser.HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(run: Run, document: dict[str, Any]) -> str:
    ran = run("run", "show", written(document), "--html", "run.html")
    assert ran.code in (Exit.YES, Exit.NO), ran.out + ran.err
    return Path("run.html").read_text(encoding="utf-8")


def test_the_page_asks_for_nothing_and_runs_nothing(run: Run) -> None:
    text = page_of(run, run_document())
    page = Page(text)
    assert {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "form", "base"} == set()
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), tag
            assert name not in {"src", "style", "srcset", "action"}, "a policy without inline styles would drop it"
            if name == "href":
                assert (value or "").startswith("#")
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    policy = next(one["content"] for tag, one in page.tags if tag == "meta" and "http-equiv" in one)
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_the_page_can_be_read_aloud(run: Run) -> None:
    page = Page(page_of(run, run_document()))
    assert dict(page.tags)["html"] == {"lang": "en"}
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    drawings = [one for tag, one in page.tags if tag == "svg"]
    assert all(one.get("aria-label") or one.get("aria-hidden") == "true" for one in drawings)
    ids = [one["id"] for _, one in page.tags if "id" in one]
    assert len(set(ids)) == len(ids)
    assert {one["href"] for tag, one in page.tags if tag == "a"} <= {f"#{name}" for name in ids}
    assert "? unknown" in page.text, "never by colour alone"


def _places(value: Any, steps: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every text in a document."""
    if isinstance(value, dict):
        return [place for name, one in value.items() for place in _places(one, (*steps, name))]
    if isinstance(value, list):
        return [place for position, one in enumerate(value) for place in _places(one, (*steps, position))]
    return [steps] if isinstance(value, str) else []


_WORDS = {
    *("ovp", "surface", "independence", "grade", "channel", "channels", "class", "tier", "kind", "verdict", "ground"),
    *("declaredAt", "closes", "closedBy", "origin", "status", "severity", "reason", "op", "observed", "between"),
}
"""Members whose values are of a vocabulary; with anything else the run can't be read."""


def test_nothing_that_a_run_says_becomes_markup(run: Run) -> None:
    document = run_document()
    document["evidence"][0]["observation"]["value"] = {"name": "v", "deep": ["v"]}
    document["channels"][0]["note"] = "n"
    document["verdicts"][3]["supersedes"] = "s"
    document["x-of-others"] = {"t": "t"}
    attacked = 0
    for place in _places(document):
        name = next(step for step in reversed(place) if isinstance(step, str))
        if name in _WORDS or (name == "id" and "channels" in place):
            continue
        here: Any = document
        for step in place[:-1]:
            here = here[step]
        # References stay references: what is the same stays the same.
        here[place[-1]] = f"{ATTACK}{here[place[-1]]}"
        attacked += 1
    assert attacked > 150
    text = page_of(run, document)
    tags = {tag for tag, _ in Page(text).tags}
    assert tags & {"script", "img"} == set()
    assert text.count("<script") == text.count("<img") == 0
    assert text.count("</style>") == 1
    assert text.count("&lt;script&gt;alert(1)") > 100
    assert not any(name.startswith("on") for _, one in Page(text).tags for name in one)


def test_what_a_reader_would_not_see_is_made_visible(run: Run) -> None:
    document = run_document()
    document["claims"][0]["statement"] = "safe\u202etxt\u200b\x1b[2J\x00"
    text = page_of(run, document)
    assert not set("\u202e\u200b\x1b\x00") & set(text)
    assert "safe\\u202etxt" in text
    shown = run("run", "show", "run.json").out
    assert not set("\u202e\u200b\x1b\x00") & set(shown)


def test_a_page_of_ours_is_replaced_and_no_other_file(run: Run) -> None:
    file = written(run_document())
    assert run("run", "show", file, "--html", "run.html").code == Exit.YES
    assert run("run", "show", file, "--html", "run.html").code == Exit.YES
    Path("mine.html").write_text("mine", encoding="utf-8")
    ran = run("run", "show", file, "--html", "mine.html")
    assert ran.code == Exit.USAGE
    assert Path("mine.html").read_text(encoding="utf-8") == "mine"


def test_a_page_of_very_odd_numbers_is_written(run: Run) -> None:
    document = run_document()
    document |= {"startedAt": -(10**30), "endedAt": 10**30}
    document["windows"][0] |= {"openedAt": 10**30, "closedAt": 10**30}
    document["evidence"][0]["observation"]["at"] = -(10**40)
    assert "NaN" not in page_of(run, document)


def test_an_empty_run_is_a_page(run: Run) -> None:
    lists = [name for name, value in run_document().items() if isinstance(value, list)]
    document = run_document() | {name: [] for name in lists}
    assert "Nothing was claimed." in page_of(run, document)
    assert "0 claims" in run("run", "show", "run.json").out


def test_what_was_seen_at_one_moment_is_one_dot_with_its_number(run: Run) -> None:
    document = run_document()
    for item in document["evidence"][2:4]:
        item["observation"]["at"] = 20_200
    assert ">×2</text>" in page_of(run, document)


def test_a_long_run_is_a_page(run: Run) -> None:
    document = run_document()
    first = document["evidence"][2]
    more = [
        {**first, "observation": {**first["observation"], "id": f"more-{n}", "at": 20_000 + n}} for n in range(2_000)
    ]
    document["evidence"] += more
    document["verdicts"][1]["evidence"] += [one["observation"]["id"] for one in more]
    text = page_of(run, document)
    assert text.count("<circle") < 500
    assert "more-1999" in text
