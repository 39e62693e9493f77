"""A table of a TOML file, taken apart key by key: each wrong one is a sentence that names file, key and fix."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasuki.values.errors import ConfigError

MOST_NUMBER = 1e9


class Table:
    """A table of the file, whose keys are taken one by one; `close` refuses what is left."""

    def __init__(self, file: Path, name: str, given: Any) -> None:
        self.file, self.name = file, name
        if not isinstance(given, dict):
            raise self.wrong("", f"write it as a table: [{name}]")
        self._given: dict[str, Any] = given
        self._taken: list[str] = []

    def wrong(self, key: str, fix: str) -> ConfigError:
        """Answer an error about a key."""
        where = ".".join(part for part in (self.name, key) if part)
        return ConfigError(f"{self.file}: {where}: {fix}")

    def take(self, key: str, fix: str, default: Any = None) -> Any:
        """Answer a key's value. Without a default it must be there."""
        self._taken.append(key)
        if key in self._given:
            return self._given[key]
        if default is None:
            raise self.wrong(key, f"is missing; {fix}")
        return default

    def has(self, key: str) -> bool:
        """Tell whether it is there; `close` counts it as known."""
        self._taken.append(key)
        return key in self._given

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        least: float = 0,
        above: bool = False,
        most: float = MOST_NUMBER,
    ) -> float:
        """Answer a number from `least` (or `above` it) to `most`."""
        return self.as_number(
            key, self.take(key, f"give {_range(least, most, above=above)}", default), least, most, above=above
        )

    def as_number(self, key: str, value: Any, least: float, most: float, *, above: bool = False) -> float:
        """Check a number that was found somewhere in the table."""
        fits = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        if not fits or (above and value == least):
            raise self.wrong(key, f"is {shown(value)}; give {_range(least, most, above=above)}")
        return float(value)

    def whole(self, key: str, default: int | None = None, *, least: int = 0, most: int = 1_000_000) -> int:
        """Answer a whole number."""
        value = self.number(key, default, least=least, most=most)
        if value != int(value):
            raise self.wrong(key, f"is {value:g}; give a whole number")
        return int(value)

    def numbers(
        self, key: str, *, count: int | None = None, default: Any = None, above: bool = False
    ) -> tuple[float, ...]:
        """Answer a list of numbers of 0 or more, of that length."""
        many = f"{count} numbers" if count is not None else "one or more numbers"
        value = self.take(key, f"give a list of {many}", default)
        if not isinstance(value, list) or not value or (count is not None and len(value) != count):
            has = f"has {len(value)}" if isinstance(value, list) else f"is {shown(value)}"
            raise self.wrong(key, f"{has}; give a list of {many}")
        return tuple(self.as_number(key, one, 0, MOST_NUMBER, above=above) for one in value)

    def flag(self, key: str, default: bool) -> bool:
        """Answer true or false."""
        value = self.take(key, "give true or false", default)
        if not isinstance(value, bool):
            raise self.wrong(key, f"is {shown(value)}; give true or false")
        return value

    def word(self, key: str, words: tuple[str, ...]) -> str:
        """Answer one of some words."""
        value = self.take(key, f"give one of {', '.join(words)}")
        if value not in words:
            raise self.wrong(key, f"is {shown(value)}; give one of {', '.join(words)}")
        return str(value)

    def text(self, key: str, default: str | None = None) -> str:
        """Answer a text that is not empty."""
        value = self.take(key, "give a text", default)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, f"is {shown(value)}; give a text")
        return value

    def table(self, key: str) -> "Table":
        """Answer a table in it, which must be there."""
        name = f"{self.name}.{key}" if self.name else key
        return Table(self.file, name, self.take(key, f"add a table [{name}]"))

    def tables(self) -> Iterator[tuple[str, "Table"]]:
        """Answer all that is left, as tables."""
        for key in self._given:
            if key not in self._taken:
                yield key, self.table(key)

    def close(self) -> None:
        """Refuse keys that nobody has asked for."""
        for key in self._given:
            if key not in self._taken:
                known = ", ".join(sorted(set(self._taken)))
                raise self.wrong(key, f"is not known here; known are {known}: correct it, or take it out")


def _range(least: float, most: float, *, above: bool) -> str:
    low = f"a number above {least:g}" if above else f"a number of {least:g} or more"
    return low if most >= MOST_NUMBER else f"{low}, {most:g} at most"


def shown(value: Any) -> str:
    """Write a value as an error says it."""
    return f'"{value}"' if isinstance(value, str) else str(value)
