"""Nodes that have not all the same images: a task goes to one that has its own, and waits for it rather than fail."""

from collections.abc import Iterator

import pytest

from tasuki.services.tasks import claiming, nodes
from tasuki.services.tasks.claiming import LOOKS
from tasuki.services.tasks.errors import ClientException
from tests.services.tasks.stage import IMAGES
from tests.services.tasks.test_nodes import One, Town, node_of


@pytest.fixture
def town() -> Iterator[Town]:
    """Node a lacks `forever`, node b has everything. a is asked first, always."""
    made = settled(Town())
    yield made
    made.house.close()


def settled(town: Town) -> Town:
    for name, images in (("a", ("quick", "hour")), ("b", IMAGES)):
        town.nodes[name] = One(town, name, images)
        assert town.nodes[name].join() == 0
    return town


def where(town: Town) -> list[str | None]:
    return [node_of(task) for task in town.tasks()]


def test_a_task_goes_to_the_node_that_has_its_image(town: Town) -> None:
    town.run("forever", count=3)
    assert where(town) == ["b"] * 3
    assert {task["lastStatus"] for task in town.tasks()} == {"RUNNING"}


def test_what_no_node_has_is_refused(town: Town) -> None:
    town.define("elsewhere")
    with pytest.raises(ClientException, match=r"a folder and a command on this node, nor on any other that is there"):
        town.call("RunTask", taskDefinition="elsewhere")


def test_room_is_counted_where_the_image_is(town: Town) -> None:
    ran = town.run("forever", count=5)
    assert (len(ran["tasks"]), {one["reason"] for one in ran["failures"]}) == (3, {"RESOURCE:MEMORY"})
    assert "on 1 nodes that have its image together, of 200 MiB" in ran["failures"][0]["detail"]


def test_what_is_left_to_another_holds_nobody_up() -> None:
    """Many that a leaves, of many definitions, wait in front of one that it can start; and a large one for over a minute."""
    town = settled(Town(memory_mib=1000))
    a, b = town.nodes["a"], town.nodes["b"]
    b.lives = False
    town.run("hour", memory=500)
    town.define("forever", memory=600)
    town.call("RunTask", taskDefinition="forever")
    for _ in range(4 * LOOKS + 1):
        town.define("stubborn", memory=6)
        assert town.call("RunTask", taskDefinition="stubborn")["tasks"]
    town.run("hour", memory=300)
    assert len(a.runner.started) == 2
    town.house.advance(seconds=61)
    a.renew()
    b.renew()
    town.run("hour", memory=200)
    assert [launch.containers[0].image for launch in a.runner.started] == ["hour"] * 3
    assert where(town).count(None) == 4 * LOOKS + 2
    b.lives = True
    town.house.advance(seconds=1)
    assert where(town).count("b") == 4 * LOOKS + 2
    town.house.close()


def test_a_node_is_not_woken_for_what_it_leaves(town: Town) -> None:
    town.nodes["b"].lives = False
    town.run("forever")
    a = town.nodes["a"]
    assert not town.house.look(lambda tx: claiming.waiting(tx, town.setting, a.here))


def test_a_silent_node_may_come_back_and_one_that_was_stopped_or_given_up_is_not_waited_for(town: Town) -> None:
    town.nodes["b"].lives = False
    town.run("forever")
    town.house.advance(seconds=500)
    assert where(town) == [None]
    town.give_up("b")
    town.house.advance(seconds=5)
    town.house.bell.ring("tasks")
    town.house.drain()
    (task,) = town.tasks()
    assert (node_of(task), task["stopCode"]) == ("a", "TaskFailedToStart")
    reason = task["stoppedReason"]
    assert reason.startswith(
        'CannotPullContainerError: image "forever" is not mapped to a folder and a command on node a '
    )
    assert "(host-of-a), nor on any other that is there. Add to /data/tasuki.toml" in reason
    town.nodes["b"].lives = True
    town.nodes["b"].renew()
    town.house.unit(lambda tx: nodes.leave(tx, town.nodes["b"].here))
    town.nodes["b"].lives = False
    town.nodes["a"].renew()
    town.run("forever")
    assert where(town) == ["a", "a"]
