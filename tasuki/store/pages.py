"""The house's page tokens: their secret is made with the file and lives in it, so tokens outlast a restart."""

from tasuki.store.store import Tx
from tasuki.values.pages import PageTokens

SECRET = "SELECT value FROM house WHERE name = 'page_secret'"  # noqa: S105 - the statement, not the secret


def page_tokens(tx: Tx) -> PageTokens:
    """Answer the maker of page tokens, for a listing's unit (reads only)."""
    row = tx.one(SECRET)
    assert row is not None, "the first migration makes the page secret"
    return PageTokens(bytes.fromhex(row[0]))
