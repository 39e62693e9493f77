"""Following something longer than a node lives: what is asked is asked again when the node is back."""

import sys
from collections.abc import Callable
from typing import TypeVar

from tasuki.cli import screen
from tasuki.cli.complaints import Complaint
from tasuki.cli.pace import pause
from tasuki.cli.reach import Reach, read_node
from tasuki.runtime.clock import SystemClock

T = TypeVar("T")
PATIENCE_S = 120
"""How long a node may be away before a command that follows something gives up."""


class Steady:
    """A node that may go away and come back, perhaps at another port."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.away = False

    def ask(self, question: Callable[[Reach], T]) -> T:
        """Ask; when no node answers, wait for one and ask again. Raises what was raised last after `PATIENCE_S`."""
        clock = SystemClock()
        gone_at = None
        while True:
            try:
                answer = question(self.reach)
            except Exception as error:
                if not _nobody_there(error):
                    raise
                gone_at = clock.now() if gone_at is None else gone_at
                if not self._wait(gone_at + PATIENCE_S * 1000):
                    raise
            else:
                self._is_back()
                return answer

    def try_once(self, question: Callable[[Reach], T]) -> T | None:
        """Ask; answer None when no node answers now."""
        if self.away and not self._look():
            return None
        try:
            answer = question(self.reach)
        except Exception as error:
            if not _nobody_there(error):
                raise
            self._is_away()
            return None
        self._is_back()
        return answer

    def _wait(self, until: int) -> bool:
        self._is_away()
        clock = SystemClock()
        while not self._look():
            if clock.now() > until:
                return False
            pause()
        return True

    def _look(self) -> bool:
        if self.reach.folder is not None:
            try:
                self.reach = read_node(self.reach.folder)
            except Complaint:
                return False
        return self.reach.is_there()

    def _is_away(self) -> None:
        if not self.away:
            self.away = True
            screen.line("tasuki: the node does not answer; waiting for it to come back ...", sys.stderr)

    def _is_back(self) -> None:
        if self.away:
            self.away = False
            screen.line("tasuki: the node is back", sys.stderr)


def _nobody_there(error: Exception) -> bool:
    from botocore import exceptions as aws

    return isinstance(error, aws.HTTPClientError | aws.ConnectionError)
