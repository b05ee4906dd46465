"""A step of a softmax regression on vectors, beside numpy on doubles that are there already; and a load of vectors.

    python -m loadtests.bench_vectors [lengths ...]

There are 60,000 individuals with a vector of each length, and ten classes. `step_ms` is the median processor time of a
gradient in process, with charges, filter and noise. `numpy_ms` is that of the same step of numpy, clipped in doubles
without charges; the two run in turn on one thread. `ratio` is their quotient.

For the first length, `http_ms` is the wall time of a step without slots, with its parameters as an array, from the
request to the whole answer. `engine_ms` is that of the step in process, and `http_ratio` their quotient. `load_s` is
the wall time in which the vectors of the last length are read from Postgres and put into memory, as at a start.
"""

import io
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from loadtests.bench_learning import ONE_THREAD
from loadtests.bench_steps import NPZ, WITHOUT_SLOTS, alternately_ms, answered, register
from loadtests.in_process import asked, medians_ms
from loadtests.rig import Rig, arrow_bytes, serving, throw_away_home
from service.core.charge import LIMIT_UNITS_MAX
from service.embedded import EmbeddedPostgres
from service.engine.memory import DatasetMemory
from service.query.schema import Schema
from service.store.postgres.store import PostgresStore
from tests.digests import with_digests

PEOPLE: Final = 60_000
CLASSES: Final = 10
LENGTHS: Final = (784, 3_969)
ROUNDS: Final = 5
AT_ONCE: Final = 15_000
"""How many individuals one upload has, whose memory is bounded."""
STEP: Final = 2.0**-8
Reals = NDArray[np.float64]


def run(lengths: tuple[int, ...] = LENGTHS) -> dict[str, float]:
    """Measure the steps by length, and the load."""
    figures: dict[str, float] = {}
    for length in lengths:
        figures |= {f"{length}_{name}": each for name, each in steps(length).items()}
    figures |= {f"{lengths[0]}_{name}": each for name, each in over_http(lengths[0]).items()}
    return figures | {"load_s": load_s(lengths[-1])}


def table_of(length: int) -> dict[str, Any]:
    """The table of individuals."""
    vector = {"type": "vector", "length": length, "lower": 0, "upper": 255, "step_log2": -8}
    columns = {"image": vector, "digit": {"type": "category", "size": CLASSES}}
    return {"kind": "individuals", "key": "key", "columns": columns}


def codes_of(length: int) -> dict[str, NDArray[np.uint8]]:
    """Everybody's vector, which begins with its mark, and digit."""
    source = np.random.default_rng(1)
    image = source.integers(0, 256, (PEOPLE, length + 1), dtype=np.uint8)
    image[:, 0] = 1
    return {"image": image, "digit": source.integers(0, CLASSES, PEOPLE, dtype=np.uint8)}


def step_at(parameters: object) -> dict[str, Any]:
    """A softmax gradient within a clip, at these parameters."""
    features, loss = [{"vector": "image"}], "softmax"
    gradient = {"loss": loss, "target": "digit", "features": features, "parameters": parameters, "intercept": True}
    return {"select": [{"gradient": gradient}], "per_individual": {"l2_clip": 1}}


def parameters_of(length: int) -> Reals:
    """Parameters (classes, features); the last are those of the intercept."""
    return np.repeat(np.arange(CLASSES)[:, np.newaxis] / 100, length + 1, axis=1)


def engine_step(length: int, codes: dict[str, NDArray[np.uint8]]) -> Callable[[], object]:
    """A function that does a step in this process."""
    memory = DatasetMemory(Schema.model_validate({"people": table_of(length)}))
    memory.grow(PEOPLE)
    memory.add_individuals(np.arange(PEOPLE), with_digests(codes, range(PEOPLE)), np.full(PEOPLE, LIMIT_UNITS_MAX))
    query = step_at(parameters_of(length).tolist())
    return asked(memory, query, sigma=1000.0, capacity=PEOPLE, budget_units=2**40)


def steps(length: int) -> dict[str, float]:
    """Measure a step of the service, and one of numpy."""
    codes = codes_of(length)
    features = np.hstack([codes["image"][:, 1:] * STEP, np.ones((PEOPLE, 1))])
    targets = np.eye(CLASSES)[codes["digit"]]
    of_numpy = partial(clipped_step, features, targets, parameters_of(length))
    step_ms, numpy_ms = medians_ms(engine_step(length, codes), of_numpy, rounds=ROUNDS)
    return {"step_ms": step_ms, "numpy_ms": numpy_ms, "ratio": step_ms / numpy_ms}


def over_http(length: int) -> dict[str, float]:
    """Measure a step by a request, and by the engine here."""
    codes, body = codes_of(length), io.BytesIO()
    query = {"version": 1, "noise": {"sigma": 1000.0}, "reuse": False, **step_at("@theta")}
    np.savez(body, query=json.dumps(query), theta=parameters_of(length))
    with throw_away_home() as home, serving(home, environment=WITHOUT_SLOTS) as rig:
        upload(rig, length, codes)
        request = partial(answered, rig, "images", content=body.getvalue(), headers=NPZ)
        http_ms, engine_ms = alternately_ms(request, engine_step(length, codes), rounds=ROUNDS)
    return {"http_ms": http_ms, "engine_ms": engine_ms, "http_ratio": http_ms / engine_ms}


def clipped_step(features: Reals, targets: Reals, parameters: Reals) -> Reals:
    """The sum (classes, features) of clipped gradients, as numpy adds it up."""
    arguments = features @ parameters.T
    errors = np.exp(arguments - arguments.max(axis=1, keepdims=True))
    errors /= errors.sum(axis=1, keepdims=True)
    errors -= targets
    squares = np.einsum("ij,ij->i", errors, errors) * np.einsum("ij,ij->i", features, features)
    errors *= np.minimum(1, 1 / np.sqrt(np.maximum(squares, 1e-24)))[:, None]
    summed: Reals = errors.T @ features
    return summed


def upload(rig: Rig, length: int, codes: dict[str, NDArray[np.uint8]]) -> None:
    """Register the dataset `images` and upload its rows."""
    images = pa.FixedSizeListArray.from_arrays(pa.array(codes["image"][:, 1:].reshape(-1)), length)
    keys = pa.array([f"p{n}" for n in range(PEOPLE)])
    sent = pa.table({"key": keys, "image": images, "digit": pa.array(codes["digit"])})
    register(rig, "images", table_of(length), PEOPLE, sent.slice(0, AT_ONCE))
    for first in range(AT_ONCE, PEOPLE, AT_ONCE):
        rig.curator.post(
            "/v1/datasets/images/tables/people/rows",
            content=arrow_bytes(sent.slice(first, AT_ONCE)),
            headers={"Content-Type": "application/vnd.apache.arrow.stream"},
        ).raise_for_status()


def load_s(length: int) -> float:
    """The seconds in which vectors get from the database into memory."""
    with throw_away_home() as home, serving(home, environment=WITHOUT_SLOTS) as rig:
        upload(rig, length, codes_of(length))
        store = PostgresStore(str(EmbeddedPostgres(home).attach()), bytes(32))
        (record,) = store.datasets()
        began = time.monotonic()
        with store.transaction(record.id, lock=False) as transaction:
            memory = DatasetMemory(record.schema)
            slots, held = transaction.records("people")
            memory.add_individuals(slots, held, np.full(slots.size, LIMIT_UNITS_MAX))
        taken_s = time.monotonic() - began
        if memory.people.vectors["image"].kept_bytes < PEOPLE * length:
            raise RuntimeError("not all vectors were loaded")
        store.close()
        return taken_s


if __name__ == "__main__":
    if not ONE_THREAD.items() <= os.environ.items():
        command = [sys.executable, "-m", "loadtests.bench_vectors", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | ONE_THREAD)  # noqa: S606 - itself, no shell
    asked_for = tuple(map(int, sys.argv[1:])) or LENGTHS
    print(json.dumps({name: round(value, 3) for name, value in run(asked_for).items()}, indent=1))
