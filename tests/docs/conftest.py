"""Runs a guide as a newcomer would: every command in order, in one folder, and compares what it shows.

In a page, a fenced block of `console` holds commands (`$ `, continued after a backslash) and what they print; one of
`python` is a program. Output that is shown has to come, `…` stands for any text; without any the exit code alone
counts. A command that doesn't end with 0 is followed by `$ echo $?` and its code. A comment `<!-- file: NAME -->`
before a block puts the block into a file instead, and `<!-- same: PATH -->` says that the block is what stands in a
file of the repository, or a part of it. `<!-- skip: WHY -->` leaves a block out, `<!-- demo: … -->` leaves it to
`test_demo.py`, `<!-- client: … -->` to `test_client_snippets.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 540

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>\w+)(?:: (?P<value>.*?))? -->\n+)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    kind: str
    body: str
    note: str | None = None
    value: str = ""

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a `console` block, or a `python` block as one."""

    where: str
    text: str
    shown: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name,
            line=text.count("\n", 0, found.start("kind")) + 1,
            kind=found["kind"],
            body=found["body"],
            note=found["note"],
            value=found["value"] or "",
        )
        for found in _BLOCK.finditer(text)
    ]


def commands(block: Block) -> Iterator[Command]:
    """The commands of a `console` block, each with the output that is shown below it."""
    text: list[str] = []
    shown: list[str] = []
    at = block.line
    for number, line in enumerate(block.body.splitlines(), block.line + 1):
        if line.startswith("$ "):
            if text:
                yield Command(f"{block.page}:{at}", "\n".join(text), "\n".join(shown))
            text, shown, at = [line[2:]], [], number
        elif text and not shown and text[-1].endswith("\\"):
            text.append(line)
        elif text:
            shown.append(line)
        else:
            raise AssertionError(f"{block.page}:{number}: a console block begins with a command")
    if text:
        yield Command(f"{block.page}:{at}", "\n".join(text), "\n".join(shown))


def fits(shown: str, printed: str) -> bool:
    """Whether an output is what a page shows; `…` stands for any text, alone in a line for any lines."""
    pattern = ""
    for line in (" ".join(line.split()) for line in shown.strip().splitlines()):
        pattern += r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n"
    text = "".join(f"{' '.join(line.split())}\n" for line in printed.strip().splitlines())
    return re.fullmatch(pattern, text) is not None


def check_copies(page: Path) -> None:
    """Every block that says so stands in its file, byte for byte."""
    for block in blocks(page):
        if block.note == "same":
            file = ROOT / block.value
            assert block.body in file.read_text(encoding="utf-8"), f"{block.where}: {block.value} has something else"


def play(page: Path, folder: Path, *, tested_elsewhere: Mapping[str, str] = {}) -> None:
    """Run a page's commands in a folder, each after the one before, and compare.

    Args:
        tested_elsewhere: Commands that are not run here, with the test that runs them.
    """
    ran: list[Command] = []
    left_out: set[str] = set()
    script = ["set +e"]
    for number, block in enumerate(blocks(page)):
        known = (None, "client", "demo", "file", "same", "skip")
        assert block.note in known, f"{block.where}: there is no `{block.note}`"
        assert block.note is None or block.value, f"{block.where}: `{block.note}` says nothing"
        if block.note in ("skip", "same", "client"):
            continue
        if block.note == "file":
            script.append(f"mkdir -p {shlex.quote(str(Path(block.value).parent))}")
            script.append(f"cat > {shlex.quote(block.value)} <<'END_OF_{number}'\n{block.body}END_OF_{number}")
            continue
        if block.kind == "python":
            (folder / f".block{number}.py").write_text(_runnable(block.body), encoding="utf-8")
            found: Sequence[Command] = [Command(block.where, f"python .block{number}.py", "")]
        elif block.kind == "console":
            found = [one for one in commands(block) if one.text not in tested_elsewhere]
            left_out |= {one.text for one in commands(block)} & tested_elsewhere.keys()
        else:
            continue
        for command in found:
            out = shlex.quote(str(folder / f".out{len(ran)}"))
            # {{ }} keeps the shell: a `cd` and `$?` go on to the next command.
            script.append(f"(exit ${{code:-0}}); {{ {command.text}\n}} > {out} 2>&1 < /dev/null")
            script.append(f"code=$?; echo $code > {out}.code")
            ran.append(command)
    assert left_out == set(tested_elsewhere), "what is tested elsewhere isn't in the page any more"
    _bash("\n".join(script), folder)
    for number, command in enumerate(ran):
        out = folder / f".out{number}"
        assert out.with_name(f"{out.name}.code").exists(), f"{command.where}: there was no time for `{command.text}`"
        printed = out.read_text(encoding="utf-8")
        code = int(out.with_name(f"{out.name}.code").read_text())
        said = f"{command.where}: `{command.text}` ended with {code} and printed\n{printed}"
        following = ran[number + 1].text if number + 1 < len(ran) else ""
        assert code == 0 or following == "echo $?", said
        if command.shown:
            assert fits(command.shown, printed), f"{said}\nwhere the page shows\n{command.shown}"


@pytest.fixture
def play_page() -> Callable[..., None]:
    """`play`."""
    return play


@pytest.fixture(scope="session")
def pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """The repository's pages that are played as wholes, at the same time: what they start mostly waits."""
    wanted = {item.name for item in request.session.items}
    with ThreadPoolExecutor() as pool:
        yield Pages(pool, wanted if "PYTEST_XDIST_WORKER" not in os.environ else frozenset(), tmp_path_factory)


class Pages:
    """Plays of whole pages, each in a folder that holds the examples and guides.

    Args:
        early: The tests whose pages are started before they ask.
    """

    def __init__(self, pool: ThreadPoolExecutor, early: Collection[str], folders: pytest.TempPathFactory) -> None:
        self._pool = pool
        self._folders = folders
        self._plays = {test: self._start(*page) for test, page in PAGES.items() if test in early}

    def result(self, test: str) -> None:
        """Wait for the page of a test; raises what is wrong with it."""
        if test not in self._plays:
            self._plays[test] = self._start(*PAGES[test])
        self._plays[test].result()

    def _start(self, page: str, tested_elsewhere: Mapping[str, str]) -> Future[None]:
        folder = self._folders.mktemp("page")
        for name in ("examples", "docs/guides"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        entry = {"command": "python", "args": ["examples/memo_calendar/server.py"]}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"memo": entry}}), encoding="utf-8")
        return self._pool.submit(play, ROOT / page, folder, tested_elsewhere=tested_elsewhere)


PAGES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "test_building_a_server_goes_as_the_guide_says": ("docs/guides/build-a-server.md", {}),
    "test_writing_a_journey_goes_as_the_guide_says": ("docs/guides/journeys.md", {}),
    "test_wrapping_a_server_goes_as_the_guide_says": ("docs/guides/wrap-a-server.md", {}),
    "test_answering_an_invitation_goes_as_the_guide_says": ("docs/guides/native-calendars.md", {}),
    "test_watching_goes_as_the_guide_says": ("docs/guides/witnesses.md", {}),
    "test_claiming_goes_as_the_guide_says": ("docs/guides/evidence.md", {}),
    "test_giving_sub_agents_less_goes_as_the_guide_says": ("docs/guides/access-owners.md", {}),
    "test_embedding_access_goes_as_the_guide_says": ("docs/guides/access-hosts.md", {}),
    "test_giving_each_conversation_a_thread_goes_as_the_guide_says": ("docs/guides/gateway-threads.md", {}),
    "test_setting_up_the_gateway_goes_as_the_guide_says": ("docs/guides/gateway-setup.md", {}),
    "test_what_the_readme_says_to_run_runs": (
        "README.md",
        {"make demo": "test_demo.py runs what it runs", "make test": "runs this"},
    ),
}
"""The pages by their tests, with the commands that are tested elsewhere."""


@pytest.fixture
def check_page() -> Callable[[Path], None]:
    """`check_copies`."""
    return check_copies


def _runnable(body: str) -> str:
    """A program; one that awaits at its top is put into a function."""
    if not re.search(r"^(async (with|for) |await |\w[^\n]*= await )", body, re.MULTILINE):
        return body
    lines = body.splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    rest = [f"    {line}" for line in lines if line not in imports]
    return "\n".join([*imports, "import anyio", "async def main():", *rest, "anyio.run(main)"]) + "\n"


def _bash(script: str, folder: Path) -> None:
    bin_ = folder / ".bin"
    bin_.mkdir()
    for name, words in (("python", ()), ("hotplug", ("-m", "hotplug"))):
        # As in an activated .venv, also where the package runs from its sources.
        program = shlex.join([sys.executable, *words])
        (bin_ / name).write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT / "src"))} exec {program} "$@"\n')
        (bin_ / name).chmod(0o755)
    home = folder / ".home"
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HOTPLUG_", "PYTHON", "XDG_"))}
    env |= {
        "HOME": str(home),
        # What was fetched once is not fetched again, and from where it was.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        "NPM_CONFIG_CACHE": os.environ.get("NPM_CONFIG_CACHE") or str(Path.home() / ".npm"),
        "NPM_CONFIG_USERCONFIG": os.environ.get("NPM_CONFIG_USERCONFIG") or str(Path.home() / ".npmrc"),
        "PATH": os.pathsep.join([str(bin_), str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "NO_COLOR": "1",
    }
    process = subprocess.Popen(["bash", "-c", script], cwd=folder, env=env, start_new_session=True)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LIMIT_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
