"""Features of images, and the file that they come from."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparing_papers.__main__ import main
from sparing_papers.digits import ARRAYS, UnreadableDigits, is_mnist, oriented, read_digits, read_images
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


def write(file: Path, **arrays: Any) -> Path:
    """An archive of arrays."""
    np.savez(file, **arrays)
    return file


LABELS = np.arange(12, dtype=np.uint8) % 10
WHOLE = {"train_images": IMAGES, "train_labels": LABELS, "test_images": IMAGES[:5], "test_labels": LABELS[:5]}


def test_the_names_of_another_library_are_the_same_arrays(tmp_path: Path) -> None:
    """Keras writes these."""
    theirs = {ARRAYS[name].alias: array for name, array in WHOLE.items()}
    found = read_images(write(tmp_path / "theirs.npz", **theirs))
    assert all(np.array_equal(found[name], array) for name, array in WHOLE.items())
    assert not is_mnist(found)


def test_arrays_with_the_stated_bytes_are_mnist(monkeypatch: pytest.MonkeyPatch) -> None:
    """All four; a single pixel decides."""
    stated = {
        name: replace(ARRAYS[name], sha256=hashlib.sha256(array.tobytes()).hexdigest()) for name, array in WHOLE.items()
    }
    monkeypatch.setattr("sparing_papers.digits.ARRAYS", stated)
    other = IMAGES.copy()
    other[3, 4, 5] ^= 1
    assert is_mnist(WHOLE)
    assert not is_mnist(WHOLE | {"train_images": other})


def test_the_stated_bytes_are_those_of_the_readme() -> None:
    """With names, shapes and hashes."""
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    for name, held in ARRAYS.items():
        people = 60_000 if name.startswith("train") else 10_000
        shape = str((people, *held.row))
        assert f"| `{name}` or `{held.alias}` | {shape} | `{held.sha256}` |" in readme


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"test_images": None}, r"lacks the array test_images \(or x_test\)$"),
        ({"train_images": IMAGES[:, :27]}, r"train_images of .* is uint8 \(12, 27, 28\), and not uint8 \(n, 28, 28\)$"),
        ({"test_labels": LABELS[:5].astype(np.int64)}, r"test_labels of .* is int64 \(5,\), and not uint8 \(n\)$"),
        ({"test_labels": LABELS[:4]}, "has 5 test_images and 4 test_labels$"),
        ({"train_labels": np.array([{}], dtype=object)}, "is no archive of numpy"),
    ],
)
def test_a_file_that_is_not_whole_is_one_line(tmp_path: Path, change: dict[str, object], words: str) -> None:
    """It names the file and the array."""
    arrays = {name: array for name, array in (WHOLE | change).items() if array is not None}
    with pytest.raises(UnreadableDigits, match=words) as refused:
        read_digits(write(tmp_path / "digits.npz", **arrays))
    assert "\n" not in str(refused.value)
    assert "digits.npz" in str(refused.value)


@pytest.mark.parametrize("data", [None, b"", b"no archive", b"PK\x03\x04 cut off"])
def test_a_file_that_is_no_archive_is_one_line(
    tmp_path: Path, data: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missing, empty, of another kind or cut off; the command ends with it, and draws nothing."""
    file = tmp_path / "digits.npz"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(
        SystemExit, match=r"^--digits: .*digits\.npz is no archive of numpy \(\.npz\)(: No such file or directory)?$"
    ):
        main(["--only", "koskela-2", "--digits", str(file), "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()
    assert capsys.readouterr().out == ""
