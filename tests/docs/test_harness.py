"""The harness that runs the pages: it has to notice what is wrong in one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def _page(folder: Path, *blocks: str) -> Path:
    page = folder / "page.md"
    page.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return page


def _console(text: str) -> str:
    return f"```console\n{text}\n```"


@pytest.mark.parametrize(
    "text",
    [
        "$ echo one\none",
        "$ printf '1\\n2\\n3\\n'\n1\n…\n3",
        "$ echo took 3 s\ntook … s",
        "$ printf '1\\n2\\n'\n…\n2",
        "$ echo a \\\n    b\na b",
        "$ cd /\n$ pwd\n/",
        "$ false\n$ echo $?\n1",
        "$ echo not shown",
    ],
)
def test_a_page_that_is_right_passes(text: str, tmp_path: Path, play_page: Callable[..., None]) -> None:
    play_page(_page(tmp_path, _console(text)), tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$ echo one\ntwo", "page.md:2: `echo one` ended with 0"),
        ("$ printf '1\\n2\\n'\n1", "ended with 0"),
        ("$ printf '1\\n'\n1\n…\n2", "ended with 0"),
        ("$ false", "page.md:2: `false` ended with 1"),
        ("$ (exit 3)\n$ echo $?\n1", "where the page shows"),
        ("$ exit 0\n$ true", "there was no time for `exit 0`"),
    ],
)
def test_a_page_that_is_wrong_fails(text: str, said: str, tmp_path: Path, play_page: Callable[..., None]) -> None:
    with pytest.raises(AssertionError) as failed:
        play_page(_page(tmp_path, _console(text)), tmp_path)
    assert said in str(failed.value)


def test_programs_and_files_of_a_page_are_used(tmp_path: Path, play_page: Callable[..., None]) -> None:
    file = "<!-- file: a/b.txt -->\n```text\nhello\n```"
    good = "```python\nimport anyio\n\nawait anyio.sleep(0)\nprint(open('a/b.txt').read(), file=open('c', 'w'))\n```"
    play_page(_page(tmp_path, file, good, _console("$ cat c\nhello")), tmp_path)


def test_a_program_that_raises_fails(tmp_path: Path, play_page: Callable[..., None]) -> None:
    with pytest.raises(AssertionError, match="AssertionError"):
        play_page(_page(tmp_path, "```python\nassert 1 == 2\n```"), tmp_path)


def test_a_quotation_that_isn_t_one_fails(tmp_path: Path, check_page: Callable[[Path], None]) -> None:
    with pytest.raises(AssertionError, match="has something else"):
        check_page(_page(tmp_path, "<!-- same: LICENSE -->\n```text\nAll yours.\n```"))


def test_a_command_that_is_tested_elsewhere_has_to_be_there(tmp_path: Path, play_page: Callable[..., None]) -> None:
    with pytest.raises(AssertionError, match="isn't in the page"):
        play_page(_page(tmp_path, _console("$ true")), tmp_path, tested_elsewhere={"make demo": "test_demo"})
