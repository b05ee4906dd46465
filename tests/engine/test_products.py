"""The vectors of moments and gradients against a reference in fractions: every kind of feature, target and loss."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core.outer_products import OuterProducts
from service.core.release import Release
from service.engine import evaluate
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.engine.sparse_vectors import BrokenInvariant
from service.query.plan import Plan
from tests.core.injected import seeded
from tests.core.releases import answer
from tests.engine.products_reference import factors, outer
from tests.engine.worlds import PERSON, PRODUCTS, Row, assumed_plan, memory_of, people, plan_of, query_of, vectors
from tests.query.samples import changed
from tests.rotation import times

SOMEBODY: Row = PERSON | {"sketch": [1, -2, 200]}
UNKNOWN: Row = SOMEBODY | {"country": None, "level": None, "member": None}
NAMES = ["moments", "square", "logistic", "softmax", "bins", "squared", "vector moments", "vector softmax"]
CONDITION = {"or": [{"ge": [{"col": "level"}, 1]}, {"is_null": {"col": "country"}}]}


def wanted_of(row: Row, query: dict[str, Any], plan: Plan) -> list[int] | None:
    """The entries of an individual's vector before the clip, in the steps of the plan."""
    assert plan.layout.items[0].product is not None
    model = plan.layout.items[0].product.model
    steps = {} if model is None else {"parameter_log2": model.parameter_log2, "error_log2": model.error_log2}
    parameters = () if model is None else tuple(model.parameters.ravel().tolist())
    found = factors(
        row, query, step_log2=plan.layout.items[0].product.features.step_log2, parameters=parameters, **steps
    )
    return None if found is None else outer(*found)


def check(found: tuple[int, dict[int, int]], wanted: list[int] | None, plan: Plan) -> None:
    """The reference's vector within the clip; beyond it, one in its direction within the clip."""
    norm_squared, entries = found
    exact = {} if wanted is None else {place: value for place, value in enumerate(wanted) if value != 0}
    if sum(value**2 for value in exact.values()) <= plan.scale.charged_squared_steps:
        assert entries == exact
        return
    assert norm_squared == sum(value**2 for value in entries.values()) <= plan.scale.charged_squared_steps
    for place, value in entries.items():
        assert exact[place] * value > 0
        assert abs(value) <= abs(exact[place])
    length = sum(value**2 for value in exact.values()) ** 0.5
    along = sum(value * exact.get(place, 0) for place, value in entries.items()) / length
    assert along >= 0.98 * plan.scale.charged_squared_steps**0.5


@settings(max_examples=times(60, 400), deadline=None)
@given(
    records=people(),
    item=st.sampled_from(PRODUCTS),
    clip=st.sampled_from([None, None, 0.5, 0.1, 3.0]),
    where=st.sampled_from([None, CONDITION]),
)
def test_an_individual_adds_what_its_record_says(
    records: dict[int, Row], item: dict[str, Any], clip: float | None, where: Any
) -> None:
    """Numbers, booleans, bins and categories, NULL and fills, every loss, within a clip and beyond it."""
    query = query_of(item, **({"where": where} if where else {}))
    if clip is not None:
        query["per_individual"] = {"l2_clip": clip}
    plan = assumed_plan(query)
    found = vectors(plan, memory_of(records))
    for slot, row in records.items():
        check(found.get(slot, (0, {})), wanted_of(row, query, plan), plan)


@pytest.mark.parametrize("item", PRODUCTS, ids=NAMES)
def test_the_answer_is_the_sum_of_the_vectors(item: dict[str, Any]) -> None:
    """One product of matrices for a block gives what adding vector by vector does; noise aside."""
    plan = plan_of(query_of(item))
    records = {slot: SOMEBODY | {"level": slot % 5 - 2, "spend": 7.5 * slot % 400} for slot in (*range(40), 65_537)}
    memory = memory_of(records)
    wanted = sum_of(plan, memory) - sum_of(plan, memory_of({1: UNKNOWN}))
    noisy = answered(plan, memory, seed=1)
    assert (noisy.values - answered(plan, memory_of({1: UNKNOWN}), seed=1).values).tolist() == wanted.tolist()
    assert noisy.charged_count + noisy.left_out_count == len(vectors(plan, memory))


def sum_of(plan: Plan, memory: DatasetMemory) -> NDArray[np.int64]:
    """The vectors added up, entry by entry."""
    total = np.zeros(plan.dimension, dtype=np.int64)
    for _, entries in vectors(plan, memory).values():
        total[list(entries)] += list(entries.values())
    return total


def answered(plan: Plan, memory: DatasetMemory, *, seed: int) -> Release:
    """An answer, with the charges."""
    return answer(contributions(plan, memory), memory.accounts, plan.terms, entropy=seeded(seed))


@pytest.mark.parametrize("item", PRODUCTS, ids=NAMES)
def test_no_individual_is_charged_more_than_the_worst_case(item: dict[str, Any]) -> None:
    """The records are at every bound."""
    plan = plan_of(query_of(item))
    values: dict[str, list[Any]] = {
        "level": [-2, 3],
        "spend": [0, 500],
        "balance": [-0.7, 0.1],
        "member": [True, False],
        "sketch": [[-4] * 3, [250] * 3],
    }
    records = {}
    for slot in range(64):
        picked = {name: each[slot >> place & 1] for place, (name, each) in enumerate(values.items())}
        records[slot] = SOMEBODY | picked | {"country": ["NO", "SE", "DK", None][slot >> 4]}
    memory = memory_of(records)
    released = answered(plan, memory, seed=1)
    assert released.left_out_count == 0
    spent = memory.accounts.spent
    assert 0 < spent.max() <= plan.scale.worst_case_units


@pytest.mark.parametrize("item", PRODUCTS, ids=NAMES)
def test_under_clip_a_vector_is_shortened_to_what_is_left(item: dict[str, Any]) -> None:
    """No individual goes beyond its limit, and of those that are shortened little stays unused."""
    records = {slot: SOMEBODY | {"level": 3} for slot in range(9)}
    plan = plan_of(query_of(item, rule="clip", noise={"share": 0.5}))
    whole, memory = memory_of(records), memory_of(records)
    answered(plan, whole, seed=0)
    charges = whole.accounts.spent[:9]
    limits = charges * np.arange(9) // 2
    memory.accounts.set_limits(np.arange(9), limits)
    for seed in range(8):
        released = answered(plan, memory, seed=seed)
        assert seed > 0 or (released.charged_count, released.left_out_count) == (8, 1)
    room = memory.accounts.room[:9]
    assert (charges > 0).all()
    assert (room >= 0).all()
    assert (room <= limits // 20 + 2**20).all()


@pytest.mark.parametrize("item", PRODUCTS, ids=NAMES)
@pytest.mark.parametrize("rule", ["skip", "clip"])
def test_the_certified_steps_are_those_without_a_filter(item: dict[str, Any], rule: str) -> None:
    """Bit by bit while worst cases are within the least limit; with nothing left the next step is another."""
    plan = plan_of(query_of(item, rule=rule, noise={"share": 0.25}))
    records = {slot: SOMEBODY | {"level": slot % 5 - 2, "member": slot % 2 == 0} for slot in range(50)}
    limit, certified = 3 * plan.scale.worst_case_units, 3
    filtered = memory_of(records, limits=dict.fromkeys(records, limit))
    unfiltered = memory_of(records, limits=dict.fromkeys(records, 2**60))

    def step(number: int, memory: DatasetMemory) -> tuple[list[int], int]:
        released = answered(plan, memory, seed=number)
        return released.values.tolist(), released.charged_count

    for number in range(certified):
        assert step(number, filtered) == step(number, unfiltered)
    assert (filtered.accounts.spent == unfiltered.accounts.spent).all()
    filtered.accounts.set_limits(np.arange(50), filtered.accounts.spent[:50])
    assert step(certified, filtered) != step(certified, unfiltered)


def test_a_block_beyond_the_bounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clip that is said not to bind and is passed is a broken plan, and nothing is answered."""
    plan = changed(plan_of(query_of(PRODUCTS[0])), clip_squared_steps=1)
    with pytest.raises(BrokenInvariant, match="longer than the declared bounds"):
        list(contributions(plan, memory_of({1: SOMEBODY})))


def test_blocks_are_as_long_as_stays_in_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a block decides about memory alone."""
    plan = plan_of(query_of(PRODUCTS[1]))
    memory = memory_of(dict.fromkeys((*range(10), 65536), SOMEBODY))
    whole = [block for block in contributions(plan, memory) if isinstance(block, OuterProducts)]
    monkeypatch.setattr(evaluate, "rows_in_products", lambda width: 5)
    parts = [block for block in contributions(plan, memory) if isinstance(block, OuterProducts)]
    assert len(parts) > len(whole)
    assert max(block.touched.size for block in parts) == 5
