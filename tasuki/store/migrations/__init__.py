"""Numbered SQL, one line of history. A file is never changed after a release; a change is a new file.

`NNNN_words.sql` brings the schema from version NNNN-1 to NNNN. Files of several rooms share the one numbering.
"""

from importlib.resources import files


def migrations() -> list[tuple[int, str]]:
    """Answer all migrations as (number, SQL), ascending, without a gap."""
    found = sorted(
        (int(entry.name[:4]), entry.read_text("utf-8"))
        for entry in files(__name__).iterdir()
        if entry.name.endswith(".sql")
    )
    assert [number for number, _ in found] == list(range(1, len(found) + 1)), "migrations must be numbered 1, 2, 3 ..."
    return found
