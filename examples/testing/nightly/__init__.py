"""The nightly scoring of a small company: what it deploys, and the job that its machine runs."""
