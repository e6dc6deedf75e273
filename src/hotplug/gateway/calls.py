"""A call of a tool: a server's own, a profile's operation, or one of the gateway's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from hotplug.connect.masking import Masker
from hotplug.connect.secrets import Secrets
from hotplug.errors import ConnectionFailed, InvalidArgument, Unavailable
from hotplug.gateway.authorizing import Ask, Authorizing, can_be_asked, question_for
from hotplug.gateway.bridge.headers import mirrored
from hotplug.gateway.eras import CAPABILITIES_META
from hotplug.gateway.filling import Filling
from hotplug.gateway.instances import Allowed, Chosen, NotGiven
from hotplug.gateway.link import Answer
from hotplug.gateway.message import INVALID_PARAMS, Message, Raw, dumps, loads
from hotplug.gateway.noting import Noting
from hotplug.gateway.passing import masked
from hotplug.gateway.routes import Refusal, Route, link_of, unknown_tool
from hotplug.gateway.search import call_arguments, search_arguments, search_result
from hotplug.gateway.states import StateSeal
from hotplug.gateway.toolset import OURS
from hotplug.gateway.view import Caller, Known, View
from hotplug.serve import AUTHORIZED_META, INSTANCE_META, KEY_META, result_of
from hotplug.serve import Answer as Failure

__all__ = ["DECLINED", "Calls"]

DECLINED: Final = "nobody said yes to this call"
_NOBODY: Final = "this client can't ask a person whether to do it (it declares no elicitation)"


@dataclass(frozen=True, slots=True)
class _Yes:
    """A person's, to one call.

    Args:
        what: The call; see `Authorizing.what`.
        goes_on: Its server asked for more since, and this brings the answer.
    """

    what: str
    goes_on: bool = False


class Calls:
    """Finds out what a call means, and whether the caller may make it.

    Args:
        seal: Derives the keys that servers get of those that callers give.
        secrets: That callers may name in sensitive fields, where these list it.
    """

    def __init__(self, view: View, seal: StateSeal, secrets: Secrets) -> None:
        self.view = view
        self._filling = Filling(secrets)
        self.authorizing = Authorizing(seal)
        self._seal = seal

    async def route(
        self,
        caller: Caller,
        message: Message,
        noting: Noting,
        *,
        searched: bool = False,
        authorized: str | None = None,
    ) -> Route | Answer | Ask:
        """A tool: a server's own, a profile's operation, or one of ours; or whom to ask first.

        Args:
            searched: It is called through `hotplug.call`.
            authorized: The call that a person said yes to, of those that `Ask` names.
        """
        exposed = message.text("name")
        if exposed is None:
            raise Refusal(INVALID_PARAMS, "params.name must be a string")
        meant = self.view.book.meant("tools", exposed)
        if meant is None:
            # Perhaps of a server that nobody has asked yet.
            await self.view.all_known(caller)
            meant = self.view.book.meant("tools", exposed)
        if meant is None:
            raise unknown_tool(exposed)
        server, own = meant
        if server:
            return await self._raw_call(caller, message, exposed, server, own, noting, searched=searched)
        if own in OURS:
            return await self._our_call(caller, message, exposed, own, noting, searched=searched)
        return await self._part_call(caller, message, exposed, own, noting, authorized=authorized)

    async def _raw_call(
        self, caller: Caller, message: Message, exposed: str, server: str, own: str, noting: Noting, *, searched: bool
    ) -> Route:
        if not self._gives(caller, server, own):
            # Before anything can go wrong with the server: that would tell that there is such a tool.
            raise unknown_tool(exposed)
        known = await self.view.known(server, caller)
        if not self.view.may_call(known, caller, own):
            listing = known.catalog.tools
            if listing.problem is not None and own not in listing.by_name and self._gives(caller, server, own):
                raise Unavailable(f"{server} can't tell now which tools it has")
            raise unknown_tool(exposed)
        noting.member = own
        noting.input_schema = known.catalog.tools.by_name[own].raw.get("inputSchema")
        headers = self._param_headers(caller, known, own, message, searched=searched)
        moved = message if own == exposed else message.with_param("name", own)
        if KEY_META in moved.meta:
            # One principal to its servers: the keys of two threads must not meet there.
            moved = moved.with_meta({KEY_META: self._derived(caller, moved.meta[KEY_META])})
        return Route(known, link_of(known), moved, f"tools/call {own}", headers=headers)

    def _gives(self, caller: Caller, server: str, tool: str) -> bool:
        return self.view.grants.gives(caller.thread, server, tool)

    def _derived(self, caller: Caller, key: Raw) -> str:
        return self._seal.derived(caller.thread, bytes(key))

    async def _part_call(
        self, caller: Caller, message: Message, exposed: str, part: str, noting: Noting, *, authorized: str | None
    ) -> Route | Answer | Ask:
        instances = self.view.upstreams.instances
        meta = {key: loads(value) for key, value in message.meta.items()}
        arguments = message.params.get("arguments", Raw(b"{}"))
        if part.startswith("connection.") and not caller.aware:
            raise unknown_tool(exposed)
        for last in (False, True):
            allowed = self.view.allowed(caller)
            mask: Masker | None = None
            said_yes = False
            try:
                chosen = self._chosen(part, arguments, meta, caller, allowed)
                noting.member = chosen.offer.member if chosen is not None else part
                if chosen is not None:
                    noting.server = chosen.speaker.server
                    yes: _Yes | None = None
                    if chosen.offer.guarded:
                        asked = self._authorized(caller, message, chosen, authorized)
                        if not isinstance(asked, _Yes):
                            return asked
                        yes = asked
                    try:
                        filled, mask = await self._filling.filled(chosen.offer, chosen.arguments, thread=caller.thread)
                    except ConnectionFailed as error:
                        return self._failed(caller, message, error)
                    chosen = replace(chosen, arguments=filled)
                    if chosen.offer.route is not None and not part.startswith("connection."):
                        return await self._passed(caller, message, chosen, meta, mask, yes)
                    if mask is not None or yes is not None:
                        # Whatever changes meanwhile, it is this server or none.
                        arguments, meta = chosen.arguments, {**meta, INSTANCE_META: chosen.named}
                    said_yes = yes is not None
                result = await instances.call(
                    part, arguments, meta, thread=caller.thread, allowed=allowed, authorized=said_yes
                )
                if mask is not None:
                    result = cast("dict[str, Any]", masked(result, mask))
            except NotGiven:
                if last:
                    raise unknown_tool(exposed) from None
                # Perhaps at a server that nobody has asked yet.
                await self.view.all_known(caller)
            else:
                return self._told(caller, message, result)
        raise unknown_tool(exposed)

    def _authorized(
        self, caller: Caller, message: Message, chosen: Chosen, authorized: str | None
    ) -> Answer | Ask | _Yes:
        """That a person said yes to a guarded call, or what asks for it."""
        what = self.authorizing.what(chosen)
        if authorized == what:
            return _Yes(what)
        ask = question_for(chosen, what)
        if caller.session is not None:
            capabilities = caller.session.initialize.get("capabilities")
            able = can_be_asked(loads(capabilities) if capabilities is not None else None)
            return ask if able else self._failed(caller, message, ask.refused(_NOBODY))
        if self.authorizing.goes_on(message, what, thread=caller.thread, server=chosen.speaker.server):
            return _Yes(what, goes_on=True)
        said = self.authorizing.answered(message, what, thread=caller.thread)
        if said is not None:
            return _Yes(what) if said else self._failed(caller, message, ask.refused(DECLINED))
        capabilities = message.meta.get(CAPABILITIES_META)
        if not can_be_asked(loads(capabilities) if capabilities is not None else None):
            return self._failed(caller, message, ask.refused(_NOBODY))
        return self._told(caller, message, self.authorizing.input_required(ask, thread=caller.thread))

    def refused(self, caller: Caller, message: Message, ask: Ask) -> Message:
        """What a call is answered with to which nobody said yes."""
        answer = self._failed(caller, message, ask.refused(DECLINED)).message
        assert answer is not None
        return answer

    def _failed(self, caller: Caller, message: Message, error: ConnectionFailed) -> Answer:
        return self._told(caller, message, result_of(Failure(error.as_wire(), is_error=True)))

    def _chosen(
        self, part: str, arguments: Raw, meta: Mapping[str, Any], caller: Caller, allowed: Allowed
    ) -> Chosen | None:
        """Which server is meant; None where that is for the call itself to say, as a result."""
        try:
            return self.view.upstreams.instances.choose(part, arguments, meta, thread=caller.thread, allowed=allowed)
        except ConnectionFailed:
            return None

    async def _passed(
        self,
        caller: Caller,
        message: Message,
        chosen: Chosen,
        meta: Mapping[str, Any],
        mask: Masker | None,
        yes: _Yes | None,
    ) -> Route | Answer:
        """A call that a server answers that speaks the profile itself: its progress and questions pass too."""
        speaker = chosen.speaker
        known = await self.view.known(speaker.server, caller)
        try:
            sent = await speaker.outgoing(
                chosen.offer.part,
                chosen.arguments,
                meta,
                thread=caller.thread,
                authorized=yes is not None,
                instance=chosen.instance,
            )
        except ConnectionFailed as error:
            body = error.as_wire()
            failure = Failure(body if mask is None else masked(body, mask), is_error=True)
            return self._told(caller, message, result_of(failure))
        ours = cast("dict[str, Any]", sent.params.get("_meta") or {})
        moved = message.with_params({"name": sent.params["name"], "arguments": sent.params["arguments"]})
        moved = moved.with_meta({key: ours.get(key) for key in (*ours, KEY_META, INSTANCE_META, AUTHORIZED_META)})

        def back(result: Message) -> Message:
            if result.kind != "result":
                if mask is None or "error" not in result.fields:
                    return result
                return Message({**result.fields, "error": Raw(dumps(masked(loads(result.fields["error"]), mask)))})
            told = speaker.incoming(sent, loads(result.fields["result"]), thread=caller.thread)
            return result.with_result(told if mask is None else masked(told, mask))

        what = f"tools/call {sent.params['name']}"
        if yes is not None:
            # A server that asks for more is retried: that retry is of the call that was said yes to, and of no other.
            what = yes.what
            if not yes.goes_on:
                moved = moved.with_params({"requestState": None, "inputResponses": None})
        return Route(known, link_of(known), moved, what, back, guarded=yes is not None)

    def _told(self, caller: Caller, message: Message, result: Mapping[str, Any]) -> Answer:
        """A result of ours."""
        told = {"resultType": "complete", **result} if caller.era == "modern" else result
        return Answer(message=Message.result_of(message.id or b"null", told))

    async def _our_call(
        self, caller: Caller, message: Message, exposed: str, own: str, noting: Noting, *, searched: bool
    ) -> Route | Answer | Ask:
        known = await self.view.all_known(caller)
        tools = self.view.toolset(known, caller)
        if searched or not tools.searching:
            raise unknown_tool(exposed)
        noting.member = own
        try:
            if own == OURS[0]:
                query, limit = search_arguments(message.params.get("arguments"))
                result = search_result(tools.index.search(query, limit), len(tools.index))
                return self._told(caller, message, result)
            name, arguments = call_arguments(message.params.get("arguments"))
        except InvalidArgument as error:
            return self._failed(caller, message, error)
        if not tools.found_by_search(name):
            raise unknown_tool(name)
        inner = message.with_params({"name": name, "arguments": arguments})
        return await self.route(caller, inner, noting, searched=True)

    def _param_headers(
        self, caller: Caller, known: Known, tool: str, message: Message, *, searched: bool
    ) -> Mapping[str, str] | None:
        """The headers that repeat arguments, for a server over HTTP; None where the caller sent them, and rightly."""
        schema = known.catalog.tools.by_name[tool].raw.get("inputSchema")
        if caller.era != "modern" or schema is None or b"x-mcp-header" not in bytes(schema):
            return None
        if searched or caller.headers is None:
            # The headers of `hotplug.call` repeat nothing of the call inside it, and standard streams have none.
            return mirrored(loads(schema), message.value("arguments"))
        # Rare, so the SDK's own check may take its second to import.
        from mcp.shared.inbound import validate_mcp_param_headers

        arguments = message.value("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            return None
        given = cast("dict[str, Any]", arguments or {})
        rejected = validate_mcp_param_headers(loads(schema), given, caller.headers)
        if rejected is not None:
            raise Refusal(rejected.code, rejected.message, rejected.data)
        return None
