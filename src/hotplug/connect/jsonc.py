"""JSON with comments and trailing commas, as editors write their settings."""

from __future__ import annotations

import json
import re
from typing import Final

from hotplug.errors import ConfigError

__all__ = ["parse_jsonc"]

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|//[^\r\n]*|/\*.*?\*/|,(?=(?:\s|//[^\r\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)


def parse_jsonc(text: str, *, where: str) -> object:
    """The value of a JSON text in which comments and commas before a closing bracket don't count. Pure.

    Args:
        where: What the text is, for messages.

    Raises:
        ConfigError: It isn't JSON; says line and column.
    """
    try:
        return json.loads(_TOKEN.sub(_plain, text.removeprefix("\ufeff")))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply") from None


def _plain(found: re.Match[str]) -> str:
    """A text as it is; a comment or comma as blanks, so that lines and columns stay."""
    token = found[0]
    return token if token.startswith('"') else re.sub(r"[^\r\n]", " ", token)
