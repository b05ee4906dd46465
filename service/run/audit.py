"""The audit: the client's audit talking to a service over HTTP, at an address or in a home that is thrown away."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from secrets import randbits
from typing import Final

INSTALLING = "run it from a clone of the repository after `make`, or install clients/python"
NAMES_BITS: Final = 32
"""How many random bits the names of the audit's datasets hold: archived datasets of earlier audits keep their names."""
_ELSEWHERE: Final = ("DATABASE_URL", "REDIS_URL", "SPARING_")
_COMMAND: Final = (sys.executable, "-m", "service")
_END_S: Final = 60


class AuditUndone(Exception):
    """The audit could not be carried out; the message says why in one line."""


Tell = Callable[[str], None]


def audit(
    *,
    url: str | None,
    curator_key: str | None,
    tell: Tell,
    victims: int,
    seed: int | None = None,
    **chosen: Sequence[str],
) -> tuple[bool, str, str]:
    """Audit the service at `url`, or one that is started for the purpose; `tell` is called with a line for each step.

    Returns whether it has passed, and the report as text and as JSON.
    Each dataset has so many `victims`. `chosen` are `rules` and `accountings` of those that are offered, by default all
    of them. Raises AuditUndone.
    """
    if (url is None) != (curator_key is None):
        raise AuditUndone("an address and a curator's key go together: --url and --curator-key")
    try:
        import sparing_audit as outside  # noqa: PLC0415 - the production image lacks the client and the audit
        from sparing import SparingError  # noqa: PLC0415 - the same
    except ImportError as error:
        raise AuditUndone(f"the audit needs {error.name}: {INSTALLING}") from error

    there = _thrown_away(tell) if url is None or curator_key is None else nullcontext((url, curator_key))
    try:
        with there as (address, key), outside.RemoteService(base_url=address, curator_key=key) as service:
            report = outside.run_audit(
                service,
                victims=victims,
                seed=randbits(32) if seed is None else seed,
                name=f"audit-{randbits(NAMES_BITS):08x}",
                heard=tell,
                **chosen,
            )
    except (SparingError, ValueError) as error:
        raise AuditUndone(str(error) or type(error).__name__) from error
    return report.passed, outside.as_text(report), outside.as_json(report)


@contextmanager
def _thrown_away(tell: Tell) -> Iterator[tuple[str, str]]:
    """A service in a process and a home of its own, which is removed at the end: (URL, curator's key)."""
    folder = Path(tempfile.mkdtemp(prefix="sparing-audit-"))
    folder.chmod(0o711)  # as root, another account runs the database and passes through here
    home, environ = str(folder / "home"), own_environment(os.environ)
    try:
        tell("Starting Postgres, Valkey and the service …")
        with (folder / "log").open("wb") as log:
            command = [*_COMMAND, "serve", "--home", home, "--port", "0"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environ)
        with process:
            try:
                yield _ready(process, folder / "log"), _curator_key(home, environ)
            finally:
                _end(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a service of our own: nothing that leads to another deployment's database, and no waits.

    No balancer needs notice of the end, and nobody else asks, so that answers need not wait for their slots.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(_ELSEWHERE)}
    return {**kept, "SPARING_DRAIN_NOTICE_MS": "0", "SPARING_RELEASE_SLOT_MS": "0"}


def _end(process: "subprocess.Popen[str]") -> None:
    """Let a service drain. If that takes too long, kill the service: it keeps nothing."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _ready(process: "subprocess.Popen[str]", log: Path) -> str:
    """The address of a service once it is ready. Raises AuditUndone if it did not start."""
    word, _, url = (process.stdout.readline() if process.stdout is not None else "").strip().partition(" ")
    if word != "ready":
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        raise AuditUndone(f"the service did not start: {lines[-1] if lines else 'it said nothing'}")
    return url


def _curator_key(home: str, environ: Mapping[str, str]) -> str:
    command = [*_COMMAND, "keys", "create", "--role", "curator", "--name", "audit", "--home", home]
    made = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    if made.returncode != 0:
        raise AuditUndone(f"no curator's key could be made: {made.stderr.strip()}")
    return made.stdout.strip()
