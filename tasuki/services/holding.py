"""Work inside a unit that is undone when it says no, while the rest of the unit stands."""

from collections.abc import Callable
from typing import TypeVar

from tasuki.store.store import Tx
from tasuki.values.errors import DomainError

T = TypeVar("T")

HOLD = "SAVEPOINT held"
UNDO = "ROLLBACK TO held"
LET_GO = "RELEASE held"


def held(tx: Tx, work: Callable[[], T]) -> T:
    """Do some work; a `DomainError` undoes what it wrote, and is raised. May be nested."""
    tx.run(HOLD)
    try:
        answer = work()
    except DomainError:
        tx.run(UNDO)
        tx.run(LET_GO)
        raise
    tx.run(LET_GO)
    return answer
