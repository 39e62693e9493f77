"""Plays what was recorded on AWS against a house with buses and queues, and says where they differ.

The data: `../shared/conformance/events` beside this repository (its README has the conventions). A trace is a sequence of calls
with AWS's answers to some of them (`expect`). What a queue is asked for is waited for under the house's clock.
"""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from tasuki.services import buses, deliveries, queues
from tasuki.testing import House
from tasuki.values.errors import DomainError
from tasuki.values.instant import from_datetime
from tasuki.values.service_checks import check
from tasuki.values.service_models import service_model
from tests.engine.recorded import FOLDER as ASL

FOLDER = ASL.parent / "events"
TOKEN = re.compile(r"<[A-Za-z<][\w .:-]*>(?::\d+>)?")
ANY = frozenset({"date", "datetime", "timestamp", "receipt-handle", "m-d5-of-body", "detail", "event-id", "target-arn"})
"""Bare words of the recordings that stand for any value."""
PATIENCE_S = 10


@cache
def read_traces() -> tuple[dict[str, Any], ...]:
    """Answer all traces of EventBridge; none when the data is not here."""
    path = FOLDER / "traces.jsonl"
    if not path.exists():
        return ()
    traces = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return tuple(trace for trace in traces if not trace["id"].startswith("events/scheduler/"))


@dataclass
class Player:
    """Plays one trace."""

    house: House
    trace: dict[str, Any]
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)

    def differences(self) -> Iterator[str]:
        """Play it; answer where AWS said something else."""
        account, region = self.house.config.account, self.house.config.region
        self.bound = {"<region>": region, "<partition>": "aws", "111111111111": account, "<account-id>": account}
        self.bound["<secondary-account-id>"] = "2" * 12
        if self.trace["id"].endswith("permission[default]"):
            self.bound["<bus-name>"] = "default"
        for step in self.trace["steps"]:
            self.house.advance(seconds=step.get("waited_before_s") or 0)
            given = self._request(step)
            answer = self._asked(step, given)
            self.answers[step["n"]] = answer
            self.house.drain()
            yield from self._judged(step, answer)

    def _asked(self, step: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        waits = int(given.pop("WaitTimeSeconds", 0) or 0) or (PATIENCE_S if step.get("poll") else 0)
        answer = self._call(step, given)
        while step["op"] == "ReceiveMessage" and not answer.get("Messages") and waits > 0 and "Error" not in answer:
            self.house.advance(seconds=1)
            waits -= 1
            answer = self._call(step, given)
        return answer

    def _call(self, step: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        model = service_model(step["service"])
        assert model is not None
        action = model.action(step["op"])
        assert action is not None
        try:
            check(model, action.input, given)
            return self.house.call(step["service"], step["op"], given)
        except DomainError as no:
            return {"Error": {"Code": no.code, "Message": no.message}}

    def _judged(self, step: dict[str, Any], answer: dict[str, Any]) -> Iterator[str]:
        expected = step.get("expect") or []
        if "Error" in answer and not any("Error" in str(one["value"])[:20] for one in expected) and expected:
            yield f"step {step['n']} {step['op']}: refused: {answer['Error']}"
            return
        observed = step.get("localstack_observed") or {}
        if not expected and ("error" in observed) != ("Error" in answer):
            yield f"step {step['n']} {step['op']}: want {str(observed)[:200]}, got {str(answer)[:200]}"
        for one in expected:
            value: Any = answer
            try:
                for key in one["response_path"]:
                    value = value[key]
            except (KeyError, IndexError):
                yield f"step {step['n']} {step['op']}: nothing at {one['response_path']} of {answer}"
                continue
            want = one["value"]
            yield from self._compare(want, value, f"step {step['n']} {step['op']}")

    def _compare(self, want: Any, got: Any, at: str) -> Iterator[str]:
        if isinstance(want, dict | list) and isinstance(got, str) and got[:1] in {"{", "["}:
            got = json.loads(got)
        if isinstance(want, dict) and isinstance(got, dict):
            wanted = {key: one for key, one in want.items() if key != "ResponseMetadata"}
            if set(wanted) != set(got):
                yield f"{at}: want members {sorted(wanted)}, got {sorted(got)}"
                return
            for key, one in wanted.items():
                yield from self._compare(one, got[key], f"{at}/{key}")
        elif isinstance(want, list) and isinstance(got, list):
            if len(want) != len(got):
                yield f"{at}: want {len(want)}, got {got}"
            for number, (one, other) in enumerate(zip(want, got, strict=False)):
                yield from self._compare(one, other, f"{at}/{number}")
        elif isinstance(want, str):
            yield from self._text(want, got, at)
        elif want != got:
            yield f"{at}: want {want!r}, got {got!r}"

    def _text(self, want: str, got: Any, at: str) -> Iterator[str]:
        if want in ANY or (TOKEN.fullmatch(want) and at.endswith(("NextToken", "MD5OfBody", "ReceiptHandle"))):
            return
        text = self._filled(want)
        text = (
            re.sub(r"\bdate\b", f"<date:{len(self.bound)}>", text)
            if "time date" in text or text.endswith(' date"')
            else text
        )
        parts, names = [], []
        end = 0
        for found in TOKEN.finditer(text):
            parts.append(re.escape(text[end : found.start()]) + "(.+?)")
            names.append(found.group())
            end = found.end()
        match = re.fullmatch("".join(parts) + re.escape(text[end:]), str(got), re.DOTALL)
        if match is None:
            yield f"{at}: want {want!r}, got {got!r}"
            return
        self.bound.update(zip(names, match.groups(), strict=True))

    def _filled(self, text: str) -> str:
        for token in sorted(self.bound, key=len, reverse=True):
            text = text.replace(token, self.bound[token])
        return text

    # -- requests -------------------------------------------------------------------------------------------

    def _request(self, step: dict[str, Any]) -> dict[str, Any]:
        given = expand(copy.deepcopy(step["params"]))
        for ref in step.get("refs", ()):
            value: Any = self.answers.get(ref["from"], {})
            try:
                for key in ref["path"]:
                    value = value[key]
            except (KeyError, IndexError, TypeError):
                continue
            if ref.get("part_of"):
                continue
            holder: Any = given
            for key in ref["param"][:-1]:
                holder = holder[key]
            self._bind(holder[ref["param"][-1]], value)
            holder[ref["param"][-1]] = value
        given = self._fill(given)
        for entry in given.get("Entries", ()) if step["op"] == "PutEvents" else ():
            if "Time" in entry:
                entry["Time"] = _instant(entry["Time"])
        return given  # type: ignore[no-any-return]

    def _bind(self, recorded: Any, value: Any) -> None:
        if isinstance(recorded, str) and TOKEN.fullmatch(recorded) and isinstance(value, str):
            self.bound[recorded] = value

    def _fill(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._fill(one) for one in value]
        if isinstance(value, dict):
            return {key: self._fill(one) for key, one in value.items()}
        if not isinstance(value, str):
            return value
        value = self._filled(value.replace("<endpoint>", "http://127.0.0.1:4566"))
        if not value.startswith(("{", '"', "Event", "Mess")):
            for token in TOKEN.findall(value):
                self.bound[token] = f"t-{len(self.bound)}-{self.house.chance.hex(6)}"
        return self._filled(value)


def expand(value: Any) -> Any:
    """Answer what `$repeat` and `$text` stand for."""
    if isinstance(value, list):
        return [expand(one) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$repeat"}:
        return expand(value["$repeat"][0]) * value["$repeat"][1]
    if "$text" in value:
        return "".join(expand(part) for part in value["$text"])
    return {key: expand(one) for key, one in value.items()}


def _instant(given: Any) -> int:
    text = given["$dt"] if isinstance(given, dict) else str(given)
    for form in ("%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d", "%d-%m-%YT%H:%M:%SZ", "%Y-%m-%d %H:%M:%SZ"):
        try:
            return from_datetime(datetime.strptime(text, form).replace(tzinfo=UTC))
        except ValueError:
            continue
    raise ValueError(text)


def differences(trace: dict[str, Any]) -> list[str]:
    """Play a trace in a house of its own."""
    with House(queues.room, deliveries.room, buses.room) as house:
        return list(Player(house, trace).differences())
