"""Rebuilding: a deleted answer is made again from its ledger entry, under its original key.

An entry holds the query, the released numbers, and a digest of the principal and the key. The restored row equals the
deleted one byte for byte: the key replays it, nothing is drawn and no individual is charged. The entry does not hold
the request's `reuse`, so that the caller states it; for a query that may not reuse an answer it does not matter.
"""

from service.ledger.model.errors import InvalidRequest, LedgerDamaged, Unavailable
from service.ledger.model.ledger_entry import LedgerEntry, answer_digest
from service.ledger.model.rows import AnswerRecord, Asked, DatasetRecord, RegistrationHistory
from service.ledger.ports.store import CommitUnclear, Store, registered
from service.ledger.ports.transaction import Transaction
from service.maintenance.start_check import gives_its_hash
from service.maintenance.verify.answers import KeptOf, place_of, plan_of
from service.query.canonical import request_hash
from service.query.problems import QueryProblem
from service.query.stated import shown_of
from service.writer.batch import document


def rebuild(store: Store, dataset: str, *, seq: int, key: str, reuse: bool = True) -> AnswerRecord | None:
    """Restore the answer to entry `seq`, first given under `key`; None if that row is present.

    Safe to repeat after any failure, and during queries: the key is looked up under the dataset's lock.
    Raises NotFound without the dataset, InvalidRequest naming `sequence` or `key`, LedgerDamaged when the entry is
    damaged, and Unavailable when the commit's outcome is not known.
    """
    record = registered(store, dataset)
    with store.transaction(record.id, lock=False) as snapshot:
        entry = _entry(snapshot, seq)
        # Keys are ASCII; a terminal may send text that cannot be encoded.
        if not key.isascii() or answer_digest(entry.salt, entry.analyst_id, key) != entry.answer_digest:
            raise InvalidRequest.of("key", f"ledger row {seq} was not asked under this key")
        history = RegistrationHistory(record, snapshot.earlier_registrations())
        answer = _answer(history.at(seq), entry, key, kept=snapshot.parameters, reuse=reuse)
        _refuse_moved(snapshot, answer)
    asked = Asked(address=(answer.principal_id, key), query_hash=None)
    with store.transaction(record.id, lock=True, asked=[asked]) as transaction:
        stored = transaction.known.answers.get(asked.address)
        if stored is not None and stored != answer:
            raise InvalidRequest.of("key", f"{place_of(stored)} is taken: it shows ledger row {stored.seq}")
        if stored is None:
            transaction.append([], [answer], {})
            try:
                transaction.commit()
            except CommitUnclear as fault:
                raise Unavailable("the outcome of the commit is not known: run the command again") from fault
    return answer if stored is None else None


def _entry(snapshot: Transaction, seq: int) -> LedgerEntry:
    """The entry, if it is undamaged and an answer can be made of it."""
    found = list(snapshot.entries(after=seq - 1, limit=2))
    if not found or found[0].seq != seq:
        raise InvalidRequest.of("sequence", f"there is no ledger row {seq}")
    entry = found[0]
    if entry.kind != "query":
        raise InvalidRequest.of("sequence", f"ledger row {seq} is a {entry.kind}, which has no answer")
    if not gives_its_hash(entry):
        raise LedgerDamaged(f"ledger row {seq}: its contents do not give its hash")
    if entry.hash != (found[1].previous_hash if len(found) > 1 else snapshot.head.hash):
        raise LedgerDamaged(f"ledger row {seq}: what comes after it does not continue it")
    return entry


def _answer(record: DatasetRecord, entry: LedgerEntry, key: str, *, kept: KeptOf, reuse: bool) -> AnswerRecord:
    """The row as it was made with the entry."""
    try:
        plan = plan_of(entry.canonical, record, analyst_id=entry.analyst_id, dimension=entry.dimension, kept=kept)
    except QueryProblem as problem:
        refusal = f"this version of the service cannot read the query of ledger row {entry.seq}"
        raise InvalidRequest.of("sequence", refusal) from problem
    return AnswerRecord(
        principal_id=entry.analyst_id,
        key=key,
        request_hash=request_hash(entry.canonical, reuse=reuse and plan.reuse),
        seq=entry.seq,
        query_id=entry.query_id,
        body=document(shown_of(plan), entry, record, reused=False),
        at=entry.asked_at,
    )


def _refuse_moved(snapshot: Transaction, answer: AnswerRecord) -> None:
    """Raise InvalidRequest when the answer is stored under another key: it was moved, not deleted."""
    for each in snapshot.answers():
        if each.seq > answer.seq:
            return
        is_elsewhere = (each.principal_id, each.key) != (answer.principal_id, answer.key)
        if each.body == answer.body and is_elsewhere:
            raise InvalidRequest.of("key", f"the answer was moved, not deleted: {place_of(each)} holds it")
