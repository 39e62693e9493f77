"""State changes of tasks, as EventBridge tells them (ecs.md section 6; developer guide, "Amazon ECS task state change events").

Put on the default bus in the unit that changes the task; while no rule there asks for such events, nothing is made. `detail` is
the task as DescribeTasks shows it, with `updatedAt`; of two events about a task the one with the higher `version` is the later.
"""

from tasuki.services.switchboard import Happening
from tasuki.services.tasks.model import Task
from tasuki.services.tasks.setting import Setting
from tasuki.services.tasks.shapes import TIMES, describe
from tasuki.store.store import Tx
from tasuki.values.documents import dumps
from tasuki.values.instant import to_iso

SOURCE, DETAIL_TYPE = "aws.ecs", "ECS Task State Change"


def tell(tx: Tx, setting: Setting, task: Task) -> None:
    """Tell how a task stands now."""
    if not setting.switchboard.wants(tx, task.account, task.region, SOURCE):
        return
    detail = {**describe(task), "updatedAt": tx.now}
    del detail["tags"]
    for name in (*(member for member, _ in TIMES), "updatedAt"):
        if name in detail:
            detail[name] = to_iso(detail[name])
    detail["overrides"] = {"containerOverrides": detail["overrides"]["containerOverrides"]}
    happening = Happening(
        SOURCE, DETAIL_TYPE, dumps(detail), task.account, task.region, tx.now, (task.arn,), trace=task.trace
    )
    setting.switchboard.publish(tx, (happening,))
