"""What all tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own_postgres import NoServer
from tests.postgres import drop_schema, in_schema, new_schema, server
from tests.recorded_summary import pytest_terminal_summary as pytest_terminal_summary  # noqa: PLC0414 - a hook of pytest's

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "conformance"
CONFORMANCE: Path | None = BESIDE if BESIDE.is_dir() else None
"""Answers recorded from AWS. They lie beside a checkout, not in it; without them the tests that need them are skipped and say so."""


@pytest.fixture(scope="session")
def conformance() -> Path:
    if CONFORMANCE is None:
        pytest.skip("the recorded AWS answers (../shared/conformance) are not beside this checkout")
    return CONFORMANCE


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A store's URL in a schema of this test alone; nothing is in it yet, and it is dropped at the end."""
    try:
        base = server()
    except NoServer as why:
        pytest.skip(str(why))
    schema = new_schema()
    yield in_schema(base, schema)
    drop_schema(base, schema)
