"""Speaks the shop (argument 2: with or without connection@1), writes each call to a file, and drops as it is told to.

`drops_typed.py BOOK keeps|forgets DROPS`: the first DROPS calls of any part are done, and then the process dies.
"""

import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3] / "src"), str(Path(__file__).parents[2] / "serve")]

from shop import Shop  # noqa: E402
from wire import Refusal, handshake, serve  # noqa: E402

from hotplug.catalog.connection import Connection  # noqa: E402
from hotplug.declare import Card, Declaration  # noqa: E402
from hotplug.profile.compare import restrict  # noqa: E402
from hotplug.profile.schema import error_or  # noqa: E402

book, keeps, drops = Path(sys.argv[1]), sys.argv[2] == "keeps", int(sys.argv[3])
definitions = [Shop.definition, *([Connection.definition] if keeps else [])]
parts = {
    name: (definition, part)
    for definition in definitions
    for name, part in definition.parts.items()
    if part.kind != "event" and part.core
}
DONE = {"receipt": {"actionId": "a", "dispatched": True, "at": "2026-01-01T00:00:00Z"}}


def answer(method: str, params: dict) -> object:
    match method:
        case "initialize":
            extensions = Declaration.of(
                cards=[
                    Card(profile=one.name, version=one.version, digest=one.digest, facets={}, via="native")
                    for one in definitions
                ]
            ).to_extensions()
            return handshake(capabilities={"tools": {}, "experimental": extensions})
        case "tools/list":
            return {
                "tools": [
                    {
                        "name": name,
                        "inputSchema": restrict(part.input.schema, ()),
                        "outputSchema": error_or(restrict(part.output.schema, ())),
                        "_meta": {"org.classprofiles/member": definition.member(name)},
                    }
                    for name, (definition, part) in parts.items()
                ]
            }
        case "tools/call":
            key = (params.get("_meta") or {}).get("tools.noetic/idempotency-key")
            with book.open("a") as file:
                file.write(json.dumps([params["name"], key]) + "\n")
            if len(book.read_text().splitlines()) <= drops:
                os._exit(7)
            if params["name"] == "shop.set":
                raise Refusal(-32602, "invalid parameter")
            body = {"items": []} if params["name"] == "shop.items" else {"item": "i", "total": 1, **DONE}
            # As some hosts pass answers on: the text only.
            return {"content": [{"type": "text", "text": json.dumps(body)}]}
        case _:
            raise Refusal(-32601)


serve(answer)
