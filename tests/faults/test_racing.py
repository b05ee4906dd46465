"""Two replicas race for one person's last unit, and deliver one request at once."""

import pytest

from service.ledger.ports.store import CommitUnclear
from tests.contracts.stores import answer, append, dataset, entry, ledger, open_store
from tests.faults.racing import race
from tests.rotation import times

RACES = times(40, 500)


@pytest.mark.parametrize("heat", range(times(1, 4)))
def test_the_last_unit_is_spent_once(database_url: str, heat: int) -> None:
    """Exactly the serial result: one of the two is charged, the other leaves the person out, both are answered."""
    assert race(database_url, RACES) == (RACES, 0)


def test_one_request_on_two_replicas_at_once_is_one_entry(database_url: str) -> None:
    """Both deliveries get the same bytes."""
    deliveries = times(20, 200)
    assert race(database_url, deliveries, same_key=True) == (deliveries, 0)


def test_four_replicas_are_no_different(database_url: str) -> None:
    """The lock does not know how many there are."""
    races = times(10, 100)
    assert race(database_url, races, rivals=4) == (races, 0)


def test_without_the_lock_the_fence_alone_holds(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded bug: of two that have read one head, the later is refused, and charges nobody on an old balance."""
    monkeypatch.setattr("service.store.postgres.transaction.LOCK_HEAD", "")
    with open_store("postgres", database_url) as store:
        record = store.add_dataset(dataset())
        with store.transaction(record.id, lock=True) as late:
            charged = append(store, record, {0: 1})
            following = entry(late.head, {0: 1})
            late.append([following], [answer(following, "late")], {})
            with pytest.raises(CommitUnclear):
                late.commit()
        assert ledger(store, record) == [charged]
