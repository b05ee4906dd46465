"""Refused uploads change nothing; truncation of an individual's rows depends on that individual's own rows alone."""

from collections import Counter
from dataclasses import replace
from io import BytesIO
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.engine.key_digests import row_digests
from service.ledger.model.errors import InvalidRequest, InvalidRows, Unavailable
from service.ledger.model.journal import UnknownIndividuals
from service.query.keys import Key
from service.query.schema import EventsTable
from service.workflows.registration_changes import Extension
from service.workflows.replica import Replica
from service.workflows.uploads import rows_to_keep
from tests.digests import SALT
from tests.factories import PEOPLE, TWO_PEOPLE, VISITS, analyst, ask, open_replica, register, upload
from tests.memory.store import MemoryStore
from tests.workflows.sent_uploads import send, visited
from tests.workflows.surveys import findings, newest, surveyed


def test_a_refused_upload_leaves_no_individual_in_memory() -> None:
    """Individuals known by their events alone, one of them with too many rows: none is present afterwards."""
    store = MemoryStore()
    with visited(store, TWO_PEOPLE[:1], rows_per_individual=2) as replica:
        upload(replica, "visits", [("ann", 1)])
        for rows in ([("bob", 1), ("bob", 2), ("bob", 3)], [("eve", 1), ("ann", 1), ("ann", 2)]):
            with pytest.raises(InvalidRequest):
                upload(replica, "visits", rows)
        ask(replica, analyst(replica), "k")
        assert newest(replica).charged == 1
        upload(replica, "visits", [("bob", 1), ("bob", 2), ("ann", 2)])
        ask(replica, analyst(replica), "l", reuse=False)
        assert newest(replica).charged == 2
    assert findings(store) == []


class ExtendingFile(BytesIO):
    """A file that, each of the first times it is read, has the dataset extended meanwhile."""

    def __init__(self, content: bytes, replica: Replica, times: int) -> None:
        super().__init__(content)
        self.replica, self.times = replica, times

    def seek(self, offset: int, whence: int = 0) -> int:
        if self.times > 0:
            self.times -= 1
            capacity = self.replica.curators.dataset("survey").capacity + 1
            self.replica.curators.extend("survey", Extension(capacity=capacity))
        return super().seek(offset, whence)


@pytest.mark.parametrize(("times", "is_stored"), [(2, True), (60, False)])
def test_an_upload_is_read_again_where_the_dataset_was_extended_meanwhile(times: int, *, is_stored: bool) -> None:
    """Twice; then the service says that it cannot answer now, and nothing is stored."""
    rows = b"person_id,country,age,spend\nann,NO,1,1\n"
    with open_replica() as replica:
        register(replica)
        file = ExtendingFile(rows, replica, times)
        if is_stored:
            assert replica.curators.append_rows("survey", "people", "text/csv", file).stored
        else:
            with pytest.raises(Unavailable):
                replica.curators.append_rows("survey", "people", "text/csv", file)
        assert replica.curators.dataset("survey").individuals == is_stored


def test_a_table_takes_no_more_rows_than_its_capacity() -> None:
    """Stored rows count, an upload is refused as a whole, and an erasure frees its rows."""
    with visited(rows_capacity=4) as replica:
        upload(replica, "visits", [("ann", 1), ("ann", 2), ("bob", 3)])
        with pytest.raises(InvalidRequest) as refused:
            upload(replica, "visits", [("eve", 1), ("ann", 1)])
        (problem,) = refused.value.errors
        assert problem.field == "rows"
        assert problem.message == "the table has room for 4 rows and holds 3; these are 2 more"
        upload(replica, "visits", [("bob", 1)])
        with pytest.raises(InvalidRequest, match="holds 4; these are 1 more"):
            upload(replica, "visits", [("bob", 2)])
        replica.curators.erase_individual("survey", "ann")
        upload(replica, "visits", [("eve", 1), ("bob", 2)])
        ask(replica, analyst(replica), "k")
        assert newest(replica).charged == 2


def test_a_table_that_declares_no_capacity_has_room_for_32_rows_for_each_individual() -> None:
    """The bound is 32 times the capacity, independently of `rows_per_individual`."""
    with visited(rows_per_individual=100, capacity=2) as replica:
        upload(replica, "visits", [("ann", 1)] * 63)
        with pytest.raises(InvalidRequest, match="the table has room for 64 rows and holds 63; these are 2 more"):
            upload(replica, "visits", [("bob", 1)] * 2)
        upload(replica, "visits", [("bob", 1)])


def items(store: MemoryStore, slot: int) -> list[int]:
    """The stored items of one slot, in order."""
    with store.transaction(1, lock=False) as transaction:
        slots, codes = transaction.records("visits")
    return sorted(codes["item"][slots == slot].tolist())


def test_a_dry_run_checks_everything_and_stores_nothing() -> None:
    """The report is that of the upload itself; no row, no individual, no act and no key remains."""
    store = MemoryStore()
    rows = "person_id,item\nann,1\neve,2\nann,\n"
    with visited(store, TWO_PEOPLE[:1]) as replica:
        tried = send(replica, rows, is_dry_run=True, key="k")
        assert (tried.rows, tried.individuals, tried.nulls, tried.stored) == (3, 1, {"item": 1}, False)
        counts = replica.curators.dataset("survey")
        assert (counts.individuals, counts.rows["visits"]) == (1, 0)
        assert [act.act for act in replica.curators.acts("survey", cursor=None, limit=9).items] == ["rows"]
        done = send(replica, rows, key="k")
        assert (done.rows, done.individuals, done.nulls, done.stored) == (3, 1, {"item": 1}, True)
        ask(replica, analyst(replica), "k")
    assert findings(store) == []


@pytest.mark.parametrize(
    "rows", ["person_id,item\neve,1\n", "person_id,item\nann,x\n", "person_id,item\n" + "ann,1\n" * 9]
)
def test_a_dry_run_refuses_as_the_upload_does(rows: str) -> None:
    """Unknown individuals, wrong values and too many rows: the same refusal."""
    with visited(people=TWO_PEOPLE[:1], unknown_individuals="reject", rows_per_individual=8) as replica:
        refusals = []
        for is_dry_run in (True, False):
            with pytest.raises(InvalidRows) as refused:
                send(replica, rows, is_dry_run=is_dry_run)
            refusals.append((refused.value.errors, refused.value.counts, refused.value.over_limit))
        assert refusals[0] == refusals[1]


def test_a_refusal_names_the_individuals_with_too_many_rows() -> None:
    """By key, with the rows they would hold and those too many; all of them are counted."""
    with visited(rows_per_individual=2) as replica:
        send(replica, "person_id,item\nann,1\nann,2\n")
        with pytest.raises(InvalidRows) as refused:
            send(replica, "person_id,item\nbob,1\nann,3\neve,1\neve,2\neve,3\neve,4\n")
        found = refused.value
        assert found.over_limit is not None
        assert (found.over_limit.individuals, found.over_limit.excess) == (2, 3)
        assert [(each.key, each.rows, each.excess) for each in found.over_limit.first] == [("ann", 3, 1), ("eve", 4, 2)]
        assert (found.counts.rows_wrong, found.errors[0].field) == (5, "rows[2].person_id")
        assert "ann" not in str(found)


def test_truncation_keeps_as_many_rows_as_fit() -> None:
    """Stored rows count and stay, and report and log tell how many rows of how many people were dropped."""
    store = MemoryStore()
    with visited(store, rows_per_individual=3, rows_capacity=7) as replica:
        send(replica, "person_id,item\nann,7\nann,8\n")
        rows = "person_id,item\nann,9\nbob,5\nann,1\nbob,4\nann,2\nbob,3\nbob,2\neve,6\n"
        report = send(replica, rows, rows_over_limit="truncate")
        assert (report.rows, report.rows_dropped, report.individuals) == (5, 3, 2)
        assert (report.individuals_dropped_from, report.largest_share_dropped) == (2, 0.4)
        ann, bob, eve = (items(store, slot) for slot in range(3))
        assert (len(ann), {7, 8} < {*ann} < {1, 2, 7, 8, 9}) == (3, True)
        assert (len(bob), {*bob} < {2, 3, 4, 5}, eve) == (3, True, [6])
        detail = replica.curators.acts("survey", cursor=None, limit=1).items[0].detail
        assert (detail["rows"], detail["rows_dropped"]) == (5, 3)
        ask(replica, analyst(replica), "k")
        full = send(replica, "person_id,item\nann,1\nann,1\n", rows_over_limit="truncate")
        assert (full.rows, full.rows_dropped) == (0, 2)
    assert findings(store) == []


def test_without_too_many_rows_truncation_changes_nothing() -> None:
    """All rows are stored, and none is said to be dropped."""
    with surveyed(people=TWO_PEOPLE[:1]) as replica:
        report = send(replica, "person_id,item\nann,1\nann,2\n", rows_over_limit="truncate")
        assert (report.rows, report.rows_dropped) == (2, 0)
        assert "rows_dropped" not in replica.curators.acts("survey", cursor=None, limit=1).items[0].detail


@pytest.mark.parametrize("declared", ["reject", "create", "drop"])
def test_rows_of_unknown_individuals_are_dropped_and_counted(declared: str) -> None:
    """By the upload's option or by the table's declaration; report and log tell how many, and later rows count too."""
    store = MemoryStore()
    rows = "person_id,item\neve,1\nann,1\nzoe,1\nann,2\neve,3\n"
    with visited(store, TWO_PEOPLE[:1], declared, rows_per_individual=2) as replica:
        asked: UnknownIndividuals = "as_declared" if declared == "drop" else "drop"
        tried = send(replica, rows, unknown_individuals=asked, is_dry_run=True)
        report = send(replica, rows, unknown_individuals=asked)
        assert replace(tried, stored=True) == report
        assert (report.rows, report.rows_unknown, report.individuals) == (2, 3, 0)
        assert items(store, 0) == [1, 2]
        assert replica.curators.dataset("survey").individuals == 1
        detail = replica.curators.acts("survey", cursor=None, limit=1).items[0].detail
        assert (detail["rows"], detail["rows_unknown"]) == (2, 3)
        with pytest.raises(InvalidRows) as refused:  # by the number of the row in the upload
            send(replica, "person_id,item\neve,1\nann,1\n", unknown_individuals="drop")
        assert [error.field for error in refused.value.errors] == ["rows[2].person_id"]
        ask(replica, analyst(replica), "k")
    assert findings(store) == []


@given(st.lists(st.tuples(st.sampled_from(["ann", "bob", "eve", "zoe"]), st.integers(0, 3)), max_size=20))
@settings(max_examples=25, deadline=None)
def test_which_rows_are_dropped_does_not_depend_on_others(rows: list[tuple[str, int]]) -> None:
    """The stored rows of each individual are its own, whatever else was sent."""

    def stored(sent: list[tuple[str, int]]) -> list[list[int]]:
        store = MemoryStore()
        with surveyed(
            store, [("ann", "NO", 44, 1), ("bob", "NO", 44, 1)], tables={"people": PEOPLE, "visits": VISITS}
        ) as replica:
            text = "".join(f"{key},{item}\n" for key, item in sent)
            send(replica, "person_id,item\n" + text, unknown_individuals="drop", duplicates="drop")
            return [items(store, slot) for slot in range(2)]

    assert stored(rows) == [sorted({item for key, item in rows if key == who}) for who in ("ann", "bob")]


def test_repeated_rows_are_told() -> None:
    """Kept ones are counted in the report alone, dropped ones in the log of acts too."""
    rows = "person_id,item\nann,1\nann,1\nann,2\n"
    with surveyed(people=TWO_PEOPLE[:1]) as replica:
        kept, dropped = send(replica, rows), send(replica, rows, duplicates="drop")
        assert (kept.rows, kept.rows_repeated, dropped.rows, dropped.rows_repeated) == (3, 1, 2, 1)
        details = [act.detail for act in replica.curators.acts("survey", cursor=None, limit=2).items]
        assert [detail.get("rows_repeated") for detail in details] == [1, None]
        with pytest.raises(InvalidRows, match="the same row as an earlier one"):
            send(replica, rows, duplicates="reject")


ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)), max_size=40)
STORED = st.lists(st.integers(0, 3), min_size=6, max_size=6)
LIMIT = 3
TABLE = EventsTable.model_validate(
    {
        "kind": "events",
        "key": "person_id",
        "columns": {name: {"type": "integer", "lower": 0, "upper": 9} for name in ("day", "item")},
    }
)
Row = tuple[int, int, int]


def kept(rows: list[Row], stored: list[int]) -> Counter[Row]:
    """The kept of some rows (slot, day, item), when each slot holds so many rows already."""
    slots = np.array([slot for slot, _, _ in rows], dtype=np.int64)
    codes: dict[str, NDArray[np.unsignedinteger]] = {
        "day": np.array([day for _, day, _ in rows], dtype=np.uint8),
        "item": np.array([item for _, _, item in rows], dtype=np.uint8),
    }
    sent = Counter(slots.tolist())
    held = np.array([stored[slot] + sent[slot] for slot in slots.tolist()], dtype=np.int64)
    over = np.flatnonzero(held > LIMIT)
    digests = row_digests(SALT, TABLE, [Key(f"p{slot}") for slot in slots[over].tolist()], taken(codes, over))
    mask = np.ones(len(rows), dtype=np.bool_)
    mask[over] = rows_to_keep(slots[over], digests, held[over], LIMIT)
    return Counter(row for row, keep in zip(rows, mask.tolist(), strict=True) if keep)


def taken(codes: dict[str, NDArray[np.unsignedinteger]], rows: NDArray[np.int64]) -> dict[str, Any]:
    """Some of the rows."""
    return {name: column[rows] for name, column in codes.items()}


@given(ROWS, STORED, st.randoms(use_true_random=False))
def test_each_keeps_as_many_as_fit_whatever_the_order_and_the_others(
    rows: list[Row], stored: list[int], random: Random
) -> None:
    """The kept rows of each are as many of its own as fit: the same in another order, and without all others' rows."""
    found = kept(rows, stored)
    assert kept(random.sample(rows, len(rows)), stored) == found
    for slot in range(6):
        own = [row for row in rows if row[0] == slot]
        mine = Counter(row for row in found.elements() if row[0] == slot)
        assert mine == kept(own, stored) <= Counter(own)
        assert mine.total() == max(min(len(own), LIMIT - stored[slot]), 0)


def test_no_column_decides_which_rows_are_kept() -> None:
    """A thousand people have ten rows each, and all items are kept about as often; other names give another choice."""
    slots, items = np.repeat(np.arange(1000), 10), np.tile(np.arange(10, dtype=np.uint8), 1000)
    held, keys = np.full(slots.size, 10), [f"p{slot}" for slot in slots.tolist()]
    shares = []
    for name in ("item", "day"):
        table = EventsTable.model_validate(
            {**TABLE.model_dump(), "columns": {name: TABLE.columns["item"].model_dump()}}
        )
        mask = rows_to_keep(slots, row_digests(SALT, table, list(map(Key, keys)), {name: items}), held, LIMIT)
        shares.append(np.bincount(items[mask], minlength=10))
        assert (abs(shares[-1] - 300) < 5 * (1000 * 0.3 * 0.7) ** 0.5).all()
    assert shares[0].tolist() != shares[1].tolist()
