"""Kill -9 in the middle of what rewrites the ledger: the amendments that follow an erasure, and a pruning."""

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pytest

from service.ledger.ports.transaction import Transaction
from service.maintenance.verify.report import verify_all
from service.store.postgres.store import PostgresStore
from tests.faults.killing import Servers
from tests.faults.replicas import Replica, exchange
from tests.faults.scenario import LEDGER_KEY, PEOPLE, QUESTIONS, Stage, staged
from tests.faults.stopping import IMPATIENT
from tests.rotation import one_of
from tests.waiting import until

STRETCHES = {"STRETCH_ENTRIES": "3"}
ERASED = 3  # in Norway, and not among the older
ASKED = ("everybody", "north", "older") + ("shortened", "shortened north", "older") * 2 + ("everybody",)
KEPT = "SELECT seq FROM ledger JOIN datasets d ON d.id = dataset_id WHERE name = %s AND piece IS NOT NULL ORDER BY 1"

# (place, arrival, the sequence up to which entries are amended then)
DEATHS_OF_AMENDERS = (
    ("amending", 2, 0),
    ("amended", 1, 3),
    ("amending", 1, 3),
    ("amending", 4, 6),
    ("amended", 1, 9),
    ("amending", 1, 9),
)
# (place, arrival, the sequence up to which the ledger is pruned then, the first entry of which quantities are stored)
DEATHS_OF_PRUNERS = (
    ("totals-kept", 1, 0, 1),
    ("prune-committed", 1, 8, 1),
    ("dropping", 1, 8, 1),
    ("dropping", 2, 8, 4),
    ("dropped", 2, 8, 7),
)


@dataclass(slots=True, kw_only=True)
class Scene:
    """A dataset in which no budget runs out, and the queries that it has answered."""

    stage: Stage
    servers: Servers
    asked: list[str]

    def insist(self, replica: Replica, question: str) -> None:
        """One more query."""
        self.asked.append(question)
        self.stage.insist(replica.url, f"key-{len(self.asked)}", question)

    def expected(self) -> dict[int, int]:
        """Every individual's spent total by arithmetic, in units by slot."""
        totals = dict.fromkeys(range(PEOPLE), 0)
        for question in self.asked:
            for slot, units in QUESTIONS[question].costs().items():
                totals[slot] += units
        return totals

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """The dataset as the database has it."""
        with closing(PostgresStore(self.stage.database_url, LEDGER_KEY)) as store:
            record = store.dataset(self.stage.dataset)
            assert record is not None
            with store.transaction(record.id, lock=False) as transaction:
                yield transaction

    def check(self) -> None:
        """Raises AssertionError unless all verifies, and every account is what was charged to it."""
        with closing(PostgresStore(self.stage.database_url, LEDGER_KEY)) as store:
            reports = list(verify_all(store, self.servers.witness))
        assert [(report.entries, report.findings) for report in reports] == [(len(self.asked), [])]
        with self.snapshot() as transaction:
            spent = {slot: transaction.account_of(slot).spent for slot in range(PEOPLE)}
        assert spent == self.expected()

    def check_budgets(self, replica: Replica, *, erased: frozenset[int] = frozenset()) -> None:
        """Raises AssertionError unless a process shows the accounts of all others as they are."""
        self.stage.read(replica.url)
        expected = self.expected()
        assert self.stage.readings[-1].spent == {slot: expected[slot] for slot in expected if slot not in erased}

    def amended_to(self) -> int:
        """The sequence that the acts of amending have reached."""
        with self.snapshot() as transaction:
            return max((int(act.detail["to"]) for act in transaction.acts_of("amend")), default=0)

    def outcomes(self) -> list[str]:
        """The outcome of the erased individual in each entry."""
        with self.snapshot() as transaction:
            return [entry.quantities().own(ERASED, entry.law)[0] for entry in transaction.entries(after=0)]

    def pruned_to(self) -> int:
        """The sequence that the head says is pruned."""
        with self.snapshot() as transaction:
            return transaction.head.pruned_seq

    def kept(self) -> list[int]:
        """Sequences of entries of which quantities are stored, whatever the head says."""
        return [seq for (seq,) in self.stage.connection.execute(KEPT, [self.stage.dataset]).fetchall()]

    def dies(self, *command: str, place: str, arrival: int) -> None:
        """A process that is started for nothing else dies at a place."""
        drill = {"CHAOS": "1", "CHAOS_AT": f"{place}:kill:{arrival}"}
        assert self.run(*command, **drill) == -signal.SIGKILL

    def run(self, *command: str, **more: str) -> int:
        """The exit status of a command."""
        servers = self.servers
        urls = {"database_url": servers.database_url, "redis_url": servers.redis_url}
        return servers.nursery.run(*command, **urls, **STRETCHES, **more)


@pytest.fixture
def scene(servers: Servers) -> Iterator[Scene]:
    """Ten entries, all in a checkpoint: the process that has answered has ended by itself."""
    with staged(servers.database_url, questions=1000) as stage:
        scene = Scene(stage=stage, servers=servers, asked=[])
        with servers.replica() as replica:
            for question in ASKED:
                scene.insist(replica, question)
            replica.send(signal.SIGTERM)
            assert replica.await_end() == 0
        scene.check()
        yield scene


def test_amendments_go_on_wherever_a_process_is_killed(scene: Scene) -> None:
    """By a start alone; a stretch is amended wholly or not at all, and no account moves."""
    with scene.servers.replica("amending", 1, environment=STRETCHES) as replica:
        erase(scene, replica)
        assert replica.await_end() == -signal.SIGKILL
    check_amended(scene, 0)
    for place, arrival, seq in DEATHS_OF_AMENDERS:
        scene.dies("serve", "--port", "0", place=place, arrival=arrival)
        check_amended(scene, seq)
    check_end(scene)


@pytest.mark.parametrize("place", one_of(["amending", "amended"]))
def test_two_processes_amend_one_ledger(scene: Scene, place: str) -> None:
    """One stands still, another starts and goes on, the first wakes up and believes that it is still its turn."""
    drill = {"CHAOS": "1", "CHAOS_AT": f"{place}:stop:2"}
    with scene.servers.replica(environment=STRETCHES | IMPATIENT | drill) as stopped:
        erase(scene, stopped)
        stopped.await_stop()
        with scene.servers.replica(environment=STRETCHES | IMPATIENT) as awake:
            until(lambda: scene.amended_to() == len(ASKED))
            check_amended(scene, len(ASKED))
            stopped.send(signal.SIGCONT)
            for replica in (stopped, awake):
                scene.insist(replica, "older")
                scene.check_budgets(replica, erased=frozenset({ERASED}))
    check_end(scene)


def erase(scene: Scene, replica: Replica) -> None:
    """Erase an individual; the process may die before it says so."""
    path = f"/v1/datasets/{scene.stage.dataset}/individual?individual=p{ERASED}"
    assert exchange(replica.url, "DELETE", path, scene.stage.curator_key).status in {204, None}


def check_end(scene: Scene) -> None:
    """Raises AssertionError unless a process that is started ends the amendments."""
    with scene.servers.replica(environment=STRETCHES) as replica:
        until(lambda: scene.amended_to() == len(ASKED))
        check_amended(scene, len(ASKED))
        scene.check_budgets(replica, erased=frozenset({ERASED}))
    assert set(scene.outcomes()) == {"untouched"}


def check_amended(scene: Scene, to: int) -> None:
    """Raises AssertionError unless the erased stands in the entries after a sequence alone."""
    scene.check()
    assert scene.amended_to() == to
    touched = ["charged" if ERASED in QUESTIONS[question].touched else "untouched" for question in scene.asked]
    assert scene.outcomes() == ["untouched"] * to + touched[to:]


def test_a_pruning_ends_when_it_is_repeated_wherever_it_was_killed(scene: Scene) -> None:
    """Beside a process that goes on answering; what the journal says is pruned is read so by all."""
    command = ("ledger", "prune", "--dataset", scene.stage.dataset, "--before", "9")
    with scene.servers.replica() as replica:
        for place, arrival, pruned_to, first_kept in DEATHS_OF_PRUNERS:
            scene.dies(*command, place=place, arrival=arrival)
            scene.insist(replica, "north")
            scene.check()
            assert scene.pruned_to() == pruned_to
            assert scene.kept() == list(range(first_kept, len(scene.asked) + 1))
    assert scene.run(*command) == 0
    scene.check()
    assert scene.kept() == list(range(9, len(scene.asked) + 1))
    with scene.servers.replica() as replica:
        scene.check_budgets(replica)
        scene.insist(replica, "older")
    scene.check()
