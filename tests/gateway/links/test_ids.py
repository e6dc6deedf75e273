from __future__ import annotations

from hotplug.gateway.link import Outgoing
from hotplug.gateway.links.ids import Ids
from hotplug.gateway.message import Message


def outgoing(scope: str, *, token: object = None) -> Outgoing:
    meta = {"_meta": {"progressToken": token}} if token is not None else {}
    return Outgoing(Message.request(1, "tools/call", {"name": "x", **meta}), scope=scope)


def progress(token: object) -> Message:
    return Message.notification("notifications/progress", {"progressToken": token, "progress": 1})


def test_an_id_is_never_used_twice_and_a_token_is_sent_only_where_one_was_given() -> None:
    ids = Ids()
    one, first = ids.issue(outgoing("a", token=0))
    two, second = ids.issue(outgoing("b"))
    assert one.own != two.own
    assert bytes(first.meta["progressToken"]) == one.own
    assert second.meta == {}


def test_what_names_an_unknown_request_names_none() -> None:
    ids = Ids()
    ticket, _ = ids.issue(outgoing("a", token=5))
    assert ids.named_by(progress(5)) is None
    assert ids.named_by(Message.result_of(b"1", {})) is None
    assert ids.named_by(Message.notification("notifications/message", {"data": 1})) is None
    ids.forget(ticket)
    assert ids.named_by(Message.result_of(ticket.own, {})) is None


def test_a_scope_can_cancel_its_own_alone() -> None:
    ids = Ids()
    ticket, _ = ids.issue(outgoing("a"))
    cancelled = Message.notification("notifications/cancelled", {"requestId": 1})
    assert ids.upward(cancelled, "b") is None
    assert not ticket.cancelled
    going = ids.upward(cancelled, "a")
    assert going is not None
    assert bytes(going.params["requestId"]) == ticket.own
    assert ticket.cancelled


def test_an_id_that_its_scope_uses_again_is_still_cancelled_by_it() -> None:
    ids = Ids()
    first, _ = ids.issue(outgoing("a"))
    second, _ = ids.issue(outgoing("a"))
    ids.forget(first)
    going = ids.upward(Message.notification("notifications/cancelled", {"requestId": 1}), "a")
    assert going is not None
    assert bytes(going.params["requestId"]) == second.own


def test_parked_requests_are_found_until_too_many_are() -> None:
    ids = Ids()
    tickets = [ids.issue(outgoing("a", token=number))[0] for number in range(1200)]
    for ticket in tickets:
        ids.park(ticket)
    assert ids.find(tickets[0].own) is None
    assert ids.find(tickets[-1].own) is tickets[-1]
