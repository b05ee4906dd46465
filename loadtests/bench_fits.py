"""Release slots and a fit: a logistic step with slots and without, and a count on another connection meanwhile.

    python -m loadtests.bench_fits [people]

Two services hold the same individuals, with fifty whole numbers and a boolean. `slots_off_ms` and `slots_on_ms` are the
median times of one step, in turn, from the request to the whole answer; `slots_on_ratio` is their quotient. Then sparse
counts are asked one after the other of the service with slots: `count_alone_ms`, and `count_beside_ms` while another
connection asks for steps without a pause. The engine's own time of a step is in `bench_steps`.
"""

import json
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final

from loadtests.bench_learning import ONE_THREAD, QUERIES, made
from loadtests.bench_steps import WITHOUT_SLOTS, alternately_ms, answered, register_memory
from loadtests.rig import Rig, client, serving, throw_away_home

PEOPLE: Final = 100_000
STEPS: Final = 7
COUNTS: Final = 60
COUNT: Final = {"select": [{"count": {}}], "where": {"and": [{"eq": [{"col": f"c{n}"}, n]} for n in range(3)]}}


def run(people: int = PEOPLE) -> dict[str, float]:
    """Measure both services."""
    memory = made(people)
    with ExitStack() as stack:
        rigs = []
        for environment in (WITHOUT_SLOTS, ONE_THREAD):
            rig = stack.enter_context(serving(stack.enter_context(throw_away_home()), environment=environment))
            register_memory(rig, "fits", memory, people)
            rigs.append(rig)
        slots_off_ms, slots_on_ms = alternately_ms(*(partial(step, rig) for rig in rigs), rounds=STEPS)
        figures = {"slots_off_ms": slots_off_ms, "slots_on_ms": slots_on_ms}
        return figures | {"slots_on_ratio": slots_on_ms / slots_off_ms} | counts_ms(rigs[1])


def step(rig: Rig) -> None:
    """Ask for one gradient."""
    ask(rig, QUERIES["logistic"], sigma=1000.0)


def ask(rig: Rig, query: Mapping[str, Any], *, sigma: float) -> None:
    """Ask one query that is charged."""
    answered(rig, "fits", json={"version": 1, "noise": {"sigma": sigma}, "reuse": False, **query})


def counts_ms(rig: Rig) -> dict[str, float]:
    """Measure counts alone, and beside a fit on another connection."""
    one = partial(ask, rig, COUNT, sigma=5000.0)
    (alone_ms,) = alternately_ms(one, rounds=COUNTS)
    ended = threading.Event()
    thread = threading.Thread(target=fit, args=(rig, ended))
    thread.start()
    try:
        (beside_ms,) = alternately_ms(one, rounds=COUNTS)
    finally:
        ended.set()
        thread.join()
    return {"count_alone_ms": alone_ms, "count_beside_ms": beside_ms}


def fit(rig: Rig, ended: threading.Event) -> None:
    """Ask for one step after the other until the end."""
    with client(rig.url, rig.analyst.headers["Authorization"].removeprefix("Bearer ")) as analyst:
        beside = replace(rig, analyst=analyst)
        while not ended.is_set():
            step(beside)


if __name__ == "__main__":
    print(json.dumps({name: round(value, 3) for name, value in run(*map(int, sys.argv[1:])).items()}, indent=1))
