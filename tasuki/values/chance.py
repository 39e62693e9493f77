"""Randomness as an argument. In production it is the system's; in tests and in the engine it is seeded."""

import random
from typing import Protocol


class Bits(Protocol):
    """The two draws that everything else is made of; `random.Random` and `random.SystemRandom` fit."""

    def getrandbits(self, k: int, /) -> int:
        """Answer `k` random bits."""

    def random(self) -> float:
        """Answer a float in [0, 1)."""


class Chance:
    """Draws identifiers and jitter from one source of bits."""

    __slots__ = ("_bits",)

    def __init__(self, bits: Bits) -> None:
        self._bits = bits

    @classmethod
    def system(cls) -> "Chance":
        """Unguessable: for receipts, tokens, keys and seeds."""
        return cls(_Pool())

    @classmethod
    def seeded(cls, seed: int | str | bytes) -> "Chance":
        """Repeatable: the same seed gives the same draws."""
        return cls(random.Random(seed))  # noqa: S311 - repeatability is what this one is for

    def bits(self, count: int) -> int:
        """Answer an integer of `count` random bits."""
        return self._bits.getrandbits(count)

    def hex(self, digits: int) -> str:
        """Answer `digits` lower-case hexadecimal digits."""
        return f"{self._bits.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        """Answer a version 4 UUID."""
        n = self._bits.getrandbits(128) & ~(0xF000 << 64) & ~(0xC000 << 48) | (0x4000 << 64) | (0x8000 << 48)
        h = f"{n:032x}"
        return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"

    def fraction(self) -> float:
        """Answer a float in [0, 1)."""
        return self._bits.random()


class _Pool:
    """The system's randomness, fetched a kibibyte at a time: a system call for each draw cost 9 us, this costs 0.3.

    Bits are used once. A fork must make its own (we fork no process that draws).
    """

    __slots__ = ("_bits", "_left", "_system")

    def __init__(self) -> None:
        self._system = random.SystemRandom()
        self._bits = 0
        self._left = 0

    def getrandbits(self, k: int, /) -> int:
        """Answer `k` random bits."""
        if k > self._left:
            self._left = max(k, 8_192)
            self._bits = self._system.getrandbits(self._left)
        drawn = self._bits & ((1 << k) - 1)
        self._bits >>= k
        self._left -= k
        return drawn

    def random(self) -> float:
        """Answer a float in [0, 1), with all the bits that a float has."""
        return self.getrandbits(53) / (1 << 53)
