"""One number of an exact sum, and what each individual is charged for it, against whole numbers and fractions."""

from math import isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.arrays import uniform
from service.core.outer_products import OuterProducts
from service.core.release import Contributions
from service.core.renyi_filter import Touched
from service.engine import reduction
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.engine.reduction import lengths_squared, priced, reduced, root, squared
from service.engine.sparse_vectors import BrokenInvariant
from service.query.plan import Plan
from service.query.reduction import Reduce
from tests.engine.reference import vector
from tests.engine.worlds import Row, assumed_plan, memory_of, of_visits, people, plan_of, queries, visits
from tests.rotation import times

FUNCTIONS: tuple[Reduce, ...] = ("max", "norm")
NUMBERS = st.integers(-(2**61), 2**61)


@given(st.integers(0, 2**128 - 1) | st.integers(0, 2**64 - 1).map(lambda n: n * n))
def test_a_root_is_the_largest_whole_number_within(number: int) -> None:
    """The root is the library's, next to squares too."""
    for each in {number, max(number - 1, 0), min(number + 1, 2**128 - 1)}:
        assert root(each) == isqrt(each)


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.integers(1, 5))
def test_squares_are_summed_exactly(numbers: list[int], at_a_time: int) -> None:
    """The numbers have any size, and are summed some at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduction, "_AT_A_TIME", at_a_time)
        assert squared(np.array(numbers)) == sum(number**2 for number in numbers)


def test_squares_of_the_longest_vectors_are_summed_exactly() -> None:
    """2^20 coordinates, and the norm next to 2^61; each half of 32 bits is full."""
    for number, size in ((2**51 - 1, 2**20), (2**32 - 1, 2**20), (-(2**61), 1), (2**31 + 1, 2**17 + 3)):
        assert squared(np.full(size, number)) == size * number**2


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20))
def test_a_sum_is_reduced_to_its_largest_number_or_its_norm(numbers: list[int]) -> None:
    """The norm to the nearest step: by whole numbers, since half a step is never reached exactly."""
    total = np.array(numbers)
    assert reduced(total, "max") == max(numbers)
    norm, square = reduced(total, "norm"), sum(number**2 for number in numbers)
    assert (2 * norm - 1) ** 2 < 4 * square < (2 * norm + 1) ** 2 or norm == square == 0


def test_the_largest_entry_is_the_largest_by_size() -> None:
    """Below zero too, of each individual by itself."""
    block = Contributions(
        touched=Touched(np.array([2, 9])),
        norms_squared=np.array([10_001, 25]),
        dimension=2,
        owners=np.array([0, 0, 1, 1]),
        coordinates=np.array([0, 1, 0, 1]),
        values=np.array([-100, 1, 4, 3]),
    )
    (found,) = priced([block], "max")
    assert found.norms_squared.tolist() == [10_000, 16]


def test_one_norm_by_the_query_stays_one() -> None:
    """A view of one number, for any number of individuals."""
    places = np.arange(5)
    block = Contributions(
        touched=Touched(places),
        norms_squared=uniform(2**40, 5),
        dimension=2,
        owners=None,
        coordinates=places % 2,
        values=uniform(2**20, 5),
        one_norm=True,
    )
    for reduce, charged in zip(FUNCTIONS, (2**40, (2**20 + 1) ** 2), strict=True):
        (found,) = priced([block], reduce)
        assert found.one_norm
        assert found.norms_squared.tolist() == [charged] * 5


VECTORS = st.lists(st.lists(st.integers(-(2**20), 2**20), min_size=3, max_size=3), min_size=1, max_size=6)


@given(VECTORS, st.data())
def test_removing_a_vector_changes_the_number_by_what_it_is_charged_for_at_most(
    vectors: list[list[int]], data: st.DataObject
) -> None:
    """Example 2.7, for both functions, and for any other way of rounding the norm to a step next to it."""
    own = data.draw(st.sampled_from(vectors))
    total = np.sum(vectors, axis=0)
    largest = max(abs(number) for number in own)
    assert abs(reduced(total, "max") - reduced(total - own, "max")) <= largest
    charged = isqrt(int(lengths_squared(np.array([sum(number**2 for number in own)]))[0]))
    assert abs(reduced(total, "norm") - reduced(total - own, "norm")) <= charged
    rounded = [data.draw(st.sampled_from(next_to(each))) for each in (total, total - own)]
    assert abs(rounded[0] - rounded[1]) <= charged


def next_to(total: np.ndarray[Any, np.dtype[np.int64]]) -> list[int]:
    """The whole numbers less than a step from the norm."""
    square = squared(total)
    below = isqrt(square)
    return [below] if below**2 == square else [below, below + 1]


def test_the_step_more_is_needed_for_any_rounding() -> None:
    """Without it, norms rounded down here and up there differ by more than what would be charged."""
    total, own = np.array([3, 1]), np.array([1, 0])  # sqrt(10) and sqrt(5): 4 and 2
    assert max(next_to(total)) - min(next_to(total - own)) == 2
    assert isqrt(int(lengths_squared(np.array([1]))[0])) == 2


@given(st.lists(st.integers(1, 2**61) | st.integers(1, 2**30).map(lambda n: n * n), min_size=1, max_size=20))
def test_a_norm_is_charged_rounded_up_and_a_step(norms: list[int]) -> None:
    """Exactly, next to squares too."""
    for number, charged in zip(norms, lengths_squared(np.array(norms)).tolist(), strict=True):
        length = isqrt(charged)
        assert length**2 == charged
        assert (length - 2) ** 2 < number <= (length - 1) ** 2


@settings(max_examples=times(25, 150), deadline=None)
@given(data=st.data(), records=people(), table=st.sampled_from(["people", "visits"]))
def test_each_is_charged_by_the_reference(data: st.DataObject, records: dict[int, Row], table: str) -> None:
    """Over random queries of one item: the vector's largest entry, or its length rounded up, plus 1."""
    query = data.draw(queries(table)) | {"noise": {"sigma": 50.0}}
    query["select"], reduce = query["select"][:1], data.draw(st.sampled_from(["max", "norm"]))
    query.get("per_individual", {}).pop("l2_clip", None)
    plan = assumed_plan(query | {"reduce": reduce})
    assume(plan.reduce is not None)
    events = data.draw(visits(records)) if records else []
    memory = memory_of(records, [events] * bool(events))
    own = {slot: [row for owner, row in events if owner == slot] for slot in records}
    wanted = {}
    for slot, record in records.items():
        rows, of = (own[slot], record) if table == "visits" else ([record], None)
        entries = vector(rows, query, plan.scale.grid_log2, own=of)
        if entries:
            up = isqrt(sum(value**2 for value in entries.values()) - 1) + 1
            wanted[slot] = (max(map(abs, entries.values())) if reduce == "max" else up + 1) ** 2
    found = charged_by(plan, memory)
    assert found == wanted
    assert max(found.values(), default=0) <= plan.scale.charged_squared_steps


def charged_by(plan: Plan, memory: DatasetMemory) -> dict[int, int]:
    """The square that each individual is charged for."""
    found: dict[int, int] = {}
    for block in contributions(plan, memory):
        marks = block.touched.marks
        norms = block.norms_squared if marks is None else block.norms_squared[marks]
        found |= dict(zip(block.touched.slots().tolist(), norms.tolist(), strict=True))
    return found


@pytest.mark.parametrize("reduce", FUNCTIONS)
def test_tallied_events_are_charged_as_any_others(reduce: Reduce) -> None:
    """Norms that are kept by page suffice for a norm; for the largest entry an individual's rows are added up."""
    events = [(slot, {"item": item}) for slot, item in ((0, 3), (0, 3), (0, 5), (1, 4), (7, 1), (7, 2), (7, 1))]
    memory = memory_of({slot: {} for slot in (0, 1, 7)}, [events])
    query = of_visits({"histogram": {"column": "item"}})
    plan, plain = plan_of(query | {"reduce": reduce}), plan_of(query)
    before = charged_by(plan, memory)
    charged_by(plain, memory)  # which asks for a tally
    memory.prepare()
    assert memory.take_prepared()
    assert memory.events["visits"].admit_tally(frozenset({"item"}))
    assert charged_by(plan, memory) == before
    squares = {0: (4, 5), 1: (1, 1), 7: (4, 5)}  # of the largest entry and of the norm, in people
    steps = 2**-plan.scale.grid_log2
    largest = {slot: peak * steps**2 for slot, (peak, _) in squares.items()}
    norms = {slot: (isqrt(norm * steps**2 - 1) + 2) ** 2 for slot, (_, norm) in squares.items()}
    assert before == (largest if reduce == "max" else norms)


def test_an_individual_without_entries_and_products_are_no_reduced_vectors() -> None:
    """The evaluation stops before anything is charged."""
    block = Contributions(
        touched=Touched(np.array([3, 5])),
        norms_squared=np.array([4, 9]),
        dimension=2,
        owners=np.array([0, 0]),
        coordinates=np.array([0, 1]),
        values=np.array([2, 3]),
    )
    with pytest.raises(BrokenInvariant, match="has no entry"):
        list(priced([block], "max"))
    square = OuterProducts(
        touched=Touched(slice(0, 1), np.ones(1, dtype=np.bool_)),
        norms_squared=np.ones(1, dtype=np.int64),
        left=np.ones((1, 1)),
        right=None,
        peak=1,
    )
    with pytest.raises(BrokenInvariant, match="products are not reduced"):
        list(priced([square], "norm"))


def test_nobody_is_charged_of_an_empty_block() -> None:
    """Nothing is touched, and nothing is added."""
    nobody = np.empty(0, dtype=np.int64)
    block = Contributions(
        touched=Touched(nobody), norms_squared=nobody, dimension=2, owners=nobody, coordinates=nobody, values=nobody
    )
    for reduce in FUNCTIONS:
        (found,) = priced([block], reduce)
        assert found.norms_squared.size == 0
