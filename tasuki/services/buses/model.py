"""The values and rules of the room. Pure."""

from tasuki.services.buses import errors, queries  # noqa: F401

NAME = "buses"
