"""Attributes that an encoder has escaped are found, and those that are written out are not."""

import pytest

from tasuki.rules.escapes import escaped_attributes
from tasuki.values.documents import dumps

TIME = "<aws.scheduler.scheduled-time>"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r'{"t":"\u003caws.scheduler.scheduled-time\u003e"}', [TIME]),
        (r'{"t":"\u003Caws.scheduler.scheduled-time\u003E"}', [TIME]),
        (r'{"t":"\u003caws.scheduler.scheduled-time>"}', [TIME]),
        (
            r'{"a":"\u003caws.pipes.pipe-arn\u003e","b":"\u003caws.events.event.json\u003e"}',
            ["<aws.pipes.pipe-arn>", "<aws.events.event.json>"],
        ),
        (
            r'["\u003caws.scheduler.execution-id\u003e","\u003caws.scheduler.execution-id\u003e"]',
            ["<aws.scheduler.execution-id>"],
        ),
        (dumps({"t": TIME}), []),
        (r'{"t":"\u003caws.s3.key\u003e \u003cb\u003e"}', []),
        ("", []),
    ],
)
def test_found_once_each_as_it_should_have_been_written(text: str, found: list[str]) -> None:
    assert escaped_attributes(text) == found
