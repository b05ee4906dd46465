"""The service with a leak planted in its work: each query of a dataset with a paused individual takes 10 ms longer.

    python -m loadtests.leaky_service serve ...

It is a control for attacks: an attack that does not find this leak proves nothing by finding none
(`loadtests.attack_timing`). With LEAK=priced in the environment every query's public cost has room for the leak, so
that no answer is late and the slots hide the leak. With LEAK=clock, reads of individuals and auditors also begin at
once, as if they could tell nothing.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from fastapi import Request

from service.api import auth
from service.cli.app import main
from service.core.release import Block
from service.ledger.model.rows import DatasetRecord
from service.ledger.model.views import Principal
from service.query.cost import PublicCost
from service.query.plan import Plan
from service.writer.admission.admission import Admission
from service.writer.shards.shard import Shard

LEAK_NS: Final = 10_000_000
_contributions, _cost_of = Shard.contributions, Admission.cost_of


def slow_if_paused(self: Shard, plan: Plan) -> Iterator[Block]:
    """The contributions of a plan, after LEAK_NS of additional work if an individual has paused."""
    if bool(self.memory.accounts.paused.any()):
        until = time.thread_time_ns() + LEAK_NS
        while time.thread_time_ns() < until:
            pass
    return _contributions(self, plan)


def cost_with_leak(self: Admission, plan: Plan, record: DatasetRecord, shards: int = 1) -> PublicCost:
    """The public cost of a plan, with room for the leak."""
    cost = _cost_of(self, plan, record, shards)
    return replace(cost, time_ns=cost.time_ns + 3 * LEAK_NS // 2)


async def no_turn(_request: Request, _caller: Principal, _admission: Admission) -> None:
    """Let a read begin without waiting for its turn."""


if __name__ == "__main__":
    if os.environ.get("LEAK") in {"priced", "clock"}:
        Admission.cost_of = cost_with_leak  # type: ignore[method-assign]
    if os.environ.get("LEAK") == "clock":
        vars(auth)["free_turn_of"] = no_turn
    Shard.contributions = slow_if_paused  # type: ignore[method-assign]
    main()
