"""The ledger at rest: erasures and prunings, receipts among dense entries, entry sizes.

    python -m loadtests.bench_ledger

A receipt is read as the service reads it, from a snapshot of the database. It is that of one individual among a
million, in a ledger of a hundred entries, each of which charges every individual a different amount.
"""

import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import numpy as np
import psycopg

from loadtests.rig import throw_away_home
from service.arrays import uniform
from service.embedded import EmbeddedPostgres
from service.ledger.model.api_keys import Pepper
from service.ledger.model.ledger_entry import FORMAT, LedgerEntry
from service.ledger.model.pieces import Measure, Quantities, pieces_of
from service.ledger.model.rows import DatasetRecord, Head, WitnessRecord
from service.ledger.model.stated_guarantee import Guarantee
from service.maintenance.amend import amend_erased
from service.query.keys import Key
from service.query.schema import Schema
from service.store.entropy import system_entropy
from service.store.postgres.registrations import migrate
from service.store.postgres.store import PostgresStore
from service.writer.rollback.guard import RollbackGuard, witness_name
from service.writer.state import DatasetState
from service.writer.threads import WriterThread
from tests.digests import SALT
from tests.memory.cache import MemoryWitness

PEOPLE = 10**6
DENSE = 100
AGED = 300_000
AT_ONCE = 1_000
FEW = 163
"""How many individuals a sparse entry charges."""
ROUNDS = 200
AT = datetime(2026, 11, 22, tzinfo=UTC)
BYTES = (
    'SELECT coalesce(octet_length(piece), 0) + octet_length(canonical) + octet_length("values") + 32 * 5'
    " + coalesce((SELECT sum(octet_length(sealed) + 44) FROM pieces p"
    " WHERE p.dataset_id = l.dataset_id AND p.seq = l.seq), 0) FROM ledger l ORDER BY seq LIMIT 1 OFFSET %s"
)


@contextmanager
def database() -> Iterator[str]:
    """The URL of a new server with the newest schema."""
    with throw_away_home() as home, EmbeddedPostgres(home / "postgres", throw_away=True) as server:
        url = server.url_of("postgres")
        migrate(url)
        yield url


def dataset(store: PostgresStore) -> DatasetRecord:
    """Store a registration."""
    people = {"kind": "individuals", "key": "id", "columns": {"age": {"type": "integer", "lower": 0, "upper": 120}}}
    return store.add_dataset(
        DatasetRecord(
            id=0,
            name="million",
            guarantee=Guarantee(epsilon=None, delta=None),
            budget_units=2**60,
            limit_floor_units=2**60,
            capacity=2**20,
            rule="skip",
            schema=Schema.model_validate({"people": people}),
            genesis=bytes(31) + b"g",
            salt=SALT,
        )
    )


def entry(head: Head, told: Quantities) -> LedgerEntry:
    """The entry that follows a head."""
    salt = uuid4().bytes + uuid4().bytes
    draft = LedgerEntry(
        format=FORMAT,
        seq=head.seq + 1,
        query_id=uuid4(),
        analyst_id=UUID(int=1),
        analyst="ana",
        epoch=1,
        canonical=b'{"version":1}',
        query_hash=f"q{head.seq}",
        sigma=1e9,
        grid_log2=0,
        dimension=1,
        worst_case_units=1,
        worst_case_total_units=head.seq + 1,
        values=bytes(8),
        asked_at=AT,
        salt=salt,
        pieces=pieces_of(told.blocks(), told.measure, amount_max=2**40, slots=PEOPLE, salt=salt),
        charged_count=told.touched.size,
        left_out_count=0,
        charged_units=0,
        previous_hash=head.hash,
        hash=b"",
    )
    return replace(draft).sealed()


def told(count: int, *, one_norm: bool) -> Quantities:
    """The quantities of `count` active people, evenly spread. With `one_norm` all norms are equal."""
    slots = np.arange(0, PEOPLE, PEOPLE // count)[:count]
    return Quantities(
        measure=Measure.ONE_NORM if one_norm else Measure.NORMS,
        touched=slots,
        active=np.ones(count, dtype=np.bool_),
        amounts=uniform(1, count) if one_norm else np.random.default_rng(0).integers(1, 2**40, count),
    )


def append(store: PostgresStore, record: DatasetRecord, what: Quantities) -> None:
    """Commit one entry by itself. No request has made it, so that it has no answer."""
    with store.transaction(record.id, lock=True) as transaction:
        transaction.append([entry(transaction.head, what)], [], {})
        transaction.commit()


def receipts() -> dict[str, float]:
    """The milliseconds for one receipt and for a page of twenty, and the bytes of an entry."""
    with database() as url, closing(PostgresStore(url, Pepper(bytes(32)).ledger_key())) as store:
        record = dataset(store)
        append(store, record, told(10, one_norm=True))
        began = time.perf_counter()
        for _ in range(DENSE):
            append(store, record, told(PEOPLE, one_norm=False))
        append_ms = 1000 * (time.perf_counter() - began) / DENSE
        source = np.random.default_rng(1)

        def read_ms(limit: int) -> float:
            taken = []
            for _ in range(ROUNDS):
                slot, before = int(source.integers(PEOPLE)), int(source.integers(limit + 1, DENSE + 2))
                began = time.perf_counter()
                with store.transaction(record.id, lock=False) as transaction:
                    found = transaction.own_charges(slot, before=before, limit=limit, bytes_max=2**20)
                taken.append(1000 * (time.perf_counter() - began))
                assert len(found) == limit, found
            return statistics.median(taken)

        with psycopg.connect(url) as connection:
            sparse, dense = (int(connection.execute(BYTES, [n]).fetchall()[0][0]) for n in (0, 1))
        return {
            "receipt_ms": read_ms(1),
            "receipts_20_ms": read_ms(20),
            "dense_append_ms": append_ms,
            "sparse_entry_bytes": sparse,
            "dense_entry_bytes": dense,
        }


def rewriting() -> dict[str, float]:
    """The seconds to amend an aged ledger for erasures, and to prune it; the bytes of an entry before and after.

    One erased individual was charged by every entry, the other by none.
    """
    with database() as url, closing(PostgresStore(url, Pepper(bytes(32)).ledger_key())) as store:
        record = aged(store)
        checkpoint = replayed(store, record).checkpoint()
        for page in checkpoint.pages:
            store.write_page(record.id, checkpoint, page)
        store.finish_checkpoint(record.id, checkpoint)
        witness = MemoryWitness()
        witness.write(witness_name(record), WitnessRecord.of(store.head(record.id)))
        guard = RollbackGuard(record=record, store=store, witness=witness)
        writer = WriterThread(record=record, guard=guard, entropy=system_entropy)
        writer.catch_up()
        figures = {"entry_bytes": bytes_of_an_entry(url)}
        for name, slot in (("erasure_of_all_s", 0), ("erasure_of_none_s", 1)):
            with store.transaction(record.id, lock=True) as transaction:
                transaction.journal("erase", {"slot": slot})
                transaction.commit()
            began = time.perf_counter()
            amend_erased(writer)
            figures[name] = time.perf_counter() - began
        with store.transaction(record.id, lock=True) as transaction:
            transaction.journal("prune", {"seq": AGED})
            transaction.prune(AGED)
            transaction.commit()
        began = time.perf_counter()
        for after in range(0, AGED, AT_ONCE):
            with store.long_act(record.id) as transaction:
                transaction.drop_quantities(after=after, to=after + AT_ONCE)
                transaction.lock()
                transaction.commit()
        figures["dropping_s"] = time.perf_counter() - began
        writer.end()
        writer.ended(within_s=10)
        return figures | {"pruned_entry_bytes": bytes_of_an_entry(url)}


def bytes_of_an_entry(url: str) -> float:
    """The share of one entry in the whole table with its indexes, without dead rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM FULL ledger")
        size = connection.execute("SELECT pg_total_relation_size('ledger')").fetchall()[0][0]
    return float(size) / AGED


def aged(store: PostgresStore) -> DatasetRecord:
    """A dataset with many sparse entries."""
    record, few = dataset(store), told(FEW, one_norm=True)
    with store.transaction(record.id, lock=True) as transaction:
        transaction.add_individuals(few.touched, [Key(str(n)) for n in range(FEW)], np.full(FEW, 2**60))
        transaction.journal("rows", {}, slots=PEOPLE)
        transaction.commit()
    for _ in range(AGED // AT_ONCE):
        append_many(store, record, few)
    return record


def replayed(store: PostgresStore, record: DatasetRecord) -> DatasetState:
    """The dataset in memory."""
    state = DatasetState(record)
    with store.transaction(record.id, lock=False) as transaction:
        state.catch_up(transaction)
    return state


def append_many(store: PostgresStore, record: DatasetRecord, what: Quantities) -> None:
    """Commit many entries at once."""
    with store.transaction(record.id, lock=True) as transaction:
        head, made = transaction.head, list[LedgerEntry]()
        for _ in range(AT_ONCE):
            made.append(entry(head, what))
            head = replace(head, seq=made[-1].seq, hash=made[-1].hash)
        transaction.append(made, [], {})
        transaction.commit()


if __name__ == "__main__":
    json.dump(rewriting() | receipts(), sys.stdout, indent=2)
    print()
