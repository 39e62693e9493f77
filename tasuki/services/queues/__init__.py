"""The queues room."""
