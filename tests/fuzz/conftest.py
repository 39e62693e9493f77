"""Fuzzing runs when it is asked for: `make fuzz`, or FUZZ_SECONDS in the environment. Plain runs have the smoke test."""

import os

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "FUZZ_SECONDS" in os.environ:
        return
    left = [item for item in items if item.get_closest_marker("fuzz") is None]
    if len(left) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("fuzz") is not None])
        items[:] = left
