"""Several nodes forget at the same time: each takes what no other has in hand, and nothing is left or goes wrong."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from tasuki.services import machines
from tasuki.services.machines import retention
from tasuki.services.machines.retention import Retention
from tasuki.services.machines.setting import Setting
from tasuki.services.switchboard import Switchboard
from tasuki.store.postgres import PostgresStore
from tasuki.testing import House, ManualClock
from tasuki.values.chance import Chance
from tasuki.values.instant import DAY
from tests.postgres import ask, drop_schema, in_schema, new_schema, server
from tests.services.machines.stubs import PASS, ROLE
from tests.services.machines.test_map_runs import machine

NODES, EXECUTIONS = 3, 60


@pytest.fixture
def schema() -> Iterator[str]:
    name = new_schema()
    yield name
    drop_schema(server(), name)


def opened(schema: str, clock: ManualClock, seed: int) -> PostgresStore:
    url = f"{in_schema(server(), schema)}&synchronous_commit=off"
    chance = Chance.seeded(seed)
    return PostgresStore(url, chance=chance, wall=clock, clock=clock, real_clock=clock, connections=2)


def test_three_nodes_forget_at_once(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    with House(machines.room, clock=clock, store=lambda _house: opened(schema, clock, 0)) as house:
        for name, definition in (("pass", PASS), ("wide", machine(PASS))):
            text = json.dumps(definition)
            house.call("stepfunctions", "CreateStateMachine", name=name, definition=text, roleArn=ROLE)
        listed = house.call("stepfunctions", "ListStateMachines")["stateMachines"]
        for number in range(EXECUTIONS):
            arn = listed[number % 10 == 0]["stateMachineArn"]
            house.call("stepfunctions", "StartExecution", stateMachineArn=arn, input="[1, 2, 3]")
        house.drain()
        setting = Setting(house.config, Switchboard())
    clock.set(clock.now() + 91 * DAY)
    monkeypatch.setattr(retention, "EXECUTIONS", 5)
    monkeypatch.setattr(retention, "ROWS", 20)
    counts = asyncio.run(_forget(schema, clock, setting))
    assert sum(count > 0 for count in counts) == NODES  # all of them had something to do
    tables = [row[0] for row in ask(server(), "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)]
    full = {table for table in tables if ask(server(), f"SELECT 1 FROM {schema}.{table} LIMIT 1")}
    assert full - {"house", "nodes"} == {"machines", "revisions", "executions"}
    assert ask(server(), f"SELECT machine, count(*) FROM {schema}.executions GROUP BY machine") == [(-1, 1)]


async def _forget(schema: str, clock: ManualClock, setting: Setting) -> list[int]:
    """Let each node do rounds until it finds nothing; answer how many rounds each did."""
    stores = [opened(schema, clock, seed) for seed in range(NODES)]

    async def serve(store: PostgresStore) -> int:
        poll, rounds = Retention(setting).poll(), 0
        while (due := await store.look(poll.look)) is not None and due <= clock.now():
            await store.write(poll.run)
            rounds += 1
        return rounds

    try:
        for store in stores:
            await store.open()
        return list(await asyncio.gather(*(serve(store) for store in stores)))
    finally:
        for store in stores:
            store.close()
