"""What arrives once, and what at least once, over a node that dies at each of its commits."""

from collections.abc import Callable, Iterator

import boto3
import pytest

from tasuki.testing import Kit, Run
from tests.kit.town import job, machine, queue, start, task_definition

SEND = "arn:aws:states:::sqs:sendMessage"


@pytest.fixture
def walks(house_factory: Callable[..., Kit], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Iterator[Kit]]:
    """Walk a job that says what it does, once for each commit at which the node dies, until there are no more of them."""

    def walk(*, machine_sends: bool) -> Iterator[Kit]:
        at = 1
        while True:
            house = house_factory()
            for name, value in house.environment.items():
                monkeypatch.setenv(name, value)
            monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
            url = queue("results")
            house.image("job", minutes=1, effect=None if machine_sends else sends(url))
            task_definition("job")
            send = {"Type": "Task", "Resource": SEND, "Parameters": {"QueueUrl": url, "MessageBody": "done"}}
            arn = machine("m", **{"Run": job("job"), **({"Send": send} if machine_sends else {})})
            house.crash(after=at)
            one = start(arn, name="one")
            house.advance(minutes=2)
            house.execution(one).assert_succeeded()
            yield house
            if house.lives == 1:
                house.crash(after=0)
                return
            at += 1

    return walk


def sends(url: str) -> Callable[[Run], None]:
    def effect(_: Run) -> None:
        boto3.client("sqs").send_message(QueueUrl=url, MessageBody="done")

    return effect


def test_what_the_machine_sends_arrives_once_wherever_the_node_dies(walks: Callable[..., Iterator[Kit]]) -> None:
    found = [house.queue("results").bodies for house in walks(machine_sends=True)]
    assert len(found) > 4, "there were that many commits to die at"
    assert found == [["done"]] * len(found)


def test_what_a_task_sends_arrives_at_least_once(walks: Callable[..., Iterator[Kit]]) -> None:
    """Never lost, and twice where its answer was: boto3 asks again. Documented, and as on AWS."""
    found = [house.queue("results").bodies for house in walks(machine_sends=False)]
    assert {len(bodies) for bodies in found} == {1, 2}
    assert {body for bodies in found for body in bodies} == {"done"}
