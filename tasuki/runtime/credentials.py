"""Who may sign: one owner key per data directory; with `--dev` the public pair test/test, on loopback only.

`DIR/credentials` is an AWS credentials file (profile `default`), mode 0600, made once from the system's randomness.
"""

import configparser
import os
from pathlib import Path

from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.errors import ConfigError

DEV_KEY, DEV_SECRET = "test", "test"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def has_key(config: Config) -> bool:
    """Tell whether there is a key already, or none is needed."""
    return config.dev or (config.data / "credentials").exists()


def owner_key(config: Config) -> tuple[str, str]:
    """Answer the owner's (access key, secret), making them on the first start."""
    if config.dev:
        return DEV_KEY, DEV_SECRET
    path = config.data / "credentials"
    if not path.exists():
        _make(path)
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"{path}: others may read the node's key; run: chmod 600 {path}")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(path.read_text())
        return parser["default"]["aws_access_key_id"], parser["default"]["aws_secret_access_key"]
    except (configparser.Error, KeyError):
        raise ConfigError(f"{path}: not a credentials file; remove it, and the next start makes a new key") from None


def _make(path: Path) -> None:
    chance = Chance.system()
    key = "TSUK" + "".join(ALPHABET[chance.bits(5)] for _ in range(16))
    secret = chance.hex(40)
    text = f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
    fresh = path.with_name(f".credentials.{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, text.encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    fresh.rename(path)
