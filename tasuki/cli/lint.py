"""`lint`: what is wrong with definitions, schedules, rules and pipes, said before they run. Needs no node."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.lint_files import survey_file
from tasuki.cli.lint_resources import Seen

_STDIN = "-"
_COLOURS = {"ERROR": "red", "WARNING": "yellow"}


def check(files: Sequence[str], *, pipe_target: bool, as_json: bool) -> Code:
    """Print every finding about every file; `Code.NO` when there is one."""
    clean = True
    for file in files:
        found = survey_file(file, _read(file), pipe_target=pipe_target)
        clean = clean and not found.seen
        for one in found.seen:
            if as_json:
                line = {} if one.line is None else {"line": one.line}
                screen.show_json({"file": file, **line, **asdict(one.finding)})
            else:
                _show(file, one)
        if not found.seen and not as_json:
            screen.line(f"{file}: clean{f' ({found.what})' if found.what else ''}")
        elif not found.whole and not as_json:
            screen.line(f"{file}: fix these first; more checks run after")
    return Code.DONE if clean else Code.NO


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == _STDIN else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as bad:
        reason = bad.strerror if isinstance(bad, OSError) else "is not UTF-8 text"
        raise Complaint(f"cannot read {file}: {reason}", Code.USAGE) from None


def _show(file: str, one: Seen) -> None:
    finding = one.finding
    file = file if one.line is None else f"{file}:{one.line}"
    severity = finding.severity.lower()
    if screen.interactive():
        from rich.console import Console
        from rich.text import Text

        head = Text.assemble(
            (f"{file} ", "bold"), f"{finding.location} ", (f"{severity} ", _COLOURS[finding.severity]), finding.code
        )
        Console(soft_wrap=True).print(head)
    else:
        screen.line(f"{file} {finding.location} {severity} {finding.code}")
    screen.line(f"    {finding.message}")
    if finding.fix:
        screen.line(f"    {finding.fix}")
