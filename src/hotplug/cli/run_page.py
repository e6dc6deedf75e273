"""A run as one page: it loads nothing, runs nothing, and reads on a phone, in the dark and aloud.

All that a run says is text from elsewhere: it is escaped where it is written, and the page's own policy forbids
scripts and requests besides.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from hotplug.cli.html import Child, Markup, element
from hotplug.cli.run_text import counted
from hotplug.cli.run_timeline import timeline
from hotplug.cli.run_view import OUTCOME_MARKS, WORD, Judged, RunView

if TYPE_CHECKING:
    from hotplug.evidence.channels import ChannelDescriptor
    from hotplug.evidence.checks import Fault
    from hotplug.evidence.observation import Evidence

__all__ = ["MARK", "page"]

MARK: Final = '<meta name="generator" content="hotplug run show">'
"""Stands in every page of ours."""

_ORDER: Final = ("yes", "no", "unknown", "no-fault", "not judged")
_SAID: Final = {
    "pass": "Passed",
    "fail": "Failed",
    "partial": "Partial",
    "unknown": "Unknown",
}
_EPOCH: Final = 10**11
"""Milliseconds from here on are a date; below, they count from a start that nobody knows."""
_LONGEST: Final = 4_000


def page(view: RunView) -> str:
    """The whole page."""
    run = view.run
    style = files("hotplug.cli").joinpath("run_page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        Markup(MARK),
        element("title", f"{_SAID[view.outcome]}: run {run.id}"),
        Markup(f"<style>{style}</style>"),
    )
    body = element(
        "body",
        element("a", "Skip to the claims", href="#claims", class_="skip"),
        _top(view),
        element("div", _contents(view), element("main", *_main(view)), class_="columns"),
        element(
            "footer",
            element("p", "The outcome was computed from the run's own verdicts when this page was written."),
        ),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _top(view: RunView) -> Markup:
    run = view.run
    return element(
        "header",
        element("p", "Verification run", class_="eyebrow"),
        element(
            "h1",
            element("span", OUTCOME_MARKS[view.outcome], aria_hidden="true", class_="mark"),
            f" {_SAID[view.outcome]}",
        ),
        element("p", counted(view), class_="counts"),
        _proportions(view),
        _pairs(
            ("Run", element("code", run.id)),
            ("Subject", [element("code", run.subject.instance), f" ({run.subject.surface})"]),
            ("Revision", run.subject.revision),
            ("Where", run.subject.locator),
            ("Witnesses", ", ".join(witness.name for witness in run.witnesses) or None),
            ("Verified by", f"{run.verifier.name} {run.verifier.version}"),
            ("Time", _span(run.started_at, run.ended_at)),
        ),
        _banner(view.faults),
        class_=f"top {view.outcome}",
    )


def _proportions(view: RunView) -> Markup | None:
    total = sum(view.counts.values())
    if not total:
        return None
    bars: list[Markup] = []
    x = 0.0
    for name in _ORDER:
        share = 100 * view.counts[name] / total
        if share:
            bars.append(element("rect", x=f"{x:.3f}%", width=f"{share:.3f}%", height="100%", class_=_class(name)))
        x += share
    return element("svg", bars, class_="proportions", aria_hidden="true")


def _banner(faults: tuple[Fault, ...]) -> Markup | None:
    if not faults:
        return None
    return element(
        "section",
        element("h2", "✗ This run is not to be believed"),
        element("p", "It says something that its own material does not bear out."),
        _fault_list(faults),
        class_="banner",
        role="alert",
    )


def _fault_list(faults: Iterable[Fault]) -> Markup:
    return element("ul", (element("li", element("code", one.where), f" {one.problem}") for one in faults))


def _contents(view: RunView) -> Markup:
    entries = (
        element(
            "li",
            element(
                "a",
                _badge(_word(one)),
                " ",
                element("span", one.claim.statement),
                " (corrected)" if one.corrected_by else None,
                href=f"#claim-{number}",
                class_="old" if one.corrected_by else None,
            ),
        )
        for number, one in enumerate(view.claims, 1)
    )
    return element("nav", element("h2", "Claims"), element("ol", entries), aria_label="Claims")


def _main(view: RunView) -> Iterator[Child]:
    run = view.run
    yield element(
        "section",
        element("h2", "Verdicts"),
        element(
            "p",
            "In the drawings, a filled dot was seen independently of the action, a hollow one by the acting side; "
            "an upright line is an action.",
            class_="small legend",
        )
        if view.claims
        else None,
        (_claim(number, one, view) for number, one in enumerate(view.claims, 1)),
        element("p", "Nothing was claimed.", class_="card") if not view.claims else None,
        id="claims",
    )
    if run.constraints:
        yield element("section", element("h2", "Constraints"), (_constraints(view)))
    if run.actions:
        yield element("section", element("h2", "Actions"), _actions(view))
    yield element("section", element("h2", "Senses"), _senses(view))
    if run.repairs:
        yield element("section", element("h2", "Repairs"), _repairs(view))
    if view.unjudged:
        yield element(
            "section",
            element("h2", "Not checked"),
            element("p", "The run does not hold enough to check these; they are taken from it as they stand."),
            _fault_list(view.unjudged),
        )
    document = json.dumps(run.document(), ensure_ascii=False, indent=2)
    yield element("section", _details("The run as JSON", element("pre", document)))


def _claim(number: int, one: Judged, view: RunView) -> Markup:
    record = one.record
    head = element(
        "header",
        _badge(_word(one)),
        element("code", record.ground, class_="ground") if record and record.ground else None,
        element("span", f"corrected by {one.corrected_by}", class_="corrected") if one.corrected_by else None,
        element("h3", one.claim.statement),
    )
    intents = [intent.statement for intent in view.run.intents if intent.id == one.claim.intent]
    return element(
        "article",
        head,
        element("p", element("strong", "Next"), " ", _marked(one.next_move), class_="next") if one.next_move else None,
        _part("Claimed", [_condition(assertion) for assertion in one.claim.assertions]),
        _part("Because", record.reasons if record else ()),
        timeline(one, view.run.actions),
        _evidence(one, view),
        _unseen(one),
        _part(
            "Contradictions",
            [
                [element("code", anomaly.kind), f" ({anomaly.tier}): {anomaly.claim}; but {anomaly.counter}"]
                for anomaly in one.anomalies
            ],
        ),
        _details(
            "More",
            _pairs(
                ("Claim", element("code", one.claim.id)),
                ("Intent", "; ".join(intents) or None),
                ("Written", one.claim.declared_at),
                ("Verdict", element("code", record.id) if record else None),
                ("Corrects", record.supersedes if record else None),
                ("Window", element("code", one.window.id) if one.window else None),
                ("Waited for", one.window.closes if one.window else None),
                ("Ended by", (one.window.closed_by or "still open") if one.window else None),
                ("Watched", ", ".join(one.coverage.observed) if one.coverage else None),
            ),
        ),
        id=f"claim-{number}",
        class_=f"card {_class(_word(one))}{' old' if one.corrected_by else ''}",
    )


def _condition(assertion: Any) -> Child:
    return [assertion.reads, " ", [element("span", channel, class_="chip") for channel in assertion.channels]]


def _evidence(one: Judged, view: RunView) -> Markup | None:
    if not one.evidence:
        return None
    rows = (_row(item, view) for item in one.evidence)
    table = _table((WORD.title(), "Seen", "Worth", "When"), rows, "What was seen")
    return element("div", element("h4", "Seen"), table, class_="part")


def _row(item: Evidence, view: RunView) -> Markup:
    from hotplug.evidence.observation import can_support_consequence

    seen, known = item.observation, item.provenance
    worth = [f"{item.independence}, {item.grade}"]
    worth.append("can prove" if can_support_consequence(item) else "can't prove alone")
    if known.confidence is not None:
        worth.append(f"confidence {known.confidence:g}")
    value = json.dumps(seen.value, ensure_ascii=False, indent=2) if seen.carries("value") else None
    return element(
        "tr",
        element("td", element("span", seen.channel, class_="chip")),
        element(
            "td",
            element("code", seen.summary),
            element("div", f"{known.class_}: {known.source}, {known.method}", class_="small"),
            _details("value", element("pre", _cut(value))) if value is not None else None,
        ),
        element("td", (element("div", word, class_="small") for word in worth)),
        element("td", _moment(seen.at, view.run.started_at), class_="small when"),
    )


def _unseen(one: Judged) -> Markup | None:
    if one.coverage is None:
        return None
    if one.coverage.blind_spots is None:
        return _part("Out of sight", ["nobody listed what was out of sight"])
    spots = [
        [
            element("span", spot.channel, class_="chip") if spot.channel else None,
            f" {spot.kind}: {spot.detail}",
            element("div", f"To see more: {spot.remedy}", class_="small") if spot.remedy else None,
        ]
        for spot in one.coverage.blind_spots
    ]
    return _part("Out of sight", spots)


def _constraints(view: RunView) -> Iterator[Markup]:
    for constraint, violations in view.constraints():
        state = "violated" if violations else "no violation recorded"
        badge = "no" if violations and constraint.severity == "blocking" else "unknown" if violations else "no-fault"
        yield element(
            "article",
            element(
                "header",
                element("span", f"{'✗' if violations else '·'} {state}", class_=f"badge {badge}"),
                element("code", constraint.severity, class_="ground"),
                element("h3", constraint.statement),
            ),
            _part("Seen", [f"{one.detail}{_ids(one.evidence)}" for one in violations]),
            class_=f"card {badge}",
        )


def _ids(names: tuple[str, ...]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _actions(view: RunView) -> Markup:
    receipts = {receipt.action: receipt for receipt in view.run.receipts}
    rows: list[Markup] = []
    for action in view.run.actions:
        receipt = receipts.get(action.id)
        if receipt is None:
            answer = "no receipt"
        elif receipt.refused is not None:
            answer = f"refused ({receipt.refused.reason}): {receipt.refused.detail}"
        else:
            answer = "dispatched"
        target = element("div", f"on {action.target}", class_="small") if action.target else None
        rows.append(
            element(
                "tr",
                element("td", element("code", action.capability), target),
                element("td", answer),
                element("td", action.actor),
                element("td", _moment(action.at, view.run.started_at), class_="small when"),
            )
        )
    note = element("p", "A receipt says that an action was delivered, never that it worked.", class_="small")
    return Markup(note + _table(("Action", "Receipt", "By", "When"), rows, "Actions"))


def _senses(view: RunView) -> Markup:
    rows = [_sense("the subject", channel) for channel in view.run.channels]
    rows += [
        _sense(f"witness {witness.name}", channel) for witness in view.run.witnesses for channel in witness.channels
    ]
    if not rows:
        return element("p", "Nobody watched anything.")
    return _table((WORD.title(), "Watched by", "Worth"), rows, "Senses")


def _sense(whose: str, channel: ChannelDescriptor) -> Markup:
    return element(
        "tr",
        element("td", element("span", channel.id, class_="chip")),
        element("td", whose),
        element(
            "td",
            f"{channel.independence}, {channel.grade}",
            element("div", channel.note, class_="small") if channel.note else None,
        ),
    )


def _repairs(view: RunView) -> Iterator[Markup]:
    for repair in view.run.repairs:
        place = repair.location
        line = "" if place is None or place.line is None else f":{place.line}"
        yield element(
            "article",
            element("h3", repair.instruction),
            _pairs(
                ("Expected", repair.expected),
                ("Actual", repair.actual),
                ("Where", element("code", f"{place.file}{line}") if place else None),
                ("From", element("code", repair.verdict)),
            ),
            class_="card",
        )


def _part(title: str, entries: Iterable[Child]) -> Markup | None:
    items = [element("li", entry) for entry in entries]
    return element("div", element("h4", title), element("ul", items), class_="part") if items else None


def _pairs(*pairs: tuple[str, Child]) -> Markup:
    return element(
        "dl",
        (element("div", element("dt", name), element("dd", value)) for name, value in pairs if value is not None),
    )


def _details(title: str, *children: Child) -> Markup:
    return element("details", element("summary", title), *children)


def _table(columns: Iterable[str], rows: Iterable[Markup], label: str) -> Markup:
    head = element("tr", (element("th", name, scope="col") for name in columns))
    table = element("table", element("thead", head), element("tbody", rows))
    return element("div", table, class_="scroll", tabindex="0", role="group", aria_label=label)


def _word(one: Judged) -> str:
    return one.record.verdict if one.record else "not judged"


def _badge(word: str) -> Markup:
    from hotplug.evidence.text import VERDICT_MARKS

    marks: dict[str, str] = {**VERDICT_MARKS, "not judged": "·"}
    return element("span", f"{marks[word]} {word}", class_=f"badge {_class(word)}")


def _class(word: str) -> str:
    return "no-fault" if word == "not judged" else word


def _marked(text: str | None) -> Child:
    """A text whose parts between backticks are code."""
    parts = (text or "").split("`")
    return [element("code", part) if position % 2 else part for position, part in enumerate(parts)]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n… {len(text) - _LONGEST} more characters"


def _span(start: int, end: int) -> str:
    length = f"{(end - start) / 1000:g} s"
    when = _date(start)
    return length if when is None else f"{when}, {length}"


def _moment(at: int, start: int) -> Child:
    """A moment as seconds since the run's start."""
    return f"{(at - start) / 1000:+.3f} s"


def _date(at: int) -> str | None:
    if at < _EPOCH:
        return None
    try:
        return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return None
