"""Plays what was recorded on AWS against a house, and says where they differ.

The data: `../shared/conformance/sqs` beside this repository (its README has the conventions). A trace is a sequence of calls
with AWS's answers to some of them (`expect`); a fact is one answer in a trace. Pauses of the recording move our clock.
"""

import ast
import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tasuki.services import queues
from tasuki.testing import House
from tasuki.values.errors import DomainError

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "conformance" / "sqs"
TOKEN = re.compile(r"<[A-Za-z][\w .:-]*>")
FREE_ORDER = {"Messages", "Successful", "Failed", "QueueUrls", "AWS"}
PATIENCE_S = 30


def read(name: str) -> list[dict[str, Any]]:
    """Answer the records of a file; none when the data is not here."""
    path = FOLDER / name
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


@dataclass
class Verdict:
    """What came of one expectation: `why` is None when we answer as AWS did."""

    n: int
    key: str
    why: str | None


@dataclass
class Played:
    """A trace, played."""

    verdicts: list[Verdict] = field(default_factory=list)
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    refusals: dict[int, DomainError] = field(default_factory=dict)


class Matcher:
    """Compares an answer with a recorded one: a token stands for any text, the same one throughout a trace."""

    def __init__(self, bound: dict[str, str]) -> None:
        self.bound = bound
        self.asked: set[str] = set()

    def differs(self, want: Any, got: Any) -> str | None:
        """Answer the first difference, or None. Tokens we chose for requests may stand for others in answers."""
        first = self._attempt(want, got)
        if first is None or not self.asked:
            return first
        kept = dict(self.bound)
        self.bound = {token: text for token, text in kept.items() if token not in self.asked}
        second = self._attempt(want, got)
        self.bound = {**self.bound, **kept}
        return first if second is not None else None

    def _attempt(self, want: Any, got: Any) -> str | None:
        kept = dict(self.bound)
        why = self._compare(want, got, "")
        if why is not None:
            self.bound = kept
        return why

    def _compare(self, want: Any, got: Any, at: str) -> str | None:
        if isinstance(want, str):
            return self._text(want, got, at)
        if isinstance(want, dict):
            if isinstance(got, str) and got.startswith("{"):
                got = json.loads(got)
            if not isinstance(got, dict):
                return f"{at}: want an object, got {got!r}"
            wanted = {key: value for key, value in want.items() if key != "ResponseMetadata"}
            if set(wanted) != set(got):
                return f"{at}: want members {sorted(wanted)}, got {sorted(got)}"
            return next((why for key in wanted if (why := self._compare(wanted[key], got[key], f"{at}/{key}"))), None)
        if isinstance(want, list):
            if not isinstance(got, list) or len(want) != len(got):
                return f"{at}: want {len(want)} elements, got {got!r}"
            if at.rpartition("/")[2] in FREE_ORDER:
                return self._bag(want, got, at)
            return next(
                (
                    why
                    for i, (w, g) in enumerate(zip(want, got, strict=True))
                    if (why := self._compare(w, g, f"{at}/{i}"))
                ),
                None,
            )
        return None if want == got else f"{at}: want {want!r}, got {got!r}"

    def _bag(self, want: list[Any], got: list[Any], at: str) -> str | None:
        free = list(got)
        for element in want:
            hit = next((i for i, g in enumerate(free) if self._attempt(element, g) is None), None)
            if hit is None:
                return f"{at}: nothing like {element!r} in {free!r}"
            del free[hit]
        return None

    def _text(self, want: str, got: Any, at: str) -> str | None:
        if want == "timestamp" or at.endswith("/NextToken"):
            return None
        if want.startswith("b'"):
            return None if ast.literal_eval(want) == got else f"{at}: want {want}, got {got!r}"
        want = self.fill(want)
        if isinstance(got, int) and want.isdigit():
            got = str(got)
        if not isinstance(got, str):
            return f"{at}: want {want!r}, got {got!r}"
        names: list[str] = []
        pattern = ""
        end = 0
        for token in TOKEN.finditer(want):
            pattern += re.escape(want[end : token.start()])
            seen = token.group() in names
            pattern += f"(?P=t{names.index(token.group())})" if seen else f"(?P<t{len(names)}>.+?)"
            if not seen:
                names.append(token.group())
            end = token.end()
        found = re.fullmatch(pattern + re.escape(want[end:]), got, re.DOTALL)
        if found is None:
            return f"{at}: want {want!r}, got {got!r}"
        self.bound.update({name: found[f"t{i}"] for i, name in enumerate(names)})
        return None

    def fill(self, text: str) -> str:
        """Put the known texts in for tokens."""
        for token, known in self.bound.items():
            text = text.replace(token, known)
        return text


def expand(value: Any) -> Any:
    """Answer what `$repeat`, `$text` and `$b64` stand for."""
    if isinstance(value, list):
        return [expand(element) for element in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$repeat"}:
        return expand(value["$repeat"][0]) * value["$repeat"][1]
    if set(value) == {"$text"}:
        return "".join(expand(part) for part in value["$text"])
    if set(value) == {"$b64"}:
        return base64.b64decode(value["$b64"])
    return {key: expand(element) for key, element in value.items()}


def reach(value: Any, path: list[Any]) -> Any:
    """Follow a path of keys and indices."""
    for part in path:
        value = value[part]
    return value


class Player:
    """Plays one trace in a house of its own."""

    def __init__(self, house: House, trace: dict[str, Any]) -> None:
        self.house, self.trace = house, trace
        self.steps = {step["n"]: step for step in trace["steps"]}
        self.played = Played()
        account = house.config.account
        self.matcher = Matcher({"<region>": house.config.region, "<partition>": "aws", "111111111111": account})

    def play(self) -> Played:
        """Play all steps."""
        for step in self.trace["steps"]:
            if pause := step.get("waited_before_s"):
                self.house.advance(seconds=pause)
            self._step(step)
        return self.played

    def _step(self, step: dict[str, Any]) -> None:
        given = expand(self._request(step))
        patience = PATIENCE_S if step.get("poll") else int(given.get("WaitTimeSeconds") or 0)
        while True:
            answer, refused = self._call(step["op"], given)
            if refused is not None or patience <= 0 or self._content(step, given, answer):
                break
            patience -= 1
            self.house.advance(seconds=1)
        if refused is not None:
            self.played.refusals[step["n"]] = refused
        self.played.answers[step["n"]] = answer
        self.house.drain()
        for expected in step.get("expect", ()):
            why = self._judge(step, expected, answer, refused)
            self.played.verdicts.append(Verdict(step["n"], expected["key"], why))

    def _call(self, operation: str, given: dict[str, Any]) -> tuple[dict[str, Any], DomainError | None]:
        try:
            return self.house.call("sqs", operation, given), None
        except DomainError as refused:
            return {}, refused

    def _content(self, step: dict[str, Any], given: dict[str, Any], answer: dict[str, Any]) -> bool:
        """Tell whether the recorded caller would have stopped asking."""
        if step.get("poll"):
            if step.get("expect"):
                kept = dict(self.matcher.bound)
                good = all(self._judge(step, expected, answer, None) is None for expected in step["expect"])
                self.matcher.bound = self.matcher.bound if good else kept
                return good
            observed = (step.get("localstack_observed") or {}).get("ok")
            if step["op"] == "ReceiveMessage" and observed is not None:
                return bool(answer.get("Messages")) == bool(observed.get("Messages"))
            return observed is None or answer == observed
        return bool(answer.get("Messages")) or not given.get("WaitTimeSeconds")

    def _request(self, step: dict[str, Any]) -> dict[str, Any]:
        given = json.loads(json.dumps(step["params"]))
        for ref in step.get("refs", ()):
            try:
                value = reach(self.played.answers.get(ref["from"], {}), ref["path"])
            except (KeyError, IndexError, TypeError):
                continue
            holder = reach(given, ref["param"][:-1])
            last = ref["param"][-1]
            if not ref.get("part_of"):
                holder[last] = value
                continue
            for known in self._spellings(self.steps[ref["from"]], ref["path"]):
                if known in holder[last]:
                    holder[last] = holder[last].replace(known, value)
                    break
        return self._fill(given)  # type: ignore[no-any-return]

    @staticmethod
    def _spellings(step: dict[str, Any], path: list[Any]) -> Iterator[str]:
        sources = [e["value"] for e in step.get("expect", ()) if not e["response_path"]]
        for source in [*sources, (step.get("localstack_observed") or {}).get("ok") or {}]:
            try:
                yield str(reach(source, path))
            except (KeyError, IndexError, TypeError):
                continue

    def _fill(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._fill(element) for element in value]
        if isinstance(value, dict):
            return {key: self._fill(element) for key, element in value.items()}
        if not isinstance(value, str):
            return value
        value = value.replace("<endpoint>", "http://127.0.0.1:4566")
        for token in TOKEN.findall(self.matcher.fill(value)):
            self.matcher.bound[token] = f"q-{len(self.matcher.bound)}-{self.house.chance.hex(8)}"
            self.matcher.asked.add(token)
        return self.matcher.fill(value)

    def _judge(
        self, step: dict[str, Any], expected: dict[str, Any], answer: dict[str, Any], refused: DomainError | None
    ) -> str | None:
        want = expected["value"]
        if isinstance(want, dict) and "Error" in want:
            if refused is None:
                return f"want {want['Error'].get('Code')}, got an answer"
            return self._refusal(step, want["Error"].get("Code"), want["Error"].get("Message"), refused)
        if refused is not None:
            return f"refused: {refused.query_code}: {refused.message}"
        path = expected["response_path"]
        try:
            return self.matcher.differs(want, reach(answer, path))
        except (KeyError, IndexError, TypeError):
            return f"nothing at {path}"

    def _refusal(self, step: dict[str, Any], code: str, message: str | None, refused: DomainError) -> str | None:
        said = refused.message
        if step["service"] == "sqs-query":
            said = getattr(refused, "query_message", said)
        if code != (refused.query_code or refused.code):
            return f"want {code}, got {refused.query_code}"
        return self.matcher.differs(message, said) if message else None


@cache
def play(trace_id: str) -> Played:
    """Play a trace once."""
    trace = next(trace for trace in read_traces() if trace["id"] == trace_id)
    with House(queues.room) as house:
        return Player(house, trace).play()


@cache
def read_traces() -> tuple[dict[str, Any], ...]:
    """Answer all traces."""
    return tuple(read("traces.jsonl"))


def is_fifo(trace: dict[str, Any]) -> bool:
    """Tell whether a trace needs FIFO queues: it makes one, or speaks to one."""
    for step in trace["steps"]:
        given = step["params"]
        makes = str((given.get("Attributes") or {}).get("FifoQueue", "")).lower() == "true"
        named = str(given.get("QueueName", "")).endswith(".fifo") or str(given.get("QueueUrl", "")).endswith(".fifo")
        observed = (step.get("localstack_observed") or {}).get("ok") or {}
        if (makes or named) and "localstack_observed" in step and (step["op"] != "CreateQueue" or observed):
            return True
    return False
