"""Asks a node's life for what `looks.py` shows: through the operations that clients call, and one statement for messages."""

import warnings
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any
from zlib import crc32

from tasuki.services.queues.model import Content
from tasuki.store.store import Tx
from tasuki.testing.acting import Run
from tasuki.testing.life import Life
from tasuki.testing.looks import (
    ALL_EXPIRED,
    EXPIRED,
    LOST,
    STANDING,
    TASKS,
    Event,
    Execution,
    Message,
    Queue,
    Task,
    decoded,
    when,
)
from tasuki.testing.telling import spoken
from tasuki.values.arns import build_arn
from tasuki.values.config import Config
from tasuki.values.documents import dumps, unpack
from tasuki.values.errors import DomainError
from tasuki.values.instant import DAY, SECOND, to_datetime

PAGE = 1_000
RECORDER = "tasuki-recorder"
RECORDED_DAYS = 14
"""No queue keeps a message longer."""


class NoSuchThing(LookupError):
    """There is nothing of that name. The text says what there is."""


async def _all(life: Life, service: str, operation: str, member: str, **given: Any) -> list[Any]:
    """Answer all pages of a listing."""
    found: list[Any] = []
    while True:
        page = await life.call(service, operation, given)
        found += page.get(member, ())
        if not page.get("nextToken"):
            return found
        given["nextToken"] = page["nextToken"]


async def execution(life: Life, arn: str) -> Execution:
    """Describe an execution, with its history. Raises the API's error when there is none."""
    told = await life.call("stepfunctions", "DescribeExecution", {"executionArn": arn})
    history = await _all(
        life,
        "stepfunctions",
        "GetExecutionHistory",
        "events",
        executionArn=arn,
        maxResults=PAGE,
        includeExecutionData=True,
    )
    machine = str(told["stateMachineArn"]).rpartition(":")[2]
    started, stopped = when(told["startDate"]), when(told.get("stopDate"))
    assert started is not None
    return Execution(
        arn=arn,
        name=told["name"],
        machine=machine,
        status=told["status"],
        input=decoded(told.get("input")),
        output=decoded(told.get("output")),
        error=told.get("error"),
        cause=told.get("cause"),
        started=started,
        stopped=stopped,
        history=history,
    )


async def executions(life: Life, config: Config, machine: str | None, status: str | None) -> list[Execution]:
    """Answer the executions of one machine (its name or ARN) or of all, oldest first. Raises `NoSuchThing`."""
    machines = await _all(life, "stepfunctions", "ListStateMachines", "stateMachines")
    known = {one["name"]: one["stateMachineArn"] for one in machines if one.get("type") != "EXPRESS"}
    if machine is not None and machine not in {*known, *known.values()}:
        raise NoSuchThing(f"no Standard state machine {machine!r} in {config.region}; there is {_names(known)}")
    wanted = {"statusFilter": status} if status is not None else {}
    found: list[Any] = []
    for name, arn in known.items():
        if machine is None or machine in {name, arn}:
            listed = await _all(
                life, "stepfunctions", "ListExecutions", "executions", stateMachineArn=arn, maxResults=PAGE, **wanted
            )
            found += reversed(listed)
    found.sort(key=lambda one: one["startDate"])
    return [await execution(life, one["executionArn"]) for one in found]


async def queue(life: Life, config: Config, name: str) -> Queue:
    """Look into a queue (its name, URL or ARN). Raises `NoSuchThing`."""
    name = name.rpartition(":" if name.startswith("arn:") else "/")[2]

    def standing(tx: Tx) -> tuple[list[Message], int]:
        which = (config.account, config.region, name)
        rows = tx.all(STANDING, which)
        messages = [_message(sent, visible, received, content, tx.now) for sent, visible, received, content in rows]
        return messages, tx.all(EXPIRED, which)[0][0]

    try:
        url = (await life.call("sqs", "GetQueueUrl", {"QueueName": name}))["QueueUrl"]
    except DomainError:
        urls = (await life.call("sqs", "ListQueues", {})).get("QueueUrls", ())
        there = _names(str(one).rpartition("/")[2] for one in urls)
        raise NoSuchThing(f"no queue {name!r} in {config.region}; there is {there}") from None
    arn = build_arn("sqs", config.region, config.account, name)
    return Queue(name, url, arn, *await life.look(standing))


def _message(sent: int, visible: int, received: int, packed: bytes, now: int) -> Message:
    content = Content(*unpack(packed))
    attributes = {name: value for name, (_, value) in (content.attributes or {}).items()}
    sent_at = when(sent)
    assert sent_at is not None
    return Message(content.message_id, content.body, sent_at, received, visible <= now, attributes, content.group)


async def tasks(life: Life, family: str | None, status: str | None, runs: Sequence[Run], logs: Any) -> list[Task]:
    """Answer the tasks of all clusters, in the order in which they were asked for."""
    found = []
    by_arn = {run.task: run for run in runs}
    for cluster, name in await life.look(lambda tx: tx.all(TASKS)):
        told = (await life.call("ecs", "DescribeTasks", {"cluster": cluster, "tasks": [name]}))["tasks"]
        found += [_task(one, by_arn.get(one["taskArn"]), logs) for one in told]
    return [
        one for one in found if (family is None or one.family == family) and (status is None or one.status == status)
    ]


def _task(told: dict[str, Any], run: Run | None, logs: Any) -> Task:
    leading = told["containers"][0]
    if run is not None:
        leading = next(one for one in told["containers"] if one["name"] == run.container)
    overrides = told.get("overrides", {}).get("containerOverrides", ())
    environment = {
        one["name"]: one["value"]
        for over in overrides
        for one in over.get("environment", ())
        if over.get("name") == leading["name"]
    }
    origin = next((one["value"] for one in told.get("attributes", ()) if one["name"] == "origin"), "")
    return Task(
        arn=told["taskArn"],
        family=str(told["taskDefinitionArn"]).rpartition("/")[2].partition(":")[0],
        image=leading["image"],
        status=told["lastStatus"],
        exit_code=leading.get("exitCode"),
        stop_code=told.get("stopCode"),
        reason=leading.get("reason") or told.get("stoppedReason"),
        created=when(told.get("createdAt")),
        started=when(told.get("startedAt")),
        stopped=when(told.get("stoppedAt")),
        environment=dict(run.environment) if run is not None else environment,
        output=run.output if run is not None else logs(told["taskArn"]),
        execution=run.execution if run is not None else origin,
    )


def _names(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"


async def handovers(life: Life, by: dict[str, str]) -> list[dict[str, Any]]:
    """Answer the record of what was passed on."""
    found: list[dict[str, Any]] = []
    given: dict[str, Any] = {**by, "MaxResults": PAGE}
    while True:
        page = await life.call("tasuki", "ListHandovers", given)
        found += page["Handovers"]
        if "NextToken" not in page:
            return found
        given["NextToken"] = page["NextToken"]


async def lost(life: Life, limit: int, zone: tzinfo | None) -> list[str]:
    """Tell what was dropped or dead-lettered of what schedules, rules and pipes passed on, and what queues let expire."""

    def found(tx: Tx) -> tuple[list[Any], list[Any]]:
        return tx.all(LOST, (limit,)), tx.all(ALL_EXPIRED)

    handed, expired = await life.look(found)
    told = [
        f"{spoken(to_datetime(at), zone)} {_short(source)} ({what}) to {_short(target)}: {outcome}"
        for at, source, what, target, outcome in reversed(handed)
    ]
    return told + [f"queue {name}: {count} messages expired (MessageRetentionPeriod)" for name, count in expired]


def _short(arn: str) -> str:
    return arn.split(":", 5)[-1]


def _recorder(bus: str) -> str:
    """Name the rule and the queue of a bus. Rules have 64 characters at most, and queues no dots, as buses may."""
    name = bus.rpartition("/")[2]
    fit = name.replace(".", "_")[: 63 - len(RECORDER)]
    return f"{RECORDER}-{fit}" if fit == name else f"{RECORDER}-{fit[:-9]}-{crc32(name.encode()):08x}"


async def record(life: Life, config: Config, bus: str) -> None:
    """Have a rule pass every event of a bus to a queue that only we look into."""
    name = _recorder(bus)
    kept_for = {"MessageRetentionPeriod": str(RECORDED_DAYS * DAY // SECOND)}
    await life.call("sqs", "CreateQueue", {"QueueName": name, "Attributes": kept_for})
    pattern = dumps({"account": [{"exists": True}]})
    await life.call("events", "PutRule", {"Name": name, "EventBusName": bus, "EventPattern": pattern})
    target = {"Id": "queue", "Arn": build_arn("sqs", config.region, config.account, name)}
    await life.call("events", "PutTargets", {"Rule": name, "EventBusName": bus, "Targets": [target]})


async def events(life: Life, config: Config, bus: str) -> list[Event]:
    """Answer what was recorded of a bus, and warn of what is too old. Raises `NoSuchThing` where nothing was to be."""
    try:
        kept = await queue(life, config, _recorder(bus))
    except NoSuchThing:
        raise NoSuchThing(
            f'the events of bus {bus!r} are not recorded: say house.record_events("{bus}") before'
        ) from None
    if kept.expired:
        warnings.warn(
            f"what was recorded of bus {bus!r} more than {RECORDED_DAYS} days ago is gone ({kept.expired} of its events): ask for "
            "house.events() in between",
            stacklevel=1,
        )
    found = []
    for message in kept.messages:
        told = message.json
        found.append(
            Event(
                id=told["id"],
                bus=bus,
                source=told["source"],
                detail_type=told["detail-type"],
                detail=told["detail"],
                resources=told.get("resources", ()),
                time=datetime.fromisoformat(told["time"]),
            )
        )
    return found
