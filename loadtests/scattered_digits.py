"""Features of handwritten digits, worked out before an upload: public functions of one image each.

    python -m venv scattering && scattering/bin/pip install kymatio==0.3.0 "scipy<1.17"
    scattering/bin/python loadtests/scattered_digits.py MNIST.npz SCATTERED.npz

kymatio is no requirement of the service, so that this runs in its own environment and imports nothing of the service.
An image of 28 by 28 pixels has 81 scattering coefficients at 7 by 7 places (depth two, eight directions; Bruna and
Mallat 2013). They are brought to mean 0 and variance 1 within groups of nine coefficients of the image itself (after
Tramer and Boneh 2021, section 3).

Half of the length of these 3,969 numbers has the direction of their mean. Each gradient would carry that half, and each
individual would pay for it. So a mean is subtracted, that of 2,000 drawn strokes and not of anybody's images. 200
principal directions of the strokes are kept, each divided by the root of its deviation among the strokes. These 200
numbers are brought to length 1, followed by the constant 0.3, and counted in steps of 2^-12.
"""

import sys

import numpy as np
from kymatio.numpy import Scattering2D  # type: ignore[import-not-found]

GROUP = 9
BATCH = 500
STROKES = 2000
DIRECTIONS = 200
CONSTANT = 0.3
PER_UNIT = 4096
SIDE = 28
TRANSFORM = Scattering2D(J=2, shape=(SIDE, SIDE))


def scattered(images: np.ndarray) -> np.ndarray:
    """The normalised coefficients (n, 3969) of images (n, 28, 28) with values from 0 to 1."""
    groups = TRANSFORM(images.astype(np.float32)).reshape(len(images), -1, GROUP * 49)
    centred = groups - groups.mean(axis=2, keepdims=True)
    normal = centred / np.sqrt(groups.var(axis=2, keepdims=True) + 1e-5)
    coefficients: np.ndarray = normal.reshape(len(images), -1).astype(np.float32)
    return coefficients


def stroke(source: np.random.Generator) -> np.ndarray:
    """An image (28, 28) of two to four curves in about the box of a digit; each begins where the last one ends."""
    at = np.linspace(0, 1, 25)[:, None]
    end, curves = source.uniform(-9.5, 9.5, (1, 2)), []
    for _ in range(source.integers(2, 5)):
        corner = np.vstack([end[-1:], source.uniform([-9.5, -7], [9.5, 7], (2, 2))])
        curves.append((1 - at) ** 2 * corner[0] + 2 * at * (1 - at) * corner[1] + at**2 * corner[2])
        end = corner
    points = np.vstack(curves)
    points -= (points.max(axis=0) + points.min(axis=0)) / 2
    points *= np.array([9.0, source.uniform(4, 8)]) / np.maximum(np.abs(points).max(axis=0), 1)
    points += (SIDE - 1) / 2
    down, across = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    far = np.sqrt(((down[..., None] - points[:, 0]) ** 2 + (across[..., None] - points[:, 1]) ** 2).min(axis=-1))
    image: np.ndarray = np.clip(source.uniform(1.3, 2.3) - far, 0, 1)
    return image


def directions() -> tuple[np.ndarray, np.ndarray]:
    """The mean (3969,) of the strokes and the scaled principal directions (200, 3969)."""
    source = np.random.default_rng(0)
    drawn = np.stack([stroke(source) for _ in range(STROKES)])
    found = np.concatenate([scattered(drawn[start : start + BATCH]) for start in range(0, STROKES, BATCH)])
    mean = found.mean(axis=0)
    _, sizes, axes = np.linalg.svd(found - mean, full_matrices=False)
    return mean, axes[:DIRECTIONS] / np.sqrt(sizes[:DIRECTIONS, None])


def features(normal: np.ndarray, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The features (n, 201) in whole steps."""
    along = (normal - mean) @ axes.T
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    steps: np.ndarray = np.rint(np.hstack([along, np.full((len(along), 1), CONSTANT)]) * PER_UNIT).astype(np.int16)
    return steps


def all_features(images: np.ndarray, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The features (n, 201) of images (n, 28, 28) in bytes."""
    found = []
    for start in range(0, len(images), BATCH):
        found.append(features(scattered(images[start : start + BATCH] / np.float32(255)), mean, axes))
        print(f"{start + len(found[-1]):6} of {len(images)}", end="\r", file=sys.stderr)
    return np.vstack(found)


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    drawn_mean, drawn_axes = directions()
    np.savez(
        sys.argv[2],
        train_vectors=all_features(given["train_images"], drawn_mean, drawn_axes),
        test_vectors=all_features(given["test_images"], drawn_mean, drawn_axes),
        train_labels=given["train_labels"],
        test_labels=given["test_labels"],
    )
