"""From an operation to its unit, and back with the answer.

::

    read   ──> store.read(run)
    write  ──> store.write(run)
    poll   ──> store.read(look) ──None──> store.write(run) ──answer──>
                    │ NotYet                   │ NotYet (somebody was faster)
                    └──> wait for the bell, the next due instant, the end of the poll, or the client's leaving
    act    ──> act(request), outside units, as long as the client is there

A long poll first looks, then takes its place at the bell, then looks again: so a ring that falls between looking and
waiting is not lost. A place that was rung for but not used passes the ring on.

Under a clock that is moved by hand a poll ends when house time has come to its end, and at the latest when as much real time
has passed as it was to wait: clients have timeouts of their own, and do not know that the clock stands still.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from tasuki.protocol.faults import AccessDenied, QueueThrottled, Throttled, TooManyRequests
from tasuki.store.store import Store
from tasuki.values.errors import DomainError
from tasuki.values.instant import Clock, Instant
from tasuki.values.operations import NotYet, Operation, Request
from tasuki.values.service_models import Action

CLOCK = "clock"
"""The topic that rings when a manual clock was moved."""
_SHORTEST_WAIT_S = 0.002
"""A wake-up in the past must not become a busy loop."""


class Bell(Protocol):
    """What long polls need of the bell (`runtime/bell.py`)."""

    @property
    def closed(self) -> bool:
        """The node ends: whoever waits is answered."""

    async def wait(self, topic: str, timeout_s: float | None) -> bool:
        """Wait in turn for a ring of `topic`; False when the time is up first."""

    def ring(self, topic: str, times: int = 1) -> None:
        """Wake the first `times` waiters."""


class ClientGone(Exception):
    """The client hung up while it waited. Nobody is there to be answered."""


class Client:
    """The other end of a request: tells when it has hung up."""

    __slots__ = ("_receive", "_watch")

    def __init__(self, receive: Callable[[], Awaitable[Any]]) -> None:
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None

    def watch(self) -> "asyncio.Task[None]":
        """A task that ends when the client hangs up. Only to be asked for when the body has been read."""
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._until_gone())
        return self._watch

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    @property
    def gone(self) -> bool:
        """Whether the client is known to have hung up."""
        return self._watch is not None and self._watch.done()

    def forget(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.cancel()


class _Place:
    """A place in the bell's queue."""

    __slots__ = ("_bell", "_topic", "rung")

    def __init__(self, bell: Bell, topic: str) -> None:
        self._bell = bell
        self._topic = topic
        self.rung = asyncio.ensure_future(bell.wait(topic, None))

    async def leave(self, *, used: bool) -> None:
        """Give the place up; a ring that was not used goes to the next."""
        if not self.rung.done():
            self.rung.cancel()
            with suppress(asyncio.CancelledError):
                await self.rung
        if not used and self.rung.done() and not self.rung.cancelled() and self.rung.exception() is None:
            self._bell.ring(self._topic)


class Dispatch:
    """Runs operations, within bounds."""

    def __init__(
        self,
        store: Store,
        bell: Bell,
        clock: Clock,
        *,
        real_clock: Clock,
        manual_clock: bool,
        in_flight: int,
        long_polls: int,
    ) -> None:
        self._store = store
        self._bell = bell
        self._clock, self._real_clock = clock, real_clock
        self._manual_clock = manual_clock
        self._room = in_flight
        self._seats = long_polls
        self._waiting: Counter[str] = Counter()

    async def run(self, action: Action, operation: Operation, request: Request, client: Client) -> dict[str, Any]:
        """Answer a request. Raises what the unit raises, `AccessDenied`, or the service's throttling error."""
        allowed = request.principal.actions
        if allowed is not None and action.permission not in allowed:
            raise denied(action, request)
        if self._room <= 0:
            raise throttled(action)
        self._room -= 1
        try:
            if operation.kind == "write":
                answer = await self._store.write(lambda tx: operation.run(tx, request))
            elif operation.kind == "read":
                answer = await self._store.read(lambda tx: operation.run(tx, request))
            elif operation.act is not None:
                return await _while_there(operation.act(request), client)
            else:
                return await self._poll(action, operation, request, client)
        finally:
            self._room += 1
        return answer.answer if isinstance(answer, NotYet) else answer

    async def _poll(self, action: Action, operation: Operation, request: Request, client: Client) -> dict[str, Any]:
        seen = await self._try(operation, request, client)
        if not isinstance(seen, NotYet):
            return seen
        if self._clock.now() >= seen.until:
            return seen.answer
        if self._seats <= 0:
            raise throttled(action)
        if seen.crowd is not None and self._waiting[seen.topic] >= seen.crowd.most:
            raise seen.crowd.refusal()
        # Whoever waits takes a seat, not room: only units count as in flight.
        self._seats -= 1
        self._room += 1
        self._waiting[seen.topic] += 1
        try:
            return await self._wait(operation, request, client, seen)
        finally:
            self._seats += 1
            self._room -= 1
            self._waiting[seen.topic] -= 1
            if not self._waiting[seen.topic]:
                del self._waiting[seen.topic]
            client.forget()

    async def _wait(self, operation: Operation, request: Request, client: Client, seen: NotYet) -> dict[str, Any]:
        client.watch()
        until = seen.until  # each look names its own; the wait began with the first
        real_until = self._real_clock.now() + until - self._clock.now()
        while True:
            place = _Place(self._bell, seen.topic)
            moved = _Place(self._bell, CLOCK) if self._manual_clock else None
            used = False
            try:
                # One turn of the loop, in which the places are taken.
                await asyncio.sleep(0)
                answer = await self._try(operation, request, client)
                if not isinstance(answer, NotYet):
                    return answer
                seen = replace(answer, until=until)
                is_late = moved is not None and self._real_clock.now() >= real_until
                if self._clock.now() >= until or is_late or self._bell.closed:
                    return seen.answer
                used = await self._pause(seen, place, moved, client, real_until)
            finally:
                await place.leave(used=used)
                if moved is not None:
                    await moved.leave(used=True)
            if client.gone:
                raise ClientGone

    async def _pause(
        self, seen: NotYet, place: _Place, moved: _Place | None, client: Client, real_until: Instant
    ) -> bool:
        """Wait for something to happen; answer whether the bell's ring will be used."""
        left_ms = real_until - self._real_clock.now()
        if moved is None:
            left_ms = (seen.until if seen.wake_at is None else min(seen.until, seen.wake_at)) - self._clock.now()
        timeout_s = max(left_ms / 1000, _SHORTEST_WAIT_S)
        happenings: set[asyncio.Future[Any]] = {place.rung, client.watch()}
        if moved is not None:
            happenings.add(moved.rung)
        await asyncio.wait(happenings, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return place.rung.done() and not client.gone

    async def _try(self, operation: Operation, request: Request, client: Client) -> dict[str, Any] | NotYet:
        look = operation.look
        if look is not None:
            seen = await self._store.read(lambda tx: look(tx, request))
            if seen is not None:
                return seen
        # Nothing is claimed for somebody who is not there.
        if client.gone:
            raise ClientGone
        return await self._store.write(lambda tx: operation.run(tx, request))


async def _while_there(work: Awaitable[dict[str, Any]], client: Client) -> dict[str, Any]:
    """Await work that is done for somebody who waits; when nobody does any more, it is cancelled."""
    doing = asyncio.ensure_future(work)
    try:
        await asyncio.wait({doing, client.watch()}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientGone
        return await doing
    finally:
        client.forget()
        if not doing.done():
            doing.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await doing


def denied(action: Action, request: Request) -> DomainError:
    """What AWS says when a policy is missing."""
    who = f"arn:aws:iam::{request.account}:user/{request.principal.access_key}"
    return AccessDenied(
        f"User: {who} is not authorized to perform: {action.permission} because no identity-based policy allows the "
        f"{action.permission} action"
    )


def throttled(action: Action) -> DomainError:
    """The service's own error for too much at once."""
    if action.service.name == "sqs":
        return QueueThrottled("Rate exceeded")
    return (TooManyRequests if action.service.protocol == "rest-json" else Throttled)("Rate exceeded")
