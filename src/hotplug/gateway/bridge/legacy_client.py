"""A legacy link on top of a modern one: for a legacy client in front of an upstream that speaks only 2026-07-28."""

from __future__ import annotations

from hotplug.gateway.link import Link
from hotplug.gateway.message import Object

__all__ = ["bridged"]


def bridged(link: Link, initialize: Object, *, log_level: str = "info", rounds: int = 32) -> Link:
    """A legacy link for one client session; closing it leaves the link below open.

    What the client said in its handshake goes with each request as the modern envelope. An upstream's `input_required`
    becomes requests of the server's to the client within the call, and the client's answers the retry. `ping`,
    `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe` are answered here; notices of changes come
    from one `subscriptions/listen` of the session's own, which is there while somebody waits for them.

    Args:
        link: The modern link below, also a shared one.
        initialize: The params of the client's `initialize`.
        log_level: What is logged for the client until it sets a level itself.
        rounds: How often the upstream may ask for input in one call.
    """
    raise NotImplementedError
