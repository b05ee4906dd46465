"""Plans kept by their query: the same query object is compiled once under a registration.

`service.query.parse.kept_query` gives one object for the same text of the same asker, so that a text that is asked
again is neither read nor compiled again, and nobody can tell by a duration what another has asked. Queries that compare
equal are not the same: to Python, 1 is True.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from service.query.language import Query
from service.query.parse import KEPT_MAX
from service.query.plan import Functionals, Plan
from service.query.working_memory import values_bytes

__all__ = ["KeptPlans"]

CANONICAL_BYTES_MAX: Final = 2048
LISTS_BYTES_MAX: Final = 2**16
"""Of lists of values in a plan that is kept: they may be longer than the text that they are of."""

Registration = TypeVar("Registration")


class KeptPlans(Generic[Registration]):
    """At most KEPT_MAX plans of short queries. Thread-safe."""

    def __init__(self, compiled: Callable[[Query, Registration], Plan]) -> None:
        """`compiled` gives the plan of a query under a registration, which is an object that never changes."""
        self._compiled = compiled
        self._kept: dict[int, tuple[Query, Registration, Plan]] = {}  # by the identity of the query, which is held

    def of(self, query: Query, registration: Registration) -> Plan:
        """The plan. Raises what `compiled` raises."""
        kept = self._kept.get(id(query))
        if kept is not None and kept[0] is query and kept[1] is registration:
            return kept[2]
        plan = self._compiled(query, registration)
        if _is_small(plan):
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[id(query)] = query, registration, plan
        return plan


def _is_small(plan: Plan) -> bool:
    return (
        len(plan.canonical) <= CANONICAL_BYTES_MAX
        and not any(isinstance(item, Functionals) for item in plan.items)
        and values_bytes(plan.predicate, plan) <= LISTS_BYTES_MAX
    )
