"""What a definition may say about a distributed Map, and what it may not."""

from typing import Any

import pytest

from tasuki.language.errors import InvalidDefinition
from tasuki.language.parse import parse
from tasuki.values.documents import dumps

GET = "arn:aws:states:::s3:getObject"
LIST = "arn:aws:states:::s3:listObjectsV2"
PUT = "arn:aws:states:::s3:putObject"
CONFIG = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
BLOCK = {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}


def text(config: dict[str, Any] | None = None, **fields: Any) -> str:
    processor = {**BLOCK, "ProcessorConfig": CONFIG if config is None else config}
    state = {"Type": "Map", "End": True, "ItemProcessor": processor, **fields}
    return dumps({"StartAt": "M", "States": {"M": state}})


def complaints(definition: str) -> list[tuple[str, str]]:
    with pytest.raises(InvalidDefinition) as caught:
        parse(definition)
    return [(one.location, one.message) for one in caught.value.diagnoses]


def reader(**config: Any) -> dict[str, Any]:
    return {"Resource": GET, "Parameters": {"Bucket": "b", "Key": "k"}, "ReaderConfig": config}


@pytest.mark.parametrize(
    "fields",
    [
        {"ItemReader": reader(InputType="JSON", MaxItems=5, ItemsPointer="/a")},
        {"ItemReader": reader(InputType="JSONL", MaxItemsPath="$.n")},
        {"ItemReader": reader(InputType="CSV", CSVHeaderLocation="FIRST_ROW", CSVDelimiter="PIPE")},
        {"ItemReader": reader(InputType="CSV", CSVHeaderLocation="GIVEN", CSVHeaders=["a"])},
        {"ItemReader": reader(InputType="MANIFEST", ManifestType="S3_INVENTORY")},
        {"ItemReader": {"Resource": LIST, "Parameters": {"Bucket": "b", "Prefix.$": "$.p"}}},
        {"ItemReader": {"Resource": "arn:aws-cn:states:::s3:listObjectsV2", "Parameters": {"Bucket": "b"}}},
        {"ItemBatcher": {"MaxItemsPerBatch": 1}},
        {"ItemBatcher": {"MaxInputBytesPerBatchPath": "$.n", "BatchInput": {"a.$": "$.a"}}},
        {"ResultWriter": {"Resource": PUT, "Parameters": {"Bucket": "b", "Prefix": "p"}}},
        {"ResultWriter": {"WriterConfig": {"OutputType": "JSONL", "Transformation": "FLATTEN"}}},
        {"Label": "x" * 40, "ToleratedFailureCount": 3, "ToleratedFailurePercentage": 12.5},
    ],
)
def test_what_is_right_is_taken(fields: dict[str, Any]) -> None:
    assert parse(text(**fields))


@pytest.mark.parametrize(
    ("fields", "location"),
    [
        ({"ItemReader": {"ReaderConfig": {"InputType": "JSON"}}}, "ItemReader"),
        ({"ItemReader": {"Resource": PUT, "Parameters": {}}}, "ItemReader/Resource"),
        ({"ItemReader": {"Resource": GET, "Parameters": {}}}, "ItemReader/ReaderConfig"),
        ({"ItemReader": reader(InputType="XML")}, "ItemReader/ReaderConfig/InputType"),
        ({"ItemReader": reader(InputType="CSV")}, "ItemReader/ReaderConfig"),
        ({"ItemReader": reader(InputType="CSV", CSVHeaderLocation="GIVEN")}, "ItemReader/ReaderConfig"),
        ({"ItemReader": reader(InputType="JSON", MaxItems=-1)}, "ItemReader/ReaderConfig/MaxItems"),
        ({"ItemReader": reader(InputType="JSON", MaxItems=1, MaxItemsPath="$.n")}, "ItemReader/ReaderConfig"),
        ({"ItemReader": reader(InputType="JSON", Unknown=1)}, "ItemReader/ReaderConfig/Unknown"),
        ({"ItemBatcher": {}}, "ItemBatcher"),
        ({"ItemBatcher": {"MaxItemsPerBatch": 0}}, "ItemBatcher/MaxItemsPerBatch"),
        ({"ItemBatcher": {"MaxInputBytesPerBatch": 262_145}}, "ItemBatcher/MaxInputBytesPerBatch"),
        ({"ResultWriter": {}}, "ResultWriter"),
        ({"ResultWriter": {"Resource": PUT}}, "ResultWriter"),
        ({"ResultWriter": {"WriterConfig": {"Transformation": "SHRINK"}}}, "ResultWriter/WriterConfig/Transformation"),
    ],
)
def test_what_is_wrong_is_refused_where_it_stands(fields: dict[str, Any], location: str) -> None:
    assert [where for where, _ in complaints(text(**fields))] == [f"/States/M/{location}"]


def test_the_parts_of_distributed_mode_are_not_for_inline_maps() -> None:
    fields = {"ItemBatcher": {"MaxItemsPerBatch": 1}}
    wanted = [("/States/M/ItemBatcher", "Field is supported in DISTRIBUTED mode only")]
    assert complaints(text({"Mode": "INLINE"}, **fields)) == wanted
    assert complaints(text({}, **fields)) == wanted


def test_distributed_mode_needs_an_execution_type() -> None:
    [(where, message)] = complaints(text({"Mode": "DISTRIBUTED"}))
    assert (where, message) == (
        "/States/M/ItemProcessor/ProcessorConfig",
        "These fields are required: [ExecutionType]",
    )
