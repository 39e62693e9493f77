"""The README and its neighbours keep their word: the snippet runs as it stands, links lead somewhere, commands exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tasuki.cli.own_node import free_port

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
def test_the_lines_and_the_snippet_work_when_pasted(tmp_path: Path) -> None:
    """As a stranger does it: all lines at once, so `env` comes before the node is ready; with a profile in the way."""
    [lines] = re.findall(r"## Use it.*?```sh\n(.*?)```", README, flags=re.DOTALL)
    [snippet] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    [promised] = re.findall(r"It prints `(.*?)`", README)
    (tmp_path / "snippet.py").write_text(snippet)
    assert [line.split("#")[0].split()[0] for line in lines.splitlines()] == [
        "export",
        "tasuki",
        "eval",
        "python",
    ]
    pasted = lines.replace("$PWD/.venv/bin", str(Path(sys.executable).parent))
    pasted = pasted.replace("up --dev &", f"up --dev --port {free_port()} & node=$!;")
    pasted = re.sub(r"^python\b", "python snippet.py", pasted, flags=re.MULTILINE)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TASUKI_"))}
    done = subprocess.run(
        ["bash", "-c", f"{pasted}\nkill $node; wait $node"],
        env={**clean, "AWS_PROFILE": "work", "AWS_CONFIG_FILE": os.devnull},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert promised in done.stdout.splitlines(), done.stderr
    assert done.returncode == 0


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
