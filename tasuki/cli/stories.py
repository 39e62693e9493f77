"""`demo`: stories that are played end to end. Each is `examples/NAME/story.py` with a function `play(options)`."""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path

import tasuki
from tasuki.cli.complaints import Code, Complaint

EXAMPLES = Path(tasuki.__file__).resolve().parents[1] / "examples"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked of a story."""

    crash: bool = False
    jobs: int = 8
    seconds: int = 5
    keep: bool = False
    as_json: bool = False


def play(name: str, options: Options) -> int:
    """Play a story; answer its exit code. Raises `Complaint` when there is none of that name."""
    known = sorted(path.parent.name for path in EXAMPLES.glob("*/story.py"))
    if name not in known:
        hint = (
            f"there is: {', '.join(known)}" if known else "the stories come with the source: clone it, then make demo"
        )
        raise Complaint(f"no story is called {name}", Code.USAGE, hint=hint)
    sys.path.insert(0, str(EXAMPLES))
    return int(importlib.import_module(f"{name}.story").play(options))
