"""The query protocol's names of a service whose model has moved on to JSON.

SQS spoke the query protocol until 2023 and still does; botocore's model no longer carries the names that its lists
and maps have there. They are those of the API reference of 2012-11-05 (`SendMessageBatchRequestEntry.1.Id`,
`Attribute.1.Name`).
"""

from typing import Any

_ELEMENTS = {
    "AWSAccountIdList": "AWSAccountId",
    "ActionNameList": "ActionName",
    "AttributeNameList": "AttributeName",
    "BatchResultErrorEntryList": "BatchResultErrorEntry",
    "BinaryList": "BinaryListValue",
    "ChangeMessageVisibilityBatchRequestEntryList": "ChangeMessageVisibilityBatchRequestEntry",
    "ChangeMessageVisibilityBatchResultEntryList": "ChangeMessageVisibilityBatchResultEntry",
    "DeleteMessageBatchRequestEntryList": "DeleteMessageBatchRequestEntry",
    "DeleteMessageBatchResultEntryList": "DeleteMessageBatchResultEntry",
    "ListMessageMoveTasksResultEntryList": "ListMessageMoveTasksResultEntry",
    "MessageAttributeNameList": "MessageAttributeName",
    "MessageList": "Message",
    "MessageSystemAttributeList": "MessageSystemAttributeName",
    "QueueUrlList": "QueueUrl",
    "SendMessageBatchRequestEntryList": "SendMessageBatchRequestEntry",
    "SendMessageBatchResultEntryList": "SendMessageBatchResultEntry",
    "StringList": "StringListValue",
    "TagKeyList": "TagKey",
}
"""List shape to the name of its elements."""

_ENTRIES = {
    "MessageBodyAttributeMap": ("MessageAttribute", "Name", "Value"),
    "MessageBodySystemAttributeMap": ("MessageSystemAttribute", "Name", "Value"),
    "MessageSystemAttributeMap": ("Attribute", "Name", "Value"),
    "QueueAttributeMap": ("Attribute", "Name", "Value"),
    "TagMap": ("Tag", "Key", "Value"),
}
"""Map shape to the names of an entry, its key and its value."""


def lay_over(name: str, spec: dict[str, Any]) -> bool:
    """Turn `spec` into the service's query form; False when it has none that we know."""
    if name != "sqs":
        return False
    spec["metadata"]["protocol"] = "query"
    spec["metadata"]["xmlNamespace"] = "http://queue.amazonaws.com/doc/2012-11-05/"
    shapes = spec["shapes"]
    for shape, element in _ELEMENTS.items():
        if shape in shapes:
            shapes[shape]["flattened"] = True
            shapes[shape]["member"]["locationName"] = element
    for shape, (_, key, value) in _ENTRIES.items():
        if shape in shapes:
            shapes[shape]["flattened"] = True
            shapes[shape]["key"]["locationName"] = key
            shapes[shape]["value"]["locationName"] = value
    for shape in shapes.values():
        for member in shape.get("members", {}).values():
            if member["shape"] in _ENTRIES:
                member["locationName"] = _ENTRIES[member["shape"]][0]
    for action, operation in spec["operations"].items():
        if "output" in operation:
            operation["output"]["resultWrapper"] = f"{action}Result"
    return True
