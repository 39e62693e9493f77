"""The story of dispatch: vehicle-routing jobs on demand. `make demo` plays it."""
