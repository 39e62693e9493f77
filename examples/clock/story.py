"""The story, in two acts: thirty nights that take seconds, and one real absence."""

import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from clock import absence, nights
from tasuki.cli import screen as output
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.stories import Options


def play(options: Options) -> int:
    """Play it; answer 0 if every date was scored once, in both acts."""
    _refuse(options)
    say = (lambda _text: None) if options.as_json else output.line
    began = time.monotonic()
    say(f"Act 1: {nights.NIGHTS} nights at 01:00 in Tokyo, and a node that is killed in every one of them.")
    rows, fault = nights.reckon(nights.perform())
    first_s = round(time.monotonic() - began, 1)
    if not options.as_json:
        output.show_table([nights.document(row) for row in rows], nights.COLUMNS, empty="no night")
    if not fault:
        say(f"Night {nights.LONG}'s task takes a day: it ends on the next date, and still is for its own.")
    say(f"{fault or 'Every date was scored once, and each run knew its date.'} {first_s} s.\n")
    say("Act 2: a real node, a real clock.")
    seen, second_fault = _absence(options, say)
    total_s = round(time.monotonic() - began, 1)
    if not second_fault:
        say(
            f"It ran {seen.late_s:.1f} s late, once, with the time it was planned for: {seen.planned}, which is "
            f"{absence.date_of(seen.planned)} in Tokyo."
        )
    verdict = "; ".join(one for one in (fault, second_fault) if one)
    if options.as_json:
        output.show_json(
            {
                "nights": [nights.document(row) for row in rows],
                "nights_s": first_s,
                "absence": asdict(seen),
                "total_s": total_s,
                "verdict": verdict,
            }
        )
    else:
        say(f"{f'Not so: {verdict}.' if verdict else 'All of it holds.'} {total_s} s in all.")
    return Code.NO if verdict else Code.DONE


def _absence(options: Options, say: absence.Say) -> tuple[absence.Seen, str]:
    """Play act 2 in a folder of its own, which is kept for a look if it did not end well."""
    root = Path(".tasuki-demo").resolve()
    root.mkdir(exist_ok=True)
    data = Path(tempfile.mkdtemp(prefix="clock-", dir=root))
    keep = True
    try:
        seen = absence.perform(data, say)
        fault = absence.reckon(seen, absence.date_of(seen.planned))
        keep = options.keep or bool(fault)
    except KeyboardInterrupt:
        keep = options.keep
        raise
    finally:
        if keep:
            output.line(f"kept: {data}", sys.stderr)
        else:
            shutil.rmtree(data, ignore_errors=True)
            if not any(root.iterdir()):
                root.rmdir()
    return seen, fault


def _refuse(options: Options) -> None:
    """Refuse what is for other stories."""
    usual = Options()
    given = [name for name in ("crash", "jobs", "seconds") if getattr(options, name) != getattr(usual, name)]
    if given:
        raise Complaint(
            f"the story clock takes no --{given[0]}",
            Code.USAGE,
            hint="it takes --keep and --json; it crashes by itself",
        )
