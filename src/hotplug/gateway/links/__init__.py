"""Links to servers over a child's pipes and over HTTP, in both eras.

Import the module that is needed (`links.stdio`, `links.modern_http`, `links.legacy_http`): a gateway whose servers are
all children never loads an HTTP client.
"""
