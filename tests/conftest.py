"""What all tests share."""

from pathlib import Path

import pytest

from tests.recorded_summary import pytest_terminal_summary as pytest_terminal_summary  # noqa: PLC0414 - a hook of pytest's

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "conformance"
CONFORMANCE: Path | None = BESIDE if BESIDE.is_dir() else None
"""Answers recorded from AWS. They lie beside a checkout, not in it; without them the tests that need them are skipped and say so."""


@pytest.fixture(scope="session")
def conformance() -> Path:
    if CONFORMANCE is None:
        pytest.skip("the recorded AWS answers (../shared/conformance) are not beside this checkout")
    return CONFORMANCE
