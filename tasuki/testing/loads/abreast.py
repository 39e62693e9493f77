"""Plays that have nothing to do with each other, side by side in as many processes as there are processors.

Each play is one of its own seed and clock, so what comes out is the same however they are spread.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Got = TypeVar("Got")

MOST_PROCESSES = 8
"""A play takes some 100 MB at the most."""


def each(work: Callable[[Given], Got], given: Sequence[Given], processes: int) -> Iterator[Got]:
    """Answer what `work` makes of each, in their order, one by one as they are ready. With one process: in this one.

    `work` is a function of a module, and what it takes and answers can be pickled. What it raises is raised here.
    """
    if processes < 2 or len(given) < 2:
        yield from map(work, given)
        return
    # Spawned and not forked: a fork would take an open store and half an event loop along.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(processes, len(given)), mp_context=spawn, initializer=_begin)
    try:
        for ready in [pool.submit(work, one) for one in given]:
            yield ready.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Ctrl-C ends a process at once and without a word: the one that asked for its plays says what there is to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def processors() -> int:
    """Answer how many processes are worth it here."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(mine, MOST_PROCESSES)
