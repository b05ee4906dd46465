"""The proof of the pepper that a database was begun with: another pepper is refused, and changes nothing."""

from contextlib import closing

import psycopg
import pytest

from service.store.postgres.pepper_proof import PepperMismatch
from service.store.postgres.store import PostgresStore
from service.workflows.model.api_keys import Pepper
from tests.contracts.stores import ANALYST, answer, dataset, entry, second_entry

pytestmark = pytest.mark.slow

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


def begin(database_url: str, *people: int) -> None:
    """A dataset for each number of people, which its one entry of format 2 charges differently; 0: of format 1."""
    with closing(PostgresStore(database_url, OURS.ledger_key(), connections_max=1)) as store:
        for place, count in enumerate(people):
            record = store.add_dataset(dataset(f"d{place}"))
            with store.transaction(record.id, lock=True) as transaction:
                made = second_entry(transaction.head, {slot: slot + 1 for slot in range(count)}) if count else None
                made = made or entry(transaction.head, {0: 5})
                transaction.append([made], [answer(made)], {ANALYST: 1})
                transaction.commit()


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
    assert proof not in {OURS.clear_witness_mac(salt), OURS.ledger_key(), OURS.cache_key(), OURS.witness_key()}


@pytest.mark.parametrize("people", [(3,), (20_000,), (0, 3)])
def test_a_database_from_before_is_known_by_its_sealed_entries(database_url: str, people: tuple[int, ...]) -> None:
    """In the entry's row or beside it. Another pepper does not become its own; the right one does."""
    begin(database_url, *people)
    with pytest.raises(PepperMismatch, match="opens none of the newest ledger entries: put back the one"):
        start(database_url, OTHER)
    assert kept(database_url) == []
    start(database_url, OURS)
    with pytest.raises(PepperMismatch, match="is not the one"):
        start(database_url, OTHER)


def test_one_damaged_entry_is_not_taken_for_another_pepper(database_url: str) -> None:
    """While the newest entry of another dataset opens; what is damaged is for the check of the ledgers."""
    begin(database_url, 3, 3)
    with psycopg.connect(database_url) as owner:
        owner.execute("SET session_replication_role = replica")
        owner.execute("UPDATE ledger SET piece = set_byte(piece, 9, get_byte(piece, 9) # 1) WHERE dataset_id = 1")
    start(database_url, OURS)


def test_entries_of_format_1_say_nothing_of_a_pepper(database_url: str) -> None:
    """The first start after the migration is believed, as every start was before."""
    begin(database_url, 0)
    start(database_url, OURS)
    with pytest.raises(PepperMismatch):
        start(database_url, OTHER)


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
