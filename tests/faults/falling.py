"""Clients that insist on their keys while what answers them falls, again and again."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from service.store.postgres.registrations import migrate
from tests.faults.load import Crowd
from tests.faults.machine import Disk, Machine
from tests.faults.proxy import Cut, CuttingProxy
from tests.faults.scenario import Stage, staged
from tests.waiting import until

NOWHERE = "http://127.0.0.1:1"
QUESTIONS = 400
ANSWERS = 12


def lose_power(disk: Disk, machine: Machine, cuts: int, seed: int) -> Stage:
    """Cut after cut, each at another instant; after each, what was seen is compared with what is there."""
    source, database_url = random.Random(seed), machine.start_database()
    with staged(database_url, questions=QUESTIONS) as stage:
        with _crowd(stage, machine.start_replica(database_url)) as crowd:
            for _ in range(cuts):
                _await_answers(stage, source)
                machine.freeze()
                disk.cut(machine.kill)
                crowd.urls = [NOWHERE] * 2
                stage.move(machine.start_database())
                stage.audit(machine.witness)
                crowd.urls = [machine.start_replica(stage.database_url)] * 2
        stage.audit(machine.witness)
    return stage


def lose_database(machine: Machine, kills: int, seed: int) -> Stage:
    """Kill -9 all of Postgres, again and again, under a replica that stays."""
    source, database_url = random.Random(seed), machine.start_database()
    migrate(database_url)
    with CuttingProxy(database_url, lambda: Cut.NEVER) as proxy, staged(database_url, questions=QUESTIONS) as stage:
        with _crowd(stage, machine.start_replica(proxy.url)):
            for _ in range(kills):
                _await_answers(stage, source)
                machine.kill_database()
                stage.move(machine.start_database())
                proxy.aim(stage.database_url)
        stage.audit(machine.witness)
    return stage


@contextmanager
def _crowd(stage: Stage, url: str) -> Iterator[Crowd]:
    """Clients for the length of the block, each of which has its last answer at the end unless something failed."""
    crowd = Crowd(stage, "fall")
    crowd.urls = [url] * 2
    crowd.start()
    try:
        yield crowd
    except BaseException:
        crowd.abandon()
        raise
    crowd.finish()


def _await_answers(stage: Stage, source: random.Random) -> None:
    """Let some more answers be seen, and then any instant come."""
    enough = stage.answered() + ANSWERS
    until(lambda: stage.answered() >= enough)
    time.sleep(source.uniform(0, 0.1))
