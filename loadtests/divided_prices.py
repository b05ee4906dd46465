"""A dataset of `loadtests.worst_data` over processes, whose accounts stand as those of an undivided dataset."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from loadtests.in_process import drawn
from loadtests.worst_data import ROOMY, Standing, charged, made, roomy, rows_of
from loadtests.writer_work import answer_in, state_on, work
from service.engine.memory import DatasetMemory
from service.engine.pages import PageTotals, slots_on
from service.ledger.model.rows import SlotsInUse, StoredPage
from service.query.plan import Plan
from service.store.shards import ProcessShards
from service.writer.shards.divided import DividedShards
from service.writer.state import DatasetState


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedData:
    """The state of a dataset over processes, and a memory of this process with the same rows.

    The accounts get their standing in the memory, which is asked first. Then they are sent to the shards.
    """

    state: DatasetState
    memory: DatasetMemory

    def times_ns(self, plan: Plan, standing: Standing, repetitions: int) -> list[int]:
        """The wall times from a plan to the rows that would be committed, with all indexes and tallies made."""
        taken = []
        for _ in range(repetitions + 1):
            self._stand(plan, standing)
            begun = time.perf_counter_ns()
            answer_in(self.state, plan, drawn)
            taken.append(time.perf_counter_ns() - begun)
            self.state.shards.prepare()
        return taken[1:]

    def _stand(self, plan: Plan, standing: Standing) -> None:
        memory, shards = self.memory, self.state.shards
        roomy(memory, charged(memory))
        if standing is not ROOMY:
            work(plan, memory, drawn)
            standing.set(memory, charged(memory))
        accounts, slots = memory.accounts, np.arange(memory.slots_used)
        stored = SlotsInUse(
            slots=slots,
            limits=accounts.limits[slots],
            present=memory.people.present[slots],
            paused=accounts.paused[slots],
        )
        shards.reset_spent()
        shards.set_accounts(stored)
        spent, nothing = accounts.spent, np.zeros(slots_on(0).stop, dtype=np.uint32)
        for page in range(spent.size // nothing.size) if spent.any() else ():
            totals = PageTotals(spent=spent[slots_on(page)], charged=nothing, left_out=nothing)
            shards.set_page(StoredPage(number=page, seq=0, totals=totals))


@contextmanager
def divided_data(people: int, count: int) -> Iterator[DividedData]:
    """The data over `count` processes."""
    memory = made(people, count)
    state = state_on(memory.schema, people)
    shards = DividedShards(ProcessShards().open(state.record, count))
    state.shards, state.slots_used = shards, people
    try:
        shards.load(state.record, slots=people, number=0)
        for name, slots, columns in rows_of(memory, people, count):
            shards.add_rows(name, slots, columns)
        shards.index_categories()
        yield DividedData(state=state, memory=memory)
    finally:
        shards.close()
