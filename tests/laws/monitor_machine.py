"""The state machine of backups and restores, of a dataset with a monitor: no history costs anybody more ticks."""

from collections import defaultdict
from fractions import Fraction
from math import isqrt

import orjson
from hypothesis.stateful import initialize, invariant, rule

from service.accounting.monitor import Monitor, coefficients
from service.core.charge import UNITS_PER_RHO
from service.ledger.model.errors import InvalidRequest
from service.query.parse import parse_query
from service.workflows.datasets import Registration
from tests.laws.filter_world import registration
from tests.laws.restore_machine import NAME, RestoreMachine
from tests.waiting import PATIENCE_S

TICKS = 5
TICK = parse_query(b'{"version":1,"select":[{"exhausted":{}}]}')


class MonitorMachine(RestoreMachine):
    """The truth of ticks: every answer that ever left, in any history, by the key of the individual counted."""

    def __init__(self) -> None:
        super().__init__()
        self.added: dict[str, list[tuple[int, int]]] = defaultdict(list)  # (tick, steps)
        self.refusals = self.ticks = 0

    @initialize()
    def register(self) -> None:
        """Register a dataset with a reserve that is an eighth of the smallest limit."""
        monitor = {"rho": "0.125", "ticks": TICKS, "share": 0.25}
        document = registration(NAME, "skip") | {"monitor": monitor, "limit_floor_rho": "1"}
        self.replica.curators.register(Registration.model_validate(document))
        self.analyst = self.replica.principals.create(role="analyst", name="ana")[0]
        self.back_up()
        self.join({"p0", "p1"}, 5)
        self.back_up()

    @property
    def monitor(self) -> Monitor:
        """The dataset's."""
        monitor = self.store.kept[1].record.monitor
        assert monitor is not None
        return monitor

    @rule()
    def tick(self) -> None:
        """Ask for the next tick; none comes after a reconciliation, nor after the last one."""
        self.asked += 1
        with self.store.transaction(1, lock=False) as transaction:
            before = len(transaction.ticks())
        pending = self.replica.analysts.submit(self.analyst, NAME, f"k{self.asked}", TICK)
        refusal = pending.exception(timeout=PATIENCE_S)
        is_over = self.head.is_reconciled or before == TICKS
        assert isinstance(refusal, InvalidRequest) == is_over
        self.refusals += is_over
        if is_over:
            return
        self.ticks += 1
        number = orjson.loads(pending.result().body)["tick"]
        with self.store.transaction(1, lock=False) as transaction:
            (entry,) = transaction.entries(after=transaction.head.seq - 1)
        assert (entry.tick, entry.charged_units) == (number, 0) == (before + 1, 0)
        people, told = self.store.kept[1].people, entry.quantities()
        for slot, amount in zip(told.touched.tolist(), told.amounts.tolist(), strict=True):
            assert people[slot].key is not None
            assert not people[slot].paused
            assert people[slot].limit_units > 0
            self.added[self.keys[slot]].append((number, isqrt(amount)))

    @invariant()
    def no_ticks_cost_more_than_the_reserve(self) -> None:
        """In exact fractions of what was really added, whatever was erased, joined again or restored since."""
        monitor = self.monitor
        for added in self.added.values():
            squared = sum(steps**2 for _, steps in added)
            cost = Fraction(squared * UNITS_PER_RHO) / (2 * Fraction(monitor.sigma_steps) ** 2)
            assert cost <= monitor.reserve_units

    @invariant()
    def everybody_has_one_first_tick(self) -> None:
        """All that one individual ever adds is part of one column of the coefficients."""
        steps = coefficients(TICKS).tolist()
        for added in self.added.values():
            first = {tick - steps.index(each) for tick, each in added}
            assert len(first) == 1
