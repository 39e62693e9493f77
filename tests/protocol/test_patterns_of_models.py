"""AWS's own patterns, as we check input against them: none may be slow, whatever the input."""

import itertools
import re
import time

import pytest

from tasuki.values.service_models import QUICKER, Shape, service_model

SERVICES = ("sqs", "pipes", "stepfunctions", "ecs", "scheduler", "events")
LONGEST = 8_192
UNITS = ("a", "a ", " ", "-", "a-", "a.", "a/", ".", "0", "A1", ":", "a:", "*", "a_b", "$.a", "[0]", "%20", "https://a")


def patterns() -> dict[str, Shape]:
    """Answer one shape for each pattern of the services that the house offers."""
    found: dict[str, Shape] = {}
    for name in SERVICES:
        model = service_model(name)
        assert model is not None
        for shape_name, spec in model.spec["shapes"].items():
            if spec["type"] == "string" and "pattern" in spec:
                found.setdefault(spec["pattern"], model.shape(shape_name))
    return found


def test_no_pattern_is_slow() -> None:
    """Found by attack: a header of forty words with an umlaut, and nobody was served any more."""
    for pattern, shape in patterns().items():
        literal = re.match(r"\^?\(?([\w:\-/]*)", pattern)
        starts = ("", "arn:aws:", "arn:aws:events:us-east-1:000000000000:", "https://", literal[1] if literal else "")
        size = int(min(shape.maximum or LONGEST, LONGEST))
        for start, unit in itertools.product(starts, UNITS):
            text = (start + unit * size)[: size - 1] + "\x01"
            began = time.process_time()
            shape.matches(text)
            assert time.process_time() - began < 1, f"{shape.name}: {pattern}"


@pytest.mark.parametrize(("slow", "quick"), QUICKER)
def test_what_stands_for_a_slow_part_matches_the_same(slow: str, quick: str) -> None:
    assert any(slow in pattern for pattern in patterns()), "AWS's models have it no more: take it out"
    before, now = re.compile(slow), re.compile(quick)
    for size in range(7):
        for letters in itertools.product("\t :a\x01ü", repeat=size):
            text = "".join(letters)
            assert bool(before.fullmatch(text)) == bool(now.fullmatch(text)), text
