"""`demo`: stories that are played end to end. Each is `examples/NAME/story.py` with a function `play(options)`."""

import importlib.util
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
    source = EXAMPLES / name / "story.py"
    known = sorted(path.parent.name for path in EXAMPLES.glob("*/story.py"))
    if name not in known:
        hint = (
            f"there is: {', '.join(known)}" if known else "the stories come with the source: clone it, then make demo"
        )
        raise Complaint(f"no story is called {name}", Code.USAGE, hint=hint)
    specification = importlib.util.spec_from_file_location(f"tasuki_story_{name}", source)
    assert specification is not None
    assert specification.loader is not None
    story = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(story)
    return int(story.play(options))
