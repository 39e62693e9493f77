"""docs/CONFIGURATION.md names every key that is read, and no other; its example is a file that a node takes."""

import re
from pathlib import Path

import pytest

from tasuki.values import config
from tasuki.values.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "CONFIGURATION.md").read_text()


def keys_of(section: str) -> set[str]:
    """The keys in the table below a heading."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))


def test_the_keys_of_node_images_and_outbound_are_documented() -> None:
    assert keys_of("[node]") == set(config.NODE_KEYS)
    assert keys_of("[outbound]") == set(config.OUTBOUND_KEYS)
    assert keys_of("[images.NAME]") == set(config.IMAGE_KEYS)


def test_the_quotas_that_rooms_read_are_known_and_documented() -> None:
    read = {
        key
        for source in (ROOT / "tasuki").rglob("*.py")
        for key in re.findall(r"""quotas\.get\(\s*"(\w+)""", source.read_text())
    }
    assert read == set(config.QUOTAS) == keys_of("[quotas]")


def test_the_example_is_taken(tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "tasuki.toml").write_text(example)
    (tmp_path / "tasuki.toml").chmod(0o600)
    taken = config.read_config(tmp_path)
    image = taken.images["routing-v1"]
    assert (taken.region, taken.memory_mib, taken.quotas) == ("eu-central-1", 8192, {"running_tasks": 50})
    assert image.folder == tmp_path.resolve() / "engines" / "v1"
    assert image.environment == {"OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('memory = "8GiB"\n', r"unknown key memory outside any table.*memory belongs under \[node\]"),
        ("elsewhere = 1\n", r"unknown key elsewhere outside any table; known tables are"),
        ("[image.x]\n", r"unknown table \[image\]"),
        ("[quotas]\nrunning_task = 1\n", r"unknown key quotas.running_task; known are .*running_tasks"),
        ("[node]\nlost_node_s = 29\n", r"node.lost_node_s must be a whole number of seconds, 30 or more"),
        ('[node]\nnames = "one"\n', r"node.names must be a list of hosts, with a port or without"),
        ('[node]\nnames = ["http://one"]\n', r"node.names must be a list of hosts"),
        ("[node]\nlost_node_s = true\n", r"node.lost_node_s must be a whole number of seconds"),
        ("[node]\nstore = 7\n", r"node.store must be text like postgresql://"),
        ("[outbound]\nallowed = []\n", r"unknown key outbound.allowed; known is allow"),
        ('[outbound]\nallow = "10.0.0.0/8"\n', r"outbound.allow must be a list of networks and names"),
        ('[outbound]\nallow = ["10.0.0.1/8"]\n', r'outbound.allow: "10.0.0.1/8" is neither a network'),
        ('[outbound]\nallow = ["http://in.example"]\n', r'outbound.allow: "http://in.example" is neither'),
    ],
)
def test_what_nobody_knows_or_takes_is_refused_by_its_name(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "tasuki.toml").write_text(text)
    (tmp_path / "tasuki.toml").chmod(0o600)
    with pytest.raises(ConfigError, match=said):
        config.read_config(tmp_path)


def test_the_store_of_the_file_counts_unless_the_command_line_names_another(tmp_path: Path) -> None:
    (tmp_path / "tasuki.toml").write_text('[node]\nstore = "postgresql://one@h/d"\nlost_node_s = 90\n')
    (tmp_path / "tasuki.toml").chmod(0o600)
    taken = config.read_config(tmp_path)
    assert (taken.store, taken.lost_node_s) == ("postgresql://one@h/d", 90)
    assert config.read_config(tmp_path, store="postgresql://other@h/d").store == "postgresql://other@h/d"
