"""The operators of event patterns: one alternative in a leaf's array becomes one test of a value. Pure.

The complaints are AWS's own (recorded answers of TestEventPattern and event-ruler's compiler), odd ones included.
"""

import ipaddress
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from tasuki.rules.pattern_text import Tokens
from tasuki.rules.pattern_wildcards import wildcard_expression

Test: TypeAlias = Callable[[Any], bool]
Alternative: TypeAlias = Test | None
"""A test of a present value; None is `{"exists": false}`, fulfilled by absence."""

_MIXED = "Inside anything but list, either all values are number or string, mixed type is not supported"
_ANYTHING_BUT_LIST = "Inside anything but list, start|null|boolean is not supported."
_ANYTHING_BUT_CASE = "Inside anything-but/equals-ignore-case list, number|start|null|boolean is not supported."
_ANYTHING_BUT_VALUE = "Value of anything-but must be an array or single string/number value."


def read_alternatives(tokens: Tokens) -> list[Alternative]:
    """Read a leaf's array after its bracket. Raises `PatternError`."""
    alternatives: list[Alternative] = []
    while (token := tokens.next()).kind != "]":
        if token.kind == "{":
            alternatives.append(_read_operator(tokens))
        elif token.kind == "string":
            alternatives.append(_equals(token.value))
        elif token.kind == "number":
            alternatives.append(_number_equals(_literal(token.value)))
        elif token.kind == "word":
            alternatives.append(_is(token.value))
        else:
            tokens.fail("Match value must be String, number, true, false, or null")
    if not alternatives:
        tokens.fail("Empty arrays are not allowed")
    return alternatives


def _read_operator(tokens: Tokens) -> Alternative:
    key = tokens.key()
    if key is None:
        tokens.fail("Empty match expression")
    tokens.next()
    reader = _READERS.get(key)
    if reader is None:
        tokens.fail(f"Unrecognized match type {key}")
    test = reader(tokens)
    _close(tokens)
    return test


def _close(tokens: Tokens) -> None:
    if tokens.next().kind != "}":
        tokens.fail("Only one key allowed in match expression")


# -- plain values -------------------------------------------------------------------------------------------


def _equals(text: str) -> Test:
    return lambda value: value == text and isinstance(value, str)


def _is(word: bool | None) -> Test:
    return lambda value: value is word


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_equals(number: float) -> Test:
    return lambda value: value == number and _is_number(value)


def _literal(text: str) -> float:
    """Read a number's text exactly if it is whole, else as a double."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _number(tokens: Tokens, complaint: str) -> float:
    """Take a number that can be compared: one that a double can hold."""
    if tokens.now.kind != "number":
        tokens.fail(complaint)
    number = _literal(tokens.now.value)
    try:
        held = float(number)
    except OverflowError:
        held = float("inf")
    if held in {float("inf"), float("-inf")} or (
        held == 0 and re.search("[1-9]", tokens.now.value.lower().split("e")[0])
    ):
        tokens.fail(f"Cannot compare number : {tokens.now.value}")
    return number


def _string(tokens: Tokens, name: str) -> str:
    if tokens.now.kind != "string":
        tokens.fail(f"{name} match pattern must be a string")
    text: str = tokens.now.value
    return text


# -- operators ----------------------------------------------------------------------------------------------


def _exactly(tokens: Tokens) -> Test:
    return _equals(_string(tokens, "exact"))


def _affix(tokens: Tokens, name: str) -> Test:
    """`prefix` and `suffix`: text, or `{"equals-ignore-case": text}`."""
    starts = name == "prefix"
    if tokens.now.kind == "{":
        if tokens.key() != "equals-ignore-case":
            tokens.fail(f"Unsupported {name} pattern")
        tokens.next()
        folded = _string(tokens, "equals-ignore-case").lower()
        _close(tokens)
        if starts:
            return lambda value: isinstance(value, str) and value.lower().startswith(folded)
        return lambda value: isinstance(value, str) and value.lower().endswith(folded)
    text = _string(tokens, name)
    if starts:
        return lambda value: isinstance(value, str) and value.startswith(text)
    return lambda value: isinstance(value, str) and value.endswith(text)


def _prefix(tokens: Tokens) -> Test:
    return _affix(tokens, "prefix")


def _suffix(tokens: Tokens) -> Test:
    return _affix(tokens, "suffix")


def _ignore_case(tokens: Tokens) -> Test:
    folded = _string(tokens, "equals-ignore-case").lower()
    return lambda value: isinstance(value, str) and value.lower() == folded


def _wildcard(tokens: Tokens) -> Test:
    fits = wildcard_expression(_string(tokens, "wildcard"), tokens).fullmatch
    return lambda value: isinstance(value, str) and fits(value) is not None


def _exists(tokens: Tokens) -> Alternative:
    if tokens.now.value not in {True, False} or tokens.now.kind != "word":
        tokens.fail("exists match pattern must be either true or false.")
    return _anything if tokens.now.value else None


def _anything(_value: Any) -> bool:
    return True


def _cidr(tokens: Tokens) -> Test:
    text = _string(tokens, "prefix")  # AWS's own slip: the complaint speaks of prefix
    address, slash, bits = text.partition("/")
    if not slash or "/" in bits:
        tokens.fail("Malformed CIDR, one '/' required")
    if not re.fullmatch(r"[0-9]{1,4}", bits):
        tokens.fail("Malformed CIDR, mask bits must be an integer")
    try:
        start = ipaddress.ip_address(address)
    except ValueError:
        tokens.fail(f"Nonstandard IP address: {address}")
    if int(bits) > start.max_prefixlen:
        tokens.fail(f"IPv{start.version} mask bits must be < {start.max_prefixlen + 1}")
    network = ipaddress.ip_network(f"{address}/{bits}", strict=False)

    def inside(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        try:
            return ipaddress.ip_address(value) in network
        except ValueError:
            return False

    return inside


# -- numeric ------------------------------------------------------------------------------------------------


def _numeric(tokens: Tokens) -> Test:
    if tokens.now.kind != "[":
        tokens.fail("Value of numeric must be an array.")
    if tokens.next().kind != "string":
        tokens.fail(f"Invalid member in numeric match: {tokens.now.value}")
    operator: str = tokens.now.value
    if operator not in {"=", "<", "<=", ">", ">="}:
        tokens.next()
        tokens.fail(f"Unrecognized numeric range operator: {operator}")
    tokens.next()
    first = _number(tokens, f"Value of {'equals' if operator == '=' else operator} must be numeric")
    if tokens.next().kind == "]":
        return _number_equals(first) if operator == "=" else _compare(operator, first)
    if operator in {"=", "<", "<="}:
        tokens.fail("Too many elements in numeric expression")
    return _numeric_range(tokens, _compare(operator, first), first)


def _numeric_range(tokens: Tokens, above: Test, bottom: float) -> Test:
    """Read the upper bound of a range whose lower one is `above`."""
    if tokens.now.kind != "string":
        tokens.fail(f"Bad value in numeric range: {tokens.now.value}")
    operator: str = tokens.now.value
    tokens.next()
    top = _number(tokens, f"Value of {operator} must be numeric")
    if tokens.next().kind != "]":
        tokens.fail("Too many terms in numeric range expression")
    if operator not in {"<", "<="}:
        tokens.fail(f"Bad numeric range operator: {operator}")
    if top <= bottom:
        tokens.fail("Bottom must be less than top")
    below = _compare(operator, top)
    return lambda value: above(value) and below(value)


def _compare(operator: str, number: float) -> Test:
    match operator:
        case "<":
            return lambda value: _is_number(value) and value < number
        case "<=":
            return lambda value: _is_number(value) and value <= number
        case ">":
            return lambda value: _is_number(value) and value > number
        case _:
            return lambda value: _is_number(value) and value >= number


# -- anything-but -------------------------------------------------------------------------------------------


def _anything_but(tokens: Tokens) -> Test:
    token = tokens.now
    if token.kind == "{":
        return _anything_but_operator(tokens)
    if token.kind == "[":
        kinds, values = set(), []
        while (item := tokens.next()).kind != "]":
            if item.kind not in {"string", "number"}:
                tokens.fail(_ANYTHING_BUT_LIST)
            kinds.add(item.kind)
            values.append(item.value if item.kind == "string" else _literal(item.value))
        if not values:
            tokens.fail("Empty arrays are not allowed")
        if len(kinds) > 1:
            tokens.fail(_MIXED)
    elif token.kind in {"string", "number"}:
        kinds, values = {token.kind}, [token.value if token.kind == "string" else _literal(token.value)]
    else:
        tokens.fail(_ANYTHING_BUT_VALUE)
    forbidden = frozenset(values)
    if kinds == {"string"}:
        return lambda value: not isinstance(value, str) or value not in forbidden
    return lambda value: not _is_number(value) or value not in forbidden


def _anything_but_operator(tokens: Tokens) -> Test:
    """`{"anything-but": {OPERATOR: text or list of texts}}`."""
    name = tokens.key()
    tokens.next()
    match name:
        case "prefix" | "suffix":
            texts = _texts(tokens, "prefix/suffix match pattern must be a string", "Null prefix/suffix not allowed")
            several = tuple(texts)
            if name == "prefix":
                refused: Test = lambda value: value.startswith(several)  # noqa: E731
            else:
                refused = lambda value: value.endswith(several)  # noqa: E731
        case "equals-ignore-case":
            folded = frozenset(text.lower() for text in _texts(tokens, _ANYTHING_BUT_CASE))
            refused = lambda value: value.lower() in folded  # noqa: E731
        case "wildcard":
            texts = _texts(tokens, "wildcard match pattern must be a string")
            fits = [wildcard_expression(text, tokens).fullmatch for text in texts]
            refused = lambda value: any(fit(value) for fit in fits)  # noqa: E731
        case _:
            tokens.fail(f"Unsupported anything-but pattern: {name}")
    _close(tokens)
    return lambda value: not isinstance(value, str) or not refused(value)


def _texts(tokens: Tokens, complaint: str, empty_complaint: str | None = None) -> list[str]:
    """Take one text or a list of texts."""
    if tokens.now.kind == "{":
        tokens.fail(_ANYTHING_BUT_VALUE)
    items = []
    if tokens.now.kind == "[":
        while tokens.next().kind != "]":
            items.append(tokens.now)
            _check_text(tokens, complaint, empty_complaint)
        if not items:
            tokens.fail("Empty arrays are not allowed")
    else:
        items.append(tokens.now)
        _check_text(tokens, complaint, empty_complaint)
    return [item.value for item in items]


def _check_text(tokens: Tokens, complaint: str, empty_complaint: str | None) -> None:
    if tokens.now.kind != "string":
        tokens.fail(complaint)
    if empty_complaint is not None and not tokens.now.value:
        tokens.fail(empty_complaint)


_READERS: dict[str, Callable[[Tokens], Alternative]] = {
    "exactly": _exactly,
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignore_case,
    "wildcard": _wildcard,
    "exists": _exists,
    "cidr": _cidr,
    "numeric": _numeric,
    "anything-but": _anything_but,
}
