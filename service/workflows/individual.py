"""The use cases of individuals: their own budget and receipts, a lower limit, a pause, the wish to be erased."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial

from service.core.charge import rho_of_units, units_down
from service.ledger.model.errors import InvalidRequest, NotFound
from service.ledger.model.individual_views import MyBudget, Receipt
from service.ledger.model.rows import DatasetRecord, OwnAccount
from service.ledger.model.views import Page, Principal
from service.ledger.ports.transaction import Transaction
from service.query.keys import Key
from service.query.vector_columns import vectors_of
from service.reads import accounts
from service.reads.individual_record import IndividualRecord, individual_record
from service.reads.ledger import Askers, my_budget_view, promised, receipts, slot_of, snapshot
from service.writer.committer import Operation
from service.writer.registry import DatasetRegistry
from service.writer.replication.exchange import ReplicaExchange
from service.writer.state import DatasetState


class Individuals:
    """Everything an individual can do, on its own account only. Thread-safe."""

    def __init__(self, *, registry: DatasetRegistry, exchange: ReplicaExchange, askers: Askers) -> None:
        """`askers` describes the analysts behind queries."""
        self._registry, self._exchange, self._askers = registry, exchange, askers

    def budgets(self, principal: Principal) -> list[MyBudget]:
        """The individual's own account. Raises NotFound once erased."""
        record, key = self._own(principal)
        return [accounts.my_budget(record, key, self._registry.writer(record), self._exchange)]

    def receipts(self, principal: Principal, *, cursor: str | None, limit: int) -> Page[Receipt]:
        """The cost of each query to this individual, newest first. Raises NotFound once erased."""
        record, key = self._own(principal)
        return receipts(record, self._registry.guard(record), key, self._askers, cursor=cursor, limit=limit)

    def lower_limit(
        self, principal: Principal, dataset: str, *, limit_rho: Decimal | None = None, pause: bool = False
    ) -> MyBudget:
        """Lower the individual's limit, or pause it.

        Raises InvalidRequest for a limit above the present one or below what is spent, NotFound on another dataset.
        """
        if (limit_rho is None) != pause:
            raise InvalidRequest.of("limit_rho", "give either limit_rho or pause")
        if limit_rho is None:
            return self._change(principal, dataset, partial(pausing, paused=True))
        stated, reserve = units_down(Fraction(limit_rho)), self._own(principal, dataset)[0].reserve_units
        return self._change(principal, dataset, partial(lowering, stated_units=stated, reserve_units=reserve))

    def resume(self, principal: Principal, dataset: str) -> MyBudget:
        """End the individual's pause; a lowered limit stays lowered. Raises NotFound on another dataset."""
        return self._change(principal, dataset, partial(pausing, paused=False))

    def record(self, principal: Principal, dataset: str) -> IndividualRecord:
        """The individual's own record as the service holds it. Raises NotFound on another dataset, and once erased."""
        record, key = self._own(principal, dataset)
        with snapshot(self._registry.guard(record)) as transaction:
            return individual_record(record, transaction, slot_of(transaction, key), key)

    def vector_lengths(self, principal: Principal, dataset: str) -> dict[str, int]:
        """The length of each column of vectors, by table and column. Raises NotFound on another dataset."""
        schema = self._own(principal, dataset)[0].schema
        people = schema.individuals_name
        return {f"{people}.{name}": each.length for name, each in vectors_of(schema.tables[people].columns).items()}

    def ask_erasure(self, principal: Principal, dataset: str) -> None:
        """Ask the curator for an erasure; repeating this changes nothing. Raises NotFound on another dataset."""
        record, key = self._own(principal, dataset)
        self._registry.writer(record).act(asking_erasure(key), principal=principal.id)

    def is_erasure_asked(self, principal: Principal, dataset: str) -> bool:
        """Tell whether the individual has asked to be erased. Raises NotFound on another dataset."""
        record, key = self._own(principal, dataset)
        with snapshot(self._registry.guard(record)) as transaction:
            return is_erasure_asked(transaction, slot_of(transaction, key))

    def _own(self, principal: Principal, dataset: str | None = None) -> tuple[DatasetRecord, Key]:
        """The individual's dataset and key. Raises NotFound, also where `dataset` names another one."""
        if principal.dataset is None or principal.individual is None:
            raise NotFound
        record = self._registry.record(principal.dataset)
        if dataset not in {None, record.name}:
            raise NotFound
        return record, principal.individual

    def _change(
        self, principal: Principal, dataset: str, operation_of: Callable[[Key], Operation[OwnAccount]]
    ) -> MyBudget:
        """Commit an operation on the individual's account, made for its key."""
        record, key = self._own(principal, dataset)
        account = self._registry.writer(record).act(operation_of(key), principal=principal.id)
        # Outside the writer: an epsilon takes ten milliseconds. The promise does not fall with the limit.
        with snapshot(self._registry.guard(record)) as transaction:
            promise = promised(record, transaction, slot_of(transaction, key))
        return my_budget_view(record, account, promise)


def lowering(key: Key, *, stated_units: int, reserve_units: int) -> Operation[OwnAccount]:
    """Lower an individual's limit to `stated_units` in all, of which `reserve_units` are kept for the monitor.

    Raises InvalidRequest for a limit above the present one, or below what is already spent and kept. A limit below that
    would leave the individual nothing, for good, although it meant to keep some.
    """
    limit_units = stated_units - reserve_units

    def act(transaction: Transaction, state: DatasetState) -> OwnAccount:
        slot = slot_of(transaction, key)
        own = state.account(slot)
        if limit_units > own.limit:
            raise InvalidRequest.of("limit_rho", "a limit can be lowered, never raised")
        if limit_units < own.spent:
            kept = f" or kept for the monitor ({rho_of_units(reserve_units)})" if reserve_units else ""
            least = f"must be at least {rho_of_units(own.spent + reserve_units)}, which is spent already{kept}"
            raise InvalidRequest.of("limit_rho", least)
        transaction.set_limit(slot, limit_units)
        told = {"slot": slot, "limit_units": str(limit_units), "limit_before_units": str(own.limit)}
        transaction.journal("limit", told)
        state.after_commit(partial(state.shards.set_limit, slot, limit_units))
        return own._replace(limit=limit_units)

    return act


def pausing(key: Key, *, paused: bool) -> Operation[OwnAccount]:
    """Pause an individual, or end its pause; without effect if that is its state already.

    The limit stays, and a burn charges a paused individual as any other. Otherwise a restore during the pause would
    have given budget back when the pause ends.
    """

    def act(transaction: Transaction, state: DatasetState) -> OwnAccount:
        slot = slot_of(transaction, key)
        own = state.account(slot)
        if own.paused == paused:
            return own
        transaction.set_paused(slot, paused=paused)
        transaction.journal("pause" if paused else "resume", {"slot": slot})
        state.after_commit(partial(state.shards.set_paused, slot, paused=paused))
        return own._replace(paused=paused)

    return act


def asking_erasure(key: Key) -> Operation[None]:
    """Journal that an individual asks to be erased; without effect if it has asked and is not erased yet."""

    def act(transaction: Transaction, state: DatasetState) -> None:  # noqa: ARG001 - an Operation sees both
        slot = slot_of(transaction, key)
        if not is_erasure_asked(transaction, slot):
            transaction.journal("erasure_request", {"slot": slot})

    return act


def is_erasure_asked(transaction: Transaction, slot: int) -> bool:
    """Tell whether the individual in this slot asks to be erased; a request before the last erasure does not count."""
    acts = transaction.acts_on(slot, "erasure_request", "erase")
    return bool(acts) and acts[-1].act == "erasure_request"
