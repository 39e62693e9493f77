"""Where a Map Run's items come from, how they are grouped, and where results go: with buckets that are folders."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasuki.services.machines import item_readers
from tests.services.machines.folder import FolderObjects
from tests.services.machines.stubs import Play
from tests.services.machines.test_map_runs import FAIL_ODD, PASS, machine, map_runs, odd

GET = "arn:aws:states:::s3:getObject"
LIST = "arn:aws:states:::s3:listObjectsV2"
PUT = "arn:aws:states:::s3:putObject"


@pytest.fixture
def objects(play: Play, tmp_path: Path) -> FolderObjects:
    made = FolderObjects(tmp_path)
    made.make("in")
    made.make("out")
    play.house.switchboard.objects = made
    return made


def reader(key: str = "items", **config: Any) -> dict[str, Any]:
    return {"Resource": GET, "Parameters": {"Bucket": "in", "Key": key}, "ReaderConfig": config}


def ended(play: Play, definition: dict[str, Any], given: Any = None) -> tuple[str, dict[str, Any]]:
    """Play to the end; answer the execution's ARN and description."""
    execution = play.run(definition, given)
    play.house.drain()
    return execution, play.describe(execution)


def output_of(play: Play, **fields: Any) -> Any:
    _, described = ended(play, machine(PASS, **fields))
    assert described["status"] == "SUCCEEDED", described
    return json.loads(described["output"])


# -- readers ---------------------------------------------------------------------------------------------------------


def test_a_json_array_is_read(play: Play, objects: FolderObjects) -> None:
    """PITFALLS PF-20."""
    objects.write("in", "items", '\ufeff [ {"a": [1, {"b": "]"}]}, "x, \\"y\\"", null ] ')
    assert output_of(play, ItemReader=reader(InputType="JSON")) == [{"a": [1, {"b": "]"}]}, 'x, "y"', None]


@pytest.mark.parametrize("text", ["[]", " [ ] "])
def test_an_empty_array_has_no_items(play: Play, objects: FolderObjects, text: str) -> None:
    objects.write("in", "items", text)
    assert output_of(play, ItemReader=reader(InputType="JSON")) == []


def test_a_pointer_leads_into_a_json_file(play: Play, objects: FolderObjects) -> None:
    objects.write("in", "items", '{"a/b": [0, {"l": [1, 2, 3]}]}')
    config: dict[str, Any] = {"InputType": "JSON", "ItemsPointer": "/a~1b/1/l", "MaxItems": 2}
    assert output_of(play, ItemReader=reader(**config)) == [1, 2]


def test_lines_of_json_are_read(play: Play, objects: FolderObjects) -> None:
    objects.write("in", "items", '{"a": 1}\r\n\n[2]\n"three"')
    assert output_of(play, ItemReader=reader(InputType="JSONL")) == [{"a": 1}, [2], "three"]


def test_csv_with_headers_in_the_first_row(play: Play, objects: FolderObjects) -> None:
    objects.write("in", "items", '\ufeffid,text\r\n1,"two\nlines, ""quoted"""\r\n2\r\n3,x,dropped\r\n')
    config: dict[str, Any] = {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"}
    assert output_of(play, ItemReader=reader(**config)) == [
        {"id": "1", "text": 'two\nlines, "quoted"'},
        {"id": "2", "text": ""},
        {"id": "3", "text": "x"},
    ]


@pytest.mark.parametrize(
    ("name", "delimiter"), [("PIPE", "|"), ("SEMICOLON", ";"), ("SPACE", " "), ("TAB", "\t"), ("COMMA", ",")]
)
def test_csv_with_other_delimiters(play: Play, objects: FolderObjects, name: str, delimiter: str) -> None:
    objects.write("in", "items", f"1{delimiter}2\n")
    config: dict[str, Any] = {
        "InputType": "CSV",
        "CSVHeaderLocation": "GIVEN",
        "CSVHeaders": ["a", "b"],
        "CSVDelimiter": name,
    }
    assert output_of(play, ItemReader=reader(**config)) == [{"a": "1", "b": "2"}]


def test_an_item_selector_is_told_where_items_come_from(play: Play, objects: FolderObjects) -> None:
    objects.write("in", "items", "[1]")
    selector = {"from.$": "$$.Map.Item.Source"}
    listing = {"Resource": LIST, "Parameters": {"Bucket": "in"}}
    for name, fields, source in (
        ("object", {"ItemReader": reader(InputType="JSON")}, "S3://in/items"),
        ("listing", {"ItemReader": listing}, "S3://in"),
        ("input", {}, "STATE_DATA"),
    ):
        execution = play.start(play.create(machine(PASS, ItemSelector=selector, **fields), name=name), [1])
        play.house.drain()
        assert play.output(execution) == [{"from": source}]


def test_objects_are_listed(play: Play, objects: FolderObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_readers, "LISTED", 2)
    for key in ("a/1", "a/2", "a/3", "a/4", "b/1"):
        objects.write("in", key, key)
    listing = {"Resource": LIST, "Parameters": {"Bucket": "in", "Prefix": "a/"}}
    found = output_of(play, ItemReader=listing)
    assert [one["Key"] for one in found] == ["a/1", "a/2", "a/3", "a/4"]
    assert found[0] == {
        "Etag": found[0]["Etag"],
        "Key": "a/1",
        "LastModified": 1_700_000_000,
        "Size": 3,
        "StorageClass": "STANDARD",
    }


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"InputType": "JSON"}, None),
        ({"InputType": "JSONL"}, '{"n":%d,"t":"]}\\""}'),
        ({"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"}, '%d,"a\n""b"""'),
    ],
)
def test_large_files_are_read_in_windows(
    play: Play, objects: FolderObjects, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], line: str | None
) -> None:
    monkeypatch.setattr(item_readers, "WINDOW", 64)
    count = 300
    if line is None:
        objects.write("in", "items", json.dumps([{"n": n, "t": ']}"'} for n in range(count)], indent=1))
    else:
        head = "n,t\n" if "CSVHeaderLocation" in config else ""
        objects.write("in", "items", head + "\n".join(line % n for n in range(count)) + "\n")
    counted = {"n.$": "States.ArrayLength($)", "last.$": "$[299].n"}
    found = output_of(play, ItemReader=reader(**config), ResultSelector=counted)
    assert (found["n"], int(found["last"])) == (count, 299)
    assert objects.largest < 1_000


def test_an_item_may_be_larger_than_a_window(
    play: Play, objects: FolderObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_readers, "WINDOW", 16)
    objects.write("in", "items", json.dumps(["x" * 200, "y"]))
    assert output_of(play, ItemReader=reader(InputType="JSON")) == ["x" * 200, "y"]


@pytest.mark.parametrize(
    ("config", "text", "cause"),
    [
        ({"InputType": "JSON"}, '{"a": 1}', "Attempting to map over non-iterable node."),
        ({"InputType": "JSON"}, "[1, 2", "items is not JSON: the array does not end."),
        ({"InputType": "JSON"}, "[1, nonsense]", "items is not JSON: "),
        ({"InputType": "JSON"}, "", "items is not JSON: "),
        ({"InputType": "JSON", "ItemsPointer": "/a"}, "{}", "The ItemsPointer /a leads to nothing in items."),
        ({"InputType": "JSON", "ItemsPointer": "/a"}, '{"a":1}', "Attempting to map over non-iterable node."),
        ({"InputType": "JSONL"}, "{", "items is not JSON: "),
        ({"InputType": "JSON"}, None, "The specified key does not exist."),
        ({"InputType": "PARQUET"}, "", "The InputType PARQUET comes with a later release"),
        ({"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"}, "a,a\n", "CSV headers cannot contain duplicates."),
    ],
)
def test_what_cannot_be_read_fails_in_words(
    play: Play, objects: FolderObjects, config: dict[str, Any], text: str | None, cause: str
) -> None:
    if text is not None:
        objects.write("in", "items", text)
    execution, described = ended(play, machine(PASS, ItemReader=reader(**config)))
    assert (described["status"], described["error"]) == ("FAILED", "States.ItemReaderFailed")
    assert described["cause"].startswith(cause)
    assert map_runs(play, execution)[0]["status"] == "FAILED"


def test_without_an_object_store_nothing_is_read_or_written(play: Play) -> None:
    _, described = ended(play, machine(PASS, ItemReader=reader(InputType="JSON")))
    assert described["error"] == "States.ItemReaderFailed"
    assert "no object store" in described["cause"]
    writer = {"Resource": PUT, "Parameters": {"Bucket": "out"}}
    execution = play.start(play.create(machine(PASS, ResultWriter=writer), name="w"), [1])
    play.house.drain()
    described = play.describe(execution)
    assert described["error"] == "States.ResultWriterFailed"
    assert "no object store" in described["cause"]


# -- batches ---------------------------------------------------------------------------------------------------------


def test_items_are_grouped(play: Play) -> None:
    batcher = {"MaxItemsPerBatch": 2, "BatchInput": {"of.$": "$.name"}}
    selector = {"v.$": "$$.Map.Item.Value"}
    execution, described = ended(
        play,
        machine(PASS, ItemsPath="$.l", ItemBatcher=batcher, ItemSelector=selector),
        {"name": "n", "l": [1, 2, 3]},
    )
    assert json.loads(described["output"]) == [
        {"BatchInput": {"of": "n"}, "Items": [{"v": 1}, {"v": 2}]},
        {"BatchInput": {"of": "n"}, "Items": [{"v": 3}]},
    ]
    [run] = map_runs(play, execution)
    assert (run["itemCounts"]["succeeded"], run["executionCounts"]["succeeded"]) == (3, 2)


def test_groups_are_bounded_in_bytes(play: Play) -> None:
    """`{"Items":[]}` is 12 bytes, each item 12 and a comma: two are 37."""
    given = ["x" * 10] * 5
    for most, sizes in ((37, [2, 2, 1]), (36, [1] * 5), (1, [1] * 5), (262_144, [5])):
        arn = play.create(machine(PASS, ItemBatcher={"MaxInputBytesPerBatch": most}), name=f"m{most}")
        execution = play.start(arn, given)
        play.house.drain()
        assert [len(one["Items"]) for one in play.output(execution)] == sizes


def test_many_items_are_grouped_over_slices(play: Play) -> None:
    batcher = {"MaxItemsPerBatchPath": "$.most"}
    sizes = {"StartAt": "S", "States": {"S": {"Type": "Pass", "OutputPath": "$.Items[0]", "End": True}}}
    _, described = ended(
        play, machine(sizes, ItemsPath="$.l", ItemBatcher=batcher), {"most": 7, "l": list(range(1_203))}
    )
    assert json.loads(described["output"]) == list(range(0, 1_203, 7))


def test_a_failed_batch_is_all_its_items(play: Play) -> None:
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail"}}}
    batcher = {"MaxItemsPerBatch": 2}
    execution, described = ended(play, machine(fails, ItemBatcher=batcher, ToleratedFailureCount=1), [1, 2, 3])
    assert described["error"] == "States.ExceedToleratedFailureThreshold"
    assert map_runs(play, execution)[0]["itemCounts"]["failed"] == 2


# -- writers ---------------------------------------------------------------------------------------------------------


def exported(play: Play, objects: FolderObjects, given: Any, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Play with a ResultWriter; answer the execution's description, and the texts of all objects by their last name."""
    config = {"WriterConfig": fields.pop("config")} if "config" in fields else {}
    writer = {"Resource": PUT, "Parameters": {"Bucket": "out", "Prefix": "jobs/"}, **config}
    block = fields.pop("block", PASS)
    _, described = ended(play, machine(block, ResultWriter=writer, **fields), given)
    paths = [path for path in (objects.root / "out").rglob("*") if path.is_file()]
    return described, {path.name: path.read_text() for path in paths}


def test_results_are_exported_with_a_manifest(play: Play, objects: FolderObjects) -> None:
    described, texts = exported(play, objects, odd(False, True, False), block=FAIL_ODD, ToleratedFailurePercentage=50)
    output = json.loads(described["output"])
    name = output["MapRunArn"].rpartition(":")[2]
    assert output["ResultWriterDetails"] == {"Bucket": "out", "Key": f"jobs/{name}/manifest.json"}
    manifest = json.loads(objects.text("out", f"jobs/{name}/manifest.json"))
    size = len(texts["SUCCEEDED_0.json"])
    assert manifest["ResultFiles"]["SUCCEEDED"] == [{"Key": f"jobs/{name}/SUCCEEDED_0.json", "Size": size}]
    assert (manifest["DestinationBucket"], manifest["MapRunArn"]) == ("out", output["MapRunArn"])
    assert manifest["ResultFiles"]["PENDING"] == []
    first, _ = json.loads(texts["SUCCEEDED_0.json"])
    assert (first["Status"], first["Output"], first["OutputDetails"]) == (
        "SUCCEEDED",
        '{"odd":false}',
        {"Included": True},
    )
    [lost] = json.loads(texts["FAILED_0.json"])
    assert (lost["Error"], lost["Status"]) == ("Odd", "FAILED")


def test_a_failed_map_run_is_exported_too(play: Play, objects: FolderObjects) -> None:
    described, texts = exported(play, objects, odd(True, False, False), block=FAIL_ODD)
    assert described["error"] == "States.ExceedToleratedFailureThreshold"
    assert sorted(texts) == ["FAILED_0.json", "PENDING_0.json", "manifest.json"]
    assert json.loads(texts["PENDING_0.json"]) == [{"Input": '{"odd":false}'}] * 2


@pytest.mark.parametrize(
    ("config", "name", "text"),
    [
        ({"Transformation": "COMPACT", "OutputType": "JSON"}, "SUCCEEDED_0.json", "[[1,2],3]"),
        ({"Transformation": "FLATTEN", "OutputType": "JSON"}, "SUCCEEDED_0.json", "[1,2,3]"),
        ({"Transformation": "FLATTEN", "OutputType": "JSONL"}, "SUCCEEDED_0.jsonl", "1\n2\n3"),
    ],
)
def test_results_are_transformed(
    play: Play, objects: FolderObjects, config: dict[str, str], name: str, text: str
) -> None:
    _, texts = exported(play, objects, [[1, 2], 3], config=config)
    assert texts[name] == text


def test_results_are_transformed_without_an_export(play: Play) -> None:
    for transformation, wanted in (("COMPACT", [[1], 2]), ("FLATTEN", [1, 2])):
        writer = {"WriterConfig": {"Transformation": transformation, "OutputType": "JSON"}}
        execution = play.start(play.create(machine(PASS, ResultWriter=writer), name=transformation), [[1], 2])
        play.house.drain()
        assert play.output(execution) == wanted


def test_a_bucket_that_is_not_there_fails_the_export(play: Play, objects: FolderObjects) -> None:
    (objects.root / "out").rmdir()
    writer = {"Resource": PUT, "Parameters": {"Bucket": "out", "Prefix": "p"}}
    _, described = ended(play, machine(PASS, ResultWriter=writer), [1])
    assert described["error"] == "States.ResultWriterFailed"
    assert "The specified bucket does not exist" in described["cause"]
