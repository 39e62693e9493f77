"""The quota on tasks where units of two nodes run beside each other: exact near it, and free of waiting far from it."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tasuki.runtime.clock import WallClock
from tasuki.services import tasks
from tasuki.services.switchboard import Switchboard
from tasuki.services.tasks import queries as sql
from tasuki.services.tasks.placing import NEAR
from tasuki.store.postgres import PostgresStore
from tasuki.values.chance import Chance
from tasuki.values.config import Config, Image
from tasuki.values.operations import Principal, Request

DEFINITION = {
    "family": "quick",
    "containerDefinitions": [{"name": "main", "image": "quick", "memory": 6}],
}


class Node:
    """A store of its own, and the tasks room; nobody attends to the tasks."""

    def __init__(self, url: str, seed: int, quota: int) -> None:
        self.chance = Chance.seeded(seed)
        self.store = PostgresStore(url, chance=self.chance, wall=WallClock())
        self.switchboard = Switchboard()
        images = {"quick": Image("quick", Path("/images/quick"), ("run", "quick"))}
        quotas = {"running_tasks": quota}
        config = Config(data=Path(), dev=True, images=images, memory_mib=10_000, quotas=quotas)
        self.switchboard.connect([tasks.room(config, self.switchboard)])

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        found = self.switchboard.operations["ecs", operation]
        account, region = "000000000000", "us-east-1"
        request = Request("ecs", operation, given, self.chance.uuid(), Principal("test"), account, region, "http://x")
        answer = await self.store.write(lambda tx: found.run(tx, request))
        assert isinstance(answer, dict), f"{operation} is no long poll"
        return answer


async def run_on_two(url: str, quota: int, calls: int, count: int) -> tuple[int, Counter[str], list[Node]]:
    """Call RunTask on two nodes at once; answer how many tasks there are then, why others were refused, and the nodes."""
    nodes = [Node(url, seed, quota) for seed in (1, 2)]
    for node in nodes:
        await node.store.open()
    try:
        [(_, before)] = await nodes[0].store.look(lambda tx: tx.all(sql.RESERVED_MIB))
        await nodes[0].call("RegisterTaskDefinition", **DEFINITION)
        answers = await asyncio.gather(
            *(nodes[n % 2].call("RunTask", taskDefinition="quick", count=count) for n in range(calls))
        )
        [(_, after)] = await nodes[0].store.look(lambda tx: tx.all(sql.RESERVED_MIB))
    finally:
        for node in nodes:
            await node.store.leave()
    assert after - before == sum(len(answer["tasks"]) for answer in answers), "what callers were told is what there is"
    return after, Counter(one["reason"] for answer in answers for one in answer["failures"]), nodes


@pytest.mark.parametrize(("quota", "count"), [(3, 1), (25, 2), (47, 10)])
def test_no_more_tasks_than_the_quota_allows_whoever_calls_at_once(postgres_url: str, quota: int, count: int) -> None:
    active, refused, _ = asyncio.run(run_on_two(postgres_url, quota, 30, count))
    assert active == quota
    assert refused == {"RESOURCE:CPU": 30 * count - quota}


def test_far_from_the_quota_nobody_takes_turns(postgres_url: str) -> None:
    near, far = (asyncio.run(run_on_two(postgres_url, NEAR + room, 1, 1))[2][0].store.counters for room in (0, 2))
    assert near.statements == far.statements + 2
