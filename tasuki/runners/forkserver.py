"""The forkserver: forks shims in a millisecond, where starting Python would cost 17 to 48.

A single thread and nothing but the standard library, started beside the node from a copy of these files in the data
directory (`-I -S`: no site, no environment). It takes one attempt's folder per datagram and answers with the shim's
pid and a pidfd that was opened before the pid could have been reaped: it is that shim's and nobody else's.

It ends with the node (the socket closes). Its shims don't notice.
"""

import array
import gc
import os
import select
import signal
import socket
from contextlib import suppress
from typing import NoReturn

from tasuki.runners import shim

ANSWER_FAILED = b"-"


def serve(fd: int) -> NoReturn:
    """Serve requests on an inherited SOCK_SEQPACKET until the other end is gone."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)  # a shim is deaf until it has its own ears
    wake, wake_end = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wake_end, False)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    gc.freeze()  # what is never touched again is never copied for a shim
    door = socket.socket(fileno=fd)
    poll = select.poll()
    poll.register(door, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready == wake:
                os.read(wake, 4096)
                _reap()
            else:
                try:
                    request = door.recv(65536)
                except ConnectionResetError:  # the node was killed, and had not read all our answers
                    request = b""
                if not request:
                    os._exit(0)
                _fork(door, request, (wake, wake_end))


def _fork(door: socket.socket, folder: bytes, pipes: tuple[int, int]) -> None:
    try:
        pid = os.fork()
    except OSError as bad:
        with suppress(OSError):
            door.send(ANSWER_FAILED + folder + b"\0" + str(bad).encode())
        return
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        door.close()
        for fd in pipes:
            os.close(fd)
        shim.main(os.fsdecode(folder))
    pidfd = os.pidfd_open(pid)
    rights = array.array("i", [pidfd])
    with suppress(OSError):  # the node is gone; whoever comes back finds the shim by its `started`
        door.sendmsg([str(pid).encode() + b"\0" + folder], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    os.close(pidfd)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
