"""Plays a journey on one backend."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

from hotplug.conform.journey.document import Journey, Step
from hotplug.conform.journey.outcome import BackendOutcome, Cell
from hotplug.connect import Link
from hotplug.errors import ConnectionFailed, HotplugError
from hotplug.projection.mapping import Mapping as Expression

__all__ = ["Witness", "play"]

OnCell = Callable[[str, Cell], Awaitable[None]]


class Witness(Protocol):
    """Reads what a backend really stored, without asking the server that is being tried."""

    @property
    def describe(self) -> str:
        """How it looks, for the report."""
        ...

    async def stored(self) -> list[dict[str, Any]]:
        """The events there are: `{title, start, end}`, times in UTC (`2026-10-26T13:00:00Z`)."""
        ...


async def play(
    journey: Journey,
    link: Link,
    *,
    name: str,
    via: str,
    witness: Witness | None = None,
    run: str | None = None,
    notes: Mapping[str, Any] | None = None,
    on_cell: OnCell | None = None,
) -> BackendOutcome:
    """Play every step in order; what can't be reached any more is absent, and nothing is ever skipped in silence.

    Args:
        link: The connection to the backend.
        via: `native` or `projected`.
        witness: Reads what is really stored; steps that ask for it without one are not witnessed, and the cell says so.
        run: Distinguishes what this run makes from what is there already.
    """
    bindings: dict[str, Any] = {"run": run or secrets.token_hex(4)}
    for key, value in journey.let.items():
        bindings[key] = _evaluate(value, bindings, f"{journey.journey}: let {key}")
    cells: list[Cell] = []
    broken = False
    for step in journey.steps:
        if not _offered(step, link):
            cell = Cell(step.name, "absent", reason="not_applicable")
        elif broken:
            cell = Cell(step.name, "absent", reason="not_reached")
        else:
            cell = await _play(journey, step, link, bindings, witness)
            broken = cell.status in {"failed", "refused"} and step.refused is None and step.may_refuse is None
        cells.append(cell)
        if on_cell is not None:
            await on_cell(name, cell)
    return BackendOutcome(
        name=name,
        target=link.channel.target,
        via=via,
        cells=tuple(cells),
        notes=notes or {},
        witness=witness.describe if witness else None,
    )


def _offered(step: Step, link: Link) -> bool:
    if step.needs is None:
        return True
    if step.needs.facet is not None and step.needs.facet not in link.spoken.facets:
        return False
    return step.needs.part is None or link.spoken.way(step.needs.part) is not None


async def _play(journey: Journey, step: Step, link: Link, bindings: dict[str, Any], witness: Witness | None) -> Cell:
    where = f"{journey.journey}: {step.name}"
    started = time.perf_counter()

    def cell(status: Any, **values: Any) -> Cell:
        return Cell(step.name, status, milliseconds=round((time.perf_counter() - started) * 1000, 1), **values)

    part = link.spoken.known.get(step.do)
    if part is None:
        return cell("failed", message=f"{step.do} is no part of {link.spoken.profile}")
    try:
        arguments = cast("dict[str, Any]", _evaluate(step.with_, bindings, where))
        key = f"journey-{bindings['run']}-{step.name}"
        keyed = link.with_options(key=key) if part.flags.once else link
        result = dict(await keyed.call_wire(part, arguments))
        if step.repeat:
            again = dict(await keyed.call_wire(part, arguments))
            if again != result:
                return cell("failed", message="the same call under the same key gave another outcome")
    except ConnectionFailed as error:
        if step.refused is not None:
            if error.code == step.refused:
                seen = await _witnessed(step, {}, bindings, witness, where)
                if seen is False:
                    return cell(
                        "failed",
                        code=error.code,
                        message="refused as it should be, but what is stored isn't as expected",
                    )
                return cell(
                    "passed", code=error.code, message=str(error), yields={"refused": error.code}, witnessed=seen
                )
            return cell(
                "failed", code=error.code, message=f"refused with {error.code} instead of {step.refused}: {error}"
            )
        if step.may_refuse == error.code:
            touched = await _untouched(step, bindings, witness, where)
            if touched.get("witnessed") is False:
                return cell(
                    "failed", code=error.code, message="refused, but something was stored all the same", **touched
                )
            return cell("refused", code=error.code, message=_lost(error), **touched)
        status = "refused" if error.code in {"unsupported", "undeclared", "guarded", "permission_denied"} else "failed"
        return cell(status, code=error.code, message=str(error))
    except HotplugError as error:
        return cell("failed", code=error.code, message=str(error))
    if step.refused is not None:
        return cell("failed", message=f"was done, and should have been refused with {step.refused}")
    if step.bind:
        bindings[step.bind] = result
    try:
        if step.expect is not None and Expression(step.expect, where=where).apply(result, bindings) is not True:
            return cell("failed", message=f"expected {step.expect}, seen {_shown(result)}")
        seen = await _witnessed(step, result, bindings, witness, where)
        if seen is False:
            return cell("failed", message=f"what is stored isn't as expected: {step.stored}", witnessed=False)
        yields = Expression(step.yields, where=where).apply(result, bindings) if step.yields else None
        if step.undo is not None:
            taken = cast("dict[str, Any]", _evaluate(step.undo.with_, bindings, where))
            await link.call_wire(link.spoken.known[step.undo.do], taken)
    except HotplugError as error:
        return cell("failed", code=error.code, message=str(error))
    return cell("passed", yields=yields, witnessed=seen)


async def _untouched(step: Step, bindings: Mapping[str, Any], witness: Witness | None, where: str) -> dict[str, Any]:
    if step.untouched is None or witness is None:
        return {}
    stored = await witness.stored()
    right = Expression(step.untouched, where=where).apply({}, {**bindings, "stored": stored}) is True
    return {"witnessed": right}


def _lost(error: ConnectionFailed) -> str:
    lost = error.details.get("lost")
    names = ", ".join(map(str, cast("list[Any]", lost))) if isinstance(lost, list) else ""
    return f"{error.message}; it would lose: {names}" if names else error.message


async def _witnessed(
    step: Step, result: Mapping[str, Any], bindings: Mapping[str, Any], witness: Witness | None, where: str
) -> bool | None:
    if step.stored is None or witness is None:
        return None
    stored = await witness.stored()
    return Expression(step.stored, where=where).apply(dict(result), {**bindings, "stored": stored}) is True


def _evaluate(value: Any, bindings: Mapping[str, Any], where: str) -> Any:
    """The value with every string that begins with `=` evaluated."""
    if isinstance(value, str) and value.startswith("="):
        return Expression(value[1:], where=where).apply({}, dict(bindings))
    if isinstance(value, dict):
        return {key: _evaluate(item, bindings, where) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_evaluate(item, bindings, where) for item in cast("list[Any]", value)]
    return value


def _shown(value: Any) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else text[:400] + "…"
