"""Redis killed, flushed, set back, forged and slowed down, again and again, between and during requests.

Two replicas over one Postgres answer all the while. Every key keeps its bytes, every account read is what the ledger
says at that moment, and at the end both memories, the ledger and the verifier agree.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from service.core.charge import rho_of_units
from service.ledger.model.api_keys import Pepper
from service.ledger.model.views import Principal
from service.maintenance.verify.report import verify_all
from service.store.postgres.store import PostgresStore
from service.store.witness.combined import CombinedWitness
from service.store.witness.redis import RedisWitness
from tests.contracts.caches import caches
from tests.factories import THREE_PEOPLE, ask, upload
from tests.faults.meddling import FORGERIES, OwnValkey
from tests.keys import LEDGER_KEY
from tests.leaks.opaque import fixed_in, written
from tests.memory.cache import MemoryWitness
from tests.rotation import TURN, times
from tests.waiting import PATIENCE_S, until
from tests.workflows.replicas import Replicas, replicas, truth

ROUNDS = times(len(FORGERIES), 50)
CANARIES = [b"canary-person", b"geheim", b"survey", b"values", b"limits", b"principal"]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnValkey]:
    """A server of this test's own, running."""
    opened = OwnValkey(tmp_path_factory.mktemp("valkey"))
    opened.start()
    yield opened
    opened.close()


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """A real database."""
    opened = PostgresStore(database_url, LEDGER_KEY)
    yield opened
    opened.close()


@pytest.fixture
def world(server: OwnValkey, store: PostgresStore) -> Iterator[Replicas]:
    """Two replicas before the server, as impatient as the service is; one folder and Redis are their witnesses."""
    pepper, folder = Pepper(bytes(32)), MemoryWitness()
    with ExitStack() as opened:

        def witness() -> CombinedWitness:
            second = RedisWitness(server.url, pepper.witness_key())
            return CombinedWitness(folder, [opened.enter_context(closing(second))])

        make = opened.enter_context(caches(server.url, timeout_s=0.05))
        yield opened.enter_context(replicas(store, shelves=make, witnesses=witness))


class Drill:
    """Requests and responses, and the laws that they must keep."""

    def __init__(self, world: Replicas, seed: int = TURN) -> None:
        self.world, self.random = world, random.Random(seed)
        self.seen: dict[str, bytes] = {}
        self.owners = [self._owner(key) for key, *_ in THREE_PEOPLE]
        self.counts: Counter[str] = Counter()

    def round(self) -> None:
        """A new query, an old one, and an account, each at some replica."""
        key = f"geheim {len(self.seen)}"
        self.seen[key] = self._ask(key)
        again = self.random.choice(list(self.seen))
        assert self._ask(again) == self.seen[again]
        self._read_account()

    def ask_until_followed(self, number: int) -> None:
        """Ask one replica alone, until the other has heard of it and caught up unasked."""
        world, other = self.world, 1 - number
        world.writer(other).submit_catch_up().result(timeout=PATIENCE_S)
        seq = world.seq(other)

        def is_followed() -> bool:
            key = f"geheim {len(self.seen)}"
            self.seen[key] = ask(world.replicas[number], world.analyst, key, reuse=False).body
            return world.seq(other) > seq

        until(is_followed)

    def settle(self) -> None:
        """Everything agrees in the end."""
        world = self.world
        for key, body in self.seen.items():
            for replica in world.replicas:
                assert ask(replica, world.analyst, key, reuse=False).body == body
        for replica in world.replicas:
            replica.registry.writer(replica.registry.record("survey")).catch_up()
        assert world.spent(0) == world.spent(1) == truth(world.store)
        assert [replica.fenced() for replica in world.replicas] == [0, 0]
        assert world.store.head(1).seq == len(self.seen)
        assert [each for report in verify_all(world.store) for each in report.findings] == []

    def _ask(self, key: str) -> bytes:
        return ask(self.random.choice(self.world.replicas), self.world.analyst, key, reuse=False).body

    def _read_account(self) -> None:
        person = self.random.randrange(len(THREE_PEOPLE))
        replica = self.random.choice(self.world.replicas)
        if self.random.random() < 0.5:  # a replica that has just come, and must find the account elsewhere or load it
            number = self.world.replicas.index(replica)
            replica.registry.writer(replica.registry.record("survey")).act(
                lambda _transaction, state: state.invalidate_all()
            )
            self.counts["unloaded"] += self.world.writer(number).position is None
        spent = str(rho_of_units(truth(self.world.store)[person]))
        (mine,) = replica.individuals.budgets(self.owners[person])
        assert mine.spent_rho == spent
        listed = self.random.choice(self.world.replicas).curators.budgets("survey", cursor=None, limit=10).items
        assert listed[person].spent_rho == spent

    def _owner(self, key: str) -> Principal:
        return self.world.replicas[0].principals.create(role="individual", name=key, dataset="survey", individual=key)[
            0
        ]


MEDDLING: dict[str, Callable[[OwnValkey], None]] = {
    "nothing": OwnValkey.nothing,
    "killed": OwnValkey.kill,
    "gone": OwnValkey.stop,
    "flushed": OwnValkey.flush,
    "set back": OwnValkey.set_back,
    "forged": OwnValkey.forge,
    "slow": OwnValkey.slow_down,
    "dripping": OwnValkey.drip,
}


@pytest.mark.parametrize("way", MEDDLING)
def test_only_time_is_lost(world: Replicas, server: OwnValkey, way: str) -> None:
    """For every fault of Redis before each round."""
    drill = Drill(world)
    for _ in range(ROUNDS):
        MEDDLING[way](server)
        drill.round()
    server.delay_s, server.drips = 0.0, False
    drill.settle()


def test_replicas_share_again_when_redis_is_back(world: Replicas, server: OwnValkey) -> None:
    """After it was killed: subscriptions, replies and the tail come back by themselves, in both directions.

    News that go out before everybody listens again are lost, as they may be, so there have to be more of them.
    """
    drill = Drill(world)
    drill.round()
    server.kill()
    for number in range(len(world.replicas)):
        drill.ask_until_followed(number)
    assert len(server.values()) > 0
    drill.settle()


def test_nothing_about_individuals_can_be_read_there(world: Replicas, server: OwnValkey) -> None:
    """No key of a person, no idempotency key, name, count or word of an answer, in any name or value.

    Nor do the values of many rounds have a byte in common, as they would if one told in the clear how far it is.
    """
    upload(world.replicas[0], "people", [("canary-person-17", "NO", 20, 1)])
    drill = Drill(world)

    seen: set[tuple[bytes, bytes]] = set()

    def sizes() -> int:
        drill.round()
        seen.update(server.values().items())
        return len({len(value) for _, value in seen})

    until(lambda: sizes() >= 2 and len(seen) >= 40)
    assert [name for name, _ in seen if name.startswith(b"sparing:witness:")] != []
    head = world.store.head(1)
    numbers = [*truth(world.store), head.worst_case_units, head.seq, head.data_version, head.slots]
    canaries = [*CANARIES, head.hash, head.hash.hex().encode(), *written(numbers)]
    assert min(map(len, canaries)) >= 6  # a shorter one would turn up by chance
    for name, value in seen:
        assert [canary for canary in canaries if canary in name or canary in value] == []
    assert fixed_in(value for _, value in seen) == {}
