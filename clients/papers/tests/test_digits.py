"""Features of images, and the file that they come from."""

from pathlib import Path

import numpy as np
import pytest

from sparing_papers.digits import oriented, read_digits
from sparing_papers.labelled import without_kept_out

IMAGES = np.random.default_rng(1).integers(0, 256, (12, 28, 28), dtype=np.uint8)


def test_features_are_those_of_one_image_alone() -> None:
    """To the bit, with others beside it or without."""
    alone = np.vstack([oriented(IMAGES[place : place + 1]) for place in range(len(IMAGES))])

    assert np.array_equal(oriented(IMAGES), alone)
    assert alone.shape == (12, 392)
    assert not np.array_equal(alone[0], alone[1])


def test_an_image_without_edges_has_no_features() -> None:
    """Nothing is divided by nothing."""
    assert not oriented(np.full((2, 28, 28), 77, dtype=np.uint8))[:, 150:200].any()


def test_a_file_is_read_in_whole_steps(tmp_path: Path) -> None:
    """Steps are 1/256; and the last images can be kept out in the place of the test images."""
    labels = np.arange(12, dtype=np.uint8) % 10
    with (tmp_path / "digits.npz").open("wb") as file:
        np.savez(file, train_images=IMAGES, train_labels=labels, test_images=IMAGES[:5], test_labels=labels[:5])

    found = read_digits(tmp_path / "digits.npz")
    kept = without_kept_out(found, 4)

    assert np.array_equal(found.train * 256, oriented(IMAGES))
    assert (len(kept.train), len(kept.test), kept.test_labels.tolist()) == (8, 4, [8, 9, 0, 1])
    assert np.array_equal(kept.test, found.train[8:])


def test_a_file_without_an_array_names_it(tmp_path: Path) -> None:
    """The error is numpy's."""
    np.savez(tmp_path / "digits.npz", train_images=IMAGES)

    with pytest.raises(KeyError, match="test_images"):
        read_digits(tmp_path / "digits.npz")
