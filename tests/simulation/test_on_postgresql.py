"""The same simulation on PostgreSQL: two nodes, each with a store of its own over one schema."""

import pytest

from tasuki.testing.simulation.campaign import plan_of, play, report
from tasuki.testing.simulation.grounds_postgres import postgresql

SEEDS, STEPS = (1, 2), 60


@pytest.mark.timeout(600)
def test_no_promise_breaks_on_postgresql(postgres_url: str) -> None:
    summary = play(plan_of(seed, postgresql(postgres_url), STEPS) for seed in SEEDS)
    assert not summary.failed, report(summary.failed[0], postgres_url)
    assert summary.steps == len(SEEDS) * STEPS
    assert summary.faults
