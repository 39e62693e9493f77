"""The dispatch story's own checks: they must notice what they are there to notice."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from dispatch import engines, proof, reckoning, stage, story
from dispatch.board import Job

from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.stories import Options

INSTANCE = "X-n101-k25"
TASK = "arn:aws:ecs:us-east-1:000000000000:task/default/1"


def best_routes(name: str = INSTANCE) -> list[list[int]]:
    lines = (proof.INSTANCES / f"{name}.sol").read_text().splitlines()
    return [[int(word) for word in line.partition(":")[2].split()] for line in lines if line.startswith("Route")]


def written(folder: Path, **changed: Any) -> Path:
    target = folder / "job-1.json"
    told = {"instance": INSTANCE, "pid": 1, "cost": proof.best_known(INSTANCE), "routes": best_routes()}
    target.write_text(json.dumps(told | changed))
    return target


@pytest.mark.parametrize("source", sorted(proof.INSTANCES.glob("*.sol")), ids=lambda path: path.stem)
def test_the_best_known_solutions_hold(tmp_path: Path, source: Path) -> None:
    name = source.stem
    result = written(tmp_path, instance=name, routes=best_routes(name), cost=proof.best_known(name))
    found = proof.prove(result)
    assert (found.fault, found.gap_percent) == ("", 0.0)


def test_a_missing_customer_is_noticed(tmp_path: Path) -> None:
    [first, *rest] = best_routes()
    assert "every customer" in proof.prove(written(tmp_path, routes=[first[1:], *rest])).fault


def test_an_overloaded_vehicle_is_noticed(tmp_path: Path) -> None:
    [first, second, *rest] = best_routes()
    assert "overloaded" in proof.prove(written(tmp_path, routes=[first + second, *rest])).fault


def test_a_wrong_cost_is_noticed(tmp_path: Path) -> None:
    assert "was claimed" in proof.prove(written(tmp_path, cost=1)).fault


def finished(**changed: Any) -> Job:
    task = {
        "taskArn": TASK,
        "taskDefinitionArn": "arn:aws:ecs:us-east-1:000000000000:task-definition/routing-v1:1",
        "lastStatus": "STOPPED",
        "createdAt": "2026",
        "containers": [{"exitCode": 0}],
    }
    job = Job(
        "job-1",
        "v1",
        INSTANCE,
        1,
        tasks={TASK: task},
        results=[{"taskArn": TASK, "machineRelease": "1", "pipeRelease": "1"}],
    )
    for name, value in changed.items():
        setattr(job, name, value)
    return job


def test_a_finished_job_is_fine(tmp_path: Path) -> None:
    written(tmp_path)
    [row], verdict = reckoning.reckon([finished()], tmp_path)
    assert (verdict, row["end"], row["gap%"]) == ("", "ok", "0.0")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"results": []}, "0 results"),
        ({"results": finished().results * 2}, "2 results"),
        ({"failures": [{"error": "States.TaskFailed"}]}, "1 failures: States.TaskFailed"),
        ({"fate": "failure"}, "where one failure was due"),
        ({"tasks": {}}, "did not end with exit code 0"),
        ({"id": "job-2"}, "no result file"),
    ],
)
def test_what_is_not_as_it_should_be_is_the_verdict(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    written(tmp_path)
    assert said in reckoning.reckon([finished(**changed)], tmp_path)[1]


def test_a_failure_that_was_due_is_fine(tmp_path: Path) -> None:
    job = Job("job-v9", "v9", INSTANCE, 1, fate="failure", failures=[{"error": "UnknownVersion"}])
    assert reckoning.reckon([job], tmp_path)[1] == ""


def test_the_engines_read_instances_with_the_same_reader() -> None:
    one, other = ((engines.ENGINES / version / "instance.py").read_text() for version in engines.VERSIONS)
    assert one == other, "each engine folder is self-contained; change both"


def test_the_template_keeps_context_paths_and_fills_every_name() -> None:
    definition = stage.machine_definition("http://results", "http://failures", "7")
    assert "${" not in definition
    tell = json.loads(definition)["States"]["TellResult"]["Parameters"]
    assert tell["QueueUrl"] == "http://results"
    assert tell["MessageBody"]["execution.$"] == "$$.Execution.Name"
    assert tell["MessageBody"]["machineRelease"] == "7"


class Act:
    """A story that only begins and ends."""

    def __init__(self, data: Path, options: Options) -> None:
        (data / "node.log").write_text("last words")
        self.options = options

    def play(self) -> int:
        if self.options.crash:
            raise Complaint("the node did not start")
        return Code.NO if self.options.jobs > 6 else Code.DONE


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (Options(jobs=6), False),
        (Options(jobs=6, keep=True), True),
        (Options(jobs=7), True),
        (Options(crash=True), True),
    ],
)
def test_what_did_not_end_well_is_kept_for_a_look(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: Options,
    kept: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(story, "Story", Act)
    monkeypatch.setattr(engines, "missing", list)
    with suppress(Complaint):
        story.play(options)
    assert bool(list(tmp_path.rglob("node.log"))) == kept
    assert ("kept: " in capsys.readouterr().err) == kept
