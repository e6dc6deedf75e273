"""One MCP server in front of many: threads, what each may use, and the way of every message."""
