"""A fake server on standard streams that does what no SDK would: each tool is one oddity."""

import json
import os
import sys
import time

out = sys.stdout.buffer
seen = []
asking = {}


def put(text):
    out.write(text.encode() if isinstance(text, str) else text)
    out.write(b"\n")
    out.flush()


def answer(id_, result):
    put(f'{{"jsonrpc":"2.0","id":{json.dumps(id_)},"result":{result}}}')


def call(line, message):
    id_, params = message["id"], message["params"]
    name, arguments = params["name"], params.get("arguments") or {}
    token = (params.get("_meta") or {}).get("progressToken")
    if name == "line":
        answer(id_, json.dumps({"line": line.decode()}))
    elif name == "odd":
        put(arguments["text"].replace("ID", json.dumps(id_)).replace("TOKEN", json.dumps(token)))
    elif name == "seen":
        answer(id_, json.dumps({"seen": seen}))
    elif name == "crash":
        sys.stderr.write("the disk is full\n")
        sys.stderr.flush()
        os._exit(7)
    elif name == "flood":
        pad = "x" * arguments["size"]
        for step in range(arguments["count"]):
            note = {"progressToken": token, "progress": step, "message": pad}
            put(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": note}))
        answer(id_, '{"flooded":true}')
    elif name == "noise":
        for _ in range(arguments["count"]):
            put("Listening on port 3000")
        answer(id_, "{}")
    elif name == "ask":
        put(json.dumps({"jsonrpc": "2.0", "id": arguments["id"], "method": arguments["method"], "params": {}}))
        asking[arguments["id"]] = id_
    elif name == "tell":
        put(json.dumps({"jsonrpc": "2.0", "method": arguments["method"], "params": {"n": 1}}))
        answer(id_, "{}")
    elif name == "deaf":
        put(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token}}))
        time.sleep(3600)
    elif name == "shut":
        os.close(0)
        time.sleep(3600)
    elif name == "silent":
        pass
    elif name == "task":
        answer(id_, '{"task":{"taskId":"t1"}}')
        put(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token}}))


def main():
    sys.stderr.write("odd is up\n")
    sys.stderr.flush()
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            put("Welcome!")
            if "die" in sys.argv:
                sys.stderr.write("Error: CALENDAR_TOKEN isn't set (it was s3cr3t-value)\n")
                sys.exit(3)
            if "hang" in sys.argv:
                continue
            answer(
                message["id"],
                json.dumps(
                    {
                        "protocolVersion": message["params"]["protocolVersion"],
                        "capabilities": {},
                        "serverInfo": {"name": "odd", "version": "1"},
                        "got": message["params"],
                    }
                ),
            )
        elif method == "server/discover":
            if "legacy" in sys.argv:
                error = {"code": -32601, "message": "nope"}
                put(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
            else:
                answer(message["id"], '{"supportedVersions":["2026-07-28"],"capabilities":{},"resultType":"complete"}')
        elif method == "tools/call":
            call(line, message)
        elif method == "subscriptions/listen":
            meta = {"io.modelcontextprotocol/subscriptionId": message["id"], "kept": 1}
            for name in ("subscriptions/acknowledged", "tools/list_changed"):
                put(json.dumps({"jsonrpc": "2.0", "method": "notifications/" + name, "params": {"_meta": meta}}))
            if (message.get("params") or {}).get("end"):
                answer(message["id"], json.dumps({"_meta": meta}))
        elif method is None and message.get("id") in asking:
            answer(asking.pop(message["id"]), json.dumps({"said": message.get("result", message.get("error"))}))
        elif "id" not in message:
            seen.append(message)


main()
