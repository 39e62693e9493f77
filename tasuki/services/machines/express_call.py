"""`aws-sdk:sfn:startSyncExecution`: a Task that waits for an Express execution.

The child takes its steps in units of its own, and its end reaches the Task as that of any watched work does; so a
machine that calls itself goes round in bounded units, until the Task's or the execution's time is up. An execution
that failed is an answer, not an error: the Task gets its Status.
"""

from functools import partial
from typing import Any

from tasuki.language.integration_parameters import sdk_action
from tasuki.services.machines.express_api import start_sync_execution
from tasuki.services.machines.setting import Setting
from tasuki.services.machines.starting import Start, start_later
from tasuki.services.sdk import SdkCall
from tasuki.services.switchboard import Answer, Caller
from tasuki.store.store import Tx
from tasuki.values.operations import Operation
from tasuki.values.sdk_shapes import read
from tasuki.values.service_checks import check


class StartSyncCall(SdkCall):
    """Starts the child; the answer comes later."""

    def __init__(self, setting: Setting) -> None:
        action = sdk_action("sfn", "startSyncExecution")
        assert action is not None, "the model of Step Functions has it"
        super().__init__("Sfn", action, Operation("poll", partial(start_sync_execution, setting=setting)), "")
        self._setting = setting

    def call(self, tx: Tx, parameters: dict[str, Any], caller: Caller) -> Answer:
        """Start the child in a later unit. Raises what StartSyncExecution raises."""
        given = read(self.action.input, parameters)
        check(self.action.service, self.action.input, given)
        wish = Start(
            arn=given["stateMachineArn"],
            input=given.get("input", "{}"),
            name=given.get("name"),
            trace=given.get("traceHeader") or caller.trace,
            watcher=caller.watcher,
            synchronous=True,
        )
        start_later(tx, self._setting, wish)
        return Answer({}, later=True)
