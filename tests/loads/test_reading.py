"""What is wrong with a load file is one sentence that names the file, the key and the fix."""

from pathlib import Path
from typing import Any

import pytest

from tasuki.testing.loads import read_plan
from tasuki.values.errors import ConfigError
from tests.loads.files import at, changed, plan, write

LOGNORMAL = {"kind": "lognormal", "p50_minutes": 10, "p95_minutes": 5}
POISSON = {"arrivals": "poisson", "per_hour": 1}

WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"speed": 3}, "speed", "is not known here; known are"),
    ({"load__rate": 3}, "load.rate", "is not known here; known are arrivals"),
    ({"versions__v1__cpu": 3}, "versions.v1.cpu", "known are duration"),
    ({"versions__v1__duration__most": 3}, "versions.v1.duration.most", "most_minutes"),
    ({"prices__fargate__vcpu_hour": None}, "prices.fargate.vcpu_hour", "is missing; give its price in dollars"),
    ({"prices__fargate__source": None}, "prices.fargate.source", "is missing; give a text"),
    ({"prices__fargate__source": " "}, "prices.fargate.source", "give a text"),
    ({"prices__sqs": None}, "prices.sqs", "add a table [prices.sqs]"),
    ({"prices__date": None}, "prices.date", "is missing; say of when the prices are"),
    ({"prices__sqs__per_million_requests": -1}, "prices.sqs.per_million_requests", "is -1; give a number of 0 or more"),
    ({"limits__source": None}, "limits.source", "is missing"),
    ({"limits__running_tasks": 0}, "limits.running_tasks", "is 0; give a number of 1 or more"),
    ({"limits": None}, "limits", "add a table [limits]"),
    ({"load": {"arrivals": "poisson", "per_hour": -2}}, "load.per_hour", "is -2; give a number of 0 or more"),
    ({"load": {"arrivals": "poisson", "per_hour": [1, 2]}}, "load.per_hour", "has 2; give a list of 24 numbers"),
    (
        {"load": {"arrivals": "poisson", "per_hour": [*[1] * 23, -1]}},
        "load.per_hour",
        "is -1; give a number of 0 or more",
    ),
    ({"load": {**POISSON, "weekdays": [1]}}, "load.weekdays", "has 1; give a list of 7 numbers"),
    ({"load": {"arrivals": "poisson"}}, "load.per_hour", "is missing; give a number, or 24"),
    ({"load": {"arrivals": "waves"}}, "load.arrivals", 'is "waves"; give one of poisson, bursts, trace'),
    ({"load": {"arrivals": "bursts", "size": 0, "every_minutes": 5}}, "load.size", "is 0; give"),
    ({"load": {"arrivals": "bursts", "size": 1.5, "every_minutes": 5}}, "load.size", "give a whole number"),
    ({"load": {"arrivals": "bursts", "size": 1, "every_minutes": 0}}, "load.every_minutes", "give a number above 0"),
    ({"load": {"arrivals": "trace", "trace": []}}, "load.trace", "with one at least"),
    ({"load": {"arrivals": "trace", "trace": ["noon"]}}, "load.trace[0]", "give an instant like"),
    ({"load": {"arrivals": "trace", "trace": [0, "2025-12-31T00:00:00Z"]}}, "load.trace[1]", "after `starts`"),
    ({"load": at(0, version="v9")}, "load.trace[0].version", 'is "v9"; give one of v1'),
    ({"load": at(0, minutes=0)}, "load.trace[0].minutes", "give a number above 0"),
    ({"load": at(0, length=1)}, "load.trace[0].length", "is not known here"),
    ({"versions__v1__share": 0.4}, "versions", "the shares 0.4 add up to 0.4; change them so that they add up to 1"),
    ({"versions__v1__share": "all"}, "versions.v1.share", 'is "all"; give a number of 0 or more, 1 at most'),
    ({"versions__v1__failure_rate": 1.5}, "versions.v1.failure_rate", "is 1.5; give a number of 0 or more, 1 at most"),
    ({"versions__v1__failure_rate": -0.1}, "versions.v1.failure_rate", "is -0.1"),
    ({"versions__v1__fails_after": 0}, "versions.v1.fails_after", "give a number above 0, 1 at most"),
    ({"versions__v1__start_seconds": None}, "versions.v1.start_seconds", "is missing"),
    ({"versions__v1__duration": {"kind": "normal"}}, "versions.v1.duration.kind", "fixed, uniform, lognormal, list"),
    ({"versions__v1__duration": LOGNORMAL}, "versions.v1.duration.p95_minutes", "is 5; give a number of 10 or more"),
    (
        {"versions__v1__duration": {"kind": "list", "minutes": []}},
        "versions.v1.duration.minutes",
        "one or more numbers",
    ),
    ({"versions": {"版": {}}}, "versions.版", "name it with letters, digits, - and _"),
    ({"versions": {}}, "versions", "add a table like [versions.v1]"),
    ({"versions": 3}, "versions", "write it as a table: [versions]"),
    ({"workers__poll_seconds": 30}, "workers.poll_seconds", "is 30; give a number of 1 or more, 20 at most"),
    ({"workers__extend": "yes"}, "workers.extend", "give true or false"),
    ({"strategies": {}}, "strategies", "add one of [strategies.always_on]"),
    ({"strategies__always_on__workers": 0}, "strategies.always_on.workers", "is 0; give"),
    (
        {"strategies__always_on__workers": "many"},
        "strategies.always_on.workers",
        'give "auto", a number, or one for each',
    ),
    ({"strategies__always_on__workers": {"v2": 1}}, "strategies.always_on.workers.v1", "is missing"),
    ({"strategies__always_on__workers": {"v1": 1, "v2": 1}}, "strategies.always_on.workers.v2", "is not known here"),
    ({"strategies__always_on__workers": "auto"}, "strategies.always_on.target_p95_wait_seconds", "needs one, 300 say"),
    ({"strategies__always_on__workers": 101}, "strategies.always_on.workers", "limits.running_tasks is 100; raise it"),
    ({"strategies__backlog__most": 0}, "strategies.backlog.most", "is 0; give a number of 1 or more"),
    ({"strategies__backlog__per_worker": 0}, "strategies.backlog.per_worker", "give a number above 0"),
    (
        {"strategies__backlog__protect": "yes"},
        "strategies.backlog.protect",
        'is "yes"; give true, false, or [false, true]',
    ),
    ({"strategies__backlog__protect": []}, "strategies.backlog.protect", "is []; give true, false, or"),
    ({"strategies__backlog__protect": [True, True]}, "strategies.backlog.protect", "to have both played"),
    ({"strategies__backlog__protect": [1]}, "strategies.backlog.protect", "is [1]; give"),
    ({"strategies__task_per_job__tries": 0}, "strategies.task_per_job.tries", "is 0"),
    ({"strategies__lambda": {}}, "strategies.lambda", "is not known here"),
    ({"report__sweep__factors": [0]}, "report.sweep.factors", "is 0; give a number above 0"),
    ({"report__sweep__factors": [1] * 13}, "report.sweep.factors", "give 12 at most"),
    ({"days": 0}, "days", "is 0; give a number above 0, 60 at most"),
    ({"days": 400}, "days", "is 400"),
    ({"days": True}, "days", "is True; give a number"),
    ({"starts": "Monday"}, "starts", 'is "Monday"; give a day like 2026-01-05'),
    ({"title": ""}, "title", "give a text"),
    ({"seed": -1}, "seed", "is -1"),
]


@pytest.mark.parametrize(("changes", "key", "fix"), WRONG, ids=[f"{at}-{key}" for at, (_, key, _) in enumerate(WRONG)])
def test_what_is_wrong_is_named_with_its_fix(tmp_path: Path, changes: dict[str, Any], key: str, fix: str) -> None:
    file = write(tmp_path, changed(**changes))
    with pytest.raises(ConfigError) as refused:
        read_plan(file)
    said = str(refused.value)
    assert said.startswith(f"{file}: {key}: ")
    assert fix in said
    assert "\n" not in said


def test_a_file_that_is_not_there_or_not_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.toml: there is no such file"):
        read_plan(tmp_path / "no.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("days = = 3")
    with pytest.raises(ConfigError, match=r"bad\.toml: is not TOML"):
        read_plan(bad)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_plan(tmp_path)


def test_a_strategy_that_the_file_does_not_have_can_not_be_asked_for(tmp_path: Path) -> None:
    file = write(tmp_path, changed(strategies__backlog=None))
    with pytest.raises(ConfigError, match=r"strategies\.backlog: is not in the file"):
        read_plan(file, strategies=("backlog",))
    assert read_plan(file).strategies == ("always_on", "task_per_job")
    assert read_plan(file, strategies=("task_per_job",)).strategies == ("task_per_job",)


@pytest.mark.parametrize(
    ("protect", "there", "other"),
    [
        (None, "backlog", "backlog_protected"),
        (False, "backlog", "backlog_protected"),
        (True, "backlog_protected", "backlog"),
    ],
)
def test_protection_is_a_strategy_of_its_own(tmp_path: Path, protect: bool | None, there: str, other: str) -> None:
    file = write(tmp_path, changed(strategies__backlog__protect=protect))
    assert read_plan(file).strategies == ("always_on", there, "task_per_job")
    with pytest.raises(ConfigError, match=rf"strategies\.backlog\.protect: has not what --strategy {other} asks for"):
        read_plan(file, strategies=(other,))
    both = write(tmp_path, changed(strategies__backlog__protect=[True, False]))
    assert read_plan(both, strategies=(other, there)).strategies == ("backlog", "backlog_protected")
    none = write(tmp_path, changed(strategies__backlog=None))
    with pytest.raises(ConfigError, match=r"add \[strategies\.backlog\] with protect = true"):
        read_plan(none, strategies=("backlog_protected",))


def test_instants_are_taken_in_every_form(tmp_path: Path) -> None:
    trace = [90, "2026-01-05T01:00:00Z", "2026-01-05T10:00:00+09:00", "2026-01-05T01:00:00"]
    given = plan(tmp_path, load={"arrivals": "trace", "trace": trace})
    assert [one.at for one in given.load.trace] == [90_000, 3_600_000, 3_600_000, 3_600_000]
