"""The owner's key."""

import stat
from pathlib import Path

import pytest

from tasuki.runtime.credentials import owner_key
from tasuki.values.config import Config
from tasuki.values.errors import ConfigError


def test_a_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    first = owner_key(Config(data=tmp_path))
    assert first == owner_key(Config(data=tmp_path))
    assert len(first[0]) == 20
    assert len(first[1]) == 40
    assert stat.S_IMODE((tmp_path / "credentials").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["credentials"]


def test_two_directories_have_two_keys(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert owner_key(Config(data=tmp_path / "a")) != owner_key(Config(data=tmp_path / "b"))


def test_dev_uses_the_public_pair_and_writes_nothing(tmp_path: Path) -> None:
    assert owner_key(Config(data=tmp_path, dev=True)) == ("test", "test")
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    owner_key(Config(data=tmp_path))
    (tmp_path / "credentials").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        owner_key(Config(data=tmp_path))


def test_a_broken_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("nonsense")
    (tmp_path / "credentials").chmod(0o600)
    with pytest.raises(ConfigError, match="remove it"):
        owner_key(Config(data=tmp_path))
