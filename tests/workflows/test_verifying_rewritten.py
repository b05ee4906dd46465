"""`ledger verify` names every damage to the rows that erasures and prunings wrote, on a real Postgres."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from service.store.postgres.rows import LedgerSeal
from service.store.postgres.store import PostgresStore
from service.workflows.maintenance.amend import amend_erased
from service.workflows.maintenance.prune import prune
from service.workflows.model.pieces import WHOLE, Piece
from tests.factories import SeededEntropy, analyst, ask, open_replica, witness_of
from tests.keys import LEDGER_KEY
from tests.workflows.damages import Damage
from tests.workflows.surveys import findings, surveyed, writer_of

pytestmark = pytest.mark.slow

SUM: dict[str, Any] = {"select": [{"sum": {"column": "spend"}}], "noise": {"sigma": 500.0}, "reuse": False}
DAMAGES = [
    Damage(
        name="an amendment is deleted",
        statement="DELETE FROM amendments WHERE seq = 5",
        found="amendments: rows 4 to 6 of act 2 are not those of the journal",
    ),
    Damage(
        name="the entry of a deleted amendment",
        statement="DELETE FROM amendments WHERE seq = 5",
        found="ledger row 5: its part -1 is not the one that its amendments lead to",
    ),
    Damage(
        name="an amendment is moved",
        statement="UPDATE amendments SET seq = 7 WHERE seq = 5",
        found="amendments: there are rows of which no act tells",
    ),
    Damage(
        name="an amendment leads elsewhere",
        statement="UPDATE amendments SET new_digest = sha256('x') WHERE seq = 5",
        found="ledger row 5: its part -1 is not the one that its amendments lead to",
    ),
    Damage(
        name="an amendment comes from elsewhere",
        statement="UPDATE amendments SET old_digest = sha256('x') WHERE seq = 5",
        found="ledger row 5: its part -1 was amended from something else",
    ),
    Damage(
        name="the first digest is another",
        statement="UPDATE ledger SET first_digest = sha256('x') WHERE seq = 5",
        found="ledger row 5: its pieces do not give its pieces_digest",
    ),
    Damage(
        name="the first digest is forgotten",
        statement="UPDATE ledger SET first_digest = '' WHERE seq = 5",
        found="ledger row 5: its pieces do not give its pieces_digest",
    ),
    Damage(
        name="an account of an erased individual forgets",
        statement="UPDATE pages SET spent = set_byte(spent, 6, get_byte(spent, 6) # 1)",
        found="units more than the accounts of erased individuals hold",
    ),
    Damage(
        name="the totals of a pruning are others",
        statement="UPDATE pruned_totals SET spent = set_byte(spent, 15, get_byte(spent, 15) # 1)",
        found="pruned_totals: its rows are not those of the journal",
    ),
    Damage(
        name="the totals of a pruning are deleted",
        statement="DELETE FROM pruned_totals",
        found="pruned_totals: its rows are not those of the journal",
    ),
    Damage(
        name="more is pruned than was",
        statement="UPDATE heads SET pruned_seq = 4",
        found="heads: says pruned_seq 4, the journal gives 3",
    ),
    Damage(
        name="less is pruned than was",
        statement="UPDATE heads SET pruned_seq = 2",
        found="ledger row 3: its pieces do not give its pieces_digest",
    ),
    Damage(
        name="an act of a pruning makes no sense",
        statement="UPDATE journal SET detail = '{}' WHERE act = 'prune'",
        found="its detail makes no sense",
    ),
    Damage(
        name="an act of an erasure makes no sense",
        statement="UPDATE journal SET detail = '{}' WHERE act = 'amend'",
        found="its detail makes no sense",
    ),
    Damage(
        name="a pruned entry is changed",
        statement="UPDATE ledger SET charged_count = 9 WHERE seq = 2",
        found="ledger row 2: its contents do not give its hash",
    ),
    Damage(
        name="the pruned ledger ended elsewhere",
        statement="UPDATE ledger SET hash = sha256('x') WHERE seq = 3",
        found="ledger row 3: its hash is not the one that the journal gives for the pruned ledger's end",
    ),
]


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """A ledger of eight entries, three of them pruned; Ann was erased after the sixth."""
    with closing(PostgresStore(database_url, LEDGER_KEY)) as opened:
        with surveyed(opened, [("ann", "NO", 44, 123.45), ("bob", "SE", 30, 20.5), ("eve", "NO", 50, 1)]) as replica:
            who = analyst(replica)
            for number in range(8):
                if number == 6:
                    replica.curators.erase_individual("survey", "ann")
                ask(replica, who, f"key-{number}", **SUM)
        prune(opened, witness_of(opened), "survey", before=4, entropy=SeededEntropy(3))
        with open_replica(opened, SeededEntropy(4)) as replica:
            amend_erased(writer_of(replica))
        yield opened


def damage(database_url: str, statement: str, *values: object) -> None:
    """Run a statement with the owner's rights and without triggers."""
    with psycopg.connect(database_url) as owner:
        owner.execute("SET session_replication_role = replica")
        assert owner.execute(statement.encode(), values or None).rowcount > 0


def test_a_rewritten_ledger_is_sound(store: PostgresStore) -> None:
    """Without damage there are no findings."""
    assert findings(store) == []


@pytest.mark.parametrize("done", DAMAGES, ids=str)
def test_every_damage_to_a_rewritten_ledger_is_named(database_url: str, store: PostgresStore, done: Damage) -> None:
    """The finding names table and row."""
    damage(database_url, done.statement)
    found = findings(store)
    assert any(done.found in each for each in found), found


def test_a_restored_piece_of_an_erased_individual_is_found(database_url: str, store: PostgresStore) -> None:
    """An attacker with the pepper and a backup undoes an erasure: the content is the one that the entry binds."""
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
def test_the_database_lets_only_quantities_change(database_url: str, store: PostgresStore, statement: str) -> None:
    """With triggers on, the owner cannot make other changes either."""
    assert findings(store) == []
    with psycopg.connect(database_url) as owner, pytest.raises(psycopg.Error):
        owner.execute(statement.encode())
