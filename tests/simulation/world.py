"""One world: two or three replicas over one modelled store, clients that retry, and faults by the seed."""

import logging
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zlib import crc32

from service.ledger.model.errors import AllowanceExceeded, Busy, KeyConflict, Unavailable
from service.ledger.ports.store import CommitRejected, CommitUnclear, StoreUnavailable
from service.maintenance.verify.report import verify_all
from service.store.witness.combined import CombinedWitness
from service.workflows.datasets import Registration, register
from tests.digests import SALT
from tests.factories import SeededEntropy
from tests.laws.filter_world import ACCOUNTINGS
from tests.memory.cache import MemoryWitness
from tests.memory.shards import MemoryShardChannel
from tests.memory.store import MemoryStore
from tests.simulation.disk import Disk, Flaws, Rates, ReplicaStore
from tests.simulation.laws import LawBroken, Laws
from tests.simulation.replica import SteppedReplica
from tests.simulation.requests import MONITOR, MONITORED_LIMIT, REGISTRATION, Ask, Request, drawn, opening, varied
from tests.simulation.scheduler import Scheduler
from tests.simulation.values import Liar
from tests.simulation.witnesses import FirstWitness, SecondWitness

REQUESTS = 25
STEPS_MAX = 20_000
SHARD_KILLS = 0.02
"""How often a shard of a replica is killed, for each step."""
OTHER_KINDS = {"older": (*3 * ("older", "clipped"), "squares", "clipped"), "visits": ("visits", "frequent")}
"""The kinds of queries that stand for those that were drawn, where worlds shorten vectors."""
EXPECTED = {f"{fault.__module__}.{fault.__qualname__}" for fault in (StoreUnavailable, CommitUnclear, CommitRejected)}


@dataclass(slots=True, eq=False)
class Client:
    """One request and whether it is resolved; `deliveries` are under way."""

    request: Request
    deliveries: int = 0
    resolved: bool = False


class Incidents(logging.Handler):
    """Only faults of the store may be incidents; anything else is a bug that a handler swallowed."""

    def __init__(self, laws: Laws) -> None:
        super().__init__()
        self.laws = laws

    def emit(self, record: logging.LogRecord) -> None:
        kind = re.search(r"error=(\S+)", record.getMessage())
        self.laws.law(kind is not None and kind[1] in EXPECTED, record.getMessage())


class World:
    """The whole run of one seed. `run` returns, or raises LawBroken."""

    def __init__(
        self,
        seed: int,
        *,
        flaws: Flaws | None = None,
        shares: bool = False,
        witnesses: int = 1,
        rejects: bool = False,
        shortens: bool = False,
        divides: bool = False,
        varies: bool = False,
        trace: Callable[[str], None] | None = None,
    ) -> None:
        """Draw the rates, register the dataset, under the drop rule for odd seeds, start the replicas.

        With `shares`, give them a faulty cache; with two `witnesses`, let them die between writing to the two.
        With `rejects`, have the store reject every transaction that contains one of certain queries. With `shortens`,
        have half of the counts of individuals asked under the clip rule. With `divides`, each replica has three shards,
        of which some are killed. With `varies`, the dataset has any accounting, and often a monitor, and queries are
        also ticks, reduced sums and counts with Laplace noise.
        """
        self.seed, self.random = seed, Random(seed)
        self.trace, self._shortens, self._divides = trace or (lambda _writer: None), shortens, divides
        self.lost_shards, self._varies = 0, varies
        self.rates = Rates.drawn(self.random)
        self.scheduler = Scheduler(Random(seed + 1))
        store = MemoryStore()
        stated = REGISTRATION | {"rule": "drop" if seed % 2 else "skip"} | (_varied(Random(seed + 4)) if varies else {})
        self.laws = Laws(register(Registration.model_validate(stated), store, MemoryWitness(), salt=SALT))
        self.witness = MemoryWitness()
        self.first = FirstWitness(self.scheduler, Random(seed + 3)) if witnesses > 1 else None
        self._second = SecondWitness()
        self.disk = Disk(
            store=store,
            scheduler=self.scheduler,
            random=self.random,
            rates=self.rates,
            flaws=flaws or Flaws(),
            committed=self.laws.committed,
            checkpointed=self.laws.checkpointed,
            trace=self.trace,
        )
        if rejects:
            self.disk.rejects = lambda canonical: crc32(b"%d" % seed + canonical) % 4 == 0
        self.disk.versions.append(self.disk.store.kept[1])
        self.now = datetime(2026, 11, 21, 9, tzinfo=UTC)
        self.steps, self.births = 0, 0
        self.clients: list[Client] = []
        self.liar = Liar(self.scheduler, Random(seed + 2)) if shares else None
        self.replicas = [self._born(f"replica {n}") for n in range(self.random.choice([2, 2, 3]))]
        self.trace(f"seed {seed}: {self.rates}")

    @property
    def faults(self) -> Counter[str]:
        """The number of faults so far, by kind."""
        return self.disk.faults

    def run(self, *, requests: int = REQUESTS) -> None:
        """Run with faults, then without, until every request is resolved."""
        incidents, log = Incidents(self.laws), logging.getLogger("sparing.incidents")
        log.addHandler(incidents)
        propagate, log.propagate = log.propagate, False
        try:
            for request in opening(self.random):
                self._want(request)
            while len(self.clients) < requests or self.random.random() < 0.95:
                if self.random.random() < 0.1 and len(self.clients) < requests:
                    self._want(drawn(self.random, len(self.clients)))
                self._misfortune()
                self._retry()
                self._step()
            self._heal()
        finally:
            for place in {task.place for task in self.scheduler.tasks}:
                self.scheduler.kill(place)
            log.removeHandler(incidents)
            log.propagate = propagate

    def _born(self, name: str) -> SteppedReplica:
        self.births += 1
        store = ReplicaStore(name, self.disk, SeededEntropy(self.seed * 1000 + self.births))
        replica = SteppedReplica(
            name=name,
            store=store,
            witness=self.witness if self.first is None else CombinedWitness(self.first, [self._second]),
            scheduler=self.scheduler,
            clock=lambda: self.now,
            laws=self.laws,
        )
        replica.shards = 3 if self._divides else 1
        if self.liar is not None:
            replica.share_cache(self.liar, clock=lambda: self.steps)
        return replica

    def _want(self, request: Request) -> None:
        if self._shortens and isinstance(request, Ask):
            kinds = OTHER_KINDS.get(request.kind, (request.kind,))
            kind = kinds[crc32(str(request).encode()) % len(kinds)]
            is_laplace = request.is_laplace and kind not in {"clipped", "squares"}  # it is for one number, and no clip
            request = replace(request, kind=kind, is_laplace=is_laplace)
        if self._varies:
            record = self.laws.record
            request = varied(request, record.accounting.name, has_monitor=record.monitor is not None)
        self.clients.append(Client(request))
        if isinstance(request, Ask):
            self.laws.expect(request)
        self.trace(f"{request}")

    def _step(self) -> None:
        """Run one task to its next pause, then check every law."""
        task = self.scheduler.step()
        self.steps += 1
        if task is not None:
            self.trace(f"  {task.name}")
        for replica in self.replicas:
            if replica.writer is not None and replica.writer.is_idle:
                self.laws.idle(replica.name, replica.writer._state, self.disk.store.kept[1])
        self._judge()

    def _judge(self) -> None:
        if self.laws.broken:
            raise LawBroken(f"seed {self.seed}, step {self.steps}: {'; '.join(self.laws.broken)}")

    # Clients

    def _retry(self) -> None:
        """Deliver waiting requests to any replica, sometimes twice, sometimes again after they were resolved."""
        for client in self.clients:
            waiting = not client.resolved and client.deliveries == 0
            again = isinstance(client.request, Ask) and (
                self.random.random() < 0.004 or (client.deliveries and self.disk.happens("impatient_client"))
            )
            if (waiting and self.random.random() < 0.3) or again:
                self._deliver(client)

    def _deliver(self, client: Client) -> None:
        replica = self.random.choice(self.replicas)
        client.deliveries += 1
        self.trace(f"  to {replica.name}: {client.request}")
        place, name = replica.name, f"{replica.name} serves {client.request}"
        self.scheduler.spawn(name, place, lambda: self._serve(client, replica), note=client.request)

    def _serve(self, client: Client, replica: SteppedReplica) -> None:
        """Serve one delivery on the replica's side; a crash leaves the client without a response."""
        request = client.request
        was_answered = isinstance(request, Ask) and (request.analyst.id, request.key) in self.laws.seen
        try:
            answer = request.send(replica, replica.wait)
        except (Unavailable, Busy, StoreUnavailable):
            self.trace(f"  try again: {request}")
        except AllowanceExceeded:
            client.resolved = True
            self.laws.law(not was_answered, f"B1: {request} is refused after it was answered")
        except KeyConflict:
            self.laws.law(holds=False, sentence=f"B2: {request} was taken for another request")
        except CommitRejected:
            client.resolved = True
            is_at_fault = isinstance(request, Ask) and self.disk.rejects(self.laws.canonical[request])
            self.laws.law(is_at_fault, f"{request} is rejected because of another")
        except Exception as error:  # noqa: BLE001 - no fault may show as anything but a refusal
            self.laws.law(holds=False, sentence=f"{request}: {error!r}")
        else:
            client.resolved = True
            self.trace(f"  done: {request}")
            if isinstance(request, Ask) and isinstance(answer, bytes):
                self.laws.answered(request, answer, self.disk.store.kept[1])
                if self.first is not None:
                    self.laws.witnessed(answer, self.first)
        finally:
            client.deliveries -= 1

    # Faults

    def _misfortune(self) -> None:
        self._crash_doomed()
        replica = self.random.choice(self.replicas)
        if self.disk.late_commit is not None and self.random.random() < 0.1:
            self.disk.settle()
        if self.disk.happens("replica_crash"):
            self._crash(replica)
        elif self.disk.happens("rolling_restart"):
            self.trace(f"{replica.name} drains")
            if replica.writer is not None:
                replica.writer.end()
            self.replicas[self.replicas.index(replica)] = self._born(f"replica {len(self.replicas) + self.births}")
        if self.disk.happens("store_crash"):
            self.disk.crash()
        if replica.channels and self.random.random() < SHARD_KILLS:
            self._kill_shard(self.random.choice(replica.channels))
        if self.disk.happens("replica_pause"):
            self.scheduler.paused ^= {replica.name}
        if self.disk.happens("clock_jump"):
            self.now += timedelta(seconds=self.random.choice([-3600, 1, 86_400 * 400]))

    def _kill_shard(self, channel: MemoryShardChannel) -> None:
        """Now, or within the next batch, before it is charged or after."""
        self.lost_shards += 1
        self.trace(f"shard {channel.place.number} dies")
        how = self.random.randrange(3)
        channel.dies_at = None if how == 0 else ("answer_part", how == 1)
        if how == 0:
            channel.close()

    def _crash(self, replica: SteppedReplica) -> None:
        self.trace(f"{replica.name} crashes")
        self.scheduler.paused.discard(replica.name)
        self.scheduler.kill(replica.name)
        self.replicas[self.replicas.index(replica)] = self._born(f"replica {len(self.replicas) + self.births}")

    def _crash_doomed(self) -> None:
        """Crash the replicas that die during a witness write, also drained ones."""
        while self.first is not None and self.first.doomed:
            name = self.first.doomed.pop()
            replica = next((replica for replica in self.replicas if replica.name == name), None)
            if replica is not None:
                self._crash(replica)
            else:
                self.scheduler.kill(name)

    def _heal(self) -> None:
        """Without faults: every request is resolved, every answer can be replayed, and the ledger verifies."""
        self.trace("healed")
        self.disk.rates = Rates()
        self.disk.settle()
        if self.liar is not None:
            self.liar.heal()
        if self.first is not None:
            self.first.is_well = True
            self._crash_doomed()
        self.scheduler.paused.clear()
        for _ in range(3):
            self._run_dry()
            for client in self.clients:
                if not client.resolved:
                    self._deliver(client)
        self._run_dry()
        late = [str(client.request) for client in self.clients if not client.resolved]
        self.laws.law(not late, f"liveness: never resolved: {late}")
        for client in self.clients:
            if isinstance(client.request, Ask):
                self._deliver(client)
        self._run_dry()
        for report in verify_all(self.disk.store):
            self.laws.law(not report.findings, f"the verifier finds {report.findings}")
        self._judge()

    def _run_dry(self) -> None:
        while self.scheduler.runnable():
            self._step()
            if self.steps > STEPS_MAX:
                raise LawBroken(f"seed {self.seed}: no end after {self.steps} steps")


def _varied(random: Random) -> dict[str, Any]:
    """The part of a registration that varies: any accounting, and a monitor in two of three that may have one."""
    accounting = random.choice(sorted(ACCOUNTINGS))
    stated = {"accounting": ACCOUNTINGS[accounting]}
    if accounting == "pure":
        return stated | {"guarantee": {"epsilon": "2"}}
    return stated | ({"monitor": MONITOR, "limit_floor_rho": MONITORED_LIMIT} if random.random() < 2 / 3 else {})
