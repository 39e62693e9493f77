"""Waiting, for commands that follow something live."""

from threading import Event

LOOK_AGAIN_S = 0.25
"""How often a followed thing is looked at: fast for a reader, nothing for a node."""


def pause(seconds: float = LOOK_AGAIN_S) -> None:
    """Wait; the keyboard interrupts it."""
    Event().wait(seconds)
