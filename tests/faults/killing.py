"""Kill -9 at every point of a query's way, and what must be true afterwards."""

import random
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from service.failpoints import POINTS
from service.store.witness.file import FileWitness
from tests.faults.load import Crowd
from tests.faults.proxy import Cut, CuttingProxy
from tests.faults.replicas import Answer, Nursery, Replica, running
from tests.faults.scenario import NAMES, TICK, Stage, fresh_at, in_turn
from tests.waiting import until

COMMIT_SENT = "commit-sent"  # between COMMIT and its reply no line of ours runs: a proxy stands there
PLACES = (*POINTS[: POINTS.index("acknowledged")], COMMIT_SENT, *POINTS[POINTS.index("acknowledged") :])
DURABLE_FROM = PLACES.index("acknowledged")
SEEN_FROM = PLACES.index("headers-sent")
_ON_COMMIT = frozenset({COMMIT_SENT, "acknowledged"})  # what is stored is not committed again
_LONG_WAY = frozenset({"lock-held", "budgets-read"})  # a batch that is proposed does not come by there
EVALUATION = frozenset({"noise-drawn", "charges", "active-set", "summed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The servers below the replicas."""

    nursery: Nursery
    database_url: str
    redis_url: str

    @property
    def witness(self) -> FileWitness:
        """The settings that all replicas share."""
        return FileWitness(self.nursery.witness_folder(self.database_url))

    @contextmanager
    def replica(
        self, place: str | None = None, arrival: int = 1, *, environment: Mapping[str, str] | None = None
    ) -> Iterator[Replica]:
        """A replica that dies at its n-th arrival at a place, or an ordinary one; `environment` says more to it."""
        with ExitStack() as stack:
            if place == COMMIT_SENT:
                executioner = _Executioner(arrival)
                proxy = stack.enter_context(CuttingProxy(self.database_url, executioner.decide, executioner.kill))
                replica = stack.enter_context(running(self.nursery, proxy.url, self.redis_url))
                executioner.condemned = replica
            else:
                drill = {} if place is None else {"CHAOS": "1", "CHAOS_AT": f"{place}:kill:{arrival}"}
                more = drill | dict(environment or {})
                replica = stack.enter_context(running(self.nursery, self.database_url, self.redis_url, **more))
            yield replica


class _Executioner:
    """Kills a replica that has sent its n-th COMMIT: in turn before and after Postgres has answered it."""

    turn = 0

    def __init__(self, arrival: int) -> None:
        self.condemned: Replica | None = None
        self._left = arrival

    def decide(self) -> Cut:
        """The fault at this COMMIT."""
        if self.condemned is None:
            return Cut.NEVER
        self._left -= 1
        if self._left != 0:
            return Cut.NEVER
        _Executioner.turn += 1
        return (Cut.SENT, Cut.REPLIED)[_Executioner.turn % 2]

    def kill(self) -> None:
        """Before the reply can be heard."""
        if self.condemned is not None:
            self.condemned.send(signal.SIGKILL)


def kill_one_by_one(stage: Stage, servers: Servers, place: str, kills: int) -> int:
    """One replica, one client: after each death the durable state is exactly what the place says. Returns how many.

    The process that follows on a death gives the key its answer before it dies itself.
    """
    names = fresh_at(place) if place in EVALUATION else NAMES  # a reused answer is not evaluated
    names = ("again", TICK) if place in _LONG_WAY else names  # what is reused, or a tick, is decided under the lock
    with ExitStack() as stack:
        replica = stack.enter_context(servers.replica(place))
        for number in range(kills):
            key, question = f"{place}-{number}", in_turn(names, PLACES.index(place), number, count=kills)
            seen = stage.ask(replica.url, key, question)
            assert replica.is_dead(30), f"alive after {place}"
            assert replica.await_end() == -signal.SIGKILL
            stage.check_witness(servers.witness)
            stored = _expected(stage, place, key, seen)
            passes = place not in _ON_COMMIT or not stored  # does the retry come by the place again?
            replica = stack.enter_context(servers.replica(place if number < kills - 1 else None, 1 + passes))
            again = stage.ask(replica.url, key, question)
            assert (again.status, again.complete) == (200, True)
            assert again.body.startswith(seen.body if seen.status == 200 else b"")
    return kills


def kill_at_ticks(stage: Stage, servers: Servers, place: str, kills: int) -> None:
    """Before each tick a query exhausts some more; the process dies at the tick, and the next one goes on with it."""
    arrivals = 2  # of the query, and of the tick
    with ExitStack() as stack:
        for number in range(kills):
            replica = stack.enter_context(servers.replica(place, arrivals))
            if number > 0:
                stage.insist(replica.url, f"tick-{number - 1}", TICK)
            stage.insist(replica.url, f"query-{number}", "shortened")
            stage.ask(replica.url, f"tick-{number}", TICK)
            assert replica.await_end() == -signal.SIGKILL
            stored = stage.stored(f"tick-{number}") is not None
            assert stored == (PLACES.index(place) >= DURABLE_FROM)
            arrivals = 2 + (place not in _ON_COMMIT or not stored)
        replica = stack.enter_context(servers.replica())
        stage.insist(replica.url, f"tick-{kills - 1}", TICK)
        stage.insist(replica.url, "tick", TICK)
        stage.read(replica.url)


def _expected(stage: Stage, place: str, key: str, seen: Answer) -> bool:
    """Nothing before COMMIT, everything after it, bytes on the wire only once the headers are out. Says if stored."""
    stored, at = stage.stored(key), PLACES.index(place)
    if place != COMMIT_SENT:
        assert (stored is not None) == (at >= DURABLE_FROM), f"{place}: stored is {stored}"
    assert (seen.status == 200) == (at >= SEEN_FROM), f"{place}: {seen}"
    assert seen.complete == (at >= PLACES.index("sent")), f"{place}: {seen}"
    return stored is not None


def kill_under_load(stage: Stage, servers: Servers, place: str, kills: int, seed: int) -> int:
    """Two replicas that keep dying at a place while three clients ask both and a curator reads. Returns the deaths.

    With SPARING_RELEASE_SLOT_MS=0 (`Nursery.start`), so that both work on the dataset.
    """
    source = random.Random(f"{place}-{seed}")
    crowd = Crowd(stage, place)
    deaths = 0
    with ExitStack() as stack:
        replicas = [stack.enter_context(servers.replica(place, source.randint(1, 4))) for _ in range(2)]
        crowd.urls = [replica.url for replica in replicas]
        crowd.start()
        try:
            while deaths < kills:
                which = _first_death(replicas)
                assert replicas[which].await_end() == -signal.SIGKILL
                stage.check_witness(servers.witness)
                deaths += 1
                again = place if deaths + 2 <= kills + 1 else None
                replicas[which] = stack.enter_context(servers.replica(again, source.randint(1, 4)))
                crowd.urls[which] = replicas[which].url
        finally:
            crowd.finish()
    return deaths


def _first_death(replicas: list[Replica]) -> int:
    until(lambda: any(replica.is_dead() for replica in replicas))
    return next(which for which, replica in enumerate(replicas) if replica.is_dead())
