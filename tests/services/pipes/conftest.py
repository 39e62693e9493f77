"""The bench that the plays of this folder use."""

from collections.abc import Iterator

import pytest

from tests.services.pipes.stubs import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    try:
        yield made
    finally:
        made.house.close()
