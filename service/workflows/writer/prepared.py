"""An operation in two parts: a long one outside the writer, which writes and builds, and a short one in it.

The short part takes the dataset's lock, journals, commits and sets in place what was built. In between other queries
are answered and limits lowered; other uploads and erasures wait for the end of this one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.engine.memory import DatasetMemory
from service.workflows.model.rows import Head
from service.workflows.ports.store import HeadMoved
from service.workflows.ports.transaction import LongAct, Transaction
from service.workflows.writer.state import DatasetState

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseVersion:
    """The records that the long part builds upon, in a replica's memory and as of a head."""

    head: Head
    memory: DatasetMemory
    version: int

    def check(self, state: DatasetState, head: Head) -> None:
        """Raise HeadMoved unless all that the long part has relied on is so in the state and at the locked head."""
        is_same = state.memory is self.memory and state.memory.version == self.version
        relied_on, now = ((each.fence, each.slots, each.joining_units) for each in (self.head, head))
        if not is_same or relied_on != now:
            raise HeadMoved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedOperation(Generic[Result]):
    """The short part, to be run in the transaction of the long one."""

    transaction: LongAct
    base: BaseVersion
    act: Callable[[Transaction, DatasetState], Result]

    def __call__(self, transaction: Transaction, state: DatasetState) -> Result:
        """Journal what the long part has written."""
        return self.act(transaction, state)
