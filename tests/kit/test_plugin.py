"""The pytest plugin in projects of users: small ones made here, and the example of docs/TESTING.md."""

import os
import re
import subprocess
import sys
import textwrap
import warnings
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "testing"
# The plugin announces itself once the package is installed anew; until then pytest is told.
PLUGIN = [] if "tasuki" in entry_points(group="pytest11").names else ["-p", "tasuki.testing.plugin"]


def pytest_in(folder: Path, *words: str, **environment: str) -> tuple[int, str]:
    """Run a project's own pytest, with every warning an error; answer its exit code and what it said."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST_"))}
    path = os.pathsep.join([str(ROOT), *filter(None, [clean.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *PLUGIN, *words],
        cwd=folder,
        env={**clean, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def project(folder: Path, tests: str) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (folder / "test_it.py").write_text("import boto3, pytest\n" + textwrap.dedent(tests))
    return folder


def test_the_example_passes_with_every_warning_an_error() -> None:
    code, said = pytest_in(EXAMPLE, "-q")
    assert code == 0, said
    assert re.search(r"^16 passed", said, re.MULTILINE), said


def test_the_documentation_shows_the_example_as_it_is() -> None:
    text = (ROOT / "docs" / "TESTING.md").read_text()
    shown = dict(re.findall(r"<!-- (\S+) -->\n```\w+\n(.*?)```\n", text, re.DOTALL))
    files = ["nightly/deploy.py", "nightly/score.py", "tests/test_nightly.py"]
    assert sorted(shown) == files
    for name in files:
        assert shown[name] == (EXAMPLE / name).read_text(), f"docs/TESTING.md shows another {name}"


def test_houses_leave_no_thread_socket_or_environment_behind(tmp_path: Path) -> None:
    code, said = pytest_in(
        project(
            tmp_path,
            """
            import gc, os, threading

            @pytest.mark.parametrize("n", range(3))
            def test_one(house, n):
                boto3.client("sqs").create_queue(QueueName="q")
                assert boto3.client("sqs").list_queues()["QueueUrls"] == [f"{house.url}/000000000000/q"]
                house.crash()

            def test_after_it():
                gc.collect()
                assert [one.name for one in threading.enumerate()] == ["MainThread"]
                assert "AWS_ENDPOINT_URL" not in os.environ
                assert os.environ["AWS_PROFILE"] == "work"
                assert [one for one in os.listdir("/proc/self/fd") if "socket" in link(one)] == []

            def link(fd):
                try:
                    return os.readlink(f"/proc/self/fd/{fd}")
                except OSError:
                    return ""
            """,
        ),
        "-q",
        AWS_PROFILE="work",
        AWS_ENDPOINT_URL_SQS="http://127.0.0.1:9",
    )
    assert code == 0, said


def test_a_client_that_a_module_made_once_works_in_the_next_test(tmp_path: Path) -> None:
    code, said = pytest_in(
        project(
            tmp_path,
            """
            made = []

            @pytest.mark.parametrize("n", range(3))
            def test_one(house, n):
                if not made:
                    made.append(boto3.client("sqs"))
                made[0].create_queue(QueueName=f"q{n}")
                assert len(made[0].list_queues()["QueueUrls"]) == 1, "each house is another"
            """,
        ),
        "-q",
    )
    assert code == 0, said


def test_a_failed_test_shows_what_its_house_looked_like(tmp_path: Path) -> None:
    code, said = pytest_in(
        project(
            tmp_path,
            """
            import json

            @pytest.mark.tasuki(start="2026-10-09T12:00:00+09:00")
            def test_it(house):
                states = boto3.client("stepfunctions")
                sorry = {"StartAt": "S", "States": {"S": {"Type": "Fail", "Error": "Odd", "Cause": "n is odd"}}}
                made = states.create_state_machine(name="m", definition=json.dumps(sorry), roleArn="arn:aws:iam::0:role/r")
                states.start_execution(stateMachineArn=made["stateMachineArn"])
                assert house.executions("m") == []
            """,
        )
    )
    assert code == 1, said
    assert "house time 2026-10-09T12:00:00+09:00" in said, "in the zone of the test"
    assert "of m: FAILED (Odd)" in said
    assert "n is odd" in said


def test_the_marker_says_what_it_takes(tmp_path: Path) -> None:
    code, said = pytest_in(
        project(
            tmp_path,
            """
            @pytest.mark.tasuki(begin="2026-10-09T12:00:00+09:00")
            def test_it(house):
                pass
            """,
        )
    )
    assert code == 1
    assert "doesn't know begin; it takes start, seed, real_tasks" in said


def test_markers_of_module_class_and_test_add_up(tmp_path: Path) -> None:
    code, said = pytest_in(
        project(
            tmp_path,
            """
            pytestmark = pytest.mark.tasuki(start="2026-10-09T12:00:00+09:00", region="ap-northeast-1")

            @pytest.mark.tasuki(start="2026-03-01T00:00:00Z")
            def test_it(house):
                assert house.now.isoformat() == "2026-03-01T00:00:00+00:00"
                assert house.config.region == boto3.client("sqs").meta.region_name == "ap-northeast-1"
            """,
        )
    )
    assert code == 0, said


def test_without_boto3_the_error_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\nsys.modules['boto3'] = None\n\ndef test_it(house):\n    raise SystemExit('never')\n"
    )
    code, said = pytest_in(tmp_path)
    assert code == 1
    assert "pip install boto3" in said


def test_pytest_starts_without_loading_the_house() -> None:
    """The plugin is loaded by every pytest of an environment with Tasuki in it, whatever it tests."""
    check = "import sys, tasuki.testing.plugin; print([n for n in sys.modules if n.startswith(('tasuki', 'boto', 'uvicorn'))])"
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.stdout.strip() == "['tasuki', 'tasuki.testing', 'tasuki.testing.plugin']"


def test_two_houses_at_once_know_nothing_of_each_other(tmp_path: Path) -> None:
    code, said = pytest_in(
        project(
            tmp_path,
            """
            def test_it(house_factory):
                one, other = house_factory(seed=1), house_factory(seed=1, start="2027-01-01T00:00:00Z")
                one.client("sqs").create_queue(QueueName="q")
                one.advance(days=1)
                assert "QueueUrls" not in other.client("sqs").list_queues()
                assert (one.now.year, other.now.year) == (2026, 2027)
            """,
        )
    )
    assert code == 0, said


def test_warnings_of_ours_are_not_hidden() -> None:
    """The tests above would pass with a plugin that filters warnings away."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            warnings.warn("seen", stacklevel=1)
    assert "filterwarnings" not in (ROOT / "tasuki" / "testing" / "plugin.py").read_text()
