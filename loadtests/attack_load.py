"""An attack on shared resources: how long others wait, and what memory grows, while one principal asks for too much.

    python -m loadtests.attack_load [--quick] [--only resumes] [--checkout PATH]

One service runs on loopback. One attacker repeats each row of `loadtests.attack_rows` for some seconds. Meanwhile an
analyst of another dataset asks sparse counts, and a stranger asks for /livez, /readyz and the sign-in page. Each sends
a request every 50 ms, even if the last one is not answered yet (`loadtests.others`). The quiet waits just before are
printed beside theirs.

A row fails if others wait longer than a quarter of a second at the 99th percentile or are refused, if the service's
memory grows by more than 100 MB, or if the attacker is not refused by 413, 422, 429 or 507 where it must be. The exit
status is 1 then. If the machine is busy with other work, waits may be twice the quiet ones. A row says so, and the exit
status is 2 where nothing else fails. Every run is a line in tests/records/attack_load.jsonl.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import uvloop

from loadtests.attack_rows import ROWS, Ground, Row, requests_of_others
from loadtests.others import Others, Waits, asked
from loadtests.records import keep_record
from loadtests.rig import serving, throw_away_home
from loadtests.service_memory import Taken, disk_bytes
from service.bounds import SPOOL_BYTES_MAX

WAIT_S_MAX: Final = 0.25
GROWTH_BYTES_MAX: Final = 100 * 10**6
STARTED_S: Final = 10.0
"""For how long after its start a service prepares tables, in threads of low priority."""
QUIET_S: Final = 3.0
ROW_S: Final = 5.0
"""How long a row is repeated, so that the 99th percentile is taken of hundreds of waits."""
REPETITIONS_MAX: Final = 50
ROW_S_MAX: Final = 180.0
QUICK_SIZE: Final = 0.25
PARAMETERS_BYTES_MAX: Final = 2**25
"""Less than the default, so that seconds suffice to reach it."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One row, measured."""

    quiet: dict[str, Waits]
    waits: dict[str, Waits]
    grown_bytes: int
    spooled_bytes: int
    stored_bytes: int
    told: Counter[str]
    repetitions: int
    complaints: list[str]

    @property
    def is_busy(self) -> bool:
        """Tell whether others wait too long even without an attack: their waits then say little."""
        return any(each.at(0.99) > WAIT_S_MAX for each in self.quiet.values())

    def figures(self) -> dict[str, Any]:
        """The figures for the record."""
        return {
            "quiet_p99_ms": {name: round(each.at(0.99) * 1000) for name, each in self.quiet.items()},
            "p99_ms": {name: round(each.at(0.99) * 1000) for name, each in self.waits.items()},
            "longest_ms": {name: round(each.at(1.0) * 1000) for name, each in self.waits.items()},
            "grown_mb": round(self.grown_bytes / 1e6),
            "spooled_mb": round(self.spooled_bytes / 1e6),
            "stored_mb": round(self.stored_bytes / 1e6),
            "told": dict(self.told),
            "repetitions": self.repetitions,
            "is_busy": self.is_busy,
            "complaints": self.complaints,
        }


async def measured(ground: Ground, row: Row, home: Path) -> Outcome:
    """Measure the quiet waits, then those during the attack."""
    await asyncio.to_thread(row.prepare, ground)
    await asyncio.to_thread(os.sync)  # what rows before this one have written is none of its own work
    pid, spool = ground.rig.process.pid, home / "spool"
    before, taken = Taken(), Taken()
    with asked(Others(address=ground.address, requests=requests_of_others(ground))) as quiet:
        await asyncio.sleep(QUIET_S)
    before.look(pid, spool)
    stored_before, ground.told = disk_bytes(home), Counter()
    with asked(Others(address=ground.address, requests=requests_of_others(ground), number=10**6)) as waits:
        watching = asyncio.create_task(taken.watch(pid, spool))
        repetitions = await _repeated(ground, row)
        watching.cancel()
    grown = taken.memory - before.memory
    return Outcome(
        quiet=quiet,
        waits=waits,
        grown_bytes=grown,
        spooled_bytes=taken.spooled,
        stored_bytes=disk_bytes(home) - stored_before,
        told=ground.told,
        repetitions=repetitions,
        complaints=[*complaints(quiet, waits, 0 if row.may_grow else grown), *row.complaints(ground.told)],
    )


async def _repeated(ground: Ground, row: Row) -> int:
    begun_s, repetitions = time.monotonic(), 0
    with suppress(TimeoutError):
        async with asyncio.timeout(ROW_S_MAX):
            while repetitions < (REPETITIONS_MAX if row.is_repeated else 1) and time.monotonic() < begun_s + ROW_S:
                await row.attack(ground)
                repetitions += 1
    return repetitions


def complaints(quiet: dict[str, Waits], waits: dict[str, Waits], grown_bytes: int) -> list[str]:
    """Waits, replies and growth of memory that must not be."""
    found = [
        f"{name} waits {each.at(0.99):.2f} s"
        for name, each in waits.items()
        if each.at(0.99) > max(WAIT_S_MAX, 2 * quiet[name].at(0.99))
    ]
    found += [f"{name} is told {dict(each.told)}" for name, each in waits.items() if set(each.told) != {"200"}]
    if grown_bytes > GROWTH_BYTES_MAX:
        found.append(f"memory grows by {grown_bytes / 1e6:.0f} MB")
    return found


async def _all(ground: Ground, names: list[str], home: Path) -> dict[str, Outcome]:
    outcomes = {}
    await asyncio.sleep(STARTED_S)
    for name in names:
        outcomes[name] = await measured(ground, ROWS[name], home)
        _print(name, outcomes[name])
    return outcomes


def main() -> int:
    """Measure every row, print a table and keep a record."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.attack_load", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a quarter of the size")
    parser.add_argument("--only", choices=ROWS, default=None)
    parser.add_argument("--checkout", type=Path, default=None, help="another tree of the service, to attack that")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    names = [name for name in ROWS if options.only in (None, name)]
    size = QUICK_SIZE if options.quick else 1.0
    with throw_away_home() as home:
        (home / "spool").mkdir()
        environment = {
            "TMPDIR": str(home / "spool"),
            "SPARING_SPOOL_BYTES_MAX": str(int(SPOOL_BYTES_MAX * size)),
            "SPARING_PARAMETERS_BYTES_MAX": str(int(PARAMETERS_BYTES_MAX * size)),
        }
        with serving(home, environment=environment, checkout=options.checkout) as rig:
            parts = urlsplit(rig.url)
            address = parts.hostname or "", parts.port or 80
            ground = Ground(rig=rig, address=address, size=size)
            outcomes = uvloop.run(_all(ground, names, home))
    rows = {name: outcome.figures() for name, outcome in outcomes.items()}
    keep_record("attack_load", {"is_quick": options.quick, "rows": rows}, checkout=options.checkout)
    failed = [name for name, outcome in outcomes.items() if outcome.complaints]
    print(f"{len(failed)} of {len(outcomes)} rows fail{': ' + ', '.join(failed) if failed else ''}")
    if failed:
        return 1
    return 2 if any(outcome.is_busy for outcome in outcomes.values()) else 0


def _print(name: str, outcome: Outcome) -> None:
    quiet = " ".join(f"{each.at(0.99):.2f}" for each in outcome.quiet.values())
    during = " ".join(f"{each.at(0.99):.2f}" for each in outcome.waits.values())
    longest = max(each.at(1.0) for each in outcome.waits.values())
    print(
        f"{'FAILS' if outcome.complaints else 'passes':<7}{name:<18} p99 {quiet} -> {during} s, longest {longest:.2f} s"
    )
    took = f"memory +{outcome.grown_bytes / 1e6:.0f} MB, spooled {outcome.spooled_bytes / 1e6:.0f} MB"
    print(f"       {took}, stored {outcome.stored_bytes / 1e6:.0f} MB; told {dict(outcome.told)}")
    if outcome.is_busy:
        print("       the machine is busy: others wait too long without an attack")
    for complaint in outcome.complaints:
        print(f"       {complaint}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
