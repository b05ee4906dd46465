"""The proof of the pepper that a database was begun with: another pepper is refused, and changes nothing."""

from contextlib import closing

import psycopg
import pytest

from service.ledger.model.api_keys import Pepper
from service.store.postgres.curator_tables import PepperMismatch
from service.store.postgres.store import PostgresStore

OURS, OTHER = Pepper(bytes(32)), Pepper(b"q" * 32)
FORGET = "SET session_replication_role = replica; DELETE FROM pepper"


def start(database_url: str, pepper: Pepper) -> None:
    """A process that looks at the pepper. Raises PepperMismatch."""
    with closing(PostgresStore(database_url, pepper.ledger_key(), connections_max=1)) as store:
        store.check_pepper(pepper.database_proof)


def kept(database_url: str) -> list[tuple[bytes, bytes]]:
    """The stored proof of the pepper."""
    with psycopg.connect(database_url) as connection:
        return connection.execute("SELECT salt, proof FROM pepper").fetchall()


def test_a_new_database_keeps_the_first_pepper_and_no_other(database_url: str) -> None:
    """A process with another pepper is refused in a sentence that names it; the first goes on as before."""
    start(database_url, OURS)
    proof = kept(database_url)
    for _ in range(2):
        with pytest.raises(
            PepperMismatch, match=r"the pepper \(SPARING_PEPPER, .*\) is not the one that this database was"
        ):
            start(database_url, OTHER)
    start(database_url, OURS)
    assert kept(database_url) == proof


def test_the_proof_is_salted_and_of_this_purpose(database_url: str) -> None:
    """Two databases under one pepper have nothing in common, and the proof is no hash that stands elsewhere."""
    start(database_url, OURS)
    first = kept(database_url)
    with psycopg.connect(database_url) as owner:
        owner.execute(FORGET)
    start(database_url, OURS)
    ((salt, proof),) = kept(database_url)
    assert {salt, proof}.isdisjoint(first[0])
    assert proof == OURS.database_proof(salt)
    assert proof not in {OURS.ledger_key(), OURS.cache_key(), OURS.witness_key()}


def test_the_proof_cannot_be_changed(database_url: str) -> None:
    """Neither the service's role nor an owner's ordinary statement."""
    start(database_url, OURS)
    with psycopg.connect(database_url) as owner, pytest.raises(psycopg.errors.RaiseException):
        owner.execute("UPDATE pepper SET proof = salt")
    with psycopg.connect(database_url) as service:
        service.execute("SET ROLE sparing_api")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            service.execute("DELETE FROM pepper")
    with psycopg.connect(database_url) as owner, pytest.raises(psycopg.errors.CheckViolation):
        owner.execute("INSERT INTO pepper VALUES (false, %s, %s)", [bytes(32), bytes(32)])
