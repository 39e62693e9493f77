"""The operations of Pipes: what is made, refused, listed, changed."""

from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from tasuki.services.pipes.errors import (
    ConflictException,
    NotFoundException,
    ServiceQuotaExceededException,
    ValidationException,
)
from tasuki.services.pipes.naming import TAG
from tasuki.values import documents
from tasuki.values.errors import DomainError
from tasuki.values.instant import to_datetime
from tests.services.pipes.stubs import FIRE_AND_FORGET as FIRE
from tests.services.pipes.stubs import MACHINE, QUEUE, ROLE, Bench


def refusal(bench: Bench, operation: str = "CreatePipe", **given: Any) -> tuple[str, str]:
    """Answer (field, message) of the refusal, and check that nothing was made."""
    base: dict[str, Any] = {"Name": "q", "RoleArn": ROLE}
    if operation == "CreatePipe":
        base |= {"Source": QUEUE, "Target": MACHINE, "TargetParameters": FIRE}
    with pytest.raises(ValidationException) as refused:
        bench.call(operation, {**base, **given})
    [entry] = refused.value.fields["fieldList"]
    assert documents.loads(refused.value.message) == {
        "ValidationErrorFields": [{"Name": entry["name"], "Message": entry["message"]}]
    }
    if operation == "CreatePipe":
        with pytest.raises(NotFoundException):
            bench.describe("q")
    return entry["name"], entry["message"]


def test_a_zero_byte_is_kept_where_text_is_free_and_finds_nothing_elsewhere(bench: Bench) -> None:
    bench.pipe(Description="d\0\x1a0", KmsKeyIdentifier="\0")
    assert (bench.describe()["Description"], bench.describe()["KmsKeyIdentifier"]) == ("d\0\x1a0", "\0")
    for prefix in ("NamePrefix", "SourcePrefix", "TargetPrefix"):
        assert bench.call("ListPipes", {prefix: "\0"})["Pipes"] == []
        assert bench.call("ListPipes", {prefix: "p\0"})["Pipes"] == []
    assert len(bench.call("ListPipes", {"NamePrefix": "p"})["Pipes"]) == 1


def test_create_and_describe(bench: Bench) -> None:
    answer = bench.pipe(
        batch=5, Description="d", Tags={"team": "x"}, KmsKeyIdentifier="k", LogConfiguration={"Level": "OFF"}
    )
    assert answer == {
        "Arn": "arn:aws:pipes:us-east-1:000000000000:pipe/p",
        "Name": "p",
        "DesiredState": "RUNNING",
        "CurrentState": "CREATING",
        "CreationTime": bench.house.now,
        "LastModifiedTime": bench.house.now,
    }
    assert bench.describe() == {
        **answer,
        "CurrentState": "RUNNING",
        "Description": "d",
        "Source": QUEUE,
        "SourceParameters": {"SqsQueueParameters": {"BatchSize": 5, "MaximumBatchingWindowInSeconds": 0}},
        "Enrichment": "",
        "Target": MACHINE,
        "TargetParameters": FIRE,
        "RoleArn": ROLE,
        "LogConfiguration": {"Level": "OFF"},
        "KmsKeyIdentifier": "k",
        "Tags": {"team": "x"},
    }


def test_answers_and_errors_fit_botocore_s_shapes(bench: Bench) -> None:
    model = botocore.session.get_session().get_service_model("pipes")

    def fits(operation: str, answer: dict[str, Any]) -> None:
        shape = model.operation_model(operation).output_shape
        assert shape is not None
        times = {key: to_datetime(value) for key, value in answer.items() if key.endswith("Time")}
        pipes = [{k: v for k, v in pipe.items() if not k.endswith("Time")} for pipe in answer.get("Pipes", [])]
        found = ParamValidator().validate({**answer, **times, **({"Pipes": pipes} if pipes else {})}, shape)
        assert not found.has_errors(), f"{operation}: {found.generate_report()}"

    arn = bench.pipe(batch=2, patterns=['{"a":[1]}'], template="<$.body>", Tags={"a": "b"}, Description="d")["Arn"]
    for operation in ("DescribePipe", "StopPipe", "StartPipe", "UpdatePipe"):
        fits(operation, bench.call(operation, {"Name": "p", "RoleArn": ROLE}))
    fits("ListPipes", bench.call("ListPipes", {}))
    fits("ListTagsForResource", bench.call("ListTagsForResource", {"resourceArn": arn}))
    fits("DeletePipe", bench.call("DeletePipe", {"Name": "p"}))
    fits("CreatePipe", bench.pipe())
    errors: list[DomainError] = []
    given: dict[str, Any]
    for given in ({"Name": "p"}, {"Name": "q", "Source": "x"}):
        with pytest.raises(DomainError) as refused:
            bench.pipe(**given)
        errors.append(refused.value)
    with pytest.raises(DomainError) as refused:
        bench.describe("nobody")
    for error in (*errors, refused.value):
        shape = model.shape_for(error.code)
        found = ParamValidator().validate({"message": error.message, **error.fields}, shape)
        assert not found.has_errors(), f"{error.code}: {found.generate_report()}"
        assert shape.metadata["error"]["httpStatusCode"] == error.status


def test_desired_state_stopped(bench: Bench) -> None:
    bench.pipe(DesiredState="STOPPED")
    bench.send("a")
    assert bench.describe()["CurrentState"] == "STOPPED"
    assert bench.waiting == ["m00001"]


def test_a_name_is_taken_once(bench: Bench) -> None:
    bench.pipe()
    with pytest.raises(ConflictException) as refused:
        bench.pipe()
    assert refused.value.status == 409
    assert refused.value.fields == {"resourceId": "p", "resourceType": "AWS::Pipes::Pipe"}
    bench.call("DeletePipe", {"Name": "p"})
    bench.pipe()


@pytest.mark.parametrize("operation", ["DescribePipe", "UpdatePipe", "DeletePipe", "StartPipe", "StopPipe"])
def test_no_such_pipe(bench: Bench, operation: str) -> None:
    with pytest.raises(NotFoundException, match="Pipe nobody does not exist") as refused:
        bench.call(operation, {"Name": "nobody", "RoleArn": ROLE})
    assert refused.value.status == 404


@pytest.mark.parametrize(
    "arn", ["nonsense", "arn:aws:sqs:us-east-1:000000000000:jobs", "arn:aws:pipes:us-east-1:000000000000:pipe/x"]
)
def test_no_such_arn(bench: Bench, arn: str) -> None:
    with pytest.raises(NotFoundException):
        bench.call("ListTagsForResource", {"resourceArn": arn})


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        # PF-39: what can't work is refused, with what is offered
        ({"Source": "arn:aws:kinesis:us-east-1:000000000000:stream/s"}, "Source", "it offers sqs"),
        ({"Target": "arn:aws:lambda:us-east-1:000000000000:function:f"}, "Target", "no target that this Tasuki offers"),
        ({"Source": "smk://host:9092"}, "Source", "not an ARN"),
        ({"Source": QUEUE + "-absent"}, "Source", "does not exist"),
        ({"Target": MACHINE + "-absent"}, "Target", "does not exist"),
        (
            {"Enrichment": "arn:aws:lambda:us-east-1:000000000000:function:f"},
            "Enrichment",
            "no enrichment that this Tasuki offers",
        ),
        (
            {"SourceParameters": {"KinesisStreamParameters": {"StartingPosition": "LATEST"}}},
            "SourceParameters.KinesisStreamParameters",
            "takes FilterCriteria",
        ),
        (
            {"TargetParameters": {**FIRE, "LambdaFunctionParameters": {"InvocationType": "X"}}},
            "TargetParameters.LambdaFunctionParameters",
            "takes InputTemplate",
        ),
        # PF-42: a standard machine can't be called synchronously, which is the default
        (
            {"TargetParameters": {}},
            "TargetParameters.StepFunctionStateMachineParameters.InvocationType",
            "absent, which means REQUEST_RESPONSE",
        ),
        (
            {"TargetParameters": {"StepFunctionStateMachineParameters": {"InvocationType": "REQUEST_RESPONSE"}}},
            "TargetParameters.StepFunctionStateMachineParameters.InvocationType",
            "must be FIRE_AND_FORGET",
        ),
        # batching
        (
            {"SourceParameters": {"SqsQueueParameters": {"BatchSize": 0}}},
            "SourceParameters.SqsQueueParameters.BatchSize",
            "between 1 and 10000",
        ),
        (
            {"SourceParameters": {"SqsQueueParameters": {"BatchSize": 10001}}},
            "SourceParameters.SqsQueueParameters.BatchSize",
            "between 1 and 10000",
        ),
        (
            {"SourceParameters": {"SqsQueueParameters": {"BatchSize": 11}}},
            "SourceParameters.SqsQueueParameters.MaximumBatchingWindowInSeconds",
            "greater than 0 if BatchSize is greater than 10",
        ),
        (
            {"SourceParameters": {"SqsQueueParameters": {"MaximumBatchingWindowInSeconds": 301}}},
            "SourceParameters.SqsQueueParameters.MaximumBatchingWindowInSeconds",
            "between 0 and 300",
        ),
        # filters
        (
            {"SourceParameters": {"FilterCriteria": {"Filters": [{"Pattern": "{}"}] * 6}}},
            "SourceParameters.FilterCriteria.Filters",
            "at most 5",
        ),
        (
            {"SourceParameters": {"FilterCriteria": {"Filters": [{"Pattern": '{"a":["' + "x" * 4096 + '"]}'}]}}},
            "SourceParameters.FilterCriteria.Filters[0].Pattern",
            "less than or equal to 4096",
        ),
        (
            {"SourceParameters": {"FilterCriteria": {"Filters": [{"Pattern": '{"a":[1]}'}, {"Pattern": '{"a": 1}'}]}}},
            "SourceParameters.FilterCriteria.Filters[1].Pattern",
            'Event pattern is not valid. Reason: "a" must be an object or an array\n at [Source: (String)"{"a": 1}"; line: 1, column: 8]',
        ),
        (
            {"SourceParameters": {"FilterCriteria": {"Filters": [{"Pattern": '{"awsRegion": ["x"]}'}]}}},
            "SourceParameters.FilterCriteria.Filters[0].Pattern",
            "awsRegion can't be used",
        ),
        # templates
        (
            {"TargetParameters": {**FIRE, "InputTemplate": "x" * 8193}},
            "TargetParameters.InputTemplate",
            "less than or equal to 8192",
        ),
        (
            {"TargetParameters": {**FIRE, "InputTemplate": '{"a": <$.body.x>'}},
            "TargetParameters.InputTemplate",
            "looks like JSON",
        ),
        # names and tags
        ({"Tags": {TAG: "message-id"}}, "Tags", "BatchSize 1; it is 10"),
        (
            {"Tags": {TAG: "jobId"}, "SourceParameters": {"SqsQueueParameters": {"BatchSize": 1}}},
            "Tags",
            "message-id or a path",
        ),
        ({"Tags": {"aws:x": "y"}}, "Tags", "reserved"),
        ({"Tags": {str(n): "y" for n in range(51)}}, "Tags", "at most 50"),
    ],
)
def test_refused(bench: Bench, given: dict[str, Any], field: str, words: str) -> None:
    name, message = refusal(bench, **given)
    assert name == field
    assert words in message


def test_a_refused_update_changes_nothing(bench: Bench) -> None:
    bench.pipe("q", batch=1, Tags={TAG: "message-id"})
    before = bench.describe("q")
    field, message = refusal(bench, "UpdatePipe", SourceParameters={"SqsQueueParameters": {"BatchSize": 2}})
    assert field == "SourceParameters.SqsQueueParameters.BatchSize"
    assert "BatchSize 1; it is 2" in message
    assert refusal(bench, "UpdatePipe", Target=MACHINE + "x")[0] == "Target"
    assert bench.describe("q") == before


def test_update_replaces_whole_objects_and_keeps_the_rest(bench: Bench) -> None:
    pattern = {"Filters": [{"Pattern": '{"a":[1]}'}]}
    sqs = {"BatchSize": 20, "MaximumBatchingWindowInSeconds": 5}
    bench.pipe(Description="old", SourceParameters={"FilterCriteria": pattern, "SqsQueueParameters": sqs})
    bench.house.advance(seconds=1)
    change = {"SourceParameters": {"SqsQueueParameters": {"BatchSize": 3}}, "RoleArn": ROLE + "2"}
    answer = bench.call("UpdatePipe", {"Name": "p", **change})
    assert answer["CurrentState"] == "UPDATING"
    described = bench.describe()
    assert described["CurrentState"] == "RUNNING"
    assert described["Description"] == "old"
    assert described["RoleArn"] == ROLE + "2"
    assert described["SourceParameters"] == {
        "FilterCriteria": pattern,
        "SqsQueueParameters": {"BatchSize": 3, "MaximumBatchingWindowInSeconds": 0},
    }
    assert described["LastModifiedTime"] == described["CreationTime"] + 1000
    bench.call(
        "UpdatePipe",
        {"Name": "p", "RoleArn": ROLE, "DesiredState": "STOPPED", "SourceParameters": {"FilterCriteria": {}}},
    )
    assert bench.describe()["CurrentState"] == "STOPPED"
    assert bench.describe()["SourceParameters"]["FilterCriteria"] == {}


def test_starting_a_running_and_stopping_a_stopped_pipe_changes_nothing(bench: Bench) -> None:
    bench.pipe()
    assert bench.call("StartPipe", {"Name": "p"})["CurrentState"] == "RUNNING"
    bench.call("StopPipe", {"Name": "p"})
    bench.house.advance(seconds=5)
    before = bench.describe()
    assert bench.call("StopPipe", {"Name": "p"})["CurrentState"] == "STOPPED"
    assert bench.describe() == before


def test_list_filters_and_pages(bench: Bench) -> None:
    for name in ("a1", "a2", "b1", "b2", "b3"):
        bench.pipe(name, DesiredState="STOPPED" if name.endswith("1") else "RUNNING")

    def names(**given: Any) -> list[str]:
        return [pipe["Name"] for pipe in bench.call("ListPipes", given)["Pipes"]]

    assert names() == ["a1", "a2", "b1", "b2", "b3"]
    assert names(NamePrefix="b") == ["b1", "b2", "b3"]
    assert names(DesiredState="STOPPED") == ["a1", "b1"]
    assert names(CurrentState="RUNNING", NamePrefix="a") == ["a2"]
    assert names(SourcePrefix="arn:aws:sqs") == names()
    assert names(SourcePrefix="arn:aws:kinesis") == []
    assert names(TargetPrefix=MACHINE) == names()
    page = bench.call("ListPipes", {"Limit": 2, "NamePrefix": "b"})
    assert [pipe["Name"] for pipe in page["Pipes"]] == ["b1", "b2"]
    rest = bench.call("ListPipes", {"Limit": 2, "NamePrefix": "b", "NextToken": page["NextToken"]})
    assert [pipe["Name"] for pipe in rest["Pipes"]] == ["b3"]
    assert "NextToken" not in rest
    for other in ({"NamePrefix": "a", "NextToken": page["NextToken"]}, {"NextToken": "garbage"}):
        with pytest.raises(ValidationException, match="NextToken"):
            bench.call("ListPipes", other)
    assert set(page["Pipes"][0]) == {
        "Arn", "Name", "DesiredState", "CurrentState", "CreationTime", "LastModifiedTime", "Source", "Target", "Enrichment",
    }  # fmt: skip


def test_tags(bench: Bench) -> None:
    arn = bench.pipe(Tags={"a": "1", "b": "2"})["Arn"]
    bench.call("TagResource", {"resourceArn": arn, "tags": {"b": "3", "c": "4"}})
    bench.call("UntagResource", {"resourceArn": arn, "tagKeys": ["a"]})
    assert bench.call("ListTagsForResource", {"resourceArn": arn}) == {"tags": {"b": "3", "c": "4"}}
    with pytest.raises(ValidationException, match="at most 50"):
        bench.call("TagResource", {"resourceArn": arn, "tags": {f"k{n}": "" for n in range(50)}})
    with pytest.raises(ValidationException, match="BatchSize 1; it is 10"):
        bench.call("TagResource", {"resourceArn": arn, "tags": {TAG: "message-id"}})
    assert bench.call("ListTagsForResource", {"resourceArn": arn}) == {"tags": {"b": "3", "c": "4"}}


def test_quota() -> None:
    few = Bench(quotas={"pipes": 1})
    with few.house:
        few.pipe("a")
        with pytest.raises(ServiceQuotaExceededException) as refused:
            few.pipe("b")
        assert refused.value.status == 402
        assert set(refused.value.fields) == {"resourceId", "resourceType", "serviceCode", "quotaCode"}
