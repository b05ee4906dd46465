"""The faults of tests/faults for any length of time, with new seeds: `make soak ARGS="--minutes 60"`.

Every round draws a scenario and a seed, runs it on a new database, and audits the clients' observations against the
ledger. Every soak appends one line to tests/records/soak.jsonl, even if it has failed, so that counts add up.
"""

import argparse
import random
import sys
import tempfile
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from shutil import rmtree

import psycopg
from psycopg import sql

from loadtests.records import keep_record
from loadtests.soak_serving import embedded_kills, full_disks, homes_in, idle_crowds, swelling_uploads, walks
from service.embedded import EmbeddedPostgres, EmbeddedValkey
from service.store.postgres.registrations import migrate
from tests.conftest import TEST_SETTINGS
from tests.e2e.homes import Homes
from tests.faults.cutting import CUTS, cut_in_a_crowd, cut_one_by_one
from tests.faults.falling import lose_database, lose_power
from tests.faults.killing import PLACES, Servers, kill_one_by_one, kill_under_load
from tests.faults.machine import can_mount, machine, mounted, prepare
from tests.faults.racing import race
from tests.faults.replicas import Nursery
from tests.faults.scenario import Stage, staged
from tests.faults.stopping import stop_under_load

TEMPLATE = "soak_template"
KILLS, TRIALS, RACES, STOPS, FALLS = 10, 100, 200, 10, 5


@dataclass(kw_only=True)
class BaseVersion:
    """The servers under every round."""

    folder: Path
    server: EmbeddedPostgres
    redis_url: str
    nursery: Nursery
    image: Path | None
    homes: Homes
    counts: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def database(self) -> Iterator[str]:
        """A fresh database, dropped afterwards."""
        name = f"soak_{uuid.uuid4().hex}"
        self._run("CREATE DATABASE {} TEMPLATE {}", name, TEMPLATE)
        try:
            yield self.server.url_of(name)
        finally:
            self._run("DROP DATABASE {} WITH (FORCE)", name)

    def make_template(self) -> None:
        """Make the template of all other databases."""
        self._run("CREATE DATABASE {}", TEMPLATE)
        migrate(self.server.url_of(TEMPLATE))

    @contextmanager
    def stage(self, questions: int, *, is_witnessed: bool) -> Iterator[tuple[Stage, Servers]]:
        """A dataset on a fresh database, which is audited at the end."""
        with self.database() as url, staged(url, questions=questions) as stage:
            servers = Servers(nursery=self.nursery, database_url=url, redis_url=self.redis_url)
            yield stage, servers
            history = stage.audit(servers.witness if is_witnessed else None)
            self.counts["answers"] += stage.answered()
            self.counts["entries"] += len(history.entries)

    def _run(self, statement: str, *names: str) -> None:
        with psycopg.connect(self.server.url_of("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def kills_alone(ground: BaseVersion, seed: int) -> int:
    """Kill one replica at one point."""
    place = random.Random(seed).choice(PLACES)
    with ground.stage(KILLS, is_witnessed=True) as (stage, servers):
        return kill_one_by_one(stage, servers, place, KILLS)


def kills_under_load(ground: BaseVersion, seed: int) -> int:
    """Kill two replicas at one point."""
    place = random.Random(seed).choice(PLACES)
    with ground.stage(60, is_witnessed=True) as (stage, servers):
        return kill_under_load(stage, servers, place, KILLS, seed)


def cuts_alone(ground: BaseVersion, seed: int) -> int:
    """Cut connections around COMMIT."""
    with ground.stage(TRIALS, is_witnessed=False) as (stage, _):
        cut_one_by_one(stage, random.Random(seed).choice(CUTS), TRIALS)
    return TRIALS


def cuts_together(ground: BaseVersion, seed: int) -> int:
    """Cut connections around COMMIT, under load."""
    with ground.stage(4 * TRIALS, is_witnessed=False) as (stage, _):
        return cut_in_a_crowd(stage, TRIALS, clients=4, seed=seed)


def races(ground: BaseVersion, seed: int) -> int:
    """Let several replicas compete for one person's last unit."""
    with ground.database() as url:
        charges, refusals = race(url, RACES, rivals=2 + seed % 3)
    if (charges, refusals) != (RACES, 0):
        raise AssertionError(f"{charges} charges and {refusals} refusals in {RACES} races")
    return RACES


def stops(ground: BaseVersion, seed: int) -> int:
    """Stop replicas and continue them."""
    with ground.stage(60, is_witnessed=True) as (stage, servers):
        return stop_under_load(stage, servers, STOPS, seed)


def killed_databases(ground: BaseVersion, seed: int) -> int:
    """Kill Postgres."""
    folder = ground.folder / f"machine-{uuid.uuid4().hex[:8]}"
    folder.mkdir(mode=0o711)
    with machine(ground.nursery, ground.redis_url, folder) as fallible:
        ground.counts["answers"] += lose_database(fallible, FALLS, seed).answered()
    rmtree(folder)
    return FALLS


def power_cuts(ground: BaseVersion, seed: int) -> int:
    """Cut the power."""
    folder = ground.folder / f"disk-{uuid.uuid4().hex[:8]}"
    with mounted(folder, ground.image) as disk, machine(ground.nursery, ground.redis_url, disk.mount) as fallible:
        ground.counts["answers"] += lose_power(disk, fallible, FALLS, seed).answered()
    return FALLS


def of_homes(scenario: Callable[[Homes, int], int]) -> Callable[[BaseVersion, int], int]:
    """A scenario of a served home, as one of a base."""
    return lambda ground, seed: scenario(ground.homes, seed)


SCENARIOS: Mapping[str, Callable[[BaseVersion, int], int]] = {
    each.__name__: each
    for each in (kills_alone, kills_under_load, cuts_alone, cuts_together, races, stops, killed_databases, power_cuts)
} | {each.__name__: of_homes(each) for each in (embedded_kills, full_disks, swelling_uploads, idle_crowds, walks)}
MOUNTING = {"power_cuts", "full_disks"}


@dataclass(kw_only=True)
class Tally:
    """The faults so far."""

    started: float = field(default_factory=time.monotonic)
    seeds: list[int] = field(default_factory=list)
    rounds: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, str | int]] = field(default_factory=list)

    def live_through(self, name: str, seed: int, ground: BaseVersion) -> None:
        """Run one round; a failure is recorded, and the soak goes on."""
        self.seeds.append(seed)
        self.rounds[name] += 1
        try:
            self.faults[name] += SCENARIOS[name](ground, seed)
        except Exception as error:  # noqa: BLE001 - every failure is recorded
            traceback.print_exc()
            said = f"{type(error).__name__}: {error}"[:2000]
            self.failures.append({"scenario": name, "seed": seed, "error": said})
        print(f"{name} seed {seed}: {dict(self.faults)}, {len(self.failures)} failures", flush=True)

    def is_within(self, minutes: float) -> bool:
        """Tell whether there is time left."""
        return time.monotonic() - self.started < minutes * 60

    def keep(self, seen: Mapping[str, int]) -> None:
        """Append the record."""
        keep_record(
            "soak",
            {
                "minutes": round((time.monotonic() - self.started) / 60, 1),
                "rounds": dict(self.rounds),
                "faults": dict(self.faults),
                "seen": dict(seen),
                "failures": self.failures,
                "seeds": self.seeds,
            },
        )


def main() -> int:
    """Soak. The exit status is 1 if any round failed."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--only", choices=sorted(SCENARIOS), default=None)
    parser.add_argument("--seed", type=int, default=None, help="with --only: live through that one round again")
    options = parser.parse_args()
    names = [name for name in SCENARIOS if options.only in (None, name) and (name not in MOUNTING or can_mount())]
    tally = Tally()
    with grounds() as ground:
        for name in cycle(names):
            seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
            tally.live_through(name, seed, ground)
            if options.seed is not None or not tally.is_within(options.minutes):
                break
    tally.keep(ground.counts)
    return 1 if tally.failures else 0


@contextmanager
def grounds() -> Iterator[BaseVersion]:
    """Run servers in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="sparing-soak-"))
    folder.chmod(0o711)
    private = folder / "private"
    with ExitStack() as stack:
        stack.callback(rmtree, folder, ignore_errors=True)
        server = EmbeddedPostgres(folder / "postgres", settings=TEST_SETTINGS, private_root=private, throw_away=True)
        stack.enter_context(server)
        valkey = EmbeddedValkey(folder / "valkey", private_root=private)
        redis_url = valkey.start()
        stack.callback(valkey.stop)
        nursery = stack.enter_context(Nursery(folder / "nursery"))
        image = None
        if can_mount():
            image = folder / "prepared.image"
            prepare(folder / "prepared", image)
        homes = homes_in(folder / "homes")
        ground = BaseVersion(
            folder=folder, server=server, redis_url=redis_url, nursery=nursery, image=image, homes=homes
        )
        ground.make_template()
        yield ground


if __name__ == "__main__":
    sys.exit(main())
