"""Finding a node and speaking to it, signed, as any AWS client does.

Looked at in this order: `--data DIR` (its `node.json`), the variables that `tasuki env` prints, `.tasuki` here.
"""

import os
from configparser import ConfigParser
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tasuki.cli.complaints import Code, Complaint
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

DEFAULT_DATA = Path(".tasuki")


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

    def client(self, service: str) -> Any:
        """Answer botocore's client of a service (`sqs`, `stepfunctions`, `ecs`, `pipes`)."""
        if service not in self._clients:
            from botocore.config import Config

            settings = Config(
                connect_timeout=3,
                read_timeout=70,
                retries={"mode": "standard", "total_max_attempts": 3},
                inject_host_prefix=False,
                # A proxy that the shell names is for elsewhere.
                proxies={"http": ""},
            )
            self._clients[service] = self._session.create_client(
                service, region_name=self.region, endpoint_url=self.url, config=settings
            )
        return self._clients[service]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point SDKs and the AWS CLI here."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
        }


def find_node(data: Path | None) -> Reach:
    """Find the node to speak to. Raises `Complaint` when there is none."""
    if data is not None:
        return read_node(data)
    if url := os.environ.get("AWS_ENDPOINT_URL"):
        folder = DEFAULT_DATA if _is_node(DEFAULT_DATA, url) else None
        return Reach(
            url=url.rstrip("/"),
            access_key=os.environ.get("AWS_ACCESS_KEY_ID", "test"),
            secret_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "test"),
            region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
            folder=folder,
        )
    return read_node(DEFAULT_DATA)


def read_node(data: Path) -> Reach:
    """Read what a node wrote into its data directory when it started. Raises `Complaint`."""
    try:
        facts = documents.loads((data / "node.json").read_text())
        dev = bool(facts.get("dev"))
        access_key, secret_key = ("test", "test") if dev else _credentials(data / "credentials")
        url, pid = str(facts["url"]).rstrip("/"), int(facts["pid"])
    except FileNotFoundError:
        raise Complaint(
            f"no node has run on {data} yet",
            Code.UNREACHABLE,
            hint="start one with: tasuki up --dev    or name its directory with --data DIR",
        ) from None
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
