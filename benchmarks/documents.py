"""What costs by size: the digest of a large document, a mapping's expression."""

from __future__ import annotations

import json

from benchmarks.measure import Counts, Row, compare_blocking, row
from hotplug.profile.canonical import canonical, digest
from hotplug.projection.mapping import Mapping

__all__ = ["measure_documents"]

EXPRESSION = '{"title": summary, "start": start, "guests": [attendees[status != "declined"].email]}'
VALUE = {
    "summary": "Planning",
    "start": "2026-06-11T15:00:00Z",
    "attendees": [{"email": f"p{number}@example.org", "status": "accepted"} for number in range(5)],
}


def _document(size: int) -> dict[str, object]:
    one = {"name": "calendar.event", "fields": ["start", "end", 1, 2.5, True, None], "text": "Ünï ☕ " * 10}
    number = size // len(json.dumps(one, ensure_ascii=False).encode())
    return {f"entry{index}": one for index in range(number)}


def measure_documents(counts: Counts) -> list[Row]:
    """A digest and a mapping, each against the JSON work that nobody gets around."""
    document = _document(1_000_000)
    mapping = Mapping(EXPRESSION, "benchmarks")
    few = Counts(rounds=counts.rounds, calls=max(1, counts.calls // 20))
    large = compare_blocking(
        {
            "digest": lambda: digest(document),
            "canonical form": lambda: canonical(document),
            "json.dumps, sorted": lambda: json.dumps(document, sort_keys=True, ensure_ascii=False).encode(),
        },
        few,
    )
    small = compare_blocking(
        {"mapping": lambda: mapping.apply(VALUE, {}), "json.loads(json.dumps)": lambda: json.loads(json.dumps(VALUE))},
        counts,
    )
    return [
        row("documents", "1 MB document", large, "digest", "json.dumps, sorted"),
        row("documents", "small expression", small, "mapping", "json.loads(json.dumps)"),
    ]
