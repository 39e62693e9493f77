"""The map from requirements, promises and pitfalls to the tests that show them is true: every test it names exists."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TABLES: dict[str, dict[str, list[str]]] = tomllib.loads((ROOT / "tests" / "requirements.toml").read_text())
MAP = {one: tests for table in TABLES.values() for one, tests in table.items()}
LIST = ROOT.parent / "shared" / "facts" / "seed_requirements.md"


@pytest.mark.parametrize("requirement", sorted(MAP))
def test_every_test_that_the_map_names_exists(requirement: str) -> None:
    assert MAP[requirement], f"{requirement} names no test"
    for one in MAP[requirement]:
        file, _, function = one.partition("::")
        path = ROOT / file
        assert path.is_file(), f"{requirement}: {file} does not exist"
        functions = {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}
        assert function in functions, f"{requirement}: {file} has no {function}"


def test_every_id_is_one_of_the_missions() -> None:
    if not LIST.is_file():
        pytest.skip("the list of requirements (../shared/facts) is not beside this checkout")
    known = set(re.findall(r"^\| (S\d-\d\d) \|", LIST.read_text(), re.MULTILINE))
    covered = set(TABLES["requirements"])
    assert covered <= known, covered - known
