"""The realised loss of individuals that are asked, adaptively, whether they are active.

Each has a group of its own, so that one transcript is a trial for everybody; half of them are in the data, and the
others are blank. An analyst asks all, or first those that its answers speak for, until none has the share left, and
keeps the accounts of all in units by itself. Where the same is spent on everybody, B, the loss ln(p_in / p_out) is
N(B, 2 B) for those in the data and N(-B, 2 B) for the others, whatever was asked when (theory: the exact law of the
realised loss).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, sqrt
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from service.core.noise import rounded_gaussian
from service.core.release import Block
from service.core.renyi_filter import Touched
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.items.count import Count
from service.query.plan import Plan
from service.query.schema import Schema
from tests.core.injected import seeded
from tests.core.releases import answer
from tests.digests import with_digests
from tests.query.samples import changed, plan_of

PLACES: Final = 2**14
ROUNDS: Final = 24
UNIT: Final = Fraction(1, 2**40)
BUDGET: Final = 2 * 2**40
SHARE: Final = 0.125
SHARE_UNITS: Final = BUDGET // 8
SIGMA: Final = 0.75
SIZE: Final = 0.5
"""The clip of a count: so that an individual adds many steps, and the rounding of the noise hardly changes a loss."""
P_MIN: Final = 1e-5
SCHEMA: Final = Schema.model_validate(
    {"people": {"kind": "individuals", "key": "id", "columns": {"place": {"type": "category", "size": PLACES}}}}
)
Floats = NDArray[np.float64]
Evaluate = Callable[[Plan, DatasetMemory], Iterator[Block]]
Strategy = Callable[[int, Floats], NDArray[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The losses at the end, and what the analyst has found to be spent on each."""

    losses: Floats
    spent: NDArray[np.int64]


def planned(places: NDArray[np.bool_]) -> Plan:
    """The query of the individuals in some places with the share left."""
    query: dict[str, Any] = {
        "version": 1,
        "select": [{"active": {"share": SHARE}}],
        "where": {"in": [{"col": "place"}, np.flatnonzero(places).tolist()]},
        "group_by": ["place"],
        "per_individual": {"l2_clip": SIZE},
        "noise": {"sigma": SIGMA},
    }
    return plan_of(query, SCHEMA, capacity=PLACES, budget_units=BUDGET)


def lived(strategy: Strategy, *, evaluate: Evaluate = contributions, noise: float = 1.0, seed: int = 1) -> Trial:
    """A transcript, in which the noise is this many times as large as it is said to be."""
    memory, own = DatasetMemory(SCHEMA), np.arange(0, PLACES, 2)  # every second place is of a blank record
    codes = {"place": own.astype(memory.codings["people"]["place"].dtype)}
    memory.add_individuals(own // 2, with_digests(codes, own), np.full(own.size, BUDGET))
    spent, losses = np.zeros(PLACES, dtype=np.int64), np.zeros(PLACES)
    charge = ceil(Fraction(SIZE) ** 2 / (2 * Fraction(SIGMA) ** 2) / UNIT)
    for number in range(ROUNDS):
        asked = strategy(number, losses)
        plan = planned(asked)
        grid = 2.0**plan.scale.grid_log2
        release = answer(evaluate(plan, memory), memory.accounts, plan.terms, entropy=seeded(1000 * seed + number))
        drawn = rounded_gaussian(plan.dimension, plan.scale.law.size_steps, seeded(1000 * seed + number))
        values = (release.values + (noise - 1) * drawn) * grid
        has_share = asked & (BUDGET - spent >= SHARE_UNITS)
        spent[has_share] += charge
        losses[has_share] += (values[has_share] * SIZE - SIZE**2 / 2) / SIGMA**2
    return Trial(losses=losses, spent=spent)


def everybody(_number: int, losses: Floats) -> NDArray[np.bool_]:
    """All are asked each time."""
    return np.ones(losses.size, dtype=np.bool_)


def those_ahead(number: int, losses: Floats) -> NDArray[np.bool_]:
    """At first one of three, then those whom the answers speak for, and all in the end."""
    one_of_three: NDArray[np.bool_] = np.arange(losses.size) % 3 == number
    ahead: NDArray[np.bool_] = losses > (0 if number < ROUNDS // 2 else -np.inf)
    return one_of_three if number < 3 else ahead


def _of_all(trial: Trial) -> int:
    """The units that are spent on everybody alike."""
    (units,) = np.unique(trial.spent).tolist()
    return int(units)


def p_value(trial: Trial) -> float:
    """The p-value of the losses under the law, by Kolmogorov and Smirnov."""
    budget = float(_of_all(trial) * UNIT)
    side = np.where(np.arange(PLACES) % 2 == 0, 1.0, -1.0)
    standard = (trial.losses - side * budget) / sqrt(2 * budget)
    return float(stats.kstest(standard, "norm").pvalue)


@pytest.mark.parametrize("strategy", [everybody, those_ahead])
def test_the_loss_of_those_who_are_asked_until_they_have_no_share_left(strategy: Strategy) -> None:
    """Everybody spends the same, at most the budget, and the loss has the law of that."""
    trial = lived(strategy)
    spent = _of_all(trial)
    assert spent <= BUDGET < spent + SHARE_UNITS + 2**40 // 8
    assert p_value(trial) > P_MIN


def of_the_next(plan: Plan, memory: DatasetMemory) -> Iterator[Block]:
    """A planted mistake: what the individual before has left decides."""
    room = np.roll(memory.accounts.room, 1)
    for block in contributions(changed(plan, items=(Count(),)), memory):
        has_room = room[block.touched.index] >= (plan.layout.items[0].room_units or 0)
        yield replace(block, touched=Touched(block.touched.index, block.touched.among(has_room)))


@pytest.mark.parametrize("mistake", [{"noise": 0.85}, {"evaluate": of_the_next}], ids=["less noise", "another's"])
def test_a_mistake_changes_the_law(mistake: dict[str, Any]) -> None:
    """Noise that is 15 % smaller than it is said to be, and a share that another has left."""
    assert p_value(lived(those_ahead, **mistake)) < P_MIN
