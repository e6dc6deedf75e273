"""Whether a URI fits a URI template, as far as a gateway has to know: for finding the server that can read it."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["matches"]

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")


def matches(template: str, uri: str) -> bool:
    """Whether a URI could have come from a template (RFC 6570); a template that can't be read fits nothing."""
    pattern = _pattern(template)
    return pattern is not None and pattern.fullmatch(uri) is not None


@lru_cache(maxsize=4096)
def _pattern(template: str) -> re.Pattern[str] | None:
    parts: list[str] = []
    at = 0
    for found in _EXPRESSION.finditer(template):
        literal = template[at : found.start()]
        if "{" in literal or "}" in literal:
            return None
        parts.append(re.escape(literal))
        operator, names = found[1], found[2].split(",")
        if operator in ("+", "#"):
            parts.append(".*")
        elif operator in ("?", "&"):
            parts.append(r"(?:[?&][^#]*)?")
        elif operator == "/" and any(name.endswith("*") for name in names):
            parts.append(r"(?:/[^?#]*)?")
        else:
            parts.append(r"[^/?#]*" if operator != "/" else r"(?:/[^/?#]*)?")
        at = found.end()
    rest = template[at:]
    if "{" in rest or "}" in rest:
        return None
    return re.compile("".join(parts) + re.escape(rest))
