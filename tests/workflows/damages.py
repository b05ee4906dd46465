"""Damages done to a database with its owner's rights, and the finding that `ledger verify` must report for each."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import uuid4

import psycopg
from psycopg import sql

from service.store.postgres.store import PostgresStore
from tests.conftest import PostgresServer
from tests.factories import witness_of
from tests.keys import LEDGER_KEY
from tests.memory.cache import MemoryWitness

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Damage:
    """`statement` runs with the owner's rights, triggers and foreign keys off; `found` is part of the finding."""

    name: str
    statement: str
    found: str

    def __str__(self) -> str:
        return self.name


def damage(database_url: str, statement: str, *values: object) -> None:
    """Run a statement with the owner's rights and without triggers; it changes at least one row."""
    with psycopg.connect(database_url) as owner:
        owner.execute("SET session_replication_role = replica")
        assert owner.execute(statement.encode(), values or None).rowcount > 0


@dataclass(frozen=True, slots=True)
class Filled(Generic[Made]):
    """A database that was filled once, to be damaged and restored; `made` is the result of filling it."""

    url: str
    made: Made
    witness: MemoryWitness

    @contextmanager
    def opened(self) -> Iterator[tuple[PostgresStore, str]]:
        """A store with a witness that has seen the same, and its URL; at the end all rows are those of the filling."""
        try:
            with closing(PostgresStore(self.url, LEDGER_KEY)) as store:
                witness_of(store).kept.update(self.witness.kept)
                yield store, self.url
        finally:
            with psycopg.connect(self.url) as owner:
                owner.execute("SET session_replication_role = replica")
                for table in tables_of(owner):
                    owner.execute(sql.SQL("DELETE FROM {}").format(table))
                    owner.execute(sql.SQL("INSERT INTO {0} OVERRIDING SYSTEM VALUE TABLE kept.{0}").format(table))


def tables_of(owner: psycopg.Connection[Any]) -> list[sql.Identifier]:
    """The tables of a database."""
    found = owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return [sql.Identifier(name) for (name,) in found]


@contextmanager
def filled(server: PostgresServer, template: str, fill: Callable[[PostgresStore], Made]) -> Iterator[Filled[Made]]:
    """A database that is filled once, with its rows in the schema `kept`, and dropped at the end."""
    name = f"filled_{uuid4().hex}"
    url = server.url_of(name)
    with psycopg.connect(server.dsn, autocommit=True) as maintenance:
        maintenance.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        with closing(PostgresStore(url, LEDGER_KEY)) as store:
            made, witness = fill(store), witness_of(store)
        with psycopg.connect(url) as owner:
            owner.execute("CREATE SCHEMA kept")
            for table in tables_of(owner):
                owner.execute(sql.SQL("CREATE TABLE kept.{0} AS TABLE {0}").format(table))
        yield Filled(url, made, witness)
        maintenance.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


DAMAGES = [
    Damage(
        "an answer's values are edited",
        "UPDATE answers SET body = convert_to(regexp_replace(convert_from(body, 'UTF8'),"
        " '\"values\":\\[[^]]*\\]', '\"values\":[7]'), 'UTF8') WHERE idempotency_key = 'a'",
        "answers row 'a' of {ana}: its body says other values than ledger row 1",
    ),
    Damage(
        "an answer's body is no JSON",
        "UPDATE answers SET body = 'x' WHERE idempotency_key = 'a'",
        "answers row 'a' of {ana}: its body is not the one that ledger row 1 gives",
    ),
    Damage(
        "a fresh answer is deleted",
        "DELETE FROM answers WHERE idempotency_key = 'a'",
        "ledger row 1: the answer to it is missing from answers",
    ),
    Damage(
        "a fresh answer is passed off as reused",
        "UPDATE answers SET body = replace(convert_from(body, 'UTF8'), '\"reused\":false',"
        " '\"reused\":true')::bytea WHERE idempotency_key = 'a'",
        "ledger row 1: the answer to it is missing from answers",
    ),
    Damage(
        "an answer is given to another principal",
        "UPDATE answers SET principal_id = gen_random_uuid() WHERE idempotency_key = 'a'",
        "is said to be fresh, but ledger row 1 was asked by {ana}",
    ),
    Damage(
        "an answer's request is another",
        "UPDATE answers SET request_hash = sha256('x') WHERE idempotency_key = 'a'",
        "answers row 'a' of {ana}: its request_hash is not of the query of ledger row 1",
    ),
    Damage(
        "a fresh answer has a form of its own",
        "UPDATE answers SET asked_form = (SELECT canonical FROM ledger WHERE seq = 1) WHERE idempotency_key = 'a'",
        "answers row 'a' of {ana}: its asked_form is another than that of ledger row 1",
    ),
    Damage(
        "an answer's form is of another query",
        "UPDATE answers SET asked_form = (SELECT replace(convert_from(canonical, 'UTF8'), '\"sigma\":',"
        " '\"sigma\":1')::bytea FROM ledger WHERE seq = 1) WHERE idempotency_key = 'a'",
        "answers row 'a' of {ana}: its query is not that of ledger row 1",
    ),
    Damage(
        "an answer shows another entry",
        "UPDATE answers SET query_id = gen_random_uuid() WHERE idempotency_key = 'a'",
        "answers row 'a' of {ana}: its query_id is not that of ledger row 1",
    ),
    Damage(
        "an answer is of another time",
        "UPDATE answers SET at = at + interval '1 s' WHERE idempotency_key = 'a'",
        "answers row 'a' of {ana}: is said to be fresh, but ledger row 1 was asked at another time",
    ),
    Damage(
        "an answer shows no entry",
        "UPDATE answers SET seq = 99 WHERE idempotency_key = 'a'",
        "answers row 'a' of {ana}: shows ledger row 99, which does not exist",
    ),
    Damage(
        "every limit is doubled",
        "UPDATE individuals SET limit_units = 2 * limit_units",
        "individuals row 0: its limit is 1099511627776 units, the journal gives 549755813888",
    ),
    Damage(
        "a lowered limit is raised again",
        "UPDATE individuals SET limit_units = 549755813888 WHERE slot = 1",
        "individuals row 1: its limit is 549755813888 units, the journal gives 274877906944",
    ),
    Damage(
        "the budget is doubled",
        "UPDATE datasets SET budget_units = 2 * budget_units, limit_floor_units = 2 * limit_floor_units",
        "datasets row 1: what it says of the registration does not give its genesis",
    ),
    Damage(
        "worst cases are zeroed",
        "UPDATE worst_cases SET units = 0",
        "worst_cases row {ana}: says 0 units, the ledger gives",
    ),
    Damage(
        "worst cases are deleted", "DELETE FROM worst_cases", "worst_cases row {ana}: says 0 units, the ledger gives"
    ),
    Damage(
        "worst cases are of an analyst without queries",
        "INSERT INTO worst_cases VALUES (1, '00000000-0000-4000-8000-000000000000', 5)",
        "worst_cases row 00000000-0000-4000-8000-000000000000: says 5 units, the ledger gives 0",
    ),
    Damage(
        "the sum of worst cases is zeroed",
        "UPDATE heads SET worst_case_units = 0",
        "heads row 1: says worst_case_units 0, the ledger gives",
    ),
    Damage(
        "a journal row is changed",
        "UPDATE journal SET detail = jsonb_set(detail, '{{limit_units}}', '\"274877906943\"') WHERE act = 'limit'",
        "journal row 2: its contents do not give its hash",
    ),
    Damage("a journal row is deleted", "DELETE FROM journal WHERE act = 'limit'", "journal row 2: is missing"),
    Damage(
        "the last journal rows are deleted",
        "DELETE FROM journal WHERE number > 2",
        "heads row 1: says data_version 4, the journal gives 2",
    ),
    Damage(
        "the journal's head is another",
        "UPDATE heads SET journal_hash = sha256('x')",
        "heads row 1: its journal_hash is not that of the last journal row",
    ),
    Damage("the epoch is set back", "UPDATE heads SET epoch = 1", "heads row 1: says epoch 1, the journal gives 2"),
    Damage("the fence is another", "UPDATE heads SET fence = 9", "heads row 1: says fence 9, the journal gives 1"),
    Damage(
        "the cost of joining is another",
        "UPDATE heads SET joining_units = 9",
        "heads row 1: says joining_units 9, the journal gives 0",
    ),
    Damage(
        "slots are handed out again", "UPDATE heads SET slots = 2", "heads row 1: says slots 2, the journal gives 3"
    ),
    Damage("an account is deleted", "DELETE FROM individuals WHERE slot = 0", "individuals row 0: is missing"),
    Damage(
        "an account is added",
        "INSERT INTO individuals VALUES (1, 9, 'new', NULL, 5)",
        "individuals row 9: its slot was never handed out",
    ),
    Damage(
        "an erased person has a key again",
        "UPDATE individuals SET key = 'eve', tombstone = NULL WHERE slot = 2",
        "individuals row 2: has a key, the journal says that it was erased",
    ),
    Damage(
        "an individual is a tombstone without an erasure",
        "UPDATE individuals SET key = NULL, tombstone = sha256('x') WHERE slot = 0",
        "individuals row 0: is a tombstone, the journal says that it is present",
    ),
    Damage(
        "a byte of a charge is flipped",
        "UPDATE ledger SET piece = set_byte(piece, 9, get_byte(piece, 9) # 128) WHERE seq = 1",
        "ledger row 1: its charges cannot be read",
    ),
    Damage(
        "a piece is exchanged for another entry's",
        "UPDATE ledger SET piece = (SELECT piece FROM ledger WHERE seq = 2) WHERE seq = 1",
        "ledger row 1: its charges cannot be read",
    ),
    Damage(
        "the commitment to the pieces is another",
        "UPDATE ledger SET pieces_digest = sha256('x') WHERE seq = 1",
        "ledger row 1: its pieces do not give its pieces_digest",
    ),
    Damage(
        "the private digest is another",
        "UPDATE ledger SET private_digest = sha256('x') WHERE seq = 1",
        "ledger row 1: its private part does not give its private_digest",
    ),
    Damage(
        "the acts that an entry has seen are others",
        "UPDATE ledger SET acts = acts + 1 WHERE seq = 1",
        "ledger row 1: its contents do not give its hash",
    ),
    Damage(
        "an answer's key is another",
        "UPDATE answers SET idempotency_key = 'z' WHERE idempotency_key = 'a'",
        "is said to be fresh, but ledger row 1 was asked under another key",
    ),
    Damage("an entry is deleted", "DELETE FROM ledger WHERE seq = 2", "ledger row 2: is missing"),
    Damage(
        "the last entries are deleted",
        "DELETE FROM ledger WHERE seq > 1; DELETE FROM answers WHERE seq > 1",
        "heads row 1: says seq 3, the ledger ends at 1",
    ),
    Damage(
        "the last entry is deleted, and the head set back",
        "DELETE FROM answers WHERE seq > 2; DELETE FROM ledger WHERE seq > 2; UPDATE heads SET seq = 2,"
        " checkpoint_seq = 2,"
        " hash = (SELECT hash FROM ledger WHERE seq = 2), worst_case_units = (SELECT worst_case_total_units FROM ledger"
        " WHERE seq = 2); UPDATE worst_cases SET units = (SELECT worst_case_total_units FROM ledger WHERE seq = 2)",
        "witness: has seen sequence 3",
    ),
    Damage(
        "the genesis is another",
        "UPDATE datasets SET genesis = sha256('x')",
        "ledger row 1: does not continue the row before",
    ),
    Damage(
        "a page forgets what was spent",
        "UPDATE pages SET spent = set_byte(spent, 15, get_byte(spent, 15) # 1)",
        "pages row 0: slot 1 holds",
    ),
    Damage(
        "a page counts another query as charged",
        "UPDATE pages SET charged = set_byte(charged, 3, 9)",
        "pages row 0: slot 0 counts 9 queries that charged it, the ledger gives 3",
    ),
    Damage(
        "a page counts another query as left out",
        "UPDATE pages SET left_out = set_byte(left_out, 262143, 1)",
        "pages row 0: slot 65535 counts 1 queries that left it out, the ledger gives 0",
    ),
]
