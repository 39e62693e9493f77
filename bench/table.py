"""Figures beside their targets."""

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One figure. With a target it also has a ratio: above 1 is better than asked."""

    what: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """The target in words."""
        if self.at_least is not None:
            return f">= {self.at_least:,g}"
        return f"<= {self.at_most:,g}" if self.at_most is not None else ""

    @property
    def ratio(self) -> float | None:
        """How many times better than the target."""
        if self.at_least is not None:
            return self.value / self.at_least
        return self.at_most / self.value if self.at_most is not None and self.value else None


def show(title: str, rows: list[Row]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for column in ("what", "figure", "unit", "target", "ratio"):
        table.add_column(column, justify="right" if column in {"figure", "ratio", "target"} else "left")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}{'' if row.ratio >= 1 else '  missed'}"
        figure = f"{row.value:,.0f}" if row.value >= 100 else f"{row.value:,.2f}"
        table.add_row(row.what, figure, row.unit, row.target, ratio)
    Console(width=110).print(table)
