"""Generated digits, so that the figures of descents can be tried without a file."""

import numpy as np

from sparing_papers.digits import CLASSES
from sparing_papers.labelled import Labelled

__all__ = ["made_up_digits"]

FEATURES = 24


def made_up_digits(seed: int, *, individuals: int = 3000, tests: int = 1000) -> Labelled:
    """Overlapping clouds of ten classes in 24 features."""
    source = np.random.default_rng([seed, 10])
    centres = source.normal(0, 0.55, (CLASSES, FEATURES))
    labels = [source.integers(0, CLASSES, count) for count in (individuals, tests)]
    features = [(centres[each] + source.normal(0, 0.5, (each.size, FEATURES))).astype(np.float32) for each in labels]
    return Labelled(train=features[0], train_labels=labels[0], test=features[1], test_labels=labels[1])
