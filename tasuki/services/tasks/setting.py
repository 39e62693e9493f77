"""What the tasks room is told when it is built."""

from dataclasses import dataclass

from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config

NAME = "tasks"
"""Keys the room's timers."""


@dataclass(frozen=True, slots=True)
class Setting:
    """`memory_mib` is what tasks may reserve together, `most_tasks` how many there may be at once."""

    config: Config
    switchboard: Switchboard
    memory_mib: int
    most_tasks: int
    shown_ms: int
    """How long a stopped task and its logs are kept."""
