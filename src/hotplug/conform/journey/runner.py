"""Plays a journey on one backend."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

from hotplug.conform.journey.document import Journey, Step
from hotplug.conform.journey.outcome import BackendOutcome, Cell, Status
from hotplug.conform.journey.watch import Watch, watched, with_eyes
from hotplug.connect import Link
from hotplug.errors import ConnectionFailed, HotplugError
from hotplug.evidence.witness import Witness as Looks
from hotplug.profile import Part
from hotplug.projection.mapping import Mapping as Expression

__all__ = ["Witness", "offered", "play"]

OnCell = Callable[[str, Cell], Awaitable[None]]


@runtime_checkable
class Witness(Protocol):
    """Reads what a backend really stored, without asking the server that is being tried."""

    @property
    def describe(self) -> str:
        """How it looks, for the report."""
        ...

    async def stored(self) -> list[dict[str, Any]]:
        """The events there are: `{title, start, end}`, times in UTC (`2026-10-26T13:00:00Z`).

        Raises:
            HotplugError: It could not look; what is stored is not known then, and nothing is concluded.
        """
        ...


async def play(
    journey: Journey,
    link: Link,
    *,
    name: str,
    via: str,
    witness: Witness | Looks | None = None,
    run: str | None = None,
    notes: Mapping[str, Any] | None = None,
    on_cell: OnCell | None = None,
) -> BackendOutcome:
    """Play every step in order; what can't be reached any more is absent, and nothing is ever skipped in silence.

    Args:
        link: The connection to the backend.
        via: `native` or `projected`.
        witness: Reads what is really stored; steps that ask for it without one are not witnessed, and the cell says so.
            One that looks in windows (`hotplug.evidence.witness.Witness`) is what claims `by: witness` are held
            against; without one they end in `unknown`.
        run: Distinguishes what this run makes from what is there already.
    """
    bindings: dict[str, Any] = {"run": run or secrets.token_hex(4)}
    for key, value in journey.let.items():
        bindings[key] = _evaluate(value, bindings, f"{journey.journey}: let {key}")
    cells: list[Cell] = []
    broken = False
    for step in journey.steps:
        if not offered(step, link):
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
        witness=_described(witness),
    )


def _described(witness: Witness | Looks | None) -> str | None:
    return None if witness is None else witness.describe if isinstance(witness, Witness) else witness.name


def offered(step: Step, link: Link) -> bool:
    """Whether what a step needs is there."""
    if step.needs is None:
        return True
    if step.needs.facet is not None and step.needs.facet not in link.spoken.facets:
        return False
    return step.needs.part is None or link.spoken.way(step.needs.part) is not None


async def _play(journey: Journey, step: Step, link: Link, bindings: dict[str, Any], witness: object | None) -> Cell:
    where = f"{journey.journey}: {step.name}"
    started = time.perf_counter()
    watch = Watch()

    def cell(status: Status, **values: Any) -> Cell:
        found = Cell(
            step.name,
            status,
            milliseconds=round((time.perf_counter() - started) * 1000, 1),
            claims=watch.claims,
            constraints=watch.constraints,
            **values,
        )
        return _weighed(found)

    part = link.spoken.known.get(step.do)
    if part is None:
        return cell("failed", message=f"{step.do} is no part of {link.spoken.profile}")
    try:
        arguments = cast("dict[str, Any]", _evaluate(step.with_, bindings, where))
        seeing, eyes = with_eyes(link, witness)
        async with watched(step, seeing, eyes, lambda value: _evaluate(value, bindings, where)) as watch:
            done = await _call(step, link, part, arguments, f"journey-{bindings['run']}-{step.name}")
        if done.error is not None:
            return await _refused(step, done.error, cell, bindings, witness, where)
        if done.fault is not None:
            return cell("failed", message=done.fault)
        if step.refused is not None:
            return cell("failed", message=f"was done, and should have been refused with {step.refused}")
        if step.bind:
            bindings[step.bind] = done.result
        if step.expect is not None and Expression(step.expect, where=where).apply(done.result, bindings) is not True:
            return cell("failed", message=f"expected {step.expect}, seen {_shown(done.result)}")
        seen = await _witnessed(step.stored, done.result, bindings, witness, where)
        if seen.get("witnessed") is False:
            return cell("failed", message=f"what is stored isn't as expected: {step.stored}", witnessed=False)
        yields = Expression(step.yields, where=where).apply(done.result, bindings) if step.yields else None
        if step.undo is not None:
            taken = cast("dict[str, Any]", _evaluate(step.undo.with_, bindings, where))
            await link.call_wire(link.spoken.known[step.undo.do], taken)
    except HotplugError as error:
        return cell("failed", code=error.code, message=str(error))
    return cell("passed", yields=yields, **seen)


@dataclass(frozen=True)
class _Done:
    """What came of calling: a result, the error that was answered, or a fault of what was answered."""

    result: dict[str, Any]
    error: ConnectionFailed | None = None
    fault: str | None = None


async def _call(step: Step, link: Link, part: Part, arguments: Mapping[str, Any], key: str) -> _Done:
    """Call the step's part, and once more where it says so; an answered error is a result here."""
    keyed = link.with_options(key=key) if part.flags.once else link
    try:
        result = dict(await keyed.call_wire(part, arguments))
        if step.repeat and dict(await keyed.call_wire(part, arguments)) != result:
            return _Done(result, fault="the same call under the same key gave another outcome")
    except ConnectionFailed as error:
        return _Done({}, error)
    return _Done(result)


async def _refused(
    step: Step,
    error: ConnectionFailed,
    cell: Callable[..., Cell],
    bindings: Mapping[str, Any],
    witness: object | None,
    where: str,
) -> Cell:
    """What an answered error is worth: right, honest, or wrong."""
    if step.refused is not None:
        if error.code != step.refused:
            return cell(
                "failed", code=error.code, message=f"refused with {error.code} instead of {step.refused}: {error}"
            )
        seen = await _witnessed(step.stored, {}, bindings, witness, where)
        if seen.get("witnessed") is False:
            message = "refused as it should be, but what is stored isn't as expected"
            return cell("failed", code=error.code, message=message)
        return cell("passed", code=error.code, yields={"refused": error.code}, **{"message": str(error), **seen})
    if step.may_refuse == error.code:
        seen = await _witnessed(step.untouched, {}, bindings, witness, where)
        if seen.get("witnessed") is False:
            return cell("failed", code=error.code, message="refused, but something was stored all the same", **seen)
        return cell("refused", code=error.code, **{**seen, "message": _lost(error)})
    status = "refused" if error.code in {"unsupported", "undeclared", "guarded", "permission_denied"} else "failed"
    return cell(status, code=error.code, message=str(error))


def _weighed(cell: Cell) -> Cell:
    """The cell with what its claims and constraints make of it."""
    if cell.status == "refused":
        # Refused honestly, there is nothing of which a claim could be true. One that was seen to be true is a lie of
        # the refusal.
        done = tuple(one for one in cell.claims if one.verdict == "yes")
        if done:
            said = f"refused, but seen to be so all the same: {'; '.join(one.that for one in done)}"
            return replace(cell, status="failed", message=said)
        cell = replace(cell, claims=())
    against = [f"{one.that}: {one.verdict} ({one.ground})" for one in cell.claims if one.verdict == "no"]
    against += [
        f"{one.that}: {one.detail}"
        for one in cell.constraints
        if one.state == "violated" and one.severity == "blocking"
    ]
    if not against:
        return cell
    said = [cell.message] if cell.message and cell.status != "passed" else []
    return replace(cell, status="failed", message="; ".join([*said, *against]))


def _lost(error: ConnectionFailed) -> str:
    lost = error.details.get("lost")
    names = ", ".join(map(str, cast("list[Any]", lost))) if isinstance(lost, list) else ""
    return f"{error.message}; it would lose: {names}" if names else error.message


async def _witnessed(
    expected: str | None, result: Mapping[str, Any], bindings: Mapping[str, Any], witness: object | None, where: str
) -> dict[str, Any]:
    """Whether what is stored is as expected, as `witnessed`; why it isn't known, as `message`, where a look failed."""
    if expected is None or not isinstance(witness, Witness):
        return {}
    try:
        stored = await witness.stored()
    except HotplugError as error:
        return {"message": f"what is stored is not known: {error}"}
    return {"witnessed": Expression(expected, where=where).apply(dict(result), {**bindings, "stored": stored}) is True}


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
