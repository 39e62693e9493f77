"""`tasuki clock` and the operations behind it, on real nodes whose clock is moved by hand: plays of days in a moment."""

import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tasuki.cli.complaints import Complaint
from tasuki.cli.own_node import OwnNode, free_port
from tasuki.cli.trace import call_house
from tasuki.values.config import read_config
from tasuki.values.errors import ConfigError
from tests.cli.conftest import ROLE, Command, Done, decoded, run

if TYPE_CHECKING:
    from tasuki.cli.reach import Reach

pytestmark = pytest.mark.clients

IMAGES = """
[images.naps]
folder = "."
command = ["sh", "-c", "sleep 0.3; echo $TASUKI_NOW"]

[images.lasts]
folder = "."
command = ["sh", "-c", "exec sleep 600"]
"""
SCRIPTS = """
[images.hour]
scripted = { duration = "61m", output = "solved" }

[images.fails]
scripted = { duration = "5s", exit_code = 3 }

[images.swells]
scripted = { duration = "2m", memory = "300MiB" }
"""
DAY = timedelta(days=1)


class Stand:
    """A node with a clock that stands still, and what tests do with it."""

    def __init__(self, node: OwnNode) -> None:
        self.node = node
        self._reach: Reach | None = None

    def clock(self, *words: str) -> Done:
        return run("clock", *words, environment={"TASUKI_DATA": str(self.node.data)})

    def ask(self, operation: str, **given: Any) -> dict[str, Any]:
        answer: dict[str, Any] = call_house(self.node.reach, operation, given, answer_within_s=70)
        return answer

    def advance(self, by: str, **given: Any) -> dict[str, Any]:
        return self.ask("AdvanceClock", By=by, WaitSeconds=50, **given)

    @property
    def now(self) -> datetime:
        return datetime.fromisoformat(self.ask("GetClock")["Now"])

    def client(self, service: str) -> Any:
        if self._reach is None or self._reach.pid != self.node.pid:  # a client takes a while to be made
            self._reach = self.node.reach
        return self._reach.client(service)

    def machine(self, name: str, states: dict[str, Any]) -> str:
        definition = json.dumps({"StartAt": next(iter(states)), "States": states})
        made = self.client("stepfunctions").create_state_machine(name=name, definition=definition, roleArn=ROLE)
        return str(made["stateMachineArn"])

    def start(self, machine: str, given: Any = None) -> str:
        text = json.dumps(given or {})
        return str(self.client("stepfunctions").start_execution(stateMachineArn=machine, input=text)["executionArn"])

    def told(self, execution: str) -> dict[str, Any]:
        told: dict[str, Any] = self.client("stepfunctions").describe_execution(executionArn=execution)
        return told


def manual(data: Path, scripts: str = "") -> OwnNode:
    data.mkdir(mode=0o700, exist_ok=True)
    (data / "tasuki.toml").write_text(IMAGES + scripts)
    (data / "tasuki.toml").chmod(0o600)
    return OwnNode(data, options=("--clock", "manual"))


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with manual(tmp_path_factory.mktemp("clock") / "data", SCRIPTS) as node:
        for image in ("naps", "lasts", "hour", "fails", "swells"):
            node.reach.client("ecs").register_task_definition(
                family=image, containerDefinitions=[{"name": "main", "image": image, "memory": 32}]
            )
        yield Stand(node)


def task_state(image: str, **more: Any) -> dict[str, Any]:
    given = {"TaskDefinition": image}
    return {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "Parameters": given, **more, "End": True}


def test_show_advance_set_run_and_stop(stand: Stand) -> None:
    shown = decoded(stand.clock("show", "--json"))
    assert (shown["kind"], shown["speed"], shown["busy"]) == ("manual", 0, [])
    assert shown["next"]["at"] > shown["now"]
    before = datetime.fromisoformat(shown["now"])
    moved = decoded(stand.clock("advance", "1d12h", "--json"))
    assert datetime.fromisoformat(moved["now"]) == before + 1.5 * DAY == stand.now
    assert moved["visited"] >= 1
    assert set(moved["counts"]) >= {"ExecutionsStarted", "MessagesSent", "ScheduleTicks", "TriesFailed"}
    there = (before + 2 * DAY).astimezone().isoformat()
    assert decoded(stand.clock("set", there, "--json"))["now"] == stand.ask("GetClock")["Now"]
    assert stand.now == before + 2 * DAY
    assert "it stands still" in stand.clock("show").stdout
    assert decoded(stand.clock("run", "--speed", "3600", "--json"))["speed"] == 3600
    busy = stand.clock("advance", "1h")
    assert (busy.returncode, "Stop it first" in busy.stderr) == (1, True)
    while stand.now <= before + 2 * DAY:
        pass
    assert decoded(stand.clock("stop", "--json"))["speed"] == 0
    stopped = stand.now
    assert stand.now == stopped


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("advance", "soon"), 2, '"soon" is no duration; write 90 (seconds), 36h'),
        (("advance", "-1h"), 2, "-1"),
        (("set", "2026-10-10T01:00:00"), 2, "does not say its zone"),
        (("set", "tomorrow"), 2, '"tomorrow" is no instant'),
        (("set", "2001-10-10T01:00:00Z"), 1, "never goes back"),
        (("run", "--speed", "1e9"), 1, "Speed must be between 0 and 86400"),
        (("run", "--speed", "nan"), 2, "--speed nan: give a number"),
        (("advance", "1h", "--patience", "inf"), 2, "--patience inf: give a number"),
    ],
)
def test_what_makes_no_sense_is_refused_and_moves_nothing(
    stand: Stand, words: tuple[str, ...], code: int, said: str
) -> None:
    before = stand.now
    done = stand.clock(*words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert stand.now == before


@pytest.mark.parametrize(
    ("operation", "given", "said"),
    [
        ("AdvanceClock", {}, "Give either By"),
        ("AdvanceClock", {"By": "1h", "To": "2030-01-01T00:00:00Z"}, "Give either By"),
        ("AdvanceClock", {"By": "1h", "WaitSeconds": 51}, "WaitSeconds must be between 0 and 50"),
        ("AdvanceClock", {"By": "1h", "PatienceSeconds": -1}, "PatienceSeconds must be between"),
        ("AdvanceClock", {"To": "9999-12-31T23:59:59.999Z"}, "year 9999"),
        ("AdvanceClock", {"By": "1h", "PatienceSeconds": 10**400}, "PatienceSeconds must be between"),
        ("RunClock", {}, "Give Speed"),
    ],
)
def test_a_request_that_makes_no_sense_names_the_field(
    stand: Stand, operation: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(Complaint, match=said):
        stand.ask(operation, **given)


def test_a_node_whose_clock_is_real_says_how_to_start_one_that_can_be_moved(tasuki: Command) -> None:
    assert decoded(tasuki("clock", "show", "--json"))["kind"] == "real"
    assert "by the machine's clock" in tasuki("clock", "show").stdout
    for words in (("advance", "1h"), ("set", "2040-01-01T00:00:00Z"), ("run",), ("stop",)):
        done = tasuki("clock", *words)
        assert done.returncode == 1
        assert "ValidationException: This node's clock is real" in done.stderr
        assert "--clock manual" in done.stderr


def test_a_wait_of_thirty_days_takes_a_moment(stand: Stand) -> None:
    arn = stand.start(stand.machine("month", {"W": {"Type": "Wait", "Seconds": 30 * 86400, "End": True}}))
    began = time.monotonic()
    said = stand.advance("30d")
    assert said["Arrived"]
    assert time.monotonic() - began < 10, "generous: it takes some tens of milliseconds"
    told = stand.told(arn)
    assert told["status"] == "SUCCEEDED"
    assert told["stopDate"] - told["startDate"] == 30 * DAY
    assert said["Counts"]["ExecutionsSucceeded"] == 1


def test_what_happened_is_counted_though_it_is_forgotten_on_the_way(stand: Stand) -> None:
    target = {"Arn": stand.machine("nightly", {"P": {"Type": "Pass", "End": True}}), "RoleArn": ROLE}
    schedules = stand.client("scheduler")
    given = {"Name": "nightly", "ScheduleExpression": "cron(0 1 * * ? *)", "FlexibleTimeWindow": {"Mode": "OFF"}}
    schedules.create_schedule(**given, Target=target)
    counts = stand.advance("200d")["Counts"]
    schedules.delete_schedule(Name="nightly")
    assert counts["ScheduleTicks"] == counts["Deliveries"] == 200
    assert counts["ExecutionsStarted"] == counts["ExecutionsSucceeded"] == 200


def test_a_task_that_really_runs_is_waited_for_and_its_times_are_the_houses(stand: Stand) -> None:
    arn = stand.start(stand.machine("naps", {"T": task_state("naps", TimeoutSeconds=60)}))
    before = stand.now
    said = stand.advance("1h")
    assert said["Arrived"]
    assert said["Counts"]["TasksStopped"] == 1
    told = stand.told(arn)
    assert (told["status"], told["stopDate"]) == ("SUCCEEDED", before), "at the instant at which it ran"
    task = json.loads(told["output"])
    assert {task[key] for key in ("CreatedAt", "StartedAt", "StoppedAt")} == {int(before.timestamp() * 1000)}
    logged = run("logs", task["TaskArn"], environment={"TASUKI_DATA": str(stand.node.data)}).stdout.strip()
    assert datetime.fromisoformat(logged) == before


def test_a_task_that_goes_on_and_on_loses_our_patience_and_meets_its_timeout(stand: Stand) -> None:
    arn = stand.start(stand.machine("lasts", {"T": task_state("lasts", TimeoutSeconds=600)}))
    before = stand.now
    held = stand.ask("AdvanceClock", By="1h", WaitSeconds=0.2)
    assert (held["Arrived"], held["Busy"]) == (False, ["1 task that runs"])
    assert stand.now == before
    said = stand.advance("1h", PatienceSeconds=0.1)
    assert said["Arrived"]
    told = stand.told(arn)
    assert (told["status"], told["error"]) == ("FAILED", "States.Timeout")
    assert told["stopDate"] == before + timedelta(seconds=600)


def test_images_that_are_scripted_take_house_time_and_outlast_the_node(stand: Stand) -> None:
    before = stand.now
    arns = {
        image: stand.start(stand.machine(f"scripted-{image}", {"T": task_state(image)}))
        for image in ("hour", "fails", "swells")
    }
    assert stand.advance("1h")["Arrived"]
    stand.node.kill()
    stand.node.start()
    assert stand.told(arns["hour"])["status"] == "RUNNING"
    assert stand.advance("1h")["Arrived"]
    ended = {image: stand.told(arn) for image, arn in arns.items()}
    seconds = {image: (told["stopDate"] - before).total_seconds() for image, told in ended.items()}
    assert seconds == {"hour": 3660, "fails": 5, "swells": 120}
    tasks = {image: json.loads(told["output"] if image == "hour" else told["cause"]) for image, told in ended.items()}
    codes = {image: task["Containers"][0]["ExitCode"] for image, task in tasks.items()}
    assert codes == {"hour": 0, "fails": 3, "swells": 137}
    assert "OutOfMemory" in tasks["swells"]["Containers"][0]["Reason"]
    logged = run("logs", tasks["hour"]["TaskArn"], environment={"TASUKI_DATA": str(stand.node.data)})
    assert logged.stdout == "solved"


def test_a_scripted_image_that_is_stopped_ends_at_that_instant(stand: Stand) -> None:
    ecs, before = stand.client("ecs"), stand.now
    task = ecs.run_task(taskDefinition="hour")["tasks"][0]["taskArn"]
    stand.advance("10m")
    ecs.stop_task(task=task, reason="enough")
    stand.advance("1s")
    (told,) = ecs.describe_tasks(tasks=[task])["tasks"]
    assert (told["lastStatus"], told["stopCode"], told["stoppedReason"]) == ("STOPPED", "UserInitiated", "enough")
    assert (told["containers"][0]["exitCode"], told["executionStoppedAt"]) == (143, before + timedelta(minutes=10))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('{ duration = "61m" }\ncommand = ["sh"]', "leave out command"),
        ("{ duration = 61 }", 'scripted.duration must be text like "61m"'),
        ('{ duration = "long" }', 'scripted.duration must be text like "61m"'),
        ("{ exit_code = 300 }", "scripted.exit_code must be a whole number"),
        ('{ memory = "much" }', 'scripted.memory must be text like "300MiB"'),
        ("{ output = 1 }", "scripted.output must be text"),
        ("{ length = 1 }", "unknown key length; known are duration"),
        ('"61m"', "scripted must be a table"),
    ],
)
def test_a_script_that_makes_no_sense_names_the_key(tmp_path: Path, entry: str, said: str) -> None:
    file = tmp_path / "tasuki.toml"
    file.write_text(f"[images.job]\nscripted = {entry}\n")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=re.escape(said)):
        read_config(tmp_path, clock="manual")


def test_a_scripted_image_needs_a_clock_that_is_moved_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "tasuki.toml"
    file.write_text('[images.job]\nscripted = { duration = "61m" }\n')
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="start the node with --clock manual"):
        read_config(tmp_path, clock="real")
    assert read_config(tmp_path).images["job"].scripted is not None, "commands that start no node read it as well"


def test_a_house_that_is_killed_while_its_clock_is_moved_goes_on_where_it_stood(tmp_path: Path) -> None:
    """Nothing is lost, nothing happens twice, and everything at its own instant, however often the node is killed."""
    node, count = manual(tmp_path / "data"), 150
    stand = Stand(node)
    try:
        node.start()
        queue = stand.client("sqs").create_queue(QueueName="done", Attributes={"MessageRetentionPeriod": "1209600"})[
            "QueueUrl"
        ]
        send = {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage",
            "Parameters": {"QueueUrl": queue, "MessageBody.$": "States.Format('{} {}', $.n, $$.State.EnteredTime)"},
            "End": True,
        }
        machine = stand.machine("waits", {"W": {"Type": "Wait", "SecondsPath": "$.s", "Next": "S"}, "S": send})
        began = stand.now
        arns = [stand.start(machine, {"n": n, "s": n * 3600}) for n in range(1, count + 1)]
        for kills in (1, 2, 3):
            seen = stand.now
            moving = threading.Thread(target=attempt, args=(stand, began + timedelta(hours=count + 1)))
            moving.start()
            while seen < began + kills * timedelta(hours=count // 5):
                seen = stand.now
            node.kill()
            moving.join()
            node.start()
            assert stand.now >= seen, "time never runs back"
        assert stand.now < began + timedelta(hours=count), "it was killed on the way"
        to = (began + timedelta(hours=count + 1)).isoformat()
        assert stand.ask("AdvanceClock", To=to, WaitSeconds=50)["Arrived"]
        for n, arn in enumerate(arns, 1):
            told = stand.told(arn)
            assert (told["status"], told["stopDate"]) == ("SUCCEEDED", began + timedelta(hours=n))
        bodies = Counter(received(stand.client("sqs"), queue))
        hours = {n: datetime.fromisoformat(at) - began for n, at in (body.split() for body in bodies)}
        assert set(bodies.values()) == {1}
        assert hours == {str(n): timedelta(hours=n) for n in range(1, count + 1)}
    finally:
        node.stop()


def test_a_command_whose_node_is_killed_on_the_way_says_how_to_go_on(tmp_path: Path) -> None:
    node = manual(tmp_path / "data")
    stand = Stand(node)
    try:
        node.start()
        stand.client("ecs").register_task_definition(
            family="lasts", containerDefinitions=[{"name": "main", "image": "lasts", "memory": 32}]
        )
        stand.start(stand.machine("lasts", {"T": task_state("lasts")}))
        to = (stand.now + 2 * timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        words = [sys.executable, "-m", "tasuki.cli.main", "clock", "advance", "2h", "--data", str(node.data)]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as moving:
            assert moving.stderr is not None
            first = moving.stderr.readline()  # it waits for the task, and said so
            node.kill()
            rest = moving.stderr.read()
        node.start()
        [task] = stand.client("ecs").list_tasks()["taskArns"]
        stand.client("ecs").stop_task(task=task)
        while stand.client("ecs").describe_tasks(tasks=[task])["tasks"][0]["lastStatus"] != "STOPPED":
            pass  # it ends at once, and would outlive the node otherwise
        assert stand.clock("set", to).returncode == 0, "as it was told"
    finally:
        node.stop()
    assert "at work: 1 task" in first
    assert moving.returncode == 6
    assert f"the node went away on the way to {to}" in rest
    assert f"tasuki up --data {node.data} --dev --clock manual\n" in rest
    assert f"tasuki clock set {to}\n" in rest


def attempt(stand: Stand, to: datetime) -> None:
    """Move the clock, until the node is killed."""
    try:
        stand.ask("AdvanceClock", To=to.isoformat(), WaitSeconds=50)
    except Exception:  # noqa: BLE001 - that is what it is killed for
        return


def received(sqs: Any, queue: str) -> Iterator[str]:
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
        for one in messages:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=one["ReceiptHandle"])
            yield one["Body"]


def refused(data: Path, *options: str) -> str:
    """Start a node that is not let in; answer why."""
    command = [sys.executable, "-m", "tasuki.cli.main", "up", "--data", str(data), "--port", str(free_port()), "--dev"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, (done.stdout, done.stderr)
    return done.stderr


def test_where_it_stands_outlasts_the_node_and_time_does_not_run_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with OwnNode(data):
        pass  # a house whose clock is real ...
    with manual(data) as node:  # ... may be moved by hand from now on
        stand = Stand(node)
        began = stand.now
        assert began.microsecond == 0
        assert abs(began.timestamp() - time.time()) < 30
        stand.advance("36h")
    with manual(data) as node:
        assert Stand(node).now == began + 1.5 * DAY
    why = refused(data)
    assert "time must not run back" in why
    for fix in ("--clock manual", "another data directory", f"wait until {began + 1.5 * DAY:%Y-%m-%dT%H:%M:%S}.000Z"):
        assert fix in why
    assert "a clock is real, or manual" in refused(data, "--clock", "fast")


def test_a_house_whose_clock_is_not_ahead_may_go_by_the_real_one_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with manual(data) as node:
        stood = Stand(node).now
    while time.time() < stood.timestamp():
        pass  # it began at the whole second to come
    with OwnNode(data) as node:
        assert Stand(node).ask("GetClock")["Kind"] == "real"
    with manual(data) as node:
        assert Stand(node).now > stood, "from then on, and not where it stood once"


@pytest.fixture
def shared(tmp_path: Path, postgres_url: str) -> Iterator[Callable[..., OwnNode]]:
    made: list[OwnNode] = []

    def node(name: str, *options: str) -> OwnNode:
        made.append(OwnNode(tmp_path / name, options=("--store", postgres_url, *options)))
        return made[-1]

    yield node
    for one in made:
        one.stop()


def test_a_clock_that_is_moved_by_hand_is_for_one_node_alone(
    shared: Callable[..., OwnNode], tmp_path: Path, postgres_url: str
) -> None:
    a = shared("a", "--clock", "manual")
    a.start()
    stand = Stand(a)
    began = stand.now
    arn = stand.start(stand.machine("waits", {"W": {"Type": "Wait", "Seconds": 86400, "End": True}}))
    assert stand.advance("2d")["Arrived"]
    assert stand.told(arn)["stopDate"] == began + DAY
    (tmp_path / "b").mkdir()
    store = ("--store", postgres_url)
    assert "moved by hand, on node" in refused(tmp_path / "b", *store)
    assert "is for a node that is alone" in refused(tmp_path / "b", *store, "--clock", "manual")
    a.kill()
    a.start()
    assert stand.now == began + 2 * DAY
    a.stop()
    assert "time must not run back" in refused(tmp_path / "b", *store)


def test_a_node_whose_clock_would_be_moved_does_not_join_others(
    shared: Callable[..., OwnNode], tmp_path: Path, postgres_url: str
) -> None:
    shared("a").start()
    (tmp_path / "b").mkdir()
    assert "is for a node that is alone" in refused(tmp_path / "b", "--store", postgres_url, "--clock", "manual")
