"""The guides: every command in them runs and prints what they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_what_a_guide_quotes_stands_in_the_file(page: Path, check_page: Callable[[Path], None]) -> None:
    check_page(page)


@pytest.mark.real
@pytest.mark.timeout(600)
def test_building_a_server_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


@pytest.mark.real
@pytest.mark.timeout(600)
def test_wrapping_a_server_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


@pytest.mark.real
@pytest.mark.timeout(600)
def test_answering_an_invitation_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


@pytest.mark.timeout(600)
def test_watching_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


@pytest.mark.real
@pytest.mark.timeout(600)
def test_writing_a_journey_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


@pytest.mark.timeout(600)
def test_giving_sub_agents_less_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


@pytest.mark.timeout(600)
def test_claiming_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


def test_embedding_access_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


@pytest.mark.timeout(600)
def test_giving_each_conversation_a_thread_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)


@pytest.mark.timeout(600)
def test_setting_up_the_gateway_goes_as_the_guide_says(request: pytest.FixtureRequest, pages: Any) -> None:
    pages.result(request.node.name)
