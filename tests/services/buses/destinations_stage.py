"""Connections and API destinations without the rest of their room; a server that is called; who is told of ends."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tasuki.runtime.loop import Duty
from tasuki.services.buses import destinations_api
from tasuki.services.buses.destinations import DestinationTarget
from tasuki.services.room import Room
from tasuki.services.switchboard import Caller, Ending, Switchboard
from tasuki.store.store import Store, Tx
from tasuki.testing import House
from tasuki.testing.clock import ManualClock
from tasuki.values.config import Config
from tasuki.values.documents import dumps
from tasuki.values.outbound import Outbound

LOOPBACK = Outbound.of(["127.0.0.0/8", "::1", "hooks.example"])

BASIC = {"BasicAuthParameters": {"Username": "ann", "Password": "s3cret-word"}}
API_KEY = {"ApiKeyAuthParameters": {"ApiKeyName": "X-Key", "ApiKeyValue": "s3cret-key"}}


def room(_config: Config, switchboard: Switchboard) -> Room:
    """The part of the room that this folder's `test_destinations*` look at."""
    switchboard.targets["events"] = DestinationTarget()
    return Room("buses", "events", destinations_api.operations())


class Server:
    """Other people's server: notes what it hears, and answers as it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[web.Request, str]] = []
        self.answers: list[web.Response | None] = []
        """The next answers (None: never one); then 200."""
        self.tokens: list[dict[str, Any]] = []
        self.held, self.arrived = asyncio.Event(), asyncio.Event()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self.server = TestServer(app, host="127.0.0.1")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.heard.append((request, await request.text()))
        self.arrived.set()
        if request.path == "/token":
            return (
                web.json_response(self.tokens.pop(0)) if self.tokens else web.Response(status=400, text="s3cret-echo")
            )
        answer = (
            None
            if request.path == "/never"
            else self.answers.pop(0)
            if self.answers
            else web.json_response({"fine": True})
        )
        if answer is None:
            await self.held.wait()
            answer = web.Response()
        return answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"


class Watcher:
    """Stands in for whoever waits for calls: notes how they ended, in its own unit and after."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Ending]] = []
        self.is_at_fault = False

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:
        assert tx.now
        if self.is_at_fault:
            raise RuntimeError("the watcher is at fault")
        self.told.append((key, ending))


class Stage:
    """A house with one connection and, on demand, destinations."""

    def __init__(
        self,
        *duties: Callable[[House], Duty],
        store: Callable[[House], Store] | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        config = Config(data=Path("/data"), dev=True)
        self.house = House(room, duties=duties, config=config, store=store, clock=clock)
        self.watcher = Watcher()
        self.house.switchboard.watchers["tests"] = self.watcher

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("events", operation, given)

    def connection(self, name: str = "there", parameters: dict[str, Any] | None = None, kind: str = "BASIC") -> str:
        made = self.call(
            "CreateConnection",
            Name=name,
            AuthorizationType=kind,
            AuthParameters=BASIC if parameters is None else parameters,
        )
        return str(made["ConnectionArn"])

    def destination(
        self, url: str, name: str = "hook", connection: str | None = None, rate: int = 300, **more: Any
    ) -> str:
        arn = connection or self.connection(f"for-{name}")
        given = {"Name": name, "ConnectionArn": arn, "InvocationEndpoint": url, "HttpMethod": "POST", **more}
        given["InvocationRateLimitPerSecond"] = rate
        return str(self.call("CreateApiDestination", **given)["ApiDestinationArn"])

    def give(self, arn: str, payload: Any = None, key: str = "one", **parameters: Any) -> str:
        """Have a call made, as a room would that waits for its end."""
        caller = Caller("000000000000", "us-east-1", key, "Root=1-0-0", watcher=f"tests:{key}")
        target = self.house.switchboard.targets["events"]
        text = dumps({"job": 1} if payload is None else payload)
        return self.house.unit(lambda tx: target.deliver(tx, arn, text, None, caller, parameters=parameters))

    @property
    def told(self) -> dict[str, Ending]:
        return dict(self.watcher.told)

    def waiting(self) -> int:
        return int(self.house.look(lambda tx: tx.all("SELECT count(*) FROM http_calls")[0][0]))

    def close(self) -> None:
        self.house.close()
