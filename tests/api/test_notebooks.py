"""The notebooks under docs run from their first cell to their last, and come to what they say."""

import json
import re
from pathlib import Path

import nbformat
import pytest

from tests.api.notebooks import NOTEBOOKS, reader_of, run
from tests.api.world import World

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_has_kept_such_outputs(path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell works; each has kept outputs of the same kinds, so that a reader sees what the code makes."""
    reader_of(world, monkeypatch)
    kept = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(kept)  # type: ignore[no-untyped-call]
    made = run(path)
    for before, now in zip(kept.cells, made.cells, strict=True):
        assert [each.output_type for each in before.get("outputs", [])] == [
            each.output_type for each in now.get("outputs", [])
        ]


def test_the_health_insurance_experiment_is_found_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The means asked with noise are near the true ones, in their order, and the intervals are around them."""
    reader_of(world, monkeypatch)
    (path,) = (each for each in NOTEBOOKS if each.stem == "health-insurance")
    text = json.dumps(run(path))
    lines = re.findall(r"(\d+) % paid by the person: ([\d.]+) visits a year, ([\d.]+) to ([\d.]+)", text)
    assert [int(share) for share, *_ in lines] == [0, 25, 50, 95, 100]
    means = [float(mean) for _, mean, *_ in lines]
    assert means[0] > means[3]
    assert means == pytest.approx([2.95, 2.7, 2.5, 2.05, 2.55], abs=0.5)
    assert all(float(low) < mean < float(high) for mean, (_, _, low, high) in zip(means, lines, strict=True))
