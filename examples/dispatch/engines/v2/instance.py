"""Reading one instance in CVRPLIB text, the format of TSPLIB 95 with rounded distances."""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True)
class Instance:
    """Customers with a place and a demand, one kind of vehicle, one depot (number 0)."""

    name: str
    capacity: int
    places: tuple[tuple[int, int], ...]
    demands: tuple[int, ...]

    @cached_property
    def distances(self) -> list[list[int]]:
        """The distances between all places, rounded to the nearest integer as the X set has it."""
        return [[int(math.dist(a, b) + 0.5) for b in self.places] for a in self.places]


def read_instance(folder: Path, name: str) -> Instance:
    """Read `folder/name.vrp`. Raises FileNotFoundError, or ValueError for another kind of file."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no instance's name")
    header: dict[str, str] = {}
    sections: dict[str, list[list[int]]] = {}
    rows: list[list[int]] = []
    for line in (folder / f"{name}.vrp").read_text().splitlines():
        if ":" in line:
            key, _, value = line.partition(":")
            header[key.strip()] = value.strip()
        elif line.strip().endswith("_SECTION"):
            rows = sections.setdefault(line.strip(), [])
        elif line.strip() and line.strip() != "EOF":
            rows.append([int(word) for word in line.split()])
    if header.get("EDGE_WEIGHT_TYPE") != "EUC_2D" or sections.get("DEPOT_SECTION") != [[1], [-1]]:
        raise ValueError(f"{name}: only EUC_2D instances with one depot at place 1 are known here")
    return Instance(
        name=header["NAME"],
        capacity=int(header["CAPACITY"]),
        places=tuple((x, y) for _, x, y in sections["NODE_COORD_SECTION"]),
        demands=tuple(demand for _, demand in sections["DEMAND_SECTION"]),
    )
