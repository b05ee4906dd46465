"""`ledger verify` names every damage to the rows that erasures and prunings wrote, on a real Postgres."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from service.ledger.model.pieces import WHOLE, Piece
from service.maintenance.amend import amend_erased
from service.maintenance.prune import prune
from service.store.postgres.rows import LedgerSeal
from service.store.postgres.store import PostgresStore
from tests.conftest import PostgresServer
from tests.factories import SeededEntropy, analyst, ask, open_replica, witness_of
from tests.keys import LEDGER_KEY
from tests.workflows.damages import Damage, Filled, damage, filled
from tests.workflows.surveys import findings, surveyed, writer_of

SUM: dict[str, Any] = {"select": [{"sum": {"column": "spend"}}], "noise": {"sigma": 500.0}, "reuse": False}
DAMAGES = [
    Damage(
        "an amendment is deleted",
        "DELETE FROM amendments WHERE seq = 5",
        "amendments: rows 4 to 6 of act 2 are not those of the journal",
    ),
    Damage(
        "the entry of a deleted amendment",
        "DELETE FROM amendments WHERE seq = 5",
        "ledger row 5: its part -1 is not the one that its amendments lead to",
    ),
    Damage(
        "an amendment is moved",
        "UPDATE amendments SET seq = 7 WHERE seq = 5",
        "amendments: there are rows of which no act tells",
    ),
    Damage(
        "an amendment leads elsewhere",
        "UPDATE amendments SET new_digest = sha256('x') WHERE seq = 5",
        "ledger row 5: its part -1 is not the one that its amendments lead to",
    ),
    Damage(
        "an amendment comes from elsewhere",
        "UPDATE amendments SET old_digest = sha256('x') WHERE seq = 5",
        "ledger row 5: its part -1 was amended from something else",
    ),
    Damage(
        "the first digest is another",
        "UPDATE ledger SET first_digest = sha256('x') WHERE seq = 5",
        "ledger row 5: its pieces do not give its pieces_digest",
    ),
    Damage(
        "the first digest is forgotten",
        "UPDATE ledger SET first_digest = '' WHERE seq = 5",
        "ledger row 5: its pieces do not give its pieces_digest",
    ),
    Damage(
        "an account of an erased individual forgets",
        "UPDATE pages SET spent = set_byte(spent, 6, get_byte(spent, 6) # 1)",
        "units more than the accounts of erased individuals hold",
    ),
    Damage(
        "the totals of a pruning are others",
        "UPDATE pruned_totals SET spent = set_byte(spent, 15, get_byte(spent, 15) # 1)",
        "pruned_totals: its rows are not those of the journal",
    ),
    Damage(
        "the totals of a pruning are deleted",
        "DELETE FROM pruned_totals",
        "pruned_totals: its rows are not those of the journal",
    ),
    Damage(
        "more is pruned than was", "UPDATE heads SET pruned_seq = 4", "heads: says pruned_seq 4, the journal gives 3"
    ),
    Damage(
        "less is pruned than was",
        "UPDATE heads SET pruned_seq = 2",
        "ledger row 3: its pieces do not give its pieces_digest",
    ),
    Damage(
        "an act of a pruning makes no sense",
        "UPDATE journal SET detail = '{}' WHERE act = 'prune'",
        "its detail makes no sense",
    ),
    Damage(
        "an act of an erasure makes no sense",
        "UPDATE journal SET detail = '{}' WHERE act = 'amend'",
        "its detail makes no sense",
    ),
    Damage(
        "a pruned entry is changed",
        "UPDATE ledger SET charged_count = 9 WHERE seq = 2",
        "ledger row 2: its contents do not give its hash",
    ),
    Damage(
        "the pruned ledger ended elsewhere",
        "UPDATE ledger SET hash = sha256('x') WHERE seq = 3",
        "ledger row 3: its hash is not the one that the journal gives for the pruned ledger's end",
    ),
]


def rewritten(store: PostgresStore) -> None:
    """A ledger of eight entries, three of them pruned; Ann was erased after the sixth."""
    with surveyed(store, [("ann", "NO", 44, 123.45), ("bob", "SE", 30, 20.5), ("eve", "NO", 50, 1)]) as replica:
        who = analyst(replica)
        for number in range(8):
            if number == 6:
                replica.curators.erase_individual("survey", "ann")
            ask(replica, who, f"key-{number}", **SUM)
    prune(store, witness_of(store), "survey", before=4, entropy=SeededEntropy(3))
    with open_replica(store, SeededEntropy(4)) as replica:
        amend_erased(writer_of(replica))


@pytest.fixture(scope="module")
def ledger(postgres_server: PostgresServer, migrated_template: str) -> Iterator[Filled[None]]:
    """A database with that ledger."""
    with filled(postgres_server, migrated_template, rewritten) as made:
        yield made


@pytest.fixture
def opened(ledger: Filled[None]) -> Iterator[tuple[PostgresStore, str]]:
    """A store on it, without a finding, and its URL."""
    with ledger.opened() as (store, url):
        assert findings(store) == []
        yield store, url


@pytest.mark.parametrize("done", DAMAGES, ids=str)
def test_every_damage_to_a_rewritten_ledger_is_named(opened: tuple[PostgresStore, str], done: Damage) -> None:
    """The finding names table and row."""
    store, database_url = opened
    damage(database_url, done.statement)
    found = findings(store)
    assert any(done.found in each for each in found), found


def test_a_restored_piece_of_an_erased_individual_is_found(opened: tuple[PostgresStore, str]) -> None:
    """An attacker with the pepper and a backup undoes an erasure: the content is the one that the entry binds."""
    store, database_url = opened
    with store.transaction(1, lock=False) as transaction:
        (entry,) = transaction.entries(after=4, limit=1)
        quantities = entry.quantities()
    content = entry.pieces[0].content[:-1] + b"\1"
    sealed = LedgerSeal(LEDGER_KEY).close(entry.salt, Piece.of(entry.salt, WHOLE, content), revision=9)
    damage(database_url, "UPDATE ledger SET piece = %s WHERE seq = 5", sealed)
    assert quantities.touched.tolist() == [1, 2]
    assert "ledger row 5: its part -1 is not the one that its amendments lead to" in findings(store)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger SET piece = NULL WHERE seq = 5",
        "UPDATE ledger SET charged_count = 0 WHERE seq = 5",
        "UPDATE ledger SET first_digest = sha256('x') WHERE seq = 5",
        "DELETE FROM amendments",
        "UPDATE amendments SET seq = 9",
        "UPDATE heads SET pruned_seq = 2",
        "UPDATE heads SET pruned_seq = 9",
        "INSERT INTO pieces VALUES (1, 5, 0, sha256('x'), 'x'); DELETE FROM pieces",
        "INSERT INTO pieces VALUES (1, 5, 0, sha256('x'), 'x'); UPDATE pieces SET digest = sha256('y')",
        "INSERT INTO pieces VALUES (1, 5, 0, sha256('x'), 'x'); UPDATE pieces SET sealed = NULL",
    ],
)
def test_the_database_lets_only_quantities_change(opened: tuple[PostgresStore, str], statement: str) -> None:
    """With triggers on, the owner cannot make other changes either."""
    _, database_url = opened
    with psycopg.connect(database_url) as owner, pytest.raises(psycopg.Error):
        owner.execute(statement.encode())
