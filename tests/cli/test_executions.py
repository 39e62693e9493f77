"""`start`, `watch`, `history`, `ps`, `logs` and `trace` against a real node."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasuki.cli import tasks
from tasuki.cli.own_node import OwnNode, free_port
from tasuki.cli.reach import Reach
from tasuki.cli.steady import Steady
from tests.cli.conftest import IMAGES, ROLE, Command, decoded, furnish

pytestmark = pytest.mark.clients


def test_start_prints_the_arn_and_watch_follows_to_the_end(tasuki: Command) -> None:
    started = tasuki("start", "hello", "--input", '{"a": 1}', "--name", "first")
    assert started.returncode == 0, started.stderr
    arn = started.stdout.strip()
    assert arn.endswith(":execution:hello:first")
    for name in (arn, "first", "hello:first"):
        watched = tasuki("watch", name)
        assert watched.returncode == 0
        assert "Only" in watched.stdout
        assert "SUCCEEDED" in watched.stdout


def test_a_failed_execution_is_exit_code_one(tasuki: Command) -> None:
    done = tasuki("start", "fails", "--watch")
    assert done.returncode == 1
    assert "Broken: on purpose" in done.stdout


def test_start_and_watch_name_the_execution_once(tasuki: Command) -> None:
    assert tasuki("start", "hello", "--watch").stdout.count(":execution:hello:") == 1


def test_express_machines_are_waited_for_and_stand_in_nobodys_way(tasuki: Command) -> None:
    latest = tasuki("start", "hello").stdout.strip()
    done = tasuki("start", "quick-hello", "--watch")
    assert (done.returncode, done.stdout.splitlines()[-1].split()[2:]) == (
        0,
        ["execution", "SUCCEEDED", '{"hello":"world"}'],
    )
    failed = tasuki("start", "quick-fails", "--watch")
    assert failed.returncode == 1
    assert "FAILED  Broken: on purpose" in failed.stdout
    assert decoded(tasuki("start", "quick-hello", "--watch", "--json"))["status"] == "SUCCEEDED"
    arn = tasuki("start", "quick-hello").stdout.strip()
    for command in ("watch", "history", "trace"):
        told = tasuki(command, arn)
        assert told.returncode == 1
        assert "keeps no history" in told.stderr
    assert tasuki("watch").stdout.splitlines()[0] == latest, "the latest that has one"
    assert tasuki("history").returncode == 0
    assert tasuki("watch", "quick-hello:x").returncode == 1


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        ("fails-task", ": exit 3"),
        ("absent", ": exit 127, CannotStartContainerError: exec no-such-command"),
        ("unmapped", 'CannotPullContainerError: image "unmapped" is not mapped'),
    ],
)
def test_why_a_task_failed_is_said(tasuki: Command, machine: str, why: str) -> None:
    done = tasuki("start", machine, "--watch")
    assert done.returncode == 1
    [failed] = [line for line in done.stdout.splitlines() if "runTask.sync failed" in line]
    assert why in failed
    assert "{" not in failed, "no cut JSON"
    assert done.stdout.splitlines()[-1].split()[3] == "FAILED"
    assert "States.TaskFailed: task" in done.stdout.splitlines()[-1]


def test_ps_all_has_a_reason_where_there_is_one(tasuki: Command) -> None:
    tasuki("start", "absent", "--watch")
    tasuki("start", "fails-task", "--watch")
    lines = tasuki("ps", "--all", environment={"COLUMNS": "300"}).stdout.splitlines()
    assert " reason " in lines[0]
    assert any("absent:1" in line and "CannotStartContainerError" in line for line in lines)
    assert not any("Essential container" in line for line in lines)


def test_history_as_json_is_what_the_api_says(tasuki: Command, node: OwnNode) -> None:
    arn = tasuki("start", "hello").stdout.strip()
    tasuki("watch", arn)
    events = decoded(tasuki("history", arn, "--json"))
    said = node.reach.client("stepfunctions").get_execution_history(executionArn=arn)["events"]
    assert [event["type"] for event in events] == [event["type"] for event in said]
    assert [event["id"] for event in events] == [1, 2, 3, 4]
    assert "ExecutionSucceeded" not in tasuki("history", arn).stdout, "for people it is SUCCEEDED"


@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_aliases_and_versions_are_started_and_watched(tasuki: Command, node: OwnNode, kind: str) -> None:
    name, states = f"aliased-{kind.lower()}", node.reach.client("stepfunctions")
    definition = json.dumps({"StartAt": "Only", "States": {"Only": {"Type": "Pass", "End": True}}})
    version = states.create_state_machine(name=name, definition=definition, roleArn=ROLE, type=kind, publish=True)[
        "stateMachineVersionArn"
    ]
    alias = states.create_state_machine_alias(
        name="live", routingConfiguration=[{"stateMachineVersionArn": version, "weight": 100}]
    )["stateMachineAliasArn"]
    for meant in (alias, version, f"{name}:live", f"{name}:1"):
        done = tasuki("start", meant, "--watch")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1].split()[3] == "SUCCEEDED"
    if kind == "STANDARD":
        assert states.describe_execution(executionArn=tasuki("watch", alias).stdout.split()[0])["stateMachineAliasArn"]


def test_a_machine_stands_for_its_latest_execution(tasuki: Command, node: OwnNode) -> None:
    [machine] = [arn for arn in decoded_machines(node) if arn.endswith(":stateMachine:hello")]
    tasuki("start", "hello", "--watch")
    latest = tasuki("start", "hello", "--watch").stdout.splitlines()[0]
    tasuki("start", "fails", "--watch")
    for meant in ("hello", machine):
        assert tasuki("watch", meant).stdout.splitlines()[0] == latest
        assert tasuki("history", meant).returncode == 0
    express = tasuki("watch", "quick-hello")
    assert express.returncode == 1
    assert "keeps no history" in express.stderr
    node.reach.client("stepfunctions").create_state_machine(
        name="idle",
        definition='{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}',
        roleArn=ROLE,
    )
    assert "idle has not been started yet" in tasuki("watch", "idle").stderr


def test_input_comes_from_a_file_too(tasuki: Command, tmp_path: Path, node: OwnNode) -> None:
    (tmp_path / "input.json").write_text('{"from": "file"}')
    arn = tasuki("start", "hello", "-i", f"@{tmp_path / 'input.json'}").stdout.strip()
    assert node.reach.client("stepfunctions").describe_execution(executionArn=arn)["input"] == '{"from": "file"}'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("start", "hello", "-i", "{"), "not JSON"),
        (("start", "hello", "-i", "@nowhere.json"), "No such file"),
    ],
)
def test_bad_input_is_a_usage_error(tasuki: Command, words: tuple[str, ...], said: str) -> None:
    done = tasuki(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_an_unknown_machine_lists_the_known_ones(tasuki: Command) -> None:
    done = tasuki("start", "helo")
    assert done.returncode == 1
    assert "no machine is called helo" in done.stderr
    assert "hello" in done.stderr


def test_an_unknown_execution_is_said_so(tasuki: Command) -> None:
    done = tasuki("watch", "never-was")
    assert done.returncode == 1
    assert "no execution is called never-was" in done.stderr


def test_a_running_task_is_seen_followed_and_read(tasuki: Command, node: OwnNode, gate: Path) -> None:
    arn = tasuki("start", "waits").stdout.strip()
    watching = subprocess.Popen(
        [sys.executable, "-m", "tasuki.cli.main", "watch", arn, "--data", str(node.data)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    lines = []
    for line in watching.stdout:
        lines.append(line)
        if "RUNNING pid" in line:
            break
    [row] = [row for row in decoded(tasuki("ps", "--json")) if row["image"] == "waits"]
    assert row["status"] == "RUNNING"
    assert f"pid {row['pid']}" in lines[-1]
    assert row["execution"] == arn
    shown = tasuki("ps", environment={"COLUMNS": "200"}).stdout
    assert str(row["task"]) in shown
    assert ":".join(arn.split(":")[-2:]) in shown

    following = subprocess.Popen(
        [sys.executable, "-m", "tasuki.cli.main", "logs", row["task"][:8], "--follow", "--data", str(node.data)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    assert following.stdout.readline() == "at it\n"
    with gate.open("w") as opened:
        opened.write("go\n")
    assert following.communicate(timeout=30)[0] == "through\n"
    assert following.returncode == 0
    rest, _ = watching.communicate(timeout=30)
    assert watching.returncode == 0
    assert "exit 0" in rest
    assert not [one for one in decoded(tasuki("ps", "--json")) if one["task"] == row["task"]]
    [ended] = [one for one in decoded(tasuki("ps", "--all", "--json")) if one["task"] == row["task"]]
    assert (ended["status"], ended["exit"], ended["pid"]) == ("STOPPED", 0, None)


def test_watch_and_logs_go_on_when_the_node_went_away_and_came_back(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "tasuki.toml").write_text(IMAGES + f'environment = {{ GATE = "{gate}" }}\n')
    (tmp_path / "d" / "tasuki.toml").chmod(0o600)
    with OwnNode(tmp_path / "d") as node:
        furnish(node.reach)

        def follow(*words: str) -> "subprocess.Popen[str]":
            command = [sys.executable, "-m", "tasuki.cli.main", *words, "--data", str(node.data)]
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        watching = follow("start", "waits", "--watch")
        assert watching.stdout is not None
        told = next(line for line in watching.stdout if "RUNNING pid" in line)
        logs = follow("logs", told.split()[2], "--follow")
        assert logs.stdout is not None
        assert logs.stderr is not None
        assert watching.stderr is not None
        assert logs.stdout.readline() == "at it\n"
        node.kill()
        for one in (watching, logs):
            assert one.stderr is not None
            assert "waiting for it" in one.stderr.readline()
        node.start()
        for one in (watching, logs):
            assert one.stderr is not None
            assert "the node is back" in one.stderr.readline()
        with gate.open("w") as opened:
            opened.write("go\n")
        assert logs.communicate(timeout=30)[0] == "through\n"
        seen, _ = watching.communicate(timeout=30)
        assert (watching.returncode, logs.returncode) == (0, 0)
        assert "SUCCEEDED" in seen


def test_logs_end_with_the_task_also_while_no_node_is_there(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "facts").write_text('{"phase": "ended", "containers": []}')
    nobody = Steady(Reach(f"http://127.0.0.1:{free_port()}", "test", "test"))
    nobody.away = True
    assert tasks.has_ended(nobody, "arn", tmp_path)
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "facts").write_text('{"phase": "running", "containers": []}')
    assert not tasks.has_ended(nobody, "arn", tmp_path), "the latest attempt counts"


def test_logs_hold_both_streams_as_text_and_as_json(tasuki: Command, node: OwnNode) -> None:
    arn = tasuki("start", "talks").stdout.strip()
    assert tasuki("watch", arn).returncode == 0
    output = json.loads(node.reach.client("stepfunctions").describe_execution(executionArn=arn)["output"])
    task = output["TaskArn"].rpartition("/")[2]
    assert tasuki("logs", task).stdout == "one\ntwo\n"
    lines = tasuki("logs", task, "--json").stdout.splitlines()
    assert [json.loads(line)["line"] for line in lines] == ["one", "two"]
    unknown = tasuki("logs", "feedfeed")
    assert unknown.returncode == 1
    assert "no task begins with feedfeed" in unknown.stderr


def test_trace_joins_message_handover_execution_and_task(tasuki: Command, node: OwnNode) -> None:
    sqs, pipes = node.reach.client("sqs"), node.reach.client("pipes")
    url = sqs.create_queue(QueueName="traced")["QueueUrl"]
    source = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    [machine] = [m for m in decoded_machines(node) if m.endswith(":talks")]
    pipes.create_pipe(
        Name="traced",
        RoleArn=ROLE,
        Source=source,
        SourceParameters={"SqsQueueParameters": {"BatchSize": 1}},
        Target=machine,
        TargetParameters={"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}},
        Tags={"tasuki:execution-name": "message-id"},
    )
    message = decoded(tasuki("queue", "send", "traced", '{"x": 1}', "--json"))["MessageId"]
    following = node.reach.client("stepfunctions")
    execution = machine.replace(":stateMachine:", ":execution:") + ":" + message
    while True:  # the hand-over happens at once; the store has no bell for clients
        try:
            following.describe_execution(executionArn=execution)
            break
        except following.exceptions.ExecutionDoesNotExist:
            continue
    assert tasuki("watch", execution).returncode == 0
    story = decoded(tasuki("trace", message, "--json"))
    assert (story["MessageId"], story["ExecutionArn"], story["Outcome"]) == (message, execution, "DELIVERED")
    assert [task["exit"] for task in story["Tasks"]] == [0]
    assert decoded(tasuki("trace", execution, "--json")) == story
    assert decoded(tasuki("trace", story["Trace"], "--json")) == story
    shown = tasuki("trace", message).stdout
    assert [line.split()[0] for line in shown.splitlines() if line[0] != " "] == [
        *("message", "handover", "execution", "task", "trace")
    ]


def decoded_machines(node: OwnNode) -> list[str]:
    listed = node.reach.client("stepfunctions").list_state_machines()["stateMachines"]
    return [machine["stateMachineArn"] for machine in listed]
