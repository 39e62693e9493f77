"""The story of the clock: thirty nights in seconds, and a planned time that survives a node's absence. `make demo STORY=clock`."""
