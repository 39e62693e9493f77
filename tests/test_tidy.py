"""The house rules as a test: doors, banned calls, sizes, words. Each message says what to do instead."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ROOT / "tasuki"
MODULES = sorted(HOUSE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

# Which rooms a room may import. Arrows point down (docs/ARCHITECTURE.md, "Doors").
DOORS: dict[str, set[str]] = {
    "values": set(),
    "rules": {"values"},
    "language": {"values"},
    "engine": {"language", "values"},
    "store": {"values"},
    "services": {"engine", "language", "rules", "store", "values"},
    "protocol": {"store", "values"},
    "runners": {"values"},
    "runtime": {"protocol", "services", "runners", "store", "values"},
    "testing": {"protocol", "runtime", "services", "rules", "runners", "store", "values"},
    "cli": {"language", "rules", "runtime", "testing", "values"},
}
FAMILY = ("machines", "queues", "pipes", "tasks", "handovers", "deliveries", "schedules", "buses")
NO_ASYNC = {"values", "rules", "language", "engine", "services"}
PURE = {"values", "rules", "language", "engine", "services", "store"}
AMBIENT = re.compile(
    r"\b(time\.(time|time_ns|monotonic|sleep)|datetime\.(now|utcnow|today)|date\.today|uuid\.uuid[14]|uuid[14]\(|os\.urandom|"
    r"secrets\.|random\.(random|randint|choice|uniform|shuffle|getrandbits))"
)
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
VAGUE = re.compile(r"(^|_)(manager|helper|helpers|util|utils|misc|common)(_|$)|Manager$|Helper$")
SQL = re.compile(r"^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s")
LONGEST_MODULE, LONGEST_FUNCTION = 420, 70


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def room(path: Path) -> str:
    parts = path.relative_to(HOUSE).parts
    return parts[0] if len(parts) > 1 else ""


def imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_point_down(path: Path) -> None:
    here = room(path)
    allowed = DOORS.get(here)
    if allowed is None:
        return  # tasuki/__init__.py
    wrong = [
        f"line {line}: {target}"
        for line, target in imports(path)
        if target.startswith("tasuki.")
        and (there := target.split(".")[1]) != here
        and there not in {*allowed, "__version__"}
    ]
    assert not wrong, f"{name(path)} may import {sorted(allowed) or 'nothing of the house'}: {wrong}"


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) == "services"], ids=name)
def test_rooms_meet_only_in_the_switchboard(path: Path) -> None:
    parts = path.relative_to(HOUSE / "services").parts
    if len(parts) == 1:
        return
    wrong = [
        target
        for _, target in imports(path)
        if target.startswith("tasuki.services.") and (other := target.split(".")[2]) in FAMILY and other != parts[0]
    ]
    assert not wrong, f"{name(path)} reaches into another room: {wrong}; go through the switchboard"


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) in NO_ASYNC], ids=name)
def test_no_asyncio_where_nothing_awaits(path: Path) -> None:
    assert not [t for _, t in imports(path) if t.split(".")[0] == "asyncio"], "asyncio lives at the rim"


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) == "store"], ids=name)
def test_only_the_outer_face_of_the_store_is_async(path: Path) -> None:
    if path.name not in {"sqlite.py", "sqlite_tx.py"} and not path.name.startswith("postgres"):
        assert not [t for _, t in imports(path) if t.split(".")[0] == "asyncio"]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_time_and_chance_are_arguments(path: Path) -> None:
    if room(path) not in PURE:
        return
    code = "\n".join(line.split("#")[0] for line in path.read_text().splitlines())
    code = re.sub(r'"""(?:.|\n)*?"""', "", code)
    found = AMBIENT.findall(code)
    assert not found, f"{name(path)}: {found}; take tx.now, tx.chance or an argument"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_only_documents_codes_json(path: Path) -> None:
    if (
        path == HOUSE / "values" / "documents.py" or path == HOUSE / "runners" / "facts.py"
    ):  # a shim is standard library
        return
    wrong = [t for _, t in imports(path) if t.split(".")[0] in {"json", "msgspec", "orjson"}]
    assert not wrong, f"{name(path)}: use tasuki.values.documents"


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) == "services"], ids=name)
def test_sql_stands_in_queries(path: Path) -> None:
    if "queries" in path.stem:
        return
    wrong = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]
    assert not wrong, f"{name(path)} lines {wrong}: move the statement to the room's queries.py and give it a name"


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=name)
def test_modules_open_with_what_they_are_for(path: Path) -> None:
    text = path.read_text()
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{name(path)} needs a docstring at the top"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_and_functions_are_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_MODULE, f"{name(path)} has {text.count(chr(10))} lines: one idea a module"
    long = [
        f"{node.name} ({node.end_lineno - node.lineno} lines)"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno > LONGEST_FUNCTION
    ]
    assert not long, f"{name(path)}: split {long}"


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=name)
def test_nothing_is_left_for_later(path: Path) -> None:
    assert not UNFINISHED.search(path.read_text()), f"{name(path)}: finish it, or write an issue"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_names_say_what_a_thing_is(path: Path) -> None:
    names = [path.stem] + [
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    vague = [one for one in names if VAGUE.search(one)]
    assert not vague, f"{name(path)}: {vague} say nothing; name the idea"


@pytest.mark.parametrize("path", TESTS, ids=name)
def test_no_test_sleeps(path: Path) -> None:
    sleeps = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute | ast.Name)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) == "sleep"
        and not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
    ]
    assert not sleeps, f"{name(path)} sleeps in lines {sleeps}: move the clock, or wait on a signal"


def test_every_module_is_used() -> None:
    entries = {
        "tasuki",
        "tasuki.cli.main",
        "tasuki.runners.shim",
        "tasuki.runners.forkserver",
        "tasuki.store.migrations",
        "tasuki.testing",
    }
    used = {target for path in [*MODULES, *TESTS] for _, target in imports(path)}
    dead = []
    for path in MODULES:
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if module not in entries and not any(one == module or one.startswith(module + ".") for one in used):
            dead.append(module)
    assert not dead, f"nobody imports {dead}"


def test_every_room_has_the_same_floor_plan() -> None:
    for one in FAMILY:
        pieces = {path.stem for path in (HOUSE / "services" / one).glob("*.py")}
        missing = {"api", "model", "queries", "polls", "errors"} - pieces
        assert not missing, f"services/{one} lacks {sorted(missing)}"


def test_no_path_of_anybodys_machine_is_in_the_tree() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout (an unpacked release): nothing to list")
    wrong = []
    for one in listed.stdout.split():
        path = ROOT / one
        if path.suffix in {".lock", ".vrp", ".sol", ".svg"} or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        if re.search(r"(/wor" r"k/|/roo" r"t/|/ho" r"me/\w+/|bash_jo" r"bs)", text):
            wrong.append(one)
    assert not wrong[:5], f"paths of somebody's machine in {wrong[:5]}"
