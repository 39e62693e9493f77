"""The courier: makes the HTTP calls to API destinations that rooms ask for.

One round::

    settle   a unit each   who asked hears how a call ended, and its row goes
    claim    a unit        calls that are due are taken in hand, under a lease in real time
    call     outside       each is a task of its own, so a slow server holds up nobody

A node that dies between claim and settle leaves leases that run out; the calls are then made again, by any node, with the same
`Idempotency-Key`. A call that was made and could not be settled (the store is away) is settled later, and not made again meanwhile.

Tokens of OAuth connections are kept in memory until they expire, by the connection's revision: a connection that was changed
gets another.
"""

import asyncio
import logging
from collections import Counter, deque

from tasuki.runtime.bell import Bell
from tasuki.runtime.outbound import Heard, Line, Lookup, Refused, Unreached
from tasuki.services.buses import calls
from tasuki.services.buses import calls_requests as words
from tasuki.services.buses.calls import Call, Hands
from tasuki.services.buses.connections import AUTHORIZED, Connection
from tasuki.services.switchboard import Ending, Switchboard
from tasuki.store.store import Store
from tasuki.values.errors import StoreError
from tasuki.values.instant import SECOND, Clock, Instant
from tasuki.values.outbound import Outbound

log = logging.getLogger("tasuki.courier")

TIMEOUT_S = 5.0
"""How long a request may take (user guide, "API destinations": a maximum client execution timeout of 5 seconds)."""
MOST_IN_HAND = 64
"""Calls that one node makes at once."""
LEASE_MS = 60 * SECOND
"""For how long a call is in one node's hand, in real time: two requests for a token and two for the call take 20 s."""
LAST_WORDS_S = 2.0
"""How long a node that ends waits for answers."""
SOUR_S = 10.0
"""After how long a call is settled again whose watcher failed."""
EARLY_S = 30.0
"""How long before its end a token is not used any more, so that none expires on the way; at most half its life."""


class Courier:
    """A duty of the loop. `close` ends what it has in hand.

    `alone`: no other node shares the store, so what is in hand when it starts was left by one that died.
    `waits`: a round ends only when a call has, in real time, as a test house needs that goes on as soon as it is quiet.
    """

    name = "courier"
    topics = ("courier",)

    def __init__(
        self,
        *,
        store: Store,
        switchboard: Switchboard,
        bell: Bell,
        clock: Clock,
        real_clock: Clock,
        outbound: Outbound,
        alone: bool = True,
        waits: bool = False,
        timeout_s: float = TIMEOUT_S,
        lookup: Lookup | None = None,
    ) -> None:
        self._store, self._switchboard, self._bell = store, switchboard, bell
        self._clock, self._real_clock = clock, real_clock
        self._line = Line(outbound, timeout_s=timeout_s, lookup=lookup)
        self._tokens = Tokens(self._line)
        self._alone, self._waits, self._opened = alone, waits, False
        self._in_hand: dict[asyncio.Task[None], Call] = {}
        self._ended: deque[tuple[Call, Ending]] = deque()
        """Made, and not settled yet: kept here, so that a round that fails loses none."""
        self._sour = 0

    @property
    def busy(self) -> int:
        """How many calls are under way, or not settled yet."""
        return len(self._in_hand) + len(self._ended) + self._sour

    async def round(self) -> Instant | None:
        """Settle, claim, call; answer when the next call is due, by house time."""
        if not self._opened and self._alone and await self._store.look(calls.any_in_hand):
            await self._store.write(calls.let_all_go)
        self._opened = True
        await self._settle()
        hands = Hands(MOST_IN_HAND - self.busy, Counter(call.to for call in self._in_hand.values()))
        due = await self._store.look(lambda tx: calls.next_due(tx, hands)) if hands.free > 0 else None
        if due is not None and due <= self._clock.now():
            for call in await self._store.write(lambda tx: calls.claim(tx, hands, LEASE_MS)):
                self._begin(call)
            return self._clock.now()  # others may be due that were not looked at
        if self._waits and self._in_hand and not self._ended:
            await asyncio.wait(self._in_hand, return_when=asyncio.FIRST_COMPLETED)
        return self._clock.now() if self._ended else due

    async def _settle(self) -> None:
        """Settle what has ended, side by side. What fails is kept."""
        ended = list(self._ended)
        if not ended:
            return
        results = await asyncio.gather(*(self._settle_one(*one) for one in ended), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _settle_one(self, call: Call, ending: Ending) -> None:
        try:
            if not await self._store.write(lambda tx: calls.settle(tx, self._switchboard, call, ending)):
                log.warning("call %s took longer than its lease, and is made again", call.key)
        except StoreError:
            raise
        except Exception:
            log.exception("call %s was made, but who asked for it fails to hear of its end; told again later", call.key)
            self._sour += 1
            asyncio.get_running_loop().call_later(SOUR_S, self._sweeten, call, ending)
        self._ended.remove((call, ending))

    def _sweeten(self, call: Call, ending: Ending) -> None:
        self._sour -= 1
        self._note(call, ending)

    def _begin(self, call: Call) -> None:
        task = asyncio.create_task(self._make(call), name=f"call {call.key}")
        self._in_hand[task] = call
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        call = self._in_hand.pop(task)
        if task.cancelled():
            return
        bad = task.exception()
        if bad is not None:
            log.error("call %s broke down", call.key, exc_info=bad)
            self._note(call, words.failed(words.UNREACHED, f"{type(bad).__name__} on this side."))

    def _note(self, call: Call, ending: Ending) -> None:
        self._ended.append((call, ending))
        self._bell.ring("courier")

    async def _make(self, call: Call) -> None:
        """Make a call; it ends one way or another."""
        ending = await self._called(call)
        if not ending.succeeded:
            name = call.destination.name if call.destination is not None else "?"
            log.info("call %s to %s failed: %s: %s", call.key, name, ending.error, _why(ending))
        self._note(call, ending)

    async def _called(self, call: Call) -> Ending:
        if call.destination is None:
            return words.failed(words.GONE, "The API destination was deleted.")
        if call.connection is None or call.connection.state != AUTHORIZED:
            return words.failed(words.NO_PERMISSIONS, "The connection of the API destination is not authorized.")
        try:
            token = await self._tokens.of(call.connection)
            heard = await self._line.ask(words.outgoing(call, token))
            if words.signs_in_again(call, heard.status):
                token = await self._tokens.of(call.connection, instead_of=token)
                heard = await self._line.ask(words.outgoing(call, token))
        except NoToken as bad:
            return words.failed(bad.error, bad.cause)
        except Refused as bad:
            return words.failed(words.CLIENT, str(bad))
        except Unreached as bad:
            return words.failed(words.UNREACHED, str(bad))
        except TimeoutError:
            return words.failed(words.TIMEOUT, "Timeout calling endpoint for API Destination.")
        return words.answered(
            call, heard.status, heard.headers, heard.body, is_cut=heard.is_cut, real_now=self._real_clock.now()
        )

    async def close(self) -> None:
        """Hear out, for a moment, what is in hand; leave the rest for others (or the next start) to make again."""
        if self._in_hand:
            await asyncio.wait(self._in_hand, timeout=LAST_WORDS_S)
        try:
            await self._settle()
            held = frozenset(call.holder for call in [*self._in_hand.values(), *(call for call, _ in self._ended)])
            left = list(self._in_hand)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            if held:
                await self._store.write(lambda tx: calls.let_go(tx, held))
        except StoreError as bad:
            log.warning("calls in hand were not given back, and are made again in a minute: %s", bad)


def _why(ending: Ending) -> str:
    """Say why a call failed, on one line; of an answer its status alone: its body may hold anything."""
    status = ending.output.get("Status")
    return f"HTTP status {status}" if status is not None else " ".join((ending.cause or "").split())


class NoToken(Exception):
    """The authorization endpoint gave none. `error` and `cause` are the call's."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(cause)
        self.error, self.cause = error, cause


class Tokens:
    """Access tokens of OAuth connections, by the connection's revision. Each is fetched once, however many calls want it."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._kept: dict[int, tuple[str, str, float | None]] = {}
        """By connection: its revision, the token, until when it is used."""
        self._fetching: dict[str, asyncio.Task[str]] = {}
        """By revision: who wants a token while it is fetched gets that one, or hears that there is none."""

    async def of(self, connection: Connection, *, instead_of: str | None = None) -> str | None:
        """Answer a token, but not `instead_of`; None for a connection that needs none. Raises `NoToken`."""
        if not connection.kind.startswith("OAUTH"):
            return None
        revision, token, until = self._kept.get(connection.id, ("", "", None))
        is_good = until is None or until > asyncio.get_running_loop().time()
        if revision == connection.revision and token != instead_of and is_good:
            return token
        fetching = self._fetching.get(connection.revision)
        if fetching is None:
            fetching = self._fetching[connection.revision] = asyncio.create_task(self._fetch(connection))
            fetching.add_done_callback(lambda _: self._fetching.pop(connection.revision))
        return await asyncio.shield(fetching)

    async def _fetch(self, connection: Connection) -> str:
        token = await self._fetched(connection)
        now = asyncio.get_running_loop().time()
        until = None if token.lives_s is None else now + token.lives_s - min(EARLY_S, token.lives_s / 2)
        self._kept[connection.id] = (connection.revision, token.text, until)
        return token.text

    async def _fetched(self, connection: Connection) -> words.Token:
        whose = "the authorization endpoint of the connection"
        try:
            heard: Heard = await self._line.ask(words.token_request(connection))
        except Refused as bad:
            raise NoToken(words.CLIENT, f"{whose}: {bad}") from None
        except Unreached:
            raise NoToken(words.UNREACHED, f"{whose} cannot be reached.") from None
        except TimeoutError:
            raise NoToken(words.TIMEOUT, f"{whose} did not answer in time.") from None
        if not 200 <= heard.status < 300:
            error = words.error_of(heard.status) if heard.status not in {401, 407} else words.NO_PERMISSIONS
            error = words.NO_PERMISSIONS if error == words.CLIENT else error
            raise NoToken(error, f"{whose} returned HTTP status {heard.status}.")
        token = words.read_token(heard.body)
        if token is None:
            raise NoToken(words.NO_PERMISSIONS, f"{whose} returned no access_token.")
        return token
