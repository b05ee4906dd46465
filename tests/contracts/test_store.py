"""The store port, in memory and on Postgres: both pass the same tests."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core.charge import CHARGE_UNITS_MAX
from service.ledger.model.errors import NameTaken
from service.ledger.model.journal import JournalAct
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.rows import (
    ERASED_NAME,
    AnswerRecord,
    Asked,
    AskedErasure,
    DatasetRecord,
    OwnAnswer,
    PrincipalFilter,
    ReleasePlace,
    ReleaseRecord,
)
from service.ledger.ports.store import Store
from service.query.columns import coding_of
from service.query.keys import Key
from service.query.schema import Schema
from tests.contracts.stores import (
    ANALYST,
    AT,
    WORST_CASE_UNITS,
    answer,
    append,
    burn,
    dataset,
    entry,
    join,
    ledger,
    principal,
)
from tests.digests import with_digests
from tests.memory.snapshot import public_part

MANY_BYTES = 2**20


def listed(store: Store, before: ReleasePlace | None = None, limit: int = 10) -> list[ReleaseRecord]:
    """The analyst's own releases."""
    return store.releases_of(ANALYST, before=before, limit=limit, bytes_max=MANY_BYTES)


def _address(asked: tuple[int, int, str, int]) -> tuple[int, str]:
    number, _, key, _ = asked
    return number, key


def test_registrations_are_read_a_page_at_a_time_by_the_characters_of_their_names(store: Store) -> None:
    """After a name that is there or not, in the order of ASCII."""
    names = ["0", "a", "a-b", "a_b", "ab", "b"]
    for name in reversed(names):
        store.add_dataset(dataset(name))
    assert [each.name for each in store.datasets_after(None, limit=4)] == names[:4]
    assert [each.name for each in store.datasets_after("a_b", limit=4)] == names[4:]
    assert [each.name for each in store.datasets_after("a-c", limit=1)] == ["a_b"]
    assert store.datasets_after("b", limit=4) == []


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


def test_an_entry_and_its_answer_are_stored_together(store: Store, record: DatasetRecord) -> None:
    """A committed entry and answer read back whole, and the head has moved to the entry."""
    first = append(store, record, {0: 5, 3: 5}, (2,), units=WORST_CASE_UNITS)
    nobody = UUID(int=8)
    asked = [
        Asked(address=(ANALYST, "key-1"), query_hash="q"),
        Asked(address=(ANALYST, "other"), query_hash="unasked"),
        Asked(address=(nobody, "key-1"), query_hash=None),
    ]
    with store.transaction(record.id, lock=False, asked=asked) as transaction:
        assert list(transaction.entries(after=0)) == [first]
        assert list(transaction.entries(after=1)) == []
        assert transaction.known.answers == {(ANALYST, "key-1"): answer(first)}
        assert transaction.known.reusable == {"q": public_part(first)}
        assert transaction.known.worst_cases.get(ANALYST) == WORST_CASE_UNITS
        assert transaction.known.worst_cases.get(nobody, 0) == 0
        assert (transaction.head.seq, transaction.head.hash) == (1, first.hash)
        assert transaction.head.worst_case_units == WORST_CASE_UNITS
    assert store.worst_cases_of(ANALYST) == {"survey": WORST_CASE_UNITS}


def test_an_analysts_worst_cases_saturate(store: Store, record: DatasetRecord) -> None:
    """Two queries at the largest cost add up to the cost of one, and the analyst can go on: 2^63 is no bigint."""
    for number in range(3):
        with store.transaction(record.id, lock=True) as transaction:
            following = replace(entry(transaction.head, {}), worst_case_total_units=CHARGE_UNITS_MAX)
            transaction.append([following], [answer(following, f"key-{number}")], {ANALYST: CHARGE_UNITS_MAX})
            transaction.commit()
        assert store.worst_cases_of(ANALYST) == {"survey": CHARGE_UNITS_MAX}
    assert store.head(record.id).worst_case_units == CHARGE_UNITS_MAX


@pytest.mark.parametrize(("entries", "people"), [(1, 100_000), (256, 40)])
def test_a_commit_larger_than_a_socket_buffer_succeeds(
    store: Store, record: DatasetRecord, entries: int, people: int
) -> None:
    """A hundred thousand different charges in an entry, and a full batch: client and server do not block each other."""
    appended = []
    with store.transaction(record.id, lock=True, asked=[Asked(address=(ANALYST, "k"), query_hash=None)]) as transaction:
        head = transaction.head
        for _ in range(entries):
            appended.append(entry(head, {slot: slot + 1 for slot in range(people)}))
            head = replace(head, seq=head.seq + 1, hash=appended[-1].hash, worst_case_units=head.worst_case_units)
        answers = [replace(answer(each, f"key-{each.seq}"), body=b"x" * 4000) for each in appended]
        transaction.append(appended, answers, {ANALYST: 1})
        transaction.commit()
    assert [each.hash for each in ledger(store, record)] == [each.hash for each in appended]


def test_two_writers_wait_for_each_other(store: Store, record: DatasetRecord) -> None:
    """The second to lock sees the first's commit: of forty entries by two writers none is lost or refused."""

    def write(name: str) -> None:
        for number in range(20):
            append(store, record, {0: 1}, key=f"{name}-{number}")

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, name) for name in ("one", "two")]:
            done.result()
    assert store.head(record.id).seq == 40


def test_without_a_commit_nothing_is_stored(store: Store, record: DatasetRecord) -> None:
    """An exception, or simply no commit, undoes entry, answer, individuals and head alike."""

    def append_and_fail() -> None:
        with store.transaction(record.id, lock=True) as transaction:
            first = entry(transaction.head, {0: 5})
            transaction.append([first], [answer(first)], {ANALYST: 1})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        append_and_fail()
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(np.array([0]), [Key("ann")], np.array([10]))
        transaction.journal("rows", {}, slots=1)

    asked = [Asked(address=(ANALYST, "key-1"), query_hash="q")]
    with store.transaction(record.id, lock=False, asked=asked) as transaction:
        assert list(transaction.entries(after=0)) == []
        assert (transaction.known.answers, transaction.known.reusable) == ({}, {})
        assert transaction.slots_of([Key("ann")]).tolist() == [-1]
    assert store.head(record.id).slots == 0


def test_people_records_and_limits_read_back_by_slot(store: Store, record: DatasetRecord) -> None:
    """Accounts and typed columns, NULLs included, read back as the codes that were written."""
    slots = np.array([0, 1, 2])
    declared: dict[str, NDArray[Any]] = {
        "country": np.array([0, 1, 2], dtype=np.uint8),
        "age": np.array([0, 125, 126], dtype=np.uint8),
        "spend": np.array([0, 2**40 + 1, (int(502.5 * 2**43)) + 1], dtype=np.uint64),
        "member": np.array([2, 1, 0], dtype=np.uint8),
    }
    codes = with_digests(declared, ["ann", "bob", "eve"])
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(slots, [Key("ann"), Key("bob"), Key("eve")], np.array([10, 20, 30]))
        transaction.add_records("people", slots, codes)
        transaction.add_records(
            "visits", np.array([2, 0, 2]), {"item": np.array([7, 99_999, 100_000], dtype=np.uint32)}
        )
        transaction.journal("rows", {"rows": 3}, slots=3)
        transaction.commit()

    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.head.slots == 3
        assert transaction.head.data_version == 1
        assert transaction.slots_of([Key("eve"), Key("nobody"), Key("ann")]).tolist() == [2, -1, 0]
        assert transaction.keys_of(after_slot=0, limit=5, bytes_max=MANY_BYTES) == [(1, "bob"), (2, "eve")]
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


def test_rows_and_accounts_of_some_slots_read_back(store: Store, record: DatasetRecord) -> None:
    """Runs of slots and single ones, with many rows, one or none; of an erased individual the account alone."""
    people = np.arange(200)
    rows = np.repeat(people, people % 4)
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(people, [Key(f"p{slot}") for slot in people], 5 + people)
        transaction.add_records("visits", rows, {"item": rows.astype(np.uint32)})
        transaction.journal("rows", {}, slots=200)
        transaction.set_paused(50, paused=True)
        transaction.erase(7, bytes(32))
        transaction.commit()
    wanted = {0, 1, 2, 3, 7, 50, 51, 199}
    for of in ([], [7], sorted(wanted), people.tolist()):
        with store.transaction(record.id, lock=False) as transaction:
            slots, codes = transaction.records("visits", of=np.array(of, dtype=np.int64))
            found = transaction.individuals(of=np.array(of, dtype=np.int64))
        assert sorted(slots.tolist()) == [slot for slot in rows.tolist() if slot in set(of) - {7}]
        assert codes["item"].tolist() == slots.tolist()
        assert codes["item"].dtype == np.uint32
        order = np.argsort(found.slots)
        assert found.slots[order].tolist() == of
        assert found.limits[order].tolist() == [5 + slot for slot in of]
        assert found.present[order].tolist() == [slot != 7 for slot in of]
        assert found.paused[order].tolist() == [slot == 50 for slot in of]


def test_acts_are_read_back_in_order_and_chained(store: Store, record: DatasetRecord) -> None:
    """Each act reads back as journalled; the chain begins at the dataset's genesis and ends at the head's hash."""
    assert store.head(record.id).journal_hash == record.genesis
    details: list[dict[str, Any]] = [
        {"epoch": 2},
        {"table": "people", "slots": {"first": 5, "bits": "eJw="}},
        {"slot": 3},
    ]
    for number, detail in enumerate(details):
        with store.transaction(record.id, lock=True) as transaction:
            following = entry(transaction.head, {})
            transaction.append([following], [answer(following, f"key-{number}")], {})
            transaction.journal(f"act {number}", detail)
            head = transaction.head
            transaction.commit()
        assert store.head(record.id) == head
    with store.transaction(record.id, lock=False) as transaction:
        acts = transaction.acts(after=0)
        assert transaction.acts(after=1) == acts[1:]
        assert transaction.acts(after=3) == []
    assert [(act.number, act.at_seq, act.act, act.detail) for act in acts] == [
        (number + 1, number + 1, f"act {number}", detail) for number, detail in enumerate(details)
    ]
    hashes = [act.hash for act in acts]
    assert [act.previous_hash for act in acts] == [record.genesis, *hashes[:-1]]
    assert hashes[-1] == head.journal_hash
    again = JournalAct.following(hashes[0], number=2, at_seq=2, act="act 1", detail=details[1])
    assert again == acts[1]


def test_accounts_with_usual_and_unusual_limits_read_back(store: Store, record: DatasetRecord) -> None:
    """The dataset's limit, a lower one, zero, and an erased record; with gaps between the slots and without."""
    usual = record.budget_units
    with store.transaction(record.id, lock=True) as transaction:
        assert transaction.individuals().slots.size == 0
        transaction.add_individuals(
            np.arange(4), [Key("ann"), Key("bob"), Key("eve"), Key("dan")], np.array([usual, usual, 7, 0])
        )
        transaction.journal("rows", {}, slots=4)
        transaction.erase(0, bytes(32))
        transaction.erase(2, b"x" * 32)
        transaction.set_paused(1, paused=True)
        dense = transaction.individuals()
        transaction.add_individuals(np.array([9]), [Key("kim")], np.array([usual]))
        sparse = transaction.individuals()

    for people, slots in ((dense, [0, 1, 2, 3]), (sparse, [0, 1, 2, 3, 9])):
        order = np.argsort(people.slots)
        assert people.slots[order].tolist() == slots
        assert people.limits[order].tolist() == [usual, usual, 7, 0, usual][: len(slots)]
        assert people.present[order].tolist() == [False, True, False, True, True][: len(slots)]
        assert people.paused[order].tolist() == [False, True, False, False, False][: len(slots)]


def test_the_ends_of_a_domain_read_back(store: Store) -> None:
    """The least value, the greatest, and NULL, at every width of the encoding."""
    bounds = [
        (-(2**15), 2**15 - 2),  # with the code of NULL exactly sixteen bits,
        (-(2**15), 2**15 - 1),  # one more,
        (-(2**15) - 1, 0),
        (-(2**31), 2**31 - 2),  # exactly thirty-two,
        (-(2**31), 2**31 - 1),
        (-(2**31) - 1, 0),
        (1 - 2**53, 2**53 - 1),
    ]
    for number, (lower, upper) in enumerate(bounds):
        column = {"type": "integer", "lower": lower, "upper": upper}
        schema = Schema.model_validate({"people": {"kind": "individuals", "key": "id", "columns": {"number": column}}})
        kept = store.add_dataset(replace(dataset(f"d{number}"), schema=schema))
        coding = coding_of(kept.schema.tables["people"].columns["number"])
        codes = np.array([0, coding.span, coding.null_code], dtype=coding.dtype)
        with store.transaction(kept.id, lock=True) as transaction:
            transaction.add_individuals(np.arange(3), [Key("ann"), Key("bob"), Key("eve")], np.full(3, 5))
            transaction.add_records("people", np.arange(3), with_digests({"number": codes}, "abe"))
            transaction.journal("rows", {}, slots=3)
            slots, read = transaction.records("people")
            assert read["number"].dtype == coding.dtype
            assert read["number"][np.argsort(slots)].tolist() == codes.tolist()


def test_an_erased_individual_leaves_a_tombstone_and_may_return_to_the_slot(
    store: Store, record: DatasetRecord
) -> None:
    """The key and every row go; the slot is found by tombstone alone, and can be filled again."""
    join(store, record, {"ann": 10, "bob": 20})
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_records("visits", np.array([0, 1, 0]), {"item": np.array([1, 2, 3], dtype=np.uint32)})
        transaction.erase(0, bytes(32))
        assert transaction.has_tombstones()
        transaction.commit()

    with store.transaction(record.id, lock=True) as transaction:
        assert transaction.slots_of([Key("ann"), Key("bob")]).tolist() == [-1, 1]
        assert transaction.slots_of_tombstones([bytes(32), b"x" * 32]).tolist() == [0, -1]
        assert transaction.records("visits")[0].tolist() == [1]
        assert transaction.individuals().present.tolist().count(False) == 1
        transaction.add_individuals(np.array([0]), [Key("ann")], np.array([9]))
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.slots_of([Key("ann")]).tolist() == [0]
        assert not transaction.has_tombstones()


def test_a_plain_form_is_found_until_its_individual_is_erased(store: Store, record: DatasetRecord) -> None:
    """New individuals and one that returns have plain forms; several may have the same."""
    keys, forms = [Key("Ann"), Key("bob"), Key("ANN")], ["ann", "bob", "ANN", "\u00e9" * 256]
    with store.transaction(record.id, lock=True) as transaction:
        assert transaction.are_plain_forms(forms).tolist() == [False] * 4
        transaction.add_individuals(np.arange(3), keys, np.full(3, 9), {0: "ann", 2: "ann"})
        transaction.journal("rows", {}, slots=3)
        transaction.commit()
    found = []
    for slot in (0, 2):
        with store.transaction(record.id, lock=True) as transaction:
            found.append(transaction.are_plain_forms(forms).tolist())
            transaction.erase(slot, bytes([slot] * 32))
            transaction.commit()
    with store.transaction(record.id, lock=True) as transaction:
        found.append(transaction.are_plain_forms(forms).tolist())
        transaction.add_individuals(np.array([2]), [Key("\u00c9" * 256)], np.array([9]), {0: "\u00e9" * 256})
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        found.append(transaction.are_plain_forms(forms).tolist())
        assert transaction.slots_of([Key("\u00c9" * 256), keys[1]]).tolist() == [2, 1]
    assert found == [[True, False, False, False], [True, False, False, False], [False] * 4, [False, False, False, True]]


def test_the_acts_on_one_slot_are_found(store: Store, record: DatasetRecord) -> None:
    """Acts of the kinds asked, in the journal's order; acts on no slot or on other slots are not read."""
    made: list[tuple[str, dict[str, object]]] = [
        ("rows", {"rows": 3}),
        ("limit", {"slot": 1, "limit_units": "5"}),
        ("limit", {"slot": 11, "limit_units": "4"}),
        ("erase", {"slot": 1}),
        ("epoch", {}),
        ("limit", {"slot": 1, "limit_units": "3", "limit_before_units": "5"}),
        ("pause", {"slot": 1}),
    ]
    with store.transaction(record.id, lock=True) as transaction:
        for act, detail in made:
            transaction.journal(act, detail)
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        acts = transaction.acts(after=0)
        assert transaction.acts_on(1, "limit", "erase") == [acts[1], acts[3], acts[5]]
        assert transaction.acts_on(1, "limit") == [acts[1], acts[5]]
        assert transaction.acts_on(11, "limit", "erase") == [acts[2]]
        assert transaction.acts_on(2, "limit", "erase") == []


def test_requests_for_erasure_are_found_page_by_page(store: Store, record: DatasetRecord) -> None:
    """Each with whether its individual was erased after it: one that returns may ask again."""
    made = [("erasure_request", 1), ("limit", 1), ("erasure_request", 11), ("erase", 1), ("erasure_request", 1)]
    with store.transaction(record.id, lock=True) as transaction:
        for act, slot in made:
            transaction.journal(act, {"slot": slot})
        transaction.journal("rows", {"rows": 3})
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        asked = [
            AskedErasure(number=1, slot=1, is_done=True),
            AskedErasure(number=3, slot=11, is_done=False),
            AskedErasure(number=5, slot=1, is_done=False),
        ]
        assert transaction.erasures_asked() == transaction.erasures_asked(after=0, limit=10) == asked
        assert transaction.erasures_asked(after=0, limit=2) == asked[:2]
        assert transaction.erasures_asked(after=3, limit=2) == asked[2:]
        assert transaction.erasures_asked(after=5, limit=2) == []


def test_an_erased_individuals_principals_are_revoked_and_blanked(store: Store, record: DatasetRecord) -> None:
    """Other individuals' principals stay; one revoked earlier keeps its time of revocation."""
    made = {
        name: principal(number, role="individual", name=name, dataset=record.name, individual=key)
        for number, (name, key) in enumerate((("ann's", "ann"), ("ann's old one", "ann"), ("bob's", "bob")))
    }
    store.principals.add(list(made.values()))
    store.principals.revoke(made["ann's old one"].id, AT)
    join(store, record, {"ann": 10, "bob": 20})
    with store.transaction(record.id, lock=True) as transaction:
        transaction.erase(0, bytes(32))
    assert store.principals.find(made["ann's"].id) == made["ann's"], "erased without a commit"

    with store.transaction(record.id, lock=True) as transaction:
        transaction.erase(0, bytes(32))
        transaction.commit()

    left = {name: store.principals.find(each.id) for name, each in made.items()}
    assert left["bob's"] == made["bob's"]
    for name in ("ann's", "ann's old one"):
        kept = left[name]
        assert kept is not None
        assert (kept.individual, kept.name, kept.dataset) == (None, ERASED_NAME, record.name)
        assert kept.revoked_at is not None
        assert (kept.revoked_at == AT) == (name == "ann's old one")


def test_a_limit_only_falls(store: Store, record: DatasetRecord) -> None:
    """A lowered limit stays; an attempt to raise it changes nothing."""
    join(store, record, {"ann": 10})
    with store.transaction(record.id, lock=True) as transaction:
        transaction.set_limit(0, 4)
        transaction.set_limit(0, 8)
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.individuals().limits.tolist() == [4]


def test_a_pause_lasts_until_it_is_ended(store: Store, record: DatasetRecord) -> None:
    """It changes no limit and no other account, can be repeated, and survives an erasure and a return."""

    def paused() -> list[bool]:
        with store.transaction(record.id, lock=False) as transaction:
            return [transaction.account_of(slot).paused for slot in (0, 1)]

    join(store, record, {"ann": 10, "bob": 20})
    with store.transaction(record.id, lock=True) as transaction:
        transaction.set_paused(0, paused=True)
        transaction.set_paused(0, paused=True)
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.account_of(0) == (10, 0, True, 0, 0)
    assert paused() == [True, False]
    with store.long_act(record.id) as act:
        act.lock()
        act.erase(0, bytes(32))
        act.commit()
    assert paused() == [True, False]
    with store.long_act(record.id) as act:
        act.add_individuals(np.array([0]), [Key("ann")], np.array([9]))
        act.lock()
        act.commit()
    assert paused() == [True, False]
    with store.transaction(record.id, lock=True) as transaction:
        transaction.set_paused(0, paused=False)
        transaction.commit()
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.account_of(0) == (9, 0, False, 0, 0)


def test_a_burn_reads_back_as_an_entry_and_as_a_burn(store: Store, record: DatasetRecord) -> None:
    """It reads back whole, among the entries and among the burns, and no query is answered with it."""
    first = append(store, record, {0: 5})
    with store.transaction(record.id, lock=True) as transaction:
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
    append(store, record, {0: 1})
    assert store.head(record.id).seq == 3
    assert [shown.place.seq for shown in listed(store)] == [3, 1]


def test_the_journal_moves_the_data_version_and_the_epoch(store: Store, record: DatasetRecord) -> None:
    """Acts are counted, so that other replicas know that records have changed."""
    with store.transaction(record.id, lock=True) as transaction:
        transaction.journal("epoch", {"epoch": 2}, epoch=2)
        transaction.journal("rows", {"rows": 0}, slots=0)
        transaction.commit()
    head = store.head(record.id)
    assert (head.epoch, head.data_version, head.slots, head.seq) == (2, 2, 0, 0)


def test_the_newest_entry_of_this_epoch_is_reused(store: Store, record: DatasetRecord) -> None:
    """An older entry with the same hash is passed over, and the next public epoch knows none of them."""
    asked = [Asked(address=(ANALYST, "new"), query_hash="q")]
    append(store, record, {0: 1})
    second = append(store, record, {0: 1})
    with store.transaction(record.id, lock=True, asked=asked) as transaction:
        assert transaction.known.reusable == {"q": public_part(second)}
        transaction.journal("epoch", {"epoch": 2}, epoch=2)
        transaction.commit()
    with store.transaction(record.id, lock=True, asked=asked) as transaction:
        assert transaction.known.reusable == {}


def test_a_new_database_knows_no_principal(store: Store) -> None:
    """No key is good before an operator makes one."""
    assert store.principals.listed(after=None, limit=9) == []


HOSTILE = [
    "x'; DROP TABLE individuals; --",
    '"',
    "''",
    "%s",
    "%(a)s",
    "{}",
    "$1",
    "\\",
    "\\'",
    "/*",
    "1 OR 1=1",
    "\u2028",
]
"""Texts that would end a literal, begin a comment or stand for a parameter where text becomes part of a statement."""


def test_text_is_never_a_part_of_a_statement(store: Store, record: DatasetRecord) -> None:
    """Keys of individuals and names of principals read back as they are, and each finds itself alone."""
    join(store, record, dict.fromkeys(HOSTILE, 10))
    with store.transaction(record.id, lock=False) as transaction:
        assert transaction.slots_of(list(map(Key, HOSTILE))).tolist() == list(range(len(HOSTILE)))
    for number, text in enumerate(HOSTILE):
        assert store.dataset(text) is None
        made = principal(number, name=text, purpose=text)
        store.principals.add([made])
        assert store.principals.find(UUID(int=number)) == made
        found = store.principals.listed(after=None, limit=99, only=PrincipalFilter(words=(text,)))
        assert [each.name for each in found] == [each for each in HOSTILE[: number + 1] if text in each]


def test_principals_are_kept_listed_and_revoked_once(store: Store, record: DatasetRecord) -> None:
    """A principal reads back whole; revoking works once and says so."""
    people = [principal(n, dataset=record.name if n else None, allowance_units=n or None) for n in range(3)]
    for each in people:
        store.principals.add([each])

    assert store.principals.find(UUID(int=1)) == people[1]
    assert store.principals.find(UUID(int=9)) is None
    assert store.principals.listed(after=None, limit=2) == people[:2]
    assert store.principals.listed(after=UUID(int=1), limit=2) == people[2:]
    for only, found in (
        (PrincipalFilter(role="auditor"), []),
        (PrincipalFilter(role="analyst", dataset=record.name), people[1:]),
        (PrincipalFilter(words=("ANA", "2")), people[2:]),
        (PrincipalFilter(words=("ana", record.name, "analyst")), people[1:]),
        (PrincipalFilter(words=("an%a",)), []),
        (PrincipalFilter(words=("a_a",)), []),
    ):
        assert store.principals.listed(after=None, limit=9, only=only) == found
        assert store.principals.listed(after=UUID(int=1), limit=9, only=only) == found[-1:]
    only = PrincipalFilter(words=("ana",))
    assert store.principals.listed(after=UUID(int=0), limit=9, only=only, last=UUID(int=1)) == people[1:2]
    assert store.principals.reach(after=None, limit=2) == UUID(int=1)
    assert store.principals.reach(after=UUID(int=0), limit=2) == UUID(int=2)
    assert store.principals.reach(after=UUID(int=1), limit=2) is None
    assert store.principals.revoke(UUID(int=1), AT)
    assert not store.principals.revoke(UUID(int=1), AT)
    assert not store.principals.revoke(UUID(int=9), AT)
    assert store.principals.find(UUID(int=1)) == replace(people[1], revoked_at=AT)


def test_principals_change_together_and_by_themselves(store: Store, record: DatasetRecord) -> None:
    """Many are added or none; a change keeps role and bounds; a revoked one does not change."""
    made = [
        principal(
            n,
            role="analyst" if n % 2 else "auditor",
            dataset=record.name if n < 3 else None,
            expires_at=AT + timedelta(days=n),
        )
        for n in range(1, 6)
    ]
    store.principals.add(made)
    assert sorted(store.principals.some([UUID(int=2), UUID(int=4), UUID(int=9)]), key=lambda each: each.id) == [
        made[1],
        made[3],
    ]
    assert store.principals.analysts_of(record.name) == [made[0], made[2], made[4]]
    assert store.principals.analysts_of("nowhere") == [made[2], made[4]]
    changed = replace(
        made[0], name="bo", allowance_units=7, key_hash=bytes([1] * 32), organisation="o", purpose="p", expires_at=None
    )
    assert store.principals.change(replace(changed, role="curator", dataset=None))
    assert store.principals.find(UUID(int=1)) == changed
    assert store.principals.revoke(UUID(int=1), AT)
    assert not store.principals.change(made[0])
    assert not store.principals.change(replace(made[0], id=UUID(int=9)))
    assert store.principals.find(UUID(int=1)) == replace(changed, revoked_at=AT)


def test_own_answers_are_found_newest_first_and_by_query(store: Store, record: DatasetRecord) -> None:
    """An analyst's listing holds only its own answers, page after page, each in the form in which it was asked for."""
    first = append(store, record, {0: 1}, key="a")
    with store.transaction(record.id, lock=True) as transaction:
        second = entry(transaction.head, {0: 1})
        later = replace(answer(second, "b"), at=AT + timedelta(seconds=5), asked_form=b'{"mean":"age"}')
        transaction.append([second], [later], {})
        transaction.commit()

    both = listed(store)
    assert both == [_as_listed(record, second, later), _as_listed(record, first, answer(first, "a"))]
    assert listed(store, before=both[0].place, limit=1) == both[1:]
    assert store.releases_of(UUID(int=8), before=None, limit=10, bytes_max=MANY_BYTES) == []
    assert store.answer_of(ANALYST, first.query_id) == OwnAnswer(dataset=record.name, answer=answer(first, "a"))
    assert store.answer_of(UUID(int=8), first.query_id) is None
    assert store.problems() == []


def _as_listed(record: DatasetRecord, shown: LedgerEntry, by: AnswerRecord) -> ReleaseRecord:
    return ReleaseRecord(
        dataset=record.name,
        place=ReleasePlace(by.at, record.id, shown.seq, by.key),
        query_id=shown.query_id,
        epoch=shown.epoch,
        canonical=by.asked_form or shown.canonical,
        mechanism=shown.mechanism,
        sigma=shown.sigma,
        sigmas=shown.sigmas,
        dimension=shown.dimension,
        worst_case_units=shown.worst_case_units,
    )


def test_of_several_answers_that_show_a_query_the_oldest_is_given(store: Store, record: DatasetRecord) -> None:
    """The answer that was charged; where another analyst's entry was reused, the first under any key."""
    other = UUID(int=8)
    with store.transaction(record.id, lock=True) as transaction:
        first = entry(transaction.head, {0: 1})
        answers = [answer(first, "a"), replace(answer(first, "B"), at=AT + timedelta(seconds=1))]
        theirs = [
            replace(answer(first, key), principal_id=other, at=AT + timedelta(seconds=seconds))
            for key, seconds in (("x", 9), ("b", 5), ("B", 5), ("a", 7))
        ]
        transaction.append([first], [*answers, *theirs], {})
        transaction.commit()
    for who, key in ((ANALYST, "a"), (other, "B")):
        own = store.answer_of(who, first.query_id)
        assert own is not None
        assert own.answer.key == key


SECONDS, KEYS = st.integers(0, 1), st.text(st.sampled_from("aB/-~ "), min_size=1, max_size=3)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    asked=st.lists(st.tuples(st.integers(0, 1), SECONDS, KEYS, st.integers(0, 3000)), max_size=30, unique_by=_address),
    limit=st.integers(1, 7),
    bytes_max=st.integers(1, 9000),
)
def test_pages_of_releases_lose_and_repeat_nothing(
    store: Store, asked: list[tuple[int, int, str, int]], limit: int, bytes_max: int
) -> None:
    """Against a sorted list: many of one second, of two datasets, of one entry; pages end by number and by bytes."""
    who = uuid4()
    records = [store.add_dataset(dataset(f"d{uuid4().hex}")) for _ in range(2)]
    expected = []
    for number, seconds, key, length in asked:
        with store.transaction(records[number].id, lock=True) as transaction:
            made = replace(entry(transaction.head, {0: 1}), canonical=b"x" * length).sealed()
            form = b"y" * (length // 2 + 1)
            again = replace(answer(made, f"{key}|"), asked_form=form)  # a second answer shows the same entry
            answers = [
                replace(each, principal_id=who, at=AT + timedelta(seconds=seconds))
                for each in (answer(made, key), again)
            ]
            transaction.append([made], answers, {})
            transaction.commit()
        expected += [_as_listed(records[number], made, each) for each in answers]
    expected.sort(key=lambda each: each.place, reverse=True)

    seen: list[ReleaseRecord] = []
    while page := store.releases_of(who, before=seen[-1].place if seen else None, limit=limit, bytes_max=bytes_max):
        assert len(page) <= limit
        assert sum(len(each.canonical) for each in page[:-1]) < bytes_max
        is_short = len(page) < limit and len(seen) + len(page) < len(expected)
        assert not is_short or sum(len(each.canonical) for each in page) >= bytes_max
        seen += page
    assert seen == expected
