"""Whether a node is in touch with the house: one line in its data directory, which it writes and its shims read.

Where several nodes share a store, one that is not heard of for `lost_s` is given up, and its tasks may run again elsewhere.
So each of its shims ends its own before that: the node dates the line back to before it asked the store to note that it is
there, and writes it when the store has. A store of one node has no deadline: the line is dated far ahead (`Contact.lift`), and
shims look at it all the same, since the house may move while they run. Times are CLOCK_BOOTTIME. The line bears the node's
*term*, too: it changes when the node was given up, and ends what was started in an older one; and `lost_s` as the node has
it now, for those that were started under a longer one. Standard library only: shims run on it.
"""

# ruff: noqa: PTH123 - pathlib would double what a shim imports

import os
from typing import Any

from tasuki.runners.facts import boot_id, boottime

STOP_AT, KILL_AT = 0.8, 0.95
"""Which parts of `lost_s` a shim waits before it asks its containers to stop, and before it kills them."""
_LOOK_S = 5.0
_NEVER = 9e12
FINE, STOP, KILL = 0, 1, 2


class Contact:
    """The node's end."""

    def __init__(self, folder: str, lost_s: float) -> None:
        self._path, self._lost_s, self._boot = f"{folder}/contact", lost_s, boot_id()
        self.term, self._lifted = 0, False

    def renew(self, at: float) -> None:
        """Note that the store saw us at `at` or later. Raises OSError.

        Not forced to disk: another boot is another story. Always as long, and in place: a full disk has room for it.
        """
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(fd, f"{self._boot} {at:018.3f} {self.term:012d} {self._lost_s:012.3f}\n".encode(), 0)
        finally:
            os.close(fd)

    def lift(self) -> None:
        """Take the deadline from all shims here: the store is this directory's alone. Raises OSError when a line is there and stays.

        The line is dated beyond any deadline, and keeps the term of a node that was one of several. When the house is moved to
        a store that several share, it is dated back: what was started before is subject to it from then on.
        """
        self.term, self._lifted = self.last_term(), True
        try:
            self.renew(_NEVER)
        except OSError:
            if os.path.exists(self._path) and os.path.getsize(self._path):  # noqa: PTH110, PTH202 - as above
                raise  # else a full disk: there is no deadline to take away

    def last_term(self) -> int:
        """Answer the term that the line bears; 0 where there is none."""
        try:
            with open(self._path, encoding="ascii") as file:
                return int(file.read().split()[2])
        except (OSError, ValueError, IndexError):
            return 0

    def spec(self) -> dict[str, Any]:
        """Answer what a shim is told in its `launch.json`; it stands in the attempt's folder."""
        return {"file": "../../contact", "lost_s": self._lost_s, "term": self.term, "free": self._lifted}


class Lifeline:
    """The shim's end. `given` is what `Contact.spec` said, or None for no deadline ever (a shim that is tested alone)."""

    def __init__(self, given: dict[str, Any] | None, boot: str) -> None:
        self._given, self._boot = given, boot
        # Until a line is read; what was started without a deadline has none.
        self._seen_at = _NEVER if given is not None and given.get("free") else boottime()
        self._verdict = FINE
        self._lost_s: float = given["lost_s"] if given is not None else 0.0
        self.next_look = float("inf") if given is None else 0.0

    def look(self) -> int:
        """Answer FINE, STOP (it has been silent for long) or KILL (for so long, or given up); it never becomes better."""
        now = boottime()
        if self._given is None or now < self.next_look:
            return self._verdict
        self._verdict = max(self._verdict, self._judge(self._given, now))
        lost_s = self._lost_s
        deadlines = (self._seen_at + part * lost_s for part in (STOP_AT, KILL_AT))
        nearest = min((one for one in deadlines if one > now), default=now + _LOOK_S)
        self.next_look = min(now + min(_LOOK_S, lost_s / 10), nearest)
        return self._verdict

    def _judge(self, given: dict[str, Any], now: float) -> int:
        try:
            with open(given["file"], encoding="ascii") as file:
                boot, at, term, lost_s = file.read().split()
        except (OSError, ValueError):
            boot, at, term, lost_s = "", "0", "", ""  # nothing new: the last that we saw counts
        if boot == self._boot:
            self._seen_at = float(at)
            # The setting may have changed since we were started, or it is that of the house that we were moved to.
            self._lost_s = min(given["lost_s"], float(lost_s))
            if int(term) != given["term"]:
                return KILL
        silent = (now - self._seen_at) / self._lost_s
        return KILL if silent >= KILL_AT else STOP if silent >= STOP_AT else FINE
