"""Access settings and explanations as a person reads them, and the settings as a document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hotplug.cli.printing import block

if TYPE_CHECKING:
    from hotplug.access import Explanation, Finding, Profile, Settings, Withheld
    from hotplug.access.profiles import Everything
    from hotplug.store.settings import Looked

__all__ = ["explanation_text", "findings_text", "profile_document", "settings_document", "settings_text"]

_SHOWN = 12


def profile_document(profile: Profile) -> dict[str, Any]:
    """A profile as the settings hold it, lists sorted."""
    found: dict[str, Any] = {"servers": _names(profile.servers), "groups": _names(profile.groups)}
    if profile.tools:
        found["tools"] = {
            server: {"allow": _names(rule.allow), "deny": _names(rule.deny)} for server, rule in profile.tools.items()
        }
    return found


def settings_document(file: str, looked: Looked) -> dict[str, Any]:
    """The settings for programs: what is used, not what is written; that is in the file."""
    settings = looked.settings
    found: dict[str, Any] = {"file": file, "version": looked.version}
    if looked.problem is not None:
        found |= {"problem": looked.problem, "fix": looked.fix}
    return found | {
        "readable": not settings.refuses_all,
        "mcpProfile": settings.default or "all",
        "mcpSubagentProfile": settings.subagent_default or "inherit",
        "mcpProfiles": {name: profile_document(one) for name, one in settings.profiles.items()},
        "mcpThreadProfiles": dict(settings.picks),
        "projects": {
            name: {"mcpProfile": one.default, "mcpSubagentProfile": one.subagent_default}
            for name, one in settings.projects.items()
            if one.marker is None and (one.default or one.subagent_default)
        },
        "markers": [marker.document() for marker in settings.markers],
    }


def settings_text(file: str, looked: Looked) -> str:
    """The settings for people."""
    settings = looked.settings
    if settings.refuses_all:
        return f"{file} can't be read: every thread is refused"
    where = f"{file} (version {looked.version})" if looked.version != "none" else f"{file} (not there: nothing is set)"
    return block([where, "", *_defaults(settings), *_profiles(settings), *_picks(settings), *_markers(settings)])


def _defaults(settings: Settings) -> Iterator[str]:
    yield f"mcpProfile          {settings.default or 'all'}{'' if settings.default else '  (not set)'}"
    subagents = settings.subagent_default
    yield f"mcpSubagentProfile  {subagents or 'inherit'}{'' if subagents else '  (not set)'}"
    for name, one in settings.projects.items():
        for key, value in (("mcpProfile", one.default), ("mcpSubagentProfile", one.subagent_default)):
            if value:
                yield f"  in project {name}, {key} is {value}"


def _profiles(settings: Settings) -> Iterator[str]:
    if settings.profiles:
        yield ""
        yield "profiles"
    for name, one in settings.profiles.items():
        yield f"  {name}: servers {_said(one.servers)}; groups {_said(one.groups)}"
        for server, rule in one.tools.items():
            allow, deny = _names(rule.allow), _names(rule.deny)
            said = [] if allow == "all" else [f"only {_said(rule.allow)}"]
            said += [f"not {_said(rule.deny)}"] if deny else []
            yield f"    of {server} {', '.join(said) or 'all'}"


def _picks(settings: Settings) -> Iterator[str]:
    if settings.picks:
        yield ""
        yield "picks"
    width = max((len(thread) for thread in settings.picks), default=0)
    for thread, pick in settings.picks.items():
        yield f"  {thread:<{width}}  {pick}"


def _markers(settings: Settings) -> Iterator[str]:
    if settings.markers:
        yield ""
        yield "can't be used; whoever would use it is refused"
    for marker in settings.markers:
        yield f"  ✗ {marker.problem}: {marker.fix}"


def explanation_text(explanation: Explanation, *, lineage: bool, host: bool) -> str:
    """Why a thread gets what it gets, step by step.

    Args:
        lineage: Whether somebody said where threads come from.
        host: Whether somebody said what there is to be had.
    """
    from hotplug.access import Refused

    answer = explanation.answer
    lines = [f"thread {explanation.thread}", ""]
    steps = [step for step in explanation.steps if step.kind != "refused"]
    for number, step in enumerate(steps, 1):
        about = "" if step.thread == explanation.thread else f"{step.thread}: "
        lines.append(f"  {number}. {about}{step.text}")
    if not lineage and steps:
        lines.append("     (taken as a thread of its own: --lineage says where threads come from)")
    lines.append("")
    if isinstance(answer, Refused):
        lines += [f"refused: {answer.reason}", f"fix: {answer.fix}"]
    elif host:
        lines += _given(explanation)
    else:
        for layer in answer.layers:
            one = layer.profile
            lines.append(f"{layer.profile.name} gives: servers {_said(one.servers)}; groups {_said(one.groups)}")
        lines.append("which tools that is: --host says what there is")
    if explanation.asked is not None and explanation.decision is not None:
        tool = "/".join(explanation.asked)
        mark = "✓ is given" if explanation.decision.allowed else "✗ is not given"
        lines += ["", f"{tool} {mark}: {explanation.decision.reason}"]
    return block(lines)


def _given(explanation: Explanation) -> Iterator[str]:
    from hotplug.access import Access

    answer = explanation.answer
    assert isinstance(answer, Access)
    yield f"servers  {_listed(answer.servers)}"
    yield f"groups   {_listed(answer.groups)}"
    tools: dict[str, list[str]] = {}
    for server, tool in answer.tools:
        tools.setdefault(server, []).append(tool)
    yield "tools" if tools else "tools    none"
    for server, names in tools.items():
        yield f"  {server}: {_some(names)}"
    if explanation.withheld:
        yield "withheld"
    for one in explanation.withheld:
        yield f"  {one.server}: {_kept(one)}: {one.decision.reason}"
    if answer.unknown_servers:
        yield f"not set up, so nothing is given of them: {_listed(answer.unknown_servers)}"
    if answer.unknown_groups:
        yield f"no groups of this host, so nothing is kept of them: {_listed(answer.unknown_groups)}"


def _kept(withheld: Withheld) -> str:
    return "all of it" if withheld.whole else _some(withheld.tools)


def findings_text(findings: Collection[Finding], file: str) -> str:
    """What a check found."""
    if not findings:
        return f"✓ nothing is wrong with {file}"
    return block(line for one in findings for line in (f"✗ {_found(one)}", f"  fix: {one.fix}"))


def _found(one: Finding) -> str:
    return one.message if one.message.startswith(one.setting) else f"{one.setting}: {one.message}"


def _names(names: frozenset[str] | Everything) -> str | list[str]:
    return sorted(names) if isinstance(names, frozenset) else "all"


def _said(names: frozenset[str] | Everything) -> str:
    found = _names(names)
    return found if isinstance(found, str) else _listed(found)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _some(names: Collection[str]) -> str:
    shown = list(names)[:_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")
