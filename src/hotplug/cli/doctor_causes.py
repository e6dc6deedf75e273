"""What is wrong with a server, as one of few causes, and what to do about each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hotplug.errors import AuthError, ConfigError, ConnectError, HotplugError, PermissionDenied, ProjectionError

if TYPE_CHECKING:
    from hotplug.cli.inspect_server import Looked, Spoke
    from hotplug.cli.targets import Given

__all__ = ["CAUSES", "Cause", "cause_of", "causes_of"]

CAUSES: Final = (
    "missing_command",
    "exits",
    "noise",
    "hangs",
    "revision",
    "tls",
    "auth",
    "wrong_url",
    "unreachable",
    "secret",
    "config",
    "projection",
    "profile",
    "drift",
    "tools",
    "other",
)


@dataclass(frozen=True)
class Cause:
    """One thing that is wrong.

    Args:
        code: One of `CAUSES`.
        message: What.
        fix: What to do.
    """

    code: str
    message: str
    fix: str

    def document(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "fix": self.fix}


_FIXES: Final = {
    "missing_command": "install it, or write its whole path",
    "noise": "a server on standard streams writes nothing but messages to its standard output: let it log to "
    "standard error, or start it in the way that its documentation has for clients",
    "revision": "a newer Hotplug may know it; or an older version of the server",
    "tls": "look at its certificate: is it for this name, and issued by somebody whom this machine trusts?",
    "wrong_url": "is the path right? it is often /mcp",
    "unreachable": "is it running, and is the address right?",
    "config": "mend the entry",
    "secret": "add the server to servers in the secret's table, or the table",
    "projection": "hotplug projection check says more",
    "other": "hotplug inspect -vv says more",
}


def cause_of(error: HotplugError, server: Given | None) -> Cause:
    """Why a server can't be reached or looked at.

    Args:
        server: None where its entry can't be read at all.
    """
    code = _code(error)
    return Cause(code, error.message, _fix(code, error, server))


def _code(error: HotplugError) -> str:
    from hotplug.connect.launch import MissingProgram

    match error:
        case AuthError():
            return "auth"
        case ConnectError():
            return error.cause or "other"
        case MissingProgram():
            return "missing_command"
        case ConfigError():
            return "secret" if error.message.startswith("secret ") else "config"
        case PermissionDenied():
            return "secret"
        case ProjectionError():
            return "projection"
        case _:
            return "other"


def _fix(code: str, error: HotplugError, server: Given | None) -> str:
    if error.hint:
        return error.hint
    launch: Any = getattr(server.target, "launch", server.target) if server else None
    match code:
        case "exits":
            return f"run it yourself to see why: {launch}" if launch is not None else "run it yourself to see why"
        case "secret" if isinstance(error, ConfigError):
            return "give it a value there, or name another place in its table"
        case "hangs" if getattr(error, "transport", None) == "http":
            return "is it an MCP server at this URL? one that is slow to start gets more with start_timeout"
        case "hangs":
            return (
                "is it a server on standard streams? many need an argument for that (--stdio, stdio); "
                "one that is slow to start gets more with start_timeout"
            )
        case "auth":
            from hotplug.gateway.oauth import is_login

            name = server.name if server and server.name else "NAME"
            held = {key.lower(): value for key, value in getattr(launch, "headers", {}).items()}
            if is_login(held.get("authorization")):
                return f"log in: hotplug server login {name}"
            if "authorization" in held:
                return "the credential in its headers isn't taken: renew it"
            return (
                'give it a credential: headers = { Authorization = "Bearer secret:NAME" }; '
                f"if it asks for OAuth: oauth = true, then hotplug server login {name}"
            )
        case _:
            return _FIXES.get(code, _FIXES["other"])


def causes_of(looked: Looked, server: Given) -> tuple[Cause, ...]:
    """What is wrong with a server that was reached: by what it declares, and by what its entry asks of it."""
    found = [_spoken_wrongly(spoke) for spoke in looked.profiles if spoke.reason]
    for wanted in server.profiles:
        cause = _missing_profile(wanted, looked)
        if cause is not None:
            found.append(cause)
    if looked.problem:
        found.append(Cause("tools", looked.problem, "the server's list of tools has to be mended"))
    elif looked.unusable:
        names = ", ".join(list(looked.unusable)[:5])
        found.append(
            Cause("tools", f"tools that can't be used: {names}", "the server's list of tools has to be mended")
        )
    return tuple(found)


def _spoken_wrongly(spoke: Spoke) -> Cause:
    applied = spoke.projection
    if applied is not None and applied.broken:
        fix = (
            f"hotplug projection diff shows what changed; use {applied.package} {applied.versions}, "
            "or a projection that was made for this version"
        )
        return Cause(
            "drift", f"{spoke.profile}: tools that {applied.id} uses have changed: {', '.join(applied.broken)}", fix
        )
    fix = "hotplug projection check says more" if applied else "the server has to declare what it offers, or offer it"
    return Cause("profile", f"{spoke.profile} can't be used: {spoke.reason}", fix)


def _missing_profile(wanted: str, looked: Looked) -> Cause | None:
    """Why a profile that an entry asks for isn't to be had; None where it is, or was told already."""
    from hotplug.cli.lookup import known_profiles
    from hotplug.cli.printing import did_you_mean
    from hotplug.errors import ProfileError
    from hotplug.profile.versions import Range

    name, _, versions = wanted.partition("@")
    if name not in known_profiles():
        fix = did_you_mean(name, known_profiles()) or "hotplug profile list says which there are"
        return Cause("profile", f"its entry asks for the profile {name}, which nobody knows here", fix)
    spoke = next((one for one in looked.profiles if one.profile == name), None)
    if spoke is None:
        others = ", ".join(one.profile for one in looked.profiles) or "none"
        return Cause(
            "profile",
            f"its entry asks for the profile {name}, and it doesn't speak it (it speaks {others})",
            "is it the right server? if so name a projection in its entry (hotplug projection new drafts one), "
            "or take profile away and use its own tools",
        )
    if spoke.reason or not versions:
        return None
    try:
        fits = Range(versions).satisfied_by(spoke.version)
    except ProfileError as error:
        return Cause("profile", error.message, error.hint or "mend the range")
    if fits:
        return None
    return Cause(
        "profile",
        f"its entry asks for {wanted}, and it speaks {name} {spoke.version}",
        "ask for a range that has it, or use another version of the server",
    )
