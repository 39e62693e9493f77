"""What these tests share: a door before scripted operations, and requests signed by botocore."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.parsers import create_parser
from botocore.serialize import create_serializer

from tasuki.protocol.http import Application, Door, Limits, application
from tasuki.runtime.bell import Bell
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.errors import DomainError
from tasuki.values.instant import Instant, from_datetime
from tasuki.values.operations import NotYet, Operation, Operations, Principal, Request

NOON = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
PORT = 4566
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TASK_KEY = "TSUKTASK"

Answer = dict[str, Any] | DomainError | Exception


async def turn() -> None:
    """Let everything else that is ready run once."""
    loop = asyncio.get_running_loop()
    others = loop.create_future()
    loop.call_soon(others.set_result, None)
    await others


class StillClock:
    def __init__(self) -> None:
        self.instant: Instant = from_datetime(NOON)

    def now(self) -> Instant:
        return self.instant


class ScriptedStore:
    """Runs units at once; remembers which kind was asked for."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.before_write: Callable[[], None] = lambda: None

    async def write(self, unit: Any) -> Any:
        self.kinds.append("write")
        self.before_write()
        await turn()
        return unit(None)

    async def read(self, unit: Any) -> Any:
        self.kinds.append("read")
        await turn()
        return unit(None)

    def look(self, unit: Any) -> Any:
        return unit(None)

    def close(self) -> None:
        pass


@dataclass
class Script:
    """Operations that answer what they are told, and the requests that reached them."""

    answers: dict[str, Answer] = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)

    def run(self, _tx: Any, request: Request) -> dict[str, Any] | NotYet:
        self.seen.append(request)
        answer = self.answers.get(request.operation, {})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def operations(self, *names: str) -> Operations:
        return {name: Operation("write", self.run) for name in names}


OFFERED = {
    "sqs": (
        "SendMessage",
        "SendMessageBatch",
        "CreateQueue",
        "ReceiveMessage",
        "DeleteMessage",
        "GetQueueAttributes",
        "ListQueues",
    ),
    "stepfunctions": (
        "CreateStateMachine",
        "StartExecution",
        "ListExecutions",
        "GetExecutionHistory",
        "CreateStateMachineAlias",
    ),
    "ecs": ("RunTask", "RegisterTaskDefinition", "DescribeTasks"),
    "pipes": ("CreatePipe", "DescribePipe", "ListPipes", "ListTagsForResource", "TagResource", "UntagResource"),
    "sns": ("Publish", "CreateTopic", "ListTopics"),
    "lambda": ("Invoke", "ListFunctions", "CreateFunction"),
}


def make_door(script: Script, **changes: Any) -> Door:
    limits = changes.pop("limits", Limits())
    actions = frozenset({"states:SendTaskSuccess", "sqs:SendMessage"})
    keys = {KEY: (SECRET, Principal(KEY)), TASK_KEY: ("task-secret", Principal(TASK_KEY, actions))}
    parts: dict[str, Any] = {
        "config": Config(data=Path(), port=PORT),
        "operations": {service: script.operations(*names) for service, names in OFFERED.items()},
        "store": ScriptedStore(),
        "bell": Bell(),
        "clock": StillClock(),
        "real_clock": StillClock(),
        "chance": Chance.seeded(7),
        "credential": keys.get,
        "limits": limits,
    }
    return Door(**{**parts, **changes})


@dataclass
class Heard:
    """An answer as it goes over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Knock:
    """A request before it is sent: change what you like."""

    method: str
    path: str
    query: str
    headers: list[tuple[str, str]]
    body: bytes

    def put(self, name: str, value: str) -> "Knock":
        """Replace a header."""
        self.headers = [(n, v) for n, v in self.headers if n.lower() != name.lower()]
        return self.add(name, value)

    def add(self, name: str, value: str) -> "Knock":
        self.headers.append((name, value))
        return self


def sign(  # noqa: PLR0917 - the parts of a request in their order
    service: str,
    method: str = "POST",
    path: str = "/",
    query: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    key: str = KEY,
    secret: str = SECRET,
    region: str = "us-east-1",
    host: str = f"127.0.0.1:{PORT}",
    when: datetime = NOON,
) -> Knock:
    """A request signed by botocore, in headers."""
    url = f"http://{host}{path}" + (f"?{query}" if query else "")
    request = AWSRequest(method, url, headers=dict(headers or {}), data=body)
    with mock.patch("botocore.auth.get_current_datetime", return_value=when.replace(tzinfo=None)):
        SigV4Auth(Credentials(key, secret), service, region).add_auth(request)
    pairs = [("host", host), *request.headers.items(), ("content-length", str(len(body)))]
    return Knock(method, path, query, [(name.lower(), value) for name, value in pairs], body)


def knock(app: Application, request: Knock) -> Heard:
    """Send a request into the application, without a socket."""
    return asyncio.run(knocking(app, request))


async def knocking(app: Application, request: Knock, receive: Any = None) -> Heard:
    sent: list[Any] = []

    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": request.method,
        "raw_path": request.path.encode(),
        "path": request.path,
        "query_string": request.query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in request.headers],
    }
    await app(scope, receive or whole, send)
    if not sent:
        return Heard(0, {}, b"")
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Heard(sent[0]["status"], headers, sent[1]["body"])


_loader = Loader()
_models: dict[str, ServiceModel] = {}


def botocore_model(service: str) -> ServiceModel:
    if service not in _models:
        _models[service] = ServiceModel(_loader.load_service_model(service, "service-2"), service)
    return _models[service]


def written(service: str, operation: str, given: dict[str, Any], **signing: Any) -> Knock:
    """A request as botocore writes and signs it."""
    model = botocore_model(service)
    raw = create_serializer(model.metadata["protocol"]).serialize_to_request(given, model.operation_model(operation))
    body = raw["body"]
    headers = dict(raw["headers"])
    if isinstance(body, dict):
        prepared = AWSRequest("POST", "http://x/", data=body).prepare()
        body = prepared.body
        headers["Content-Type"] = "application/x-www-form-urlencoded; charset=utf-8"
    if isinstance(body, str):
        body = body.encode()
    path, _, query = raw["url_path"].partition("?")
    if raw["query_string"]:
        from botocore.utils import percent_encode_sequence

        query = percent_encode_sequence(raw["query_string"])
    return sign(model.signing_name, raw["method"], path, query, headers, bytes(body), **signing)


def understood(service: str, operation: str, heard: Heard) -> dict[str, Any]:
    """An answer as botocore reads it."""
    model = botocore_model(service)
    parser = create_parser(model.metadata["protocol"])
    from botocore.awsrequest import HeadersDict

    response = {
        "status_code": heard.status,
        "headers": HeadersDict(heard.headers),
        "body": heard.body,
        "context": {"operation_name": operation},
    }
    parsed: dict[str, Any] = parser.parse(response, model.operation_model(operation).output_shape)  # type: ignore[arg-type]  # None is taken
    return parsed


def make_app(script: Script, **changes: Any) -> Application:
    return application(make_door(script, **changes))


def error_of(service: str, operation: str, heard: Heard) -> tuple[int, str, str]:
    """(status, code, message) as boto3 would show them."""
    error = understood(service, operation, heard)["Error"]
    return heard.status, error["Code"], error["Message"]
