"""The values and rules of the room. Pure."""

from tasuki.services.deliveries import errors, queries  # noqa: F401

NAME = "deliveries"
