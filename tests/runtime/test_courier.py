"""The courier against real servers on loopback: what it says, what it makes of answers, and what a crash leaves."""

import asyncio
import base64
import json
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from tasuki.runtime import courier as couriers
from tasuki.runtime.bell import Bell
from tasuki.runtime.courier import LEASE_MS, MOST_IN_HAND, Courier
from tasuki.services.buses import destinations_api
from tasuki.services.buses.calls import Turns
from tasuki.services.buses.destinations import DestinationTarget
from tasuki.services.switchboard import Caller, Ending, Switchboard
from tasuki.store.postgres import PostgresStore
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Store
from tasuki.testing import House
from tasuki.testing.clock import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.errors import StoreFull
from tasuki.values.instant import Instant
from tasuki.values.operations import Principal, Request
from tasuki.values.outbound import Outbound
from tests.services.buses.destinations_stage import API_KEY, BASIC, LOOPBACK, Server, Stage, Watcher, room


def by_two_clocks(real: ManualClock) -> Callable[[House], Store]:
    """Open a store in which real time is another than the house's."""
    return lambda house: SqliteStore(
        None, clock=house.clock, real_clock=real, chance=house.chance, on_ring=house.bell.ring
    )


class World:
    """A house with a courier, and a server beside it on the same loop."""

    name, topics = "courier", ("courier",)

    def __init__(
        self,
        *,
        outbound: Outbound = LOOPBACK,
        timeout_s: float = 5.0,
        names: dict[str, list[str]] | None = None,
        real: ManualClock | None = None,
    ) -> None:
        self.asked: list[str] = []
        self.outbound, self.timeout_s, self.names = outbound, timeout_s, names or {}
        self.stage = Stage(lambda _house: self, store=None if real is None else by_two_clocks(real))
        self.courier = self.new()
        self.run(self._open())

    def new(self, *, alone: bool = True) -> Courier:
        house = self.stage.house
        return Courier(
            store=house.store,
            switchboard=house.switchboard,
            bell=house.bell,
            clock=house.clock,
            real_clock=house.clock,
            outbound=self.outbound,
            alone=alone,
            waits=True,
            timeout_s=self.timeout_s,
            lookup=self._lookup,
        )

    async def _lookup(self, host: str, _port: int) -> list[str]:
        self.asked.append(host)
        if host == "slow.example":
            await self.server.held.wait()
        if host not in self.names:
            raise OSError(-2, "Name or service not known")
        return self.names[host]

    async def round(self) -> Instant | None:
        return await self.courier.round()

    def begin(self) -> None:
        """Let the courier claim what is due and begin to call; the server has heard of it then."""

        async def begin() -> None:
            self.server.arrived.clear()
            self.courier._waits = False
            await self.courier.round()
            self.courier._waits = True
            await self.server.arrived.wait()

        self.run(begin())

    def made(self) -> None:
        """Wait until a call has been made; it is not settled yet."""

        async def made() -> None:
            rung = self.stage.house.bell.subscribe(("courier",))
            if not self.courier._ended:
                await rung.wait()

        self.run(made())

    def crash(self, *, alone: bool = True) -> None:
        """kill -9 and a new node: rows stay, everything in memory goes."""

        async def die() -> None:
            dead = list(self.courier._in_hand)
            for task in dead:
                task.cancel()
            await asyncio.gather(*dead, return_exceptions=True)

        self.run(die())
        self.courier = self.new(alone=alone)

    async def _open(self) -> None:
        self.server = Server()
        await self.server.server.start_server()

    def run(self, work: Awaitable[Any]) -> Any:
        return self.stage.house._run(work)

    def drain(self) -> dict[str, Ending]:
        self.stage.house.drain()
        return self.stage.told

    def ending(self) -> Ending:
        """How the only call ended."""
        [ending] = self.drain().values()
        assert self.stage.waiting() == 0
        return ending

    def close(self) -> None:
        self.server.held.set()
        self.run(self.courier.close())
        self.run(self.server.server.close())
        self.stage.close()


@pytest.fixture
def worlds() -> Iterator[Callable[..., World]]:
    with ExitStack() as stack:

        def make(**how: Any) -> World:
            made = World(**how)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def world(worlds: Callable[..., World]) -> World:
    return worlds()


# -- what is said -------------------------------------------------------------------------------------------


def test_a_call_says_what_eventbridge_says_and_its_end_is_heard(world: World) -> None:
    arn = world.stage.destination(world.server.url + "/in")
    key = world.stage.give(arn, {"job": 7})
    ending = world.ending()
    assert (ending.succeeded, ending.output) == (True, {"Status": 200, "Body": '{"fine": true}'})
    [(request, body)] = world.server.heard
    assert (request.method, request.path, body) == ("POST", "/in", '{"job":7}')
    assert request.headers["User-Agent"] == "Amazon/EventBridge/ApiDestinations"
    assert request.headers["Content-Type"] == "application/json; charset=utf-8"
    assert request.headers["Range"] == "bytes=0-1048575"
    assert request.headers["Connection"] == "close"
    assert request.headers["Host"] == world.server.url.removeprefix("http://")
    assert request.headers["Idempotency-Key"] == key


def test_basic_and_api_key_sign_every_call(world: World) -> None:
    stage = world.stage
    stage.give(stage.destination(world.server.url, "one"), key="one")
    world.drain()
    key = stage.connection("k", API_KEY, "API_KEY")
    stage.give(stage.destination(world.server.url, "two", key), key="two")
    world.drain()
    first, second = (request.headers for request, _ in world.server.heard)
    assert base64.b64decode(first["Authorization"].removeprefix("Basic ")) == b"ann:s3cret-word"
    assert second["X-Key"] == "s3cret-key"
    assert "Authorization" not in second


def test_paths_queries_headers_and_fields_are_put_together_and_the_connection_has_the_last_word(world: World) -> None:
    extras = {
        "HeaderParameters": [{"Key": "X-Team", "Value": "night"}, {"Key": "content-type", "Value": "text/x"}],
        "QueryStringParameters": [{"Key": "sig", "Value": "a&b=c", "IsValueSecret": True}],
        "BodyParameters": [{"Key": "channel", "Value": "C1"}],
    }
    basic = {"BasicAuthParameters": {"Username": "u", "Password": "p"}}
    connection = world.stage.connection("c", {**basic, "InvocationHttpParameters": extras})
    arn = world.stage.destination(
        world.server.url + "/jobs/*/parts/*?v=1&sig=old", connection=connection, HttpMethod="PUT"
    )
    world.stage.give(
        arn,
        {"channel": "mine", "text": "x"},
        PathParameterValues=["a/b ?#*", "ü"],
        QueryStringParameters={"sig": "mine", "when": "2026-01-01T00:00:00+01:00"},
        HeaderParameters={"x-team": "day", "X-Own": 1.5},
    )
    assert world.ending().succeeded
    [(request, body)] = world.server.heard
    assert request.method == "PUT"
    assert request.raw_path.partition("?")[0] == "/jobs/a%2Fb%20%3F%23%2A/parts/%C3%BC"
    assert dict(request.query) == {"v": "1", "sig": "a&b=c", "when": "2026-01-01T00:00:00+01:00"}
    assert request.headers.getall("X-Team") == ["night"]
    assert request.headers.getall("Content-Type") == ["text/x"]
    assert request.headers["X-Own"] == "1.5"
    assert json.loads(body) == {"channel": "C1", "text": "x"}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_asks_only_has_no_body(world: World, method: str) -> None:
    world.stage.give(world.stage.destination(world.server.url, HttpMethod=method))
    assert world.ending().output["Body"] == ('{"fine": true}' if method == "GET" else "")
    [(request, body)] = world.server.heard
    assert (request.method, body, request.headers.get("Content-Type")) == (method, "", None)


# -- OAuth --------------------------------------------------------------------------------------------------


def oauth(world: World, method: str = "POST", **more: Any) -> str:
    parameters = {
        "OAuthParameters": {
            "ClientParameters": {"ClientID": "us", "ClientSecret": "s3cret:client"},
            "AuthorizationEndpoint": world.server.url + "/token",
            "HttpMethod": method,
            **more,
        }
    }
    return world.stage.connection("c", parameters, "OAUTH_CLIENT_CREDENTIALS")


def said_with(world: World) -> list[tuple[str, str]]:
    return [(request.path, request.headers.get("Authorization", "")) for request, _ in world.server.heard]


def test_a_token_is_fetched_once_for_all_who_want_it(world: World) -> None:
    extras = {"BodyParameters": [{"Key": "audience", "Value": "jobs & more"}]}
    arn = world.stage.destination(world.server.url + "/in", connection=oauth(world, OAuthHttpParameters=extras))
    world.server.tokens = [{"access_token": "t1", "token_type": "Bearer", "expires_in": 3600}]
    for number in range(5):
        world.stage.give(arn, key=str(number))
    assert [ending.succeeded for ending in world.drain().values()] == [True] * 5
    assert sorted(said_with(world)[1:]) == [("/in", "Bearer t1")] * 5
    request, body = world.server.heard[0]
    assert request.path == "/token"
    assert base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")) == b"us:s3cret%3Aclient"
    assert body == "grant_type=client_credentials&audience=jobs%20%26%20more"


def test_a_token_that_is_not_taken_any_more_is_refreshed_once(world: World) -> None:
    arn = world.stage.destination(world.server.url + "/in", connection=oauth(world))
    world.server.tokens = [{"access_token": "t1"}, {"access_token": "t2"}]
    world.server.answers = [web.Response(status=401)]
    world.stage.give(arn)
    assert world.ending().succeeded
    assert [word for _, word in said_with(world)][1::2] == ["Bearer t1", "Bearer t2"]
    world.server.tokens = [{"access_token": "t3"}]
    world.server.answers = [web.Response(status=401), web.Response(status=401)]
    world.stage.give(arn, key="two")
    ending = world.drain()["two"]
    assert (ending.succeeded, ending.error, ending.output["Status"]) == (False, "ERROR_FROM_TARGET", 401)


def test_a_token_that_is_over_soon_is_not_used_and_a_changed_connection_gets_another(world: World) -> None:
    arn = world.stage.destination(world.server.url + "/in", connection=oauth(world))
    world.server.tokens = [{"access_token": "t1", "expires_in": 0}, {"access_token": "t2"}, {"access_token": "t3"}]
    for key in ("one", "two", "three"):
        world.stage.give(arn, key=key)
        assert world.drain()[key].succeeded
    world.stage.call("UpdateConnection", Name="c", Description="other")
    world.stage.give(arn, key="four")
    assert world.drain()["four"].succeeded
    used = [word for path, word in said_with(world) if path == "/in"]
    assert used == ["Bearer t1", "Bearer t2", "Bearer t2", "Bearer t3"]


def test_a_token_that_lives_for_longer_than_can_be_counted_is_used(world: World) -> None:
    world.server.tokens = [{"access_token": "t1", "expires_in": 10**400}]
    world.stage.give(world.stage.destination(world.server.url + "/in", connection=oauth(world)))
    assert world.ending().succeeded


@pytest.mark.parametrize(
    ("tokens", "cause"), [([], "returned HTTP status 400"), ([{"token": "x"}], "returned no access_token")]
)
def test_without_a_token_nothing_is_called(world: World, tokens: list[dict[str, Any]], cause: str) -> None:
    world.stage.give(world.stage.destination(world.server.url + "/in", connection=oauth(world)))
    world.server.tokens = tokens
    ending = world.ending()
    assert (ending.succeeded, ending.error) == (False, "NO_PERMISSIONS")
    assert cause in str(ending.cause)
    assert "s3cret" not in str(ending.cause)
    assert [path for path, _ in said_with(world)] == ["/token"]


def test_get_asks_for_a_token_in_the_query(world: World) -> None:
    world.server.tokens = [{"access_token": "t1"}]
    world.stage.give(world.stage.destination(world.server.url + "/in", connection=oauth(world, "GET")))
    assert world.ending().succeeded
    request, body = world.server.heard[0]
    assert (dict(request.query), body) == ({"grant_type": "client_credentials"}, "")


# -- what is heard ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "error", "after"),
    [
        (400, {}, "SDK_CLIENT_ERROR", None),
        (404, {}, "SDK_CLIENT_ERROR", None),
        (401, {}, "ERROR_FROM_TARGET", None),
        (409, {}, "ERROR_FROM_TARGET", None),
        (429, {"Retry-After": "7"}, "THROTTLING", 7_000),
        (500, {}, "ERROR_FROM_TARGET", None),
        (503, {"Retry-After": "0.5"}, "ERROR_FROM_TARGET", 500),
        (503, {"Retry-After": "Thu, 01 Jan 2026 00:02:00 GMT"}, "ERROR_FROM_TARGET", 120_000),
        (503, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, "ERROR_FROM_TARGET", 0),
        (503, {"Retry-After": "soon"}, "ERROR_FROM_TARGET", None),
        (503, {"Retry-After": "9e99"}, "ERROR_FROM_TARGET", 86_400_000),
        (503, {"Retry-After": "-1"}, "SDK_CLIENT_ERROR", 0),
        (302, {"Location": "/elsewhere"}, "SDK_CLIENT_ERROR", None),
    ],
)
def test_statuses_and_when_to_come_again(
    world: World, status: int, headers: dict[str, str], error: str, after: int | None
) -> None:
    world.server.answers = [web.Response(status=status, headers=headers, text="no")]
    world.stage.give(world.stage.destination(world.server.url))
    ending = world.ending()
    assert (ending.succeeded, ending.error, ending.output.get("RetryAfterMs")) == (False, error, after)
    assert (ending.output["Status"], ending.output["Body"]) == (status, "no")
    said = f"Unable to invoke ApiDestination endpoint: API destination returned HTTP status {status} with payload: no"
    assert ending.cause == said
    assert len(world.server.heard) == 1  # no redirect is followed, and one call is one try


def test_a_server_that_never_answers_is_given_up_and_holds_up_nobody(worlds: Callable[..., World]) -> None:
    world = worlds(timeout_s=0.3)
    slow = world.stage.destination(world.server.url + "/never", "slow")
    world.stage.give(slow, key="slow")
    quick = world.stage.destination(world.server.url + "/quick", "quick")
    world.stage.give(quick, key="quick")
    world.drain()
    assert [key for key, _ in world.stage.watcher.told] == ["quick", "slow"]
    assert world.stage.told["slow"].error == "TIMEOUT"


def test_a_body_that_trickles_in_counts_against_the_same_time(worlds: Callable[..., World]) -> None:
    world = worlds(timeout_s=0.3)

    async def trickle(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"x")
        await world.server.held.wait()
        return answer

    app = web.Application()
    app.router.add_post("/", trickle)
    beside = TestServer(app, host="127.0.0.1")
    world.run(beside.start_server())
    world.stage.give(world.stage.destination(f"http://127.0.0.1:{beside.port}/"))
    assert world.ending().error == "TIMEOUT"
    world.server.held.set()
    world.run(beside.close())


def test_six_megabytes_are_heard_and_no_more(world: World) -> None:
    world.server.answers = [web.Response(body=b"x" * (6 << 20)), web.Response(body=b"x" * ((6 << 20) + 1))]
    arn = world.stage.destination(world.server.url)
    world.stage.give(arn, key="one")
    assert len(world.drain()["one"].output["Body"]) == 6 << 20
    world.stage.give(arn, key="two")
    cut = world.drain()["two"]
    assert (cut.succeeded, cut.output["Truncated"], len(cut.output["Body"])) == (True, True, 6 << 20)


def test_nobody_there(world: World) -> None:
    port = world.server.server.port
    world.run(world.server.server.close())
    world.stage.give(world.stage.destination(f"http://127.0.0.1:{port}/"))
    ending = world.ending()
    assert ending.error == "CONNECTION_FAILURE"
    assert "API destination endpoint cannot be reached" in str(ending.cause)


def test_no_secret_in_logs_or_causes_even_if_the_server_says_it_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    extras = {
        "InvocationHttpParameters": {
            "QueryStringParameters": [{"Key": "k", "Value": "s3cret-q", "IsValueSecret": True}]
        }
    }
    basic = {"BasicAuthParameters": {"Username": "ann", "Password": "s3cret-word"}}
    connection = world.stage.connection("c", {**basic, **extras})
    signed = base64.b64encode(b"ann:s3cret-word").decode()
    world.server.answers = [web.Response(status=400, text=f"I got s3cret-word, s3cret-q and Basic {signed}")]
    world.stage.give(world.stage.destination(world.server.url, connection=connection))
    ending = world.ending()
    assert str(ending.cause).endswith("I got ***, *** and Basic ***")
    assert ending.output["Body"] == "I got ***, *** and Basic ***"
    port = world.server.server.port
    world.run(world.server.server.close())
    world.stage.call("UpdateApiDestination", Name="hook", InvocationEndpoint=f"http://127.0.0.1:{port}/gone")
    arn = world.stage.call("DescribeApiDestination", Name="hook")["ApiDestinationArn"]
    world.stage.give(arn, key="two")
    assert "cannot be reached" in str(world.drain()["two"].cause)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("tasuki")]
    assert "s3cret" not in str(world.stage.told["two"].cause) + "".join(ours)
    failed = [one.partition(" failed: ")[2] for one in ours if " failed: " in one]
    assert failed[0] == "SDK_CLIENT_ERROR: HTTP status 400"
    assert "CONNECTION_FAILURE: " in failed[1]
    assert "cannot be reached" in failed[1]


def test_a_secret_that_comes_back_in_another_spelling_is_left_out_too(world: World) -> None:
    key = {"ApiKeyAuthParameters": {"ApiKeyName": "X-Key", "ApiKeyValue": 's3 "cret'}}
    world.server.answers = [web.Response(status=400, text=r'{"a":"s3 \"cret","b":"s3%20%22cret","c":"s3+%22cret"}')]
    arn = world.stage.connection("c", key, kind="API_KEY")
    world.stage.give(world.stage.destination(world.server.url, connection=arn))
    assert world.ending().output["Body"] == '{"a":"***","b":"***","c":"***"}'


# -- where it may go ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "127.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::]",
     "localhost", "inner.example", "both.example", "mapped.example", "169.254.169.254", "10.1.2.3"],
)  # fmt: skip
def test_nothing_is_sent_where_the_configuration_lets_nobody_go(worlds: Callable[..., World], host: str) -> None:
    names = {
        "localhost": ["127.0.0.1", "::1"],
        "inner.example": ["127.0.0.1"],
        "both.example": ["8.8.8.8", "127.0.0.1"],
        "mapped.example": ["::ffff:127.0.0.1"],
        # As C libraries read them:
        **{number: ["127.0.0.1"] for number in ("2130706433", "0177.0.0.1", "0x7f.0.0.1", "127.1")},
    }
    world = worlds(outbound=Outbound(), names=names)
    for scheme in ("http", "https"):
        world.stage.give(world.stage.destination(f"{scheme}://{host}:{world.server.server.port}/", scheme), key=scheme)
    endings = world.drain()
    assert {ending.error for ending in endings.values()} == {"SDK_CLIENT_ERROR"}
    causes = [str(ending.cause) for ending in endings.values()]
    assert all("[outbound] allow in tasuki.toml" in cause or "canonical" in cause for cause in causes), causes
    assert world.server.heard == []


def test_a_name_is_resolved_once_and_that_address_is_called(worlds: Callable[..., World]) -> None:
    world = worlds(names={"hooks.example": ["127.0.0.1"]})
    url = f"http://hooks.example:{world.server.server.port}/"
    world.stage.give(world.stage.destination(url))
    assert world.ending().succeeded
    assert world.asked == ["hooks.example"]
    assert world.server.heard[0][0].host == f"hooks.example:{world.server.server.port}"


def test_a_slow_name_holds_one_lookup_however_many_calls_want_it(worlds: Callable[..., World]) -> None:
    world = worlds(names={"slow.example": ["127.0.0.1"], "hooks.example": ["127.0.0.1"]}, timeout_s=0.2)
    port = world.server.server.port
    slow = world.stage.destination(f"https://slow.example:{port}/", "slow")
    for n in range(10):
        world.stage.give(slow, key=f"slow {n}")
    world.stage.give(world.stage.destination(f"http://hooks.example:{port}/", "quick"), key="quick")
    ended = world.drain()
    assert {one.error for key, one in ended.items() if key != "quick"} == {"TIMEOUT"}
    assert ended["quick"].succeeded
    assert sorted(world.asked) == ["hooks.example", "slow.example"]
    world.server.held.set()


def test_a_name_that_nobody_knows_may_be_known_later(world: World) -> None:
    world.stage.give(world.stage.destination("https://nowhere.example/"))
    ending = world.ending()
    assert ending.error == "CONNECTION_FAILURE"
    assert "Name or service not known" in str(ending.cause)


def test_proxies_of_the_environment_are_not_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NETRC", os.devnull)
    world.stage.give(world.stage.destination(world.server.url))
    assert world.ending().succeeded


def test_a_house_without_calls_never_has_aiohttp_in_memory() -> None:
    told = "import sys, tasuki.runtime.node; print('aiohttp' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


# -- how fast -----------------------------------------------------------------------------------------------


def test_calls_over_the_rate_wait_by_house_time(world: World) -> None:
    arn = world.stage.destination(world.server.url, rate=4)
    for number in range(10):
        world.stage.give(arn, key=str(number))
    world.drain()
    assert len(world.server.heard) == 1
    world.stage.house.advance(ms=999)
    assert len(world.server.heard) == 4
    world.stage.house.advance(ms=1)
    assert len(world.server.heard) == 5
    other = world.stage.destination(world.server.url, "other")
    world.stage.give(other, key="other")
    assert "other" in world.drain()  # those that wait hold up no other destination
    world.stage.house.advance(seconds=2)
    assert len(world.stage.told) == 11
    assert all(ending.succeeded for ending in world.stage.told.values())


def test_a_new_rate_counts_for_calls_that_wait(world: World) -> None:
    arn = world.stage.destination(world.server.url, rate=1)
    for number in range(30):
        world.stage.give(arn, key=str(number))
    world.drain()
    assert len(world.server.heard) == 1
    world.stage.call("UpdateApiDestination", Name="hook", InvocationRateLimitPerSecond=300)
    assert len(world.drain()) == 30


def test_calls_that_wait_for_a_destination_that_goes_end_with_that_reason(world: World) -> None:
    arn = world.stage.destination(world.server.url, rate=1)
    for number in range(3):
        world.stage.give(arn, key=str(number))
    world.drain()
    world.stage.call("DeleteApiDestination", Name="hook")
    assert sorted(ending.error for ending in world.drain().values() if not ending.succeeded) == ["NO_RESOURCE"] * 2
    assert world.stage.waiting() == 0


def test_more_calls_than_hands(world: World) -> None:
    arn = world.stage.destination(world.server.url, rate=10_000)
    for number in range(MOST_IN_HAND + 20):
        world.stage.give(arn, key=str(number))
    assert len(world.drain()) == MOST_IN_HAND + 20
    assert world.courier.busy == 0


def test_servers_that_never_answer_leave_hands_for_the_others(worlds: Callable[..., World]) -> None:
    world = worlds(timeout_s=60)
    never = [world.stage.destination(world.server.url + "/never", name, rate=10_000) for name in ("n1", "n2")]
    for number in range(2 * MOST_IN_HAND):
        world.stage.give(never[number % 2], key=f"never{number}")
    quick = world.stage.destination(world.server.url, "quick", rate=10_000)
    for number in range(2 * MOST_IN_HAND):
        world.stage.give(quick, key=f"quick{number}")

    async def serve() -> None:
        rung = world.stage.house.bell.subscribe(world.courier.topics)
        while True:
            rung.clear()
            due = await world.courier.round()
            if len(world.stage.watcher.told) == 2 * MOST_IN_HAND:
                return
            if due is None:
                await rung.wait()

    world.courier._waits = False
    world.run(serve())
    assert all(key.startswith("quick") for key in world.stage.told)
    assert 0 < world.courier.busy < MOST_IN_HAND
    world.courier._waits = True
    world.server.held.set()
    assert len(world.drain()) == 4 * MOST_IN_HAND


@given(
    rate=st.integers(1, 2_000),
    gaps=st.lists(st.sampled_from([0, 0, 0, 1, 3, 50, 400, 1_500]), min_size=1, max_size=300),
)
def test_turns_keep_the_rate_and_waste_none_of_it(rate: int, gaps: list[int]) -> None:
    now, full_at = 1_767_225_600_000, 0
    begun: list[int] = []
    for gap in gaps:
        now += gap
        turns = Turns(full_at, rate, now)
        begun.append(turns.next())
        full_at = turns.full_at
        assert begun[-1] >= now
    burst = max(rate // 10, 1)
    for number, instant in enumerate(begun):
        assert sum(instant <= other < instant + 1_000 for other in begun[number:]) <= rate + burst
    assert begun == sorted(begun)
    assert begun[-1] - now <= -(
        -1_000 * max(len(begun) - burst, 0) // rate
    )  # nobody waits for longer than all before him take


# -- crashes ------------------------------------------------------------------------------------------------


def test_a_call_in_hand_when_its_node_dies_is_made_again_under_its_key(world: World) -> None:
    arn = world.stage.destination(world.server.url)
    key = world.stage.give(arn)
    world.server.answers = [None]
    world.begin()
    world.crash()
    assert (world.stage.told, world.stage.waiting()) == ({}, 1)
    assert world.ending().succeeded
    assert [request.headers["Idempotency-Key"] for request, _ in world.server.heard] == [key, key]


def test_a_call_that_was_made_and_not_settled_is_made_again(world: World) -> None:
    world.stage.give(world.stage.destination(world.server.url))
    world.begin()
    world.made()
    world.crash()
    assert world.ending().succeeded
    assert len(world.server.heard) == 2


def test_among_several_nodes_a_lease_has_to_run_out_in_real_time(worlds: Callable[..., World]) -> None:
    real = ManualClock()
    world = worlds(real=real)
    world.crash(alone=False)
    world.stage.give(world.stage.destination(world.server.url))
    world.server.answers = [None]
    world.begin()
    world.crash(alone=False)
    world.stage.house.advance(hours=5)  # house time is no reason to take it from somebody who still makes it
    assert world.drain() == {}
    real.set(real.now() + LEASE_MS - 1)
    assert world.drain() == {}
    real.set(real.now() + 1)
    assert world.ending().succeeded


def test_who_took_too_long_is_not_heard_twice(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.stage.give(world.stage.destination(world.server.url))
    world.server.answers = [web.Response(text="first")]
    world.begin()
    world.made()
    slow = world.courier
    world.courier = world.new()  # as if another node took it over: its lease is over
    assert world.ending().output["Body"] == '{"fine": true}'
    world.run(slow.round())
    assert len(world.stage.watcher.told) == 1
    assert "took longer than its lease" in caplog.text


def test_a_node_that_ends_gives_back_what_it_has_in_hand(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(couriers, "LAST_WORDS_S", 0.01)
    arn = world.stage.destination(world.server.url)
    world.stage.give(arn, key="slow")
    world.server.answers = [None]
    world.begin()
    world.stage.give(arn, key="quick")
    world.begin()
    world.made()
    world.run(world.courier.close())
    assert list(world.stage.told) == ["quick"]
    world.courier = world.new(alone=False)
    assert list(world.drain()) == ["quick", "slow"]


def test_a_watcher_that_fails_is_told_later_and_nothing_is_called_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(couriers, "SOUR_S", 0.01)
    world.stage.watcher.is_at_fault = True
    world.stage.give(world.stage.destination(world.server.url))
    assert world.drain() == {}
    assert (world.courier.busy, world.stage.waiting()) == (1, 1)
    world.stage.watcher.is_at_fault = False
    world.made()
    assert world.ending().succeeded
    assert len(world.server.heard) == 1


def test_a_store_that_is_away_for_a_moment_loses_no_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.stage.give(world.stage.destination(world.server.url))
    world.begin()
    world.made()
    store = world.stage.house.store

    async def away(_unit: Any) -> Any:
        raise StoreFull("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(type(store), "write", lambda _self, unit: away(unit))
        with pytest.raises(StoreFull):
            world.run(world.courier.round())
    assert world.ending().succeeded
    assert len(world.server.heard) == 1


def test_nobody_waits_for_a_call_without_a_watcher(world: World) -> None:
    arn = world.stage.destination(world.server.url)
    target = world.stage.house.switchboard.targets["events"]
    caller = Caller("000000000000", "us-east-1", "", "")
    world.stage.house.unit(lambda tx: target.deliver(tx, arn, "{}", None, caller))
    world.stage.house.unit(lambda tx: target.deliver(tx, arn, "{}", None, caller))
    assert world.drain() == {}
    assert (len(world.server.heard), world.stage.waiting()) == (2, 0)


# -- several nodes ------------------------------------------------------------------------------------------


def test_several_nodes_on_one_store_make_each_call_once_and_keep_the_rate_together(postgres_url: str) -> None:
    """Three nodes race for forty calls; the rate is of all of them together, by a clock that stands still."""

    async def play() -> None:
        server, clock, watcher = Server(), ManualClock(), Watcher()
        await server.server.start_server()
        stores, nodes = [], []
        for seed in range(3):
            bell, switchboard = Bell(), Switchboard()
            room(Config(data=Path()), switchboard)
            switchboard.watchers["tests"] = watcher
            store = PostgresStore(
                postgres_url,
                wall=clock,
                clock=clock,
                real_clock=clock,
                chance=Chance.seeded(seed),
                on_ring=bell.ring,
                connections=2,
            )
            await store.open()
            stores.append(store)
            courier = Courier(
                store=store,
                switchboard=switchboard,
                bell=bell,
                clock=clock,
                real_clock=clock,
                outbound=LOOPBACK,
                alone=False,
                waits=True,
            )
            nodes.append(courier)
        table = destinations_api.operations()

        async def ask(operation: str, **given: Any) -> dict[str, Any]:
            request = Request("events", operation, given, "r", Principal("k"), "000000000000", "us-east-1", "")
            answer = await stores[0].write(lambda tx: table[operation].run(tx, request))
            assert isinstance(answer, dict)
            return answer

        connection = await ask("CreateConnection", Name="c", AuthorizationType="BASIC", AuthParameters=BASIC)
        destination = await ask(
            "CreateApiDestination",
            Name="hook",
            ConnectionArn=connection["ConnectionArn"],
            InvocationEndpoint=server.url,
            HttpMethod="POST",
            InvocationRateLimitPerSecond=300,
        )
        target = DestinationTarget()
        for number in range(40):
            caller = Caller("000000000000", "us-east-1", str(number), "", watcher=f"tests:{number}")
            await stores[number % 3].write(
                lambda tx, caller=caller: target.deliver(tx, destination["ApiDestinationArn"], "{}", None, caller)  # type: ignore[misc]
            )

        async def serve(courier: Courier) -> None:
            while (due := await courier.round()) is not None and due <= clock.now():
                pass

        await asyncio.gather(*(serve(courier) for courier in nodes))
        assert len(server.heard) == 30  # a tenth of a second's
        clock.set(clock.now() + 100)
        await asyncio.gather(*(serve(courier) for courier in nodes))
        keys = [request.headers["Idempotency-Key"] for request, _ in server.heard]
        assert len(keys) == len(set(keys)) == 40
        assert sorted(int(key) for key, _ in watcher.told) == list(range(40))
        await server.server.close()
        for store in stores:
            store.close()

    asyncio.run(play())
