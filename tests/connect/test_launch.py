from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hotplug.connect.launch import HttpLaunch, ObjectLaunch, StdioLaunch, base_environment, launch_of, package_argv
from hotplug.connect.secrets import ConfiguredSecrets
from hotplug.connect.target import CommandTarget, PackageTarget, parse_target
from hotplug.errors import ConfigError, PermissionDenied

pytestmark = pytest.mark.anyio


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path with npx on it and nothing else; no uvx beside the interpreter."""
    npx = tmp_path / "bin" / "npx"
    npx.parent.mkdir()
    npx.write_text("#!/bin/sh\n")
    npx.chmod(0o755)
    monkeypatch.setenv("PATH", str(npx.parent))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python" / "python"))
    return npx.parent


def test_the_base_is_short_and_has_what_npx_and_uvx_need() -> None:
    given = {
        "PATH": "/bin",
        "LC_TIME": "C",
        "UV_CACHE_DIR": "/c",
        "npm_config_cache": "/n",
        "AWS_KEY": "x",
        "HOME": "() {",
    }
    assert base_environment(given) == {"PATH": "/bin", "LC_TIME": "C", "UV_CACHE_DIR": "/c", "npm_config_cache": "/n"}


def test_a_package_is_run_through_npx_at_its_version(programs: Path) -> None:
    target = PackageTarget("npm", "caldav-mcp", "0.10.0", ("--x",))
    assert package_argv(target) == (str(programs / "npx"), "-y", "caldav-mcp@0.10.0", "--x")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (PackageTarget("pypi", "a"), ("a",)),
        (PackageTarget("pypi", "a", "1.0"), ("a==1.0",)),
        (PackageTarget("pypi", "a", "latest"), ("a@latest",)),
        (PackageTarget("pypi", "a[x]", "1.0", ("-v",)), ("--from", "a[x]==1.0", "a", "-v")),
    ],
)
def test_a_package_is_run_through_the_uvx_beside_the_interpreter(
    programs: Path, tmp_path: Path, target: PackageTarget, words: tuple[str, ...]
) -> None:
    beside = tmp_path / "python" / "uvx"
    beside.parent.mkdir()
    for uvx in (beside, programs / "uvx"):
        uvx.write_text("#!/bin/sh\n")
        uvx.chmod(0o755)
    assert package_argv(target) == (str(beside), *words)


async def test_a_missing_runner_says_how_to_get_it(programs: Path) -> None:
    with pytest.raises(ConfigError, match=r"'uvx'.*install uv"):
        await launch_of(parse_target("pypi:x"))
    (programs / "npx").unlink()
    with pytest.raises(ConfigError, match=r"'npx'.*Node\.js"):
        await launch_of(parse_target("npm:x"))


async def test_a_command_gets_its_own_variables_over_the_base(programs: Path) -> None:
    launch = await launch_of(parse_target("PATH=/nowhere TOKEN=abcdef " + str(programs / "npx") + " x"))
    assert isinstance(launch, StdioLaunch)
    assert launch.argv == (str(programs / "npx"), "x")
    assert launch.env["PATH"] == "/nowhere"
    assert "abcdef" not in repr(launch)
    assert launch.masker()("abcdef /nowhere") == "[secret] /nowhere"


async def test_a_credential_among_the_arguments_is_masked_in_what_the_child_says(programs: Path) -> None:
    launch = await launch_of(CommandTarget((str(programs / "npx"), "--header", "Authorization: Bearer hunter22")))
    assert isinstance(launch, StdioLaunch)
    assert "hunter22" not in repr(launch)
    assert launch.masker()("401 for hunter22") == "401 for [secret]"


@pytest.mark.parametrize("program", ["npx -y server --token hunter22", "./bin/server --token hunter22"])
async def test_a_whole_line_where_a_program_belongs_is_told_so_without_its_credential(program: str) -> None:
    with pytest.raises(ConfigError, match=r"--token \[secret\]") as raised:
        await launch_of(CommandTarget((program,)))
    assert "belong into args" in str(raised.value.hint)


async def test_a_credential_in_a_url_is_masked_alone_too() -> None:
    launch = await launch_of(parse_target("https://h/mcp?token=hunter22&page=2"))
    assert isinstance(launch, HttpLaunch)
    assert launch.masker()("404 for /mcp?token=hunter22&page=2") == "404 for /mcp?token=[secret]&page=2"


async def test_a_header_gets_its_secret_and_no_repr_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPLUG_SECRET_X", "hunter22")
    target = parse_target(
        {"mcpServers": {"w": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer secret:x"}}}}
    )
    launch = await launch_of(target, secrets=ConfiguredSecrets.of_table({"x": {"servers": ["w"]}}))
    assert isinstance(launch, HttpLaunch)
    assert launch.headers == {"Authorization": "Bearer hunter22"}
    assert "hunter22" not in repr(launch)
    assert launch.masker()("got Bearer hunter22") == "got [secret]"
    with pytest.raises(PermissionDenied):
        await launch_of(target)


async def test_an_entry_without_a_name_has_the_name_that_the_caller_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPLUG_SECRET_X", "hunter22")
    target = parse_target({"url": "https://h/mcp", "headers": {"Authorization": "secret:x"}})
    secrets = ConfiguredSecrets.of_table({"x": {"servers": ["w"]}})
    assert isinstance(await launch_of(target, secrets=secrets, name="w"), HttpLaunch)
    with pytest.raises(PermissionDenied):
        await launch_of(target, secrets=secrets)


async def test_a_python_file_is_run_as_a_child_and_its_object_taken_in_process(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text("thing = {'a': 1}\ndef make():\n    return [thing]\nasync def other(): ...\n")
    launch = await launch_of(parse_target(str(path)))
    assert isinstance(launch, StdioLaunch)
    assert launch.argv == (sys.executable, str(path))
    assert await launch_of(parse_target(f"{path}:thing")) == ObjectLaunch({"a": 1})
    assert await launch_of(parse_target(f"{path}:make")) == ObjectLaunch([{"a": 1}])


async def test_an_object_of_a_module_is_imported() -> None:
    assert await launch_of(parse_target("string:digits")) == ObjectLaunch("0123456789")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nowhere.py", "no file nowhere.py"),
        ("nowhere.py:x", "no file nowhere.py"),
        ("no_such_module:x", "importing no_such_module failed"),
        ("string:nothing", "string has no 'nothing'"),
        ("/no/such/program x", "no program /no/such/program"),
        ("sqlite:///x.db", "native server"),
        ("unnamed", "no server is named 'unnamed'"),
    ],
)
async def test_what_is_not_there_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        await launch_of(parse_target(text))


async def test_a_file_that_can_not_be_executed_or_a_missing_folder_is_told(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    with pytest.raises(ConfigError, match="can't be executed"):
        await launch_of(parse_target([str(plain), "x"]))
    with pytest.raises(ConfigError, match="working directory"):
        await launch_of(parse_target({"command": sys.executable, "cwd": str(tmp_path / "none")}))
