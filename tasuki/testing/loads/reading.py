"""Read what is to be played from a TOML file, and check all of it: `docs/SIMULATE.md` says what each key means.

Whatever is wrong is one sentence (`ConfigError`) that names the file, the key and the fix.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from tasuki.testing.loads.plan import (
    STRATEGIES,
    AlwaysOn,
    Backlog,
    Claim,
    Duration,
    Given,
    Load,
    Plan,
    Price,
    Prices,
    Strategy,
    Sweep,
    TaskPerJob,
    Version,
    Workers,
)
from tasuki.testing.loads.table import MOST_NUMBER, Table, shown
from tasuki.values.errors import ConfigError
from tasuki.values.instant import DAY, MINUTE, SECOND, Instant

MOST_DAYS = 60.0
"""Executions and their histories, which are counted at the end, are kept for 90."""
MOST_FACTORS = 12
_EPSILON = 1e-6
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")


def read_plan(file: Path, **over: Any) -> Plan:
    """Read a file; `over` (seed, days, strategies) is what the command line says instead. Raises `ConfigError`."""
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file; give the path of a TOML file") from None
    except OSError as bad:
        raise ConfigError(f"{file}: cannot be read: {bad.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise ConfigError(f"{file}: is not TOML: {bad}; correct it there") from None
    return _plan(Table(file, "", tree), over)


def _plan(root: Table, over: Mapping[str, Any]) -> Plan:
    title = root.text("title", root.file.stem)
    seed = over["seed"] if over.get("seed") is not None else root.whole("seed", 1, most=2**53)
    root.has("seed")
    days = root.number("days", above=True, most=MOST_DAYS)
    days = over["days"] if over.get("days") is not None else days
    starts = _midnight(root)
    start = datetime(starts.year, starts.month, starts.day, tzinfo=UTC)
    versions = _versions(root.table("versions"))
    load = _load(root.table("load"), start, {one.name for one in versions})
    names = tuple(one.name for one in versions)
    limits = root.table("limits")
    running_tasks = limits.whole("running_tasks", least=1, most=100_000)
    limits.text("source")
    limits.close()
    workers = _workers(root.table("workers")) if root.has("workers") else Workers(20_000, 300_000, True, 3)
    strategies = root.table("strategies")
    always_on = _always_on(strategies.table("always_on"), names, running_tasks) if strategies.has("always_on") else None
    backlog, guarded = _backlog(strategies.table("backlog")) if strategies.has("backlog") else (None, None)
    per_job = _task_per_job(strategies.table("task_per_job")) if strategies.has("task_per_job") else None
    strategies.close()
    settings: dict[Strategy, Any] = dict(zip(STRATEGIES, (always_on, backlog, guarded, per_job), strict=True))
    there = tuple(one for one in STRATEGIES if settings[one] is not None)
    if not there:
        raise strategies.wrong(
            "", "there is none; add one of [strategies.always_on], [strategies.backlog], [strategies.task_per_job]"
        )
    wanted = tuple(over.get("strategies") or there)
    for one in wanted:
        if one not in there:
            raise _not_there(strategies, one, has_rule=backlog is not None or guarded is not None)
    prices = _prices(root.table("prices"))
    claim, sweep = _report(root.table("report")) if root.has("report") else (Claim(0.8, 0.05, 30_000), None)
    root.close()
    return Plan(
        title=title,
        seed=seed,
        days=days,
        weekday=starts.weekday(),
        start=round(start.timestamp() * 1000),
        load=load,
        versions=versions,
        workers=workers,
        always_on=always_on,
        backlog=backlog,
        task_per_job=per_job,
        prices=prices,
        running_tasks=running_tasks,
        claim=claim,
        sweep=sweep,
        backlog_protected=guarded,
        strategies=tuple(one for one in STRATEGIES if one in wanted),
    )


def _not_there(strategies: Table, wanted: str, *, has_rule: bool) -> ConfigError:
    if has_rule and wanted.startswith("backlog"):
        fix = f"has not what --strategy {wanted} asks for; give [false, true] to have both"
        return strategies.wrong("backlog.protect", fix)
    table = "backlog" if wanted == "backlog_protected" else wanted
    more = " with protect = true" if wanted == "backlog_protected" else ""
    return strategies.wrong(table, f"is not in the file, and --strategy asks for it; add [strategies.{table}]{more}")


def _midnight(root: Table) -> date:
    value = root.take("starts", "give the first day", date(2026, 1, 5))
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        day = None
    if not isinstance(day, date) or isinstance(day, datetime):
        raise root.wrong("starts", f"is {shown(value)}; give a day like 2026-01-05")
    return day


# -- the load -----------------------------------------------------------------------------------------------------


def _versions(table: Table) -> tuple[Version, ...]:
    versions = []
    for name, one in table.tables():
        if not _NAME.fullmatch(name):
            raise one.wrong("", "name it with letters, digits, - and _, 50 at most, a letter or digit first")
        versions.append(
            Version(
                name=name,
                share=one.number("share", most=1),
                duration=_duration(one.table("duration")),
                failure_rate=one.number("failure_rate", 0.0, most=1),
                hopeless_rate=one.number("hopeless_rate", 0.0, most=1),
                fails_after=one.number("fails_after", 1.0, above=True, most=1),
                vcpu=one.number("vcpu", above=True, most=192),
                memory_gb=one.number("memory_gb", above=True, most=1024),
                start_ms=round(one.number("start_seconds", most=3600) * SECOND),
            )
        )
        one.close()
    if not versions:
        raise table.wrong("", "there is none; add a table like [versions.v1]")
    total = sum(one.share for one in versions)
    if abs(total - 1) > _EPSILON:
        shares = " + ".join(f"{one.share:g}" for one in versions)
        raise table.wrong("", f"the shares {shares} add up to {total:g}; change them so that they add up to 1")
    return tuple(versions)


def _duration(table: Table) -> Duration:
    kind = table.word("kind", ("fixed", "uniform", "lognormal", "list"))
    numbers: tuple[float, ...]
    if kind == "fixed":
        numbers = (table.number("minutes", above=True, most=100_000),)
    elif kind == "uniform":
        low = table.number("from_minutes", above=True, most=100_000)
        numbers = (low, table.number("to_minutes", least=low, most=100_000))
    elif kind == "lognormal":
        low = table.number("p50_minutes", above=True, most=100_000)
        numbers = (low, table.number("p95_minutes", least=low, most=100_000))
    else:
        numbers = table.numbers("minutes", above=True)
    most = table.number("most_minutes", above=True, most=100_000) if table.has("most_minutes") else None
    table.close()
    ms = tuple(max(1, round(one * MINUTE)) for one in numbers)
    return Duration(kind, ms, None if most is None else round(most * MINUTE))  # type: ignore[arg-type]


def _load(table: Table, start: datetime, names: set[str]) -> Load:
    arrivals = table.word("arrivals", ("poisson", "bursts", "trace"))
    table.has("source")
    if arrivals == "poisson":
        rates = table.take("per_hour", "give a number, or 24 of them, one for each hour of the day")
        hours = table.numbers("per_hour", count=24) if isinstance(rates, list) else (table.number("per_hour"),) * 24
        load = Load("poisson", per_hour=hours, weekdays=table.numbers("weekdays", count=7, default=[1.0] * 7))
    elif arrivals == "bursts":
        every = table.number("every_minutes", above=True)
        load = Load(
            "bursts",
            burst_size=table.whole("size", least=1, most=100_000),
            burst_every_ms=max(1, round(every * MINUTE)),
            burst_first_ms=round(table.number("first_minutes", 0.0) * MINUTE),
        )
    else:
        trace = table.take("trace", "give a list of instants")
        if not isinstance(trace, list) or not trace:
            raise table.wrong("trace", "give a list of instants, with one at least")
        load = Load("trace", trace=tuple(_given(table, one, at, start, names) for at, one in enumerate(trace)))
    table.close()
    return load


def _given(table: Table, one: Any, at: int, start: datetime, names: set[str]) -> Given:
    """Read an arrival: an instant, seconds from the start, or a table with `at`, and perhaps `version` and `minutes`."""
    version, duration_ms, when, key = None, None, one, f"trace[{at}]"
    if isinstance(one, dict):
        entry = Table(table.file, f"{table.name}.{key}", one)
        when = entry.take("at", "give its instant")
        if entry.has("version"):
            version = entry.word("version", tuple(sorted(names)))
        if entry.has("minutes"):
            duration_ms = round(entry.number("minutes", above=True, most=100_000) * MINUTE)
        entry.close()
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            when = None
    if isinstance(when, datetime):
        aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        instant: Instant = (aware - start) // timedelta(milliseconds=1)
    elif isinstance(when, int | float) and not isinstance(when, bool):
        instant = round(when * SECOND)
    else:
        raise table.wrong(key, "give an instant like 2026-01-05T09:00:00Z, or seconds from the start")
    if not 0 <= instant < MOST_DAYS * DAY:
        raise table.wrong(key, "is not within the time that is played; give an instant after `starts`")
    return Given(instant, version, duration_ms)


# -- the strategies -----------------------------------------------------------------------------------------------


def _workers(table: Table) -> Workers:
    workers = Workers(
        poll_ms=table.whole("poll_seconds", 20, least=1, most=20) * SECOND,
        visibility_ms=table.whole("visibility_seconds", 300, least=2, most=43_200) * SECOND,
        extend=table.flag("extend", default=True),
        receives=table.whole("receives", 3, least=1, most=1000),
    )
    table.has("source")
    table.close()
    return workers


def _always_on(table: Table, names: tuple[str, ...], running_tasks: int) -> AlwaysOn:
    most = table.whole("most_workers", 200, least=1, most=10_000)
    target: int | None = None
    if table.has("target_p95_wait_seconds"):
        target = round(table.number("target_p95_wait_seconds") * SECOND)
    given = table.take("workers", 'give "auto", a number, or one for each version: { v1 = 3, v2 = 2 }')
    sizes: dict[str, int] | None
    if given == "auto":
        sizes = None
        if target is None:
            raise table.wrong("target_p95_wait_seconds", 'is missing; workers = "auto" needs one, 300 say')
    elif isinstance(given, dict):
        each = table.table("workers")
        sizes = {name: each.whole(name, least=1, most=10_000) for name in names}
        each.close()
    elif isinstance(given, str):
        raise table.wrong("workers", f'is {shown(given)}; give "auto", a number, or one for each version')
    else:
        sizes = dict.fromkeys(names, table.whole("workers", least=1, most=10_000))
    table.has("source")
    table.close()
    if sizes is not None and sum(sizes.values()) > running_tasks:
        raise table.wrong(
            "workers", f"are {sum(sizes.values())}, and limits.running_tasks is {running_tasks}; raise it"
        )
    return AlwaysOn(sizes, target, most)


def _backlog(table: Table) -> tuple[Backlog | None, Backlog | None]:
    """Answer the rule for workers that scale-in may stop at any time, and that for those which are protected."""
    least = table.whole("least", most=10_000)
    backlog = Backlog(
        per_worker=table.number("per_worker", above=True),
        least=least,
        most=table.whole("most", least=max(1, least), most=10_000),
        every_ms=round(table.number("every_seconds", 60, least=1, most=86_400) * SECOND),
        out_after_ms=round(table.number("out_after_seconds", 0.0) * SECOND),
        in_after_ms=round(table.number("in_after_seconds", 0.0) * SECOND),
        out_cooldown_ms=round(table.number("out_cooldown_seconds") * SECOND),
        in_cooldown_ms=round(table.number("in_cooldown_seconds") * SECOND),
    )
    protect = _protection(table)
    table.has("source")
    table.close()
    return backlog if False in protect else None, replace(backlog, protect=True) if True in protect else None


def _protection(table: Table) -> tuple[bool, ...]:
    """Answer whether workers are protected: true, false, or a list of both, which plays both."""
    value = table.take("protect", "give true, false or [false, true]", default=False)
    both = value if isinstance(value, list) else [value]
    if not both or len(set(map(str, both))) < len(both) or not all(isinstance(one, bool) for one in both):
        raise table.wrong("protect", f"is {shown(value)}; give true, false, or [false, true] to have both played")
    return tuple(both)


def _task_per_job(table: Table) -> TaskPerJob:
    setting = TaskPerJob(
        tries=table.whole("tries", 3, least=1, most=100),
        retry_s=table.whole("retry_seconds", 10, least=1, most=86_400),
        backoff_rate=table.number("backoff_rate", 2.0, least=1, most=100),
        full_retry_s=table.whole("full_retry_seconds", 30, least=1, most=86_400),
        aws_pollers=table.whole("aws_pollers", 5, most=1250),
    )
    table.has("source")
    table.close()
    return setting


# -- money and the report -----------------------------------------------------------------------------------------


def _prices(table: Table) -> Prices:
    fargate, queue = table.table("fargate"), table.table("sqs")
    states, pipes = table.table("states"), table.table("pipes")
    prices = Prices(
        region=table.text("region"),
        date=_date(table),
        vcpu_hour=_price(fargate, "vcpu_hour"),
        gb_hour=_price(fargate, "gb_hour"),
        least_task_s=fargate.whole("least_seconds", 60, most=3600),
        queue_million=_price(queue, "per_million_requests"),
        transitions_thousand=_price(states, "per_thousand_transitions"),
        pipe_million=_price(pipes, "per_million_requests"),
    )
    for one in (fargate, queue, states, pipes, table):
        one.close()
    return prices


def _date(table: Table) -> str:
    value = table.take("date", "say of when the prices are, like 2026-03-01")
    return value.isoformat() if isinstance(value, date) else table.text("date")


def _price(table: Table, key: str) -> Price:
    dollars = table.take(key, "give its price in dollars")
    return Price(table.as_number(key, dollars, 0, MOST_NUMBER), table.text("source"))


def _report(table: Table) -> tuple[Claim, Sweep | None]:
    claim = Claim(
        saving=table.number("claimed_saving", 0.8, most=1),
        tolerance=table.number("tolerance", 0.05, most=1),
        wait_ms=round(table.number("claimed_wait_seconds", 30.0) * SECOND),
    )
    sweep = None
    if table.has("sweep"):
        given = table.table("sweep")
        factors = given.numbers("factors", above=True)
        if len(factors) > MOST_FACTORS:
            raise given.wrong(
                "factors", f"are {len(factors)}; give {MOST_FACTORS} at most, each is played twice or more"
            )
        even = given.numbers("even_factors", default=[1.0], above=True)
        sweep = Sweep(
            tuple(sorted(set(factors))), tuple(sorted(set(even))), given.number("days", 1.0, above=True, most=7)
        )
        given.close()
    table.has("source")
    table.close()
    return claim, sweep
