"""What PostgreSQL's text does not take is kept all the same."""

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.store.postgres_errors import sort_of
from tasuki.store.postgres_text import read, stored

HARD = "\0\x1a01a"


@given(st.lists(st.one_of(st.text(alphabet=HARD), st.integers(), st.binary(), st.none())))
def test_what_is_stored_has_no_zero_and_reads_as_it_was_written(row: list[object]) -> None:
    kept = stored(row)
    assert not any(isinstance(value, str) and "\0" in value for value in kept)
    assert read(kept) == tuple(row)


@given(st.text(alphabet=HARD), st.text(alphabet=HARD))
def test_different_texts_are_stored_differently(one: str, other: str) -> None:
    assert (stored([one]) == stored([other])) == (one == other)


@pytest.mark.parametrize("text", ["", "plain", "0", "\x1b"])
def test_other_text_is_stored_as_it_is(text: str) -> None:
    row = (text, 1)
    assert stored(row) is row


def test_what_no_index_takes_is_a_fault_of_ours_and_not_an_outage() -> None:
    """Else whoever is at it would wait for the database, again and again, and everybody behind it too."""
    why = asyncpg.exceptions.ProgramLimitExceededError("index row size 6056 exceeds btree version 4 maximum 2704")
    assert sort_of(why, closed=False) == "wrong"
    assert sort_of(asyncpg.exceptions.OutOfMemoryError("out of memory"), closed=False) == "refused"
