"""Events, API destinations and long waits in a test's house."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest

from tasuki.testing import Kit
from tests.kit.town import machine, queue, start

ROLE = "arn:aws:iam::000000000000:role/any"


def put(detail: Any, bus: str = "default") -> None:
    entry = {"Source": "shop", "DetailType": "order", "Detail": json.dumps(detail), "EventBusName": bus}
    assert boto3.client("events").put_events(Entries=[entry])["FailedEntryCount"] == 0


def test_events_of_a_bus_are_recorded_from_when_it_is_asked_for(house: Kit) -> None:
    boto3.client("events").create_event_bus(Name="orders")
    put({"n": 0}, "orders")
    house.record_events("orders")
    house.advance(minutes=5)
    put({"n": 1}, "orders")
    put({"n": 2})
    [one] = house.events("orders")
    assert (one.source, one.detail_type, one.detail, one.time) == ("shop", "order", {"n": 1}, house.now)


def test_each_bus_has_its_own_record_whatever_it_is_called(house: Kit) -> None:
    buses = ["shop.orders", "shop_orders", "o" * 100, "o" * 101]
    for bus in buses:
        boto3.client("events").create_event_bus(Name=bus)
        house.record_events(bus)
        put({"bus": bus}, bus)
    assert [[one.detail["bus"] for one in house.events(bus)] for bus in buses] == [[bus] for bus in buses]


def test_events_are_kept_for_two_weeks_and_who_asks_later_is_told(house: Kit) -> None:
    house.record_events()
    put({"n": 1})
    house.advance(days=13)
    assert [one.detail for one in house.events()] == [{"n": 1}]
    put({"n": 2})
    house.advance(days=2)
    with pytest.warns(UserWarning, match=r"bus 'default' more than 14 days ago is gone \(1 of its events\)"):
        assert [one.detail for one in house.events()] == [{"n": 2}]


def test_the_houses_own_events_are_recorded_too(house: Kit) -> None:
    house.record_events()
    arn = start(machine("m", P={"Type": "Pass"}))
    statuses = [one.detail["status"] for one in house.events() if one.source == "aws.states"]
    assert statuses == ["RUNNING", "SUCCEEDED"]
    assert {one.detail["executionArn"] for one in house.events()} == {arn}


def test_events_that_nobody_asked_to_record(house: Kit) -> None:
    with pytest.raises(LookupError, match=r'say house\.record_events\("default"\) before'):
        house.events()


class Server(ThreadingHTTPServer):
    """A server of the test's own, which is down for its first requests."""

    def __init__(self, down: int) -> None:
        self.down, self.heard = down, list[Any]()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        said = self.rfile.read(int(self.headers["content-length"]))
        self.server.heard.append(json.loads(said))
        self.server.down -= 1
        self.send_response(503 if self.server.down >= 0 else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_words: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(down=1) as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def test_a_server_of_the_test_is_called_and_called_again_in_house_time(house: Kit, server: Server) -> None:
    events = boto3.client("events")
    connection = events.create_connection(
        Name="c",
        AuthorizationType="API_KEY",
        AuthParameters={"ApiKeyAuthParameters": {"ApiKeyName": "x-key", "ApiKeyValue": "secret"}},
    )
    destination = events.create_api_destination(
        Name="d",
        ConnectionArn=connection["ConnectionArn"],
        InvocationEndpoint=f"http://127.0.0.1:{server.server_port}/orders",
        HttpMethod="POST",
    )
    events.put_rule(Name="r", EventPattern='{"source": ["shop"]}')
    events.put_targets(
        Rule="r",
        Targets=[{"Id": "t", "Arn": destination["ApiDestinationArn"], "RoleArn": ROLE, "InputPath": "$.detail"}],
    )
    put({"n": 1})
    assert server.heard == [{"n": 1}], "the answer to PutEvents came after it"
    house.advance(hours=1)
    assert server.heard == [{"n": 1}, {"n": 1}]
    house.advance(days=1)
    assert len(server.heard) == 2
    house.crash()
    put({"n": 2})
    assert server.heard[2:] == [{"n": 2}], "the next node calls it, too"


def test_a_synchronous_execution_ends_when_another_thread_moves_the_clock(house: Kit) -> None:
    definition = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 30, "End": True}}}
    states = boto3.client("stepfunctions")
    arn = states.create_state_machine(name="x", type="EXPRESS", definition=json.dumps(definition), roleArn=ROLE)
    answers: list[Any] = []
    caller = threading.Thread(
        target=lambda: answers.append(states.start_sync_execution(stateMachineArn=arn["stateMachineArn"]))
    )
    caller.start()
    while caller.is_alive():
        house.advance(seconds=10)
        caller.join(0.05)
    assert answers[0]["status"] == "SUCCEEDED"


def test_many_threads_may_ask_at_once(house: Kit) -> None:
    url = queue("jobs")
    sqs = boto3.client("sqs")
    arn = machine("wait", W={"Type": "Wait", "Seconds": 5})
    begun = threading.Barrier(4)

    def work(n: int) -> None:
        begun.wait()
        for k in range(10):
            sqs.send_message(QueueUrl=url, MessageBody=f"{n}.{k}")
            house.client("stepfunctions").start_execution(stateMachineArn=arn)

    house.client("stepfunctions")
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    house.advance(seconds=5)
    assert sorted(one.body for one in house.queue("jobs").messages) == sorted(
        f"{n}.{k}" for n in range(4) for k in range(10)
    )
    assert {one.status for one in house.executions("wait")} == {"SUCCEEDED"}
    assert len(house.executions("wait")) == 40
