"""What clients were told, and what they have done: the model that the house is compared with.

The simulation sees more than a client: when a reply is lost it knows whether the unit was committed. So the model is
exact: it counts committed sends, not attempts.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tasuki.testing.simulation.told_rules import ToldRules
from tasuki.testing.simulation.told_schedules import ToldSchedules
from tasuki.values.instant import DAY, HOUR, Instant

LONG_MS = 4 * DAY
"""SQS's own retention, of queues that set none."""

REMEMBERED_MS = 20 * HOUR


class Sent(NamedTuple):
    """A key (what is in a body), the queue it was first sent to, and when."""

    queue: str
    at: Instant


@dataclass(slots=True)
class Told:
    """The model. Keys name bodies: no two sends have the same, but for repeats of one that a client did not hear of."""

    sent: dict[str, Sent] = field(default_factory=dict)
    copies: Counter[str] = field(default_factory=Counter)
    """Committed sends, by key; of keys that machines sent, what was first seen."""
    most: Counter[str] = field(default_factory=Counter)
    """How many messages with the key may stand in queues: never more than stood there last, but for new sends."""
    ids: dict[str, str] = field(default_factory=dict)
    """Which key a message id has."""
    removed: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Receipts by which a client deleted messages with the key."""
    purged: Counter[str] = field(default_factory=Counter)
    """Messages with the key that stood in a queue when it was purged or deleted."""
    buried: set[str] = field(default_factory=set)
    """Message ids that were deleted by the receipt that counts: they never come back."""
    retention: dict[str, int] = field(default_factory=dict)
    """Of queues that set one, in milliseconds."""
    latest: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """The latest receipt of each message id: (queue, receipt, key)."""
    receipts: list[tuple[str, str, str, str]] = field(default_factory=list)
    """(queue, receipt, message id, key), also late ones."""
    tokens: list[str] = field(default_factory=list)
    """Task tokens that somebody was given."""
    machines: dict[str, str] = field(default_factory=dict)
    """Machine ARNs by name."""
    executions: dict[str, str] = field(default_factory=dict)
    """Acknowledged starts of Standard executions: the machine's name by ARN."""
    started: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    """What an idempotent request (kind, token) answered, all its repeats together."""
    requests: list[tuple[str, dict[str, Any], Instant]] = field(default_factory=list)
    """Idempotent requests, to be repeated: (operation, input, when it was made)."""

    schedules: ToldSchedules = field(default_factory=ToldSchedules)
    fired: dict[tuple[str, Instant], set[int]] = field(default_factory=lambda: defaultdict(set))
    """Of ticks (schedule, planned time): in which of the schedule's lives each fired."""
    rules: ToldRules = field(default_factory=ToldRules)
    rules_due: dict[str, Instant] = field(default_factory=lambda: defaultdict(int))
    """Up to which planned time each rule was looked at."""
    heard: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many events of the house each (rule, target) was given, when that was last looked at."""
    connection: str = ""
    destination: str = ""
    """The ARN of the API destination, as it was made last."""
    answered: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How often the world outside took a payload well, by payload."""
    numbers: dict[str, int] = field(default_factory=dict)
    """What `n` is in the body with a key that a client sent."""
    attempts: dict[str, str] = field(default_factory=dict)
    """Of ticks in queues, by message id: which try the body says it is."""

    def note_send(self, key: str, queue: str, message_id: str, at: Instant) -> None:
        """A send was committed."""
        self.sent.setdefault(key, Sent(queue, at))
        self.copies[key] += 1
        self.most[key] += 1
        self.ids[message_id] = key

    def expires_at(self, key: str) -> Instant:
        """Answer when a message with the key may be gone by itself, at the earliest."""
        queue, at = self.sent[key]
        return at + self.retention.get(queue, LONG_MS)

    def repeatable(self, operation: str, now: Instant) -> list[dict[str, Any]]:
        """Answer the latest idempotent requests that the house must still know (ECS forgets a client token after a day)."""
        return [given for one, given, at in self.requests[-60:] if one == operation and now - at < REMEMBERED_MS][-8:]
