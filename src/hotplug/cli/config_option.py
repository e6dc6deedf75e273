"""`--config FILE`: which hotplug.toml is meant, the same in every command of the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotplug.cli.output import Output

if TYPE_CHECKING:
    from hotplug.gateway.config import GatewayConfig

__all__ = ["ConfigOption", "configuration"]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Your hotplug.toml. [default: what HOTPLUG_CONFIG names, else the one in the user's folder of "
        "configuration]",
        metavar="FILE",
        show_default=False,
    ),
]


def configuration(out: Output, path: Path | None, *, warn: bool = True) -> GatewayConfig:
    """What the owner's file and the trusted files of projects here say; told with `-v`, and what is odd always.

    Raises:
        ConfigError: The file can't be used at all.
    """
    from hotplug.gateway.trust import load_config

    config = load_config(path, start=Path.cwd())
    out.used(f"configuration: {config.path or 'none'}")
    for one in config.narrowing:
        out.used(f"narrowed by {one.path}")
    if warn:
        for notice in config.warnings:
            out.note(f"warning: {notice}")
    return config
