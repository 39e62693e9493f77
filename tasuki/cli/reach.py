"""Finding a node and speaking to it, signed, as any AWS client does.

Looked at in this order: `--data DIR` (its `node.json`), `TASUKI_DATA`, `AWS_ENDPOINT_URL`, `.tasuki` here. `tasuki env`
sets both variables.
"""

import os
import shlex
import sys
from configparser import ConfigParser
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tasuki.cli import presence, screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.pace import pause
from tasuki.runtime.clock import SystemClock
from tasuki.runtime.which_store import MARK, mark_of
from tasuki.values import documents
from tasuki.values.config import read_config
from tasuki.values.errors import ConfigError, MalformedDocument

DEFAULT_DATA = Path(".tasuki")
SIGN_WITHIN_S = 10
"""How long `env` waits for a node that perhaps starts just now: its first sign comes after a fraction of a second."""
START_WITHIN_S = 60
"""How long a node may take from there."""
_QUIET_MS = 1_000
_IF_TAKEN = "if it ends at once since the port is in use, another node may be there: add --port N"


@dataclass(frozen=True)
class Reach:
    """Where a node listens and the key to speak to it. `folder` is its data directory, when it is known."""

    url: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"
    folder: Path | None = None
    pid: int | None = None
    dev: bool = False
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def _session(self) -> Any:
        from botocore.session import Session

        session = Session()
        # The user's own profiles concern AWS, not us.
        session.set_config_variable("config_file", os.devnull)
        session.set_config_variable("credentials_file", os.devnull)
        session.set_credentials(self.access_key, self.secret_key)
        return session

    def is_there(self) -> bool:
        """Tell whether the node lives and listens, without asking it anything."""
        return (self.pid is None or presence.is_alive(self.pid)) and presence.answers(self.url)

    def client(self, service: str, answer_within_s: int = 70) -> Any:
        """Answer botocore's client of a service (`sqs`, `stepfunctions`, `ecs`, `pipes`)."""
        key = f"{service}/{answer_within_s}"
        if key not in self._clients:
            from botocore.config import Config

            settings = Config(
                connect_timeout=3,
                read_timeout=answer_within_s,
                retries={"mode": "standard", "total_max_attempts": 3},
                inject_host_prefix=False,
                # A proxy that the shell names is for elsewhere.
                proxies={"http": ""},
            )
            self._clients[key] = self._session.create_client(
                service, region_name=self.region, endpoint_url=self.url, config=settings
            )
        return self._clients[key]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point SDKs and the AWS CLI here."""
        folder = {} if self.folder is None else {"TASUKI_DATA": str(self.folder.absolute())}
        return {
            **folder,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
        }


def find_node(data: Path | None, *, patience_s: int | None = None) -> Reach:
    """Find the node to speak to. Raises `Complaint` when there is none.

    One that is on its way is waited for. With `patience_s`, so is one of which there is no sign yet, and it must be there.
    """
    if data is None and (url := os.environ.get("AWS_ENDPOINT_URL")):
        folder = DEFAULT_DATA if _is_node(DEFAULT_DATA, url) else None
        return Reach(
            url=url.rstrip("/"),
            access_key=os.environ.get("AWS_ACCESS_KEY_ID", "test"),
            secret_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "test"),
            region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
            folder=folder,
        )
    return _await_node(data if data is not None else DEFAULT_DATA, patience_s)


def _await_node(data: Path, patience_s: int | None) -> Reach:
    clock = SystemClock()
    began = clock.now()
    give_up, on_its_way, said = began + (patience_s or 0) * 1000, False, False
    while True:
        starting = presence.is_starting(data)
        if starting and not on_its_way:
            give_up = clock.now() + START_WITHIN_S * 1000
        elif on_its_way and not starting:
            give_up = clock.now()  # it is there, or nothing came of it: one last look
        on_its_way = starting
        reach, why = _look(data)
        if reach is not None and not starting and patience_s is None:
            return reach  # whether it answers shows when it is asked
        if reach is not None and reach.is_there():
            return reach
        now = clock.now()
        if now >= give_up:
            raise why or Complaint(
                f"no node answers at {reach.url if reach else data} any more",
                Code.UNREACHABLE,
                hint=f"{how_to_start(data)}\n{_IF_TAKEN}",
            )
        if not said and now - began > _QUIET_MS:
            said = True
            screen.line(f"tasuki: waiting for a node on {data} to start ...", sys.stderr)
        pause(0.05)


def _look(data: Path) -> tuple[Reach | None, Complaint | None]:
    try:
        return read_node(data), None
    except Complaint as why:
        if why.code is not Code.UNREACHABLE:
            raise
        return None, why


def how_to_start(data: Path) -> str:
    """Tell how the node of a directory was started, as far as the directory shows it; or how to start the first one."""
    if not _has_run(data):
        return "start one with: tasuki up --dev    or name its directory with --data DIR"
    words = ["tasuki up"]
    if data != DEFAULT_DATA:
        words.append(f"--data {shlex.quote(str(data))}")
    if not (data / "credentials").exists():
        words.append("--dev")
    with suppress(ConfigError):
        marked = mark_of(data)
        if marked is not None and read_config(data).store is None:
            words.append(f"--store {shlex.quote(marked)}")
    return f"start it again with: {' '.join(words)}"


def _has_run(data: Path) -> bool:
    return any((data / name).exists() for name in ("tasuki.db", "node_id", MARK))


def read_node(data: Path) -> Reach:
    """Read what a node wrote into its data directory when it started. Raises `Complaint`."""
    try:
        facts = documents.loads((data / "node.json").read_text())
        dev = bool(facts.get("dev"))
        access_key, secret_key = ("test", "test") if dev else _credentials(data / "credentials")
        url, pid = str(facts["url"]).rstrip("/"), int(facts["pid"])
    except FileNotFoundError:
        what = f"no node runs on {data} now" if _has_run(data) else f"no node has run on {data} yet"
        raise Complaint(what, Code.UNREACHABLE, hint=f"{how_to_start(data)}\n{_IF_TAKEN}") from None
    except NotADirectoryError:
        raise Complaint(f"{data} is not a directory", Code.DATA) from None
    except PermissionError as refused:
        raise Complaint(f"{refused.filename} is not readable for you", Code.DATA) from None
    except (MalformedDocument, KeyError, ValueError, AttributeError) as bad:
        raise Complaint(f"{data / 'node.json'} is not what a node writes: {bad}", Code.DATA) from None
    region = str(facts.get("region", "us-east-1"))
    return Reach(url, access_key, secret_key, region, folder=data, pid=pid, dev=dev)


def _credentials(source: Path) -> tuple[str, str]:
    """Read a key pair in the format of AWS's own credentials file."""
    parsed = ConfigParser(interpolation=None)
    parsed.read_string(source.read_text())
    return parsed["default"]["aws_access_key_id"], parsed["default"]["aws_secret_access_key"]


def _is_node(folder: Path, url: str) -> bool:
    """Tell whether the node of `folder` is the one at `url`: then its log files are ours to read."""
    try:
        return bool(documents.loads((folder / "node.json").read_text())["url"] == url.rstrip("/"))
    except (OSError, MalformedDocument, KeyError, TypeError):
        return False
