"""The process whose system calls `test_power_cut` records: writes units of many sizes and says which are acknowledged.

python -m tests.store.power_cut_writer FOLDER SEED UNITS EVERY

One unit of EVERY waits for the disk and is acknowledged then; the others wait for their commit only, as those of a moved clock do.
"""

import asyncio
import os
import random
import sys
from pathlib import Path

from tasuki.store import sqlite
from tasuki.store.store import Tx
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance


async def write(folder: Path, seed: int, units: int, every: int) -> None:
    chance = random.Random(seed)
    store = sqlite.SqliteStore(
        folder / "t.db", clock=ManualClock(), real_clock=ManualClock(), chance=Chance.seeded(seed)
    )
    acknowledged = os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def one(number: int) -> None:
        size = chance.choice([10, 200, 3_000, 20_000])

        def unit(tx: Tx) -> None:
            tx.run("INSERT INTO house (name, value) VALUES (?, ?)", (f"unit-{number}", "v" * size))
            # Two rows in far apart places that must always agree: a torn commit would show.
            for twin in ("twin-a", "zz-twin"):
                tx.run(
                    "INSERT INTO house (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                    (twin, str(number)),
                )

        if number % every:
            await store.commit(unit)
            return
        await store.write(unit)
        os.write(acknowledged, f"{number}\n".encode())

    number = 0
    while number < units:
        crowd = chance.randint(1, 8)
        await asyncio.gather(*(one(n) for n in range(number, min(number + crowd, units))))
        number += crowd
    os._exit(0)  # no orderly close: that would checkpoint everything


if __name__ == "__main__":
    sqlite.CHECKPOINT_PAGES = 60  # many checkpoints and WAL resets in a short run
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
