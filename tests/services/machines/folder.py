"""Buckets as folders: what the objects room will be to Map Runs."""

from collections.abc import Sequence
from hashlib import md5
from pathlib import Path

from tasuki.services.switchboard import ObjectFacts
from tasuki.store.store import Tx
from tasuki.values.errors import DomainError


class NoSuchBucket(DomainError):
    code = "NoSuchBucket"


class NoSuchKey(DomainError):
    code = "NoSuchKey"


class FolderObjects:
    """Keeps each object as a file; notes the largest piece that was asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.largest = 0

    def make(self, bucket: str, **objects: str | bytes) -> None:
        """Make a bucket with objects; `__` in a name stands for a dot."""
        (self.root / bucket).mkdir(exist_ok=True)
        for name, body in objects.items():
            self.write(bucket, name.replace("__", "."), body)

    def write(self, bucket: str, key: str, body: str | bytes) -> None:
        path = self.root / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body.encode() if isinstance(body, str) else body)

    def text(self, bucket: str, key: str) -> str:
        return (self.root / bucket / key).read_text()

    def get(self, tx: Tx, bucket: str, key: str, start: int, length: int) -> bytes:  # noqa: ARG002
        path = self._bucket(bucket) / key
        if not path.is_file():
            raise NoSuchKey("The specified key does not exist.")
        with path.open("rb") as opened:
            opened.seek(start)
            body = opened.read(length)
        self.largest = max(self.largest, len(body))
        return body

    def list(self, tx: Tx, bucket: str, prefix: str, after: str, limit: int) -> Sequence[ObjectFacts]:  # noqa: ARG002
        root = self._bucket(bucket)
        paths = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
        chosen = [key for key in sorted(paths) if key.startswith(prefix) and key > after]
        return [
            ObjectFacts(
                key,
                paths[key].stat().st_size,
                f'"{md5(paths[key].read_bytes(), usedforsecurity=False).hexdigest()}"',
                1_700_000_000_123,
            )
            for key in chosen[:limit]
        ]

    def put(self, tx: Tx, bucket: str, key: str, body: bytes) -> None:  # noqa: ARG002
        self._bucket(bucket)
        self.write(bucket, key, body)

    def _bucket(self, bucket: str) -> Path:
        path = self.root / bucket
        if not path.is_dir():
            raise NoSuchBucket("The specified bucket does not exist")
        return path
