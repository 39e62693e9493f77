"""A runner for each test, and nothing left of it afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasuki.runners.memory import Memory
from tests.runners.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "tasks")
    yield made
    made.close()


@pytest.fixture
def rss_bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "tasks", Memory("rss"))
    yield made
    made.close()
