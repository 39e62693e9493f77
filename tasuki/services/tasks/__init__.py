"""The tasks room."""
