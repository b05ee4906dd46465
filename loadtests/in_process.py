"""Queries evaluated in this process, as the service evaluates them, and medians of calls that run in turn."""

import json
import os
import time
from collections.abc import Callable, Mapping
from statistics import median

import numpy as np
from numpy.typing import NDArray

from service.core.noise import rounded_gaussian
from service.core.release import Release, answer
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.parse import parse_query
from service.query.plan import compile_query


def asked(
    memory: DatasetMemory, query: Mapping[str, object], *, sigma: float, capacity: int, budget_units: int
) -> Callable[[], Release]:
    """A function that asks a compiled query: contributions, charges, filter, debits, sum and noise.

    `sigma` is that of a query which states no noise.
    """
    body = {"version": 1, "noise": {"sigma": sigma}} | dict(query)
    plan = compile_query(
        parse_query(json.dumps(body).encode()), memory.schema, capacity=capacity, budget_units=budget_units
    )
    contributions(plan, memory)  # asks for its indexes and tallies, which no query makes
    memory.prepare()
    memory.take_prepared()
    return lambda: answer(
        contributions(plan, memory),
        memory.accounts,
        plan.terms,
        noise=rounded_gaussian(plan.dimension, plan.scale.law.size_steps, drawn),
    )


def medians_ms(*calls: Callable[[], object], rounds: int) -> list[float]:
    """The median processor time of each call, all of them in turn, so that a busy machine slows all alike."""
    times_ms: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for call, taken in zip(calls, times_ms, strict=True):
            start = time.thread_time()
            call()
            taken.append((time.thread_time() - start) * 1000)
    return [median(taken[1:]) for taken in times_ms]  # the first one warms up


def drawn(count: int) -> NDArray[np.uint64]:
    """Random words of the operating system."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
