"""The handovers room."""
