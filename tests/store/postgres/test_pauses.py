"""The migration to pauses on ledgers of earlier versions, in which pauses were lowered limits."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import psycopg
import pytest
from alembic import command as alembic_command
from alembic.config import Config
from sqlalchemy.exc import ProgrammingError

from service.query.schema import Schema
from service.store.postgres.migrate import MIGRATIONS, migrate
from service.store.postgres.store import PostgresStore
from service.workflows.maintenance.verify.report import verify_all
from service.workflows.model.journal import JournalAct, told_slots
from service.workflows.model.rows import Checkpoint, DatasetRecord, OwnAccount
from service.workflows.writer.state import DatasetState
from tests.contracts.stores import SCHEMA, answer, burn, dataset, entry, open_store, totals

pytestmark = pytest.mark.slow

SLOTS = 16
BUDGET = dataset().budget_units
BURNED = 1_374_389_535  # the worst case of every entry of tests.contracts.stores
COLUMNS = SCHEMA.model_dump(mode="json")
PLAIN = Schema.model_validate(
    COLUMNS | {"people": COLUMNS["people"] | {"columns": {"age": {"type": "integer", "lower": 0, "upper": 9}}}}
)
Deed = Mapping[int, int] | str
"""Charges in units by slot, or an act: `pause 3`, `lower 3 50`, `erase 3`, `return 3`, `burn 3`."""


def joined(*slots: int) -> dict[str, object]:
    """The detail of an upload by which people joined, or came back."""
    return {"individuals": len(slots), **told_slots(joined=np.array(slots), rows=np.array(slots))}


class Ledger:
    """A database as the version before wrote it: a pause is a limit of what is spent."""

    def __init__(self, url: str, store: PostgresStore, *, brings_limits: bool = False) -> None:
        self.store, self.record = store, replace(dataset(), schema=SCHEMA if brings_limits else PLAIN)
        self.record = store.add_dataset(self.record)
        self.spent = np.zeros(SLOTS, dtype=np.int64)
        self.limits = np.full(SLOTS, BUDGET)
        with store.transaction(self.record.id, lock=True) as transaction:
            keys = [f"p{slot}" for slot in range(SLOTS)]
            transaction.add_individuals(np.arange(SLOTS), keys, np.full(SLOTS, BUDGET))
            transaction.journal("rows", joined(*range(SLOTS)), slots=SLOTS)
            transaction.commit()

    def live(self, deeds: Sequence[Deed]) -> None:
        """One after the other."""
        for deed in deeds:
            if isinstance(deed, str):
                word, slot, *units = deed.split()
                self.act(word, int(slot), *map(int, units))
            else:
                self.charge(deed)

    def charge(self, charged: Mapping[int, int], *, burns: bool = False) -> None:
        """An answer, or a burn; everybody else is left out of it."""
        with self.store.transaction(self.record.id, lock=True) as transaction:
            head = transaction.head
            # A bitmap of all slots, or a list of a few, with and without people left out.
            out = tuple(sorted(set(range(SLOTS)) - set(charged))) if head.seq % 3 else ()
            slots = SLOTS if head.seq % 2 else 200_000
            following = burn(head, dict(charged)) if burns else entry(head, dict(charged), out, slots=slots)
            answers = [] if burns else [answer(following, f"key-{following.seq}")]
            transaction.append([following], answers, {})
            transaction.commit()
        for slot, units in charged.items():
            self.spent[slot] += units

    def act(self, word: str, slot: int, units: int = 0) -> None:
        """As that version did it."""
        if word == "burn":
            self.charge({slot: 1}, burns=True)
            return
        with self.store.transaction(self.record.id, lock=True) as transaction:
            if word in ("pause", "lower"):
                after = max(units, int(self.spent[slot]))
                transaction.set_limit(slot, after)
                self.limits[slot] = min(int(self.limits[slot]), after)
                transaction.journal("limit", {"slot": slot, "limit_units": str(after)})
            elif word == "erase":
                transaction.erase(slot, bytes([slot]) * 32)
                transaction.journal("erase", {"slot": slot})
            else:
                transaction.add_individuals(np.array([slot]), [f"p{slot}"], self.limits[[slot]])
                transaction.journal("rows", joined(slot))
            transaction.commit()

    def checkpoint(self) -> None:
        """Put what is spent into the page."""
        head = self.store.head(self.record.id)
        with self.store.transaction(self.record.id, lock=False) as transaction:
            page = totals(transaction.entries(after=0))
        assert page.spent[:SLOTS].tolist() == self.spent.tolist()
        written = Checkpoint(since=0, seq=head.seq, hash=head.hash, pages={0: page})
        self.store.write_page(self.record.id, written, 0)
        assert self.store.finish_checkpoint(self.record.id, written)

    def migrated(self, url: str) -> dict[int, tuple[int, bool]]:
        """(limit, paused) of everybody afterwards, in the database as in memory; ledger and journal are sound."""
        before = self.acts()
        alembic(
            url, "downgrade", "0008"
        )  # what was written has the columns and the entries that the version before had
        migrate(url)
        state, acts = DatasetState(self.record), self.acts()
        with self.store.transaction(self.record.id, lock=False) as transaction:
            state.catch_up(transaction)
            found = {slot: transaction.account_of(slot) for slot in range(SLOTS)}
        accounts = state.memory.accounts
        assert {slot: (own.limit, own.spent, own.paused) for slot, own in found.items()} == {
            slot: (int(accounts.limits[slot]), int(self.spent[slot]), bool(accounts.paused[slot]))
            for slot in range(SLOTS)
        }
        # The ledger is made up here: of what is verified, what accounts and pages say is said of the migration.
        (report,) = verify_all(self.store)
        assert [finding for finding in report.findings if finding.startswith(("individuals", "pages"))] == []
        assert acts[: len(before)] == before
        self.check(acts[len(before) :], before[-1], found)
        return {slot: (own.limit, own.paused) for slot, own in found.items()}

    def acts(self) -> list[JournalAct]:
        """The journal."""
        with self.store.transaction(self.record.id, lock=False) as transaction:
            return transaction.acts(after=0)

    def check(self, acts: Sequence[JournalAct], last: JournalAct, found: Mapping[int, OwnAccount]) -> None:
        """One act for each paused individual, chained to the last one and up to the head."""
        head = self.store.head(self.record.id)
        for act in acts:
            expected = JournalAct.following(
                last.hash, number=last.number + 1, at_seq=head.seq, act="pause", detail=act.detail
            )
            assert act == expected
            last = act
        assert (head.journal_hash, head.data_version) == (last.hash, last.number)
        told = {act.detail["slot"]: (int(act.detail["limit_units"]), True) for act in acts}
        assert told == {slot: (own.limit, True) for slot, own in found.items() if own.paused}


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """On a fresh database."""
    with open_store("postgres", database_url) as opened:
        assert isinstance(opened, PostgresStore)
        yield opened


ALONE: Mapping[str, tuple[list[Deed], tuple[int, bool]]] = {
    "paused": ([{0: 5}, "pause 0"], (BUDGET, True)),
    "before anything": (["pause 0"], (BUDGET, True)),
    "paused again": ([{0: 5}, "pause 0", "pause 0", "pause 0"], (BUDGET, True)),
    "lowered before": (["lower 0 50", {0: 5}, "pause 0"], (50, True)),
    "lowered twice before": (["lower 0 70", "lower 0 50", {0: 5}, "pause 0"], (50, True)),
    "lowered": (["lower 0 50", {0: 5}], (50, False)),
    "lowered and spent to the last unit": (["lower 0 50", {0: 25}, {0: 25}], (50, False)),
    "paused with nothing left": (["lower 0 50", {0: 50}, "pause 0"], (50, False)),
    "lowered twice and paused with nothing left": (["lower 0 50", "lower 0 20", {0: 20}, "pause 0"], (20, False)),
    "came back, under which limit is not told": (["lower 0 50", "erase 0", "return 0", {0: 5}, "pause 0"], (5, False)),
    "paused and came back": ([{0: 5}, "pause 0", "erase 0", "return 0"], (5, False)),
    "paused and erased": ([{0: 5}, "pause 0", "erase 0"], (5, False)),
}


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_pause_becomes_one_where_the_limit_before_it_is_known(
    store: PostgresStore, database_url: str, checkpointed: bool
) -> None:
    """A lowered limit stays lowered; no individual gets back more than the limit before the pause."""
    ledger = Ledger(database_url, store)
    for slot, (deeds, _) in enumerate(ALONE.values()):
        ledger.live([of_slot(deed, slot) for deed in deeds])
        if checkpointed and slot == len(ALONE) // 2:
            ledger.checkpoint()
        ledger.live([{SLOTS - 1: 3}])
    after = ledger.migrated(database_url)
    assert {name: after[slot] for slot, name in enumerate(ALONE)} == {name: end for name, (_, end) in ALONE.items()}
    assert all(after[slot] == (BUDGET, False) for slot in range(len(ALONE), SLOTS))


def of_slot(deed: Deed, slot: int) -> Deed:
    """The account of slot 0, for another."""
    return deed.replace(" 0", f" {slot}", 1) if isinstance(deed, str) else {slot: deed[0]}


@pytest.mark.parametrize("checkpointed", [False, True])
def test_what_a_burn_did_not_take_because_of_a_pause_is_not_given_back(
    store: PostgresStore, database_url: str, checkpointed: bool
) -> None:
    """It had spared the remainder of paused individuals: their limit is lower by it now."""
    ledger = Ledger(database_url, store)
    ledger.live([{0: 5, 4: 2}, "pause 0", "burn 7", {1: 5, 4: 2}, "pause 1", "lower 2 50", {2: 5}, "pause 2"])
    if checkpointed:
        ledger.checkpoint()
    ledger.live(["burn 7", {3: 5, 4: 2}, "pause 3", {4: 2}])
    after = ledger.migrated(database_url)
    once, twice = BUDGET - BURNED, BUDGET - 2 * BURNED
    assert [after[slot] for slot in range(4)] == [(twice, True), (once, True), (5, True), (BUDGET, True)]


def test_an_individual_with_an_own_limit_has_no_other_to_return_to(store: PostgresStore, database_url: str) -> None:
    """Unless it was lowered before, which the journal tells."""
    ledger = Ledger(database_url, store, brings_limits=True)
    ledger.live([{0: 5}, "pause 0", "lower 1 50", "pause 1"])
    after = ledger.migrated(database_url)
    assert (after[0], after[1]) == ((5, False), (50, True))


def test_an_individual_that_may_have_joined_after_a_restore_keeps_its_remainder(
    store: PostgresStore, database_url: str
) -> None:
    """At whatever time they joined: the most that anybody's limit was ever lowered by."""
    ledger = Ledger(database_url, store)
    ledger.live(["pause 0", "lower 1 50", "pause 1"])
    with store.transaction(ledger.record.id, lock=True) as transaction:
        transaction.fence_off(2, 1000)
        transaction.commit()
    after = ledger.migrated(database_url)
    assert (after[0], after[1]) == ((BUDGET - 1000, True), (50, True))
    assert BUDGET - 1000 > 50


def test_the_downgrade_is_refused_while_an_individual_pauses(store: PostgresStore, database_url: str) -> None:
    """An earlier version would charge them."""
    kept: DatasetRecord = store.add_dataset(dataset())
    with store.transaction(kept.id, lock=True) as transaction:
        transaction.add_individuals(np.array([0]), ["ann"], np.array([9]))
        transaction.set_paused(0, paused=True)
        transaction.journal("rows", {}, slots=1)
        transaction.commit()
    with pytest.raises(ProgrammingError, match="somebody has paused"):
        alembic(database_url, "downgrade", "0008")
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE individuals SET paused = false")
    alembic(database_url, "downgrade", "0008")
    migrate(database_url)


def alembic(database_url: str, command: str, revision: str) -> None:
    """Run one of Alembic's commands on a database."""
    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = database_url
    getattr(alembic_command, command)(config, revision)
