"""A process that stands still while others go on, and then wakes up believing that it is still its turn.

With SPARING_RELEASE_SLOT_MS=0 (`Nursery.start`): both work on the dataset, and no lease keeps them apart.
"""

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from service.failpoints import POINTS
from tests.faults.killing import Servers
from tests.faults.load import Crowd
from tests.faults.scenario import Stage, fresh_at, in_turn
from tests.waiting import PATIENCE_S

# After so long Postgres takes the lock away: not much, and yet more than a busy machine makes a healthy process wait.
IMPATIENT = {"SPARING_IDLE_TRANSACTION_TIMEOUT_MS": "1500"}
# A start has every dataset witnessed, for which it takes the lock of the dataset's file for a moment.
# From a process that stands still nothing takes that lock away.
STARTING_S = 0.5


def stop_at(stage: Stage, servers: Servers, place: str, stops: int) -> int:
    """One replica stops at a place, the other answers the same key and another one, the first wakes up. The stops."""
    is_durable = POINTS.index(place) >= POINTS.index("acknowledged")
    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        awake = stack.enter_context(servers.replica(environment=IMPATIENT))
        for number in range(stops):
            key, question = f"{place}-{number}", in_turn(fresh_at(place), POINTS.index(place), number, count=stops)
            drill = {"CHAOS": "1", "CHAOS_AT": f"{place}:stop:1"}
            stopped = stack.enter_context(servers.replica(environment=IMPATIENT | drill))
            time.sleep(STARTING_S)
            late = pool.submit(stage.insist, stopped.url, key, question)
            stopped.await_stop()
            assert (stage.stored(key) is not None) == is_durable
            stage.insist(awake.url, f"{key}-other", question)
            first = stage.insist(awake.url, key, question)
            stopped.send(signal.SIGCONT)
            assert late.result(timeout=PATIENCE_S) == first
    return stops


def stop_under_load(stage: Stage, servers: Servers, stops: int, seed: int) -> int:
    """Two replicas under load, one or the other of which stands still for a moment at any instant. The stops."""
    source = random.Random(seed)
    crowd = Crowd(stage, "paused")
    with ExitStack() as stack:
        replicas = [stack.enter_context(servers.replica(environment=IMPATIENT)) for _ in range(2)]
        crowd.urls = [replica.url for replica in replicas]
        crowd.start()
        try:
            for _ in range(stops):
                replica = source.choice(replicas)
                time.sleep(source.uniform(0, 0.1))
                replica.send(signal.SIGSTOP)
                time.sleep(source.uniform(0.05, 0.5))
                replica.send(signal.SIGCONT)
        finally:
            crowd.finish()
    return stops
