"""Text that PostgreSQL does not take, kept without loss: U+0000, which a JSON text can escape and a Cause then holds.

It is stored as SUBSTITUTE (U+001A) and a digit, and so is SUBSTITUTE itself; whoever reads a row gets what was written. SQLite
takes both as they are. (A half of a surrogate pair, which neither takes, is refused where JSON is read.)
"""

from typing import Any

from tasuki.store.store import Params, Row

_SIGN = "\x1a"
_STORED = str.maketrans({"\0": f"{_SIGN}0", _SIGN: f"{_SIGN}1"})


def stored(params: Params) -> Params:
    """Answer a statement's parameters as they can be stored."""
    for value in params:
        if value.__class__ is str and ("\0" in value or _SIGN in value):
            return [one.translate(_STORED) if one.__class__ is str else one for one in params]
    return params


def read(row: Any) -> Row:
    """Answer a row as it was written."""
    values = tuple(row)
    for value in values:
        if value.__class__ is str and _SIGN in value:
            return tuple(_original(one) if one.__class__ is str else one for one in values)
    return values


def _original(text: str) -> str:
    first, *rest = text.split(_SIGN)
    return first + "".join(("\0" if piece[:1] == "0" else _SIGN) + piece[1:] for piece in rest)
