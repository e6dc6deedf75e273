"""The gateway against the direct call and against FastMCP's proxy: `make bench-gateway`."""
