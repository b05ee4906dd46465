"""Reads of accounts: equal from memory and from slices, and never from slices of another position."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest

from service.ledger.model.errors import NotFound, Unavailable
from service.ledger.model.rows import OwnAccount
from service.ledger.model.views import Principal
from service.ledger.ports.cache import SLICE_SLOTS, LedgerPosition
from service.ledger.ports.store import StoreUnavailable
from service.query.keys import Key
from service.reads import accounts
from service.reads.accounts import SLICES_MAX, Wanted
from service.reads.ledger import snapshot
from tests.factories import ask, upload
from tests.gated_store import GatedStore
from tests.waiting import PATIENCE_S, until
from tests.workflows.replicas import Replicas, replicas


@pytest.fixture
def world() -> Iterator[Replicas]:
    """Two replicas, after one query."""
    with replicas(GatedStore()) as made:
        ask(made.replicas[0], made.analyst, "k")
        yield made
        made.store.gate.set()


def individual(world: Replicas, key: str = "bob") -> Principal:
    """The principal of an individual."""
    principal, _ = world.replicas[0].principals.create(role="individual", name=key, dataset="survey", individual=key)
    return principal


def from_slices(world: Replicas, number: int = 1) -> dict[str, OwnAccount] | None:
    """The accounts of all individuals that a replica finds in the cache, by key."""
    replica = world.replicas[number]
    with snapshot(world.writer(number).guard) as transaction:
        people = transaction.keys_of(after_slot=-1, limit=100, bytes_max=2**20)
        wanted = Wanted.of(replica.registry.record("survey"), transaction, people)
    found = accounts._from_cache(wanted, replica._exchange)
    return None if found is None else {key: own for (_, key), own in zip(people, found, strict=True)}


def leave(world: Replicas, number: int = 0) -> None:
    """Have a replica read all accounts, and wait until its slices are in the cache."""
    place = here(world, number)
    world.replicas[number].curators.budgets("survey", cursor=None, limit=100)
    genesis = place.genesis
    until(lambda: [each.place for each in world.caches[number].slices(genesis, [0])] == [place])


def here(world: Replicas, number: int = 0) -> LedgerPosition:
    """The ledger position of the database."""
    return LedgerPosition.of(world.replicas[number].registry.record("survey"), world.store.head(1))


def test_an_account_is_read_while_the_writer_is_busy(world: Replicas) -> None:
    """The individual and the curator read it from another replica's slices, without waiting for the writer."""
    bob = individual(world)
    usual = (
        world.replicas[0].individuals.budgets(bob),
        world.replicas[0].curators.budgets("survey", cursor=None, limit=100),
    )
    leave(world)
    world.store.gate.clear()
    held = world.writer(1).submit_act(lambda transaction, state: None)
    world.store.wait_until_reached()
    assert world.writer(1).glimpse(lambda state: state.seq) is None
    assert (
        world.replicas[1].individuals.budgets(bob),
        world.replicas[1].curators.budgets("survey", cursor=None, limit=100),
    ) == usual
    assert world.replicas[1].curators.budgets("survey", cursor=None, limit=2).items == usual[1].items[:2]
    world.store.gate.set()
    held.result(timeout=PATIENCE_S)


def test_an_account_is_read_without_loading_the_dataset(world: Replicas) -> None:
    """Its writer gets no work."""
    leave(world)
    world.unload(1)
    assert world.replicas[1].individuals.budgets(individual(world)) == world.replicas[0].individuals.budgets(
        individual(world)
    )
    assert world.writer(1).position is None


def test_slices_of_an_earlier_position_are_not_used(world: Replicas) -> None:
    """After a query, a lowered limit, a pause or an upload of individuals."""
    bob = individual(world)
    leave(world)
    assert from_slices(world) is not None
    ask(world.replicas[1], world.analyst, "another", reuse=False)
    assert from_slices(world) is None
    leave(world)
    assert from_slices(world) is not None
    world.replicas[1].individuals.lower_limit(bob, "survey", limit_rho=Decimal("0.3"))
    assert from_slices(world) is None
    leave(world)
    assert from_slices(world) is not None
    world.replicas[1].individuals.lower_limit(bob, "survey", pause=True)
    assert from_slices(world) is None
    leave(world)
    assert (from_slices(world) or {})["bob"].paused
    upload(world.replicas[1], "people", [("zoe", "NO", 20, 1)])
    assert from_slices(world) is None


@pytest.mark.parametrize("change", [{"seq": 2}, {"fence": 2}, {"hash": bytes(32)}, {"data_version": 9}])
def test_slices_of_another_position_are_not_used(world: Replicas, change: dict[str, object]) -> None:
    """Slices that are ahead, of another fence, or of a clone at the same sequence are not used."""
    leave(world)
    (true,) = world.caches[0].slices(here(world).genesis, [0])
    world.caches[0]._values._room.values.clear()  # type: ignore[attr-defined]
    world.caches[0].share([replace(true, place=replace(true.place, **change), spent=true.spent * 0)], [])  # type: ignore[arg-type]
    assert world.caches[1].slices(here(world).genesis, [0]) != []
    assert from_slices(world) is None


def test_a_missing_or_short_slice_gives_no_accounts(world: Replicas) -> None:
    """The cache gives all wanted accounts, or none."""
    leave(world)
    (true,) = world.caches[0].slices(here(world).genesis, [0])
    room = world.caches[0]._values._room  # type: ignore[attr-defined]
    room.values.clear()
    short = replace(true, limits=true.limits[:2], spent=true.spent[:2], paused=true.paused[:2])
    world.caches[0].share([short], [])
    assert from_slices(world) is None
    room.values.clear()
    assert from_slices(world) is None


def test_an_unknown_individual_is_not_found(world: Replicas) -> None:
    """NotFound is raised with the writer idle or busy."""
    nobody = replace(individual(world), individual=Key("nobody"))
    leave(world)
    with pytest.raises(NotFound):
        world.replicas[1].individuals.budgets(nobody)
    world.unload(1)
    with pytest.raises(NotFound):
        world.replicas[1].individuals.budgets(nobody)


def test_a_slice_is_shared_once(world: Replicas) -> None:
    """Repeating a read stores nothing; individuals scattered over many slices are never shared."""
    leave(world)
    exchange, place = world.replicas[0]._exchange, here(world)
    assert not exchange.wants(place, 0)
    assert exchange.wants(place, 1)
    scattered = [(0, Key("ann")), *((n * SLICE_SLOTS, Key("x")) for n in range(1, SLICES_MAX + 1))]
    head = world.store.head(1)
    assert accounts._from_cache(Wanted(people=scattered, place=place, head=head), exchange) is None


def test_a_database_that_is_away_is_unavailable(world: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    """The read is refused as the writer would refuse it."""
    leave(world)
    world.unload(1)

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(world.store, "transaction", away)
    with pytest.raises(Unavailable):
        world.replicas[1].individuals.budgets(
            Principal(
                id=world.analyst.id,
                role="individual",
                name="bob",
                dataset="survey",
                individual=Key("bob"),
                allowance_units=None,
            )
        )


@pytest.mark.parametrize("in_the_way", ["not loaded", "busy", "behind"])
def test_an_own_account_is_read_outside_the_writer(world: Replicas, in_the_way: str) -> None:
    """If neither memory nor the cache has it, it comes from the database, without waiting for the writer."""
    bob, writer = individual(world), world.writer(1)
    ask(world.replicas[0], world.analyst, "another", reuse=False)
    usual = world.replicas[0].individuals.budgets(bob)
    until(lambda: writer.position == world.writer(0).position)
    if in_the_way == "not loaded":
        writer.submit_look(lambda state: state.invalidate_all()).result(timeout=PATIENCE_S)
    if in_the_way == "behind":
        writer.submit_look(lambda state: setattr(state, "seq", state.seq - 1)).result(timeout=PATIENCE_S)
    if in_the_way == "busy":
        world.store.gate.clear()
        held = writer.submit_act(lambda transaction, state: None)
        world.store.wait_until_reached()
    position = writer.position
    world.caches[0]._values._room.values.clear()  # type: ignore[attr-defined]

    assert world.replicas[1].individuals.budgets(bob) == usual
    assert writer.position == position
    if in_the_way == "busy":
        world.store.gate.set()
        held.result(timeout=PATIENCE_S)
