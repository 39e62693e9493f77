r"""Wildcards in event patterns: `*` stands for any text, `\*` and `\\` for themselves. Pure."""

import re

from tasuki.rules.pattern_text import Tokens

MAX_WILDCARDS = 5
"""EventBridge refuses wildcards over a complexity that it doesn't publish; the recorded refusal has six stars."""


def wildcard_expression(text: str, tokens: Tokens) -> re.Pattern[str]:
    """Turn a wildcard text into a regular expression. Raises `PatternError` for bad escapes and `**`.

    Every piece between two stars takes its leftmost place, as an atomic group: nothing is tried twice, so a hostile
    text costs no more than its length times the number of stars.
    """
    pieces: list[str] = [""]
    offset = 0
    while offset < len(text):
        letter = text[offset]
        if letter == "\\":
            if text[offset + 1 : offset + 2] not in {"*", "\\"}:
                tokens.fail(f"Invalid escape character at pos {offset}")
            pieces[-1] += text[offset + 1]
            offset += 2
            continue
        if letter == "*":
            if text[offset + 1 : offset + 2] == "*":
                tokens.fail(f"Consecutive wildcard characters at pos {offset}")
            pieces.append("")
        else:
            pieces[-1] += letter
        offset += 1
    if len(pieces) - 1 > MAX_WILDCARDS:
        tokens.fail(
            "Rule is too complex - try using fewer wildcard characters or fewer repeating character sequences "
            "after a wildcard character"
        )
    first, *others = (re.escape(piece) for piece in pieces)
    if not others:
        return re.compile(first)
    middle = "".join(f"(?>.*?{piece})" for piece in others[:-1])
    return re.compile(f"{first}{middle}.*{others[-1]}", re.DOTALL)
