"""One frozen configuration, validated once.

Read only from the data directory (`DIR/tasuki.toml`) or from `--config FILE`; a file that others may write is
refused, since it decides what is executed.

::

    [node]
    account = "000000000000"      # 12 digits
    region = "us-east-1"
    memory = "8GiB"               # what tasks may use together; default: three quarters of the machine's
    names = ["tasuki.internal"]   # other names that clients call this node by, as of a load balancer
    store = "postgresql://..."    # a database that several nodes may share; default: a file in the data directory
    lost_node_s = 600             # several nodes: after how long one that is not heard of is given up

    [quotas]                      # all of them: docs/CONFIGURATION.md
    running_tasks = 1000

    [images."routing-v1"]         # the image name in a task definition, a lookup key, never a path
    folder = "engines/v1"         # working directory; relative to this file
    command = ["python3", "solve.py"]
    venv = "engines/v1/.venv"     # optional: its bin/ comes first in PATH
    stop_signal = "SIGTERM"       # optional

    [images."routing-v2"]         # with --clock manual only: nothing runs, and it takes house time
    scripted = { duration = "61m", exit_code = 0, output = "done", memory = "300MiB" }

    [outbound]                    # where API destinations may call besides public addresses
    allow = ["127.0.0.0/8", "10.1.0.0/16", "internal.example"]
"""

import os
import re
import signal
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tasuki.values.durations import parse_duration
from tasuki.values.errors import ConfigError
from tasuki.values.outbound import Outbound

NODE_KEYS = ("account", "region", "memory", "names", "store", "lost_node_s")
LOST_NODE_S, LEAST_LOST_NODE_S = 600, 30
QUOTAS = (
    "activities",
    "event_buses",
    "event_rules",
    "execution_bytes",
    "execution_days",
    "handover_days",
    "log_days",
    "long_polls",
    "map_run_children",
    "open_executions",
    "pipes",
    "requests_in_flight",
    "running_tasks",
    "schedule_groups",
    "schedules",
    "sqs_in_flight",
    "sqs_recreate_wait_s",
    "start_executions_burst",
    "start_executions_per_second",
    "state_machines",
    "state_transitions_burst",
    "state_transitions_per_second",
    "stopped_tasks_days",
)
"""Every key of [quotas] that some room reads; a test holds this list, the rooms and docs/CONFIGURATION.md together."""
OUTBOUND_KEYS = ("allow",)
IMAGE_KEYS = ("folder", "command", "venv", "stop_signal", "environment", "scripted")
SCRIPT_KEYS = ("duration", "exit_code", "output", "memory")
_NAME = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_MEMORY = re.compile(r"^(\d+)\s*(MiB|GiB|MB|GB|M|G)?$")


@dataclass(frozen=True, slots=True)
class Image:
    """What an image name stands for: a folder, a command, and perhaps a virtual environment."""

    name: str
    folder: Path
    command: tuple[str, ...]
    venv: Path | None = None
    stop_signal: str = "SIGTERM"
    environment: Mapping[str, str] = field(default_factory=dict)
    scripted: "Script | None" = None
    """Nothing is run: how it would go."""


@dataclass(frozen=True, slots=True)
class Script:
    """How an image goes of which nothing runs: how long in house time, how it ends, what it prints, how much memory it comes to."""

    duration_ms: int = 0
    exit_code: int = 0
    output: str = ""
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a node needs to know before it starts."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 4566
    dev: bool = False
    clock: Literal["real", "manual"] = "real"
    store: str | None = None
    """`postgresql://user@host/database`, or None: a SQLite file in the data directory."""
    account: str = "000000000000"
    region: str = "us-east-1"
    memory_mib: int | None = None
    names: tuple[str, ...] = ()
    """What clients may call this node besides `host` and loopback, with a port or without: a load balancer's name, say."""
    lost_node_s: float = LOST_NODE_S
    """Several nodes: one that is not heard of for so long is given up; its tasks have ended by themselves by then."""
    images: Mapping[str, Image] = field(default_factory=dict)
    quotas: Mapping[str, int] = field(default_factory=dict)
    outbound: Outbound = field(default_factory=Outbound)
    """Where API destinations may call."""
    source: Path | None = None
    """The file that was read, or None."""


def read_config(data: Path, config: Path | None = None, **options: Any) -> Config:
    """Read the file (if there is one), lay the command line's options over it, and check everything.

    Raises `ConfigError` naming the file, the key and the fix.
    """
    source = config if config is not None else data / "tasuki.toml"
    if not source.exists():
        if config is not None:
            raise ConfigError(f"{source}: no such file; check --config")
        return Config(data=data, **options)
    _refuse_writable_by_others(source)
    try:
        tree = tomllib.loads(source.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as bad:
        raise ConfigError(f"{source}: {bad}") from None
    if unknown := set(tree) - {"node", "quotas", "images", "outbound"}:
        name = min(unknown)
        kind, fix = (
            (f"table [{name}]", "") if isinstance(tree[name], dict) else (f"key {name} outside any table", _home(name))
        )
        raise ConfigError(
            f"{source}: unknown {kind}; known tables are [node], [quotas], [images.NAME], [outbound]{fix}"
        )
    node = _table(source, tree, "node")
    if extra := set(node) - set(NODE_KEYS):
        raise ConfigError(f"{source}: unknown key node.{min(extra)}; known are {', '.join(NODE_KEYS)}")
    account = node.get("account", "000000000000")
    if not isinstance(account, str) or not re.fullmatch(r"\d{12}", account):
        raise ConfigError(f"{source}: node.account must be a string of 12 digits")
    region = node.get("region", "us-east-1")
    if not isinstance(region, str) or not re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d", region):
        raise ConfigError(f"{source}: node.region must look like us-east-1")
    store = options.pop("store", node.get("store"))
    if store is not None and not (isinstance(store, str) and store):
        raise ConfigError(f"{source}: node.store must be text like postgresql://user@host/database")
    quotas = _table(source, tree, "quotas")
    if extra := set(quotas) - set(QUOTAS):
        raise ConfigError(f"{source}: unknown key quotas.{min(extra)}; known are {', '.join(QUOTAS)}")
    for key, value in quotas.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ConfigError(f"{source}: quotas.{key} must be a whole number, 0 or more")
    images = {name: _image(source, name, entry) for name, entry in _table(source, tree, "images").items()}
    scripted = [name for name, image in images.items() if image.scripted is not None]
    if (
        scripted and options.get("clock", "manual") != "manual"
    ):  # who starts no node reads the file, too, and says nothing
        raise ConfigError(
            f'{source}: images."{scripted[0]}" is scripted, and takes house time: start the node with --clock manual, or give it '
            "a folder and a command"
        )
    return Config(
        data=data,
        store=store,
        account=account,
        region=region,
        memory_mib=_memory(source, node["memory"]) if "memory" in node else None,
        names=_names(source, node.get("names", [])),
        lost_node_s=_lost_node_s(source, node.get("lost_node_s", LOST_NODE_S)),
        images=images,
        quotas=quotas,
        outbound=_outbound(source, _table(source, tree, "outbound")),
        source=source,
        **options,
    )


def _refuse_writable_by_others(source: Path) -> None:
    facts = source.stat()
    if facts.st_uid not in {os.getuid(), 0}:
        raise ConfigError(f"{source}: belongs to another user; it decides what is executed, so it must be yours")
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(f"{source}: others may write it, and it decides what is executed; run: chmod go-w {source}")


def _home(key: str) -> str:
    """Tell where a key that stands alone may have been meant to be."""
    return f"; {key} belongs under [node]" if key in NODE_KEYS else ""


def _table(source: Path, tree: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = tree.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{source}: {name} must be a table: [{name}]")
    return table


def _memory(source: Path, value: Any) -> int:
    found = _MEMORY.match(value) if isinstance(value, str) else None
    if not found:
        raise ConfigError(f'{source}: node.memory must be text like "8GiB" or "512MiB"')
    amount = int(found[1])
    return amount * 1024 if (found[2] or "MiB").startswith("G") else amount


def _names(source: Path, names: Any) -> tuple[str, ...]:
    if isinstance(names, list) and all(isinstance(one, str) and _NAME.fullmatch(one) for one in names):
        return tuple(names)
    raise ConfigError(f'{source}: node.names must be a list of hosts, with a port or without: ["tasuki.internal:4566"]')


def _lost_node_s(source: Path, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < LEAST_LOST_NODE_S:
        raise ConfigError(f"{source}: node.lost_node_s must be a whole number of seconds, {LEAST_LOST_NODE_S} or more")
    return value


def _outbound(source: Path, table: Mapping[str, Any]) -> Outbound:
    if extra := set(table) - set(OUTBOUND_KEYS):
        raise ConfigError(f"{source}: unknown key outbound.{min(extra)}; known is {', '.join(OUTBOUND_KEYS)}")
    allow = table.get("allow", [])
    if not isinstance(allow, list) or not all(isinstance(one, str) for one in allow):
        raise ConfigError(
            f'{source}: outbound.allow must be a list of networks and names: ["10.1.0.0/16", "internal.example"]'
        )
    try:
        return Outbound.of(allow)
    except ValueError as bad:
        raise ConfigError(
            f'{source}: outbound.allow: "{bad}" is neither a network (10.1.0.0/16, 10.1.2.3, fd00::/8) nor the name of a host'
        ) from None


def _image(source: Path, name: str, entry: Any) -> Image:
    where = f'{source}: images."{name}"'
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} must be a table with folder and command")
    if extra := set(entry) - set(IMAGE_KEYS):
        raise ConfigError(f"{where}: unknown key {min(extra)}; known are {', '.join(IMAGE_KEYS)}")
    if "scripted" in entry:
        return Image(name, source.parent.resolve(), (), scripted=_script(where, entry))
    command = entry.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise ConfigError(f'{where}.command must be a list of words, like ["python", "job.py"]')
    folder = entry.get("folder")
    if not isinstance(folder, str):
        raise ConfigError(f"{where}.folder must be text: the working directory, relative to this file")
    base = source.parent.resolve()
    venv = entry.get("venv")
    if venv is not None and not isinstance(venv, str):
        raise ConfigError(f"{where}.venv must be text: the virtual environment's folder")
    stop_signal = entry.get("stop_signal", "SIGTERM")
    if not isinstance(stop_signal, str) or stop_signal not in signal.Signals.__members__:
        raise ConfigError(f"{where}.stop_signal must be a signal's name, like SIGTERM")
    environment = entry.get("environment", {})
    if not isinstance(environment, dict) or not all(isinstance(v, str) for v in environment.values()):
        raise ConfigError(f"{where}.environment must be a table of texts")
    return Image(
        name=name,
        folder=base / folder,
        command=tuple(command),
        venv=base / venv if venv is not None else None,
        stop_signal=stop_signal,
        environment=environment,
    )


def _script(where: str, entry: dict[str, Any]) -> Script:
    given = entry["scripted"]
    if extra := set(entry) - {"scripted"}:
        raise ConfigError(f"{where} is scripted, so nothing runs: leave out {min(extra)}")
    if not isinstance(given, dict):
        raise ConfigError(f'{where}.scripted must be a table, like {{ duration = "61m", exit_code = 0 }}')
    if extra := set(given) - set(SCRIPT_KEYS):
        raise ConfigError(f"{where}.scripted: unknown key {min(extra)}; known are {', '.join(SCRIPT_KEYS)}")
    duration, code = given.get("duration", "0"), given.get("exit_code", 0)
    try:
        duration_ms = parse_duration(duration if isinstance(duration, str) else "?")
    except ValueError:
        raise ConfigError(f'{where}.scripted.duration must be text like "61m" or "1h30m"') from None
    if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code <= 255:
        raise ConfigError(f"{where}.scripted.exit_code must be a whole number from 0 to 255")
    output, memory = given.get("output", ""), given.get("memory")
    if not isinstance(output, str):
        raise ConfigError(f"{where}.scripted.output must be text")
    if memory is None:
        return Script(duration_ms, code, output)
    found = _MEMORY.match(memory) if isinstance(memory, str) else None
    if found is None:
        raise ConfigError(f'{where}.scripted.memory must be text like "300MiB"')
    return Script(duration_ms, code, output, int(found[1]) * (1024 if (found[2] or "MiB").startswith("G") else 1))
