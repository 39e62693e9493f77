"""Fixtures of the machines room's tests."""

from collections.abc import Iterator

import pytest

from tests.services.machines.stubs import Play


@pytest.fixture
def play() -> Iterator[Play]:
    play = Play()
    yield play
    play.house.close()


@pytest.fixture
def recorded_play() -> Iterator[Play]:
    """A house in the account of the recordings."""
    play = Play("111111111111")
    yield play
    play.house.close()
