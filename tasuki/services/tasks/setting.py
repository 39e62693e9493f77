"""What the tasks room is told when it is built, and the node for which the attendant speaks."""

from dataclasses import dataclass, field

from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config

NAME = "tasks"
"""Keys the room's timers."""
ALONE = "here"
"""The id of the one node of a store that has only one."""


@dataclass(frozen=True, slots=True)
class Setting:
    """`memory_mib` is what tasks may reserve together (on this node), `most_tasks` how many there may be at once."""

    config: Config
    switchboard: Switchboard
    memory_mib: int
    most_tasks: int
    shown_ms: int
    """How long a stopped task and its logs are kept."""

    @property
    def shared(self) -> bool:
        """Whether several nodes may share the store."""
        return self.config.store is not None


@dataclass(slots=True)
class Here:
    """A node: where attempts are pinned to. `term` is None where there is only one.

    Elsewhere it counts how often the others have given this node up; what was claimed in an older term may be over.
    """

    node: str
    host: str
    boot: str
    incarnation: str = ""
    term: int | None = None
    lacks: dict[int, frozenset[str]] = field(default_factory=dict)
    """Task definitions whose images this node has not all (by row, with all their images): learnt when one of their tasks
    comes by. Definitions and our own images stay as they are while we run, so units may share this."""
