"""Commands run in this process, which has imported already what each process of its own would import for a second."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from service.cli.app import main
from tests.e2e.processes import environment


def sparing(*arguments: str, home: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run one command to its end, as its console script does, with settings by variable."""
    command, stdout, stderr = ["sparing", *arguments, "--home", str(home)], io.StringIO(), io.StringIO()
    ours = patch.object(sys, "argv", command), patch.dict(os.environ, environment() | settings, clear=True)
    with ours[0], ours[1], redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            main()
        except SystemExit as ended:
            status = 0 if ended.code is None else int(ended.code)
    return subprocess.CompletedProcess(command, status, stdout.getvalue(), stderr.getvalue())


def new_key(home: Path, role: str, *more: str) -> str:
    """`sparing keys create`: the key alone on stdout."""
    done = sparing("keys", "create", "--role", role, "--name", role, *more, home=home)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout.strip()
