"""Fixtures of the buses room's tests."""

from collections.abc import Iterator

import pytest

from tests.services.buses.stage import Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.house.close()
