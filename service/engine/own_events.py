"""The totals of individuals over their own events, worked out once for each query by one pass over all events."""

from collections.abc import Iterator

import numpy as np

from service.arrays import Codes, Integers, take
from service.engine.memory import DatasetMemory
from service.engine.rows import RowView, TableRows, code_tables, cuts
from service.engine.selection import selection
from service.query.columns import Coding, OwnColumn
from service.query.division import PAGE_SLOTS
from service.query.own_events import OwnTotal
from service.query.working_memory import STRETCH_ROWS


class OwnEventsReader:
    """The totals of all individuals, whole numbers by slot. Each is a function of the individual's own events alone."""

    def __init__(self, formula: OwnTotal, coding: Coding, memory: DatasetMemory) -> None:
        self._formula, self._memory = formula, memory
        self._codes: Codes = (self._totals() - coding.offset).astype(coding.dtype)

    def codes(self, _table: TableRows, rows: slice | Integers) -> Codes:
        """The codes (k,) of the totals of k individuals."""
        return take(self._codes, rows)

    def _totals(self) -> Integers:
        """The totals (slots,), in steps."""
        formula, memory = self._formula, self._memory
        codings = {**memory.codings[formula.table], **{name: each.coding for name, each in formula.columns.items()}}
        select = selection(formula.predicate, codings)
        totals = np.zeros(memory.slots_used, dtype=np.int64)
        for table, stretch in self._stretches():
            view, chosen = RowView(table, stretch), np.empty(stretch.stop - stretch.start, dtype=np.bool_)
            select(view, chosen)
            owners = take(table.owners, stretch) if table.owners is not None else np.empty(0, dtype=np.uint16)
            if formula.column is None:
                added = chosen.astype(np.int64)
            else:
                codes, coding = view[formula.column], codings[formula.column]
                np.logical_and(chosen, codes <= coding.span, out=chosen)
                added = np.where(chosen, codes.astype(np.int64) + coding.offset, 0)
            np.add.at(totals, owners.astype(np.int64) + table.first_slot, added)
        return totals

    def _stretches(self) -> Iterator[tuple[TableRows, slice]]:
        formula, people = self._formula, self._memory.people.columns
        own = {each.formula.column for each in formula.columns.values() if isinstance(each.formula, OwnColumn)}
        tables = code_tables(formula.columns)
        for number, page in self._memory.events[formula.table].pages():
            table = TableRows(
                stored=page.columns,
                columns=formula.columns,
                owners=page.owners,
                first_slot=number * PAGE_SLOTS,
                individuals={name: people[name][number * PAGE_SLOTS : (number + 1) * PAGE_SLOTS] for name in own},
                tables=tables,
            )
            for stretch in cuts(page.owners, STRETCH_ROWS):
                yield table, stretch
