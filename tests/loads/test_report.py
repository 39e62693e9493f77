"""`tasuki simulate`: what it prints, for people and for programs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.simulate import Options, simulate
from tasuki.cli.simulate_table import LINES, OF_ALWAYS_ON, SWEEP, duration, money, show_legend
from tasuki.testing.loads import SHOWN
from tests.loads.files import at, changed, write

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "dispatch" / "simulate.toml"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """The example's report for a day, as programs get it."""
    done = run(EXAMPLE, "--days", "1", "--no-sweep", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def run(file: Path, *options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tasuki.cli.main", "simulate", str(file), *options]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env=environment)


def figures(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["strategy"]: one for one in report["strategies"]}


def test_the_examples_cost_falls_by_about_what_is_claimed(example: dict[str, Any]) -> None:  # S1-32
    one = figures(example)
    saving = 1 - one["task_per_job"]["cost"] / one["always_on"]["cost"]
    assert 0.75 <= saving <= 0.95
    # And that is a matter of task-seconds: the fleet stands idle, tasks of jobs do not.
    assert one["always_on"]["idle_s"] > 3 * one["always_on"]["useful_s"]
    assert one["task_per_job"]["idle_s"] == 0
    assert one["task_per_job"]["useful_s"] == one["always_on"]["useful_s"]
    assert example["verdict"][0].endswith("claimed is about 80% (75% will do): the claim holds at this load.")
    assert all(price["source"] for price in example["prices"].values() if isinstance(price, dict))


def test_the_examples_waiting_is_gone_but_for_the_start_of_a_task(example: dict[str, Any]) -> None:  # S1-02, S1-26
    one = figures(example)
    assert one["task_per_job"]["first_tries"] == {"p50": 45, "p95": 45, "p99": 45, "most": 45}
    assert one["always_on"]["first_tries"]["most"] > 120
    assert "beyond the start of a task: the claim holds." in example["verdict"][1]


def test_the_queue_is_called_less_where_a_pipe_waits_for_the_bell(example: dict[str, Any]) -> None:  # S1-33
    one = figures(example)
    fleet, tasks = one["always_on"], one["task_per_job"]
    assert tasks["empty_receives"] == 0
    assert tasks["queue_calls"] <= 3 * tasks["jobs"]
    workers = sum(fleet["workers"].values())
    assert fleet["empty_receives"] > 20_000
    assert fleet["empty_receives"] <= workers * 86_400 // 20 + workers, (
        "long polls bound them: one in 20 s for each worker"
    )
    # On AWS a pipe polls as well: that is in the bill, and in the report.
    assert tasks["aws_polls"] == 5 * 86_400 // 20
    assert tasks["queue_calls"] < tasks["calls_on_aws"] < fleet["queue_calls"]


def test_scaling_by_backlog_kills_jobs_and_the_report_says_so(example: dict[str, Any]) -> None:  # S1-07
    scaled = figures(example)["backlog"]
    assert scaled["killed"] > 10
    assert scaled["wasted_s"] > 3600
    assert figures(example)["task_per_job"]["killed"] == 0
    [said] = [one for one in example["verdict"] if "without protection" in one]
    assert f"killed running jobs {scaled['killed']} times" in said


def test_protection_ends_the_kills_and_the_report_says_what_is_left_to_a_task_per_job(example: dict[str, Any]) -> None:
    one = figures(example)
    scaled, guarded, tasks = one["backlog"], one["backlog_protected"], one["task_per_job"]
    assert guarded["killed"] == guarded["dead_letters"] - tasks["dead_letters"] == 0
    assert guarded["wasted_s"] < scaled["wasted_s"]
    # It is a fair rival: cheaper than a fleet that is always on, and the half that finds an idle worker begins at once.
    assert guarded["cost"] < one["always_on"]["cost"]
    assert guarded["first_tries"]["p50"] < tasks["first_tries"]["p50"]
    # And yet: somebody waits until it has scaled, and it pays for who is idle.
    assert guarded["first_tries"]["p95"] > tasks["first_tries"]["p95"]
    assert guarded["cost"] > tasks["cost"]
    kills, against, besides = (said for said in example["verdict"][4:7])
    assert f"killed 0 tries instead of {scaled['killed']}" in kills
    assert f"costs {guarded['cost'] / tasks['cost'] - 1:.0%} more" in against
    assert "jobs wait until it has scaled" in against
    assert "a queue, a fleet and a rule for each of 2 versions" in besides


def test_a_legend_says_what_each_line_and_column_is(capsys: pytest.CaptureFixture[str]) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "tasuki.cli.main", "simulate", "--legend"], capture_output=True, text=True, check=True
    )
    show_legend()
    legend = capsys.readouterr().out
    assert shown.stdout == legend
    said = {line[:31].strip(): line[31:].strip() for line in legend.splitlines()}
    for name in [*(one.name for one in LINES), OF_ALWAYS_ON, *SWEEP, *SHOWN.values()]:
        assert said[name.strip()], f"{name} has no legend"


def test_the_sweep_says_which_days_it_plays_and_why_its_figures_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = {"arrivals": "poisson", "per_hour": 1, "weekdays": [1, 0, 0, 0, 0, 0, 0]}
    report = {"claimed_saving": 0.8, "tolerance": 0.1, "sweep": {"factors": [1], "days": 1}}
    auto = {"workers": "auto", "target_p95_wait_seconds": 300}
    file = write(tmp_path, changed(days=3, load=load, report=report, strategies__always_on=auto))
    simulate(file, Options())
    shown = capsys.readouterr()
    assert "each is played for one day (Monday), with an always-on fleet sized anew" in shown.out
    assert "the saving is 70% or more (80% claimed, tolerance 10 points)" in shown.out
    jobs = int(shown.out.splitlines()[1].split()[0])
    assert f'"1x as given" has {jobs} jobs a day, and the table above {jobs / 3:,.0f} (all of its 3 days' in shown.out
    assert "sweep 1 of 2: 1 times the load, as given" in shown.err
    simulate(file, Options(days=1))
    assert "another saving" not in capsys.readouterr().out, "the same days need no excuse"


def test_the_same_file_and_seed_give_the_same_output_byte_for_byte(tmp_path: Path) -> None:
    load = {"arrivals": "poisson", "per_hour": 4}
    report = {"sweep": {"factors": [0.5, 2], "days": 0.25}}
    auto = {"workers": "auto", "target_p95_wait_seconds": 300}
    rate = {"versions__v1__failure_rate": 0.2}
    file = write(tmp_path, changed(load=load, report=report, strategies__always_on=auto, **rate))
    first, again = (run(file, PYTHONHASHSEED=seed, TZ=zone) for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo")))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    assert first.stderr == again.stderr
    assert run(file, "--seed", "9").stdout != first.stdout


def test_a_report_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(write(tmp_path, changed(load=at(0, 60, 120))), Options()) is Code.DONE
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "small"
    assert lines[1] == "3 jobs (v1 100%) in 0.25 days, seed 7; the same jobs for each strategy."
    rows = {line[:20].strip(): line[20:].split("  ") for line in lines}
    assert [cell.strip() for cell in rows["wait max"] if cell.strip()][0::3] == ["18.0 min", "45 s"]
    assert "= always on" in shown.out
    assert "# task per job" in shown.out
    assert "\x1b" not in shown.out, "no colours where nobody sits in front of it"
    assert max(len(line) for line in lines if "│" in line) <= 80
    assert "playing task per job: 3 jobs in 0.25 days" in shown.err


def test_a_claim_that_does_not_hold_is_not_said_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A worker that is busy all day is cheaper than 36 starts."""
    load = {"arrivals": "bursts", "size": 1, "every_minutes": 10}
    simulate(write(tmp_path, changed(load=load, prices__sqs__per_million_requests=0)), Options(sweep=False))
    out = capsys.readouterr().out
    assert "more, claimed is about 80% (75% will do): the claim does not hold at this load." in out
    assert "the claim holds" in out, "nobody waits, though"


def test_a_load_without_jobs_claims_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    auto = {"workers": "auto", "target_p95_wait_seconds": 300}
    load = {"arrivals": "poisson", "per_hour": 0}
    report = {"sweep": {"factors": [1], "days": 0.25}}
    file = write(tmp_path, changed(load=load, report=report, strategies__always_on=auto))
    assert simulate(file, Options()) is Code.DONE
    out = capsys.readouterr().out
    assert "no task of a task per job began, so nothing can be said" in out
    assert "holds at none of these loads" in out


def test_one_strategy_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulate(write(tmp_path, changed()), Options(strategies=("task_per_job",), as_json=True))
    report = json.loads(capsys.readouterr().out)
    assert list(figures(report)) == ["task_per_job"]
    assert report["sweep"] == []
    assert report["verdict"] == []


def test_a_fleet_without_a_target_has_no_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At twenty times the load one worker would be cheap, and have jobs wait for days: nothing to compare with."""
    load = {"arrivals": "bursts", "size": 1, "every_minutes": 60}
    simulate(write(tmp_path, changed(load=load, report={"sweep": {"factors": [20]}})), Options())
    assert "No sweep: give strategies.always_on.target_p95_wait_seconds" in capsys.readouterr().out


def test_a_trace_has_no_sweep_and_the_report_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulate(write(tmp_path, changed(report={"sweep": {"factors": [1]}})), Options())
    assert capsys.readouterr().out.endswith("No sweep: a trace can't be multiplied.\n")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (Options(strategies=("lambda",)), "no strategy lambda"),
        (Options(days=0.0), "--days 0"),
        (Options(days=99.0), "--days 99"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: Options, text: str) -> None:
    with pytest.raises(Complaint, match=text) as refused:
        simulate(write(tmp_path, changed()), options)
    assert refused.value.code is Code.USAGE
    assert refused.value.hint


def test_what_is_wrong_with_the_file_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    file = write(tmp_path, changed(versions__v1__share=0.5))
    done = run(file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"tasuki: {file}: versions: the shares 0.5 add up to 0.5; change them so that they add up to 1\n"
    )
    told = run(file, "--json")
    assert json.loads(told.stderr)["error"]["exit"] == 2


def test_a_target_that_no_fleet_keeps_is_refused(tmp_path: Path) -> None:
    auto = {"workers": "auto", "target_p95_wait_seconds": 1, "most_workers": 2}
    done = run(write(tmp_path, changed(load=at(0, 0, 0, 0), strategies__always_on=auto)))
    assert done.returncode == 2
    assert (
        "load.toml: strategies.always_on: even 2 workers for v1 keep jobs waiting for longer than target_p95_wait_seconds = 1; allow more"
        in done.stderr
    )


def test_numbers_are_written_in_the_unit_that_suits_them() -> None:
    assert [duration(one) for one in (None, 0, 45.04, 119, 120, 7199, 7200)] == [
        "-",
        "0 s",
        "45 s",
        "119 s",
        "2.0 min",
        "120.0 min",
        "2.0 h",
    ]
    assert [money(one) for one in (0, 0.01234, 1, 1234.5)] == ["$0.00", "$0.0123", "$1.00", "$1,234.50"]
