from __future__ import annotations

import pytest

from hotplug.connect.packages import PackageId, package_of
from hotplug.connect.target import parse_target


@pytest.mark.parametrize(
    ("value", "package"),
    [
        ("npx -y caldav-mcp@0.10.0", PackageId("npm", "caldav-mcp", "0.10.0")),
        ("npx --yes caldav-mcp --port 1", PackageId("npm", "caldav-mcp")),
        ("npx -p @scope/tool@1.2.3 start", PackageId("npm", "@scope/tool", "1.2.3")),
        ("npx --package=a --package=b run", PackageId("npm", "a")),
        ("npx -y caldav-mcp@latest", PackageId("npm", "caldav-mcp")),
        ("npx -y caldav-mcp@^1.0.0", PackageId("npm", "caldav-mcp")),
        ("npm exec -y -- caldav-mcp@1.0.0", PackageId("npm", "caldav-mcp", "1.0.0")),
        (["C:\\node\\npx.cmd", "-y", "x"], PackageId("npm", "x")),
        (["cmd", "/c", "npx", "-y", "x"], PackageId("npm", "x")),
        ("pnpm dlx x@2.0.0", PackageId("npm", "x", "2.0.0")),
        ("uvx mcp-server-time", PackageId("pypi", "mcp-server-time")),
        ("uvx MCP_Server.Time@2026.1.1", PackageId("pypi", "mcp-server-time", "2026.1.1")),
        ("uvx 'name[x,y]==1.2'", PackageId("pypi", "name", "1.2")),
        ("uvx --from 'calendar-mcp>=1,<2' serve-calendar", PackageId("pypi", "calendar-mcp")),
        ("uvx --with 'mcp<2' --python 3.12 --refresh calendar-mcp", PackageId("pypi", "calendar-mcp")),
        ("uv tool run --from=a==1 b", PackageId("pypi", "a", "1")),
        ("pipx run --spec a==1 b", PackageId("pypi", "a", "1")),
        ("env TZ=UTC uvx a@latest", PackageId("pypi", "a")),
        ("npm:caldav-mcp@0.10.0", PackageId("npm", "caldav-mcp", "0.10.0")),
        ("pypi:Thing[extra]==1.0", PackageId("pypi", "thing", "1.0")),
        ({"command": "uvx", "args": ["a"]}, PackageId("pypi", "a")),
        ("uvx --from git+https://h/r x", None),
        ("uvx --from ./here x", None),
        ("uvx 'a @ https://h/a.whl'", None),
        ("npx github:user/repo", None),
        ("npx ./local", None),
        ("npx -y", None),
        ("node caldav-mcp.js", None),
        ("docker run caldav-mcp", None),
        ("https://h/mcp", None),
        ("work", None),
    ],
)
def test_the_package_of_a_launch_command_is_read_and_never_guessed(value: object, package: PackageId | None) -> None:
    assert package_of(parse_target(value)) == package
