"""What goes wrong on the command line: one sentence, what to do next, and an exit code that scripts can tell apart.

====  ===============================================================================
code  means
====  ===============================================================================
0     done
1     it was tried and the answer is no: AWS's error, a failed execution, a lost job
2     usage or configuration
3     the port is in use
4     the data directory cannot be used: not writable, full, or written by a newer Tasuki; or the database cannot
5     another node holds the data directory; or nodes of an older version work on the database
6     no node answers
70    the node ended by a fault of its own; its log says why
130   interrupted from the keyboard
====  ===============================================================================
"""

import errno
import sys
from enum import IntEnum

from tasuki.values.errors import ConfigError, StoreBusy, StoreError, StoreNewer


class Code(IntEnum):
    """Exit codes, as in the table above."""

    DONE = 0
    NO = 1
    USAGE = 2
    PORT = 3
    DATA = 4
    BUSY = 5
    UNREACHABLE = 6
    FAULT = 70
    INTERRUPTED = 130


class Complaint(Exception):
    """Something the user should know: `text` says what is wrong, `hint` what to do next."""

    def __init__(self, text: str, code: Code = Code.NO, *, hint: str = "", name: str = "") -> None:
        super().__init__(text)
        self.text, self.code, self.hint, self.name = text, code, hint, name or code.name

    @property
    def document(self) -> dict[str, str | int]:
        """The same for programs: `name` is AWS's error code, or the name of our exit code."""
        hint = {"hint": self.hint} if self.hint else {}
        return {"name": self.name, "message": self.text.removeprefix(f"{self.name}: "), **hint, "exit": int(self.code)}


def complaint_of(error: Exception) -> Complaint | None:
    """Put an error of AWS's API or of the network into words; None for what nobody foresaw."""
    if isinstance(error, Complaint):
        return error
    if isinstance(error, ConfigError):
        return Complaint(str(error), Code.USAGE)
    if "botocore" not in sys.modules:
        return None
    from botocore import exceptions as aws

    if isinstance(error, aws.ClientError):
        reply = error.response["Error"]
        name = str(reply.get("Code", "Error"))
        return Complaint(f"{name}: {reply.get('Message', error)}", name=name)
    if isinstance(error, aws.EndpointConnectionError | aws.ConnectTimeoutError | aws.ConnectionClosedError):
        return Complaint("no node answers there any more", Code.UNREACHABLE, hint=f"{error}; start it again: tasuki up")
    if isinstance(error, aws.BotoCoreError):
        return Complaint(str(error), Code.USAGE)
    return None


def start_complaint(error: Exception, host: str, port: int, folder: str, *, shares: bool = False) -> Complaint | None:
    """Put what kept a node from starting into words; None for what nobody foresaw. `shares`: its store is a database."""
    if shares and isinstance(error, StoreError):
        return Complaint(str(error), Code.BUSY if isinstance(error, StoreBusy) else Code.DATA)
    if isinstance(error, StoreBusy):
        return Complaint(f"another node holds {folder}", Code.BUSY, hint="stop it, or give this one its own --data DIR")
    if isinstance(error, StoreNewer):
        return Complaint(str(error), Code.DATA)
    if isinstance(error, StoreError):
        return Complaint(f"{folder}: {error}", Code.DATA)
    if isinstance(error, OSError):
        if error.errno == errno.EADDRINUSE:
            return Complaint(f"port {port} of {host} is in use", Code.PORT, hint="choose another with --port N")
        if error.errno in {errno.EADDRNOTAVAIL, errno.EACCES} and error.filename is None:
            return Complaint(
                f"cannot listen at {host}:{port}: {error.strerror}", Code.PORT, hint="see --host and --port"
            )
        if error.errno in {
            errno.EACCES,
            errno.EPERM,
            errno.EROFS,
            errno.ENOSPC,
            errno.ENOTDIR,
            errno.EEXIST,
            errno.EDQUOT,
            errno.ENOENT,  # below /proc, or a link that leads nowhere
            errno.ELOOP,
            errno.ENAMETOOLONG,
        }:
            where = error.filename or folder
            return Complaint(
                f"cannot write {where}: {error.strerror}", Code.DATA, hint="choose another with --data DIR"
            )
    return complaint_of(error)
