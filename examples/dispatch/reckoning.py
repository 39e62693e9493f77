"""The end of the story: is every job where it should be, once, and does every solution hold?"""

from pathlib import Path

from dispatch.board import Job, exit_code, number
from dispatch.proof import prove

GOOD = ("ok", "caught")
"""What may stand under `end`: a solution that holds, or a failure that was meant to be one."""


def reckon(jobs: list[Job], results: Path) -> tuple[list[dict[str, str]], str]:
    """Answer the rows of the table and the verdict: empty if all is well, else the first thing that is not."""
    rows = [_row(job, results) for job in jobs]
    bad = [f"{row['job']}: {row['end']}" for row in rows if row["end"] not in GOOD]
    return rows, "; ".join(bad)


def _row(job: Job, results: Path) -> dict[str, str]:
    row = {
        "job": job.id,
        "version": job.version,
        "instance": job.instance,
        "end": "",
        "tries": str(len(job.tasks)),
        "wait s": number(job.wait_s),
        "run s": number(job.run_s),
        "cost": "",
        "best": "",
        "gap%": "",
    }
    row["end"] = _failure(job) if job.fate == "failure" else _result(job, row, results)
    return row


def _failure(job: Job) -> str:
    if len(job.failures) != 1 or job.results:
        return f"{len(job.failures)} failures and {len(job.results)} results where one failure was due"
    return "caught"


def _result(job: Job, row: dict[str, str], results: Path) -> str:
    """Fill the row's figures in; answer `ok` or what is wrong."""
    if len(job.results) != 1 or job.failures:
        reason = f": {job.failures[0]['error']}" if job.failures else ""
        return f"{len(job.results)} results and {len(job.failures)} failures{reason}"
    told = job.results[0]
    if told["taskArn"] not in job.tasks or exit_code(job.tasks[told["taskArn"]]) != 0:
        return "announced, but its task did not end with exit code 0"
    source = results / f"{job.id}.json"
    if not source.is_file():
        return "announced, but there is no result file"
    found = prove(source)
    row |= {"cost": str(found.cost), "best": str(found.best_known), "gap%": number(found.gap_percent)}
    return found.fault or "ok"
