"""Reading what makes a Map distributed: where its items come from, how they are grouped, where its results go.

(Developer guide, "ItemReader", "ItemBatcher", "ResultWriter"; texts recorded in scenarios/test_map_item_reader*.)
"""

import re

from tasuki.language.definition import Distributed, Expression, ItemBatcher, ItemReader, ResultWriter, Scope
from tasuki.language.fields import Fields, not_a
from tasuki.language.paths import path_missing
from tasuki.language.schema import Node

LARGEST_BATCH_BYTES = 262_144
LARGEST_COUNT = 100_000_000
LONGEST_LABEL = 40

_INPUT_TYPES = ("CSV", "JSON", "JSONL", "PARQUET", "MANIFEST")
_HEADER_LOCATIONS = ("FIRST_ROW", "GIVEN")
_DELIMITERS = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}
_MANIFEST_TYPES = ("ATHENA_DATA", "S3_INVENTORY")
_LISTINGS = ("NONE", "LOAD_AND_FLATTEN")
_OUTPUT_TYPES = ("JSON", "JSONL")
_TRANSFORMATIONS = ("NONE", "COMPACT", "FLATTEN")
_READER_CONFIG = {
    "InputType",
    "CSVHeaderLocation",
    "CSVHeaders",
    "CSVDelimiter",
    "ItemsPointer",
    "MaxItems",
    "ManifestType",
    "Transformation",
}
_FORBIDDEN_IN_LABELS = frozenset(' \t\r\n<>{}[]?*"#%\\^|~`$&,;:/')
_OBJECTS = re.compile(r"arn:[\w-]+:states:::s3:(\w+)")
_WHOLE = re.compile(r"[+-]?\d{1,18}")

PARTS = ("ItemReader", "ItemBatcher", "ResultWriter")
"""The fields of a Map that only distributed mode has."""


def read_distributed(fields: Fields, processor: Node) -> Distributed | None:
    """Answer what makes a Map distributed; None when it is inline. Complains about what fits neither."""
    config = processor.object("ProcessorConfig")
    mode, kind = "INLINE", None
    if config is not None:
        config.only({"Mode", "ExecutionType"})
        mode = _one_of(config, "Mode", ("INLINE", "DISTRIBUTED")) or "INLINE"
        kind = _one_of(config, "ExecutionType", ("STANDARD", "EXPRESS"))
    label = _label(fields)
    if mode != "DISTRIBUTED" or config is None:
        for field in PARTS:
            if field in fields:
                fields.complain(field, "Field is supported in DISTRIBUTED mode only")
        return None
    if kind is None:
        config.require("ExecutionType")
    return Distributed(
        express=kind == "EXPRESS",
        label=label,
        reader=_reader(fields),
        batcher=_batcher(fields),
        writer=_writer(fields),
    )


def _label(fields: Fields) -> str | None:
    """Answer the label; the characters are those that names may have."""
    label = fields.text("Label")
    if label is not None and (
        not 0 < len(label) <= LONGEST_LABEL or not label.isprintable() or set(label) & _FORBIDDEN_IN_LABELS
    ):
        fields.complaints.add(fields.at("Label"), f"Label '{label}' is not valid", "INVALID_LABEL_NAME")
    return label


def _one_of(node: Node, field: str, values: tuple[str, ...]) -> str | None:
    """Answer a text that must be one of a few."""
    text = node.text(field)
    if text is not None and text not in values:
        node.complain(field, f"The field '{field}' should have one of these values: [{', '.join(values)}]")
        return None
    return text


def _part(fields: Fields, name: str) -> Fields | None:
    node = fields.object(name)
    return fields.of(node) if node is not None else None


def _arguments(part: Fields) -> Expression | None:
    """Answer what a bucket's operation is called with: Parameters, in JSONata mode Arguments."""
    return part.template(_arguments_name(part))


def _arguments_name(part: Fields) -> str:
    return "Arguments" if part.language == "JSONata" else "Parameters"


def _action(part: Fields, actions: tuple[str, ...]) -> str | None:
    """Answer which operation of the object store a Resource names."""
    text = part.text("Resource")
    if text is None:
        return None
    found = _OBJECTS.fullmatch(text)
    if found is None or found[1] not in actions:
        part.complain(
            "Resource",
            f"The resource provided {text} is not recognized. The value is not a valid resource ARN, "
            "or the resource is not available in this region.",
        )
        return None
    return found[1]


def _reader(fields: Fields) -> ItemReader | None:
    part = _part(fields, "ItemReader")
    if part is None:
        return None
    part.only({"Resource", "ReaderConfig", _arguments_name(part)})
    part.require("Resource")
    action = _action(part, ("getObject", "listObjectsV2"))
    config = _part(part, "ReaderConfig") or part.of(Node({}, part.at("ReaderConfig"), part.complaints))
    paths = set() if config.language == "JSONata" else {"MaxItemsPath"}
    config.only(_READER_CONFIG | paths)
    input_type = _one_of(config, "InputType", _INPUT_TYPES)
    if action == "getObject" and "InputType" not in config:
        config.require("InputType")
    location = _one_of(config, "CSVHeaderLocation", _HEADER_LOCATIONS)
    headers = config.array("CSVHeaders")
    if headers is not None and not all(isinstance(one, str) for one in headers):
        config.complain("CSVHeaders", "Expected value of type Array of String")
    if input_type == "CSV" and location is None:
        config.require("CSVHeaderLocation")
    if location == "GIVEN" and headers is None:
        config.require("CSVHeaders")
    delimiter = _one_of(config, "CSVDelimiter", tuple(_DELIMITERS))
    manifest = _one_of(config, "ManifestType", _MANIFEST_TYPES)
    return ItemReader(
        action=action or "",
        arguments=_arguments(part),
        input_type=input_type or "",
        header_location=location or "",
        headers=tuple(map(str, headers or ())),
        delimiter=_DELIMITERS[delimiter or "COMMA"],
        pointer=config.text("ItemsPointer") or "",
        manifest_type=manifest or "",
        transformation=_one_of(config, "Transformation", _LISTINGS) or "NONE",
        max_items=_count(config, "MaxItems", 0, LARGEST_COUNT),
    )


def _batcher(fields: Fields) -> ItemBatcher | None:
    part = _part(fields, "ItemBatcher")
    if part is None:
        return None
    named = ["MaxItemsPerBatch", "MaxInputBytesPerBatch"]
    paths = [] if part.language == "JSONata" else [f"{name}Path" for name in named]
    part.only({*named, *paths, "BatchInput"})
    if not any(name in part for name in (*named, *paths)):
        part.complain("", f"At least one of these fields is required: [{', '.join(named)}]")
    return ItemBatcher(
        max_items=_count(part, "MaxItemsPerBatch", 1, LARGEST_COUNT),
        max_bytes=_count(part, "MaxInputBytesPerBatch", 1, LARGEST_BATCH_BYTES),
        batch_input=part.template("BatchInput"),
    )


def _writer(fields: Fields) -> ResultWriter | None:
    part = _part(fields, "ResultWriter")
    if part is None:
        return None
    arguments = _arguments_name(part)
    part.only({"Resource", "WriterConfig", arguments})
    if "Resource" not in part and "WriterConfig" not in part:
        part.complain("", "At least one of these fields is required: [Resource, WriterConfig]")
    if "Resource" in part:
        _action(part, ("putObject",))
        part.require(arguments)
    config = _part(part, "WriterConfig")
    if config is not None:
        config.only({"OutputType", "Transformation"})
    transformation = _one_of(config, "Transformation", _TRANSFORMATIONS) if config is not None else None
    return ResultWriter(
        arguments=_arguments(part) if "Resource" in part else None,
        output_type=(_one_of(config, "OutputType", _OUTPUT_TYPES) if config is not None else None) or "JSON",
        transformation=transformation or "NONE",
    )


def _count(part: Fields, name: str, least: int, most: int) -> int | Expression | None:
    """Answer a whole number given as `name`, or the expression of one given as `namePath`.

    By path a text with digits counts as well (recorded: test_reference_in_map_state_max_items_path), and who asks for the
    number looks at its bounds: AWS does so only when the Map Run has begun.
    """
    field = f"{name}Path"
    if field not in part or part.language == "JSONata":
        whole: int | Expression | None = part.whole(name, least, most)
        return whole
    part.at_most_one(name, field)
    path = part.path(field)
    if path is None:
        return None
    read = path.bind(path_missing)

    def count(scope: Scope) -> int:
        value = read(scope)
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise not_a(field, value, "integer", path)
        return value

    return count
