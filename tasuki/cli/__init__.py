"""The command line. It speaks the public API and nothing else; only `up` knows the runtime.

Imports inside functions are on purpose here: `tasuki --help` and completion answer at once.
"""
