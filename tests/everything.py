"""All tests, as `make test` plays them: two rows of parts beside each other, since much of what real nodes do is waiting.

::

    the house ──► PostgreSQL    all the rest, on SQLite; then the API on the other store: shown as they come
    real nodes                  programs, sockets, stores, kills: shown when they are over

Answers 0 when all parts passed. Which part a test belongs to, its folder says.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

NODES = ("tests/cli", "tests/clients", "tests/crash", "tests/kit", "tests/runners", "tests/runtime", "tests/store")
"""Where tests start programs and wait for them."""
API = ("tests/services", "tests/stories")


@dataclass(slots=True)
class Part:
    """A run of pytest, and how it went. `output` is where it writes, if not to the terminal."""

    name: str
    arguments: Sequence[str]
    output: IO[bytes] | None = None
    code: int = 0
    seconds: float = field(default=0.0)

    def play(self) -> None:
        """Run it to its end."""
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *self.arguments]
        self.code = subprocess.run(command, stdout=self.output, stderr=self.output, check=False).returncode
        self.seconds = time.monotonic() - began


def main() -> int:
    """Play all parts; answer the exit code."""
    with tempfile.TemporaryFile() as said:
        house = Part("the house on SQLite", ["tests", *(f"--ignore={one}" for one in NODES)])
        api = Part("the API on PostgreSQL", ["--store", "postgresql", "--not-again", *API])
        nodes = Part("real nodes", NODES, said)
        beside = threading.Thread(target=nodes.play)
        beside.start()
        house.play()
        api.play()
        beside.join()
        said.seek(0)
        sys.stdout.write(f"\n{nodes.name}:\n")
        sys.stdout.flush()
        sys.stdout.buffer.write(said.read())
    parts = (house, api, nodes)
    sys.stdout.write("\n")
    for part in parts:
        sys.stdout.write(f"{part.name}: {'passed' if part.code == 0 else 'FAILED'}, {part.seconds:.0f} s\n")
    return int(any(part.code for part in parts))


if __name__ == "__main__":
    sys.exit(main())
