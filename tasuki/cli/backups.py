"""`backup` and `restore`: the whole house as one file."""

from pathlib import Path
from typing import Any

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint, start_complaint
from tasuki.cli.reach import DEFAULT_DATA
from tasuki.values.errors import StoreBusy, StoreError, StoreTaken
from tasuki.values.instant import to_datetime


def back_up(file: Path, data: Path, store: str | None, *, with_credentials: bool, force: bool, as_json: bool) -> None:
    """Write a backup, and say what is in it. Raises `Complaint`."""
    from tasuki.runtime import backup

    try:
        facts = backup.back_up(file, data, store, with_credentials=with_credentials, force=force)
    except Exception as error:
        raise _complaint(error, data) from error
    size = file.stat().st_size
    if as_json:
        screen.show_json({"file": str(file), "bytes": size, **_shown(facts._asdict()), "credentials": with_credentials})
        return
    screen.line(
        f"{file}: {_size(size)}, schema {facts.schema}, checked. Restore it with: tasuki restore {file} --data DIR"
    )


def restore(file: Path, data: Path | None, store: str | None, *, force: bool, tasks_ended: bool, as_json: bool) -> None:
    """Restore a backup, and say what was restored. Raises `Complaint`."""
    from tasuki.runtime import backup

    named, data = data is not None, data or DEFAULT_DATA
    try:
        facts, key = backup.restore(file, data, store, force=force, tasks_ended=tasks_ended, named=named)
    except Exception as error:
        raise _complaint(error, data) from error
    if as_json:
        screen.show_json({"file": str(file), **_shown(facts._asdict()), "credentials": bool(key)})
        return
    made = screen.text_of(to_datetime(facts.made_at))
    screen.line(f"Restored what {facts.origin} held at {made}." + (f" Of the key: {key}." if key else ""))


def _shown(facts: dict[str, Any]) -> dict[str, Any]:
    return {**facts, "made_at": to_datetime(facts["made_at"]).isoformat()}


def _size(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 1 << 20 else f"{size // 1024 or 1} KiB"


def _complaint(error: Exception, data: Path) -> Exception:
    if isinstance(error, StoreTaken):
        return Complaint(str(error), Code.NO)
    if isinstance(error, StoreBusy):
        return Complaint(str(error), Code.BUSY)
    if isinstance(error, StoreError):
        return Complaint(str(error), Code.DATA)
    if isinstance(error, OSError) and error.filename is not None:
        return Complaint(f"{error.filename}: {error.strerror}", Code.DATA)
    return start_complaint(error, "", 0, str(data)) or error
