"""Page tokens open for their query only, and for nobody who made them himself."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.values.pages import BadPageToken, PageTokens

tokens = PageTokens(b"s" * 32)


@given(st.text(), st.one_of(st.text(), st.integers(0, 2**63 - 1)))
def test_a_token_opens_for_its_query_only(query: str, position: str | int) -> None:
    token = tokens.seal(query, position)
    assert tokens.open(query, token) == position
    with pytest.raises(BadPageToken):
        tokens.open(query + "x", token)


def test_another_house_refuses_the_token() -> None:
    with pytest.raises(BadPageToken):
        PageTokens(b"t" * 32).open("q", tokens.seal("q", "a"))


@given(st.integers(0, 30), st.integers(1, 255))
def test_a_token_with_a_flipped_byte_is_refused(index: int, mask: int) -> None:
    token = tokens.seal("q", "position")
    raw = bytearray(base64.urlsafe_b64decode(token + "=="))
    raw[index % len(raw)] ^= mask
    with pytest.raises(BadPageToken):
        tokens.open("q", base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("="))


@given(st.text(max_size=60))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(BadPageToken):
        tokens.open("q", text)
