"""What the parts of this room share: configuration, switchboard, parsed machines, and the quota of open executions."""

from tasuki.services.machines.definitions import Definitions
from tasuki.services.machines.errors import ExecutionLimitExceeded, ThrottlingException
from tasuki.services.machines.queries import OPEN_COUNT
from tasuki.services.machines.throttling import Transitions
from tasuki.services.switchboard import Switchboard
from tasuki.store.store import Tx
from tasuki.values.buckets import Bucket
from tasuki.values.config import Config
from tasuki.values.instant import DAY

ROOM = "machines"
OPEN_EXECUTIONS = 1_000_000
"""Step Functions' own quota (states.md section 12)."""
EXECUTION_BYTES = 256 << 20
"""Documents in one execution's history; AWS bounds only their number (25,000 events)."""
STATE_MACHINES = 10_000
ACTIVITIES = 10_000
MAP_RUN_CHILDREN = 500
"""Child executions that one Map Run has open at a time, whatever its MaxConcurrency says."""
EXECUTION_DAYS = 90
"""How long an ended execution can be read (Step Functions quotas, "execution history retention")."""
_SHARE = 8
"""What part of the room below the quota a node gives away before it counts again."""


class Setting:
    """One per room, shared by all units of a node: holds nothing that a lost node or a unit that is undone would miss."""

    def __init__(self, config: Config, switchboard: Switchboard) -> None:
        self.config = config
        self.switchboard = switchboard
        self.definitions = Definitions()
        self.execution_bytes = config.quotas.get("execution_bytes", EXECUTION_BYTES)
        self.kept_ms = config.quotas.get("execution_days", EXECUTION_DAYS) * DAY
        self.state_machines = config.quotas.get("state_machines", STATE_MACHINES)
        self.activities = config.quotas.get("activities", ACTIVITIES)
        self.map_run_children = config.quotas.get("map_run_children", MAP_RUN_CHILDREN)
        self._open_executions = config.quotas.get("open_executions", OPEN_EXECUTIONS)
        self._headroom = 0
        rate = config.quotas.get("start_executions_per_second", 0)
        self._starts = Bucket(config.quotas.get("start_executions_burst", rate), rate) if rate else None
        rate = config.quotas.get("state_transitions_per_second", 0)
        burst = config.quotas.get("state_transitions_burst", rate)
        self.transitions = Transitions(rate, max(burst, 1)) if rate else None

    def admit_start(self, tx: Tx) -> None:
        """Let one more StartExecution through, where the quota bounds their rate. Raises `ThrottlingException`."""
        if self._starts is not None and not self._starts.take(tx.real_now):
            raise ThrottlingException("Rate exceeded")

    def admit_execution(self, tx: Tx) -> None:
        """Make room for one more execution. Raises `ExecutionLimitExceeded`.

        Counts only as often as the answer could matter: far below the quota many starts need no count. Nodes do not tell each
        other what they start between two counts, so each takes a part of the room: several may pass the quota by a few.
        """
        if self._headroom <= 0:
            row = tx.one(OPEN_COUNT, (self._open_executions,))
            assert row is not None
            self._headroom = -(-(self._open_executions - row[0]) // _SHARE)
            if self._headroom <= 0:
                raise ExecutionLimitExceeded(
                    f"The maximum number of open executions ({self._open_executions}) has been reached; "
                    "raise quotas.open_executions, or wait for some to end."
                )
        self._headroom -= 1
