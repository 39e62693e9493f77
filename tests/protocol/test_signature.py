"""Our signatures against botocore's, and what is refused."""

from datetime import timedelta
from urllib.parse import quote

import pytest
from botocore.utils import percent_encode_sequence
from hypothesis import given, settings
from hypothesis import strategies as st

from tasuki.protocol.call import Call
from tasuki.protocol.faults import IncompleteSignature, InvalidSignature
from tasuki.protocol.gate import merge
from tasuki.protocol.signature import Verifier, canonical_path, canonical_query, parse_authorization
from tasuki.values.instant import from_datetime
from tests.protocol.knocking import KEY, NOON, SECRET, Knock, sign

NOW = from_datetime(NOON)
VISIBLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)
PIECE = st.text(max_size=8).map(lambda text: quote(text.encode("utf-8", "replace"), safe="~:@$"))
PATHS = st.lists(PIECE | st.sampled_from([".", "..", ""]), max_size=5).map(lambda parts: "/" + "/".join(parts))
QUERIES = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), max_size=5), st.text(st.characters(codec="utf-8"), max_size=5)),
    max_size=5,
)
HEADERS = st.dictionaries(
    st.sampled_from(["X-Amz-Target", "Content-Type", "X-Amz-Meta", "amz-sdk-request"]),
    st.lists(VISIBLE.filter(bool), min_size=1, max_size=3).map("  ".join),
)


def check(knock: Knock, secret: str = SECRET, now: int = NOW) -> None:
    headers = merge([(name.encode(), value.encode()) for name, value in knock.headers])
    credential = parse_authorization(headers[b"authorization"])
    verifier = Verifier()
    stamp = verifier.check_time(credential, headers, now)
    call = Call(knock.method, knock.path.encode(), knock.query.encode(), headers, knock.body, credential.service, "")
    for _ in range(2):  # with the key derived, and with the key kept
        verifier.check(credential, secret, stamp, call)


@settings(max_examples=60, deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    path=PATHS,
    query=QUERIES,
    headers=HEADERS,
    body=st.binary(max_size=64),
    secret=VISIBLE.filter(bool),
    region=st.sampled_from(["us-east-1", "eu-central-1"]),
)
def test_botocores_signatures_are_ours(
    *,
    method: str,
    path: str,
    query: list[tuple[str, str]],
    headers: dict[str, str],
    body: bytes,
    secret: str,
    region: str,
) -> None:
    # A path of two slashes would be read as a host by whoever parses the URL.
    path = "/" + path.lstrip("/")
    request = sign(
        "sqs", method, path, percent_encode_sequence(dict(query)), headers, body, secret=secret, region=region
    )
    check(request, secret)


def test_query_parameters_are_sorted_and_encoded_once() -> None:
    assert canonical_query(b"b=2&a=2&a=1&c") == b"a=1&a=2&b=2&c="
    assert canonical_query(b"a=x/y&%7e=%2f") == b"a=x%2Fy&~=%2F"


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        (b"/a//b/./c/../d/", b"/a/b/d/"),
        (b"/v1/pipes/a%20b", b"/v1/pipes/a%2520b"),
        (b"/..", b"/"),
        (b"/" + b"a" * 5000 + b"!", b"/" + b"a" * 5000 + b"%21"),
    ],
)
def test_paths_are_made_canonical(path: bytes, canonical: bytes) -> None:
    assert canonical_path(path) == canonical


def test_a_date_header_will_do() -> None:
    check(sign("sqs", headers={"Date": "replaced by the signer"}))


def test_the_parts_may_come_in_any_order() -> None:
    request = sign("sqs")
    text = dict(request.headers)["authorization"].removeprefix("AWS4-HMAC-SHA256 ")
    request.put("authorization", "AWS4-HMAC-SHA256 " + ",".join(reversed(text.split(", "))))
    check(request)


def _tampered(request: Knock, what: str) -> Knock:
    if what == "body":
        request.body += b" "
    elif what == "method":
        request.method = "PUT"
    elif what == "path":
        request.path = "/other"
    elif what == "query":
        request.query = "a=2"
    elif what == "header":
        request.put("content-type", "text/plain")
    elif what == "claimed hash":
        request.put("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    elif what == "header gone":
        request.headers = [pair for pair in request.headers if pair[0] != "content-type"]
    elif what == "region":
        request.put("authorization", dict(request.headers)["authorization"].replace("us-east-1", "us-west-1"))
    return request


TAMPERINGS = ["body", "method", "path", "query", "header", "claimed hash", "header gone", "region"]


@pytest.mark.parametrize("what", TAMPERINGS)
def test_tampering_is_noticed(what: str) -> None:
    headers = {"Content-Type": "application/json", "X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}
    if what != "claimed hash":
        del headers["X-Amz-Content-SHA256"]
        check(sign("sqs", query="a=1", headers=headers, body=b"{}"))
    with pytest.raises(InvalidSignature, match="does not match the signature you provided"):
        check(_tampered(sign("sqs", query="a=1", headers=headers, body=b"{}"), what))


def test_a_body_that_claims_another_hash_is_refused() -> None:
    with pytest.raises(InvalidSignature):
        check(sign("sqs", headers={"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}, body=b"{}"))


def test_another_secret_is_refused() -> None:
    with pytest.raises(InvalidSignature, match="does not match"):
        check(sign("sqs", secret="other"))


@pytest.mark.parametrize("minutes", [-15, 0, 15])
def test_a_quarter_of_an_hour_is_forgiven(minutes: int) -> None:
    check(sign("sqs", when=NOON + timedelta(minutes=minutes)))


def test_a_replay_after_a_quarter_of_an_hour_is_refused() -> None:
    with pytest.raises(InvalidSignature) as refused:
        check(sign("sqs", when=NOON - timedelta(minutes=15, seconds=1)))
    assert (
        str(refused.value)
        == "Signature expired: 20261130T114459Z is now earlier than 20261130T114500Z (20261130T120000Z - 15 min.)"
    )
    with pytest.raises(InvalidSignature) as refused:
        check(sign("sqs", when=NOON + timedelta(minutes=15, seconds=1)))
    assert (
        str(refused.value)
        == "Signature not yet current: 20261130T121501Z is still later than 20261130T121500Z (20261130T120000Z + 15 min.)"
    )


def test_the_scope_must_be_of_the_day() -> None:
    request = sign("sqs")
    request.put("authorization", dict(request.headers)["authorization"].replace("/20261130/", "/20261129/"))
    with pytest.raises(InvalidSignature, match="Date in Credential scope does not match"):
        check(request)


def test_a_target_must_be_signed() -> None:
    with pytest.raises(InvalidSignature, match="X-Amz-Target"):
        check(sign("sqs").add("x-amz-target", "AmazonSQS.DeleteQueue"))


def test_the_host_must_be_signed() -> None:
    with pytest.raises(InvalidSignature, match="'Host' or ':authority'"):
        parse_authorization(dict(sign("sqs").headers)["authorization"].replace("host;", "").encode())


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("Basic dGVzdDp0ZXN0", "Unsupported AWS 'algorithm'"),
        ("AWS4-HMAC-SHA256", "requires 'Credential' parameter. Authorization header requires 'Signature' parameter."),
        ("AWS4-HMAC-SHA256 Credential=a/b, Signature=0", "requires 'SignedHeaders' parameter"),
        ("AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=0", "exactly 5 slash-delimited elements"),
        (
            "AWS4-HMAC-SHA256 Credential=\xff/20261130/r/s/aws4_request, SignedHeaders=host, Signature=" + "0" * 64,
            "not ASCII",
        ),
    ],
)
def test_headers_that_are_incomplete(header: str, message: str) -> None:
    with pytest.raises(IncompleteSignature, match=message.replace("'", ".")):
        parse_authorization(header.encode("latin-1"))


@pytest.mark.parametrize("stamp", ["", "yesterday", "20261330T120000Z", "2026-11-30T12:00:00Z"])
def test_dates_that_are_none(stamp: str) -> None:
    with pytest.raises(IncompleteSignature, match=r"Date|Authorization header requires existence"):
        check(sign("sqs").put("x-amz-date", stamp))


def test_kept_keys_are_bounded() -> None:
    verifier = Verifier()
    credential = parse_authorization(dict(sign("sqs").headers)["authorization"].encode())
    for n in range(3_000):
        verifier._key(credential, f"secret {n}")
    assert len(verifier._keys) <= 1_024
    assert credential.access_key == KEY
