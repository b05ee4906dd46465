"""Listings of the ledger and of acts, in memory and on Postgres."""

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.ledger.model.ledger_entry import EntryRecord, LedgerEntry
from service.ledger.model.pieces import Outcome, OwnOutcome
from service.ledger.model.rows import Checkpoint, DatasetRecord, EntryFilter, OwnCharge
from service.ledger.ports.store import Store
from service.query.division import PAGE_SLOTS
from service.query.keys import Key
from tests.contracts.stores import (
    ANALYST,
    answer,
    burn,
    dataset,
    entry,
    join,
    priced_entry,
    spent_by,
    totals,
    wall_clock,
)

SLOTS = 90
MANY_BYTES = 2**20
CHARGES = st.dictionaries(st.integers(0, SLOTS - 1), st.one_of(st.none(), st.integers(1, 3), st.integers(1, 2**61)))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One query to append: by slot the units charged, or None for left out; the number of slots; the query's length."""

    charged: dict[int, int]
    left_out: tuple[int, ...]
    length: int
    slots: int = 200_000
    is_priced: bool = False  # the numbers are squared norms, of which the charges are the prices

    @classmethod
    def of(cls, people: dict[int, int | None], length: int, slots: int, *, is_priced: bool) -> "Asked":
        """A query from one drawn dictionary."""
        charged = {slot: units for slot, units in people.items() if units is not None}
        left_out = tuple(set(people) - set(charged))
        return cls(charged=charged, left_out=left_out, length=length, slots=slots, is_priced=is_priced)


@pytest.mark.parametrize("mechanism", ["laplace zcdp", "noise of a later version"])
def test_noise_that_is_not_gaussian_is_found(store: Store, mechanism: str) -> None:
    """It is found in its own dataset alone, whatever comes after it; ticks, Gaussians and burns do not count."""
    record, other = (store.add_dataset(dataset(name)) for name in ("survey", "other"))
    for each in ("gaussian", "gaussian prepaid 1", mechanism, "gaussian"):
        with store.transaction(record.id, lock=True) as transaction:
            assert transaction.has_other_noise() == (transaction.head.seq == 3)
            made = replace(entry(transaction.head, {1: 5}, ()), mechanism=each).sealed()
            transaction.append([made], [answer(made, f"key-{made.seq}")], {ANALYST: 1})
            transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.has_other_noise()
    with store.transaction(other.id, lock=False) as transaction:
        assert not transaction.has_other_noise()


def appended(store: Store, record: DatasetRecord, asked: list[Asked]) -> list[LedgerEntry]:
    """Append each entry in a commit of its own; the entries, newest first."""
    made = []
    for each in asked:
        with store.transaction(record.id, lock=True) as transaction:
            are_equal = len(set(each.charged.values())) == 1
            head, slots = transaction.head, each.slots
            if each.is_priced:
                drawn = priced_entry(head, each.charged, each.left_out, slots=slots, one_norm=are_equal)
            else:
                drawn = entry(head, each.charged, each.left_out, slots=slots)
            made.append(replace(drawn, canonical=b"q" * each.length).sealed())
            transaction.append(made[-1:], [answer(made[-1], f"key-{made[-1].seq}")], {ANALYST: 1})
            transaction.commit()
    return made[::-1]


def as_records(made: list[LedgerEntry]) -> list[EntryRecord]:
    """The rows that a listing of all entries must give, newest first."""
    names = EntryRecord.__dataclass_fields__.keys() - {"values"}
    return [EntryRecord(**{name: getattr(each, name) for name in names}) for each in made]


def as_charge(made: LedgerEntry, slot: int) -> OwnCharge:
    """The receipt of one slot for an entry, from the charges as Python decodes them."""
    quantities = made.quantities()
    prices = dict(zip(quantities.touched.tolist(), quantities.prices(made.law).tolist(), strict=True))
    paid = set(quantities.touched[quantities.active].tolist())
    asked_units = prices.get(slot, 0)
    outcome: Outcome = "charged" if slot in paid else "left_out" if slot in prices else "untouched"
    return OwnCharge(
        seq=made.seq,
        query_id=made.query_id,
        analyst_id=made.analyst_id,
        canonical=made.canonical,
        asked_at=made.asked_at,
        kind=made.kind,
        part=OwnOutcome(outcome, asked_units if slot in paid else 0, asked_units),
    )


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    asked=st.lists(
        st.builds(Asked.of, CHARGES, st.integers(0, 300), st.sampled_from([SLOTS, 200_000]), is_priced=st.booleans()),
        max_size=8,
    ),
    limit=st.integers(1, 5),
    bytes_max=st.integers(1, 700),
)
def test_pages_of_the_ledger_lose_and_repeat_nothing(
    store: Store, asked: list[Asked], limit: int, bytes_max: int
) -> None:
    """Entries come newest first, with counts and without charges; each receipt agrees with the decoded entry."""
    record = store.add_dataset(dataset(f"d{uuid4().hex}"))
    made = appended(store, record, asked)
    seen: list[EntryRecord] = []
    with store.transaction(record.id, lock=False) as transaction:
        while page := transaction.entry_records(
            before=seen[-1].seq if seen else 2**62, limit=limit, bytes_max=bytes_max
        ):
            assert len(page) <= limit
            assert sum(len(each.canonical) for each in page[:-1]) < bytes_max
            is_short = len(page) < limit and page[-1].seq > 1
            assert not is_short or sum(len(each.canonical) for each in page) >= bytes_max
            slot = page[-1].seq % SLOTS
            of_slot = transaction.own_charges(slot, before=page[0].seq + 1, limit=limit, bytes_max=bytes_max)
            assert [each.seq for each in of_slot] == [each.seq for each in page]
            seen += page
        assert seen == as_records(made)
        for slot in range(SLOTS + 2):
            of_slot = transaction.own_charges(slot, before=2**62, limit=100, bytes_max=MANY_BYTES)
            assert of_slot == [as_charge(each, slot) for each in made]


def test_a_search_looks_at_the_entries_within_its_reach_alone(store: Store, record: DatasetRecord) -> None:
    """The reach counts entries and the bytes of their queries, whether they match or not."""
    made = appended(store, record, [Asked(charged={}, left_out=(), length=length) for length in (5, 100, 1, 1, 1)])
    with store.transaction(record.id, lock=False) as transaction:
        reaches = ((6, 2, 999, 4), (6, 9, 103, 2), (6, 9, 104, 1), (3, 9, 1, 2), (1, 9, 9, 1))
        for before, limit, bytes_max, first in reaches:
            assert transaction.entries_reach(before=before, limit=limit, bytes_max=bytes_max) == first
        searches: tuple[tuple[str, int, list[int]], ...] = (
            ("qqqqq", 1, [2, 1]),
            ("Q", 4, [5, 4]),
            ("q", 2, [5, 4, 3, 2]),
            ("x", 1, []),
        )
        for word, first, found in searches:
            page = transaction.entry_records(
                before=6, limit=9, bytes_max=MANY_BYTES, only=EntryFilter(words=(word,)), first=first
            )
            assert [each.seq for each in page] == found
        only = EntryFilter(analyst_id=made[0].analyst_id)
        assert len(transaction.entry_records(before=6, limit=9, bytes_max=MANY_BYTES, only=only, first=3)) == 3


def test_a_large_entry_is_read_in_slices(store: Store, record: DatasetRecord) -> None:
    """Forty thousand individuals with equal or different charges, some left out; sparse slots; and a burn."""
    people, rare = range(40_000), range(17, 40_000, 97)
    kinds: list[tuple[dict[int, int], tuple[int, ...]]] = [
        (dict.fromkeys(people, 7), ()),
        ({slot: slot + 1 for slot in people if slot % 3}, tuple(people[::3])),
        ({slot: slot + 1 for slot in rare}, ()),
        ({slot: 9 for slot in rare if slot % 2}, tuple(slot for slot in rare if slot % 2 == 0)),
        ({}, tuple(people)),
    ]
    made = appended(
        store,
        record,
        [
            Asked(charged=paid, left_out=out, length=10, slots=slots, is_priced=is_priced)
            for is_priced, slots in ((False, 200_000), (True, 200_000), (True, 40_000))
            for paid, out in kinds
        ],
    )
    with store.transaction(record.id, lock=True) as transaction:
        made.insert(0, burn(transaction.head, {slot: slot + 5 for slot in people[1::2]}))
        transaction.append(made[:1], [], {})
        transaction.commit()
    assert {len(each.pieces) for each in made} == {1, 2}
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.entry_records(before=2**62, limit=99, bytes_max=MANY_BYTES) == as_records(made)
        assert list(transaction.entries(after=0)) == made[::-1]
        for slot in (0, 1, 7, 8, 16, 17, 18, 97 + 17, 20_000, 20_001, 39_999, 40_000, 100_000):
            found = transaction.own_charges(slot, before=2**62, limit=99, bytes_max=MANY_BYTES)
            assert found == [as_charge(each, slot) for each in made], slot


@pytest.mark.parametrize("is_priced", [False, True])
@pytest.mark.parametrize("checkpoint", ["none", "half", "whole"])
def test_an_account_is_its_page_plus_later_entries(
    store: Store, record: DatasetRecord, checkpoint: str, *, is_priced: bool
) -> None:
    """Two pages, one of them written: with the checkpoint finished or not, no charge counts twice."""
    slots, limits = np.array([0, 1, 2, PAGE_SLOTS, PAGE_SLOTS + 1]), np.array([100, 90, 80, 70, 60])
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(slots, [Key("a"), Key("b"), Key("c"), Key("d"), Key("e")], limits)
        transaction.journal("rows", {}, slots=PAGE_SLOTS + 2)
        transaction.commit()
    first = [Asked(charged={0: 3, 1: 4, PAGE_SLOTS: 5}, left_out=(2, PAGE_SLOTS + 1), length=1, is_priced=is_priced)]
    made = appended(store, record, [*first, *first])
    burned(store, record, {0: 11, PAGE_SLOTS: 11})
    if checkpoint != "none":
        head = store.head(record.id)
        with store.transaction(record.id, lock=False) as transaction:
            pages = {page: totals(transaction.entries(after=0), page) for page in (0, 1)}
        written = Checkpoint(since=0, seq=head.seq, hash=head.hash, pages=pages)
        for page in range(1 if checkpoint == "half" else 2):
            store.write_page(record.id, written, page)
        assert store.finish_checkpoint(record.id, written) == (checkpoint == "whole")
    last = Asked(charged={1: 1, PAGE_SLOTS: 2, PAGE_SLOTS + 1: 9}, left_out=(0,), length=1, is_priced=is_priced)
    made += appended(store, record, [last])
    burned(store, record, {0: 11, PAGE_SLOTS: 11})
    given = spent_by(made, 2 * PAGE_SLOTS)
    given[[0, PAGE_SLOTS]] += 22
    with store.transaction(record.id, lock=False) as transaction:
        accounts = [transaction.account_of(slot) for slot in slots.tolist()]
    assert [own.spent for own in accounts] == given[slots].tolist()
    assert [(own.limit, own.paused) for own in accounts] == [(limit, False) for limit in limits.tolist()]
    assert is_priced or given[slots].tolist() == [28, 9, 0, 34, 9]
    assert [(own.queries_charged, own.queries_left_out) for own in accounts] == [(2, 1), (3, 0), (0, 2), (3, 0), (1, 2)]


def burned(store: Store, record: DatasetRecord, charged: dict[int, int]) -> None:
    """Append a burn, which no counter counts as a query."""
    with store.transaction(record.id, lock=True) as transaction:
        transaction.append([burn(transaction.head, charged)], [], {})
        transaction.commit()


def test_an_account_reads_the_entries_since_a_few_at_a_time(
    store: Store, record: DatasetRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each entry counts once, wherever one read ends and the next begins."""
    join(store, record, {"a": 100, "b": 90})
    asked = [Asked(charged={slot: 4}, left_out=(1 - slot,), length=1, is_priced=True) for slot in (0, 0, 1, 0)]
    made = appended(store, record, asked)
    for at_once in (1, 2, 3, 256):
        monkeypatch.setattr("service.store.postgres.snapshot._ENTRIES_AT_ONCE", at_once)
        with store.transaction(record.id, lock=False) as transaction:
            accounts = [transaction.account_of(slot) for slot in (0, 1)]
        assert [(own.queries_charged, own.queries_left_out) for own in accounts] == [(3, 1), (1, 3)]
        assert [own.spent for own in accounts] == spent_by(made, 2).tolist()


def test_keys_are_listed_by_number_and_by_bytes(store: Store, record: DatasetRecord) -> None:
    """Bytes are those of UTF-8; a key that reaches the bound is the last of its page."""
    keys = ["a" * 10, "é" * 5, "b", "€€€", "c"]
    join(store, record, dict.fromkeys(keys, 9))
    with store.transaction(record.id, lock=False) as transaction:
        for bytes_max, expected in ((1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (22, 4), (30, 4), (31, 5)):
            page = transaction.keys_of(after_slot=-1, limit=10, bytes_max=bytes_max)
            assert page == list(enumerate(keys))[:expected], bytes_max
        assert transaction.keys_of(after_slot=1, limit=2, bytes_max=MANY_BYTES) == [(2, "b"), (3, "€€€")]


def acted(store: Store, record: DatasetRecord) -> None:
    """Three individuals join, one lowers its limit twice and is erased, another lowers its own, an epoch is opened."""
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(np.arange(3), [Key("ann"), Key("é" * 5), Key("eve")], np.full(3, 9))
        transaction.journal("rows", {"table": "people", "joined": {"bits": "x"}, "slots": {"bits": "y"}}, slots=3)
        for slot, units in ((0, 8), (0, 7), (1, 5)):
            transaction.set_limit(slot, units)
            transaction.journal("limit", {"slot": slot, "limit_units": str(units)})
        transaction.commit()
    appended(store, record, [Asked(charged={1: 1}, left_out=(), length=1)])
    with store.transaction(record.id, lock=True) as transaction:
        transaction.erase(0, b"t" * 32)
        transaction.journal("erase", {"slot": 0})
        transaction.journal("epoch", {"epoch": 2}, epoch=2)
        transaction.commit()


def test_acts_are_listed_newest_first_with_their_individuals(store: Store, record: DatasetRecord) -> None:
    """The slots kept for replicas are not listed, and only keys of individuals present, none in an erasure."""
    acted(store, record)
    before = wall_clock() - timedelta(minutes=1)
    with store.transaction(record.id, lock=False) as transaction:
        found = transaction.act_records(before=2**62, limit=10, bytes_max=MANY_BYTES)
    assert [(each.number, each.act, each.at_seq, each.key) for each in found] == [
        (6, "epoch", 1, None),
        (5, "erase", 1, None),
        (4, "limit", 0, "é" * 5),
        (3, "limit", 0, None),
        (2, "limit", 0, None),
        (1, "rows", 0, None),
    ]
    assert [each.detail for each in found[3:]] == [
        {"slot": 0, "limit_units": "7"},
        {"slot": 0, "limit_units": "8"},
        {"table": "people"},
    ]
    assert all(before < each.at < wall_clock() + timedelta(minutes=1) for each in found)
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(np.array([0]), [Key("ann")], np.array([7]))
        transaction.journal("rows", {"table": "people"})
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        back = transaction.act_records(before=7, limit=10, bytes_max=MANY_BYTES)
    assert [each.key for each in back] == [None, None, "é" * 5, "ann", "ann", None]


def test_pages_of_acts_end_by_number_and_by_bytes_of_keys(store: Store, record: DatasetRecord) -> None:
    """An act without a key takes no bytes; a key that reaches the bound ends its page. Datasets do not mix."""
    acted(store, record)
    other = store.add_dataset(dataset("other"))
    with store.transaction(record.id, lock=False) as transaction:
        for limit, bytes_max, expected in (
            (2, 1, [6, 5]),
            (9, 1, [6, 5, 4]),
            (9, 10, [6, 5, 4]),
            (4, 11, [6, 5, 4, 3]),
        ):
            page = transaction.act_records(before=7, limit=limit, bytes_max=bytes_max)
            assert [each.number for each in page] == expected
        page = transaction.act_records(before=3, limit=9, bytes_max=MANY_BYTES)
        assert [each.number for each in page] == [2, 1]
        assert transaction.act_records(before=1, limit=9, bytes_max=MANY_BYTES) == []
    with store.transaction(other.id, lock=False) as transaction:
        assert transaction.act_records(before=2**62, limit=9, bytes_max=MANY_BYTES) == []
