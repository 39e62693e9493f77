"""ListExecutions of a machine, of a version or of an alias, newest first; by status, by whether they were redriven.

(Of a Map Run: map_api.py.) A page of a filtered listing may be short, even empty, and still have a `nextToken`.
"""

from typing import Any, NamedTuple

from tasuki.services.machines import queries as sql
from tasuki.services.machines.api import open_token, page_size
from tasuki.services.machines.errors import (
    StateMachineDoesNotExist,
    StateMachineTypeNotSupported,
    ValidationException,
)
from tasuki.services.machines.map_api import list_children
from tasuki.services.machines.model import execution_arn, machine_arn
from tasuki.services.machines.revisions import choose_revision
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.instant import Instant
from tasuki.values.operations import Request

SCANNED_ROWS = 5_000
"""How many executions a filtered page looks at before it ends, full or not."""


class _Wanted(NamedTuple):
    """What a listing is to hold; None: whatever it is."""

    status: str | None = None
    version: int | None = None
    alias: str | None = None
    redriven: bool | None = None

    def fits(self, row: "_Listed") -> bool:
        """Tell whether an execution belongs into the listing."""
        return (
            self.status in {None, row.status}
            and self.version in {None, row.version}
            and self.alias in {None, row.alias}
            and self.redriven in {None, row.redrives > 0}
        )


class _Listed(NamedTuple):
    """One execution, as `queries.EXECUTIONS` answers it."""

    id: int
    name: str
    status: str
    started_at: Instant
    stopped_at: Instant | None
    version: int | None
    alias: str | None
    redrives: int
    redriven_at: Instant | None


def list_executions(tx: Tx, request: Request) -> dict[str, Any]:
    """ListExecutions.

    Raises InvalidArn, InvalidToken, StateMachineDoesNotExist, StateMachineTypeNotSupported, ValidationException.
    """
    given = request.input
    arn, status, redriven = given.get("stateMachineArn"), given.get("statusFilter"), given.get("redriveFilter")
    if arn is None and given.get("mapRunArn") is not None:
        return list_children(tx, request)
    if arn is None or given.get("mapRunArn") is not None:
        raise ValidationException("Must provide either a state machine ARN or a map run ARN")
    if status == "PENDING_REDRIVE":
        raise ValidationException("The statusFilter PENDING_REDRIVE needs a map run ARN.")
    chosen = choose_revision(tx, arn)
    if chosen is None:
        raise StateMachineDoesNotExist(arn)
    if chosen.type == "EXPRESS":
        raise StateMachineTypeNotSupported("This operation is not supported by this type of state machine")
    wanted = _Wanted(
        status,
        None if chosen.alias is not None else chosen.version,
        chosen.alias,
        None if redriven is None else redriven == "REDRIVEN",
    )
    query = f"executions {arn} {status} {redriven}"
    before = open_token(tx, query, given.get("nextToken")) or 1 << 62
    rows, position = _page(tx, chosen.machine, wanted, int(before), page_size(given))
    place = request.account, request.region, chosen.name
    answer: dict[str, Any] = {
        "executions": [_shown(machine_arn(*place), execution_arn(*place, row.name), row) for row in rows]
    }
    if position is not None:
        answer["nextToken"] = page_tokens(tx).seal(query, position)
    return answer


def _page(tx: Tx, machine: int, wanted: _Wanted, before: int, limit: int) -> tuple[list[_Listed], int | None]:
    """Answer a page of executions and where the next one begins, if there is one."""
    if wanted in {_Wanted(), _Wanted("RUNNING")}:
        rows = _rows(tx, sql.EXECUTIONS if wanted.status is None else sql.OPEN_EXECUTIONS, machine, before, limit + 1)
        return rows[:limit], rows[limit - 1].id if len(rows) > limit else None
    found: list[_Listed] = []
    scanned = 0
    while scanned < SCANNED_ROWS:
        rows = _rows(tx, sql.EXECUTIONS, machine, before, 500)
        for row in rows:
            if wanted.fits(row):
                if len(found) == limit:
                    return found, found[-1].id
                found.append(row)
        if len(rows) < 500:
            return found, None
        before = rows[-1].id
        scanned += len(rows)
    return found, before


def _rows(tx: Tx, statement: str, machine: int, before: int, limit: int) -> list[_Listed]:
    return [_Listed(*row) for row in tx.all(statement, (machine, before, limit))]


def _shown(machine: str, arn: str, row: _Listed) -> dict[str, Any]:
    shown = {
        "executionArn": arn,
        "stateMachineArn": machine,
        "name": row.name,
        "status": row.status,
        "startDate": row.started_at,
        "redriveCount": row.redrives,
        **started_by(machine, row.version, row.alias),
    }
    if row.stopped_at is not None:
        shown["stopDate"] = row.stopped_at
    if row.redriven_at is not None:
        shown["redriveDate"] = row.redriven_at
    return shown


def started_by(machine: str, version: int | None, alias: str | None) -> dict[str, str]:
    """Answer by which version and alias an execution was started, if it was. `machine` is an ARN."""
    said = {} if version is None else {"stateMachineVersionArn": f"{machine}:{version}"}
    return said if alias is None else {**said, "stateMachineAliasArn": f"{machine}:{alias}"}
