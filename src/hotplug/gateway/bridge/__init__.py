"""Links of one protocol era on top of links of the other: for upstreams that speak only one of them."""

from hotplug.gateway.bridge.legacy_client import bridged as for_legacy_client
from hotplug.gateway.bridge.modern_client import bridged as for_modern_client

__all__ = ["for_legacy_client", "for_modern_client"]
