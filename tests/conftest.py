"""What all tests share."""

from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tasuki.testing import House
from tasuki.testing.house import in_memory
from tests import stores
from tests.own_postgres import NoPrograms, NoServer
from tests.postgres import drop_schema, in_schema, new_schema, server
from tests.recorded_summary import pytest_terminal_summary as pytest_terminal_summary  # noqa: PLC0414 - a hook of pytest's

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "conformance"
CONFORMANCE: Path | None = BESIDE if BESIDE.is_dir() else None
"""Answers recorded from AWS. They lie beside a checkout, not in it; without them the tests that need them are skipped and say so."""

NOWHERE = pytest.StashKey[str]()
"""Why there is no PostgreSQL on this machine, and can't be."""
PLAYS = 8
"""Examples of a random play on PostgreSQL."""


@pytest.fixture(scope="session")
def conformance() -> Path:
    if CONFORMANCE is None:
        pytest.skip("the recorded AWS answers (../shared/conformance) are not beside this checkout")
    return CONFORMANCE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store", choices=("sqlite", "postgresql"), default="sqlite", help="what the tests' houses keep their data in"
    )
    parser.addoption(
        "--not-again",
        action="store_true",
        help="leave out what plays on PostgreSQL whatever --store says: it was played",
    )


# How fast a machine is that others use, too, is no finding.
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("store") == "postgresql":
        from tests.lot import Lot

        try:
            stores.shelf = Lot()
        except NoPrograms as why:
            config.stash[NOWHERE] = str(why)
            return
        except NoServer as why:
            raise pytest.UsageError(f"--store postgresql: {why}") from why
        House.opens, House.runs_on = stores.shelf.anew, stores.shelf.loop


def pytest_unconfigure() -> None:
    if stores.shelf is not None:
        stores.shelf.close()
        stores.shelf, House.opens, House.runs_on = None, in_memory, None


def pytest_report_header(config: pytest.Config) -> str:
    return f"store: {config.stash.get(NOWHERE, config.getoption('store'))}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    nowhere = config.stash.get(NOWHERE, None)
    if config.getoption("not_again"):
        again = [item for item in items if "postgres_url" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=again)
        items[:] = [item for item in items if item not in again]
    for item in items:
        if nowhere is not None:
            item.add_marker(pytest.mark.skip(reason=nowhere))
        play = getattr(getattr(item, "cls", None), "settings", None)
        if config.getoption("store") != "sqlite" and isinstance(play, hypothesis.settings):
            # A random play opens a house for each example, and asks a server at each step: fewer of them, in the same time.
            item.cls.settings = hypothesis.settings(play, max_examples=min(play.max_examples, PLAYS))  # type: ignore[attr-defined]
        only = item.get_closest_marker("sqlite_only")
        if only is not None and config.getoption("store") != "sqlite":
            item.add_marker(pytest.mark.skip(reason=f"on SQLite only: {only.kwargs['reason']}"))


@pytest.fixture(autouse=True)
def _schemas_come_back() -> Iterator[None]:
    yield
    if stores.shelf is not None:
        stores.shelf.test_is_over()


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
