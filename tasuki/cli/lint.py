"""`lint`: what is wrong with state machine definitions, said before they run. Needs no node."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.language.lint import Finding, survey

_STDIN = "-"
_COLOURS = {"ERROR": "red", "WARNING": "yellow"}


def check(files: Sequence[str], *, pipe_target: bool, as_json: bool) -> Code:
    """Print every finding about every file; `Code.NO` when there is one."""
    clean = True
    for file in files:
        seen = survey(_read(file), pipe_target=pipe_target)
        findings = seen.findings
        clean = clean and not findings
        for finding in findings:
            if as_json:
                screen.show_json({"file": file, **asdict(finding)})
            else:
                _show(file, finding)
        if not findings and not as_json:
            screen.line(f"{file}: clean")
        elif not seen.whole and not as_json:
            screen.line(f"{file}: fix these first; more checks run after")
    return Code.DONE if clean else Code.NO


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == _STDIN else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as bad:
        reason = bad.strerror if isinstance(bad, OSError) else "is not UTF-8 text"
        raise Complaint(f"cannot read {file}: {reason}", Code.USAGE) from None


def _show(file: str, finding: Finding) -> None:
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
