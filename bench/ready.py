"""From the start of the program to its ready line, on fresh data and on data that is there."""

import tempfile
import time
from pathlib import Path

from bench.table import Row, show
from tasuki.cli.own_node import OwnNode


def rows() -> list[Row]:
    """Start a node twice on the same folder."""
    taken = []
    with tempfile.TemporaryDirectory(prefix="tasuki-bench-") as folder:
        own = OwnNode(Path(folder))
        for _ in range(2):
            began = time.perf_counter()
            own.start()
            taken.append(time.perf_counter() - began)
            own.stop()
    return [
        Row("ready on fresh data", taken[0], "s", at_most=1),
        Row("ready on data that is there", taken[1], "s", at_most=1),
    ]


if __name__ == "__main__":
    show("Start", rows())
