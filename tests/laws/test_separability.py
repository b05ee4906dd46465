"""Invariant (A): one's vector, norm, charge and participation depend on no other record (theory: T0.1, T0.2).

T0.1: a vector evaluated alone, in a full block and after any deletion is the same, bit by bit, for every type of query.
The same holds wherever the engine ends one run of rows and begins the next; the test forces that between any two.
T0.2: a session is frozen, its queries and its noise, and replayed without one individual: all others are charged,
left out and left with the same budgets, and each answer moves by exactly that individual's vector, if it was active; of
a reduced query the sum does, and its number by no more than what the individual is charged for.
Both laws are also shown to catch an evaluation that depends on other individuals.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core.charge import worst_case_units
from service.core.noise import rounded_gaussian
from service.core.release import Block, Release
from service.core.renyi_filter import Touched
from service.engine import evaluate as engine
from service.engine import tallies
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.engine.reduction import reduced
from service.query.items.count import Count
from service.query.plan import Plan
from tests.core.contributions import as_list, sparse
from tests.core.injected import seeded
from tests.core.releases import answer, charged_in, charges_in, left_out_in
from tests.engine.worlds import PRODUCTS, ROWS_MAX, VALUES, Row, memory_of, people, planned, queries, uploaded, visits
from tests.query.samples import changed, matrix
from tests.rotation import IS_WHOLE, times

Evaluate = Callable[[Plan, DatasetMemory], Iterator[Block]]
Vector = tuple[int, bytes, bytes]
"""Squared norm, coordinates and values, as bytes: equal means equal bit by bit."""

SIGMA = 30.0
OLDER = {"or": [{"ge": [{"col": "level"}, 1]}, {"in": [{"col": "country"}, ["NO", "DK"]]}]}
FOLD = {"fold": {"seed": "a", "of": 3, "in": [0, 2]}}
OLDER_VISIT = {"gt": [{"col": "amount"}, 2]}
PREDICTED = {
    "predict": {
        "features": [{"of": {"col": "level"}}, {"one_hot": "country"}, {"of": {"col": "balance"}, "fill": 0.1}],
        "intercept": True,
        "link": "identity",
        "parameters": [0.7, -1.2, 0.4, 2.5, 1 / 3, -0.1],
    }
}
OF_VECTORS = {
    "predict": {
        "features": [{"vector": "sketch"}, {"one_hot": "country"}],
        "intercept": True,
        "link": "identity",
        "parameters": [0.7, -1.2, 0.4, 2.5, 1 / 3, -0.1, 1e-9],
    }
}
OWN = {"own": {"from": "visits", "where": {"ge": [{"col": "amount"}, 0]}, "sum": {"col": "cost"}, "clip": [-2, 6.5]}}
TYPES: dict[str, dict[str, Any]] = {
    "count": {"select": [{"count": {}}]},
    "count_where": {"select": [{"count": {}}], "where": OLDER},
    "active": {"select": [{"active": {"share": 0.004}}]},
    "active_where": {"select": [{"active": {"share": 0.002}}], "where": OLDER, "group_by": ["member"]},
    "sum_of_integers": {"select": [{"sum": {"column": "level"}}]},
    "sum_of_reals": {"select": [{"sum": {"column": "balance"}}]},
    "sum_clipped": {"select": [{"sum": {"column": "spend"}}], "per_individual": {"l2_clip": 11.5}},
    "histogram": {"select": [{"histogram": {"column": "area"}}]},
    "grouped": {"select": [{"sum": {"column": "spend"}}], "group_by": ["country", "member"]},
    "stacked": {"select": [{"count": {}}, {"sum": {"column": "spend"}}, {"histogram": {"column": "area"}}]},
    "stacked_clipped": {
        "select": [{"sum": {"column": "spend"}}, {"sum": {"column": "balance"}}, {"sum": {"column": "level"}}],
        "group_by": ["member"],
        "per_individual": {"l2_clip": 2.25},
    },
    "sum_calculated": {
        "select": [{"sum": {"of": {"mul": [{"col": "spend"}, {"sub": [{"col": "balance"}, {"col": "level"}]}]}}}],
        "where": {"lt": [{"col": "balance"}, {"abs": {"col": "level"}}]},
        "group_by": [{"bin": {"column": "spend", "width": 90}}, {"bucket": {"column": "born", "by": "weekday"}}],
    },
    "events_of_people": {
        "from": "visits",
        "select": [{"sum": {"of": {"add": [{"col": "cost"}, {"col": "people.balance"}]}}}, {"count": {}}],
        "where": {"not": {"eq": [{"col": "people.country"}, "SE"]}},
        "group_by": ["people.level", {"bucket": {"column": "at", "by": "hour"}}],
        "per_individual": {"l2_clip": 3.0},
    },
    "functionals": {
        "from": "visits",
        "select": [
            {
                "linear": {
                    "column": "amount",
                    "weights": [{"indices": [*range(-3, 4)], "values": [n, 1, 2, 0.5, 1, 2, -9]} for n in (1, 2)],
                }
            },
            {"linear": {"column": "people.country", "weights": {"indices": ["NO", "SE", "DK"], "values": [2, 1, 3]}}},
        ],
        "group_by": ["online"],
        "per_individual": {"l2_clip": 4.0},
    },
    "matrix": {
        "select": [matrix("level", {-2: 0.5, 0: 1, 3: 1}, {0: -2, 2: 1}, {1: 3, 3: -1.25}), {"count": {}}],
        "group_by": ["member"],
        "per_individual": {"l2_clip": 1.75},
    },
    "matrix_of_events": {
        "from": "visits",
        "select": [matrix("amount", *({n: 1, -n: n % 3 - 0.5, 0: 2} for n in range(1, 4)))],
        "group_by": ["people.country"],
        "per_individual": {"l2_clip": 4.5},
    },
    "matrices_of_events": {
        "from": "visits",
        "select": [
            matrix("amount", {0: 1, 3: 1, -1: 3}, {1: -1, -3: 2, 2: 1}),
            matrix("people.area", {4: 3}, {0: 1, 1: 1}),
        ],
        "per_individual": {"rows": 4},
    },
    "own_sigmas": {
        "select": [{"count": {}}, {"sum": {"column": "balance"}}, {"histogram": {"column": "area"}}],
        "group_by": ["member"],
        "noise": {"sigma": [3.3, 0.7, 5]},
    },
    "own_sigmas_clipped": {
        "select": [{"sum": {"column": "spend"}}, matrix("level", {-2: 0.5, 0: 1}, {0: -2, 2: 1}), {"count": {}}],
        "noise": {"share": 0.1, "weights": [3, 1, 0.1]},
        "per_individual": {"l2_clip": [11.5, 1.25, 0.5]},
    },
    "own_sigmas_of_events": {
        "from": "visits",
        "select": [{"count_individuals": {}}, {"sum": {"column": "cost"}}, {"count": {}}],
        "group_by": ["online"],
        "noise": {"half_width": [10, 90, 30], "confidence": 0.95},
        "per_individual": {"l2_clip": [1, 3, 2]},
    },
    "listed": {"select": [{"histogram": {"column": "area", "values": [4, 0, 1]}}]},
    "listed_events": {
        "from": "visits",
        "select": [{"histogram": {"column": "amount", "values": [3, -1, 0]}}, {"sum": {"column": "cost"}}],
        "group_by": ["online"],
        "per_individual": {"l2_clip": 2.5},
    },
    "events_once": {
        "from": "visits",
        "select": [{"count_individuals": {}}, {"count": {}}],
        "group_by": ["online"],
        "per_individual": {"rows": 2},
    },
    "largest": {"select": [{"sum": {"column": "spend"}}], "group_by": ["country", "member"], "reduce": "max"},
    "largest_of_events": {
        "from": "visits",
        "select": [{"sum": {"column": "cost"}}],
        "group_by": ["online", "amount"],
        "per_individual": {"l2_clip": 3.0},
        "reduce": "max",
    },
    "largest_histogram": {"from": "visits", "select": [{"histogram": {"column": "item"}}], "reduce": "max"},
    "largest_functional": {
        "select": [matrix("level", {-2: 0.5, 0: 1, 3: 1}, {0: -2, 2: 1}, {1: 3, 3: -1.25})],
        "group_by": ["member"],
        "reduce": "max",
    },
    "norm": {"select": [{"sum": {"column": "balance"}}], "group_by": ["country"], "reduce": "norm"},
    "norm_of_events": {"from": "visits", "select": [{"count": {}}], "group_by": ["online", "item"], "reduce": "norm"},
    "events": {"from": "visits", "select": [{"count": {}}]},
    "shortened": {"select": [{"count": {}}], "rule": "clip"},
    "shortened_sum": {"select": [{"sum": {"column": "spend"}}], "rule": "clip"},
    "shortened_events": {"from": "visits", "select": [{"count": {}}], "rule": "clip"},
    "shortened_histogram": {
        "from": "visits",
        "select": [{"histogram": {"column": "item"}}],
        "per_individual": {"l2_clip": 1.25},
        "rule": "clip",
    },
    "shortened_own_sigmas": {
        "select": [{"count": {}}, {"sum": {"column": "balance"}}],
        "group_by": ["member"],
        "noise": {"sigma": [3.3, 0.7]},
        "rule": "clip",
    },
    "fold": {"select": [{"sum": {"column": "spend"}}], "where": FOLD},
    "fold_of_events": {"from": "visits", "select": [{"count": {}}], "where": {"or": [FOLD, OLDER_VISIT]}},
    "predicted": {"select": [{"sum": {"of": PREDICTED}}], "where": {"ge": [PREDICTED, -1.5]}},
    "predicted_bins": {"select": [{"count": {}}], "group_by": [{"bin": {"of": PREDICTED, "edges": [-9, -1, 0.5, 9]}}]},
    "predicted_by_vectors": {"select": [{"sum": {"of": OF_VECTORS}}], "where": {"ge": [OF_VECTORS, -2.5]}},
    "own_events": {"select": [{"sum": {"of": OWN}}], "where": {"lt": [OWN, 4]}},
    "own_feature": {"select": [{"moments": {"features": [{"of": OWN}], "intercept": True}}]},
    "moments": {"select": [PRODUCTS[0]], "where": OLDER},
    "logistic": {"select": [PRODUCTS[2]]},
    "logistic_clipped": {"select": [PRODUCTS[2]], "per_individual": {"l2_clip": 0.5}},
    "softmax": {"select": [PRODUCTS[3]], "rule": "clip"},
    "vectors": {"select": [PRODUCTS[6]], "where": OLDER},
    "vectors_clipped": {"select": [PRODUCTS[7]], "per_individual": {"l2_clip": 0.5}, "rule": "clip"},
    "squared_clipped": {"select": [PRODUCTS[5]], "per_individual": {"l2_clip": 0.25}, "rule": "clip"},
    "moments_clipped": {"select": [PRODUCTS[0]], "per_individual": {"l2_clip": 2.5}, "rule": "clip"},
    "events_where": {"from": "visits", "select": [{"count": {}}], "where": {"gt": [{"col": "amount"}, 0]}},
    "events_sum": {"from": "visits", "select": [{"sum": {"column": "cost"}}]},
    "events_histogram": {"from": "visits", "select": [{"histogram": {"column": "item"}}]},
    "events_histogram_clipped": {
        "from": "visits",
        "select": [{"histogram": {"column": "item"}}],
        "per_individual": {"l2_clip": 1.25},
    },
    "events_grouped": {
        "from": "visits",
        "select": [{"count": {}}, {"sum": {"column": "cost"}}],
        "group_by": ["online", "amount"],
        "per_individual": {"l2_clip": 3.0},
    },
}


def reconcile_plan(fields: dict[str, Any]) -> Plan:
    """The plan of a type of query."""
    plan = planned({"version": 1, "noise": {"sigma": SIGMA}} | fields)
    assert plan is not None
    return plan


PLANS = {name: reconcile_plan(fields) for name, fields in TYPES.items()}


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Records by slot and events in order of arrival; a memory can be built of any subset of the slots."""

    records: dict[int, Row]
    events: list[tuple[int, Row]]
    _seen: dict[frozenset[int], DatasetMemory] = field(default_factory=dict)

    def memory(self, slots: set[int] | None = None) -> DatasetMemory:
        """The dataset of the individuals in `slots`, or of all."""
        kept = self.records.keys() if slots is None else slots
        events = [(slot, row) for slot, row in self.events if slot in kept]
        return memory_of({slot: self.records[slot] for slot in self.records if slot in kept}, [events] * bool(events))

    def seen(self, slots: set[int]) -> DatasetMemory:
        """The memory of `memory`, ready and kept, for tests that change nothing in it."""
        key = frozenset(slots)
        if key not in self._seen:
            self._seen[key] = ready(self.memory(slots))
        return self._seen[key]


def crowd(*, seed: int, size: int) -> Crowd:
    """Individuals on both sides of page edges, with values that are not round numbers, and NULLs."""
    random, of_vectors = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    near = [edge + offset for edge in (0, 65_536, 131_072) for offset in range(-size // 6, size // 6)]
    slots = [slot for slot in near if slot >= 0]

    def row(table: str) -> Row:
        drawn = {
            name: values[(of_vectors if name == "sketch" else random).integers(len(values))]
            for name, values in VALUES[table].items()
        }
        fine = {
            "spend": 500 * random.random(),
            "balance": 0.8 * random.random() - 0.7,
            "cost": 10 * random.random() - 5,
        }
        return drawn | {name: value for name, value in fine.items() if name in drawn and random.random() < 0.8}

    records = {int(slot): row("people") for slot in random.permutation(slots)}
    events = [(slot, row("visits")) for slot in records for _ in range(random.integers(ROWS_MAX + 1))]
    return Crowd(records=records, events=[events[place] for place in random.permutation(len(events))])


CROWD = crowd(seed=1, size=150)
RUNS = [1, 2, 7, None]
SLOTS_FOR_A_ROW = 2**12
"""A scan takes so many slots for each row of a run; the crowd spreads over 2^17, and most of these are empty."""


@contextmanager
def runs_of(rows: int | None) -> Iterator[None]:
    """The engine reads and works on at most `rows` rows at a time; None: its normal sizes.

    With one row at a time every individual is in a run of its own, and one with several rows is summed in parts.
    """
    with pytest.MonkeyPatch.context() as patch:
        if rows is not None:
            patch.setattr(engine, "STRETCH_ROWS", rows)
            patch.setattr(engine, "BLOCK_ROWS", SLOTS_FOR_A_ROW * rows)
            patch.setattr(engine, "rows_in_run", lambda **_: rows)
            patch.setattr(engine, "rows_in_products", lambda _: SLOTS_FOR_A_ROW // 4 * rows)
            patch.setattr(tallies, "TALLY_ROWS", rows)
        yield


def ready(memory: DatasetMemory) -> DatasetMemory:
    """The memory with limits by slot, of which a session exhausts some and not others, and a share is had by some."""
    memory.accounts.set_limits(slice(None), (1 + np.arange(memory.accounts.size) % 7) * 2**31)
    return memory


def vectors(plan: Plan, memory: DatasetMemory, evaluate: Evaluate = contributions) -> dict[int, Vector]:
    """The norm and entries of every individual, as bytes; entries at one coordinate add up."""
    found: dict[int, Vector] = {}
    for block in map(as_list, evaluate(plan, memory)):
        owners = np.arange(block.touched.size) if block.owners is None else block.owners
        for place, (slot, norm) in enumerate(
            zip(block.touched.slots().tolist(), block.norms_squared.tolist(), strict=True)
        ):
            own = owners == place
            coordinates, which = np.unique(block.coordinates[own], return_inverse=True)
            values = np.zeros(coordinates.size, dtype=np.int64)
            np.add.at(values, which, block.values[own])
            is_there = values != 0
            found[slot] = (norm, coordinates[is_there].astype(np.int64).tobytes(), values[is_there].tobytes())
    return found


def check_vectors_depend_on_own_records(plan: Plan, people_there: Crowd, evaluate: Evaluate = contributions) -> None:
    """T0.1 for a few individuals of the crowd."""
    memory = ready(people_there.memory())
    together = vectors(plan, memory, evaluate)
    few = sorted(people_there.records)[:: max(1, len(people_there.records) // 8)]
    for slot in few:
        alone = vectors(plan, people_there.seen({slot}), evaluate)
        assert alone == {own: vector for own, vector in together.items() if own == slot}
    for slot in few[:3]:
        others = {own: vector for own, vector in together.items() if own != slot}
        assert vectors(plan, people_there.seen(set(people_there.records) - {slot}), evaluate) == others
    for count, slot in enumerate(few, 1):
        memory.erase(slot)
        if IS_WHOLE or count in {1, 3, len(few)}:
            kept = {own: vector for own, vector in together.items() if own not in few[:count]}
            assert vectors(plan, memory, evaluate) == kept


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        pytest.param(name, rows, id=f"{name} in runs of {rows}" if IS_WHOLE else name)
        for name in TYPES
        for rows in (RUNS if IS_WHOLE else [None])
    ],
)
def test_a_vector_is_the_same_alone_in_a_crowd_and_after_deletions(name: str, rows: int | None) -> None:
    """T0.1 for every type of query, on a crowd that makes every type clip, cancel or skip an individual.

    In runs of the usual size, so that the crowd is in one: that runs may end anywhere is the law after the next.
    """
    with runs_of(rows):
        assert len(vectors(PLANS[name], ready(CROWD.memory()))) > 20
        check_vectors_depend_on_own_records(PLANS[name], CROWD)


@settings(max_examples=times(14, 40), deadline=None)
@given(data=st.data(), records=people(), query=queries("people") | queries("visits"), rows=st.sampled_from(RUNS))
def test_a_vector_depends_on_ones_own_record_for_random_queries(
    data: st.DataObject, records: dict[int, Row], query: dict[str, Any], rows: int | None
) -> None:
    """T0.1 over random queries and datasets."""
    plan = planned(query)
    assume(plan is not None)
    assert plan is not None
    with runs_of(rows):
        check_vectors_depend_on_own_records(plan, Crowd(records=records, events=data.draw(visits(records))))


@pytest.mark.parametrize("name", TYPES)
def test_a_vector_is_the_same_wherever_runs_end(name: str) -> None:
    """Between any two individuals, and in the middle of one individual's rows."""
    memory, found, blocks, is_listed = ready(CROWD.memory()), [], [], True
    for rows in RUNS:
        with runs_of(rows):
            found.append(vectors(PLANS[name], memory))
            made = list(contributions(PLANS[name], memory))
            blocks.append(len(made))
            is_listed &= all(block.touched.marks is None for block in made)
    assert found == found[:1] * len(RUNS)
    assert blocks[0] > blocks[1] > blocks[2] > blocks[3]
    assert not is_listed or blocks[0] >= len(found[0]) > blocks[1]


def arrived(order: list[int], first_slot: int) -> DatasetMemory:
    """The crowd, or some of it, in consecutive slots in the order in which they came; the keys are as ever."""
    slots = {who: first_slot + place for place, who in enumerate(order)}
    memory = memory_of(
        {slot: CROWD.records[who] for who, slot in slots.items()},
        [[(slots[who], row) for who, row in CROWD.events if who in slots]],
        limits={slot: (1 + who % 7) * 2**31 for who, slot in slots.items()},
        keys={slot: str(who) for who, slot in slots.items()},
    )
    memory.grow(first_slot + len(order))
    return memory


def seen_by_each(plan: Plan, order: list[int], first_slot: int) -> dict[int, list[Any]]:
    """The vector of each individual, and its charges and participation in three answers, which exhaust some."""
    memory = arrived(order, first_slot)
    found = vectors(plan, memory)
    seen: dict[int, list[Any]] = {who: [found.get(first_slot + place)] for place, who in enumerate(order)}
    for words in range(3):
        turn = take(Turn(plan=plan, words=words), memory, contributions)
        for place, who in enumerate(order):
            seen[who] += [turn.charged.get(first_slot + place), first_slot + place in turn.left_out]
    return seen


@pytest.mark.parametrize("name", TYPES)
def test_a_file_without_one_row_leaves_everybody_else_as_they_are(name: str) -> None:
    """Absence: the slots of all who come after it are others, and so is their page; nothing else changes."""
    plan, everybody = PLANS[name], list(CROWD.records)
    with_all = seen_by_each(plan, everybody, 65_536 - len(everybody) // 2)
    for gone in (everybody[0], everybody[len(everybody) // 2], everybody[-1]):
        rest = [who for who in everybody if who != gone]
        assert seen_by_each(plan, rest, 0) == {who: each for who, each in with_all.items() if who != gone}
    assert seen_by_each(plan, everybody[::-1], 1) == with_all


def with_room_of_the_next(plan: Plan, memory: DatasetMemory) -> Iterator[Block]:
    """A planted bug: what is left is read of the account of the individual before, and not of one's own."""
    room = np.roll(np.where(np.isin(np.arange(memory.accounts.size), present(memory)), memory.accounts.room, 0), 1)
    for block in contributions(changed(plan, items=(Count(),)), memory):
        has_room = room[block.touched.index] >= (plan.layout.items[0].room_units or 0)
        yield replace(block, touched=Touched(block.touched.index, block.touched.among(has_room)))


def present(memory: DatasetMemory) -> NDArray[np.int64]:
    """The slots of individuals."""
    return np.flatnonzero(memory.people.present)


def test_the_law_catches_a_share_that_another_has_left() -> None:
    """Negative control for T0.1: removing one individual takes the next out of the count."""
    with pytest.raises(AssertionError):
        check_vectors_depend_on_own_records(PLANS["active"], CROWD, with_room_of_the_next)


def scaled_by_the_largest(plan: Plan, memory: DatasetMemory) -> Iterator[Block]:
    """A planted bug: values are divided by the largest one in the data."""
    blocks = list(map(sparse, contributions(plan, memory)))
    largest = max((int(np.abs(block.values).max()) for block in blocks), default=1)
    for block in blocks:
        values = block.values * 1000 // largest
        yield replace(block, values=values, norms_squared=values * values)


def test_the_law_catches_values_that_are_normalised_by_the_data() -> None:
    """Negative control for T0.1."""
    plan = reconcile_plan({"select": [{"sum": {"column": "spend"}}]})
    with pytest.raises(AssertionError):
        check_vectors_depend_on_own_records(plan, CROWD, scaled_by_the_largest)


# T0.2


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One query of a session: its plan and the seed of its noise."""

    plan: Plan
    words: int  # the seed of the injected words


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one turn."""

    values: NDArray[np.int64]
    charged: dict[int, int]
    left_out: set[int]
    spent: NDArray[np.int64]

    def without(self, slot: int) -> tuple[dict[int, int], set[int], list[int]]:
        """Charges, slots left out and spent totals of all but one."""
        charged = {own: charge for own, charge in self.charged.items() if own != slot}
        return charged, self.left_out - {slot}, np.delete(self.spent, slot).tolist()


def take(turn: Turn, memory: DatasetMemory, evaluate: Evaluate) -> Outcome:
    """Answer, as the service does."""
    release: Release = answer(evaluate(turn.plan, memory), memory.accounts, turn.plan.terms, entropy=seeded(turn.words))
    charged, charges = charged_in(release).tolist(), charges_in(release, turn.plan.scale.law.size_steps).tolist()
    return Outcome(
        values=release.values,
        charged=dict(zip(charged, charges, strict=True)),
        left_out=set(left_out_in(release).tolist()),
        spent=memory.accounts.spent,
    )


TURNS = 24
BETWEEN = {6: "events", 13: "erasure"}
LATE = {"item": 3, "amount": 2, "cost": 1.5, "online": True}


def between(step: int, memory: DatasetMemory, bystander: int) -> None:
    """Acts on a bystander in the middle of a session: new events, then an erasure."""
    match BETWEEN.get(step):
        case "events":
            counts = memory.events["visits"].counts_with(np.array([bystander]))
            if counts[0] <= ROWS_MAX:
                codes = uploaded("visits", [bystander], [LATE]).codes
                memory.add_events("visits", np.array([bystander]), codes)
        case "erasure":
            memory.erase(bystander)


def session(memory: DatasetMemory, bystander: int, evaluate: Evaluate) -> tuple[list[Turn], list[Outcome]]:
    """A session in which each query depends on the last answer, with other acts on the dataset in between."""
    names, state = sorted(PLANS), 0
    turns: list[Turn] = []
    outcomes: list[Outcome] = []
    for step in range(TURNS):
        between(step, memory, bystander)
        turn = Turn(plan=PLANS[names[(state + step) % len(names)]], words=1000 + step)
        turns.append(turn)
        outcomes.append(take(turn, memory, evaluate))
        state = int(outcomes[-1].values.sum()) % 1009
    return turns, outcomes


def charged_for(plan: Plan, vector: list[int]) -> int:
    """The square of what a vector is charged for: its length, its largest entry, or its length rounded up and one."""
    square = sum(step**2 for step in vector)
    if plan.reduce is None or square == 0:
        return square
    return max(map(abs, vector)) ** 2 if plan.reduce == "max" else (isqrt(square - 1) + 2) ** 2


def change_of_number(turn: Turn, there: Outcome, gone: Outcome) -> int:
    """By how much the number of a reduced query differs, before its noise; 0 of other queries."""
    if turn.plan.reduce is None:
        return 0
    noise = rounded_gaussian(there.values.size, turn.plan.scale.law.size_steps, seeded(turn.words))
    return reduced(there.values - noise, turn.plan.reduce) - reduced(gone.values - noise, turn.plan.reduce)


def check_replay(people_there: Crowd, slot: int, evaluate: Evaluate = contributions) -> None:
    """T0.2 for one individual: the frozen session without it, never present or erased before the start."""
    bystander = next(other for other in sorted(people_there.records) if other != slot)
    turns, with_them = session(ready(people_there.memory()), bystander, evaluate)
    erased = people_there.memory()
    erased.erase(slot)
    for memory in (ready(erased), ready(people_there.memory(set(people_there.records) - {slot}))):
        for step, (turn, there) in enumerate(zip(turns, with_them, strict=True)):
            between(step, memory, bystander)
            gone = take(turn, memory, evaluate)
            assert gone.without(slot) == there.without(slot)
            assert slot not in gone.charged.keys() | gone.left_out
            moved = there.values - gone.values
            wanted = np.zeros(turn.plan.terms.dimension, dtype=np.int64)
            if slot in there.charged:
                [(_, coordinates, values)] = vectors(turn.plan, people_there.memory({slot}), evaluate).values()
                wanted[np.frombuffer(coordinates, np.int64)] = np.frombuffer(values, np.int64)
            price = worst_case_units(charged_for(turn.plan, moved.tolist()), turn.plan.scale.law.size_steps)
            assert price == there.charged.get(slot, 0)
            assert worst_case_units(change_of_number(turn, there, gone) ** 2, turn.plan.scale.law.size_steps) <= price
            if turn.plan.shortens:
                assert (np.sign(moved) * np.sign(wanted) >= 0).all()
                assert (np.abs(moved) <= np.abs(wanted)).all()
            else:
                assert moved.tolist() == wanted.tolist()


@pytest.mark.parametrize(("seed", "rows"), [(2, None), (4, 2), *([(3, 1)] if IS_WHOLE else [])])
def test_a_frozen_session_without_one_individual_moves_by_its_vectors_alone(seed: int, rows: int | None) -> None:
    """T0.2 for a few individuals, on a session in which budgets run out."""
    people_there = crowd(seed=seed, size=60)
    with runs_of(rows):
        for slot in sorted(people_there.records)[5::17]:
            check_replay(people_there, slot)


def test_the_session_exhausts_some_and_not_others() -> None:
    """The law would hold trivially if the filter made all active, or none."""
    people_there = crowd(seed=2, size=60)
    _, outcomes = session(ready(people_there.memory()), min(people_there.records), contributions)
    assert sum(len(outcome.left_out) > 0 for outcome in outcomes) > TURNS // 4
    assert sum(len(outcome.charged) > 0 for outcome in outcomes) > TURNS // 3
    asked = {json.dumps(sorted(outcome.charged)) for outcome in outcomes}
    assert len(asked) > TURNS // 2


def only_the_first_thirty(plan: Plan, memory: DatasetMemory) -> Iterator[Block]:
    """A planted bug: a query takes the first thirty individuals it touches, so that participation depends on others."""
    left = 30
    for block in map(as_list, contributions(plan, memory)):
        kept = block.touched.size if block.owners is not None else min(left, block.touched.size)
        left -= kept
        yield replace(
            block,
            touched=Touched(block.touched.slots()[:kept]),
            norms_squared=block.norms_squared[:kept],
            coordinates=block.coordinates[:kept] if block.owners is None else block.coordinates,
            values=block.values[:kept] if block.owners is None else block.values,
        )


def test_the_law_catches_participation_that_depends_on_others() -> None:
    """Negative control for T0.2."""
    people_there = crowd(seed=2, size=60)
    with pytest.raises(AssertionError):
        check_replay(people_there, sorted(people_there.records)[5], only_the_first_thirty)
