"""Plain values. Imports nothing else in the house."""
