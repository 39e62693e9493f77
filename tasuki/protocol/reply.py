"""An HTTP answer, ready to be sent."""

from typing import NamedTuple


class Reply(NamedTuple):
    """Status, content type, body, request id, and further headers."""

    status: int
    content_type: bytes
    body: bytes
    request_id: str
    extra: tuple[tuple[bytes, bytes], ...] = ()

    def headers(self, *, close: bool = False) -> list[tuple[bytes, bytes]]:
        """All headers; with `close`, the connection ends after this answer."""
        headers = [
            (b"x-amzn-requestid", self.request_id.encode()),
            (b"content-type", self.content_type),
            (b"content-length", b"%d" % len(self.body)),
            *self.extra,
        ]
        if close:
            headers.append((b"connection", b"close"))
        return headers
