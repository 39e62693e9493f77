"""By which names a node answers."""

from pathlib import Path

import pytest

from tasuki.protocol.faults import Refused
from tasuki.protocol.gate import Gate
from tasuki.values.config import Config

GATE = Gate(Config(data=Path("d"), host="10.0.0.5", names=("Tasuki.internal", "balancer:8080")))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("10.0.0.5:4566", "http://10.0.0.5:4566"),
        ("localhost:4566", "http://localhost:4566"),
        ("tasuki.internal", "http://tasuki.internal"),
        ("tasuki.INTERNAL:4566", "http://tasuki.internal:4566"),
        ("sync-tasuki.internal:4566", "http://tasuki.internal:4566"),
        ("balancer:8080", "http://balancer:8080"),
    ],
)
def test_a_node_answers_to_its_names(host: str, url: str) -> None:
    assert GATE.admit({b"host": host.encode()}) == url
    assert GATE.admit({b"host": host.encode(), b"origin": url.encode()}) == url


@pytest.mark.parametrize(
    "host", ["", "balancer", "balancer:4566", "tasuki.internal:80", "evil.example:4566", "10.0.0.5"]
)
def test_and_to_no_other(host: str) -> None:
    with pytest.raises(Refused, match=r"none of this node's names.*names in \[node\] of tasuki.toml"):
        GATE.admit({b"host": host.encode()})
