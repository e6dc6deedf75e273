"""A server that declares a whole calendar and lists one tool of it; the wire alone, so that it may lie."""

import json
import sys

CARDS = {"profiles": [{"profile": "calendar", "version": "1.0.0", "facets": {}}]}
ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "experimental": {"org.classprofiles/profiles": CARDS}},
        "serverInfo": {"name": "liar", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "calendar.calendars", "inputSchema": {"type": "object"}}]},
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] in ANSWERS:
        answer["result"] = ANSWERS[request["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
