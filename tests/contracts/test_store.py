"""The store port, as the in-memory twin and as Postgres: what one promises, the other keeps."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray

from service.query.coding import coding_of
from service.query.schema import Schema
from service.workflows.errors import NameTaken
from service.workflows.ports import Store
from service.workflows.records import Asked, DatasetRecord, PrincipalRecord
from tests.contracts.stores import ANALYST, AT, burn, dataset, entry, reply

pytestmark = pytest.mark.slow


def test_a_registration_reads_back_as_it_was_made_and_its_name_is_taken(store: Store) -> None:
    """A dataset is found by name with every field, starts at its genesis, and cannot be registered twice."""
    kept = store.add_dataset(dataset())

    assert kept == replace(dataset(), id=kept.id)
    assert store.dataset("survey") == kept
    assert store.dataset("nothing") is None
    assert store.datasets() == [kept]
    head = store.head(kept.id)
    assert (head.seq, head.hash, head.epoch, head.slots, head.worst_case_units) == (0, kept.genesis, 1, 0, 0)
    with pytest.raises(NameTaken):
        store.add_dataset(dataset())


def test_an_entry_and_its_reply_are_there_together_after_commit(store: Store, record: DatasetRecord) -> None:
    """What commit made durable reads back whole, and the head has moved to it."""
    with store.transaction(record.id, lock=True) as transaction:
        first = entry(transaction.head, {0: 5, 3: 5}, (2,))
        transaction.append([first], [reply(first)], {ANALYST: 1_374_389_535})
        transaction.commit()

    nobody = UUID(int=8)
    asked = [
        Asked(address=(ANALYST, "key-1"), query_hash="q"),
        Asked(address=(ANALYST, "other"), query_hash="unasked"),
        Asked(address=(nobody, "key-1"), query_hash=None),
    ]
    with store.transaction(record.id, lock=False, asked=asked) as transaction:
        assert list(transaction.entries(after=0)) == [first]
        assert list(transaction.entries(after=1)) == []
        assert transaction.entries_before(before=5, limit=10) == [first]
        assert transaction.known.answers == {(ANALYST, "key-1"): reply(first)}
        assert transaction.known.reusable == {"q": first}
        assert transaction.known.worst_cases.get(ANALYST) == 1_374_389_535
        assert transaction.known.worst_cases.get(nobody, 0) == 0
        assert (transaction.head.seq, transaction.head.hash) == (1, first.hash)
        assert transaction.head.worst_case_units == 1_374_389_535
    assert store.worst_cases_of(ANALYST) == {"survey": 1_374_389_535}


@pytest.mark.parametrize(("entries", "people"), [(1, 100_000), (256, 40)])
def test_what_no_socket_takes_at_once_is_committed(
    store: Store, record: DatasetRecord, entries: int, people: int
) -> None:
    """An entry that charges a hundred thousand people differently, and a full batch: nobody waits for the other end."""
    appended = []
    with store.transaction(record.id, lock=True, asked=[Asked(address=(ANALYST, "k"), query_hash=None)]) as transaction:
        head = transaction.head
        for _ in range(entries):
            appended.append(entry(head, {slot: slot + 1 for slot in range(people)}))
            head = replace(head, seq=head.seq + 1, hash=appended[-1].hash, worst_case_units=head.worst_case_units)
        replies = [replace(reply(each, f"key-{each.seq}"), body=b"x" * 4000) for each in appended]
        transaction.append(appended, replies, {ANALYST: 1})
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        assert [each.hash for each in transaction.entries(after=0)] == [each.hash for each in appended]


def test_two_writers_wait_for_each_other(store: Store, record: DatasetRecord) -> None:
    """Who locks second sees what the first has committed: of forty entries by two writers none is lost or refused."""

    def write(name: str) -> None:
        for number in range(20):
            with store.transaction(record.id, lock=True) as transaction:
                following = entry(transaction.head, {0: 1})
                transaction.append([following], [reply(following, f"{name}-{number}")], {})
                transaction.commit()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, name) for name in ("one", "two")]:
            done.result()
    assert store.head(record.id).seq == 40


def test_leaving_without_commit_leaves_nothing(store: Store, record: DatasetRecord) -> None:
    """An exception, or simply no commit, undoes entry, reply, people and head alike."""

    def append_and_fail() -> None:
        with store.transaction(record.id, lock=True) as transaction:
            first = entry(transaction.head, {0: 5})
            transaction.append([first], [reply(first)], {ANALYST: 1})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        append_and_fail()
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(np.array([0]), ["ann"], np.array([10]))
        transaction.journal("rows", {}, slots=1)

    asked = [Asked(address=(ANALYST, "key-1"), query_hash="q")]
    with store.transaction(record.id, lock=False, asked=asked) as transaction:
        assert list(transaction.entries(after=0)) == []
        assert (transaction.known.answers, transaction.known.reusable) == ({}, {})
        assert transaction.slots_of(["ann"]).tolist() == [-1]
    assert store.head(record.id).slots == 0


def test_people_records_and_limits_read_back_by_slot(store: Store, record: DatasetRecord) -> None:
    """Accounts and typed columns, NULLs included, come back as the codes that went in."""
    slots = np.array([0, 1, 2])
    codes: dict[str, NDArray[Any]] = {
        "country": np.array([0, 1, 2], dtype=np.uint8),
        "age": np.array([0, 125, 126], dtype=np.uint8),
        "spend": np.array([0, 2**40 + 1, (int(502.5 * 2**43)) + 1], dtype=np.uint64),
        "member": np.array([2, 1, 0], dtype=np.uint8),
    }
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(slots, ["ann", "bob", "eve"], np.array([10, 20, 30]))
        transaction.add_records("people", slots, codes)
        transaction.add_records(
            "visits", np.array([2, 0, 2]), {"item": np.array([7, 99_999, 100_000], dtype=np.uint32)}
        )
        transaction.journal("rows", {"rows": 3}, slots=3)
        transaction.commit()

    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.head.slots == 3
        assert transaction.head.data_version == 1
        assert transaction.slots_of(["eve", "nobody", "ann"]).tolist() == [2, -1, 0]
        assert transaction.keys_of(after_slot=0, limit=5) == [(1, "bob"), (2, "eve")]
        people = transaction.individuals()
        order = np.argsort(people.slots)
        assert people.limits[order].tolist() == [10, 20, 30]
        assert people.present.all()
        back_slots, back = transaction.records("people")
        order = np.argsort(back_slots)
        for name, expected in codes.items():
            assert back[name].dtype == expected.dtype
            assert back[name][order].tolist() == expected.tolist()
        visit_slots, visits = transaction.records("visits")
        pairs = sorted(zip(visit_slots.tolist(), visits["item"].tolist(), strict=True))
        assert pairs == [(0, 99_999), (2, 7), (2, 100_000)]
    assert store.row_counts(record.id) == (3, {"people": 3, "visits": 3})


def test_accounts_read_back_whether_they_are_as_most_or_not(store: Store, record: DatasetRecord) -> None:
    """The dataset's own limit, a lower one, none at all, and a record that has gone; with no slot left out or some."""
    usual = record.budget_units
    with store.transaction(record.id, lock=True) as transaction:
        assert transaction.individuals().slots.size == 0
        transaction.add_individuals(np.arange(4), ["ann", "bob", "eve", "dan"], np.array([usual, usual, 7, 0]))
        transaction.journal("rows", {}, slots=4)
        transaction.erase(0, bytes(32))
        transaction.erase(2, b"x" * 32)
        dense = transaction.individuals()
        transaction.add_individuals(np.array([9]), ["kim"], np.array([usual]))
        sparse = transaction.individuals()

    for people, slots in ((dense, [0, 1, 2, 3]), (sparse, [0, 1, 2, 3, 9])):
        order = np.argsort(people.slots)
        assert people.slots[order].tolist() == slots
        assert people.limits[order].tolist() == [usual, usual, 7, 0, usual][: len(slots)]
        assert people.present[order].tolist() == [False, True, False, True, True][: len(slots)]


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (-(2**15), 2**15 - 2),  # with what stands for NULL exactly sixteen bits,
        (-(2**15), 2**15 - 1),  # one more,
        (-(2**15) - 1, 0),
        (-(2**31), 2**31 - 2),  # exactly thirty-two,
        (-(2**31), 2**31 - 1),
        (-(2**31) - 1, 0),
        (1 - 2**53, 2**53 - 1),
    ],
)
def test_the_ends_of_a_domain_read_back(store: Store, lower: int, upper: int) -> None:
    """The least value, the greatest, and NULL, whatever width they travel at."""
    column = {"type": "integer", "lower": lower, "upper": upper}
    schema = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": {"number": column}}})
    kept = store.add_dataset(replace(dataset(), schema=schema))
    coding = coding_of(kept.schema.tables["people"].columns["number"])
    codes = np.array([0, coding.span, coding.null_code], dtype=coding.dtype)
    with store.transaction(kept.id, lock=True) as transaction:
        transaction.add_individuals(np.arange(3), ["ann", "bob", "eve"], np.full(3, 5))
        transaction.add_records("people", np.arange(3), {"number": codes})
        transaction.journal("rows", {}, slots=3)
        slots, read = transaction.records("people")
        assert read["number"].dtype == coding.dtype
        assert read["number"][np.argsort(slots)].tolist() == codes.tolist()


def test_an_erased_individual_leaves_a_tombstone_and_may_return_to_the_slot(
    store: Store, record: DatasetRecord
) -> None:
    """The key and every row go; the slot is found by tombstone alone, and can be filled again."""
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(np.array([0, 1]), ["ann", "bob"], np.array([10, 20]))
        transaction.add_records("visits", np.array([0, 1, 0]), {"item": np.array([1, 2, 3], dtype=np.uint32)})
        transaction.journal("rows", {}, slots=2)
        transaction.erase(0, bytes(32))
        assert transaction.has_tombstones()
        transaction.commit()

    with store.transaction(record.id, lock=True) as transaction:
        assert transaction.slots_of(["ann", "bob"]).tolist() == [-1, 1]
        assert transaction.slots_of_tombstones([bytes(32), b"x" * 32]).tolist() == [0, -1]
        assert transaction.records("visits")[0].tolist() == [1]
        assert transaction.individuals().present.tolist().count(False) == 1
        transaction.add_individuals(np.array([0]), ["ann"], np.array([9]))
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.slots_of(["ann"]).tolist() == [0]
        assert not transaction.has_tombstones()


def test_a_limit_only_falls(store: Store, record: DatasetRecord) -> None:
    """Lowering sticks; an attempt to raise changes nothing."""
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(np.array([0]), ["ann"], np.array([10]))
        transaction.set_limit(0, 4)
        transaction.set_limit(0, 8)
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.individuals().limits.tolist() == [4]


def test_a_burn_is_an_entry_that_is_found_as_one(store: Store, record: DatasetRecord) -> None:
    """It reads back whole, among the entries and among the burns, and no question is answered with it."""
    with store.transaction(record.id, lock=True) as transaction:
        first = entry(transaction.head, {0: 5})
        transaction.append([first], [reply(first)], {})
        second = burn(transaction.head, {0: 7, 2: 9})
        transaction.append([second], [], {})
        transaction.fence_off(4, 16)
        transaction.journal("reconcile", {})
        transaction.commit()

    asked = [Asked(address=(ANALYST, "key-2"), query_hash="")]
    with store.transaction(record.id, lock=True, asked=asked) as transaction:
        assert transaction.burns() == [second]
        assert list(transaction.entries(after=0)) == [first, second]
        assert transaction.hashes([0, 1, 2, 3]) == {1: first.hash, 2: second.hash}
        assert transaction.hashes([]) == {}
        assert transaction.known.reusable == {}
        head = transaction.head
        assert (head.seq, head.hash, head.fence, head.joining_units, head.data_version) == (2, second.hash, 4, 16, 1)
        third = entry(head, {0: 1})
        transaction.append([third], [reply(third, "third")], {})
        transaction.commit()
    assert store.head(record.id).seq == 3
    assert sorted(shown.seq for _, shown, _ in store.answers_of(ANALYST, before=None, limit=10)) == [1, 3]


def test_the_journal_moves_the_data_version_and_the_epoch(store: Store, record: DatasetRecord) -> None:
    """Acts are counted, so that other replicas know that records have changed."""
    with store.transaction(record.id, lock=True) as transaction:
        transaction.journal("epoch", {"epoch": 2}, epoch=2)
        transaction.journal("rows", {"rows": 0}, slots=0)
        transaction.commit()
    head = store.head(record.id)
    assert (head.epoch, head.data_version, head.slots, head.seq) == (2, 2, 0, 0)


def test_what_can_be_reused_is_the_newest_of_this_epoch(store: Store, record: DatasetRecord) -> None:
    """An older entry with the same hash is passed over, and the next public epoch knows none of them."""
    asked = [Asked(address=(ANALYST, "new"), query_hash="q")]
    with store.transaction(record.id, lock=True) as transaction:
        first = entry(transaction.head, {0: 1})
        transaction.append([first], [reply(first, "a")], {})
        second = entry(transaction.head, {0: 1})
        transaction.append([second], [reply(second, "b")], {})
        transaction.commit()
    with store.transaction(record.id, lock=True, asked=asked) as transaction:
        assert transaction.known.reusable == {"q": second}
        transaction.journal("epoch", {"epoch": 2}, epoch=2)
        transaction.commit()
    with store.transaction(record.id, lock=True, asked=asked) as transaction:
        assert transaction.known.reusable == {}


def test_principals_are_kept_listed_and_revoked_once(store: Store, record: DatasetRecord) -> None:
    """A principal reads back whole; revoking works once and says so."""
    people = [
        PrincipalRecord(
            id=UUID(int=n),
            role="analyst",
            name=f"ana {n}",
            dataset=record.name if n else None,
            individual=None,
            allowance_units=n or None,
            key_hash=bytes(32),
            created_at=AT,
        )
        for n in range(3)
    ]
    for principal in people:
        store.add_principal(principal)

    assert store.principal(UUID(int=1)) == people[1]
    assert store.principal(UUID(int=9)) is None
    assert store.principals(after=None, limit=2) == people[:2]
    assert store.principals(after=UUID(int=1), limit=2) == people[2:]
    assert store.revoke_principal(UUID(int=1), AT)
    assert not store.revoke_principal(UUID(int=1), AT)
    assert not store.revoke_principal(UUID(int=9), AT)
    assert store.principal(UUID(int=1)) == replace(people[1], revoked_at=AT)


def test_own_replies_are_found_newest_first_and_by_query(store: Store, record: DatasetRecord) -> None:
    """An analyst's listing holds its own replies alone, page after page."""
    with store.transaction(record.id, lock=True) as transaction:
        first = entry(transaction.head, {0: 1})
        transaction.append([first], [reply(first, "a")], {})
        second = entry(transaction.head, {0: 1})
        later = replace(reply(second, "b"), at=AT + timedelta(seconds=5))
        transaction.append([second], [later], {})
        transaction.commit()

    assert store.answers_of(ANALYST, before=None, limit=10) == [
        (record, later, second),
        (record, reply(first, "a"), first),
    ]
    assert store.answers_of(ANALYST, before=(later.at, later.query_id), limit=1) == [(record, reply(first, "a"), first)]
    assert store.answers_of(UUID(int=8), before=None, limit=10) == []
    assert store.answer_of(ANALYST, first.query_id) == (record, reply(first, "a"), first)
    assert store.answer_of(UUID(int=8), first.query_id) is None
    assert store.problems() == []
