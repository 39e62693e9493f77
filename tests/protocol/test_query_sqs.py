"""SQS's older face: form data in, XML out, with the names of the API reference of 2012-11-05."""

import xml.etree.ElementTree as ET
from typing import Any
from urllib.parse import urlencode

import pytest

from tasuki.protocol.query import parse_form
from tasuki.values.errors import DomainError
from tests.protocol.knocking import Heard, Knock, Script, knock, make_app, sign

URL = "http://127.0.0.1:4566/000000000000/jobs"
FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
NS = "{http://queue.amazonaws.com/doc/2012-11-05/}"


def form(fields: dict[str, str], path: str = "/") -> Knock:
    return sign("sqs", path=path, headers=FORM, body=urlencode({"Version": "2012-11-05", **fields}).encode())


def answered(heard: Heard) -> ET.Element:
    assert heard.headers["content-type"] == "text/xml"
    return ET.fromstring(heard.body)


class QueueDoesNotExist(DomainError):
    code = "QueueDoesNotExist"
    query_code = "AWS.SimpleQueueService.NonExistentQueue"
    query_message = "The specified queue does not exist for this wsdl version."


def test_flattened_lists_and_maps_are_read() -> None:
    script = Script()
    heard = knock(
        make_app(script),
        form(
            {
                "Action": "SendMessageBatch",
                "QueueUrl": URL,
                "SendMessageBatchRequestEntry.1.Id": "a",
                "SendMessageBatchRequestEntry.1.MessageBody": "one",
                "SendMessageBatchRequestEntry.1.DelaySeconds": "5",
                "SendMessageBatchRequestEntry.1.MessageAttribute.1.Name": "x.y",
                "SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType": "Binary",
                "SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.BinaryValue": "AP8=",
                "SendMessageBatchRequestEntry.10.Id": "c",
                "SendMessageBatchRequestEntry.10.MessageBody": "three & more = é",
                "SendMessageBatchRequestEntry.2.Id": "b",
                "SendMessageBatchRequestEntry.2.MessageBody": "two",
            }
        ),
    )
    assert heard.status == 200, heard
    attribute = {"DataType": "Binary", "BinaryValue": b"\x00\xff"}
    assert script.seen[0].input == {
        "QueueUrl": URL,
        "Entries": [
            {"Id": "a", "MessageBody": "one", "DelaySeconds": 5, "MessageAttributes": {"x.y": attribute}},
            {"Id": "b", "MessageBody": "two"},
            {"Id": "c", "MessageBody": "three & more = é"},
        ],
    }


def test_attributes_and_tags_of_a_new_queue() -> None:
    script = Script()
    fields = {
        "Action": "CreateQueue",
        "QueueName": "q",
        "Attribute.1.Name": "DelaySeconds",
        "Attribute.1.Value": "3",
        "Tag.1.Key": "k",
        "Tag.1.Value": "v",
    }
    knock(make_app(script), form(fields))
    assert script.seen[0].input == {"QueueName": "q", "Attributes": {"DelaySeconds": "3"}, "tags": {"k": "v"}}


def test_an_empty_list_is_a_list() -> None:
    script = Script()
    knock(make_app(script), form({"Action": "SendMessageBatch", "QueueUrl": URL, "Entries": ""}))
    assert script.seen[0].input == {"QueueUrl": URL, "Entries": []}


def test_messages_come_as_flattened_xml() -> None:
    message = {
        "MessageId": "m-1",
        "Body": "x<y>&\r\n\x0b",
        "Attributes": {"SenderId": "me"},
        "MessageAttributes": {"b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}},
    }
    script = Script(answers={"ReceiveMessage": {"Messages": [message, {"MessageId": "m-2", "Body": "b"}]}})
    fields = {"Action": "ReceiveMessage", "QueueUrl": URL, "AttributeName.1": "All", "MessageAttributeName.1": "a.*"}
    root = answered(knock(make_app(script), form({**fields, "MessageSystemAttributeName.1": "SenderId"})))
    assert script.seen[0].input == {
        "QueueUrl": URL,
        "AttributeNames": ["All"],
        "MessageSystemAttributeNames": ["SenderId"],
        "MessageAttributeNames": ["a.*"],
    }
    assert root.tag == f"{NS}ReceiveMessageResponse"
    first, second = root.findall(f"{NS}ReceiveMessageResult/{NS}Message")
    assert first.findtext(f"{NS}Body") == "x<y>&\r\n?"
    assert first.findtext(f"{NS}Attribute/{NS}Name") == "SenderId"
    assert first.findtext(f"{NS}Attribute/{NS}Value") == "me"
    assert first.findtext(f"{NS}MessageAttribute/{NS}Value/{NS}BinaryValue") == "AP8="
    assert second.findtext(f"{NS}MessageId") == "m-2"
    assert root.findtext(f"{NS}ResponseMetadata/{NS}RequestId") == script.seen[0].request_id


def test_the_path_names_the_queue() -> None:
    script = Script()
    knock(make_app(script), form({"Action": "SendMessage", "MessageBody": "b"}, path="/000000000000/jobs"))
    assert script.seen[0].input["QueueUrl"] == URL


def test_get_is_taken_when_signed_in_headers() -> None:
    script = Script()
    heard = knock(
        make_app(script),
        sign("sqs", "GET", "/", urlencode({"Action": "ListQueues", "QueueNamePrefix": "a b"}).replace("+", "%20")),
    )
    assert heard.status == 200
    assert script.seen[0].input == {"QueueNamePrefix": "a b"}


def test_errors_are_xml_with_the_older_code_and_text() -> None:
    script = Script(answers={"SendMessage": QueueDoesNotExist("The specified queue does not exist.")})
    heard = knock(make_app(script), form({"Action": "SendMessage", "QueueUrl": URL, "MessageBody": "b"}))
    error = answered(heard).find(f"{NS}Error")
    assert error is not None
    assert heard.status == 400
    assert error.findtext(f"{NS}Type") == "Sender"
    assert error.findtext(f"{NS}Code") == "AWS.SimpleQueueService.NonExistentQueue"
    assert error.findtext(f"{NS}Message") == "The specified queue does not exist for this wsdl version."


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        (
            {"Action": "SendMessage", "QueueUrl": URL},
            "MissingParameter",
            "The request must contain the parameter MessageBody.",
        ),
        (
            {"Action": "SendMessageBatch", "QueueUrl": URL, "SendMessageBatchRequestEntry.1.Id": "a"},
            "MissingParameter",
            "The request must contain the parameter SendMessageBatchRequestEntry.1.MessageBody.",
        ),
        (
            {"Action": "SendMessage", "QueueUrl": URL, "MessageBody": "b", "DelaySeconds": "x"},
            "MalformedInput",
            "STRING_VALUE can not be converted to an Integer",
        ),
        ({"Action": "Nonsense"}, "InvalidAction", "The action Nonsense is not valid for this web service."),
        ({"Version": "2012-11-05"}, "MissingAction", "The request must contain the parameter Action."),
        (
            {"Action": "SendMessageBatch", "QueueUrl": URL, "SendMessageBatchRequestEntry.x.Id": "a"},
            "MalformedInput",
            "The members of a list are numbered from 1",
        ),
        (
            {"Action": "SendMessage", ".".join("a" * 40): "deep"},
            "MalformedInput",
            f"The parameter name {'.'.join('a' * 40)[:80]} is nested too deeply",
        ),
    ],
)
def test_bad_forms(fields: dict[str, str], code: str, message: str) -> None:
    heard = knock(make_app(Script()), form(fields))
    error = answered(heard).find(f"{NS}Error")
    assert error is not None
    assert (heard.status, error.findtext(f"{NS}Code"), error.findtext(f"{NS}Message")) == (400, code, message)


@pytest.mark.parametrize("body", [b"Action=%ff%fe", b"\xff", b"&".join(b"a%d=1" % n for n in range(20_001))])
def test_what_is_no_form_is_refused(body: bytes) -> None:
    heard = knock(make_app(Script()), sign("sqs", headers=FORM, body=body))
    assert heard.status == 400
    assert b"MalformedInput" in heard.body


def test_a_form_is_a_dict() -> None:
    expected: dict[str, Any] = {"a": "1 2", "b": ""}
    assert parse_form(b"a=1+2&b=") == expected
