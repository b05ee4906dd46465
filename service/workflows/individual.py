"""The use cases of individuals: their own budget and receipts, a lower limit, a pause."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial

from service.core.units import units_down
from service.workflows.model.errors import InvalidRequest, NotFound
from service.workflows.model.rows import DatasetRecord, OwnAccount
from service.workflows.model.views import MyBudget, Page, Principal, Receipt
from service.workflows.reads import accounts, ledger
from service.workflows.reads.own_record import OwnRecord, own_record
from service.workflows.replication.exchange import ReplicaExchange
from service.workflows.writer.committer import Operation
from service.workflows.writer.registry import DatasetRegistry


class Individuals:
    """Everything an individual can do, on its own account only. Thread-safe."""

    def __init__(self, *, registry: DatasetRegistry, exchange: ReplicaExchange, askers: ledger.Askers) -> None:
        """`askers` describes the analysts behind queries."""
        self._registry, self._exchange, self._askers = registry, exchange, askers

    def budgets(self, principal: Principal) -> list[MyBudget]:
        """The individual's own account. Raises NotFound once erased."""
        record, key = self._own(principal)
        return [accounts.my_budget(record, key, self._registry.writer(record), self._exchange)]

    def receipts(self, principal: Principal, *, cursor: str | None, limit: int) -> Page[Receipt]:
        """The cost of each query to this individual, newest first. Raises NotFound once erased."""
        record, key = self._own(principal)
        return ledger.receipts(record, self._registry.guard(record), key, self._askers, cursor=cursor, limit=limit)

    def lower_limit(
        self, principal: Principal, dataset: str, *, limit_rho: Decimal | None = None, pause: bool = False
    ) -> MyBudget:
        """Lower the individual's limit, or pause it. Raises InvalidRequest on a raise, NotFound on another dataset."""
        if (limit_rho is None) != pause:
            raise InvalidRequest.of("limit_rho", "give either limit_rho or pause")
        if limit_rho is None:
            return self._change(principal, dataset, partial(ledger.pausing, paused=True))
        units = units_down(Fraction(limit_rho))
        return self._change(principal, dataset, partial(ledger.lowering, limit_units=units))

    def resume(self, principal: Principal, dataset: str) -> MyBudget:
        """End the individual's pause; a lowered limit stays lowered. Raises NotFound on another dataset."""
        return self._change(principal, dataset, partial(ledger.pausing, paused=False))

    def record(self, principal: Principal, dataset: str) -> OwnRecord:
        """The individual's own record as the service holds it. Raises NotFound on another dataset, and once erased."""
        record, key = self._own(principal)
        if record.name != dataset:
            raise NotFound
        with ledger.snapshot(self._registry.guard(record)) as transaction:
            return own_record(record, transaction, ledger.slot_of(transaction, key), key)

    def ask_erasure(self, principal: Principal, dataset: str) -> None:
        """Ask the curator for an erasure; repeating this changes nothing. Raises NotFound on another dataset."""
        record, key = self._own(principal)
        if record.name != dataset:
            raise NotFound
        self._registry.writer(record).act(ledger.asking_erasure(key))

    def is_erasure_asked(self, principal: Principal, dataset: str) -> bool:
        """Whether the individual has asked to be erased. Raises NotFound on another dataset."""
        record, key = self._own(principal)
        if record.name != dataset:
            raise NotFound
        with ledger.snapshot(self._registry.guard(record)) as transaction:
            return ledger.is_erasure_asked(transaction, ledger.slot_of(transaction, key))

    def _own(self, principal: Principal) -> tuple[DatasetRecord, str]:
        if principal.dataset is None or principal.individual is None:
            raise NotFound
        return self._registry.record(principal.dataset), principal.individual

    def _change(
        self, principal: Principal, dataset: str, operation_of: Callable[[str], Operation[OwnAccount]]
    ) -> MyBudget:
        """Commit an operation on the individual's account, made for its key."""
        record, key = self._own(principal)
        if record.name != dataset:
            raise NotFound
        account = self._registry.writer(record).act(operation_of(key))
        # Outside the writer: an epsilon takes ten milliseconds. The promise does not fall with the limit.
        return ledger.my_budget_view(record, account, ledger.promised_to(record, self._registry.guard(record), key))
