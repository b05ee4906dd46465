"""Values of an upload that are wrong or missing, as the readers of columns name them."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from service.core.arrays import Mask

Report = Callable[[Mask, str], None]
"""Takes which rows (n,) are wrong, and how."""


class WrongType(TypeError):
    """The column's own type can hold no value of the declared column."""


def nulls_of(array: pa.Array) -> Mask:
    """Which values (n,) are missing."""
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
