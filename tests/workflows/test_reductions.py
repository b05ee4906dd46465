"""Queries for the maximum or the norm of a vector sum, from the request to receipts, verification and what-if."""

from collections.abc import Iterator
from decimal import Decimal
from math import isqrt, sqrt
from typing import Any

import numpy as np
import orjson
import pytest
from scipy import stats

from service.accounting.accountings import PURE, Accounting
from service.core.charge import UNITS_PER_RHO, worst_case_units
from service.core.laplace import laplace_worst_case_units
from service.ledger.model.errors import InvalidRequest
from service.maintenance.what_if import what_if
from service.workflows.replica import Replica
from tests.factories import analyst, ask, individual_named, open_replica, register, upload, values
from tests.memory.shards import MemoryShards, dividing
from tests.memory.store import MemoryStore
from tests.workflows.accountings import ACCOUNTINGS, NAMES, registered_under
from tests.workflows.surveys import entries_of, findings

PEOPLE = [("ann", "NO", 44, 10), ("bob", "SE", 4, 3), ("eve", "NO", 70, 0)]
VISITS = [("ann", 3), ("ann", 4), ("ann", 4), ("ann", 4), ("bob", 4), ("bob", 5), ("eve", 3)]
VECTORS = {"ann": {3: 1, 4: 3}, "bob": {4: 1, 5: 1}, "eve": {3: 1}}
HISTOGRAM: dict[str, Any] = {
    "from": "visits",
    "select": [{"histogram": {"column": "item"}}],
    "per_individual": {"l2_clip": 64},
}


def filled(replica: Replica, accounting: Any = "gdp", **more: Any) -> None:
    """Three people, and their visits."""
    register(replica, **registered_under(accounting) | more)
    upload(replica, "people", PEOPLE)
    upload(replica, "visits", VISITS)


@pytest.fixture(params=ACCOUNTINGS, ids=NAMES)
def opened(request: pytest.FixtureRequest) -> Iterator[tuple[MemoryStore, Replica, Accounting]]:
    """A dataset under each accounting."""
    stated, accounting = request.param
    store = MemoryStore()
    with open_replica(store) as replica:
        filled(replica, stated)
        yield store, replica, accounting


def spent_units(replica: Replica, name: str) -> int:
    """The spent total of an individual."""
    (own,) = replica.individuals.budgets(individual_named(replica, name))
    return int(Decimal(own.spent_rho) * UNITS_PER_RHO)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("function", ["max", "norm"])
def test_each_is_charged_for_what_its_vector_can_change(
    opened: tuple[MemoryStore, Replica, Accounting], function: str, mechanism: str
) -> None:
    """The largest count, or the length rounded up to a step and one; Laplace noise by the accounting's prices."""
    store, replica, accounting = opened
    noise = {"scale": 500.0} if mechanism == "laplace" else {"sigma": 500.0}
    query = HISTOGRAM | {"reduce": function, "mechanism": mechanism, "noise": noise}
    if accounting is PURE and mechanism == "gaussian":
        with pytest.raises(InvalidRequest, match=r"^mechanism: gaussian has no finite charge in this dataset"):
            ask(replica, analyst(replica), "a", **query)
        return
    found = orjson.loads(ask(replica, analyst(replica), "a", **query).body)
    assert (found["dimension"], len(found["values"])) == (1, 1)
    assert found["labels"] == [{"select": f"{function}(histogram(item)) of 50"}]
    (entry,) = entries_of(store)
    steps = int(2.0**-entry.grid_log2)
    assert found["grid"] == 2.0**entry.grid_log2
    assert 64 * steps >= 2**18
    scale = 500.0 * steps
    for name, vector in VECTORS.items():
        counts = [count * steps for count in vector.values()]
        charged = max(counts) if function == "max" else isqrt(sum(count**2 for count in counts) - 1) + 2
        price = worst_case_units(charged**2, scale)
        if mechanism == "laplace":
            price = laplace_worst_case_units(charged**2, scale, accounting.laplace_prices)
        assert spent_units(replica, name) == price > 0


def test_the_number_is_that_of_the_sum_of_the_active() -> None:
    """A maximum of 4 and a norm of sqrt(4 + 16 + 1), within the noise; without bob, who has paused, 3 and sqrt(13)."""
    with open_replica(MemoryStore()) as replica:
        filled(replica, guarantee={"rho": "50000"})
        who, found = analyst(replica), []
        for number in range(2):
            for function in ("max", "norm"):
                query = HISTOGRAM | {"reduce": function, "noise": {"sigma": 0.05}, "reuse": False}
                found += values(ask(replica, who, f"{function}{number}", **query))
            replica.individuals.lower_limit(individual_named(replica, "bob"), "survey", pause=True)
    assert found == pytest.approx([4, sqrt(21), 3, sqrt(13)], abs=5 * 0.05)


def test_a_reduced_query_is_verified_and_supposed_anew() -> None:
    """Entries say the query, and price by what they keep: nothing in the ledger is of another kind."""
    store = MemoryStore()
    with open_replica(store) as replica:
        filled(replica)
        for function in ("max", "norm"):
            for mechanism in ("gaussian", "laplace"):
                noise = {"scale": 90.0} if mechanism == "laplace" else {"sigma": 90.0}
                ask(
                    replica,
                    analyst(replica, function + mechanism),
                    "k",
                    **HISTOGRAM | {"reduce": function, "mechanism": mechanism, "noise": noise},
                )
        assert findings(store) == []
        spent = {name: spent_units(replica, name) for name in VECTORS}
        found = what_if(store, "survey")
        assert found.kept == found.kept_here == 3 * 4
    with open_replica(store) as again:
        assert {name: spent_units(again, name) for name in VECTORS} == spent


def test_a_reduced_answer_is_reused_and_kept_apart_from_the_sum() -> None:
    """The function asked again is free; the other one, and the sum, are other queries."""
    store = MemoryStore()
    with open_replica(store) as replica:
        filled(replica)
        who, query = analyst(replica), HISTOGRAM | {"noise": {"sigma": 90.0}}
        first = ask(replica, who, "a", **query, reduce="max")
        again = ask(replica, who, "b", **query, reduce="max")
        assert values(first) == values(again)
        assert orjson.loads(again.body)["reused"]
        for key, more in (("c", {"reduce": "norm"}), ("d", {}), ("e", {"reduce": None})):
            ask(replica, who, key, **query | more)
    assert [entry.dimension for entry in entries_of(store)] == [1, 1, 50]


@pytest.mark.parametrize("rule", ["skip", "drop"])
def test_who_cannot_pay_is_left_out_of_the_number(rule: str) -> None:
    """By its own charge: ann's vector is the longest; under `drop` she is left out of what she could pay for too."""
    store = MemoryStore()
    with open_replica(store) as replica:
        filled(replica, rule=rule)
        who = analyst(replica)
        ask(replica, who, "a", **HISTOGRAM | {"reduce": "max", "noise": {"sigma": 8.0}})  # 3 of 8 cost .07 of .036
        ask(replica, who, "b", **HISTOGRAM | {"reduce": "norm", "noise": {"sigma": 100.0}})
    counts = [(entry.charged_count, entry.left_out_count) for entry in entries_of(store)]
    assert counts == [(2, 1), (3, 0) if rule == "skip" else (2, 1)]


@pytest.mark.parametrize("function", ["max", "norm"])
def test_any_number_of_shards_gives_the_same_bytes(function: str) -> None:
    """The sum of the shards' vectors is reduced, and each shard charges its own people for what they can change."""
    found = []
    for count in (1, 2, 3):
        store = MemoryStore()
        with open_replica(store, options=dividing(MemoryShards(), count)) as replica:
            filled(replica)
            body = ask(
                replica, analyst(replica), "a", **HISTOGRAM | {"reduce": function, "noise": {"sigma": 50.0}}
            ).body
            spent = {name: spent_units(replica, name) for name in VECTORS}
        (entry,) = entries_of(store)
        found.append((orjson.loads(body)["values"], entry.values, entry.pieces, entry.charged_units, spent))
    assert found[0] == found[1] == found[2]


def test_the_maximum_of_many_noisy_counts_is_too_high_and_the_noisy_maximum_is_not() -> None:
    """The largest of 10^5 noisy counts of zero is at 4.4 sigma; the noisy maximum has one noise of sigma."""
    size, sigma = 100_000, 1000.0
    tables = {"people": {"kind": "individuals", "key": "id", "columns": {"place": {"type": "category", "size": size}}}}
    with open_replica(MemoryStore()) as replica:
        register(replica, rho="1", tables=tables)
        who = analyst(replica)
        query: dict[str, Any] = {"select": [{"histogram": {"column": "place"}}], "noise": {"sigma": sigma}}
        noisy = values(ask(replica, who, "a", **query))
        numbers = [
            values(ask(replica, who, f"k{number}", **query, reduce="max", reuse=False))[0] for number in range(40)
        ]
    assert max(noisy) / sigma == pytest.approx(expected_maximum(size), abs=1.2)
    assert abs(np.mean(numbers)) < 4 * sigma / sqrt(40)
    assert stats.kstest(numbers, stats.norm(0, sigma).cdf).pvalue > 1e-4


def expected_maximum(size: int) -> float:
    """The mean of the largest of so many standard normal numbers, by its distribution function."""
    grid = np.linspace(-10, 10, 400_001)
    above = -np.expm1(size * stats.norm.logcdf(grid))
    step = grid[1] - grid[0]
    return float(step * (above[grid >= 0].sum() - (1 - above[grid < 0]).sum()))


def test_the_expected_maximum() -> None:
    """4.384 sigma for 10^5 counts, as the page of the language says."""
    assert expected_maximum(100_000) == pytest.approx(4.384, abs=1e-3)
    assert expected_maximum(10_000) == pytest.approx(3.852, abs=1e-3)
