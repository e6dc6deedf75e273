"""Programs of npm that tests run: the version and everything under it as a lock beside the test has them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import platformdirs

from hotplug.testing.suite import find_node

_FILES = ("package.json", "package-lock.json")
_QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=optional")


def installed(lock: Path) -> Path:
    """The `node_modules` of a folder's lock, in the user's cache, installed now where it isn't there yet.

    It is installed beside its place and renamed, so that it is whole where it stands.
    """
    files = {name: (lock / name).read_bytes() for name in _FILES}
    digest = hashlib.sha256(b"\0".join(files.values())).hexdigest()
    home = Path(platformdirs.user_cache_dir("hotplug")) / "npm" / f"{lock.name}-{digest[:16]}"
    if home.is_dir():
        return home / "node_modules"
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{home.name}.", dir=home.parent, ignore_cleanup_errors=True) as folder:
        making = Path(folder) / lock.name
        making.mkdir()
        for name, text in files.items():
            making.joinpath(name).write_bytes(text)
        path = os.pathsep.join((str(find_node().parent), os.environ.get("PATH", "")))
        done = subprocess.run(
            ["npm", "ci", "--prefix", str(making), *_QUIET],
            # Debian's browser is used: the one that Playwright would download isn't.
            env={**os.environ, "PATH": path, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        try:
            making.rename(home)
        except OSError:
            # Another run was faster.
            assert home.is_dir()
    return home / "node_modules"
