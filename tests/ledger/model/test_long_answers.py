"""A long answer loses its numbers and nothing else, and gets them back byte for byte."""

from math import ldexp
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ledger.model.long_answers import SHORT_BYTES, with_values, without_values
from service.query.layout import LABELS_MAX
from service.query.stated_noise import grid_of, in_query_units

AXES = [{"select": [{"select": "count", "offset": 0, "size": 1, "item": 0}, {"size": 2, "item": 1}]}]


def packed(steps: list[int]) -> bytes:
    """The steps as an entry keeps them."""
    return np.array(steps, dtype=">i8").tobytes()


def body(steps: list[int], *, labels: list[dict[str, Any]], **noise: Any) -> bytes:
    """A reply as a batch writes it: members that come before and after the numbers, all in one document."""
    grid = grid_of(ldexp(noise["sigma"], -noise["grid_log2"]), grid_log2=noise["grid_log2"], sigmas=noise["sigmas"])
    numbers = in_query_units(np.array(steps), grid_log2=noise["grid_log2"], grid=grid, axes=AXES)
    said = {"id": "x", "sequence": 7, "values": numbers, "labels": labels, "axes": AXES, "warnings": ['],"labels":[],']}
    return orjson.dumps(said, option=orjson.OPT_SERIALIZE_NUMPY)


STEPS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=30).map(
    lambda steps: steps[: len(steps) // 3 * 3]
)
NOISES = st.one_of(
    st.fixed_dictionaries({"sigma": st.just(3.5), "grid_log2": st.integers(-40, 40), "sigmas": st.just(())}),
    st.fixed_dictionaries({"sigma": st.just(4.0), "grid_log2": st.just(0), "sigmas": st.just((0.3, 17.0))}),
)


@given(steps=STEPS, noise=NOISES)
def test_numbers_come_back_byte_for_byte(steps: list[int], noise: dict[str, Any]) -> None:
    """Whole numbers, fractions of a grid, and several items with noise of their own."""
    sent = body(steps, labels=[], **noise)
    stored = without_values(sent)
    assert orjson.loads(stored)["values"] == []
    assert orjson.loads(stored) == orjson.loads(sent) | {"values": []}
    assert without_values(stored) == stored
    assert with_values(stored, packed(steps), **noise) == sent


@given(steps=STEPS, noise=NOISES)
def test_a_short_answer_stays_as_it_is(steps: list[int], noise: dict[str, Any]) -> None:
    """It has labels, and is stored with its numbers, whatever its entry holds."""
    labelled = body(steps, labels=[{"select": "count"}], **noise)
    assert without_values(labelled) == labelled
    assert with_values(labelled, packed([1]), **noise) == labelled


@pytest.mark.parametrize("damaged", [b"", b"{}", b'{"values":[', b'{"values":[1,2', b'{"values":[],"labels":[],'])
def test_what_is_no_answer_is_given_back(damaged: bytes) -> None:
    """A verification compares it with the entry, and says that it was changed."""
    assert without_values(damaged) == damaged
    assert with_values(damaged, packed([1, 2, 3]), sigma=4.0, grid_log2=0, sigmas=(0.3, 17.0)) == damaged


def test_a_short_body_has_no_room_for_many_numbers() -> None:
    """So that a store need not look into it: the shortest long answer is longer."""
    assert len(body([0] * (LABELS_MAX + 1), labels=[], sigma=1.0, grid_log2=0, sigmas=())) > SHORT_BYTES
