"""State machines, executions and their history: Step Functions. The shell around the pure engine."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tasuki.services.machines import (
    activities,
    aliases,
    api,
    executions,
    map_api,
    map_polls,
    offers,
    polls,
    redriving,
    tagging,
    tokens,
    trying,
    validating,
    versions,
)
from tasuki.services.machines.express_api import start_sync_execution
from tasuki.services.machines.express_call import StartSyncCall
from tasuki.services.machines.listing import list_executions
from tasuki.services.machines.map_runs import TOPIC
from tasuki.services.machines.retention import Retention
from tasuki.services.machines.setting import ROOM, Setting
from tasuki.services.room import Poll, Room
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config
from tasuki.values.operations import Kind, NotYet, Operation

AT_ONCE = 32
"""Ready executions that may share a commit."""
MAPS_AT_ONCE = 4
"""Slices of Map Runs that may share a commit."""


def room(config: Config, switchboard: Switchboard) -> Room:
    """Build the room: plugs in `states:startExecution`, the target `states` and the watcher `machines`."""
    setting = Setting(config, switchboard)
    turns = polls.Turns(setting)
    map_turns = map_polls.MapTurns(setting)
    switchboard.integrations["states:startExecution"] = offers.StartExecutionCall(setting)
    switchboard.integrations["aws-sdk:sfn:startSyncExecution"] = StartSyncCall(setting)
    switchboard.targets["states"] = offers.MachineTarget(setting)
    switchboard.watchers[ROOM] = offers.TaskWatcher()

    def operation(kind: Kind, run: Callable[..., dict[str, Any] | NotYet], *, plain: bool = False) -> Operation:
        return Operation(kind, run if plain else partial(run, setting=setting))

    return Room(
        name=ROOM,
        service="stepfunctions",
        operations={
            "CreateStateMachine": operation("write", api.create_state_machine),
            "DescribeStateMachine": operation("read", api.describe_state_machine),
            "ListStateMachines": operation("read", api.list_state_machines, plain=True),
            "UpdateStateMachine": operation("write", api.update_state_machine),
            "DeleteStateMachine": operation("write", api.delete_state_machine, plain=True),
            **tagging.operations(),
            **activities.operations(setting),
            **aliases.operations(),
            **versions.operations(),
            **redriving.operations(setting),
            "ValidateStateMachineDefinition": operation(
                "read", validating.validate_state_machine_definition, plain=True
            ),
            "TestState": operation("write", trying.test_state),
            "StartExecution": operation("write", executions.start_execution),
            "StartSyncExecution": operation("poll", start_sync_execution),
            "StopExecution": operation("write", executions.stop_execution),
            "DescribeExecution": operation("read", executions.describe_execution, plain=True),
            "DescribeStateMachineForExecution": operation("read", executions.describe_state_machine_for_execution),
            "ListExecutions": operation("read", list_executions, plain=True),
            "ListMapRuns": operation("read", map_api.list_map_runs, plain=True),
            "DescribeMapRun": operation("read", map_api.describe_map_run, plain=True),
            "UpdateMapRun": operation("write", map_api.update_map_run, plain=True),
            "GetExecutionHistory": operation("read", executions.get_execution_history, plain=True),
            "SendTaskSuccess": operation("write", tokens.send_task_success),
            "SendTaskFailure": operation("write", tokens.send_task_failure),
            "SendTaskHeartbeat": operation("write", tokens.send_task_heartbeat),
        },
        polls=(
            Poll(
                name=ROOM,
                topics=(ROOM,),
                look=turns.look,
                run=turns.serve,
                width=AT_ONCE,
                failed=turns.failed,
            ),
            Poll(
                name=TOPIC,
                topics=(TOPIC,),
                look=map_turns.look,
                run=map_turns.serve,
                width=MAPS_AT_ONCE,
                failed=map_turns.failed,
            ),
            Retention(setting).poll(),
        ),
        on_timer=lambda tx, key: polls.fire(tx, setting, key),
        lock_owner=polls.hold_owner,
    )
