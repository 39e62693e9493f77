"""The operations of the room."""

from tasuki.services.deliveries.model import NAME  # noqa: F401
from tasuki.values.operations import Operations


def operations() -> Operations:
    """Answer the table of operations."""
    return {}
