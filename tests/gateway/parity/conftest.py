from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from .ways import ODD, WAYS, Place, Way, alone, behind


@pytest.fixture(scope="module", params=WAYS)
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Place, Place]]:
    """The odd server alone, and another one behind the gateway."""
    way: Way = request.param
    folder: Path = tmp_path_factory.mktemp("gateway")
    with alone(ODD, http=way.startswith("HTTP")) as direct, behind(folder, {"odd": ODD}, way) as gateway:
        yield direct, gateway
