"""A node: builds the house from a Config and serves it. The only module that knows every room."""

import asyncio
import gc
import ipaddress
import logging
import os
import shutil
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
import uvloop

from tasuki.protocol import wire
from tasuki.protocol.http import Door, Found
from tasuki.runners.contact import Contact
from tasuki.runners.process import ProcessRunner
from tasuki.runners.scripted import ScriptedRunner
from tasuki.runtime import nodes_home, which_store
from tasuki.runtime.attendant import Attendant, house_id
from tasuki.runtime.bell import Bell
from tasuki.runtime.clock import HandClock, WallClock
from tasuki.runtime.clock_desk import ClockDesk
from tasuki.runtime.conductor import Conductor
from tasuki.runtime.courier import Courier
from tasuki.runtime.credentials import has_key, owner_key
from tasuki.runtime.loop import Duty, Loop, PollDuty, TimerDuty
from tasuki.runtime.nodes import Membership
from tasuki.runtime.nodes_home import url_of
from tasuki.runtime.opening import open_store, take_clock
from tasuki.runtime.share import Share
from tasuki.services import buses, deliveries, handovers, machines, pipes, queues, schedules, tasks
from tasuki.services.switchboard import Switchboard
from tasuki.services.tasks.model import path_of
from tasuki.services.tasks.setting import Here
from tasuki.store import place, standing
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Store
from tasuki.values.chance import Chance
from tasuki.values.config import Config, Image
from tasuki.values.documents import dumps
from tasuki.values.errors import ConfigError
from tasuki.values.instant import Clock
from tasuki.values.operations import Operations, Principal

if TYPE_CHECKING:
    from tasuki.services.room import Room
    from tasuki.store.postgres import PostgresStore

log = logging.getLogger("tasuki.node")

ROOMS = (
    handovers.room,
    queues.room,
    tasks.room,
    machines.room,
    pipes.room,
    deliveries.room,
    buses.room,
    schedules.room,
)
LAST_WORDS_S = 3
"""How long a stopping node waits for replies in hand; long polls are ended at once."""


@dataclass(slots=True)
class Node:
    """A built house, ready to be served."""

    config: Config
    store: Store
    bell: Bell
    loop: Loop
    door: Door
    attendant: Attendant
    courier: Courier
    membership: Membership | None
    """None where the store has this node only."""
    conductor: Conductor | None
    """None where the clock is real."""


async def build(config: Config) -> Node:
    """Join everything. Raises `ConfigError`, a `StoreError` (busy, newer, not reached) or an OSError that names its file."""
    prepare_folder(config.data)
    chance, bell = Chance.system(), Bell()
    if config.store is None or has_key(config):
        owner_key(config)  # before anything else is made: it may be refused
    store, clock = open_store(config, chance=chance, on_ring=bell.ring)
    try:
        await store.open()
        await _enter(config, store)
        return await _join(config, store, bell, clock, chance)
    except BaseException:
        store.close()
        raise


async def _enter(config: Config, store: Store) -> None:
    """See that this node belongs to the house, before it makes anything of its own. Raises `ConfigError`."""
    if not await store.look(lambda tx: place.is_known(tx, config)):
        await store.write(lambda tx: place.keep(tx, config))
    if config.store is not None and not has_key(config):
        await store.look(tasks.refuse_new_key)


async def _join(config: Config, store: Store, bell: Bell, clock: Clock, chance: Chance) -> Node:
    key, secret = owner_key(config)
    switchboard = Switchboard()
    rooms: dict[str, Room] = {room.name: room for room in (make(config, switchboard) for make in ROOMS)}
    switchboard.connect(rooms.values())
    switchboard.url = url_of(config.host, config.port)
    contact, share = Contact(str(config.data / "tasks"), config.lost_node_s), Share()
    runner = ProcessRunner(config.data / "tasks", await store.look(house_id), contact=contact)
    here = membership = None
    if config.store is None:
        contact.lift()  # nobody else could take our tasks
        await take_clock(config, store, clock)
    else:
        here, setting = nodes_home.here(config.data, chance), tasks.setting_of(config, switchboard)
        joining = nodes_home.joining(config, nodes_home.digest(key, secret), setting.memory_mib)
        membership = Membership(
            store=store,
            bell=bell,
            setting=setting,
            here=here,
            joining=joining,
            contact=contact,
            share=share,
            wall=WallClock(),
        )
        await _take_part(config, store, clock, here, membership)
    scripts = {name: image.scripted for name, image in config.images.items() if image.scripted is not None}
    scripted = ScriptedRunner(runner, config.data / "tasks", clock, scripts)
    attendant = Attendant(
        store=store,
        runner=scripted if scripts else runner,
        is_scripted=scripted.plays,
        bell=bell,
        config=config,
        switchboard=switchboard,
        clock=clock,
        here=here,
    )
    by_hand = isinstance(clock, HandClock)
    courier = _courier(config, store, switchboard, bell, clock)
    duties: list[Duty] = [TimerDuty(rooms, store, clock, share, unhurried=by_hand), attendant, courier]
    duties += [membership] if membership is not None else []
    duties += [PollDuty(poll, store, clock, unhurried=by_hand) for room in rooms.values() for poll in room.polls]
    loop = Loop(duties, bell, clock, movable=by_hand)
    conductor = None
    if isinstance(clock, HandClock):
        conductor = _conductor(loop, clock, bell, store, attendant, courier=courier)
    desk = ClockDesk(conductor=conductor, loop=loop, clock=clock, store=store)
    owner = Principal(key)

    def credential(access_key: str) -> "Found | Awaitable[Found]":
        if access_key == key:
            return secret, owner
        return store.look(lambda tx: switchboard.credential(tx, access_key))

    operations: dict[str, Operations] = {
        room.service: room.operations for room in rooms.values() if room.service is not None
    }
    operations["tasuki"] = {**operations["tasuki"], **switchboard.house, **desk.operations}
    door = Door(
        config=config,
        operations=operations,
        store=store,
        bell=bell,
        clock=clock,
        real_clock=WallClock(),
        chance=chance,
        credential=credential,
    )
    return Node(config, store, bell, loop, door, attendant, courier, membership, conductor)


async def _take_part(config: Config, store: Store, clock: Clock, here: Here, membership: Membership) -> None:
    """Join the nodes of a house, and see that no two of them go by different clocks, also where two come at once."""
    assert config.store is not None, "a store of several"
    await take_clock(config, store, clock, here.node)
    await membership.join()
    try:
        await take_clock(config, store, clock, here.node)
    except ConfigError:
        await membership.leave()
        raise
    which_store.mark(config.data, config.store)


def _conductor(
    loop: Loop, clock: HandClock, bell: Bell, store: Store, attendant: Attendant, *, courier: Courier
) -> Conductor:
    return Conductor(
        loop=loop,
        clock=clock,
        bell=bell,
        couriers=(courier, *_writing(store)),
        keep=lambda instant: store.commit(lambda tx: standing.keep(tx, instant)),
        steady=time.monotonic,
        tasks=lambda: attendant.running,
    )


def _writing(store: Store) -> "list[PostgresStore]":
    """Answer the store, if its units take time: what they write is of the instant at which they began."""
    if isinstance(store, SqliteStore):
        return []
    from tasuki.store.postgres import PostgresStore  # its driver is loaded only where it is used

    return [store] if isinstance(store, PostgresStore) else []


def _courier(config: Config, store: Store, switchboard: Switchboard, bell: Bell, clock: Clock) -> Courier:
    return Courier(
        store=store,
        switchboard=switchboard,
        bell=bell,
        clock=clock,
        real_clock=WallClock(),
        outbound=config.outbound,
        alone=config.store is None,
    )


def serve(config: Config, *, on_ready: Callable[[str], None]) -> int:
    """Serve a node until SIGTERM or SIGINT; answer the exit code. `on_ready` is given the node's URL, once.

    Raises what `build` raises, and an OSError when the port is taken.
    """
    os.umask(0o077)  # whatever is made in the data directory is its owner's; a task gets a container's usual 022
    refuse_strangers(config)
    which_store.check(config)
    warn_of_images(config)
    prepare_folder(config.data)
    held = nodes_home.hold(config) if config.store is not None else None  # SQLite's store holds the directory itself
    listener = listen(config)
    host, port = listener.getsockname()[:2]
    config = replace(config, port=port)
    url = url_of(host, port)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            node = runner.run(build(config))
            try:
                with announced(config, url):
                    return runner.run(_serve(node, listener, lambda: on_ready(url)))
            finally:
                node.store.close()
    finally:
        listener.close()
        if held is not None:
            os.close(held)


async def _serve(node: Node, listener: socket.socket, on_ready: Callable[[], None]) -> int:
    server = _Server(wire.settings(node.door, loop="none", timeout_graceful_shutdown=LAST_WORDS_S))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await node.attendant.open()
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    duties = asyncio.create_task(node.loop.serve())
    await asyncio.wait([asyncio.create_task(server.up.wait()), serving], return_when=asyncio.FIRST_COMPLETED)
    gc.collect()
    gc.freeze()  # what is here now stays: spare every later collection a look at it
    gc.set_threshold(20_000, 20, 50)
    on_ready()
    ending = asyncio.create_task(stop.wait())
    waits: list[asyncio.Task[Any]] = [ending, serving, duties]
    if node.membership is not None:
        waits.append(asyncio.create_task(node.membership.over.wait()))
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    is_over = node.membership is not None and node.membership.over.is_set()
    failed = duties.done() and not duties.cancelled() and duties.exception() is not None
    if failed:
        log.critical("the loop ended", exc_info=duties.exception())
    node.bell.close()  # long polls get their answer now
    if node.conductor is not None:
        node.conductor.close()
    server.should_exit = True
    duties.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await duties
    for one in waits:
        if one is not serving:
            one.cancel()
    await serving
    await node.courier.close()
    node.attendant.close()
    if node.membership is not None and not is_over:
        await node.membership.leave()
    return 70 if failed or is_over else 0


class _Server(uvicorn.Server):
    """uvicorn without its own idea of signals (the node stops its duties too), and with word of when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self.up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the node."""
        yield


def refuse_strangers(config: Config) -> None:
    """Keep the public development key on loopback."""
    if config.dev and not _is_loopback(config.host):
        raise ConfigError(
            f"--dev accepts the public key test/test, so it listens on loopback only; --host {config.host} is not. "
            "Leave out --dev (a key of your own is made in the data directory), or --host."
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(config: Config) -> socket.socket:
    """Take the port before anything else is touched."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((config.host, config.port))
        listener.listen(2048)
        listener.set_inheritable(False)
    except OSError:
        listener.close()
        raise
    return listener


def warn_of_images(config: Config) -> None:
    """Say which images cannot run as they stand. No error: a folder may come later, and other images are not concerned."""
    for image in config.images.values():
        wanted = (image.folder, *(() if image.venv is None else (image.venv / "bin",)))
        for missing in (folder for folder in wanted if not folder.is_dir()):
            log.warning(
                'image "%s": the folder %s does not exist; its tasks fail to start until it does', image.name, missing
            )
        if image.scripted is None and image.folder.is_dir() and (why := _not_found(image)):
            log.warning('image "%s": %s', image.name, why)


def _not_found(image: Image) -> str:
    """Say that an image's tasks would not find their program; nothing if they do, or if the image names none."""
    program = next(iter(image.command), "")
    if "/" in program:
        path = image.folder / program
        return "" if path.exists() else f"there is no file {path}, which is its command"
    if not program or shutil.which(program, path=path_of(image)):
        return ""
    return (
        f"its command {program} is not found in PATH, which is {path_of(image)}; "
        "give it a venv, or name the program by its absolute path"
    )


def prepare_folder(folder: Path) -> None:
    """Make the data directory, for its owner only, and see that it can be written. Raises OSError naming it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    probe = folder / f".probe.{os.getpid()}"
    probe.touch(mode=0o600)
    probe.unlink()


@contextmanager
def announced(config: Config, url: str) -> Iterator[None]:
    """Say in `DIR/node.json` where the node is, for the command line, as long as it is there."""
    path = config.data / "node.json"
    fresh = path.with_suffix(".tmp")
    facts = {"url": url, "pid": os.getpid(), "dev": config.dev, "region": config.region, "account": config.account}
    fresh.write_text(dumps(facts) + "\n")
    fresh.rename(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
