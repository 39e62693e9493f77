"""Each of these is refused, before anything is done."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tasuki.values.errors import DomainError, OutcomeUnknown, StoreError, StoreFull
from tests.protocol.knocking import NOON, SECRET, TASK_KEY, Knock, Script, knock, make_app, sign

LIST = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def listing(body: bytes = b"{}", **signing: object) -> Knock:
    return sign("sqs", headers=LIST, body=body, **signing)  # type: ignore[arg-type]


def unsigned(request: Knock) -> Knock:
    request.headers = [pair for pair in request.headers if pair[0] != "authorization"]
    return request


def query_signed() -> Knock:
    """What any web page can make a browser send, with the public key: a form whose URL is signed."""
    request = sign("sqs", headers=FORM, body=b"Action=PurgeQueue")
    authorization = dict(request.headers)["authorization"]
    request.query = f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature={authorization.rpartition('=')[2]}"
    return unsigned(request)


ATTACKS: dict[str, tuple[Callable[[], Knock], int, str]] = {
    "unsigned": (lambda: unsigned(listing()), 403, "MissingAuthenticationToken"),
    "signed in the query string": (query_signed, 403, "signatures in the query string are not accepted"),
    "unknown key": (lambda: listing(key="AKIDNOBODY"), 403, "The security token included in the request is invalid."),
    "wrong secret": (lambda: listing(secret="guess"), 403, "does not match the signature you provided"),
    "replay": (lambda: listing(when=NOON - timedelta(minutes=16)), 403, "Signature expired"),
    "other scope": (
        lambda: sign("s3", headers=LIST, body=b"{}"),
        403,
        "Credential should be scoped to correct service: 'sqs'.",
    ),
    "unknown scope": (lambda: sign("../../etc", "GET", "/x"), 400, "Credential must have exactly 5"),
    "scope of no service": (lambda: sign("..", "GET", "/x"), 400, "There is no service that signs as"),
    "two signatures": (
        lambda: listing().add("authorization", "AWS4-HMAC-SHA256 x"),
        400,
        "authorization is there twice",
    ),
    "two hosts": (lambda: listing().add("host", "127.0.0.1:4566"), 400, "host is there twice"),
    "foreign host": (lambda: listing(host="evil.example:4566"), 403, "The Host header is none of this node's names"),
    "rebound host": (lambda: listing(host="127.0.0.1.evil.example:4566"), 403, "Host header"),
    "host without port": (lambda: listing(host="127.0.0.1"), 403, "Host header"),
    "other port": (lambda: listing(host="127.0.0.1:80"), 403, "Host header"),
    "sync- twice": (lambda: listing(host="sync-sync-localhost:4566"), 403, "Host header"),
    "foreign origin": (lambda: listing().add("origin", "https://evil.example"), 403, "another origin"),
    "null origin": (lambda: listing().add("origin", "null"), 403, "another origin"),
    "cross-site": (lambda: listing().add("sec-fetch-site", "cross-site"), 403, "another site"),
    "same-site": (lambda: listing().add("sec-fetch-site", "same-site"), 403, "another site"),
    "tampered body": (lambda: _with_body(listing(), b'{"QueueNamePrefix":"x"}'), 403, "does not match"),
    "bad JSON": (lambda: listing(b'{"QueueNamePrefix":'), 400, "not a JSON document"),
    "not UTF-8": (lambda: listing(b'{"QueueNamePrefix":"\xff"}'), 400, "not a JSON document"),
    "NaN": (lambda: listing(b'{"MaxResults":NaN}'), 400, "not a JSON document"),
    "deep JSON": (lambda: listing(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), 400, "not a JSON document"),
    "huge number": (lambda: listing(b'{"MaxResults":1' + b"0" * 400 + b"}"), 400, "can not be converted"),
    "huge body": (lambda: listing(b" " * (4 << 20)), 413, "Request bodies are limited"),
    "length that is none": (lambda: listing().put("content-length", "-1"), 413, "Request bodies are limited"),
}


def _with_body(request: Knock, body: bytes) -> Knock:
    request.body = body
    return request


@pytest.mark.parametrize("name", ATTACKS)
def test_is_refused(name: str) -> None:
    make, status, text = ATTACKS[name]
    script = Script()
    heard = knock(make_app(script), make())
    assert (heard.status, text in heard.body.decode()) == (status, True), heard
    assert not script.seen
    assert len(heard.headers["x-amzn-requestid"]) == 36
    assert not [name for name in heard.headers if name.startswith("access-control")]


def test_the_same_request_unharmed_is_served() -> None:
    script = Script()
    assert knock(make_app(script), listing()).status == 200
    assert script.seen


def test_a_key_that_was_good_once_opens_nothing_later() -> None:
    script = Script()
    app = make_app(script)
    assert knock(app, listing()).status == 200
    forged = listing()
    good = dict(forged.headers)["authorization"]
    for bad in (
        good[:-1] + ("0" if good[-1] != "0" else "1"),
        good[:-64] + "x" * 64,
        good[:-64] + "\xff" * 64,
        good[:-1],
    ):
        assert knock(app, forged.put("authorization", bad)).status in {400, 403}
    assert len(script.seen) == 1


@pytest.mark.parametrize("origin", ["http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566"])
def test_our_own_pages_are_served(origin: str) -> None:
    request = listing(host="localhost:4566").add("origin", origin).add("sec-fetch-site", "same-origin")
    assert knock(make_app(Script()), request).status == 200


def test_a_tasks_key_may_do_its_few_actions_and_no_other() -> None:
    script = Script()
    app = make_app(script)
    sending = sign(
        "sqs",
        headers={**LIST, "X-Amz-Target": "AmazonSQS.SendMessage"},
        body=b'{"QueueUrl":"u","MessageBody":"b"}',
        key=TASK_KEY,
        secret="task-secret",
    )
    assert knock(app, sending).status == 200
    heard = knock(app, listing(key=TASK_KEY, secret="task-secret"))
    assert heard.status == 403
    assert heard.headers["x-amzn-query-error"] == "AccessDenied;Sender"
    assert b"User: arn:aws:iam::000000000000:user/TSUKTASK is not authorized to perform: sqs:ListQueues" in heard.body
    assert len(script.seen) == 1


class Ours(DomainError):
    code = "QueueDoesNotExist"
    query_code = "AWS.SimpleQueueService.NonExistentQueue"


def test_a_domain_error_keeps_its_words() -> None:
    heard = knock(make_app(Script(answers={"ListQueues": Ours("gone")})), listing())
    assert heard.status == 400
    assert heard.headers["x-amzn-query-error"] == "AWS.SimpleQueueService.NonExistentQueue;Sender"
    assert heard.body == b'{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"gone"}'


@pytest.mark.parametrize(
    ("bad", "status", "code", "text"),
    [
        (StoreFull("x"), 503, "ServiceUnavailable", "The disk is full. Nothing was stored"),
        (StoreError("x"), 503, "ServiceUnavailable", "Nothing was stored"),
        (OutcomeUnknown(), 500, "InternalFailure", "the change may have been kept, or not"),
        (ZeroDivisionError("the secret is 42"), 500, "InternalFailure", "The request failed on our side"),
        (AssertionError("impossible"), 500, "InternalFailure", "The request failed on our side"),
    ],
)
def test_our_own_faults(bad: Exception, status: int, code: str, text: str, caplog: pytest.LogCaptureFixture) -> None:
    heard = knock(make_app(Script(answers={"ListQueues": bad})), listing())
    assert heard.status == status
    assert heard.headers["x-amzn-query-error"] == f"{code};Receiver"
    assert text in heard.body.decode()
    assert b"42" not in heard.body
    assert heard.headers["x-amzn-requestid"] in caplog.text


def test_the_log_holds_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    request = listing(b'{"QueueNamePrefix":"private"}')
    knock(make_app(Script()), request)
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("tasuki"))
    assert "action=sqs:ListQueues status=200" in ours
    signature = dict(request.headers)["authorization"].rpartition("=")[2]
    assert not [secret for secret in (SECRET, signature, "private") if secret in ours]
