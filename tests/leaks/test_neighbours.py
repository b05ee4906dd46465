"""Worlds that differ in one person, with the same entropy: what everybody else receives, byte for byte.

The strongest privacy test is deterministic. Everything but the values must be identical in all worlds of the table
(`tests.leaks.worlds`). The values may differ by exactly the one person's own vector, where that person was active.
Everybody else's account, charge and part in every query must not move.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import isqrt
from typing import Any

import pytest

from service.ledger.model.individual_views import MyBudget
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.views import Principal
from service.workflows.individual import Individuals
from tests.leaks.worlds import KINDS, PLACED, N, World, lived, parts_in, price_of, public_parts, released, slot_of_one
from tests.rotation import one_of, some_of

ONES = ("p3", "p7", "p39")
"""The one person; p7 has no age."""

RULED = [(one, "skip") for one in ONES] + [("p39", "drop")]
WORLDS = some_of([(*ruled, *placed) for ruled in RULED for placed in PLACED], 3)


def test_the_gate_has_worlds_of_every_kind() -> None:
    """And of both places of the one person in them."""
    assert {kind for _, _, kind, _ in WORLDS} == KINDS.keys() - {"absent"}
    assert {is_last for _, _, _, is_last in WORLDS} == {False, True}


@cache
def life(kind: str, one: str = "p39", rule: str = "skip", *, is_last: bool = True, is_pure: bool = False) -> World:
    """A world without a planted leak, which several tests look at."""
    return lived(one, kind, is_last=is_last, rule=rule, is_pure=is_pure)


@pytest.mark.parametrize(("one", "rule", "kind", "is_last"), WORLDS)
def test_one_person_moves_nothing_but_the_values(one: str, rule: str, kind: str, is_last: bool) -> None:
    """Status, headers, text and length of every exchange are equal; values differ by that person's own vector alone."""
    ours, theirs = life(kind, one, rule, is_last=is_last), life("absent", one, rule)
    assert [status for status, _, _ in ours.exchanges].count(200) > 40
    check_neighbours(ours, theirs, one, slot_of_one(is_last=is_last))


@pytest.mark.parametrize(
    ("kind", "rule"), some_of([(kind, rule) for kind in KINDS if kind != "absent" for rule in ("skip", "drop")], 8)
)
def test_one_person_moves_nothing_but_the_values_under_pure(kind: str, rule: str) -> None:
    """Every query has Laplace noise, and is charged for |v| / b."""
    ours, theirs = (life(each, rule=rule, is_pure=True) for each in (kind, "absent"))
    assert [status for status, _, _ in ours.exchanges].count(200) > 30
    assert {entry.mechanism for entry in ours.entries} == {"laplace pure"}
    assert len(ours.entries) >= 13
    check_neighbours(ours, theirs, "p39", slot_of_one(is_last=True))


def test_the_pure_worlds_are_different() -> None:
    """The one person's account ends at many totals, and a query counts some of those it touches."""
    spent = {kind: life(kind, is_pure=True).accounts.get("p39") for kind in ("present", "exhausted")}
    assert len(set(spent.values())) == 2
    entries = life("present", is_pure=True).entries
    assert any(entry.charged_count > 0 and entry.left_out_count > 0 for entry in entries)
    assert any(entry.charged_count == 0 and entry.left_out_count > 0 for entry in entries)


def check_neighbours(ours: World, theirs: World, one: str, slot: int) -> None:
    """Raises AssertionError unless nothing but the values differs, and they by the vector of the one in this slot.

    The others' world is without the one: who came later has the slot before.
    """
    assert public_parts(ours.exchanges) == public_parts(theirs.exchanges)
    for mine, other in zip(ours.entries, theirs.entries, strict=True):
        paid, left_out = parts_in(mine)
        if mine.tick:
            assert (paid.pop(slot, 0), added_by(mine, slot)) == (0, int((mine.steps() - other.steps())[0]))
        else:
            charged, moved = paid.pop(slot, 0), price_of(mine, mine.steps() - other.steps())
            assert moved <= charged if b'"reduce"' in mine.canonical else moved == charged
        paid_elsewhere = {each - (each > slot): units for each, units in paid.items()}
        assert (paid_elsewhere, {each - (each > slot) for each in left_out - {slot}}) == parts_in(other)
    others = {key: units for key, units in ours.accounts.items() if key != one}
    assert others == {key: units for key, units in theirs.accounts.items() if key != one}


def added_by(entry: LedgerEntry, slot: int) -> int:
    """The steps that a slot has added to a tick."""
    told = entry.quantities()
    return sum(isqrt(each) for each in told.amounts[told.touched == slot].tolist()) if entry.tick else 0


def test_the_exhausted_are_counted_by_accounts_that_differ() -> None:
    """Some fall below the share and some do not, and the one person only where it has a limit and has not paused."""
    added = {}
    for kind in ("present", "left out", "paused"):
        ticks = [entry for entry in life(kind).entries if entry.tick]
        assert [tick.tick for tick in ticks] == [1, 2, 3, 4, 5, 6]
        assert any(0 < tick.charged_count < N - 1 for tick in ticks)
        added[kind] = [added_by(tick, slot_of_one(is_last=True)) for tick in ticks]
    assert any(added["present"])
    assert not any(added["left out"] + added["paused"])


def test_the_worlds_are_different_and_the_session_is_worth_watching() -> None:
    """The one person's account ends at many totals; queries leave some out, and some leave out everybody they touch."""
    spent = {kind: life(kind).accounts.get("p39") for kind in KINDS}
    assert len(set(spent.values())) >= 7
    whole = life("present")
    assert any(entry.charged_count > 0 and entry.left_out_count > 0 for entry in whole.entries)
    assert any(entry.charged_count == 0 and entry.left_out_count > 0 for entry in whole.entries)
    assert sum(released(exchange) is not None for exchange in whole.exchanges) >= 13


def test_the_active_are_counted_by_accounts_that_differ() -> None:
    """Some have the share left and some have not, and the one person has it in one world and not in others."""
    counted = {}
    for kind in ("present", "left out", "exhausted", "paused"):
        entries = [entry for entry in life(kind).entries if b'"active"' in entry.canonical]
        assert any(0 < entry.charged_count < N - 1 for entry in entries)
        counted[kind] = [parts_in(entry)[0].get(slot_of_one(is_last=True), 0) > 0 for entry in entries]
    assert any(counted["present"])
    assert not any(counted["left out"] + counted["exhausted"] + counted["paused"])


def test_some_are_shortened_and_the_one_person_in_some_worlds() -> None:
    """Under the clip rule others pay for a part of their vectors; the one person pays for a part or for nothing."""
    outcomes = set()
    for kind in ("present", "left out", "paused", "absent"):
        for entry in life(kind).entries:
            if b'"rule":"clip"' in entry.canonical:
                told = entry.quantities()
                assert told.norms_before is not None
                assert any(0 < counted < asked for counted, asked in zip(told.amounts, told.norms_before, strict=True))
                outcomes.add(entry.quantities().own(slot_of_one(is_last=True), entry.law).outcome)
    assert outcomes == {"shortened", "left_out", "untouched"}


# Planted leaks


def count_in_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the sum of the values in a header of every answer."""
    from service.api import responses  # noqa: PLC0415 - the patient

    real = responses.respond

    def leaky(answer: Any, *form: Any) -> Any:
        response = real(answer, *form)
        response.headers["X-Rows"] = str(int(abs(answer.values()).sum()))
        return response

    monkeypatch.setattr("service.api.routes.analyst.respond", leaky)


def status_by_charges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a refusal of every query that touches an odd number of people."""
    real = LedgerEntry.sealed

    def leaky(self: LedgerEntry) -> LedgerEntry:
        if self.quantities().touched.size % 2:
            raise RuntimeError("too odd")
        return real(self)

    monkeypatch.setattr(LedgerEntry, "sealed", leaky)


def counts_for_auditors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the number of people charged in what an auditor reads: the curator's rows."""
    monkeypatch.setattr("service.api.routes.auditor.without_counts", lambda row: row)


def counts_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the number of people in what another individual reads of its own account."""
    real = Individuals.budgets

    def leaky(self: Individuals, principal: Principal) -> list[MyBudget]:
        record = self._registry.record("survey")
        people, _ = self._registry._store.row_counts(record.id)
        return [replace(view, delta=str(people)) for view in real(self, principal)]

    monkeypatch.setattr(Individuals, "budgets", leaky)


def refusal_of_the_exhausted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a refusal of a query for the active of whom there is an odd number."""
    real = LedgerEntry.sealed

    def leaky(self: LedgerEntry) -> LedgerEntry:
        if b'"active"' in self.canonical and self.charged_count % 2:
            raise RuntimeError("hardly any are active")
        return real(self)

    monkeypatch.setattr(LedgerEntry, "sealed", leaky)


PLANTS = (count_in_a_header, status_by_charges, counts_for_auditors, counts_for_others, refusal_of_the_exhausted)


@pytest.mark.parametrize(
    ("plant", "kind"), [(plant, kind) for n, plant in enumerate(PLANTS) for kind in one_of(["present", "joined"], n)]
)
def test_a_planted_leak_is_seen(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], kind: str
) -> None:
    """A seeded leak: a header, a status, an auditor's row, another's account; the comparison would not hold."""
    plant(monkeypatch)
    ours, theirs = lived("p39", kind), lived("p39", "absent")
    assert public_parts(ours.exchanges) != public_parts(theirs.exchanges)
