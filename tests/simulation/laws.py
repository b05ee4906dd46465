"""The laws that must hold after every step and any fault; letters as in section 1 of the reliability design.

A broken law is recorded and raised by the world, not inside the workflows, whose handlers would take it for a fault.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from numpy.typing import NDArray

from service.accounting.monitor import coefficients
from service.core.laplace import rounded_laplace
from service.core.noise import rounded_gaussian
from service.engine.pages import PageTotals
from service.ledger.model.ledger_entry import LedgerEntry, chain_hash
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import BudgetRow
from service.ledger.ports.shards import ShardLost
from service.query.parse import parse_query
from service.query.plan import compile_query
from service.writer.state import DatasetState
from tests.laws.filter_world import AREAS, REDUCED
from tests.laws.reference import (
    ReferenceDataset,
    gaussian_units,
    laplace_units,
    length_squared,
    peak_squared,
    rounded_length_squared,
)
from tests.memory.shards import page_seq_max
from tests.simulation.disk import SimulatedTransaction
from tests.simulation.requests import ANALYSTS, Ask, Look, Pause
from tests.simulation.witnesses import FirstWitness


class LawBroken(AssertionError):
    """A law of the service was broken."""


class Laws:
    """The reference, replayed in the order of the commits, and everything that any client has seen."""

    def __init__(self, record: DatasetRecord) -> None:
        self.record = record
        self.broken: list[str] = []
        self.model = ReferenceDataset(budget=record.budget_units, rule=record.rule, reserve=record.reserve_units)
        self.laplace = laplace_units(record.accounting.name)
        self.kinds = Counter[str]()
        self.seen: dict[tuple[UUID, str], bytes] = {}
        self.durable: dict[tuple[UUID, str], bytes] = {}
        self.asked: dict[bytes, Ask] = {}
        self.canonical: dict[Ask, bytes] = {}
        self.words: set[int] = set()
        self.keys: dict[int, str] = {}
        self.spent: list[NDArray[np.int64]] = [np.zeros(record.capacity, dtype=np.int64)]
        self.counted: list[NDArray[np.uint32]] = [np.zeros((2, record.capacity), dtype=np.uint32)]
        self.first_ticks: list[NDArray[np.uint16]] = [np.zeros(record.capacity, dtype=np.uint16)]
        self.hash = record.genesis
        self.checkpoint_seq = self.page_seq = self.ticks = 0
        self.data_version = 0
        self.commits = self.shortened = 0

    @property
    def seq(self) -> int:
        """The sequence of the last ledger entry."""
        return len(self.spent) - 1

    def law(self, holds: bool, sentence: str) -> None:
        """Record the sentence of a law that is broken."""
        if not holds:
            self.broken.append(sentence)

    def expect(self, ask: Ask) -> None:
        """Remember the canonical form of a query."""
        plan = compile_query(
            parse_query(ask.body),
            self.record.schema,
            capacity=self.record.capacity,
            budget_units=self.record.budget_units,
            pricing=self.record.accounting,
            monitor=self.record.monitor,
        )
        self.asked[plan.canonical] = ask
        self.canonical[ask] = plan.canonical

    def committed(self, transaction: SimulatedTransaction) -> None:
        """Check a transaction that has just become durable."""
        self.commits += 1
        after = transaction.dataset
        self.keys |= {slot: person.key for slot, person in after.people.items() if person.key is not None}
        is_new = transaction.act is not None
        if isinstance(transaction.act, Look):
            self.law(holds=False, sentence="a read-only transaction was committed")
        elif isinstance(transaction.act, Pause):
            is_new = transaction.act.changes(self.model)
            transaction.act.apply(self.model)
        elif transaction.act is not None:
            transaction.act.apply(self.model)  # type: ignore[attr-defined]
        words = iter(transaction.words)
        self.law(len(after.entries) >= self.seq, "A1: ledger entries are gone")
        for entry in after.entries[self.seq :]:
            self._entry(entry, words)
        self.law(after.head.seq == self.seq and after.head.hash == self.hash, "A7: the head is not the last entry")
        self._accounts(after)
        self._answers(after)
        self.checkpointed(after)
        moved = after.head.data_version - self.data_version
        self.law(moved == is_new, "an act was lost, or came twice")
        self.data_version = after.head.data_version

    def answered(self, ask: Ask, body: bytes, stored: Any) -> None:
        """Check an answer that a client has read: it was durable before, and never changes."""
        address = (ask.analyst.id, ask.key)
        record = stored.answers.get(address)
        self.law(record is not None and record.body == body, f"A1: the answer under {ask.key} is not the stored one")
        seq = orjson.loads(body)["sequence"]
        shown = [entry.canonical for entry in stored.entries[seq - 1 : seq]]
        self.law(shown == [self.canonical[ask]], f"the answer under {ask.key} is to another query")
        self.law(self.seen.setdefault(address, body) == body, f"B1: two answers under {ask.key}")

    def witnessed(self, body: bytes, first: FirstWitness) -> None:
        """Check that the witness would still know of an answer that a client has read, were the database lost."""
        seq, synced = orjson.loads(body)["sequence"], first.synced()
        self.law(seq <= synced, f"entry {seq} was seen, and the first witness has synced only {synced}")

    def shown(self, rows: Sequence[BudgetRow], *, since: int) -> None:
        """Check accounts that a curator has read: they are of one instant, not before the read began."""
        slots = {key: slot for slot, key in self.keys.items()}
        holds = any(all(self._shows(row, slots[row.key], seq) for row in rows) for seq in range(since, self.seq + 1))
        self.law(holds, f"the accounts shown match no instant since sequence {since}")

    def _shows(self, row: BudgetRow, slot: int, seq: int) -> bool:
        counts = self.counted[seq][:, slot].tolist()
        return int(self.spent[seq][slot]) == row.spent_units and counts == [row.queries_charged, row.queries_left_out]

    def checkpointed(self, after: Any) -> None:
        """A6: a page is the replay at its own sequence and, unless later, at the checkpoint's; no page goes back.

        The worlds are so small that one page holds all accounts.
        """
        at, page = after.head.checkpoint_seq, after.pages.get(0)
        own = 0 if page is None else page.seq
        kept = PageTotals.zero() if page is None else page.totals
        forward = self.checkpoint_seq <= at <= self.seq and self.page_seq <= own <= self.seq
        self.law(forward, f"A6: {own} and {at} after {self.page_seq} and {self.checkpoint_seq}")
        self.checkpoint_seq, self.page_seq = at, own
        for seq in {own, max(own, at)} if forward else set():
            right = self._holds(seq, kept.spent, kept.charged, kept.left_out) and set(after.pages) <= {0}
            first = np.zeros(self.record.capacity, dtype=np.uint16)
            first[: kept.ticks.size] = kept.ticks[: first.size]  # a page before the first tick has none
            right = right and np.array_equal(first, self.first_ticks[seq])
            self.law(right, f"A6: the page of {own}, with a checkpoint at {at}, is not the replay at {seq}")

    def idle(self, name: str, state: DatasetState, stored: Any) -> None:
        """Check an idle writer: its accounts are those of the ledger at its sequence.

        A load that was cut short before the entries after a checkpoint has a page that was stored ahead of it.
        """
        if state.seq < 0 or state.data_version < 0 or state.shards.lost:
            return
        if state.seq > self.seq:
            self.law(holds=False, sentence=f"{name} is at {state.seq}, the ledger at {self.seq}")
            return
        try:
            accounts = state.copy_accounts(slice(0, state.slots_used))
            at = max(state.seq, page_seq_max(state))
        except ShardLost:
            return
        right = self._holds(at, accounts.spent, accounts.charged, accounts.left_out)
        self.law(right, f"A3: the memory of {name} at {at} is not the replay")
        if state.data_version == stored.head.data_version:
            present = {slot for slot, person in stored.people.items() if person.key is not None}
            self.law(set(np.flatnonzero(accounts.present).tolist()) == present, f"{name} holds other people")
            limits = {slot: int(accounts.limit[slot]) for slot in stored.people}
            kept = {slot: person.limit_units for slot, person in stored.people.items()}
            self.law(limits == kept, f"{name} holds other limits")
            paused = {slot for slot, person in stored.people.items() if person.paused}
            self.law(set(np.flatnonzero(accounts.paused).tolist()) == paused, f"{name} holds other pauses")

    def _holds(self, seq: int, *stored: NDArray[Any]) -> bool:
        """Tell whether spent totals and counters, by slot, are those of a sequence, and zero in unused slots."""
        given = (self.spent[seq], *self.counted[seq])
        return all(
            np.array_equal(values[: right.size], right[: values.size]) and not values[right.size :].any()
            for values, right in zip(stored, given, strict=True)
        )

    def _entry(self, entry: LedgerEntry, words: Any) -> None:
        """Check a new ledger entry against the reference: charges, slots left out, and the noise added."""
        place = f"entry {entry.seq}"
        self.law(entry.seq == self.seq + 1, f"A7: {place} does not follow {self.seq}")
        self.law(entry.previous_hash == self.hash and chain_hash(entry) == entry.hash, f"A7: {place} breaks the chain")
        ask = self.asked[entry.canonical]
        self.kinds[ask.kind + " with Laplace noise" * ask.is_laplace] += 1
        exact, sigma_steps = self._ticked(entry) if ask.kind == "tick" else self._charged(entry, ask)
        drawn = [next(words, np.zeros(0, dtype=np.uint64)) for _ in range(2)]  # the noise; the id and the salt
        for word in np.concatenate(drawn).tolist():
            self.law(word not in self.words, f"A9: {place} uses noise again")
            self.words.add(word)
        law = rounded_laplace if ask.is_laplace else rounded_gaussian
        noise = law(entry.dimension, sigma_steps, lambda _: drawn[0]) if drawn[0].size else exact * 0
        self.law(bool((entry.steps() == exact + noise).all()), f"A10: {place} is not the sum and its own noise")
        self.hash = entry.hash

    def _charged(self, entry: LedgerEntry, ask: Ask) -> tuple[NDArray[Any], float]:
        """Check what a query charges. The exact answer (dimension,) and the noise's scale, in steps."""
        place = f"entry {entry.seq}"
        named = f"laplace {self.record.accounting.name}" if ask.is_laplace else "gaussian"
        self.law(entry.mechanism == named, f"A5: {place} has another noise")
        lengths: dict[str, Callable[[Iterable[int]], Any]] = {
            "largest": peak_squared,
            "length": partial(rounded_length_squared, grid=Fraction(entry.grid)),
        }
        charges, left_out, total = self.model.ask(
            self.model.vectors(ask.kind, ask.number),
            ask.sigma,
            shortens=ask.kind == "clipped",
            units=self.laplace if ask.is_laplace else gaussian_units,
            priced=lengths.get(ask.kind, length_squared),
        )
        charged, units, out = entry.decode()
        self.shortened += ask.kind == "clipped" and len(set(charges.values())) > 1  # whole vectors cost the same
        told = {self.keys[slot]: charge for slot, charge in zip(charged.tolist(), units.tolist(), strict=True)}
        self.law(told == charges, f"A5: {place} charges {told}, the reference {charges}")
        skipped = {self.keys[slot] for slot in out.tolist()}
        self.law(skipped == left_out, f"A5: {place} leaves out {skipped}, the reference {left_out}")
        spent, counted = self.spent[-1].copy(), self.counted[-1].copy()
        spent[charged] += units
        counted[0, charged] += 1
        counted[1, out] += 1
        self.spent.append(spent)
        self.counted.append(counted)
        self.first_ticks.append(self.first_ticks[-1])
        return _exact(ask.kind, total, entry), ask.sigma / entry.grid

    def _ticked(self, entry: LedgerEntry) -> tuple[NDArray[Any], float]:
        """Check what a tick counts, and that it charges nobody. The exact answer (1,) and its sigma, in steps."""
        place, monitor = f"entry {entry.seq}", self.record.monitor
        if monitor is None:
            raise RuntimeError(f"{place} is a tick, and there is no monitor")
        self.law(entry.tick == self.ticks + 1, f"{place} is tick {entry.tick} after tick {self.ticks}")
        self.ticks = entry.tick
        steps = coefficients(monitor.ticks).tolist()
        added = self.model.tick(entry.tick, threshold=monitor.threshold_units, coefficients=steps)
        quantities = entry.quantities()
        pairs = zip(quantities.touched.tolist(), quantities.amounts.tolist(), strict=True)
        told = {self.keys[slot]: isqrt(amount) for slot, amount in pairs}
        self.kinds["tick that counts somebody"] += bool(added)
        self.law(told == added, f"{place} counts {told}, the reference {added}")
        self.law(entry.charged_units == entry.worst_case_units == 0, f"{place} charges for a tick")
        first = self.first_ticks[-1].copy()
        first[quantities.touched] = np.where(first[quantities.touched] > 0, first[quantities.touched], entry.tick)
        self.first_ticks.append(first)
        self.spent.append(self.spent[-1])
        self.counted.append(self.counted[-1])
        return np.array([sum(added.values())], dtype=float), monitor.sigma_steps

    def _accounts(self, after: Any) -> None:
        """A2, A3: no account is above its limit, and every account is the reference's."""
        for slot, person in after.people.items():
            name, spent = self.keys[slot], int(self.spent[-1][slot])
            known = self.model.people.get(name)
            self.law(spent <= person.limit_units, f"A2: {name} has spent {spent} of {person.limit_units}")
            account = spent, person.limit_units, person.paused
            same = known is not None and (known.spent, known.limit, known.paused) == account
            self.law(same, f"A3: {name} has {account}, the reference {known}")
            self.law(
                known is not None and known.present == (person.key is not None), f"{name} is present in one of the two"
            )
        self.law(len(after.people) == len(self.model.people), "G6: an individual has two accounts")

    def _answers(self, after: Any) -> None:
        """B1, B3, B4: answers never change; every entry belongs to exactly one key; allowances hold."""
        for address, body in self.durable.items():
            record = after.answers.get(address)
            self.law(record is not None and record.body == body, f"B4: the answer under {address[1]} has changed")
        fresh = [record for address, record in after.answers.items() if address not in self.durable]
        self.durable |= {(record.principal_id, record.key): record.body for record in fresh}
        executed = sorted(record.seq for record in after.answers.values() if not _is_reused(record.body))
        self.law(executed == list(range(1, self.seq + 1)), f"B3: the keys executed entries {executed}")
        for analyst in ANALYSTS:
            costs = sum(entry.worst_case_units for entry in after.entries if entry.analyst_id == analyst.id)
            self.law(costs == after.worst_cases.get(analyst.id, 0), f"{analyst.name}'s worst cases do not add up")
            allowed = analyst.allowance_units is None or costs <= analyst.allowance_units
            self.law(allowed, f"{analyst.name} is above the allowance")


def _is_reused(body: bytes) -> bool:
    reused: bool = orjson.loads(body)["reused"]
    return reused


def _exact(kind: str, total: dict[int, int], entry: LedgerEntry) -> NDArray[Any]:
    """The exact answer (dimension,) to a query with this sum, in steps, as sums under the clip rule are already."""
    if kind not in REDUCED:
        steps = np.array([total.get(coordinate, 0) for coordinate in range(entry.dimension)])
        return steps if kind == "clipped" else steps / entry.grid
    numbers = [Fraction(total.get(area, 0)) / Fraction(entry.grid) for area in range(AREAS)]
    if kind == "largest":
        return np.array([float(max(numbers))])
    return np.array([(isqrt(int(4 * length_squared(numbers))) + 1) // 2])
