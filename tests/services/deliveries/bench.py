"""A sender, a target and a watcher of the test's own, around the real rooms of deliveries, queues and handovers."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasuki.services import deliveries, handovers, queues
from tasuki.services.room import Room
from tasuki.services.switchboard import NOTHING, Caller, Delivery, Ending, Refusal, Switchboard
from tasuki.store.store import Params, Row, Store, Tx
from tasuki.testing import House, ManualClock
from tasuki.testing.house import Builder
from tasuki.values.config import Config
from tasuki.values.documents import dumps
from tasuki.values.errors import DomainError
from tasuki.values.instant import DAY, Instant
from tasuki.values.operations import Principal, Request

SOURCE = "arn:aws:scheduler:us-east-1:000000000000:schedule/default/nightly"
TARGET = "arn:aws:stub:us-east-1:000000000000:thing"
QUEUE = "arn:aws:sqs:us-east-1:000000000000:"
URL = "http://127.0.0.1:4566/000000000000/"


class Throttled(DomainError):
    code = "ThrottlingException"


class Gone(DomainError):
    code = "GoneException"


class StubTarget:
    """Writes a row for each delivery, then refuses what it is told to: so a try that is not undone shows."""

    takes_arrays = False
    takes_text = True

    def __init__(self) -> None:
        self.refuse: Callable[[str], Exception | None] = lambda _payload: None
        self.waited = False
        self.callers: list[Caller] = []

    def check(self, _tx: Tx, _arn: str, _parameters: dict[str, Any]) -> str | None:
        return None

    def waits(self, _tx: Tx, _arn: str) -> bool | None:
        return self.waited

    def deliver(
        self,
        tx: Tx,
        arn: str,  # noqa: ARG002
        payload: str,
        name: str | None,  # noqa: ARG002
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,
    ) -> str:
        self.callers.append(caller)
        tx.run("INSERT INTO stub_taken VALUES (?, ?, ?)", (tx.now, payload, dumps(dict(parameters))))
        refusal = self.refuse(payload)
        if refusal is not None:
            raise refusal
        return f"thing-{payload}"


class StubSender:
    """Substitutes the attempt and the try's id, as schedules do; notes every try."""

    def __init__(self) -> None:
        self.tries: list[tuple[Instant, str, int, str]] = []
        self.final: frozenset[str] = frozenset()
        self.no_payload: DomainError | None = None

    def payload(self, tx: Tx, delivery: Delivery, attempt: int, try_id: str) -> str:
        self.tries.append((tx.now, delivery.source_id, attempt, try_id))
        if self.no_payload is not None:
            raise self.no_payload
        return delivery.payload.replace("<attempt>", str(attempt)).replace("<id>", try_id)

    def is_final(self, refusal: Refusal) -> bool:
        return refusal.code in self.final

    def dead_letter(
        self, delivery: Delivery, attempt: int, try_id: str, refusal: Refusal, exhausted: str
    ) -> dict[str, str]:
        return {
            "ERROR_CODE": refusal.code,
            "ERROR_MESSAGE": refusal.message,
            "EXECUTION_ID": try_id,
            "EXHAUSTED_RETRY_CONDITION": exhausted,
            "IS_PAYLOAD_TRUNCATED": "false",
            "RETRY_ATTEMPTS": str(max(0, attempt - 1)),
            "SCHEDULE_ARN": delivery.source,
            "TARGET_ARN": delivery.target,
            **delivery.context,
        }


class StubWatcher:
    """Writes down what it is told, in the unit in which it is."""

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:
        tx.run("INSERT INTO stub_told VALUES (?, ?, ?)", (key, int(ending.succeeded), ending.error))


class CountingTx:
    """A unit's tx that counts statements."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.statements: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        self.statements.append(sql)
        return self._tx.all(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        self.statements.append(sql)
        return self._tx.one(sql, params)

    def run(self, sql: str, params: Params = ()) -> int:
        self.statements.append(sql)
        return self._tx.run(sql, params)

    def many(self, sql: str, rows: Any) -> None:
        self.statements.append(sql)
        self._tx.many(sql, rows)


class Bench:
    """The house and short words for what tests do. Stubs outlive the house: what they note is the world's memory."""

    def __init__(
        self,
        *more: Builder,
        seed: int = 0,
        clock: ManualClock | None = None,
        store: Callable[[House], Store] | None = None,
        **quotas: int,
    ) -> None:
        self._config = Config(data=Path(), dev=True, quotas=quotas)
        self.target, self.sender, self.watcher = StubTarget(), StubSender(), StubWatcher()
        self._more = more
        self.open(seed=seed, clock=clock, store=store)

    def open(
        self, *, seed: int = 0, clock: ManualClock | None = None, store: Callable[[House], Store] | None = None
    ) -> None:
        rooms = (self._stubs, handovers.room, queues.room, deliveries.room, *self._more)
        self.house = House(*rooms, config=self._config, seed=seed, clock=clock, store=store)
        self.house.unit(tables)

    def _stubs(self, _config: Any, switchboard: Switchboard) -> Room:
        switchboard.targets["stub"] = self.target
        switchboard.senders["stubs"] = self.sender
        switchboard.watchers["watcher"] = self.watcher
        return Room("stubs")

    def delivery(self, **members: Any) -> Delivery:
        made = Delivery(
            sender="stubs",
            source=SOURCE,
            source_id="tick",
            target=TARGET,
            payload="p",
            account=self.house.config.account,
            region=self.house.config.region,
            trace="Root=1-0-0",
            since=self.house.now,
            max_age_ms=DAY,
            max_retries=185,
        )
        return replace(made, **members)

    def post(self, **members: Any) -> list[str]:
        """Post a delivery; answer the statements of the unit."""
        delivery = self.delivery(**members)

        def unit(tx: Tx) -> list[str]:
            counting = CountingTx(tx)
            self.house.switchboard.post(counting, delivery)
            return counting.statements

        return self.house.unit(unit)

    def queue(self, name: str, **attributes: str) -> str:
        self.house.call("sqs", "CreateQueue", {"QueueName": name, "Attributes": attributes})
        return QUEUE + name

    def letters(self, name: str = "dead") -> list[tuple[str, dict[str, str]]]:
        """Receive (and keep in flight) what is in a queue: (body, string attributes)."""
        found = []
        given = {"QueueUrl": URL + name, "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
        while messages := self.house.call("sqs", "ReceiveMessage", given).get("Messages"):
            for one in messages:
                named = {key: value["StringValue"] for key, value in one.get("MessageAttributes", {}).items()}
                found.append((one["Body"], named))
        return found

    def outcomes(self) -> list[str]:
        found = self.house.call("tasuki", "ListHandovers", {"MaxResults": 1000})["Handovers"]
        return [one["Outcome"] for one in found]

    def listed(self, **given: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page(**given)["Deliveries"]
        return found

    def page(self, **given: Any) -> dict[str, Any]:
        house = self.house
        place = (house.config.account, house.config.region)
        request = Request("tasuki", "ListDeliveries", given, "r", Principal("test"), *place, URL)
        answer = house.look(lambda tx: house.switchboard.house["ListDeliveries"].run(tx, request))
        assert isinstance(answer, dict)
        return answer

    @property
    def taken(self) -> list[str]:
        return [row[0] for row in self.house.look(lambda tx: tx.all("SELECT payload FROM stub_taken ORDER BY at"))]

    @property
    def told(self) -> list[tuple[Any, ...]]:
        return self.house.look(lambda tx: tx.all("SELECT watched, succeeded, error FROM stub_told"))

    def left_over(self) -> tuple[int, int]:
        """Answer how many deliveries are kept, and timers set by the room."""
        row = self.house.look(
            lambda tx: tx.one(
                "SELECT (SELECT count(*) FROM deliveries), (SELECT count(*) FROM timers WHERE room = 'deliveries')"
            )
        )
        assert row is not None
        return row[0], row[1]


def tables(tx: Tx) -> None:
    tx.run("CREATE TABLE IF NOT EXISTS stub_taken (at BIGINT, payload TEXT, parameters TEXT)")
    tx.run("CREATE TABLE IF NOT EXISTS stub_told (watched TEXT, succeeded BIGINT, error TEXT)")
