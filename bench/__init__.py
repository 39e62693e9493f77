"""What is fast, and what limits it. `make bench` runs all and prints tables."""
