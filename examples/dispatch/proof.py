"""Checking an engine's answer against the instance: every customer once, no vehicle overloaded, the cost as claimed."""

import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tasuki.values import documents

INSTANCES = Path(__file__).resolve().parent / "instances"


@dataclass(frozen=True, slots=True)
class Proof:
    """What a result file says, and `fault`: empty, or why it is no solution."""

    cost: int
    best_known: int
    pid: int
    fault: str = ""

    @property
    def gap_percent(self) -> float:
        """How far the cost lies above the best known one."""
        return 100 * (self.cost - self.best_known) / self.best_known


def prove(result: Path) -> Proof:
    """Check one result file."""
    told = documents.loads(result.read_bytes())
    instance = _instance(told["instance"])
    routes: list[list[int]] = told["routes"]
    best, cost = best_known(told["instance"]), _cost(instance, routes)
    return Proof(cost, best, told["pid"], _fault(instance, routes, cost, told["cost"]))


def _fault(instance: Any, routes: list[list[int]], cost: int, claimed: int) -> str:
    visited = sorted(customer for route in routes for customer in route)
    if visited != list(range(1, len(instance.demands))):
        return "not every customer is visited exactly once"
    if any(sum(instance.demands[c] for c in route) > instance.capacity for route in routes):
        return "a vehicle is overloaded"
    if cost != claimed:
        return f"costs {cost}, but {claimed} was claimed"
    return ""


def _cost(instance: Any, routes: list[list[int]]) -> int:
    stops = ([0, *route, 0] for route in routes)
    return sum(instance.distances[a][b] for tour in stops for a, b in pairwise(tour))


def best_known(name: str) -> int:
    """Answer the cost of the best known solution."""
    words = (INSTANCES / f"{name}.sol").read_text().split()
    return int(words[words.index("Cost") + 1])


@cache
def _instance(name: str) -> Any:
    """Read an instance with the engines' own reader: it is theirs, so it is loaded from there."""
    source = INSTANCES.parent / "engines" / "v1" / "instance.py"
    specification = importlib.util.spec_from_file_location("dispatch_instance", source)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module.read_instance(INSTANCES, name)
