"""The notebooks under docs run from their first cell to their last, and come to what they say."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import nbformat
import pytest

from tests.api.notebooks import NOTEBOOKS, reader_of, run
from tests.api.world import build_world

Made = tuple[nbformat.NotebookNode, list[str]]
"""A notebook with its outputs, and what its reader was warned of."""
CLIPPED_MEANS = [2.955, 2.628, 2.480, 2.006, 2.607]
"""The visits of each person cut to 50, divided by the years, by the share of the bill."""


ROW = re.compile(r"(?:count|sum\(hours\)|mean\(hours\)) +(-?[\d.]+) ± +([\d.]+) +true +([\d.]+)")


@pytest.fixture(scope="module")
def made_of() -> Callable[[str], Made]:
    """Runs a notebook when it is first asked for, each before a service of its own."""

    @cache
    def made(name: str) -> Made:
        (path,) = (each for each in NOTEBOOKS if each.stem == name)
        world = build_world()
        with pytest.MonkeyPatch.context() as monkeypatch:
            reader = reader_of(world, monkeypatch)
            notebook = run(path)
        world.replica.close()
        return notebook, reader.warnings

    return made


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_has_kept_such_outputs(path: Path, made_of: Callable[[str], Made]) -> None:
    """Every cell works; each has kept outputs of the same kinds, so that a reader sees what the code makes."""
    kept = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(kept)
    made, warnings = made_of(path.stem)
    for before, now in zip(kept.cells, made.cells, strict=True):
        assert [each.output_type for each in before.get("outputs", [])] == [
            each.output_type for each in now.get("outputs", [])
        ]
    assert warnings == []


def test_the_health_insurance_experiment_is_found_again(made_of: Callable[[str], Made]) -> None:
    """The means asked with noise are near the true ones, in their order, and the intervals are around them."""
    text = json.dumps(made_of("health-insurance")[0])
    lines = re.findall(r"(\d+) % paid by the person: ([\d.]+) visits a year, ([\d.]+) to ([\d.]+)", text)
    assert [int(share) for share, *_ in lines] == [0, 25, 50, 95, 100]
    means = [float(mean) for _, mean, *_ in lines]
    assert means[0] > means[3]
    for mean, (_, _, low, high), clipped in zip(means, lines, CLIPPED_MEANS, strict=True):
        assert float(low) < mean < float(high)
        assert abs(mean - clipped) < 3.5 * (float(high) - float(low)) / 2  # seven standard errors, of once in 10^11


def test_a_newcomer_finds_the_truth_within_the_error_bars(made_of: Callable[[str], Made]) -> None:
    """Counts, sums and averages of each group, from one query over a frame that a package ships."""
    text = json.dumps(made_of("first-averages")[0], ensure_ascii=False)
    rows = [tuple(map(float, row)) for row in ROW.findall(text)]
    assert len(rows) == 12
    for value, half_width, truth in rows:
        assert 0 < half_width < max(abs(truth), 400)
        assert abs(value - truth) < 3.5 * half_width  # seven standard errors, of once in 10^11
