"""What every witness of ours is: something that looks, and whose senses a claim can name."""

from __future__ import annotations

from hotplug.connect.claims.conditions import Selector
from hotplug.evidence.witness import Witness

__all__ = ["Looking"]


class Looking(Witness):
    """A witness whose senses make conditions: `orders.state("orders 42 created").exactly(1)`.

    A condition made so is held against what this witness sees and nobody else.
    """

    def sense(self, name: str, summary: str | None = None) -> Selector:
        """What it sees by any sense of its."""
        return Selector(name, summary, witness=self.name)

    def net(self, summary: str | None = None) -> Selector:
        """Requests that it sees."""
        return self.sense("net", summary)

    def log(self, summary: str | None = None) -> Selector:
        """Messages that it sees."""
        return self.sense("log", summary)

    def state(self, summary: str | None = None) -> Selector:
        """Changes and facts that it sees."""
        return self.sense("state", summary)

    def signal(self, summary: str | None = None) -> Selector:
        """Announcements that it sees."""
        return self.sense("signal", summary)
