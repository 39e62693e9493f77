"""The values and rules of the room. Pure."""

from tasuki.services.schedules import errors, queries  # noqa: F401

NAME = "schedules"
