"""MNIST from a file of the reader's own, as public features of each image: the repository ships no images.

The file is an archive of numpy with `train_images` (n, 28, 28) of bytes, `train_labels`, `test_images` and
`test_labels`. The features of an image depend on that image alone, so that no individual's gradient depends on another
individual.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparing_papers.labelled import Labelled

__all__ = ["CLASSES", "oriented", "read_digits"]

Images = NDArray[np.uint8]

CLASSES: Final = 10
CELLS: Final = 7
DIRECTIONS: Final = 8
STEP: Final = 2.0**-8
"""The step of the features: the integers 0 to 255 stand for 0 to 255/256."""


def read_digits(file: Path) -> Labelled:
    """The edge features of all images in a file. Raises OSError, and KeyError if the file lacks an array."""
    with np.load(file) as held:
        train, test = (np.float32(STEP) * oriented(held[f"{part}_images"]) for part in ("train", "test"))
        labels = {part: held[f"{part}_labels"].astype(np.int64) for part in ("train", "test")}
    return Labelled(train=train, train_labels=labels["train"], test=test, test_labels=labels["test"])


def oriented(images: Images) -> Images:
    """The strength of edges (n, 392) by cell and direction, relative to the cells around, in 256 steps."""
    return np.vstack([_oriented(images[start : start + 5000]) for start in range(0, len(images), 5000)])


def _oriented(images: Images) -> NDArray[Any]:
    grey = images.astype(np.float64) / 255
    across, down = np.zeros_like(grey), np.zeros_like(grey)
    across[:, :, 1:-1] = grey[:, :, 2:] - grey[:, :, :-2]
    down[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    strength, turned = np.hypot(across, down), np.arctan2(down, across) / (2 * np.pi) * DIRECTIONS % DIRECTIONS
    first, share = np.floor(turned).astype(int) % DIRECTIONS, turned % 1
    cells = []
    for direction in range(DIRECTIONS):
        own = np.where(first == direction, strength * (1 - share), 0)
        own += np.where((first + 1) % DIRECTIONS == direction, strength * share, 0)
        cells.append(own.reshape(len(images), CELLS, 4, CELLS, 4).sum((2, 4)))
    found = np.stack(cells, axis=1)
    squares = np.pad((found**2).sum(1), ((0, 0), (1, 1), (1, 1)))
    around = sum(squares[:, i : i + CELLS, j : j + CELLS] for i in range(3) for j in range(3))
    scaled = np.sqrt(found / np.sqrt(around + 0.1)[:, None])
    return np.minimum(np.rint(scaled.reshape(len(images), -1) / STEP), 255).astype(np.uint8)
