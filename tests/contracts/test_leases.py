"""The port of leases, in memory and on Postgres: both pass the same tests."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from uuid import UUID, uuid4

import pytest

from service.ledger.model.rows import ReplicaAddress
from service.ledger.ports.store import Leases
from service.store.postgres.leases import PostgresLeases
from service.store.postgres.store import PostgresStore
from tests.contracts.stores import STORES, dataset
from tests.keys import LEDGER_KEY
from tests.memory.cache import MemoryLeases

ONE, OTHER = (ReplicaAddress(id=UUID(int=n), url=f"http://127.0.0.1:{n}") for n in (1, 2))
LONG_S = 3600.0
OVER_S = 0.0
Open = Callable[[ReplicaAddress], Leases]


@pytest.fixture(params=STORES)
def leases(request: pytest.FixtureRequest) -> Iterator[Open]:
    """The leases as a replica sees them, on each store in turn; datasets 1 and 2 exist."""
    if request.param == "memory":
        memory = MemoryLeases()
        yield lambda _: memory
        return
    url: str = request.getfixturevalue("database_url")
    with ExitStack() as opened:
        store = opened.enter_context(closing(PostgresStore(url, LEDGER_KEY)))
        assert [store.add_dataset(dataset(name)).id for name in ("first", "second")] == [1, 2]
        yield lambda replica: opened.enter_context(closing(PostgresLeases(url, replica)))


def test_a_dataset_belongs_to_the_first_claimant(leases: Open) -> None:
    """A later claim returns the owner, its URL and a time in the future; the owner's own claim prolongs the lease."""
    mine, theirs = leases(ONE), leases(OTHER)

    first = mine.claim(1, ONE, lease_s=LONG_S)
    assert (first.dataset_id, first.replica) == (1, ONE)
    assert LONG_S / 2 < round(first.left_s, 6) <= LONG_S  # an instant less an instant has their roundings
    second = theirs.claim(1, OTHER, lease_s=LONG_S)
    assert second.replica == ONE
    assert 0 < second.left_s <= first.left_s
    assert mine.claim(1, ONE, lease_s=2 * LONG_S).left_s > LONG_S
    assert theirs.claim(2, OTHER, lease_s=LONG_S).replica == OTHER


def test_an_expired_lease_goes_to_the_next_claimant(leases: Open) -> None:
    """No release is needed; the former owner's next claim returns the new owner."""
    mine, theirs = leases(ONE), leases(OTHER)
    mine.claim(1, ONE, lease_s=OVER_S)

    assert theirs.claim(1, OTHER, lease_s=LONG_S).replica == OTHER
    assert mine.claim(1, ONE, lease_s=LONG_S).replica == OTHER
    assert [lease.replica for lease in mine.renew(ONE, lease_s=LONG_S)] == [OTHER]


def test_a_lease_of_a_clock_that_was_years_ahead_is_not_in_force(leases: Open) -> None:
    """It has more left than two terms: it is listed to nobody, and goes to the next claimant."""
    mine, theirs = leases(ONE), leases(OTHER)
    mine.claim(1, ONE, lease_s=500 * 365 * 86_400.0)
    assert theirs.renew(OTHER, lease_s=LONG_S) == []
    assert theirs.claim(1, OTHER, lease_s=LONG_S).replica == OTHER
    assert [lease.replica for lease in mine.renew(ONE, lease_s=LONG_S)] == [OTHER]


def test_a_renewal_prolongs_all_of_a_replica_and_lists_all_that_are_in_force(leases: Open) -> None:
    """Other replicas' leases are listed unchanged; an expired lease is renewed unless claimed by another replica."""
    mine, theirs = leases(ONE), leases(OTHER)
    mine.claim(1, ONE, lease_s=OVER_S)
    theirs.claim(2, OTHER, lease_s=LONG_S)
    assert [lease.dataset_id for lease in theirs.renew(OTHER, lease_s=LONG_S)] == [2]

    listed = {lease.dataset_id: lease for lease in mine.renew(ONE, lease_s=2 * LONG_S)}
    assert {number: lease.replica for number, lease in listed.items()} == {1: ONE, 2: OTHER}
    assert listed[1].left_s > LONG_S >= listed[2].left_s > 0


def test_released_leases_are_free_at_once(leases: Open) -> None:
    """Releases the leases of one replica and no other's; releasing none, or twice, is no error."""
    mine, theirs = leases(ONE), leases(OTHER)
    mine.release(ONE)
    mine.claim(1, ONE, lease_s=LONG_S)
    theirs.claim(2, OTHER, lease_s=LONG_S)
    mine.release(ONE)
    mine.release(ONE)

    assert [lease.dataset_id for lease in mine.renew(OTHER, lease_s=LONG_S)] == [2]
    assert theirs.claim(1, OTHER, lease_s=LONG_S).replica == OTHER


def test_of_many_claims_at_once_one_is_granted(leases: Open) -> None:
    """All claims return the same owner."""
    replicas = [ReplicaAddress(id=uuid4(), url=f"http://127.0.0.1:{port}") for port in range(1, 7)]
    opened = [leases(replica) for replica in replicas]
    for number in (1, 2):
        with ThreadPoolExecutor(len(replicas)) as crowd:
            claims = [
                crowd.submit(each.claim, number, replica, lease_s=LONG_S)
                for each, replica in zip(opened, replicas, strict=True)
            ]
        assert len({claim.result().replica for claim in claims}) == 1
