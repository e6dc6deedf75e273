"""The repository is laid out as ARCHITECTURE.md says."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "hotplug"
FOLDERS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
MODULES = sorted(path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__"))
DOORS = sorted(SOURCE.glob("*/__init__.py"))


def _contracts() -> dict[str, dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {contract["id"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}


def _layers() -> list[set[str]]:
    return [set(re.findall(r"hotplug\.(\w+)", layer)) for layer in _contracts()["arrows"]["layers"]]


@pytest.mark.parametrize("folder", FOLDERS + MODULES)
def test_every_folder_has_its_place_in_the_contracts(folder: str) -> None:
    assert [folder in layer for layer in _layers()].count(True) == 1, f"name hotplug.{folder} in [tool.importlinter]"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_stands_on_the_page_about_the_architecture(folder: str) -> None:
    assert f"`{folder}/`" in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("door", DOORS, ids=lambda path: path.parent.name)
def test_every_door_has_a_docstring_and_names_what_it_exports(door: Path) -> None:
    tree = ast.parse(door.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a door says what stands behind it"
    targets = [ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)]
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import)]
    assert "__all__" in targets or not imported


@pytest.mark.parametrize("lock", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.stem)
def test_a_lock_names_hashes_but_no_place(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text)
    pinned = [entry for entry in entries if not entry.startswith("#")]
    assert pinned
    assert [entry.split()[0] for entry in pinned if "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?:|file:|--index|--extra-index|--find-links|^/", text, re.MULTILINE) == []


def test_every_lock_that_the_setup_installs_is_made_by_the_lock_script() -> None:
    script = (ROOT / "tools" / "lock").read_text(encoding="utf-8")
    assert {path.stem for path in (ROOT / "requirements").glob("*.txt")} == set(
        re.findall(r"^compile (\w+)", script, re.MULTILINE)
    )
