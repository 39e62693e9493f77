"""The Amazon States Language as data. Pure: imports only `values`."""
