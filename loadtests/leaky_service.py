"""The service with a leak planted in its work: each query of a dataset with a paused individual takes 10 ms longer.

    python -m loadtests.leaky_service serve ...

A control for attacks: where this is not found, nothing is said by finding nothing (`loadtests.attack_timing`).
"""

import time
from collections.abc import Iterator
from typing import Final

from service.cli.app import main
from service.core.contribution import Contributions
from service.query.plan import Plan
from service.workflows.writer.state import DatasetState

LEAK_NS: Final = 10_000_000
_contributions = DatasetState.contributions


def slow_if_paused(self: DatasetState, plan: Plan) -> Iterator[Contributions]:
    """The contributions of a plan, later by LEAK_NS of work where an individual has paused."""
    if bool(self.memory.accounts.paused.any()):
        until = time.thread_time_ns() + LEAK_NS
        while time.thread_time_ns() < until:
            pass
    return _contributions(self, plan)


if __name__ == "__main__":
    DatasetState.contributions = slow_if_paused  # type: ignore[method-assign]
    main()
