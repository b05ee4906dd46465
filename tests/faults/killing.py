"""Kill -9 at every point of a query's way, and what must be true afterwards."""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from service.failpoints import POINTS
from tests.faults.proxy import CommitProxy, Cut
from tests.faults.replicas import Answer, Nursery, Replica, running
from tests.faults.stage import NAMES, Stage

COMMIT_SENT = "commit-sent"  # between COMMIT and its reply no line of ours runs: a proxy stands there
PLACES = (*POINTS[: POINTS.index("acknowledged")], COMMIT_SENT, *POINTS[POINTS.index("acknowledged") :])
DURABLE_FROM = PLACES.index("acknowledged")
SEEN_FROM = PLACES.index("headers-sent")
EVALUATION = frozenset({"noise-drawn", "charges", "active-set", "summed"})
CLIENTS = 3
RETRY_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """What the replicas stand on."""

    nursery: Nursery
    database_url: str
    redis_url: str

    @contextmanager
    def replica(self, place: str | None = None, arrival: int = 1) -> Iterator[Replica]:
        """A replica that dies at its n-th arrival at a place, or an ordinary one."""
        with ExitStack() as stack:
            if place == COMMIT_SENT:
                executioner = _Executioner(arrival)
                proxy = stack.enter_context(CommitProxy(self.database_url, executioner.decide, executioner.kill))
                replica = stack.enter_context(running(self.nursery, proxy.url, self.redis_url))
                executioner.condemned = replica
            else:
                drill = {} if place is None else {"CHAOS": "1", "CHAOS_AT": f"{place}:kill:{arrival}"}
                replica = stack.enter_context(running(self.nursery, self.database_url, self.redis_url, **drill))
            yield replica


class _Executioner:
    """Kills a replica that has sent its n-th COMMIT: in turn before and after Postgres has answered it."""

    turn = 0

    def __init__(self, arrival: int) -> None:
        self.condemned: Replica | None = None
        self._left = arrival

    def decide(self) -> Cut:
        """What is to happen at this COMMIT."""
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
    """One replica, one client: after each death the durable state is exactly what the place says. Returns how many."""
    names = [name for name in NAMES if place not in EVALUATION or name != "again"]  # a reused answer is not evaluated
    for number in range(kills):
        key, question = f"{place}-{number}", names[number % len(names)]
        with servers.replica(place) as replica:
            seen = stage.ask(replica.url, key, question)
            assert replica.is_dead(30), f"alive after {place}"
            assert replica.await_end() == -signal.SIGKILL
            _expect(stage, place, key, seen)
        with servers.replica() as next_one:
            again = stage.ask(next_one.url, key, question)
            stage.read(next_one.url)
        assert (again.status, again.complete) == (200, True)
        assert again.body.startswith(seen.body if seen.status == 200 else b"")
    return kills


def _expect(stage: Stage, place: str, key: str, seen: Answer) -> None:
    """Nothing before COMMIT, everything after it; bytes on the wire only once the headers are out."""
    stored, at = stage.stored(key), PLACES.index(place)
    if place != COMMIT_SENT:
        assert (stored is not None) == (at >= DURABLE_FROM), f"{place}: stored is {stored}"
    assert (seen.status == 200) == (at >= SEEN_FROM), f"{place}: {seen}"
    assert seen.complete == (at >= PLACES.index("sent")), f"{place}: {seen}"


def kill_under_load(stage: Stage, servers: Servers, place: str, kills: int, seed: int) -> int:
    """Two replicas that keep dying at a place while three clients ask both and a curator reads. Returns the deaths."""
    source = random.Random(f"{place}-{seed}")
    crowd = _Crowd(stage, place)
    deaths = 0
    with ExitStack() as stack:
        replicas = [stack.enter_context(servers.replica(place, source.randint(1, 4))) for _ in range(2)]
        crowd.urls = [replica.url for replica in replicas]
        crowd.start()
        try:
            while deaths < kills:
                which = _first_death(replicas)
                assert replicas[which].await_end() == -signal.SIGKILL
                deaths += 1
                again = place if deaths + 2 <= kills + 1 else None
                replicas[which] = stack.enter_context(servers.replica(again, source.randint(1, 4)))
                crowd.urls[which] = replicas[which].url
        finally:
            crowd.finish()
    return deaths


def _first_death(replicas: list[Replica]) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for which, replica in enumerate(replicas):
            if replica.is_dead(0.01):
                return which
    raise TimeoutError("nobody dies")


class _Crowd:
    """Clients that ask on and on, repeating a key at the other replica until it is answered, and one who reads."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.urls: list[str] = []
        self._stage, self._name = stage, name
        self._over = threading.Event()
        jobs: list[Callable[[], None]] = [lambda n=n: self._ask(n) for n in range(CLIENTS)]  # type: ignore[misc]
        self._threads = [threading.Thread(target=job) for job in (*jobs, self._read)]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Let every client have its last answer."""
        self._over.set()
        for thread in self._threads:
            thread.join(timeout=120)
            assert not thread.is_alive(), "a key is never answered"

    def _ask(self, client: int) -> None:
        asked = 0
        while not self._over.is_set():
            key, attempt = f"{self._name}-{client}-{asked}", client + asked
            while self._stage.ask(self.urls[attempt % 2], key, NAMES[(client + asked) % len(NAMES)]).status != 200:
                attempt += 1
                time.sleep(RETRY_S)
            asked += 1

    def _read(self) -> None:
        turn = 0
        while not self._over.wait(RETRY_S):
            self._stage.read(self.urls[turn % 2])
            turn += 1
