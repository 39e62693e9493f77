"""What the room does when time passes."""

from tasuki.services.room import Poll


def polls() -> tuple[Poll, ...]:
    """Answer the room's polls."""
    return ()
