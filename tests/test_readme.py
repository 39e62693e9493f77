"""The README and its neighbours keep their word: the snippet runs as it stands, links lead somewhere, commands exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tasuki.cli.own_node import OwnNode

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(
        path
        for path in (ROOT / "examples").rglob("*.md")
        if not any(part.startswith(".") for part in path.parts[len(ROOT.parts) :])
    ),
]


@pytest.mark.clients
def test_the_snippet_works_when_pasted(tmp_path: Path) -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    with OwnNode(tmp_path / "data") as node:
        environment = {**os.environ, **node.reach.environment}
        done = subprocess.run(
            [sys.executable, "-c", snippet],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    [promised] = re.findall(r"It prints `(.*?)`", README)
    assert done.stdout.strip() == promised


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


def test_the_commands_named_in_the_readme_exist() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tasuki.cli.main", "--help"], capture_output=True, text=True, timeout=30, check=True
    )
    named = set(re.findall(r"\btasuki ([a-z]+)\b", README)) | {"history", "ps", "logs", "queue", "start", "doctor"}
    missing = {name for name in named if not re.search(rf"\b{name}\b", done.stdout)}
    assert not missing


def test_the_targets_named_in_the_readme_exist() -> None:
    listed = subprocess.run(
        ["make", "--silent"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    ).stdout
    for target in ("setup", "demo", "test", "check", "bench", "docs"):
        assert f"make {target}" in listed
