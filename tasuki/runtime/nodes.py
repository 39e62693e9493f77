"""Membership: this node's place among those that share a store. A duty of the loop; a store of one node has none.

::

    join     once       our row, with a new incarnation; refused while another node holds our id, or takes another owner's key
    renew    each 5 s   seen by the database, so the shims may go on; the others are looked at, and who is lost is given up
    leave    once       a clean stop: tasks go on, and end by themselves if this node does not come back in time

In real time, whatever the movable clock says. A node that the database does not answer goes on trying: its shims count for
themselves (`runners/contact.py`), and so do the other nodes.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from tasuki.runners.contact import Contact
from tasuki.runners.facts import boottime
from tasuki.runtime.bell import Bell
from tasuki.runtime.share import Share
from tasuki.services.tasks import attending, machine_mib, nodes
from tasuki.services.tasks.nodes import Holder, Joining, Node, Round
from tasuki.services.tasks.setting import Here, Setting
from tasuki.store.migrations import migrations
from tasuki.store.store import Store
from tasuki.values.errors import StoreBusy, StoreError, StoreNewer
from tasuki.values.instant import SECOND, Clock, Instant

log = logging.getLogger("tasuki.nodes")

RENEW_S = 5.0
AGAIN_S = 1.0
"""After how long a renewal that failed is tried again."""
APART_MS = 1 * SECOND
"""Clocks that differ by more than this are spoken of."""
LEAP_MS = 10 * SECOND
"""The database's clock was set, when it has moved by so much against ours since the last look."""
LONGEST_WATCH_S = 30.0
"""How long we have looked at a silent node ourselves before we believe that it is lost."""
TIDIED_EACH = 100
"""Renewals from one tidying up to the next."""
LEAVES_WITHIN_S = 3.0


class Membership:
    """See the module. `wall` is this machine's clock, `steady` its seconds since boot. When `over` is set, the node has to stop."""

    name = "membership"
    topics = ("membership",)

    def __init__(
        self,
        *,
        store: Store,
        bell: Bell,
        setting: Setting,
        here: Here,
        joining: Joining,
        contact: Contact,
        share: Share,
        wall: Clock,
        steady: Callable[[], float] = boottime,
    ) -> None:
        self._store, self._bell, self._setting, self._here = store, bell, setting, here
        self._joining, self._contact, self._share, self._wall, self._steady = joining, contact, share, wall, steady
        self.over = asyncio.Event()
        self.interval_s = min(RENEW_S, joining.lost_ms / 1000 / 10)
        self._lost_s = joining.lost_ms / 1000
        self._watched: dict[str, tuple[Instant, float]] = {}
        """When each node was seen last by the database, and since when we know that."""
        self._states: dict[str, str] = {}
        self._apart: dict[str, int] = {}
        self._ahead_ms: int | None = None
        self._distrusted_until = 0.0
        self._renewals = 0
        self._is_silent = False
        self._later: asyncio.TimerHandle | None = None

    # -- coming and going -----------------------------------------------------------------------------------

    async def join(self) -> None:
        """Take part. Raises `StoreBusy` when another node lives with our id, `ConfigError` when it takes another key."""
        first: Holder | None = None
        while True:
            asked_at = self._steady()
            answer = await self._store.write(lambda tx: nodes.join(tx, self._here, self._joining))
            if isinstance(answer, int):
                self._here.term = self._contact.term = answer
                self._contact.renew(asked_at)
                log.info("this is node %s of %s", self._here.node, self._joining.url)
                await self._warn_of_memory()
                return
            if first is not None and answer.seen_at != first.seen_at:
                raise StoreBusy(
                    f"Node {self._here.node} lives on {answer.host} ({answer.url}), and this data directory bears its id. "
                    "Stop that one first; or, if this directory is a copy of that one's, remove node_id and tasks/ from the copy."
                )
            first = first or answer
            await asyncio.sleep(AGAIN_S)  # it may have been killed a moment ago: wait until its row says so

    async def _warn_of_memory(self) -> None:
        """Say when the nodes of this machine offer more than it has: each takes three quarters of it for its own."""
        everybody = await self._store.look(lambda tx: [(one, one.state(tx.real_now)) for one in nodes.everybody(tx)])
        here = [one.memory_mib for one, state in everybody if one.host == self._here.host and state == "UP"]
        there_is = machine_mib()
        if len(here) > 1 and sum(here) > there_is:
            log.warning(
                "the %d nodes on %s offer their tasks %d MiB together, and the machine has %d MiB: "
                "set memory in [node] of each one's tasuki.toml",
                len(here),
                self._here.host,
                sum(here),
                there_is,
            )

    async def leave(self) -> None:
        """Say good-bye, if the database hears it."""
        if self._later is not None:
            self._later.cancel()
        asked_at = self._steady()
        with suppress(StoreError, TimeoutError, OSError):
            async with asyncio.timeout(LEAVES_WITHIN_S):
                await self._store.write(lambda tx: nodes.leave(tx, self._here))
            self._contact.renew(asked_at)

    # -- a round --------------------------------------------------------------------------------------------

    async def round(self) -> Instant | None:
        """Renew, and see to the others. Never due by the house's clock: it rings itself."""
        if self.over.is_set():
            return None
        pause_s = self.interval_s
        try:
            await self._renew()
            if self._is_silent:
                self._is_silent = False
                log.info("the database answers again")
        except StoreNewer as bad:  # our connections were ended, and no new one is given
            self._stop(f"{bad} This node stops.")
            return None
        except (StoreError, OSError) as bad:
            pause_s = min(AGAIN_S, self.interval_s)
            if not self._is_silent:
                self._is_silent = True
                log.warning("this node could not be renewed (%s); trying again each %.1f s", bad, pause_s)
        if self._later is not None:
            self._later.cancel()
        self._later = asyncio.get_running_loop().call_later(pause_s, self._bell.ring, "membership")
        return None

    async def _renew(self) -> None:
        asked_at, before = self._steady(), self._wall.now()
        ahead = self._ahead_ms or 0
        seen = await self._store.write(lambda tx: nodes.renew(tx, self._here, ahead))
        self._mind_clock(before, seen.real_now, self._wall.now())
        if seen.schema > migrations()[-1][0]:
            self._stop(
                f"The database was brought to schema {seen.schema} by a newer Tasuki, and this one knows "
                f"{migrations()[-1][0]}: this node stops. Upgrade it."
            )
            return
        if seen.term is None:
            await self._come_back(seen)
            return
        if seen.term != self._here.term:
            log.warning(
                "the other nodes had given this one up: what it had claimed before is over, and it goes on as a new one"
            )
            self._here.term = self._contact.term = seen.term
        self._contact.renew(asked_at)
        self._bell.ring("tasks")  # should a ring have been lost
        self._compare(seen)
        await self._see_to_the_lost(seen)
        self._renewals += 1
        if self._renewals % TIDIED_EACH == 1:
            await self._tidy()

    async def _come_back(self, seen: Round) -> None:
        """Our row is another's, or gone with a database that was restored."""
        if seen.known:
            self._stop("Another node was started with this one's id (a copy of its data directory?): this node stops.")
        else:
            log.warning("the database does not know this node any more; joining again")
            await self.join()

    def _stop(self, why: str) -> None:
        log.critical(why)
        self.over.set()

    # -- clocks ---------------------------------------------------------------------------------------------

    def _mind_clock(self, before: Instant, said: Instant, after: Instant) -> None:
        """Take the least difference that the database's clock must have to ours, it having been read in between."""
        ahead = said - before if said < before else max(0, said - after)
        if self._ahead_ms is not None and abs(ahead - self._ahead_ms) > LEAP_MS:
            self._distrusted_until = self._steady() + self._lost_s  # who seems silent since long perhaps is not
        self._ahead_ms = ahead
        self._speak_of_clock(self._here.node, ahead)

    def _speak_of_clock(self, node: str, ahead: int) -> None:
        apart = abs(ahead) > APART_MS
        said = self._apart.get(node)
        if not apart:
            if self._apart.pop(node, None) is not None:
                log.info("the clocks of node %s and of the database agree again", node)
        elif said is None or abs(said - ahead) > max(APART_MS, abs(said) // 2):
            self._apart[node] = ahead
            whose = "this machine's clock" if node == self._here.node else f"the clock of node {node}"
            way = "behind" if ahead > 0 else "ahead of"
            log.warning(
                "%s is %.1f s %s the database's: times in logs differ, and signatures may be refused. Set both by NTP.",
                whose,
                abs(ahead) / 1000,
                way,
            )

    # -- the others -----------------------------------------------------------------------------------------

    def _compare(self, seen: Round) -> None:
        """Say who came, went, and fell silent since the last round."""
        states = {one.id: one.state(seen.real_now) for one in seen.nodes if one.id != self._here.node}
        for one in seen.nodes:
            state, before = states.get(one.id), self._states.get(one.id)
            if state is None:
                continue
            if state == "UP":
                self._speak_of_clock(one.id, one.clock_ahead_ms)
            if state == before or (before is None and state != "UP"):
                continue
            level, words = _WORDS[state]
            log.log(level, words, one.id, one.host, one.url)
        self._states = states
        self._share.settle(self._here.node, [one for one, state in states.items() if state == "UP"])

    async def _see_to_the_lost(self, seen: Round) -> None:
        watched = self._watched
        self._watched = {}
        now = self._steady()
        for one in seen.nodes:
            if one.id == self._here.node or (one.lost_at is None and one.stopped_at is not None and not one.tasks):
                continue
            known = watched.get(one.id)
            since = known[1] if known is not None and known[0] == one.seen_at else now
            self._watched[one.id] = (one.seen_at, since)
            if self._is_lost(one, now - since, seen.real_now) and (one.lost_at is None or one.tasks):
                await self._give_up(one)

    def _is_lost(self, one: Node, watched_s: float, real_now: Instant) -> bool:
        """Tell whether a node is lost: by the database's clock, while we looked on for a while; or by our own alone."""
        lost_s = one.lost_ms / 1000
        if watched_s > lost_s:
            return True
        trusted = self._steady() >= self._distrusted_until
        return trusted and real_now - one.seen_at > one.lost_ms and watched_s >= min(LONGEST_WATCH_S, lost_s / 4)

    async def _give_up(self, one: Node) -> None:
        while True:
            first, settled = await self._store.write(
                lambda tx: nodes.give_up(tx, self._setting, one.id, one.seen_at),
            )
            if first:
                self._states[one.id] = "LOST"
                log.warning(
                    "node %s (%s, %s) was not heard of for %d s and is given up; its %d tasks are stopped, and may be retried",
                    one.id,
                    one.host,
                    one.url,
                    one.lost_ms // 1000,
                    one.tasks,
                )
            if not settled:
                return

    async def _tidy(self) -> None:
        for node in await self._store.look(nodes.unknown):
            while await self._store.write(
                lambda tx, node=node: attending.give_up(tx, self._setting, node, nodes.GIVEN_UP_AT_ONCE)  # type: ignore[misc]
            ):
                pass
        await self._store.write(lambda tx: nodes.tidy(tx, self._setting))


_WORDS = {
    "UP": (logging.INFO, "node %s (%s, %s) is there"),
    "STOPPED": (logging.INFO, "node %s (%s, %s) has left"),
    "SILENT": (logging.WARNING, "node %s (%s, %s) is not heard of"),
    "LOST": (logging.WARNING, "node %s (%s, %s) is lost"),
}
