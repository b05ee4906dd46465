"""Folds: each individual is in one part of a division, for good, by the digest of its key and the seed alone."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from service.engine.memory import DatasetMemory
from tests.digests import with_digests
from tests.engine.worlds import BUDGET, PERSON, SCHEMA, VISIT, memory_of, plan_of, query_of, vectors
from tests.query import samples
from tests.query.samples import refused

SLOTS = [*range(3000), *range(65_530, 65_545), 131_072]
FIRST = [1, 2, 8, 12, 20, 24, 25, 27]
MEMORY = memory_of(dict.fromkeys(SLOTS, PERSON), [[(slot, VISIT) for slot in SLOTS for _ in "ab"]])


def selected(*parts: int, seed: str = "churn", of: int = 5, negated: bool = False, **more: Any) -> list[int]:
    """The slots of those that are in some parts."""
    fold: dict[str, Any] = {"fold": {"seed": seed, "of": of, "in": list(parts)}}
    return [*vectors(plan_of(query_of(where={"not": fold} if negated else fold, **more)), MEMORY)]


@pytest.mark.parametrize("of", [2, 3, 5, 1000])
def test_each_individual_is_in_one_part(of: int) -> None:
    """No slot without a record is in any."""
    found = Counter(slot for part in range(of) for slot in selected(part, of=of))
    assert found == Counter(SLOTS)


def test_parts_are_about_as_large_as_each_other_whatever_the_seed() -> None:
    """Within five standard deviations of a fifth; and two divisions cut each other alike."""
    for seed in ("churn", "a", "b", "ü"):
        sizes = [len(selected(part, seed=seed)) for part in range(5)]
        assert all(abs(size - len(SLOTS) / 5) < 5 * (len(SLOTS) * 0.16) ** 0.5 for size in sizes), sizes
    both = set(selected(0, seed="a")) & set(selected(0, seed="b"))
    assert abs(len(both) - len(SLOTS) / 25) < 5 * (len(SLOTS) * 0.0384) ** 0.5


def test_a_fold_is_what_it_was() -> None:
    """The part of each of some keys, under a known salt, as this version and every later one gives it."""
    assert [slot for slot in selected(0) if slot < 30] == FIRST


def test_the_part_of_an_individual_follows_its_key_and_no_slot() -> None:
    """The people in other slots, and without some of them, are in the same parts."""
    keys = [f"p{number}" for number in range(500)]
    fold = {"fold": {"seed": "a", "of": 4, "in": [1]}}
    plan = plan_of(query_of(where=fold))
    parts = {}
    for first, step in ((0, 1), (65_400, 1), (3, 7)):
        memory = DatasetMemory(SCHEMA)
        slots = {key: first + number for number, key in enumerate(keys[::step])}
        codes = with_digests(memory.null_codes("people", len(slots)), slots)
        memory.add_individuals(np.array(list(slots.values())), codes, np.full(len(slots), BUDGET))
        found = vectors(plan, memory)
        parts[first, step] = {key for key, slot in slots.items() if slot in found}
    assert parts[0, 1] == parts[65_400, 1] > parts[3, 7] == parts[0, 1] & {*keys[::7]}


def test_the_other_parts_are_selected_by_not() -> None:
    """Never unknown."""
    assert sorted(selected(0, 3) + selected(0, 3, negated=True)) == SLOTS
    assert selected(0, 3, negated=True) == sorted(selected(1) + selected(2) + selected(4))


def test_an_event_is_in_the_part_of_its_individual() -> None:
    """On every page."""
    more: dict[str, Any] = {"from": "visits"}
    assert selected(1, 2, **more) == selected(1, 2)


@pytest.mark.parametrize(
    ("fold", "field", "message"),
    [
        ({"seed": "a", "of": 5, "in": [0, 5]}, "where.fold.in[1]", "must be below 5, the number of parts"),
        ({"seed": "a", "of": 1, "in": [0]}, "where.fold.of", "must be at least 2"),
        ({"seed": "", "of": 2, "in": [0]}, "where.fold.seed", "must not be empty"),
        ({"seed": "a", "of": 2, "in": []}, "where.fold.in", "must not be empty"),
        ({"seed": "a", "of": 2}, "where.fold.in", "is required"),
        ({"seed": "a", "of": 2, "in": [-1]}, "where.fold.in[0]", "must be at least 0"),
    ],
)
def test_what_is_no_fold_is_refused(fold: dict[str, Any], field: str, message: str) -> None:
    """With the field."""
    assert refused(samples.plan_of, query_of(where={"fold": fold})) == (field, message)
