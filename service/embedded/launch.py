"""Become another program, as another account, that ends when its owner does.

`process.start_child` runs this file with `python -I -S`, so it needs nothing but the standard library. The alternative,
a `preexec_fn`, runs Python between fork and exec. That can deadlock in a process that has threads (numerical libraries
start some on import).

Arguments: owner's pid, signal to receive when the owner ends, uid, gid (both -1: keep the account), program, its
arguments.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # prctl(2)
EXIT_NOT_STARTED = 127


def main(arguments: list[str]) -> None:
    """Change the account, tie this process's life to its owner's, and become the program; never returns."""
    owner_pid, death_signal, uid, gid = (int(argument) for argument in arguments[:4])
    os.umask(0o077)
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # Only now: the kernel forgets the death signal whenever the account changes.
    end_with(owner_pid, death_signal)
    program = arguments[4]
    try:
        os.execv(program, arguments[4:])  # noqa: S606 -- no shell is the point
    except OSError as error:
        sys.stderr.write(f"cannot run {program}: {error.strerror}\n")
        sys.exit(EXIT_NOT_STARTED)


def end_with(owner_pid: int, death_signal: int) -> None:
    """Have the kernel signal this process when the thread that started it ends; exits if the owner has ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        message = f"cannot ask for a death signal: {os.strerror(ctypes.get_errno())}"
        sys.exit(message)
    # The owner may have died before the request was in place; no signal would ever come then.
    if os.getppid() != owner_pid:
        sys.exit(EXIT_NOT_STARTED)


def ignore_signals() -> None:
    """Leave the signals that end a service to its own process, which finishes its work first."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    main(sys.argv[1:])
