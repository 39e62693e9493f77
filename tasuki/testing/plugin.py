"""The pytest plugin: the fixtures `house` and `house_factory`, the marker `tasuki`, and what a house looked like when its test failed.

pytest loads this module at every start where Tasuki is installed, so it imports nothing of the house before a test asks for it.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tasuki.testing.kit import Kit

SETTINGS = ("start", "seed", "real_tasks", "root", "region", "account", "quotas", "memory_mib", "patience_s")
MARKER = f"tasuki({', '.join(SETTINGS)}): how the house of this test is made (tasuki.testing.Kit)"
PORT = pytest.StashKey[int]()
"""Houses of a run come one after the other on one port where that is free: so clients that a module made once go on working."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def house_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., "Kit"]]:
    """Make houses with settings of the test's own; they are closed when it ends. The environment leads to none of them."""
    from tasuki.testing.kit import Kit

    __tracebackhide__ = True
    with ExitStack() as houses:
        yield lambda **settings: houses.enter_context(Kit(**{"root": request.path.parent, **settings}))


@pytest.fixture
def house(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator["Kit"]:
    """A house of this test alone. The environment, and so every boto3 client made from here on, leads to it.

    `@pytest.mark.tasuki(start="2026-10-09T12:00:00+09:00", seed=7)` says how it is made; markers of class and module hold, too.
    """
    import os

    from tasuki.testing import clients

    __tracebackhide__ = True
    session = clients.fresh_session()
    settings: dict[str, Any] = {"root": request.path.parent}
    for mark in reversed(list(request.node.iter_markers("tasuki"))):
        if mark.args or not mark.kwargs.keys() <= set(SETTINGS):
            strange = [*map(repr, mark.args), *(name for name in mark.kwargs if name not in SETTINGS)]
            raise pytest.UsageError(f"the marker tasuki doesn't know {strange[0]}; it takes {', '.join(SETTINGS)}")
        settings |= mark.kwargs
    kit = _opened(request.config, settings)
    try:
        for name in clients.unwanted(dict(os.environ)):
            monkeypatch.delenv(name)
        for name, value in kit.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("boto3.DEFAULT_SESSION", session)
        yield kit
    finally:
        kit.close()


def _opened(config: pytest.Config, settings: dict[str, Any]) -> "Kit":
    from tasuki.testing.kit import Kit

    port = config.stash.get(PORT, 0)
    if port:
        with suppress(OSError):
            return Kit(port=port, **settings)
    kit = Kit(**settings)
    config.stash[PORT] = kit.config.port
    return kit


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell, under a failed test, what its house looked like."""
    report = yield
    kit: Any = getattr(item, "funcargs", {}).get("house")
    if report.when == "call" and report.failed and hasattr(kit, "story"):
        with suppress(Exception):  # the failure itself is what counts
            report.sections.append(("house", kit.story()))
    if report.when != "teardown" and not report.passed and hasattr(kit, "crash"):
        with suppress(Exception):
            kit.crash(after=0)  # one that never came is no second failure
    return report
