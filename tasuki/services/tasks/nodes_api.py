"""`ListNodes`, an operation of our own (service `tasuki`): who serves this house.

No input. Output: `Nodes`, in the order in which they joined, each with `Id`, `Host`, `Url`, `State` (`UP`, `SILENT`: not heard
of for a while, `LOST`: given up, `STOPPED`), `Tasks` (in hand), `MemoryMiB`, `Version`, `JoinedAt`, `SeenAt`, `ClockAheadMs`
(by how much the database's clock is ahead of its machine's, where that is more than the way there). The one node of a store
that has only one shows no times.
"""

import platform
from typing import Any

from tasuki.services.tasks import queries_nodes as sql
from tasuki.services.tasks.nodes import Node, everybody
from tasuki.services.tasks.setting import ALONE, Setting
from tasuki.store.store import Tx
from tasuki.values.instant import to_iso
from tasuki.values.operations import Operation, Request


def list_nodes(setting: Setting) -> Operation:
    """Answer the operation."""

    def run(tx: Tx, _request: Request) -> dict[str, Any]:
        if setting.shared:
            return {"Nodes": [_shown(tx, one) for one in everybody(tx)]}
        return {
            "Nodes": [
                {
                    "Id": ALONE,
                    "Host": platform.node(),
                    "Url": setting.switchboard.url,
                    "State": "UP",
                    "Tasks": tx.all(sql.ACTIVE)[0][0],
                    "MemoryMiB": setting.memory_mib,
                }
            ]
        }

    return Operation("read", run)


def _shown(tx: Tx, node: Node) -> dict[str, Any]:
    return {
        "Id": node.id,
        "Host": node.host,
        "Url": node.url,
        "State": node.state(tx.real_now),
        "Tasks": node.tasks,
        "MemoryMiB": node.memory_mib,
        "Version": node.version,
        "JoinedAt": to_iso(node.joined_at),
        "SeenAt": to_iso(node.seen_at),
        "ClockAheadMs": node.clock_ahead_ms,
    }
