"""MNIST from a file of the reader's own, as public features of each image: the repository ships no images.

The file is an archive of numpy with the arrays of ARRAYS. The features of an image depend on that image alone, so that
no individual's gradient depends on another individual.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from sparing_papers.labelled import Labelled

__all__ = ["CLASSES", "UnreadableDigits", "is_mnist", "oriented", "read_digits", "read_images"]

Images = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An array of the file: another name that it may have, the shape of one row, and the SHA-256 of MNIST's bytes."""

    alias: str
    row: tuple[int, ...]
    sha256: str


ARRAYS: Final = {
    "train_images": Held(
        alias="x_train", row=(28, 28), sha256="741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757"
    ),
    "train_labels": Held(
        alias="y_train", row=(), sha256="1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13"
    ),
    "test_images": Held(
        alias="x_test", row=(28, 28), sha256="6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161"
    ),
    "test_labels": Held(
        alias="y_test", row=(), sha256="ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5"
    ),
}
"""Bytes, in the order of the original files. MNIST has 60,000 images to train on and 10,000 to test."""

CLASSES: Final = 10
CELLS: Final = 7
DIRECTIONS: Final = 8
STEP: Final = 2.0**-8
"""The step of the features: the integers 0 to 255 stand for 0 to 255/256."""


class UnreadableDigits(ValueError):
    """A file is no archive of images and labels. The text is one line that names the file and what it lacks."""


def read_digits(file: Path) -> Labelled:
    """The edge features of all images in a file. Raises UnreadableDigits."""
    held = read_images(file)
    train, test = (np.float32(STEP) * oriented(held[f"{part}_images"]) for part in ("train", "test"))
    labels = {part: held[f"{part}_labels"].astype(np.int64) for part in ("train", "test")}
    return Labelled(train=train, train_labels=labels["train"], test=test, test_labels=labels["test"])


def read_images(file: Path) -> dict[str, Images]:
    """The arrays of a file, by the names of ARRAYS. Raises UnreadableDigits."""
    try:
        with file.open("rb") as opened, np.load(opened) as archive:
            held = {name: _named(archive, name, file) for name in ARRAYS}
    except (OSError, EOFError, ValueError, BadZipFile, TypeError, AttributeError) as error:
        if isinstance(error, UnreadableDigits):
            raise
        why = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        raise UnreadableDigits(f"{file} is no archive of numpy (.npz){why}") from error
    for part in ("train", "test"):
        images, labels = held[f"{part}_images"], held[f"{part}_labels"]
        if len(images) != len(labels):
            raise UnreadableDigits(f"{file} has {len(images)} {part}_images and {len(labels)} {part}_labels")
    return held


def is_mnist(held: Mapping[str, Images]) -> bool:
    """Tell whether all arrays have the bytes of MNIST."""
    return all(hashlib.sha256(held[name].tobytes()).hexdigest() == each.sha256 for name, each in ARRAYS.items())


def _named(archive: Mapping[str, Images], name: str, file: Path) -> Images:
    """An array of the file under either of its names. Raises UnreadableDigits if it lacks it, or for another shape."""
    row = ARRAYS[name].row
    found = next((archive[each] for each in (name, ARRAYS[name].alias) if each in archive), None)
    if found is None:
        raise UnreadableDigits(f"{file} lacks the array {name} (or {ARRAYS[name].alias})")
    if found.dtype != np.uint8 or found.ndim == 0 or found.shape[1:] != row:
        wanted = ", ".join(["n", *map(str, row)])
        raise UnreadableDigits(f"{name} of {file} is {found.dtype} {found.shape}, and not uint8 ({wanted})")
    return found


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
