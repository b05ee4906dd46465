"""An observer of Redis sees the same names and as many values and notices in worlds that differ in one person."""

from collections.abc import Sequence
from typing import Any

import pytest

from service.store.redis.sealed import Item, SealedCache, Swap
from service.workflows.replica import ReplicaOptions
from tests.factories import ask, open_replica, register, upload
from tests.memory.cache import MemoryKeyValueStore, MemoryServer
from tests.waiting import until
from tests.workflows.replicas import analyst_like

PEOPLE = [(f"p{n}", "NO" if n % 3 else "SE", 20 + n, n) for n in range(30)]
QUESTIONS = 12


class Watched(MemoryKeyValueStore):
    """A key-value store that remembers what was laid on it, and says that another replica listens."""

    def __init__(self) -> None:
        super().__init__(MemoryServer())
        self.names: list[str] = []
        self.round_trips = 0

    def put(self, items: Sequence[Item], swaps: Sequence[Swap], messages: Sequence[bytes]) -> None:
        self.names += [*(name for name, _ in items), *(name for name, _, _ in swaps)]
        self.round_trips += len(messages)

    def audience(self) -> int:
        return 2


def watched(people: Sequence[Sequence[object]]) -> list[str]:
    """Every name that was seen while the same queries were asked about these people, until they could not pay."""
    values = Watched()
    with open_replica(options=ReplicaOptions(cache=SealedCache(values, bytes(32)))) as replica:
        register(replica, rho="0.5")
        upload(replica, "people", people)
        who = analyst_like(replica.principals.create(role="analyst", name="ana")[0], 7)
        everybody: dict[str, Any] = {"noise": {"sigma": 2.0}, "reuse": False}
        swedes = everybody | {"where": {"eq": [{"col": "country"}, "SE"]}}
        for n in range(QUESTIONS):
            ask(replica, who, f"k{n}", **(swedes if n % 2 else everybody))
        until(lambda: len(values.names) >= QUESTIONS)
        assert values.round_trips >= 1
    return sorted(values.names)


@pytest.mark.parametrize("without", [0, 17, 29])
def test_one_person_changes_no_name_and_no_number_of_values(without: int) -> None:
    """With and without that person, and for every active set."""
    absent = [row for n, row in enumerate(PEOPLE) if n != without]
    assert watched(PEOPLE) == watched(absent)


def test_another_question_would_be_seen() -> None:
    """The comparison is of something."""
    names = watched(PEOPLE)
    assert len(set(names)) == len(names) == QUESTIONS
