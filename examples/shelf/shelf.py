"""A profile of one's own: things that are lent out."""

from hotplug.profile import Event, Model, Profile, Receipt, Ref, event, operation, read, receipt


class Thing(Ref, kind="shelf.thing"):
    """A thing that can be lent."""


class OnShelf(Model):
    thing: Thing
    name: str
    lent_to: str | None = None


class Things(Model):
    things: list[OnShelf]


class Lent(Model):
    receipt: Receipt = receipt()


class Shelf(Profile, name="shelf", version="0.1.0"):
    """Things that are lent out and come back.

    The core is seeing what there is and lending it. A shelf that can't say what stands on it is none.
    """

    @read("shelf.things", sense="state", eager=True)
    async def things(self) -> Things:
        """List everything, and who has what."""
        ...

    @operation(eager=True, effects=True, once=True)
    async def lend(self, thing: Thing, to: str) -> Lent:
        """Lend a thing. One that is out already is `unavailable`."""
        ...

    @operation(effects=True, once=True, required=False, without="What comes back has to be put back by hand.")
    async def take_back(self, thing: Thing) -> Lent:
        """Take a thing back."""
        ...

    @event("shelf.thing.lent", sense="state", replay="durable", required=False, without="Nobody is told of a loan.")
    class ThingLent(Event):
        """A thing was lent."""

        thing: Thing
        to: str
