"""Map Runs against executions recorded on AWS, in a whole house: status, result, event types, whole history.

They are not in tests/engine/test_conformance.py because their children are executions of their own.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.engine.recorded import FOLDER, Matcher, distributed, expand, parsed
from tests.services.machines.folder import FolderObjects
from tests.services.machines.stubs import Play

ACCOUNT = "111111111111"
NEWER = (
    "since autumn 2024 AWS gives MapStateExited the previousEventId of MapRunStarted; we do as the older two thirds of "
    "the recordings, MapRunSucceeded (engine/states/distributed.py)"
)
_BASE = "asl/scenarios:base_scenarios/test_map_"
_VARIABLES = "asl/assign:assign_reference_variables/test_reference_in_map_state"
KNOWN: dict[str, str] = {
    f"{_VARIABLES}[MAP_STATE_REFERENCE_IN_ITEM_SELECTOR]": NEWER,
    f"{_VARIABLES}_max_items_path[MAP_STATE_REFERENCE_IN_MAX_ITEMS_PATH]": NEWER,
    f"{_VARIABLES}_max_items_path[MAP_STATE_REFERENCE_IN_MAX_PER_BATCH_PATH]": NEWER,
    f"{_BASE}item_reader_base_json_max_items_jsonata": NEWER,
    f"{_BASE}item_reader_base_json_with_items_path[INVALID_ITEMS_PATH]": NEWER,
    f"{_BASE}item_reader_base_json_with_items_path[VALID_ITEMS_PATH_FROM_ITEM_READER]": NEWER,
    f"{_BASE}item_reader_base_json_with_items_path[VALID_ITEMS_PATH_FROM_PREVIOUS]": NEWER,
    f"{_BASE}state_config_distributed_items_path_from_previous": NEWER,
    f"{_BASE}state_nested_config_distributed": NEWER,
}
LEVELS = ("status", "result", "types", "history")


def runnable() -> list[dict[str, Any]]:
    """Answer the recordings that need nothing but buckets."""
    return [case for case in distributed() if all(need["kind"] == "s3_bucket" for need in case.get("needs", ()))]


@cache
def verdict(identity: str, folder: Path) -> dict[str, list[str]]:
    """Play a case; answer what differs, by level."""
    case = next(case for case in runnable() if case["id"] == identity)
    play = Play(ACCOUNT)
    objects = play.house.switchboard.objects = FolderObjects(folder)
    for need in case.get("needs", ()):
        objects.make(need["name"])
        for one in need["objects"]:
            objects.write(need["name"], one["key"], one["body"])
    try:
        arn = play.create(expand(case["definition"]))
        execution = play.start(arn, expand(case["input"]) if case.get("input") is not None else {})
        play.house.drain()
        return _differences(case["expected"], play.describe(execution), play.events(execution))
    finally:
        play.house.close()


def _differences(
    expected: dict[str, Any], described: dict[str, Any], events: list[dict[str, Any]]
) -> dict[str, list[str]]:
    matcher = Matcher()
    found: dict[str, list[str]] = {level: [] for level in LEVELS}
    if described["status"] != expected["status"]:
        found["status"].append(f"status is {described['status']}, expected {expected['status']}")
    if "output" in expected:
        output = json.loads(described["output"]) if "output" in described else None
        found["result"] += matcher.differences(expected["output"], output, "output")
    for name in ("error", "cause"):
        wanted = {name: expected[name]} if name in expected else {}
        actual = {name: described[name]} if name in described else {}
        found["result"] += matcher.differences(wanted, actual)
    shown = [parsed({**event, "timestamp": "timestamp"}) for event in events]
    if [event["type"] for event in shown] != expected["event_types"]:
        found["types"].append(f"event types are {[event['type'] for event in shown]}")
    found["history"] += matcher.differences(unspaced(expected["history"]), unspaced(shown), "history")
    return found


def unspaced(value: Any) -> Any:
    """Forget white space in arrays as text: AWS keeps the caller's in some recordings and not in others."""
    if isinstance(value, dict):
        return {key: unspaced(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [unspaced(inner) for inner in value]
    if isinstance(value, str) and value.startswith("["):
        return json.dumps(json.loads(value))
    return value


def params() -> list[Any]:
    return [
        pytest.param(
            case["id"],
            id=case["id"].removeprefix("asl/"),
            marks=[pytest.mark.xfail(reason=reason, strict=True)] if (reason := KNOWN.get(case["id"])) else [],
        )
        for case in runnable()
    ]


here = pytest.mark.skipif(not distributed(), reason=f"no recordings in {FOLDER}: set TASUKI_CONFORMANCE")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("buckets")


@here
@pytest.mark.parametrize("identity", params())
def test_recorded_map_run(identity: str, folder: Path) -> None:
    found = verdict(identity, folder)
    assert not any(found.values()), "\n".join(line for lines in found.values() for line in lines[:5])


@here
def test_how_many_recordings_are_met(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = runnable()
    met = {level: sum(not verdict(case["id"], folder)[level] for case in chosen) for level in LEVELS}
    with capsys.disabled():
        print(f"\nDistributed Map: {len(chosen)} executions; met: {met}")  # noqa: T201
    assert met["status"] == met["result"] == met["types"] == len(chosen)
    assert met["history"] == len(chosen) - len(KNOWN)
