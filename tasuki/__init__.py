"""Tasuki: event-driven batch pipelines with the AWS APIs, as one durable Python program."""

__version__ = "0.1.0"
