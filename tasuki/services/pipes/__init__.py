"""The pipes room."""
