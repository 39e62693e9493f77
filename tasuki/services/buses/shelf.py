"""Buses and rules as rows: finding them, and letting everybody see what has changed.

What the rules of a bus are is compiled once per revision and kept; which sources they ask for stands in the bus's row, so
that whoever has an event reads one small row to know that nobody wants it.
"""

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache

from tasuki.rules.patterns import Matcher, PatternError, compile_pattern
from tasuki.services.buses import queries as sql
from tasuki.services.buses.errors import ValidationException, no_bus, no_rule
from tasuki.services.buses.model import (
    ANY_SOURCE,
    DEFAULT,
    Bus,
    Rule,
    bus_name,
    literal_sources,
    rule_arn,
    sources_of,
)
from tasuki.services.buses.targets import Aim, compile_target
from tasuki.store.store import Tx
from tasuki.values.documents import loads
from tasuki.values.operations import Request

log = logging.getLogger("tasuki.buses")

_KEPT = 64
"""Buses whose compiled rules are kept."""
_ASKED = "buses.sources"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule, ready to match."""

    id: int
    name: str
    arn: str
    matches: Matcher
    aims: tuple[Aim, ...]


@dataclass(slots=True)
class Rules:
    """The enabled rules of a bus, by the sources that they ask for."""

    bus: Bus
    _any: list[Compiled] = field(default_factory=list)
    _by_source: dict[str, list[Compiled]] = field(default_factory=dict)

    def add(self, rule: Compiled, pattern: str) -> None:
        """Take in a rule."""
        sources = literal_sources(pattern)
        if sources is None:
            self._any.append(rule)
        for source in sources or ():
            self._by_source.setdefault(source, []).append(rule)

    def for_source(self, source: str, after: int) -> list[Compiled]:
        """Answer the rules behind the one with this number that might match, in order."""
        found = [*self._any, *self._by_source.get(source, ())]
        return sorted((rule for rule in found if rule.id > after), key=lambda rule: rule.id)


class Compiler:
    """Compiles the rules of buses, once per revision."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Rules] = OrderedDict()

    def rules(self, tx: Tx, bus_id: int) -> Rules | None:
        """Answer the rules of a bus as they are now; None when it is gone."""
        row = tx.one(sql.REVISION, (bus_id,))
        if row is None:
            return None
        found = self._kept.get(row[0])
        if found is None:
            found = self._kept[row[0]] = _compile(tx, bus_id)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(row[0])
        return found


def _compile(tx: Tx, bus_id: int) -> Rules:
    row = tx.one(sql.BUS_BY_ID, (bus_id,))
    assert row is not None, "its revision was there"
    bus = Bus(*row)
    targets: dict[int, list[str]] = {}
    for rule, document in tx.all(sql.TARGETS_OF_BUS, (bus_id,)):
        targets.setdefault(rule, []).append(document)
    rules = Rules(bus)
    for number, name, pattern in tx.all(sql.MATCHING, (bus_id,)):
        if number not in targets:
            continue
        arn = rule_arn(bus, name)
        try:
            matches = compile_pattern(pattern)
        except PatternError as bad:
            log.error("rule %s is left out: its pattern is not accepted any more: %s", arn, bad)  # noqa: TRY400
            continue
        rules.add(Compiled(number, name, arn, matches, aims_of(targets[number], arn, name)), pattern)
    return rules


def aims_of(documents: list[str], arn: str, name: str) -> tuple[Aim, ...]:
    """Compile targets that PutTargets has accepted. One that isn't accepted any more is left out, and said to be."""
    aims = []
    for document in documents:
        try:
            aims.append(compile_target(loads(document), arn, name))
        except ValidationException as bad:
            log.error("a target of rule %s is left out: %s", arn, bad.message)  # noqa: TRY400 - the message says it all
    return tuple(aims)


# -- finding ------------------------------------------------------------------------------------------------


def find_bus(tx: Tx, account: str, region: str, given: str | None) -> Bus | None:
    """Answer a bus by its name or ARN; the default one by none, and it is always there."""
    name = bus_name(given, account, region)
    if name is None or "\0" in name:
        return None
    row = tx.one(sql.BUS, (account, region, name))
    if row is not None:
        return Bus(*row)
    return Bus(0, account, region, DEFAULT) if name == DEFAULT else None


def the_bus(tx: Tx, request: Request, given: str | None) -> Bus:
    """The same, for an operation. Raises `ResourceNotFoundException`."""
    bus = find_bus(tx, request.account, request.region, given)
    if bus is None:
        raise no_bus(str(given).rpartition("event-bus/")[2])
    return bus


def kept_bus(tx: Tx, bus: Bus) -> Bus:
    """Give the default bus a row when something is said about it for the first time."""
    return bus if bus.id else add_bus(tx, bus)


def add_bus(tx: Tx, bus: Bus) -> Bus:
    """Make a bus's row."""
    row = tx.one(
        sql.ADD_BUS,
        (
            bus.account,
            bus.region,
            bus.name,
            tx.chance.hex(16),
            bus.description,
            bus.settings,
            bus.tags,
            tx.now,
            tx.now,
        ),
    )
    assert row is not None, "INSERT answers the id"
    made = find_bus(tx, bus.account, bus.region, bus.name)
    assert made is not None, "it was made just now"
    return made


def find_rule(tx: Tx, bus: Bus, name: str) -> Rule | None:
    """Answer a rule of a bus."""
    row = tx.one(sql.RULE, (bus.id, name)) if bus.id and "\0" not in name else None
    return Rule.of(bus, row) if row is not None else None


def the_rule(tx: Tx, bus: Bus, name: str) -> Rule:
    """The same, for an operation. Raises `ResourceNotFoundException`."""
    rule = find_rule(tx, bus, name)
    if rule is None:
        raise no_rule(name, bus.name)
    return rule


def rules_changed(tx: Tx, bus: Bus) -> None:
    """Let everybody see that rules or targets of a bus are others now."""
    patterns = [row[0] for row in tx.all(sql.PATTERNS, (bus.id,))]
    tx.run(sql.SET_SOURCES, (tx.chance.hex(16), sources_of(patterns), bus.id))
    tx.notes.pop(_ASKED, None)


# -- who wants an event -------------------------------------------------------------------------------------


def wanted(tx: Tx, account: str, region: str, bus: str, source: str) -> int | None:
    """Answer the number of a bus if any of its rules may match an event of this source; else None. One look a unit and bus."""
    asked: dict[tuple[str, str, str], tuple[int, str] | None] = tx.notes.setdefault(_ASKED, {})
    place = (account, region, bus)
    if place not in asked:
        row = tx.one(sql.SOURCES, place)
        asked[place] = (row[0], row[1]) if row is not None else None
    found = asked[place]
    if found is None or (found[1] != ANY_SOURCE and source not in _listed(found[1])):
        return None
    return found[0]


@lru_cache(maxsize=256)
def _listed(sources: str) -> frozenset[str]:
    return frozenset(loads(sources))
