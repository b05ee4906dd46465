"""Koskela, Tobaben and Honkela 2023, figures 2 and 6 to 10, on MNIST.

The model is a softmax regression on 392 public features of edges instead of a network of 25 labels, its measure is
accuracy instead of the area under the curve, and its groups are the ten digits. Clip and rate were chosen on 10,000
training images that were kept out: clips from 0.125 to 2 did equally well there.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_papers.descent import SOFTMAX, accuracy
from sparing_papers.digits import CLASSES
from sparing_papers.koskela_descent import Experiment, Measure, figures_of

__all__ = ["DIGITS", "FIGURES"]


def _percent_right(features: NDArray[np.float32], labels: NDArray[np.int64], parameters: NDArray[np.float64]) -> float:
    return 100 * accuracy(features, labels, parameters)


DIGITS: Final = Experiment(
    data=lambda request: request.digits,
    loss=SOFTMAX,
    measure=Measure(name="accuracy", of=_percent_right, title="Right, of the test images", unit="%"),
    group="digit",
    groups=range(CLASSES),
    group_of=lambda _, labels: labels,
    tests="test images",
    trains="training images",
    clip=0.5,
    reach=64.0,
    seed=50,
)
FIGURES: Final = figures_of(DIGITS, prefix="koskela", needs_digits=True, share=15)
