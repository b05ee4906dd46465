"""One query's work in its writer's thread, without a database: from the evaluation to the rows that are committed.

The batch is the service's own, so that it has everything that the writer does by slot: evaluation, charges, filter,
sum, noise, debits and what takes them back, counters, pages, the pieces of the entry with their digests, and the answer
as JSON. Sealing, sending and storing are not included: they are priced by the bytes of a commit.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from uuid import UUID

from service.accounting.accountings import GAUSSIAN, Accounting
from service.accounting.monitor import Monitor
from service.core.charge import UNITS_PER_RHO
from service.core.noise import Entropy
from service.engine.memory import DatasetMemory
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.parameters import KeptParameters
from service.ledger.model.rows import AnswerRecord, DatasetRecord, Head, Known
from service.ledger.model.stated_guarantee import Guarantee
from service.ledger.model.views import Principal, Rule
from service.query.plan import Plan
from service.query.schema import Schema
from service.writer.batch import Batch
from service.writer.state import DatasetState
from service.writer.submission import QueryRequest
from tests.digests import SALT
from tests.memory.shards import only_shard

_ANALYST: Final = Principal(
    id=UUID(int=1), role="analyst", name="bench", dataset=None, individual=None, allowance_units=None
)
_ASKED_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


def work(
    plan: Plan,
    memory: DatasetMemory,
    entropy: Entropy,
    rule: Rule = "skip",
    accounting: Accounting = GAUSSIAN,
    monitor: Monitor | None = None,
) -> None:
    """Answer a plan in a batch of its own, in a dataset with this rule, accounting and monitor. Raises any refusal."""
    answer_in(state_of(memory, rule, accounting, monitor), plan, entropy)


def answer_in(state: DatasetState, plan: Plan, entropy: Entropy) -> None:
    """Answer a plan in a batch of its own, in which nothing is committed. Raises any refusal."""
    batch = Batch(transaction=_Uncommitted(state.slots_used), state=state, entropy=entropy)
    request = QueryRequest(analyst=_ANALYST, key="key", request_hash=b"", plan=plan, accepted_at=_ASKED_AT)
    with state.tentative():
        (outcome,) = batch.answer_all([request])
    if isinstance(outcome, Exception):
        raise outcome


def state_on(schema: Schema, people: int) -> DatasetState:
    """The writer's state of an empty dataset with a capacity of `people`."""
    return DatasetState(_record(schema, people, "skip", GAUSSIAN, None))


@lru_cache(maxsize=8)
def state_of(
    memory: DatasetMemory, rule: Rule = "skip", accounting: Accounting = GAUSSIAN, monitor: Monitor | None = None
) -> DatasetState:
    """The writer's state of a dataset whose records do not change."""
    state = DatasetState(_record(memory.schema, memory.slots_used, rule, accounting, monitor))
    state.slots_used = memory.slots_used
    only_shard(state).memory = memory
    only_shard(state).grow(memory.slots_used)
    return state


def _record(
    schema: Schema, capacity: int, rule: Rule, accounting: Accounting, monitor: Monitor | None
) -> DatasetRecord:
    return DatasetRecord(
        id=1,
        name="bench",
        guarantee=Guarantee(epsilon=None, delta=None),
        budget_units=UNITS_PER_RHO,
        limit_floor_units=UNITS_PER_RHO,
        capacity=capacity,
        rule=rule,
        schema=schema,
        genesis=bytes(32),
        salt=SALT,
        accounting=accounting,
        monitor=monitor,
    )


class _Uncommitted:
    """A conditional append that sends nothing."""

    def __init__(self, slots: int) -> None:
        self.head = Head(
            seq=0, hash=bytes(32), epoch=1, fence=1, data_version=1, slots=slots, worst_case_units=0, checkpoint_seq=0
        )
        self.known = Known(answers={}, reusable={}, worst_cases={})

    def append(
        self,
        entries: Sequence[LedgerEntry],
        answers: Sequence[AnswerRecord],
        worst_cases: Mapping[UUID, int],
        parameters: Sequence[KeptParameters] = (),
    ) -> None:
        """Drop the rows."""

    def commit(self) -> None:
        """Commit nothing."""
