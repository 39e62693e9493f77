"""The operations of the room."""

from tasuki.services.buses.model import NAME  # noqa: F401
from tasuki.values.operations import Operations


def operations() -> Operations:
    """Answer the table of operations."""
    return {}
