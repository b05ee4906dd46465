"""The tables of sign-ins, summary points and alarms, and deletions of datasets, in memory and on Postgres."""

from dataclasses import replace
from datetime import timedelta, timezone
from uuid import UUID

import pytest

from service.ledger.model.rows import NO_KEY, DatasetRecord, PrincipalRecord
from service.ledger.ports.store import BudgetAlarm, NotEmpty, SignIn, Store, SummaryPoint
from service.query.keys import Key
from service.workflows.principals import EXPIRY_END
from tests.contracts.stores import AT, append, dataset, principal

HOUR = timedelta(hours=1)


@pytest.fixture
def holder(store: Store) -> PrincipalRecord:
    """A principal that may sign in."""
    record = principal(11, role="curator", key_hash=b"k" * 32)
    store.principals.add([record])
    return record


def sign_in(holder: PrincipalRecord, token: int) -> SignIn:
    """A sign-in of an hour under a token."""
    return SignIn(
        token_hash=bytes([token]) * 32,
        principal_id=holder.id,
        key_hash=holder.key_hash,
        began_at=AT,
        expires_at=AT + HOUR,
    )


def found(store: Store, token_hash: bytes) -> SignIn | None:
    """The sign-in that is kept under a hash; the others that are asked for with it make no difference."""
    kept = store.sign_ins.some([bytes([9]) * 32, token_hash])
    return next(iter(kept), None)


def point(seq: int, cannot_afford: int | None = 3) -> SummaryPoint:
    """The budgets at a sequence."""
    return SummaryPoint(
        seq=seq,
        at=AT,
        individuals=9,
        exhausted=1,
        paused=2,
        cannot_afford=cannot_afford,
        quantiles=(0.1, 0.25, 0.5, 0.75, 1.0),
    )


def test_a_principal_may_have_no_key(store: Store, holder: PrincipalRecord) -> None:
    """The hash that stands for none is kept like one, of a principal and of its sign-ins."""
    without = replace(holder, id=UUID(int=12), key_hash=NO_KEY)
    store.principals.add([without])
    assert store.principals.find(without.id) == without
    assert store.principals.recognised([without.id, UUID(int=13)]) == [without]
    store.sign_ins.add(sign_in(without, 1), now=AT)
    assert found(store, bytes([1]) * 32) == sign_in(without, 1)


def test_a_principal_is_bound_anew_and_its_sign_ins_end(
    store: Store, record: DatasetRecord, holder: PrincipalRecord
) -> None:
    """The id and the age stay, and others' sign-ins; the same binding again changes nothing and ends nothing."""
    first = replace(holder, id=UUID(int=12), key_hash=NO_KEY)
    store.principals.add([first])
    for number, each in enumerate((first, first, holder), start=1):
        store.sign_ins.add(sign_in(each, number), now=AT)
    bound = replace(first, role="analyst", name="ana", dataset=record.name, allowance_units=5, purpose="Study")
    assert store.principals.rebind(replace(bound, created_at=AT + HOUR))
    assert store.principals.find(first.id) == bound
    assert [found(store, bytes([n]) * 32) is not None for n in (1, 2, 3)] == [False, False, True]
    store.sign_ins.add(sign_in(bound, 4), now=AT)
    assert not store.principals.rebind(replace(bound, name="again"))
    assert (store.principals.find(first.id), found(store, bytes([4]) * 32)) == (bound, sign_in(bound, 4))
    last = replace(bound, role="individual", individual=Key("ada"), allowance_units=None, expires_at=AT + HOUR)
    assert (store.principals.rebind(last), store.principals.find(first.id)) == (True, last)


def test_a_principal_that_is_unknown_revoked_or_has_a_key_is_not_bound_anew(
    store: Store, holder: PrincipalRecord
) -> None:
    """Nothing of it changes, and its sign-ins stay as they were."""
    revoked = replace(holder, id=UUID(int=12), key_hash=NO_KEY, revoked_at=AT)
    store.principals.add([revoked])
    for number, each in enumerate((holder, revoked)):
        store.sign_ins.add(sign_in(each, number), now=AT)
        assert not store.principals.rebind(replace(each, role="auditor"))
        assert store.principals.find(each.id) == each
        assert found(store, bytes([number]) * 32) == sign_in(each, number)
    assert not store.principals.rebind(replace(holder, id=UUID(int=13), key_hash=NO_KEY, role="auditor"))
    assert store.principals.find(UUID(int=13)) is None


def test_a_sign_in_is_found_by_its_token_until_it_ends(store: Store, holder: PrincipalRecord) -> None:
    """The end of one leaves the others."""
    first, second = sign_in(holder, 1), sign_in(holder, 2)
    for each in (first, second):
        store.sign_ins.add(each, now=AT)
    assert [found(store, each.token_hash) for each in (first, second)] == [first, second]
    assert found(store, bytes(32)) is None
    store.sign_ins.end(first.token_hash)
    store.sign_ins.end(bytes(32))
    assert [found(store, each.token_hash) for each in (first, second)] == [None, second]


def test_a_sign_in_is_extended_while_it_lasts(store: Store, holder: PrincipalRecord) -> None:
    """One that has ended does not come back."""
    kept = sign_in(holder, 1)
    store.sign_ins.add(kept, now=AT)
    store.sign_ins.extend([kept.token_hash], AT + 2 * HOUR)
    assert found(store, kept.token_hash) == replace(kept, expires_at=AT + 2 * HOUR)
    store.sign_ins.end(kept.token_hash)
    store.sign_ins.extend([kept.token_hash], AT + 3 * HOUR)
    assert found(store, kept.token_hash) is None


def test_a_new_sign_in_drops_those_that_have_expired(store: Store, holder: PrincipalRecord) -> None:
    """The table does not grow with old cookies."""
    old, lasting = sign_in(holder, 1), replace(sign_in(holder, 2), expires_at=AT + 3 * HOUR)
    store.sign_ins.add(old, now=AT)
    store.sign_ins.add(lasting, now=AT)
    store.sign_ins.add(sign_in(holder, 3), now=AT + 2 * HOUR)
    assert found(store, old.token_hash) is None
    assert found(store, lasting.token_hash) == lasting


def test_points_are_kept_by_sequence_once(store: Store, record: DatasetRecord) -> None:
    """The first point of a sequence stands; each dataset has its own."""
    other = store.add_dataset(dataset("other"))
    for each in (point(7), point(2, None), replace(point(7), exhausted=5)):
        store.summaries.add_point(record.id, each)
    store.summaries.add_point(other.id, point(1))
    assert store.summaries.points(record.id) == [point(2, None), point(7)]
    assert store.summaries.points(other.id) == [point(1)]


def test_points_are_dropped_by_sequence(store: Store, record: DatasetRecord) -> None:
    """Those of other datasets and sequences stay."""
    other = store.add_dataset(dataset("other"))
    for seq in (1, 2, 3):
        store.summaries.add_point(record.id, point(seq))
        store.summaries.add_point(other.id, point(seq))
    store.summaries.drop_points(record.id, [1, 3, 9])
    assert [each.seq for each in store.summaries.points(record.id)] == [2]
    assert [each.seq for each in store.summaries.points(other.id)] == [1, 2, 3]


def test_an_alarm_is_set_replaced_and_removed(store: Store, record: DatasetRecord) -> None:
    """An alarm that rang knows where."""
    assert store.summaries.alarm(record.id) is None
    for alarm in (BudgetAlarm(share=0.25), BudgetAlarm(share=0.25, rang_seq=4), BudgetAlarm(share=0.5), None, None):
        store.summaries.set_alarm(record.id, alarm)
        assert store.summaries.alarm(record.id) == alarm


def test_a_dataset_that_never_answered_is_deleted_with_all_that_is_kept_beside_it(
    store: Store, record: DatasetRecord
) -> None:
    """Its name is free again and remembers how often that was so; other datasets lose nothing."""
    other = store.add_dataset(dataset("other"))
    bound = principal(12, dataset="survey")
    store.principals.add([bound])
    for each in (record, other):
        store.summaries.add_point(each.id, point(0))
        store.summaries.set_alarm(each.id, BudgetAlarm(share=0.5))
    assert store.deletions("survey") == 0
    store.delete_dataset(record.id)
    assert (store.dataset("survey"), store.deletions("survey"), store.principals.find(bound.id)) == (None, 1, None)
    assert store.summaries.points(record.id) == []
    assert store.summaries.alarm(record.id) is None
    assert (store.summaries.points(other.id), store.dataset("other")) == ([point(0)], other)
    again = store.add_dataset(replace(dataset("survey"), instance=1))
    assert (again.id > other.id, store.head(again.id).seq) == (True, 0)


def test_a_dataset_that_has_answered_is_not_deleted(store: Store, record: DatasetRecord) -> None:
    """Not even its points go."""
    store.summaries.add_point(record.id, point(0))
    append(store, record, {}, units=1)
    with pytest.raises(NotEmpty):
        store.delete_dataset(record.id)
    assert (store.dataset("survey"), store.deletions("survey")) == (record, 0)
    assert store.summaries.points(record.id) == [point(0)]


def test_the_last_expiry_that_a_key_may_have_is_read_again(store: Store, holder: PrincipalRecord) -> None:
    """In any zone."""
    last = replace(
        holder, expires_at=(EXPIRY_END - timedelta(microseconds=1)).astimezone(timezone(-timedelta(hours=14)))
    )
    assert store.principals.change(last)
    assert store.principals.find(holder.id) == last
