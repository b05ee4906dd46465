"""The part of a division that an individual is in, from uploads on: by its key, whatever becomes of its record."""

from typing import Any

import orjson
import pytest

from service.ledger.model.views import Principal
from service.ledger.ports.store import Store
from service.workflows.replica import Replica
from tests.digests import SALT
from tests.factories import SeededEntropy, analyst, ask, open_replica, register, upload
from tests.workflows.surveys import on_both_stores

PARTS = 4
PEOPLE = [[f"p{number}", "NO", 30 + number, 500] for number in range(12)]


def parts(replica: Replica, ana: Principal, key: str) -> list[int]:
    """The part of each individual: it spends far more than the noise."""
    found = []
    for part in range(PARTS):
        where: dict[str, Any] = {"fold": {"seed": "a", "of": PARTS, "in": [part]}}
        query: dict[str, Any] = {"select": [{"sum": {"column": "spend"}}], "where": where, "reuse": False}
        by_age: dict[str, Any] = {"group_by": [{"bin": {"column": "age", "width": 1}}]}
        body = orjson.loads(ask(replica, ana, f"{key} {part}", **query, **by_age).body)
        found.append(body["values"])
    return [max(range(PARTS), key=lambda part: found[part][age]) for age in range(30, 30 + len(PEOPLE))]


@on_both_stores
def test_the_part_stays_through_corrections_erasures_and_returns(store: Store) -> None:
    """An individual that was erased and comes back is in the part that it was in; nobody is in two or in none."""
    with open_replica(store) as replica:
        register(replica, rho="1000000")
        ana = analyst(replica)
        upload(replica, "people", PEOPLE)
        before = parts(replica, ana, "before")
        replica.curators.correct("survey", "p3", {"country": "SE"})
        replica.curators.erase_individual("survey", "p5")
        upload(replica, "people", [PEOPLE[5]])
        assert parts(replica, ana, "after") == before
    with open_replica(store, SeededEntropy(6)) as replica:  # read from the database, not worked out again
        replica.curators.new_salt = pytest.fail
        assert parts(replica, ana, "loaded") == before
        assert len({*before}) > 1
        assert replica.registry.record("survey").salt == SALT
