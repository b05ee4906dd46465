"""Answers of more than 10,000 numbers, which are stored without the numbers, because the ledger entry has them.

Such an answer has no labels, by which it is recognised. The functions that wrote its numbers first write them again
from the entry, so that the restored answer is byte for byte what was sent.
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
"""A body of at most this many bytes has so few numbers that they have labels."""


def without_values(body: bytes) -> bytes:
    """The body as it is stored: a long answer loses its numbers, any other body stays as it is."""
    before, begin, after = body.partition(_BEGIN)
    end = after.find(b"]")
    if not begin or not after.startswith(_NO_LABELS, end):
        return body
    return before + begin + after[end:]


def with_values(body: bytes, values: bytes, *, sigma: float, grid_log2: int, sigmas: Sequence[float]) -> bytes:
    """The body as it was sent; `values` are the numbers of its entry, int64 grid steps, big-endian.

    A short answer is returned unchanged. So is a body that cannot be read; a verification then finds that it was
    changed.
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
