"""Where everything is joined. Knows every room; no room knows it."""
