"""A shim ends its task before the other nodes give its node up: real shims, real signals, short times."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasuki.runners.contact import FINE, KILL, STOP, Contact, Lifeline
from tasuki.runners.facts import OUT_OF_TOUCH, boot_id, boottime
from tasuki.runners.process import ProcessRunner
from tests.runners.bench import Bench

LOST_S = 1.0
WAITS = "import sys; print('up', flush=True); sys.stdin.read(); import time; time.sleep(3600)"
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(3600)"


class Watched(Bench):
    """A bench whose runner has a contact that the test renews, or doesn't."""

    lost_s = LOST_S

    def _open(self) -> ProcessRunner:
        self.folder.mkdir(exist_ok=True)
        self.contact = Contact(str(self.folder), self.lost_s)
        self.contact.renew(boottime())
        return ProcessRunner(self.folder, "house", log_bytes=self.log_bytes, contact=self.contact)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path / "tasks")
    yield made
    made.close()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Watched]:
    class Patient(Watched):
        lost_s = 30.0

    made = Patient(tmp_path / "tasks")
    yield made
    made.close()


def test_a_task_whose_node_is_out_of_touch_ends_by_itself_in_time(bench: Watched) -> None:
    began = boottime()
    bench.contact.renew(began)
    report = bench.ended(bench.start(bench.python(WAITS)))
    assert (report.stop_code, report.reason) == ("InfrastructureHealth", OUT_OF_TOUCH)
    assert report.containers[0].exit_code == 143, "it was asked, not killed"
    assert report.ended_ms is not None
    assert boottime() - report.ended_ms / 1000 - began >= 0.75 * LOST_S, "not before its time"


def test_one_that_does_not_listen_is_killed_before_the_node_is_given_up(bench: Watched) -> None:
    began = boottime()
    bench.contact.renew(began)
    report = bench.ended(bench.start(bench.python(STUBBORN, stop_timeout_s=600)))
    assert (report.stop_code, report.containers[0].exit_code) == ("InfrastructureHealth", 137)


def test_it_goes_on_while_the_node_is_seen_and_ends_when_the_node_was_given_up(patient: Watched) -> None:
    key = patient.start(patient.python(STUBBORN, stop_timeout_s=600))
    patient.says(key, "up")
    patient.contact.term += 1
    patient.contact.renew(boottime())
    report = patient.ended(key)
    assert (report.stop_code, report.containers[0].exit_code) == ("InfrastructureHealth", 137)


def test_what_is_started_by_a_node_out_of_touch_never_begins(patient: Watched) -> None:
    patient.contact.renew(boottime() - 60)  # as after a machine that slept between claim and start
    report = patient.ended(patient.start(patient.python("print('never')")))
    assert report.stop_code == "InfrastructureHealth"
    assert (report.containers[0].pid, report.containers[0].exit_code) == (None, None)


def test_what_was_started_in_a_term_that_is_over_never_begins(patient: Watched) -> None:
    launched = patient.contact.term
    patient.contact.term = launched + 1
    patient.contact.renew(boottime())
    patient.contact.term = launched  # the launch was written before the node learned of it
    report = patient.ended(patient.start(patient.python("print('never')")))
    assert (report.stop_code, report.containers[0].pid) == ("InfrastructureHealth", None)


def test_the_verdict_follows_the_line_and_never_gets_better(tmp_path: Path) -> None:
    contact = Contact(str(tmp_path), 100.0)
    now = boottime()
    verdicts = []
    for age in (0, 79, 81, 96, 0):
        contact.renew(now - age)
        verdicts.append(_fresh(tmp_path, contact))
    assert verdicts == [FINE, FINE, STOP, KILL, FINE]
    contact.renew(now - 81)
    one = Lifeline({**contact.spec(), "file": str(tmp_path / "contact")}, boot_id())
    assert one.look() == STOP
    contact.renew(now)
    one.next_look = 0.0
    assert one.look() == STOP, "what was asked to stop is not asked to go on"


def test_a_line_that_cannot_be_read_counts_as_silence_from_then_on(tmp_path: Path) -> None:
    contact = Contact(str(tmp_path), 100.0)
    one = Lifeline({**contact.spec(), "file": str(tmp_path / "contact")}, boot_id())
    assert one.look() == FINE, "there is none yet: it counts from its own start"
    one.next_look, one._seen_at = 0.0, boottime() - 96
    assert one.look() == KILL


def test_a_line_of_another_boot_says_nothing(tmp_path: Path) -> None:
    contact = Contact(str(tmp_path), 100.0)
    contact.renew(boottime() - 99)
    assert _fresh(tmp_path, contact, boot="another") == FINE


def test_the_line_is_written_in_place_so_a_full_disk_has_room_for_it(tmp_path: Path) -> None:
    contact = Contact(str(tmp_path), 100.0)
    contact.renew(1.0)
    before = (tmp_path / "contact").stat()
    contact.term = 4_000_000
    contact.renew(123456789.123)
    after = (tmp_path / "contact").stat()
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)


def test_a_store_of_one_node_sets_no_deadline() -> None:
    alone = Lifeline(None, boot_id())
    assert (alone.look(), alone.next_look) == (FINE, float("inf"))


def _fresh(folder: Path, contact: Contact, boot: str | None = None) -> int:
    return Lifeline({**contact.spec(), "file": str(folder / "contact")}, boot or boot_id()).look()


def test_a_store_that_is_the_directorys_alone_again_takes_the_deadline_away(tmp_path: Path) -> None:
    """As after a move from PostgreSQL to a data directory: nobody renews the line any more."""
    contact = Contact(str(tmp_path), LOST_S)
    contact.term = 3
    given = contact.spec() | {"file": str(tmp_path / "contact")}
    contact.renew(boottime() - 0.9 * LOST_S)
    assert Lifeline(given, boot_id()).look() == STOP
    alone = Contact(str(tmp_path), LOST_S)
    alone.lift()
    assert alone.term == 3
    assert Lifeline(given, boot_id()).look() == FINE
    assert Lifeline(given | {"term": 2}, boot_id()).look() == KILL, "what was given up stays so"
    contact.renew(boottime() - LOST_S)  # it joined others again
    assert Lifeline(given, boot_id()).look() == KILL


def test_a_shorter_time_of_the_node_now_counts_for_what_was_started_under_a_longer_one(tmp_path: Path) -> None:
    given = Contact(str(tmp_path), 600.0).spec() | {"file": str(tmp_path / "contact")}
    now = boottime()
    Contact(str(tmp_path), 30.0).renew(now - 25)
    assert Lifeline(given, boot_id()).look() == STOP, "the others give it up after 30 s"
    Contact(str(tmp_path), 6000.0).renew(now - 500)
    one = Lifeline(given, boot_id())
    assert (one.look(), one.next_look <= now + 80) == (STOP, True), "what it was told at its start is never stretched"


def test_without_a_line_what_was_started_alone_has_no_deadline(tmp_path: Path) -> None:
    contact = Contact(str(tmp_path), LOST_S)
    contact.lift()
    given = contact.spec() | {"file": str(tmp_path / "removed"), "lost_s": 1e-9}  # as if any time had passed
    assert Lifeline(given, boot_id()).look() == FINE
    assert Lifeline(given | {"free": False}, boot_id()).look() == KILL
    assert Lifeline(contact.spec() | {"file": str(tmp_path / "contact")}, boot_id()).look() == FINE


class Alone(Bench):
    """The runner of a store that has this node only."""

    def _open(self) -> ProcessRunner:
        self.folder.mkdir(exist_ok=True)
        self.contact = Contact(str(self.folder), LOST_S)
        self.contact.lift()
        return ProcessRunner(self.folder, "house", log_bytes=self.log_bytes, contact=self.contact)


def test_what_was_started_on_a_store_of_one_node_heeds_the_deadline_after_a_move(tmp_path: Path) -> None:
    bench = Alone(tmp_path / "tasks")
    try:
        key = bench.start(bench.python(WAITS))
        bench.says(key, "up")
        bench.contact.renew(boottime())  # the house moved to a database that others share; its node never came
        report = bench.ended(key)
        assert (report.stop_code, report.reason) == ("InfrastructureHealth", OUT_OF_TOUCH)
    finally:
        bench.close()
