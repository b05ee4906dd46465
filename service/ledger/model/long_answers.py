"""Answers of more than 10,000 numbers, which are stored without them: the entry that an answer shows has them already.

Such an answer has no labels either, which is how it is told from others. Its numbers are written from the entry by the
functions that wrote them first, so that it is byte for byte what was sent.
"""

from collections.abc import Sequence
from math import ldexp
from typing import Final

import numpy as np
import orjson

from service.query.layout import LABELS_MAX
from service.query.stated_noise import grid_of, in_query_units

_BEGIN: Final = b'"values":['
_NO_LABELS: Final = b'],"labels":[],'
SHORT_BYTES: Final = 2 * LABELS_MAX
"""A body of so many bytes has no room for more numbers than have labels."""


def without_values(body: bytes) -> bytes:
    """The body as it is stored: of a long answer without its numbers, of any other as it is."""
    before, begin, after = body.partition(_BEGIN)
    end = after.find(b"]")
    if not begin or not after.startswith(_NO_LABELS, end):
        return body
    return before + begin + after[end:]


def with_values(body: bytes, values: bytes, *, sigma: float, grid_log2: int, sigmas: Sequence[float]) -> bytes:
    """The body as it was sent, with the `values` of its entry: int64 grid steps, big-endian.

    A short answer is given back as it is, and so is one that cannot be read: a verification says that it was changed.
    """
    before, begin, after = body.partition(_BEGIN)
    if not begin or not after.startswith(_NO_LABELS):
        return body
    try:
        steps = np.frombuffer(values, dtype=">i8").astype(np.int64)
        grid = grid_of(ldexp(sigma, -grid_log2), grid_log2=grid_log2, sigmas=sigmas)
        axes = orjson.loads(body)["axes"] if sigmas else ()
        numbers = in_query_units(steps, grid_log2=grid_log2, grid=grid, axes=axes)
    except (IndexError, KeyError, TypeError, ValueError):
        return body
    return before + begin[:-1] + orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY) + after[1:]
