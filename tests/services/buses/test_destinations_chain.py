"""API destinations at the end of rules and in the middle of pipes: real rooms, a real courier, a real server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tasuki.runtime.courier import Courier
from tasuki.services import buses, deliveries, handovers, machines, pipes, queues
from tasuki.testing import House
from tasuki.values.config import Config
from tasuki.values.instant import Instant, to_iso
from tasuki.values.operations import Principal, Request
from tests.services.buses.destinations_stage import BASIC, LOOPBACK, Server

ROLE = "arn:aws:iam::000000000000:role/any"
ARN = "arn:aws:sqs:us-east-1:000000000000:"


class Chain:
    """A house with queues, buses and pipes, a destination, and a queue for dead letters."""

    name, topics = "courier", ("courier",)

    def __init__(self) -> None:
        rooms = (handovers.room, queues.room, machines.room, pipes.room, deliveries.room, buses.room)
        self.house = House(*rooms, duties=(lambda _house: self,), config=Config(data=Path(), dev=True))
        self.courier = Courier(
            store=self.house.store,
            switchboard=self.house.switchboard,
            bell=self.house.bell,
            clock=self.house.clock,
            real_clock=self.house.clock,
            outbound=LOOPBACK,
            waits=True,
        )
        self.house._run(self._open())
        self.urls = {
            name: self.house.call("sqs", "CreateQueue", QueueName=name)["QueueUrl"] for name in ("in", "out", "dead")
        }
        given = {"Name": "c", "AuthorizationType": "BASIC", "AuthParameters": BASIC}
        self.connection = self.house.call("events", "CreateConnection", given)["ConnectionArn"]

    async def _open(self) -> None:
        self.server = Server()
        await self.server.server.start_server()

    async def round(self) -> Instant | None:
        return await self.courier.round()

    def destination(self, path: str = "/in", **more: Any) -> str:
        given = {
            "Name": "hook",
            "ConnectionArn": self.connection,
            "InvocationEndpoint": self.server.url + path,
            "HttpMethod": "POST",
            **more,
        }
        return str(self.house.call("events", "CreateApiDestination", given)["ApiDestinationArn"])

    def rule(self, target: str, **more: Any) -> None:
        self.house.call("events", "PutRule", Name="r", EventPattern='{"source":["shop"]}')
        given = {"Id": "1", "Arn": target, "RoleArn": ROLE, "DeadLetterConfig": {"Arn": ARN + "dead"}, **more}
        put = self.house.call("events", "PutTargets", Rule="r", Targets=[given])
        assert put["FailedEntryCount"] == 0, put

    def event(self, **detail: Any) -> None:
        entry = {"Source": "shop", "DetailType": "order", "Detail": json.dumps(detail)}
        assert self.house.call("events", "PutEvents", Entries=[entry])["FailedEntryCount"] == 0
        self.house.drain()

    def listed(self) -> list[dict[str, Any]]:
        place = (self.house.config.account, self.house.config.region)
        request = Request("tasuki", "ListDeliveries", {}, "r", Principal("test"), *place, "http://127.0.0.1:4566")
        operation = self.house.switchboard.house["ListDeliveries"]
        answer = self.house.look(lambda tx: operation.run(tx, request))
        assert isinstance(answer, dict)
        return list(answer["Deliveries"])

    def received(self, queue: str) -> list[dict[str, Any]]:
        given = {"QueueUrl": self.urls[queue], "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
        return list(self.house.call("sqs", "ReceiveMessage", given).get("Messages", []))

    def close(self) -> None:
        self.server.held.set()
        self.house._run(self.courier.close())
        self.house._run(self.server.server.close())
        self.house.close()


@pytest.fixture
def chain() -> Iterator[Chain]:
    made = Chain()
    yield made
    made.close()


def test_a_rule_calls_with_values_of_the_event(chain: Chain) -> None:
    parameters = {
        "PathParameterValues": ["$.detail.id"],
        "HeaderParameters": {"X-Event": "$.id"},
        "QueryStringParameters": {"kind": "$.detail-type"},
    }
    chain.rule(chain.destination("/orders/*"), HttpParameters=parameters)
    chain.event(id="a/7")
    [(request, body)] = chain.server.heard
    event = json.loads(body)
    assert (request.raw_path, request.headers["X-Event"]) == ("/orders/a%2F7?kind=order", event["id"])
    assert event["detail"] == {"id": "a/7"}
    assert chain.received("dead") == []


def test_what_comes_to_nothing_is_a_dead_letter_at_once(chain: Chain) -> None:
    chain.rule(chain.destination())
    chain.server.answers = [web.Response(status=404, text="no such order")]
    chain.event(id=1)
    [letter] = chain.received("dead")
    attributes = {name: value["StringValue"] for name, value in letter["MessageAttributes"].items()}
    assert attributes["ERROR_CODE"] == "SDK_CLIENT_ERROR"
    said = (
        "Unable to invoke ApiDestination endpoint: API destination returned HTTP status 404 with payload: no such order"
    )
    assert attributes["ERROR_MESSAGE"] == said
    assert attributes["RETRY_ATTEMPTS"] == "0"
    assert len(chain.server.heard) == 1


def test_a_server_that_is_down_is_tried_again_and_not_before_it_says(chain: Chain) -> None:
    chain.rule(chain.destination())
    chain.server.answers = [web.Response(status=503, headers={"Retry-After": "600"}), web.Response(status=500)]
    chain.event(id=1)
    chain.house.advance(ms=599_999)
    assert len(chain.server.heard) == 1
    chain.house.advance(ms=1)
    assert len(chain.server.heard) == 2
    chain.house.advance(hours=1)
    assert len(chain.server.heard) == 3
    assert len({request.headers["Idempotency-Key"] for request, _ in chain.server.heard}) == 3  # each try is a call
    chain.house.advance(hours=24)
    assert (len(chain.server.heard), chain.received("dead")) == (3, [])


def test_a_call_that_its_destinations_rate_holds_back_says_when_its_turn_comes(chain: Chain) -> None:
    chain.rule(chain.destination(InvocationRateLimitPerSecond=1))
    chain.event(id=1)
    chain.event(id=2)
    chain.event(id=3)
    assert len(chain.server.heard) == 1
    now = chain.house.clock.now()
    told = chain.listed()
    assert [(one["State"], one["TurnAt"]) for one in told] == [
        ("CALLING", to_iso(now + 1_000)),
        ("CALLING", to_iso(now + 2_000)),
    ]
    chain.house.advance(ms=1_000)
    assert len(chain.server.heard) == 2, "house time decides"
    [last] = chain.listed()
    assert last["TurnAt"] == to_iso(now + 2_000)


def test_a_connection_that_was_deauthorized_is_said_in_the_dead_letter(chain: Chain) -> None:
    chain.rule(chain.destination())
    chain.house.call("events", "DeauthorizeConnection", Name="c")
    chain.event(id=1)
    [letter] = chain.received("dead")
    assert letter["MessageAttributes"]["ERROR_CODE"]["StringValue"] == "NO_PERMISSIONS"
    assert "is DEAUTHORIZED" in letter["MessageAttributes"]["ERROR_MESSAGE"]["StringValue"]
    assert chain.server.heard == []


def test_a_pipe_is_enriched_by_a_call_and_never_by_half_an_answer(chain: Chain) -> None:
    given = {
        "Name": "p",
        "RoleArn": ROLE,
        "Source": ARN + "in",
        "SourceParameters": {"SqsQueueParameters": {"BatchSize": 1}},
        "Enrichment": chain.destination(),
        "EnrichmentParameters": {"InputTemplate": '{"order": <$.body.id>}'},
        "Target": ARN + "out",
    }
    chain.house.call("pipes", "CreatePipe", given)
    chain.server.answers = [
        web.Response(body=b"x" * ((6 << 20) + 1)),
        web.json_response({"order": 7, "price": 12}),
    ]
    chain.house.call("sqs", "SendMessage", QueueUrl=chain.urls["in"], MessageBody='{"id": 7}')
    chain.house.drain()
    assert chain.received("out") == []
    chain.house.advance(minutes=10)
    assert [json.loads(one["Body"]) for one in chain.received("out")] == [{"order": 7, "price": 12}]
    assert [json.loads(body) for _, body in chain.server.heard] == [{"order": 7}] * 2


@pytest.mark.parametrize("field", ["Enrichment", "Target"])
def test_a_call_that_its_pipe_has_given_up_before_its_turn_is_not_made(chain: Chain, field: str) -> None:
    given = {
        "Name": "p",
        "RoleArn": ROLE,
        "Source": ARN + "in",
        "SourceParameters": {"SqsQueueParameters": {"BatchSize": 1}},
        "Target": ARN + "out",
        field: chain.destination(InvocationRateLimitPerSecond=1),
    }
    chain.house.call("pipes", "CreatePipe", given)
    late = (chain.house.now + 7 * 60_000) * 1_000  # others have so many turns before
    chain.house.unit(lambda tx: tx.run("UPDATE api_destination_paces SET full_at = ?", (late,)))
    chain.house.call("sqs", "SendMessage", QueueUrl=chain.urls["in"], MessageBody="1")
    chain.house.advance(minutes=6)
    chain.house.call("pipes", "StopPipe", Name="p")
    chain.house.advance(minutes=10)
    assert len(chain.server.heard) == 1, "of the message as it was received the second time"
