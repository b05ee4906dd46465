"""The summary of all budgets, for curators."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ledger.model.errors import Unavailable
from service.ledger.model.views import TypicalQuery
from service.query.division import PAGE_SLOTS
from service.reads.budget_summary import RECENT, AllAccounts, LedgerFacts, all_accounts, summary
from service.workflows.replica import Replica
from service.writer.threads import WriterThread
from tests.factories import TWO_PEOPLE, analyst, ask, individual_named, open_replica, register, upload
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S
from tests.workflows.replicas import replicas
from tests.workflows.surveys import surveyed, writer_of

NO_FACTS = LedgerFacts(recent=(), erasures_asked=0, worst_case_ended_after=None, promise_epsilon_advisory=None)
ACCOUNTS = st.lists(st.tuples(st.booleans(), st.integers(0, 100), st.integers(0, 120), st.booleans()), max_size=60)


@given(ACCOUNTS)
def test_a_summary_counts_every_individual_once(accounts: list[tuple[bool, int, int, bool]]) -> None:
    """Bins, quantiles and exhausted accounts, against plain Python; some have spent more than their limit."""
    columns = zip(*accounts, strict=True) if accounts else ((), (), (), ())
    present, limit, spent, paused = (list(column) for column in columns)
    there = AllAccounts(
        seq=7,
        present=np.array(present, dtype=np.bool_),
        limit=np.array(limit, dtype=np.int64),
        spent=np.array(spent, dtype=np.int64),
        paused=np.array(paused, dtype=np.bool_),
        dropped=np.array(limit, dtype=np.int64) > 50,
    )
    told = summary(there, NO_FACTS)

    shares = sorted(max(limit - spent, 0) / limit if limit else 0.0 for here, limit, spent, _ in accounts if here)
    assert (told.sequence, told.individuals) == (7, len(shares))
    assert told.exhausted == sum(spent >= limit for here, limit, spent, _ in accounts if here)
    assert told.paused == sum(paused for here, _, _, paused in accounts if here)
    assert told.left_out_for_good == sum(limit > 50 for here, limit, _, _ in accounts if here)
    assert sum(each.individuals for each in told.remaining_share_histogram) == len(shares)
    for place, each in enumerate(told.remaining_share_histogram):
        last = place == len(told.remaining_share_histogram) - 1
        expected = sum(each.low <= share < each.high or (last and share == each.high) for share in shares)
        assert each.individuals == expected
    assert set(told.quantiles) == ({"0.05", "0.25", "0.5", "0.75", "0.95"} if shares else set())
    for level, value in told.quantiles.items():
        rank = float(level) * (len(shares) - 1)
        below, above = int(rank), min(int(rank) + 1, len(shares) - 1)
        assert value == pytest.approx(shares[below] + (rank - below) * (shares[above] - shares[below]))


@pytest.fixture
def rows() -> list[tuple[Any, ...]]:
    """Rows of two individuals."""
    return TWO_PEOPLE


@pytest.mark.parametrize(("rule", "gone"), [("skip", 0), ("drop", 1)])
def test_those_left_out_for_good_can_afford_no_typical_query(rule: str, gone: int) -> None:
    """An individual with most of its budget left, which one dear query has left out."""
    with surveyed(people=TWO_PEOPLE, rule=rule) as replica:
        own, who = individual_named(replica, "ann"), analyst(replica)
        replica.individuals.lower_limit(own, "survey", limit_rho=Decimal("0.25"))
        ask(replica, who, "a", noise={"sigma": 1.2})
        ask(replica, who, "b", noise={"sigma": 9.0})
        ask(replica, who, "c", noise={"sigma": 8.0})
        told, mine = replica.overview.summary("survey"), replica.individuals.budgets(own)[0]
    assert (told.left_out_for_good, told.exhausted) == (gone, 0)
    assert (mine.left_out_for_good, mine.queries_left_out) == (bool(gone), 1 + 2 * gone)
    assert told.typical_query is not None
    assert told.typical_query.cannot_afford == gone


def test_copied_accounts_do_not_change(replica: Replica) -> None:
    """Later charges do not show in a copy, and show in the next one."""
    writer, who = writer_of(replica), analyst(replica)
    ask(replica, who, "a", reuse=False)
    before = all_accounts(writer)
    spent = before.spent.copy()
    ask(replica, who, "b", reuse=False)
    assert all_accounts(writer).spent.sum() > spent.sum()
    assert np.array_equal(before.spent, spent)
    assert (summary(before, NO_FACTS).sequence, replica.overview.summary("survey").sequence) == (1, 2)


def test_queries_are_answered_between_copied_pages(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query is answered between two pages: it shows in the second and not in the first."""
    writer, who = writer_of(replica), analyst(replica)
    upload(replica, "people", [(f"p{n}", "NO", 44, 10) for n in range(PAGE_SLOTS)])
    ask(replica, who, "a", reuse=False)
    looks: list[int] = []
    real = writer.look

    def counted(look: Any) -> Any:
        looks.append(len(looks))
        if looks == [0, 1]:
            ask(replica, who, "b", reuse=False)
        return real(look)

    monkeypatch.setattr(writer, "look", counted)
    taken = all_accounts(writer)
    assert (taken.seq, len(looks), taken.spent.size) == (1, 2, 2 * PAGE_SLOTS)
    assert int(taken.present.sum()) == PAGE_SLOTS + 2
    one = int(taken.spent[0])
    assert one > 0
    assert (taken.spent[:PAGE_SLOTS] == one).all()
    assert (taken.spent[PAGE_SLOTS : PAGE_SLOTS + 2] == 2 * one).all()


def test_memory_that_is_behind_catches_up_first() -> None:
    """After another replica's answer the summary is not of a state before the call."""
    store = MemoryStore()
    with open_replica(store) as answering, open_replica(store) as reading:
        register(answering)
        upload(answering, "people", [("ann", "NO", 44, 10)])
        assert reading.overview.summary("survey").sequence == 0
        ask(answering, analyst(answering), "a")
        assert reading.overview.summary("survey").sequence == 1


def test_memory_that_stays_invalid_is_unavailable(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts that may be outdated are not shown."""
    writer = writer_of(replica)
    monkeypatch.setattr(writer, "catch_up", lambda: None)
    writer.submit_look(lambda state: state.invalidate()).result(timeout=PATIENCE_S)
    with pytest.raises(Unavailable):
        all_accounts(writer)


def test_a_summary_of_this_position_is_taken_from_the_cache_and_of_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another replica's, byte for byte; a query, a pause and an erasure each make it another position."""
    copied = []

    def counting(writer: WriterThread) -> AllAccounts:
        copied.append(writer)
        return all_accounts(writer)

    with replicas() as world:
        monkeypatch.setattr("service.workflows.overview.all_accounts", counting)
        ours, theirs = world.replicas
        ann = individual_named(ours, "ann")
        steps: list[Callable[[], object]] = [
            lambda: ask(ours, world.analyst, "first"),
            lambda: ours.individuals.lower_limit(ann, "survey", pause=True),
            lambda: ours.curators.erase_individual("survey", "bob"),
        ]
        for number, step in enumerate(steps):
            step()
            made = ours.overview.summary("survey")
            assert theirs.overview.summary("survey") == made
            assert ours.overview.summary("survey") == made
            assert len(copied) == number + 1
        assert (made.paused, made.individuals) == (1, 2)


def typical(replica: Replica) -> TypicalQuery | None:
    """The typical query of the summary."""
    return replica.overview.summary("survey").typical_query


def test_a_query_that_nobody_could_ever_pay_speaks_for_nothing(replica: Replica) -> None:
    """Its worst case is above every limit, and all are left out whatever they have left."""
    who = analyst(replica)
    absurd: dict[str, Any] = {"noise": {"sigma": 0.5}, "reuse": False}  # two rho, of limits of half a rho
    ask(replica, who, "absurd", **absurd)
    assert typical(replica) is None
    ask(replica, who, "first", reuse=False)
    ask(replica, who, "absurd again", **absurd)
    told = typical(replica)
    assert told is not None
    assert (told.of, told.sequence, told.cannot_afford, told.words) == (1, 2, 0, "count of people, σ 3")


def test_the_typical_query_has_the_middle_worst_case_of_the_last_hundred(replica: Replica) -> None:
    """Neither a dear query nor a cheap one alone moves it; of an even number it is the lower of the middle ones."""
    who = analyst(replica)
    for number, sigma in enumerate([1.1, 40.0, 30.0, 20.0]):
        ask(replica, who, f"k{number}", noise={"sigma": sigma}, reuse=False)
    told = typical(replica)
    assert told is not None
    assert (told.of, told.sequence, told.cannot_afford) == (4, 3, 0)
    for number in range(RECENT - 1):
        ask(replica, who, f"later {number}", noise={"sigma": 200.0}, reuse=False)
    told = typical(replica)
    assert told is not None
    assert (told.of, told.words) == (RECENT, "count of people, σ 200")


def test_it_is_counted_who_cannot_afford_a_typical_query(replica: Replica) -> None:
    """All who have less left than its worst case, also where every newest query left them out."""
    who = analyst(replica)
    for number in range(11):
        ask(replica, who, f"k{number}", reuse=False)
    told = typical(replica)
    assert told is not None
    assert (told.of, told.cannot_afford) == (11, 2)
