"""Features and labels of a data set: those of the individuals, which a fit protects, and those of a test set."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Labelled", "without_kept_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The features (n, d) and labels (n,) of the protected individuals, and of the test set, which no fit sees."""

    train: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def without_kept_out(data: Labelled, kept_out: int) -> Labelled:
    """The data with the last `kept_out` rows of the training set as the test set, on which settings are chosen."""
    return replace(
        data,
        train=data.train[:-kept_out],
        train_labels=data.train_labels[:-kept_out],
        test=data.train[-kept_out:],
        test_labels=data.train_labels[-kept_out:],
    )
