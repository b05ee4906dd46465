"""All spent totals as the database has them: the view `budgets`, and the sealed entries that it cannot read.

Prices are worked out in fractions, not by the service's core. Ticks of a monitor charge nobody.
"""

from collections import defaultdict
from fractions import Fraction
from typing import Any, NamedTuple

import psycopg

from service.ledger.model.pieces import WHOLE, Measure, Quantities
from service.store.postgres.rows import LedgerSeal
from tests.laws.reference import gaussian_units, laplace_units

PAGE_SLOTS = 65_536
ENTRIES = """
SELECT d.name, l.seq, l.mechanism, l.sigma, l.grid_log2, l.salt, p.number, coalesce(l.piece, p.sealed)
FROM ledger l JOIN datasets d ON d.id = l.dataset_id JOIN heads h ON h.dataset_id = d.id
LEFT JOIN pieces p ON p.dataset_id = l.dataset_id AND p.seq = l.seq
WHERE l.format = 2 AND l.seq > h.checkpoint_seq AND l.mechanism NOT LIKE 'gaussian prepaid %'
"""
PAGES = "SELECT d.name, page, seq FROM pages JOIN datasets d ON d.id = dataset_id"


class Spent(NamedTuple):
    """One individual's row; erased people have no key."""

    dataset: str
    key: str | None
    spent_units: int
    limit_units: int


def spent_in(connection: psycopg.Connection[tuple[Any, ...]], ledger_key: bytes) -> list[Spent]:
    """All individuals, in any order."""
    seal = LedgerSeal(ledger_key)
    page_seqs = {(name, page): seq for name, page, seq in connection.execute(PAGES).fetchall()}
    since: dict[tuple[str, int], int] = defaultdict(int)
    for name, seq, mechanism, sigma, grid_log2, salt, number, sealed in connection.execute(ENTRIES).fetchall():
        told = seal.open(bytes(salt), WHOLE if number is None else number, bytes(sealed)).quantities()
        for slot, units in charged_in(told, Fraction(sigma) / Fraction(2) ** grid_log2, mechanism).items():
            if seq > page_seqs.get((name, slot // PAGE_SLOTS), 0):
                since[name, slot] += units
    rows = connection.execute("SELECT dataset, slot, key, spent_units, budget_units FROM budgets").fetchall()
    return [Spent(name, key, int(spent) + since[name, slot], limit) for name, slot, key, spent, limit in rows]


def charged_in(told: Quantities, sigma_steps: Fraction, mechanism: str = "gaussian") -> dict[int, int]:
    """Units by slot, of the active individuals; with Laplace noise `sigma_steps` is the scale."""
    people = zip(told.touched.tolist(), told.active.tolist(), told.amounts.tolist(), strict=True)
    amounts = {slot: amount for slot, is_active, amount in people if is_active}
    if told.measure is Measure.UNITS:
        return amounts
    law, _, accounting = mechanism.partition(" ")
    units = laplace_units(accounting) if law == "laplace" else gaussian_units
    return {slot: units(norm, sigma_steps) for slot, norm in amounts.items()}
