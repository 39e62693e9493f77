"""The benches that the plays of this folder use."""

from collections.abc import Iterator

import pytest

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
