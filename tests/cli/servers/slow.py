"""A server whose one tool never answers and hears nothing meanwhile; the file `SLOW_PID` says which process it is."""

import json
import os
import sys
import time
from pathlib import Path

ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "slow", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]},
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "tools/call":
        Path(os.environ["SLOW_PID"]).write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(600)
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] in ANSWERS:
        answer["result"] = ANSWERS[request["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
