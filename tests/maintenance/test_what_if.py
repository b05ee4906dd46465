"""`ledger what-if`: numbers by query and in total, under the own rule and under others."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from io import BytesIO
from math import sqrt
from typing import Any

import pytest

from service.accounting.accountings import GAUSSIAN, ConcentratedAccounting, RenyiAccounting
from service.ledger.model import journal as journal_module
from service.ledger.model.errors import NotFound
from service.ledger.model.stated_guarantee import StatedGuarantee
from service.maintenance.amend import amend_erased
from service.maintenance.prune import prune
from service.maintenance.reconcile import reconcile
from service.maintenance.supposed_replay import NoBudget, NormsMissing, QueryOutcome
from service.maintenance.what_if import WhatIf, what_if
from service.query.keys import Key
from service.workflows.individual import lowering, pausing
from service.workflows.replica import Replica
from tests.factories import CLOCK, TWO_PEOPLE, SeededEntropy, analyst, ask, open_replica, register, upload, witness_of
from tests.memory.cache import MemoryWitness
from tests.memory.store import MemoryStore
from tests.workflows.surveys import counts_of, surveyed, writer_of

RHO = 2**40
RHO_1, RHO_8 = StatedGuarantee(rho=Decimal(1)), StatedGuarantee(rho=Decimal("0.125"))
ZCDP, SIMPLE = ConcentratedAccounting(), ConcentratedAccounting(conversion="simple")
PEOPLE = [*TWO_PEOPLE, ("eve", "NO", 50, 1)]
NORWAY: dict[str, Any] = {"where": {"eq": [{"col": "country"}, "NO"]}}
ASKED: list[dict[str, Any]] = [
    {"noise": {"sigma": 2.0}},  # 1/8 rho of everybody
    {"noise": {"sigma": 1.0}},  # 1/2
    {"noise": {"sigma": 2.0}},
    {"noise": {"sigma": 2.0}, **NORWAY},  # 1/8 of Ann and Eve
]


@pytest.fixture
def replica(store: MemoryStore) -> Iterator[Replica]:
    """Ann and Bob with a budget of 1/2 rho, Eve with half of it, and four queries."""
    with surveyed(store, PEOPLE) as opened:
        writer_of(opened).act(lowering(Key("eve"), stated_units=RHO // 4, reserve_units=0))
        asked(opened, *ASKED)
        yield opened


def asked(replica: Replica, *queries: dict[str, Any]) -> None:
    """Ask each query, once for all that were asked before."""
    who = analyst(replica)
    for number, query in enumerate(queries):
        ask(replica, who, f"k{number}", reuse=False, **query)


def supposed(store: MemoryStore, **options: Any) -> tuple[WhatIf, list[tuple[int, int]]]:
    """The totals, and (counted, left out) of each query."""
    told: list[QueryOutcome] = []
    found = what_if(store, "survey", tell=told.append, **options)
    return found, [(each.counted, each.left_out) for each in told]


@pytest.mark.usefixtures("replica")
@pytest.mark.parametrize(
    ("options", "counts", "kept", "largest"),
    [
        ({}, [(3, 0), (0, 3), (3, 0), (1, 1)], 7, 3 / 8),
        ({"rule": "drop"}, [(3, 0), (0, 3), (0, 3), (0, 2)], 3, 1 / 8),
        ({"rule": "clip"}, [(3, 0), (3, 0), (0, 3), (0, 2)], 3 + 2 * sqrt(3 / 4) + sqrt(1 / 4), 1 / 2),
        # The budget that Ann and Bob have grows, and the limit that Eve has chosen stays.
        ({"guarantee": RHO_1}, [(3, 0), (2, 1), (3, 0), (1, 1)], 9, 7 / 8),
        # It shrinks below that limit too.
        ({"guarantee": RHO_8}, [(3, 0), (0, 3), (0, 3), (0, 2)], 3, 1 / 8),
        ({"rule": "drop", "guarantee": RHO_1}, [(3, 0), (2, 1), (2, 1), (1, 1)], 8, 7 / 8),
    ],
)
def test_a_ledger_under_each_rule_and_budget(
    store: MemoryStore, options: dict[str, Any], counts: list[tuple[int, int]], kept: float, largest: float
) -> None:
    """Worked out by hand."""
    found, by_query = supposed(store, **options)
    assert by_query == counts
    assert (found.queries, found.contributions, found.kept_here) == (4, 11, 7)
    assert found.kept == pytest.approx(kept, rel=1e-12)
    assert found.share_kept == pytest.approx(kept / 11, rel=1e-12)
    assert found.largest_units == largest * RHO
    assert (found.first_incomplete, found.shortened) == (2, 3 if found.rule == "clip" else 0)
    assert found.largest_epsilon == GAUSSIAN.epsilon_of_units(found.largest_units, Decimal("1e-6"))


@pytest.mark.parametrize("rule", ["skip", "drop"])
def test_its_own_rule_gives_the_numbers_of_the_ledger(store: MemoryStore, rule: str) -> None:
    """A pause is in them as the rule has it: left out under skip, untouched under drop."""
    with surveyed(store, PEOPLE, rule=rule) as replica:
        writer = writer_of(replica)
        writer.act(pausing(Key("bob"), paused=True))
        asked(replica, *ASKED)
        writer.act(pausing(Key("bob"), paused=False))
        asked(replica, *ASKED[:1])
        found, by_query = supposed(store)
        assert by_query == counts_of(replica)
    assert found.kept == found.kept_here
    assert found.paused == (3 if rule == "skip" else 0)
    assert found.contributions == 2 + 2 + 2 + 2 + 3
    assert found.first_incomplete == 2


def test_a_pause_is_no_contribution_under_any_rule(store: MemoryStore) -> None:
    """Under drop the paused are untouched, so that they come back; the shares of all rules have one denominator."""
    with surveyed(store, PEOPLE) as replica:
        writer_of(replica).act(pausing(Key("bob"), paused=True))
        asked(replica, ASKED[0])
        writer_of(replica).act(pausing(Key("bob"), paused=False))
        asked(replica, ASKED[0])
    skip, drop, clip = (supposed(store, rule=rule) for rule in ("skip", "drop", "clip"))
    assert (skip[1], drop[1], clip[1]) == ([(2, 1), (3, 0)], [(2, 0), (3, 0)], [(2, 1), (3, 0)])
    assert [each.contributions for each, _ in (skip, drop, clip)] == [5, 5, 5]
    assert [each.first_incomplete for each, _ in (skip, drop, clip)] == [None, None, None]


def test_an_uploaded_limit_stays_and_a_whole_one_follows_the_budget(store: MemoryStore) -> None:
    """Ann's is the budget, Bob's a quarter of it; both by upload. A limit lowered to what it was is no choice."""
    people = {"kind": "individuals", "key": "person_id", "columns": {"limit": {"type": "budget"}}}
    with open_replica(store) as replica:
        register(replica, tables={"people": people})
        rows = b"person_id,limit\nann,\nbob,0.125\neve,0.5\n"
        replica.curators.append_rows("survey", "people", "text/csv", BytesIO(rows))
        writer_of(replica).act(lowering(Key("ann"), stated_units=RHO // 2, reserve_units=0))
        asked(replica, *3 * [{"noise": {"sigma": 2.0}}], {"noise": {"sigma": 1.0}})
        found, by_query = supposed(store)
        assert by_query == counts_of(replica) == [(3, 0), (2, 1), (2, 1), (0, 3)]
    found, by_query = supposed(store, guarantee=RHO_1)
    assert by_query == [(3, 0), (2, 1), (2, 1), (2, 1)]
    assert found.largest_units == 7 * RHO // 8


def test_a_burn_charges_what_it_did_and_at_most_what_is_left(store: MemoryStore, replica: Replica) -> None:
    """It charged Ann, who had 1/8 rho left, that, and Bob a quarter; Eve had nothing left."""
    replica.close()
    reconcile(store, MemoryWitness(), "survey", burn_units=RHO // 4, clock=lambda: CLOCK)
    found = [supposed(store, **each)[0] for each in ({}, {"rule": "drop"}, {"guarantee": RHO_8})]
    assert [each.largest_units for each in found] == [RHO // 2, 3 * RHO // 8, RHO // 8]
    assert [(each.queries, each.burns) for each in found] == 3 * [(4, 1)]


def test_an_erased_individual_is_unknown_in_earlier_queries(store: MemoryStore, replica: Replica) -> None:
    """It counts nowhere there. Back again, it is left out as the ledger left it out.

    Then 3/8 rho and one more unit were spent, of which entries hold 1/8.
    """
    replica.curators.erase_individual("survey", "ann")
    amend_erased(writer_of(replica))
    found, by_query = supposed(store)
    assert by_query == [(2, 0), (0, 2), (2, 0), (0, 1)]
    assert (found.unknown, found.returned, found.contributions) == (4, 0, 7)
    upload(replica, "people", [("ann", "NO", 44, 10)])
    asked(replica, *2 * [{"noise": {"sigma": 2.0}, **NORWAY}])
    found, by_query = supposed(store)
    assert by_query[4:] == counts_of(replica)[4:] == [(1, 1), (0, 2)]
    assert (found.unknown, found.returned, found.largest_units) == (4, 1, 3 * RHO // 8 + 1)


def test_an_upload_that_tells_pages_alone_hides_no_individual(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an erasure such an upload does not say which slots are new; their limits are those that are stored."""
    with surveyed(store, PEOPLE[:2]) as replica:
        replica.curators.erase_individual("survey", "bob")
        monkeypatch.setattr(journal_module, "TOUCHED_BYTES_MAX", 0)
        upload(replica, "people", PEOPLE[1:])
        with store.transaction(1, lock=False) as transaction:
            assert transaction.acts(after=0)[-1].detail["joined"]["of"] == "pages"
        writer_of(replica).act(lowering(Key("eve"), stated_units=RHO // 4, reserve_units=0))
        asked(replica, *ASKED)
        found, by_query = supposed(store)
        assert by_query == counts_of(replica) == [(3, 0), (0, 3), (3, 0), (1, 1)]
    found, by_query = supposed(store, guarantee=RHO_1)
    assert by_query == [(3, 0), (2, 1), (3, 0), (1, 1)]
    assert found.largest_units == 7 * RHO // 8


def test_pruned_entries_hold_no_norms(store: MemoryStore, replica: Replica) -> None:
    """The refusal says up to where."""
    writer_of(replica).checkpoint()
    replica.close()
    done = prune(store, witness_of(store), "survey", before=3, entropy=SeededEntropy(3))
    with pytest.raises(NormsMissing, match=f"^entries up to {done.seq} are pruned and hold no norms$"):
        what_if(store, "survey")


@pytest.mark.parametrize("changed", [{"pieces": ()}, {"left_out_count": 9}])
def test_a_damaged_entry_is_named(store: MemoryStore, replica: Replica, changed: dict[str, Any]) -> None:
    """Its pieces cannot be opened, or do not hold everybody that it counts."""
    replica.close()
    kept = store.kept[1]
    damaged = replace(kept.entries[1], **changed)
    store.kept[1] = replace(kept, entries=(kept.entries[0], damaged, *kept.entries[2:]))
    with pytest.raises(NormsMissing, match=r"^ledger row 2: its norms cannot be read"):
        what_if(store, "survey")


def test_another_accounting_has_the_budget_of_the_guarantee() -> None:
    """The dataset's own, or the supposed one; an epsilon is by the supposed accounting, at the supposed delta."""
    store = MemoryStore()
    with surveyed(store, PEOPLE, guarantee={"epsilon": "2", "delta": "1e-5"}) as replica:
        asked(replica, *[{"noise": {"sigma": 3.0}}] * 3)  # 1/18 rho each; the budgets are .126, .108 and .080
    for accounting, counted in ((GAUSSIAN, [3, 3, 0]), (ZCDP, [3, 0, 0]), (SIMPLE, [3, 0, 0])):
        found, by_query = supposed(store, accounting=accounting)
        assert [each for each, _ in by_query] == counted
        assert found.budget_units == accounting.budget_units(epsilon=Decimal(2), delta=Decimal("1e-5"))
        assert found.largest_epsilon == accounting.epsilon_of_units(found.largest_units, Decimal("1e-5"))
        assert (found.accounting, found.record.accounting) == (accounting, GAUSSIAN)
    more = StatedGuarantee(epsilon=Decimal(8), delta=Decimal("1e-6"))
    found, _ = supposed(store, accounting=ZCDP, guarantee=more)
    assert found.budget_units == ZCDP.budget_units(epsilon=Decimal(8), delta=Decimal("1e-6"))
    assert found.delta == Decimal("1e-6")
    with pytest.raises(NoBudget, match=r"^order must be above"):
        what_if(store, "survey", accounting=RenyiAccounting(order=2))
    with pytest.raises(NoBudget, match="smaller than one unit"):
        what_if(store, "survey", accounting=ZCDP, guarantee=StatedGuarantee(rho=Decimal("1e-30")))


@pytest.mark.usefixtures("replica")
def test_a_rho_alone_gives_no_budget_by_another_accounting(store: MemoryStore) -> None:
    """The dataset has stated no epsilon."""
    with pytest.raises(NoBudget, match="states a rho"):
        what_if(store, "survey", accounting=ZCDP)


def test_an_unknown_dataset_is_named(store: MemoryStore) -> None:
    """The error is that of the other commands."""
    with pytest.raises(NotFound, match="there is no dataset nowhere"):
        what_if(store, "nowhere")


@pytest.mark.usefixtures("replica")
def test_each_entry_is_told_for_the_progress(store: MemoryStore) -> None:
    """The dataset, the sequence and the last one."""
    seen: list[tuple[str, int, int]] = []
    what_if(store, "survey", watch=lambda *far: seen.append(far))
    assert seen == [("survey", number, 4) for number in range(1, 5)]
