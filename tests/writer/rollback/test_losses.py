"""Losses of a database that was put back: told by dataset, and a missing dataset is not registered anew."""

from collections.abc import Iterator

import pytest

from service.ledger.model.errors import DatasetMissing, Unavailable, UnknownDataset
from service.ledger.ports.witness import WitnessUnavailable
from service.workflows.replica import Replica
from service.writer.rollback.losses import losses
from tests.factories import THREE_PEOPLE, TWO_PEOPLE, analyst, ask, open_replica, register, upload
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.workflows.surveys import surveyed


@pytest.fixture
def witness() -> MemoryWitness:
    """The witness, which is never put back."""
    return MemoryWitness()


@pytest.fixture
def replica(store: MemoryStore, witness: MemoryWitness) -> Iterator[Replica]:
    """A replica with the dataset `survey` of two people, and one answer."""
    with surveyed(store, TWO_PEOPLE, witness=witness) as opened:
        ask(opened, analyst(opened), "a")
        yield opened


def begin(replica: Replica, name: str, *, is_asked: bool = True) -> None:
    """One more dataset, with three people and, as a rule, an answer."""
    register(replica, name)
    upload(replica, "people", THREE_PEOPLE, name=name)
    if is_asked:
        ask(replica, analyst(replica, name), "a", dataset=name)


def told(store: MemoryStore, witness: MemoryWitness) -> list[str]:
    """The lines of all losses."""
    return [str(loss) for loss in losses(store, witness)]


def test_entries_acts_and_people_are_told_by_number(
    replica: Replica, store: MemoryStore, witness: MemoryWitness
) -> None:
    """From the first that is missing to the last that was witnessed; nothing where nothing is."""
    backup = dict(store.kept)
    assert told(store, witness) == []
    upload(replica, "people", [("joe", "NO", 1, 1), ("kim", "NO", 1, 1)])
    assert told(store, witness) == []
    ask(replica, analyst(replica, "bea"), "b", reuse=False)
    replica.curators.open_epoch("survey")
    store.kept = backup
    expected = "survey: witnessed and missing: ledger entry 2, acts 2 to 3, up to 2 individuals that had joined"
    assert told(store, witness) == [expected]


def test_a_dataset_that_is_missing_as_a_whole_is_told(
    replica: Replica, store: MemoryStore, witness: MemoryWitness
) -> None:
    """Also one that has answered nothing; but not one that was deleted, which needs an empty ledger."""
    backup = dict(store.kept)
    for name in ("town-2", "quiet"):
        begin(replica, name, is_asked=name == "town-2")
    begin(replica, "gone", is_asked=False)
    replica.curators.delete("gone")
    assert told(store, witness) == []
    store.kept = backup
    missing = "the database does not have this dataset; witnessed and missing:"
    assert told(store, witness) == [
        f"quiet: {missing} act 1, up to 3 individuals that had joined",
        f"town-2: {missing} ledger entry 1, act 1, up to 3 individuals that had joined",
    ]


def test_a_missing_dataset_is_not_registered_anew(replica: Replica, store: MemoryStore) -> None:
    """Neither as it was nor with another budget: its people would begin with whole budgets. Other names are free."""
    backup = dict(store.kept)
    begin(replica, "town")
    store.kept = backup
    for rho in ("0.5", "0.25"):
        with pytest.raises(DatasetMissing, match="Have a newer backup put back"):
            register(replica, "town", rho=rho)
    assert store.dataset("town") is None
    register(replica, "town-2")


def test_one_that_has_answered_nothing_is_refused_as_it_was_alone(replica: Replica, store: MemoryStore) -> None:
    """Its own registration would take over acts that are missing; another one has nothing to do with them."""
    backup = dict(store.kept)
    begin(replica, "town", is_asked=False)
    store.kept = backup
    with pytest.raises(DatasetMissing):
        register(replica, "town")
    register(replica, "town", rho="0.25")


def test_a_new_dataset_has_nothing_of_the_one_whose_number_it_gets(replica: Replica, store: MemoryStore) -> None:
    """The database gives the number again; memory, writer, counts and guard of the missing one go."""
    backup = dict(store.kept)
    begin(replica, "town")
    assert replica.curators.dataset("town").individuals == 3
    number = replica.registry.record("town").id
    store.kept = backup
    register(replica, "city")
    assert replica.registry.record("city").id == number
    assert replica.curators.dataset("city").individuals == 0
    upload(replica, "people", TWO_PEOPLE, name="city")
    assert ask(replica, analyst(replica, "cy"), "a", dataset="city").sequence == 1
    assert {row.key for row in replica.curators.budgets("city", cursor=None, limit=9).items} == {"ann", "bob"}
    assert replica.readiness.check_witnesses() == []


def test_another_process_displaces_it_when_it_looks(store: MemoryStore, witness: MemoryWitness) -> None:
    """The registration was made elsewhere: the first look at the new name is enough."""
    with open_replica(store, witness=witness) as here, open_replica(store, witness=witness) as there:
        register(here)
        backup = dict(store.kept)
        begin(there, "town")
        store.kept = backup
        begin(here, "city")
        assert ask(there, analyst(there, "cy"), "b", dataset="city", reuse=False).sequence == 2
        assert there.curators.dataset("city").individuals == 3


def test_without_its_witness_nothing_is_registered(store: MemoryStore) -> None:
    """Unavailable, until it can be read."""

    class AwayWitness(MemoryWitness):
        def names(self) -> list[str]:
            raise WitnessUnavailable

    with open_replica(store, witness=AwayWitness()) as opened, pytest.raises(Unavailable):
        register(opened)


def test_the_name_of_a_missing_dataset_leads_nowhere(replica: Replica, store: MemoryStore) -> None:
    """This process still had it in memory: its queries are never answered by the dataset that got its number."""
    backup = dict(store.kept)
    begin(replica, "town")
    who = analyst(replica, "tom")
    store.kept = backup
    register(replica, "city")
    for key in ("a", "z"):
        with pytest.raises(UnknownDataset):
            ask(replica, who, key, dataset="town", reuse=False)
