"""The machines under the nodes: each has a runner, whose tasks go on while its node is dead, and an id in the store.

Of several nodes each is seen by the store whenever it works, as if its renewals were always in time: what comes of a host
that is silent for too long is an act of its own (`actions_others.lose_host`).
"""

from dataclasses import dataclass

from tasuki.services.tasks import nodes, setting_of
from tasuki.services.tasks.setting import Here
from tasuki.store.store import Tx
from tasuki.testing.house import House
from tasuki.testing.simulation.moody import MoodyRunner
from tasuki.values.instant import MINUTE, SECOND, Instant

MEMORY_MIB = 600
LOST_MS = 10 * MINUTE
SEEN_EACH_MS = 10 * SECOND


@dataclass(slots=True)
class Host:
    """A machine. `gone`: it is silent, and nothing runs on it, until it comes back."""

    number: int
    runner: MoodyRunner
    gone: bool = False
    lives: int = 0
    seen_at: Instant = 0

    def here(self, *, several: bool) -> Here | None:
        """Answer who the node is that is born on this host; None for the only one."""
        self.lives += 1
        if not several:
            return None
        return Here(self.name, f"{self.name}.example", "boot", incarnation=f"{self.name}-{self.lives}")

    @property
    def name(self) -> str:
        """The node's id."""
        return f"n{self.number}"

    def join(self, house: House, here: Here) -> None:
        """Take part."""
        joining = nodes.Joining(
            place=self.name,
            url=f"http://{self.name}.example:4566",
            version="0",
            owner="owner",
            dev=True,
            memory_mib=MEMORY_MIB,
            lost_ms=LOST_MS,
        )
        term = house.unit(lambda tx: nodes.join(tx, here, joining))
        assert isinstance(term, int), f"{self.name} is in use"
        here.term, self.seen_at = term, house.now

    def be_seen(self, house: House, here: Here | None) -> None:
        """Have the store see a node that works."""
        if here is not None and house.now - self.seen_at >= SEEN_EACH_MS:
            house.unit(lambda tx: nodes.renew(tx, here, 0))
            self.seen_at = house.now

    def give_up(self, house: House) -> None:
        """Have another node settle what ran here."""
        setting = setting_of(house.config, house.switchboard)

        def unit(tx: Tx) -> int:
            seen_at = next(one.seen_at for one in nodes.everybody(tx) if one.id == self.name)
            return nodes.give_up(tx, setting, self.name, seen_at)[1]

        while house.unit(unit):
            pass
