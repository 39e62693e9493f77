"""A node that freezes in mid-unit, as a process for the tests: `python -m tests.store.postgres_frozen URL`.

It says "in hand" when its unit has changed a row, waits for a line on standard input, goes on, and says what it read in the end.
"""

import asyncio
import sys

from tasuki.store.store import Tx
from tests.store.postgres_stores import opened

ADD = "UPDATE house SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'count' RETURNING value"


async def main(url: str) -> None:
    """Add one, once."""
    turns: list[int] = []

    def unit(tx: Tx) -> str:
        turns.append(1)
        row = tx.one(ADD)
        assert row is not None
        if len(turns) == 1:
            sys.stdout.write("in hand\n")
            sys.stdout.flush()
            sys.stdin.readline()
        return str(row[0])

    async with opened(url) as store:
        count = await store.write(unit)
        sys.stdout.write(f"added in turn {len(turns)}: {count}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
