"""A stage for each test."""

from collections.abc import Iterator

import pytest

from tests.services.tasks.stage import Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.house.close()
