"""Connections that end around COMMIT: the outcome is read, never guessed, and no noise is drawn for it again."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import orjson
from numpy.typing import NDArray

from service.ledger.model.errors import Unavailable
from service.query.parse import parse_query
from service.store.entropy import system_entropy
from service.workflows.replica import Replica
from tests.faults.history import Attempt
from tests.faults.proxy import Cut, CuttingProxy
from tests.faults.scenario import NAMES, QUESTIONS, Stage, open_replica
from tests.waiting import PATIENCE_S

CUTS = (Cut.BEFORE, Cut.WITHIN, Cut.SENT, Cut.REPLIED, Cut.AFTER)


@dataclass(slots=True)
class CountedEntropy:
    """The system's entropy; an execution draws twice, once for its noise and once for id and salt."""

    draws: int = 0

    def __call__(self, count: int) -> NDArray[np.uint64]:
        self.draws += 1
        return system_entropy(count)

    @property
    def executions(self) -> int:
        """How many queries were evaluated."""
        return self.draws // 2


@dataclass(slots=True)
class Plan:
    """The proxy's fault at the next COMMIT of an answer, once."""

    cut: Cut = Cut.NEVER
    done: int = 0
    door: threading.Lock = field(default_factory=threading.Lock)

    def decide(self) -> Cut:
        """Hand the cut out."""
        with self.door:
            cut, self.cut = self.cut, Cut.NEVER
            self.done += cut is not Cut.NEVER
        return cut


@dataclass(slots=True, kw_only=True)
class Asker:
    """A client inside this process, with the memory of what it saw."""

    stage: Stage
    replica: Replica

    def ask(self, key: str, question: str) -> bytes | None:
        """The answer's bytes, or None for a 503."""
        started = time.monotonic()
        query = parse_query(orjson.dumps(QUESTIONS[question].query))
        future = self.replica.analysts.submit(self.stage.analyst, self.stage.dataset, key, query)
        try:
            body = future.result(timeout=PATIENCE_S).body
        except Unavailable:
            self.stage.attempts.append(Attempt(key=key, question=question, started=started, status=503))
            return None
        self.stage.attempts.append(
            Attempt(
                key=key,
                question=question,
                started=started,
                seen_at=time.monotonic(),
                status=200,
                body=body,
                complete=True,
            )
        )
        return body

    def insist(self, key: str, question: str) -> bytes:
        """Ask under one key until the answer comes."""
        for _ in range(100):
            body = self.ask(key, question)
            if body is not None:
                return body
        raise TimeoutError(f"{key} is never answered")


def cut_one_by_one(stage: Stage, cut: Cut, trials: int) -> int:
    """One query for each cut: what was durable comes back with its bytes, what was not executes once.

    Returns in how many trials the transaction had become durable.
    """
    durable = 0
    plan, entropy = Plan(), CountedEntropy()
    with CuttingProxy(stage.database_url, plan.decide) as proxy, open_replica(proxy.url, entropy) as (_, replica):
        asker = Asker(stage=stage, replica=replica)
        for number in range(trials):
            key, question = f"{cut.name}-{number}", NAMES[number % len(NAMES)]
            before = entropy.executions
            plan.cut = cut
            first = asker.ask(key, question)
            drawn = entropy.executions - before
            stored = stage.stored(key)
            again = asker.insist(key, question)
            assert (first is None) == (stored is None), f"{cut}: {first!r}, {stored}"
            assert first is None or first == again
            durable += stored is not None
            fresh = not orjson.loads(again)["reused"]
            assert drawn == fresh, "one attempt is one execution"
            assert entropy.executions - before == drawn + (fresh and stored is None), "noise was drawn for a stored key"
    assert plan.done == trials
    return durable


def cut_in_a_crowd(stage: Stage, cuts: int, clients: int, seed: int) -> int:
    """Cuts of every kind while many ask at once, so that one COMMIT carries several answers. Returns the cuts."""
    plan, entropy, source = Plan(), CountedEntropy(), random.Random(seed)
    with CuttingProxy(stage.database_url, plan.decide) as proxy, open_replica(proxy.url, entropy) as (_, replica):
        asker = Asker(stage=stage, replica=replica)
        with ThreadPoolExecutor(clients) as pool:
            for number in range(cuts):
                plan.cut = source.choice(CUTS)
                keys = [f"crowd-{number}-{client}" for client in range(clients)]
                list(pool.map(asker.insist, keys, [source.choice(NAMES) for _ in keys]))
    return plan.done
