"""A shelf in memory."""

from shelf import Lent, OnShelf, Shelf, Thing, Things

from hotplug.errors import NotFound, Unavailable
from hotplug.serve import run


class MemoryShelf(Shelf):
    emits = frozenset({"shelf.thing.lent"})

    def __init__(self) -> None:
        self.kept = {name: OnShelf(thing=Thing(name), name=name.title()) for name in ("ladder", "drill")}

    async def things(self) -> Things:
        return Things(things=list(self.kept.values()))

    async def lend(self, thing: Thing, to: str) -> Lent:
        found = self.kept.get(thing)
        if found is None:
            raise NotFound(f"there is no {thing!r} on the shelf")
        if found.lent_to is not None:
            raise Unavailable(f"{found.lent_to} has the {thing}", hint="ask for it, or take another thing")
        self.kept[thing] = found.model_copy(update={"lent_to": to})
        await self.emit(Shelf.ThingLent(thing=thing, to=to))
        return Lent()


if __name__ == "__main__":
    run(MemoryShelf(), name="shelf")
