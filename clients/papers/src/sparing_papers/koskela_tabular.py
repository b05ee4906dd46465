"""The clip and the rate of the experiment on a table (koskela_descent.py), and what its filter gains at other clips.

`choose` looks for clip and rate on a quarter of the training set that is kept out of the fits, once, of the split of
the default seed; no number is chosen on the test set. As in the paper the choice is not charged.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from sparing_papers.descent import LOGISTIC, area_under_curve, fit
from sparing_papers.koskela_descent import CERTIFIED, EPSILON, FACTORS, STEPS, TABULAR, descent
from sparing_papers.labelled import Labelled, without_kept_out
from sparing_papers.tabular import TEST_SHARE

__all__ = ["changes", "choose"]

CLIPS: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
REACHES: Final = (4.0, 8.0, 16.0, 32.0)
CHOICE_RUNS: Final = 5


def choose(
    data: Labelled, *, clips: Iterable[float] = CLIPS, reaches: Iterable[float] = REACHES, runs: int = CHOICE_RUNS
) -> dict[tuple[float, float], float]:
    """The mean area under the curve after the certified steps, by clip and rate times clip, at (2.75, 1e-5).

    It is measured on the last quarter of the training set, with the rest as individuals. The test set is not used.
    """
    kept = without_kept_out(data, round(TEST_SHARE * len(data.train)))
    reaches = list(reaches)
    found = {}
    for clip in clips:
        for reach in reaches:
            settings = replace(descent(replace(TABULAR, clip=clip, reach=reach), EPSILON, 1.0), steps=CERTIFIED)
            areas = [
                area_under_curve(
                    kept.test, kept.test_labels, fit(kept, settings, [run, 72], loss=LOGISTIC).parameters[CERTIFIED]
                )
                for run in range(runs)
            ]
            found[clip, reach] = float(np.mean(areas))
    return found


def changes(data: Labelled, runs: int) -> dict[float, tuple[float, float]]:
    """The change that the steps after the certified ones bring, by clip factor: mean and standard error of `runs` runs.

    What changes is the area under the curve on the test set, at (2.75, 1e-5). Each run has its own noise.
    """
    found = {}
    for factor in FACTORS:
        settings = descent(TABULAR, EPSILON, factor)
        moved = []
        for run in range(runs):
            parameters = fit(data, settings, [run, 73], loss=LOGISTIC, kept=[CERTIFIED]).parameters
            before, after = (area_under_curve(data.test, data.test_labels, parameters[s]) for s in (CERTIFIED, STEPS))
            moved.append(after - before)
        found[factor] = float(np.mean(moved)), float(np.std(moved, ddof=1) / np.sqrt(runs))
    return found
