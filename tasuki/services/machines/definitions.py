"""Parsed machines, kept by the digest of their definition: parse nothing twice."""

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING

from tasuki.language.parse import parse
from tasuki.services.machines.queries import DEFINITION

if TYPE_CHECKING:
    from tasuki.language.definition import Machine
    from tasuki.store.store import Tx

KEPT_CHARACTERS = 16 << 20
"""Definitions whose machines are kept may have this many characters together; the least used goes first."""


def digest_of(definition: str) -> bytes:
    """Answer the key of a definition. By content: a row id could be given twice, when a unit is rolled back."""
    return hashlib.sha256(definition.encode()).digest()


class Definitions:
    """A bounded cache of parsed machines."""

    def __init__(self, kept_characters: int = KEPT_CHARACTERS) -> None:
        self._kept: OrderedDict[bytes, tuple[Machine, int]] = OrderedDict()
        self._characters = 0
        self._limit = kept_characters

    def machine(self, tx: "Tx", digest: bytes, revision: int) -> "Machine":
        """Answer the machine of a revision, from the cache or from its row."""
        found = self._kept.get(digest)
        if found is not None:
            self._kept.move_to_end(digest)
            return found[0]
        row = tx.one(DEFINITION, (revision,))
        assert row is not None, f"revision {revision} is gone"
        return self.parse(row[0], digest)

    def parse(self, definition: str, digest: bytes) -> "Machine":
        """Parse a definition and keep the result. Raises the language's `InvalidDefinition`."""
        found = self._kept.get(digest)
        if found is not None:
            return found[0]
        machine = parse(definition)
        self._kept[digest] = (machine, len(definition))
        self._characters += len(definition)
        while self._characters > self._limit and len(self._kept) > 1:
            _, (_, characters) = self._kept.popitem(last=False)
            self._characters -= characters
        return machine
