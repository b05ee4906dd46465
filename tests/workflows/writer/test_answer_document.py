"""The answer to a query as JSON: the numbers as they are printed."""

from decimal import Decimal

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from service.workflows.writer.batch import scaled


@given(st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1, max_size=8), st.integers(-40, 20))
def test_numbers_are_printed_with_no_more_digits_than_the_grid_has(steps: list[int], grid_log2: int) -> None:
    """Integers on an integral grid; on 2^-k at most k decimals, since the shortest text of a double is printed."""
    numbers = scaled(np.array(steps, dtype=np.int64), grid_log2)
    printed = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode()

    texts = printed.strip("[]").split(",")
    for step, text in zip(steps, texts, strict=True):
        number = Decimal(text)
        assert float(number) == step * 2.0**grid_log2
        exponent = number.normalize().as_tuple().exponent
        assert isinstance(exponent, int)
        assert -exponent <= max(-grid_log2, 0)
