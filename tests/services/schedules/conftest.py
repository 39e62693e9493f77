"""The benches that the plays of this folder use."""

from collections.abc import Iterator

import pytest

from tasuki.services import buses, tasks
from tests.services.schedules.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


@pytest.fixture
def real() -> Iterator[Bench]:
    """A bench whose deliveries are tried."""
    made = Bench(real=True)
    yield made
    made.close()


@pytest.fixture
def every() -> Iterator[Bench]:
    """A bench with all the rooms that a schedule can call."""
    made = Bench(rooms=(buses.room, tasks.room), real=True)
    yield made
    made.close()
