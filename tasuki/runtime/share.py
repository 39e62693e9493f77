"""Which of what is due a node takes first, so that several nodes do not all reach for the same.

A preference and no right: whatever is taken is taken under locks, by whoever comes first. What a node has left lying for a
while (it died, or nobody knows yet that it did) anybody takes.
"""

from dataclasses import dataclass
from zlib import crc32

LATE_MS = 500
"""How long what is another node's is left to it."""


@dataclass(slots=True)
class Share:
    """This node is number `index` of `count` that live. Alone, it takes everything."""

    index: int = 0
    count: int = 1

    def takes(self, key: str) -> bool:
        """Tell whether this is ours to take first."""
        return self.count == 1 or crc32(key.encode()) % self.count == self.index

    def settle(self, own: str, others: list[str]) -> None:
        """Take note of who lives."""
        nodes = sorted({own, *others})
        self.index, self.count = nodes.index(own), len(nodes)
