"""Adding an engine version to the dispatch story: one Choice rule, one task definition, one mapping line."""

import json
from pathlib import Path
from typing import Any

import pytest
from dispatch import stage

from tasuki.cli.own_node import OwnNode
from tests.clients.conftest import client_of, write_images
from tests.clients.test_boto3 import receive

pytestmark = pytest.mark.clients


def job(version: str) -> dict[str, Any]:
    return {"jobId": f"job-{version}", "version": version, "instance": "any", "seconds": 1}


def test_a_new_version_is_three_lines(tmp_path: Path) -> None:
    engines = {"routing_v1": "true", "routing_v2": "true"}
    write_images(tmp_path, **engines)
    with OwnNode(tmp_path) as node:
        boto = client_of(node)
        play = stage.build(node.reach)
        for version in ("v1", "v2", "v3"):
            play.send(job(version))
        assert {told["version"] for told in receive(boto, play.results_url, 2)} == {"v1", "v2"}
        [refused] = receive(boto, play.failures_url, 1)
        assert (refused["job"]["version"], refused["error"]) == ("v3", "UnknownVersion")

        # One mapping line; the node reads it when it starts.
        node.stop()
        write_images(tmp_path, **engines, routing_v3="true")
        node.start()
        # One task definition.
        stage.register(node.reach, "v3", "1")
        # One Choice rule.
        definition = json.loads(stage.machine_definition(play.results_url, play.failures_url, "1"))
        definition["States"]["WhichEngine"]["Choices"].append(
            {"Variable": "$.job.version", "StringEquals": "v3", "Next": "Solve"}
        )
        boto("stepfunctions").update_state_machine(stateMachineArn=play.machine_arn, definition=json.dumps(definition))

        play.send(job("v3") | {"jobId": "job-v3-again"})
        [told] = receive(boto, play.results_url, 1)
        assert told["version"] == "v3"
        assert told["taskDefinitionArn"].endswith("task-definition/routing-v3:1")
