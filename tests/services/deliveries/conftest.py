"""The bench of this folder."""

from collections.abc import Iterator

import pytest

from tests.services.deliveries.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.house.close()
