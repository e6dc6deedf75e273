"""Hotplug: a shared vocabulary for MCP servers."""
