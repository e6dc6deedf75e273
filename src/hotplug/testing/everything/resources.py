"""Resources: text, bytes, a template, and one to subscribe to."""

from __future__ import annotations

import json
import re
from typing import Final

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from hotplug.testing.everything.samples import PNG

__all__ = ["RESOURCES", "TEMPLATES", "read"]

RESOURCES: Final = (
    Resource(uri="test://static-text", name="static-text", description="A fixed text.", mime_type="text/plain"),
    Resource(uri="test://static-binary", name="static-binary", description="A picture.", mime_type="image/png"),
    Resource(uri="test://watched-resource", name="watched", description="To subscribe to.", mime_type="text/plain"),
)

TEMPLATES: Final = (
    ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="A document for every id.",
        mime_type="application/json",
    ),
)

_TEXTS: Final = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Watched resource content",
}
_OF_TEMPLATE: Final = re.compile(r"test://template/([^/]+)/data")


def read(uri: str) -> ReadResourceResult:
    """The contents of a resource.

    Raises:
        MCPError: Invalid params: there is none of that URI (SEP-2164).
    """
    if uri in _TEXTS:
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="text/plain", text=_TEXTS[uri])])
    if uri == "test://static-binary":
        return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)])
    if found := _OF_TEMPLATE.fullmatch(uri):
        document = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        content = TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(document))
        return ReadResourceResult(contents=[content])
    raise MCPError(code=INVALID_PARAMS, message=f"there is no resource {uri!r}", data={"uri": uri})
