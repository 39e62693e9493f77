r"""Reserved variables that an encoder has escaped: they are the same JSON, but not the same text, and so are never replaced.

Terraform's `jsonencode` and Go's encoder write `<` as `\u003c` and `>` as `\u003e`. AWS looks for `<aws.scheduler.scheduled-time>`
in the text as it was given, finds no such thing, and hands the words on as they stand (seed 2; PITFALLS PF-43). Pure.
"""

import re

_ESCAPED = re.compile(r"\\u003[cC](aws\.(?:scheduler|pipes|events)\.[a-z.\-]+)(?:\\u003[eE]|>)")


def escaped_attributes(text: str) -> list[str]:
    """Answer the reserved variables that stand escaped in `text`, each once, as they should have been written: `<aws...>`."""
    return list(dict.fromkeys(f"<{found[1]}>" for found in _ESCAPED.finditer(text)))
