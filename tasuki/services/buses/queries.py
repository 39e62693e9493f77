"""The statements of the room."""
