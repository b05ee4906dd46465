"""The speed of this machine, measured once and kept in the home."""

import json
import logging
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from service.embedded.home import open_home, write_private
from service.maintenance.calibration import measured_commit_ns, measured_commits, measured_speed
from service.query.cost import Speed
from service.settings.settings import Settings
from service.store.entropy import system_entropy

log = logging.getLogger("sparing.speed")

_SPEED_FILE: Final = "speed.json"
_SLOWER: Final = 2
"""A commit is worth a warning if it takes longer than a slot, and over _SLOWER times as long as its kept constant."""

_SLOWDOWN_MARGIN: Final = 1.25
_PASSES: Final = """
import time
import numpy as np
left, right = np.arange(2**22), np.arange(2**22)
marks = left % 3 > 0
began = time.perf_counter()
for _ in range(8):
    np.add(left, right, out=right)
    np.logical_and(marks, right > left, out=marks)
print(time.perf_counter() - began)
"""

_NS_PER_MS: Final = 1_000_000
CLUSTER_ROUND_TRIP_NS: Final = 5_000_000.0
"""Twice the median time of a call to two shards on an idle cluster (docs/scale.md)."""


class CommitProbe(Protocol):
    """A store, as far as the measurement needs it."""

    def probe_commit(self, payload: bytes) -> None:
        """Make a payload durable."""


def speed_of(settings: Settings, store: CommitProbe) -> Speed:
    """The speed kept in the home, measured at its first start; the default speed if no response is held."""
    if settings.release_slot_ms == 0:
        return Speed()
    speed = _kept_or_measured(settings, store)
    return speed if settings.ray_address is None else replace(speed, shard_round_trip=CLUSTER_ROUND_TRIP_NS)


def _kept_or_measured(settings: Settings, store: CommitProbe) -> Speed:
    """The kept speed, or a measured one; a warning is logged if commits are far slower than the kept speed says."""
    kept = _kept(settings)
    if kept is None or (settings.shards > 1 and kept.cores != _cores()):
        return calibrate(settings, store)
    commit_ns = measured_commit_ns(partial(_commit, settings.home, store))
    if commit_ns > max(_SLOWER * kept.commit, settings.release_slot_ms * _NS_PER_MS):
        log.warning("a commit takes %.1f ms, more than the schedule gives it; run `sparing calibrate`", commit_ns / 1e6)
    return kept


def calibrate(settings: Settings, store: CommitProbe) -> Speed:
    """Measure this machine and keep the result in the home."""
    path = open_home(settings.home).path / _SPEED_FILE  # with servers of others there may be none yet
    speed = measured_speed(system_entropy, measured_commits(partial(_commit, settings.home, store)))
    if settings.shards > 1:
        speed = among_shards(speed)
    write_private(path, json.dumps(asdict(speed), indent=1) + "\n")
    return speed


def among_shards(speed: Speed) -> Speed:
    """The speed with this machine's number of cores, and with how much its cores slow each other when all work."""
    return replace(speed, cores=_cores(), shard_slowdown=_measured_slowdown())


def _cores() -> int:
    return os.cpu_count() or 1


def _measured_slowdown() -> float:
    """The time of a pass over arrays while every core makes one, divided by that of a single pass.

    At least 1, with a margin.
    """
    (alone_s,) = _passes_s(1)
    return max(max(_passes_s(_cores())) / alone_s, 1.0) * _SLOWDOWN_MARGIN


def _passes_s(count: int) -> list[float]:
    """The time of passes over arrays in so many processes at once, in s each."""
    processes = [subprocess.Popen([sys.executable, "-I", "-c", _PASSES], stdout=subprocess.PIPE) for _ in range(count)]
    return [float(process.communicate()[0]) for process in processes]


def _kept(settings: Settings) -> Speed | None:
    try:
        kept = json.loads((settings.home / _SPEED_FILE).read_text())
        return Speed(**{each.name: float(kept[each.name]) for each in fields(Speed)})
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _commit(folder: Path, store: CommitProbe, payload: bytes) -> None:
    """A durable write as an answer needs it: one by the store, then one record beside the witness."""
    store.probe_commit(payload)
    with tempfile.TemporaryFile(dir=folder) as record:
        record.write(b"record")
        record.flush()
        os.fsync(record.fileno())
