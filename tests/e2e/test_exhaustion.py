"""One analyst against all others: requests that are small to send and large to answer, and worst cases beyond count.

The attacks are a tenth of what once took 10 GB and a minute from everybody; `loadtests/attack_memory.py` has them
whole.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from loadtests.attack_memory import ATTACKS, COUNT, LARGE, NUMBERS, PATH, Honest, Scene, prepared
from tests.e2e.homes import Homes
from tests.e2e.http_calls import client
from tests.e2e.processes import new_key, served
from tests.waiting import PATIENCE_S, until

QUERIES = 16
MEMORY_BYTES = 300 * 2**20
"""The bound on queries, and on uploads: one principal has room for one of the large queries, and not for two."""


@pytest.fixture(scope="module")
def scene(homes: Homes) -> Iterator[Scene]:
    """One worker with little memory to give away."""
    home = homes.begun()
    with served(home, SPARING_MEMORY_BYTES_MAX=str(2 * MEMORY_BYTES)) as running:
        with client(running.url, new_key(home, "curator")) as curator:
            scene = prepared(running.url, running.process.pid, curator)
        yield scene


@pytest.mark.parametrize("attack", ["in_a_batch", "closed_at_once", "read"])
def test_large_answers_take_bounded_memory_and_nothing_from_others(scene: Scene, attack: str) -> None:
    """The peak of resident memory grows by less than is configured; an honest analyst is answered all the while."""
    scene.forget_peak()
    before = scene.peak_bytes()
    with scene.honest_beside() as honest:
        ATTACKS[attack](scene, QUERIES)
        until(lambda: honest.taken_s)
    assert scene.peak_bytes() - before < MEMORY_BYTES
    check_honest(honest)


def test_an_answer_that_is_not_read_still_counts(scene: Scene) -> None:
    """While one is on its way to a client that takes nothing, its principal has no room for another; others have.

    Once that client has gone, there is room again.
    """
    (silent,) = scene.wires(1)
    with client(scene.url, scene.attacker) as attacker, scene.honest_beside() as honest:
        # Which is asked after its slots.
        until(lambda: dimension_of_latest(attacker) == NUMBERS, patience_s=PATIENCE_S)
        assert asked(attacker, LARGE).status_code == 429
        silent.close()
        until(lambda: asked(attacker, LARGE).status_code == 200)
    check_honest(honest)


def test_worst_cases_beyond_count_end_nothing(scene: Scene) -> None:
    """Two queries whose worst cases overflow together are answered, and so is everybody after them."""
    beyond = {**COUNT, "per_individual": {"l2_clip": 0.5}, "noise": {"sigma": 1.2e-9}}
    with client(scene.url, scene.attacker) as attacker, scene.honest_beside() as honest:
        answers = [asked(attacker, question) for question in (beyond, beyond, COUNT)]
    assert [answer.status_code for answer in answers] == [200] * 3
    check_honest(honest)


def check_honest(honest: Honest) -> None:
    """It was answered, each time within the patience of its client, and never refused."""
    assert honest.taken_s
    assert honest.refused == []


def asked(analyst: httpx.Client, question: dict[str, Any]) -> httpx.Response:
    """One query under a new key."""
    return analyst.post(PATH, json=question, headers={"Idempotency-Key": uuid4().hex})


def dimension_of_latest(analyst: httpx.Client) -> int | None:
    """How many numbers the analyst's last release has."""
    items = analyst.get("/v1/queries", params={"limit": 1}).json()["items"]
    return items[0]["dimension"] if items else None
