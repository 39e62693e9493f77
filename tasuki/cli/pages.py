"""Going through AWS's paged answers, and finding things by the short names that people type."""

from collections.abc import Iterator
from typing import Any

from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.reach import Reach


def every(reach: Reach, service: str, operation: str, member: str, **parameters: Any) -> Iterator[Any]:
    """Yield the entries of `member` over all pages of an operation (`list_queues`)."""
    for page in reach.client(service).get_paginator(operation).paginate(**parameters):
        yield from page.get(member, ())


def machine_arn(reach: Reach, name: str) -> str:
    """Answer the ARN of a machine by name or ARN; with `MACHINE:ALIAS` or `MACHINE:VERSION`, that alias's or version's."""
    if name.startswith("arn:"):
        return name
    name, colon, qualifier = name.partition(":")
    names = {}
    for machine in every(reach, "stepfunctions", "list_state_machines", "stateMachines"):
        if machine["name"] == name:
            return f"{machine['stateMachineArn']}{colon}{qualifier}"
        names[machine["name"]] = machine
    known = ", ".join(sorted(names)[:8]) or "there is none yet"
    raise Complaint(f"no machine is called {name}", hint=f"known: {known}")


def is_express(reach: Reach, name: str) -> bool:
    """Tell whether a machine, or that of an alias or a version, is an Express one."""
    # DescribeStateMachine refuses an alias's ARN; without what follows the name it is its machine's.
    arn = ":".join(machine_arn(reach, name).split(":")[:7])
    told = reach.client("stepfunctions").describe_state_machine(stateMachineArn=arn)
    return bool(told["type"] == "EXPRESS")


def execution_arn(reach: Reach, name: str | None) -> str:
    """Answer the ARN of an execution by ARN, `MACHINE:NAME` or name; a machine's latest; without a name the very latest.

    Express executions have no history and can't be described, so they are never meant.
    """
    if name is not None and name.startswith("arn:"):
        if ":express:" in name:
            raise _no_history("an Express execution")
        if ":mapRun:" in name:
            raise Complaint("a Map Run has no history of its own", hint=f"see: tasuki watch {name}")
        return _latest_of(reach, name) if ":stateMachine:" in name else name
    wanted_machine, _, wanted = (name or "").rpartition(":")
    states = reach.client("stepfunctions")
    latest: dict[str, Any] | None = None
    called = None
    for machine in every(reach, "stepfunctions", "list_state_machines", "stateMachines"):
        if machine["name"] == name:
            called = machine
        if machine["type"] == "EXPRESS" or (wanted_machine and machine["name"] != wanted_machine):
            continue
        if name is None:
            newest = states.list_executions(stateMachineArn=machine["stateMachineArn"], maxResults=1)["executions"]
            if newest and (latest is None or newest[0]["startDate"] > latest["startDate"]):
                latest = newest[0]
            continue
        arn = machine["stateMachineArn"].replace(":stateMachine:", ":execution:") + ":" + wanted
        try:
            states.describe_execution(executionArn=arn)
        except states.exceptions.ExecutionDoesNotExist:
            continue
        return str(arn)
    if called is not None:
        if called["type"] == "EXPRESS":
            raise _no_history(f"{name}, an Express machine,")
        return _latest_of(reach, str(called["stateMachineArn"]))
    if latest is None:
        if name:
            raise Complaint(f"no execution is called {name}", hint="without a name it is the latest one")
        raise Complaint("nothing has been started yet", hint="start one with: tasuki start MACHINE --input '{}'")
    return str(latest["executionArn"])


def _latest_of(reach: Reach, machine: str) -> str:
    """Answer the ARN of a machine's latest execution."""
    newest = reach.client("stepfunctions").list_executions(stateMachineArn=machine, maxResults=1)["executions"]
    if not newest:
        name = ":".join(machine.split(":")[6:])
        raise Complaint(f"{name} has not been started yet", hint=f"start it with: tasuki start {name} --input '{{}}'")
    return str(newest[0]["executionArn"])


def _no_history(what: str) -> Complaint:
    return Complaint(
        f"{what} keeps no history to look at",
        hint="see its end with: tasuki start MACHINE --watch    or give the machine a logging configuration",
    )


def queue_url(reach: Reach, name: str) -> str:
    """Answer the URL of a queue by name, ARN or URL."""
    if name.startswith(("http://", "https://")):
        return name
    return str(reach.client("sqs").get_queue_url(QueueName=name.rpartition(":")[2])["QueueUrl"])


def task_arn(reach: Reach, wanted: str) -> str:
    """Answer the ARN of a task by ARN, id, or the first characters of its id."""
    if wanted.startswith("arn:"):
        return wanted
    found = [arn for arn in task_arns(reach) if arn.rpartition("/")[2].startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Complaint(
            f"{len(found)} tasks begin with {wanted}", Code.USAGE, hint="give more of the id; see tasuki ps --all"
        )
    raise Complaint(f"no task begins with {wanted}", hint="see: tasuki ps --all")


def task_arns(reach: Reach, *, stopped: bool = True) -> list[str]:
    """Answer the ARNs of the tasks that run, and of those that ended lately."""
    wanted = ("RUNNING", "STOPPED") if stopped else ("RUNNING",)
    return [arn for status in wanted for arn in every(reach, "ecs", "list_tasks", "taskArns", desiredStatus=status)]


def describe_tasks(reach: Reach, arns: list[str]) -> list[dict[str, Any]]:
    """Describe tasks, a hundred at a time as ECS allows. Those already forgotten are left out."""
    ecs = reach.client("ecs")
    found: list[dict[str, Any]] = []
    for at in range(0, len(arns), 100):
        found += ecs.describe_tasks(tasks=arns[at : at + 100], include=["TAGS"])["tasks"]
    return found
