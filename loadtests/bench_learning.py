"""A step of a linear model in process, beside numpy on doubles that are there already: one thread each.

    python -m loadtests.bench_learning [people]

A million people have fifty whole numbers from 0 to 100 each, and a boolean. The service makes features of codes, works
out errors, clips, charges, filters and sums, and draws the noise. Numpy has the features in memory, and clips in
doubles without charges. Reported are medians of the processor time of interleaved calls (`*_ms`), and their ratios to
numpy (`*_ratio`).
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from loadtests.in_process import asked, medians_ms
from service.core.charge import LIMIT_UNITS_MAX
from service.engine.memory import DatasetMemory
from service.query.schema import Schema
from tests.digests import with_digests

ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Variables of the environment that numpy reads when it is imported."""
PEOPLE: Final = 10**6
FEATURES: Final = 50
ROUNDS: Final = 9
UNIT: Final = 0.01
_NUMBERS: Final = [{"of": {"mul": [{"col": f"c{n}"}, UNIT]}} for n in range(FEATURES)]
_LOGISTIC: Final = {
    "gradient": {"loss": "logistic", "target": {"col": "member"}, "features": _NUMBERS, "parameters": [0.01] * FEATURES}
}
QUERIES: Final[Mapping[str, dict[str, Any]]] = {
    "logistic": {"select": [_LOGISTIC], "per_individual": {"l2_clip": 1}},
    "logistic_clip": {"select": [_LOGISTIC], "per_individual": {"l2_clip": 1}, "rule": "clip"},
    "moments": {"select": [{"moments": {"features": _NUMBERS}}]},
}
Reals = NDArray[np.float64]


def run(people: int = PEOPLE) -> dict[str, float]:
    """Measure each query, and numpy's step and moments."""
    memory = made(people)
    columns = memory.people.columns
    features = np.stack([columns[f"c{n}"][:people] for n in range(FEATURES)], axis=1).astype(np.float64) * UNIT
    target, parameters = columns["member"][:people], np.full(FEATURES, 0.01)
    calls: dict[str, Callable[[], object]] = {
        name: asked(memory, query, sigma=1000.0, capacity=people, budget_units=2**40) for name, query in QUERIES.items()
    }
    calls["numpy_logistic"] = partial(clipped_step, features, target, parameters)
    calls["numpy_moments"] = lambda: features.T @ features
    taken_ms = medians_ms(*calls.values(), rounds=ROUNDS)
    figures = {f"{name}_ms": each for name, each in zip(calls, taken_ms, strict=True)}
    for name in QUERIES:
        own = "numpy_moments_ms" if name == "moments" else "numpy_logistic_ms"
        figures[f"{name}_ratio"] = figures[f"{name}_ms"] / figures[own]
    return figures


def made(people: int) -> DatasetMemory:
    """Individuals with limits that are never reached."""
    columns: dict[str, Any] = {f"c{n}": {"type": "integer", "lower": 0, "upper": 100} for n in range(FEATURES)}
    table = {"kind": "individuals", "key": "key", "columns": columns | {"member": {"type": "boolean"}}}
    memory, source = DatasetMemory(Schema.model_validate({"people": table})), np.random.default_rng(1)
    memory.grow(people)
    codes = {
        name: source.integers(0, coding.span, people, dtype=coding.dtype, endpoint=True)
        for name, coding in memory.codings["people"].items()
    }
    memory.add_individuals(np.arange(people), with_digests(codes, range(people)), np.full(people, LIMIT_UNITS_MAX))
    return memory


def clipped_step(features: Reals, target: NDArray[np.unsignedinteger[Any]], parameters: Reals) -> Reals:
    """The sum (features,) of clipped gradients, as numpy adds it up."""
    errors = 1 / (1 + np.exp(-(features @ parameters))) - target
    lengths = np.abs(errors) * np.sqrt(np.einsum("ij,ij->i", features, features))
    errors *= np.minimum(1, 1 / np.maximum(lengths, 1e-12))
    summed: Reals = features.T @ errors
    return summed


if __name__ == "__main__":
    if not ONE_THREAD.items() <= os.environ.items():
        command = [sys.executable, "-m", "loadtests.bench_learning", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | ONE_THREAD)  # noqa: S606 - itself, no shell
    print(json.dumps({name: round(value, 3) for name, value in run(*map(int, sys.argv[1:])).items()}, indent=1))
