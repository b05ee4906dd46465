"""`sparing-client`, or `python -m sparing`: the command line for analysts."""

import os
import sys

from sparing._cli import main

BROKEN_PIPE = 141  # as a shell reports a process that SIGPIPE ended


def run() -> int:
    """Run the command line; a reader of the output that stops early, such as `head`, causes no error."""
    try:
        for stream in (sys.stdout, sys.stderr):
            getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code


if __name__ == "__main__":
    sys.exit(run())
