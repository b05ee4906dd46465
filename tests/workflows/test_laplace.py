"""Queries with Laplace noise under each accounting, from the request to receipts, verification and what-if."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from math import ceil, exp, log, sqrt
from typing import Any

import orjson
import pytest
from scipy import stats

from service.accounting.accountings import PURE, Accounting
from service.core.charge import UNITS_PER_RHO
from service.core.laplace import laplace_worst_case_units
from service.ledger.model.errors import InvalidRequest
from service.ledger.model.stated_guarantee import StatedGuarantee
from service.maintenance.supposed_replay import NoBudget
from service.maintenance.verify.report import verify_all
from service.maintenance.what_if import what_if
from service.workflows.replica import Replica
from tests.factories import analyst, ask, individual_named, open_replica, register, upload
from tests.memory.store import MemoryStore
from tests.workflows.accountings import ACCOUNTINGS, NAMES, registered_under
from tests.workflows.surveys import entries_of, findings, surveyed

PEOPLE = [("ann", "NO", 44, 10), ("bob", "SE", 4, 3), ("eve", "NO", 70, 0)]


@pytest.fixture(params=ACCOUNTINGS, ids=NAMES)
def opened(request: pytest.FixtureRequest) -> Iterator[tuple[MemoryStore, Replica, Accounting]]:
    """A dataset of three people under each accounting."""
    stated, accounting = request.param
    store = MemoryStore()
    with surveyed(store, PEOPLE, **registered_under(stated)) as replica:
        upload(replica, "visits", [("ann", 3), ("ann", 4), ("ann", 4), ("bob", 4)])
        yield store, replica, accounting


def asked(replica: Replica, key: str, **query: Any) -> dict[str, Any]:
    """An answer with Laplace noise."""
    found: dict[str, Any] = orjson.loads(ask(replica, analyst(replica, key), key, mechanism="laplace", **query).body)
    return found


def test_each_is_charged_the_price_of_its_own_number(opened: tuple[MemoryStore, Replica, Accounting]) -> None:
    """A count by one, a sum by the own value, events by their number; entries, receipts and accounts agree."""
    store, replica, accounting = opened
    prices = accounting.laplace_prices
    asked(replica, "a", noise={"scale": 50.0})
    asked(replica, "b", select=[{"sum": {"column": "age"}}], noise={"scale": 4000.0})
    asked(replica, "c", **{"from": "visits", "per_individual": {"l2_clip": 2.0}, "noise": {"scale": 100.0}})
    asked(replica, "d", select=[{"histogram": {"column": "country"}}], noise={"scale": 80.0})
    count, histogram = (laplace_worst_case_units(1, scale, prices) for scale in (50.0, 80.0))
    entries = entries_of(store)
    steps = 2.0 ** -entries[2].grid_log2
    expected = {
        "ann": [count, laplace_worst_case_units(44**2, 4000.0, prices), laplace_worst_case_units(4, 100.0, prices)],
        "bob": [count, laplace_worst_case_units(4**2, 4000.0, prices), laplace_worst_case_units(1, 100.0, prices)],
    }
    assert steps > 1
    assert {entry.mechanism for entry in entries} == {f"laplace {accounting.name}"}
    for name, charges in expected.items():
        person = individual_named(replica, name)
        receipts = replica.individuals.receipts(person, cursor=None, limit=9).items
        found = [int(Decimal(each.charged_rho or 0) * UNITS_PER_RHO) for each in reversed(receipts)]
        assert found[3] == histogram
        assert found[:2] == charges[:2]
        assert found[2] == pytest.approx(charges[2], rel=2e-4)  # on a grid that the clip spans in many steps
        (own,) = replica.individuals.budgets(person)
        assert int(Decimal(own.spent_rho) * UNITS_PER_RHO) == sum(found)
        assert own.unit == accounting.unit


def test_an_answer_states_its_noise(opened: tuple[MemoryStore, Replica, Accounting]) -> None:
    """Scale, standard deviation and half width; the longest number that the budget pays for."""
    _, replica, accounting = opened
    found = asked(replica, "a", noise={"scale": 50.0})
    assert (found["mechanism"], found["scale"]) == ("laplace", 50.0)
    assert found["sigma"] == pytest.approx(sqrt(2) * 50, rel=1e-15)
    assert found["half_width_95"] == ceil(50 * log(20) - 0.5)
    norm, budget = found["largest_countable_norm"], accounting.budget_units(epsilon=Decimal(1), delta=Decimal("1e-5"))
    prices = accounting.laplace_prices
    assert laplace_worst_case_units(int(norm) ** 2, 50.0, prices) <= budget
    assert laplace_worst_case_units((int(norm) + 1) ** 2, 50.0, prices) > budget
    who = analyst(replica, "b")
    ask(replica, who, "b", mechanism="laplace", noise={"scale": 50.0}, reuse=False)
    (release,) = replica.analysts.releases(who, cursor=None, limit=5).items
    assert release.sigma == found["sigma"]


@pytest.mark.parametrize(
    ("noise", "scale"), [({"sigma": 30.0}, 30 / sqrt(2)), ({"half_width": 50.0, "confidence": 0.9}, 50.5 / log(10))]
)
def test_other_precisions_give_a_scale(noise: dict[str, float], scale: float) -> None:
    """A standard deviation is sqrt(2) scales; half widths are by the law of Laplace noise, the grid included."""
    with surveyed(people=PEOPLE, **registered_under({"kind": "pure"})) as replica:
        found = asked(replica, "a", noise=noise)
    assert found["scale"] == pytest.approx(scale, rel=1e-12)
    if "confidence" in noise:
        assert 1 - exp(-(50 + 0.5) / found["scale"]) >= 0.9


def test_a_share_costs_what_it_says(opened: tuple[MemoryStore, Replica, Accounting]) -> None:
    """At most, and hardly less; the whole budget of pure differential privacy is spent by one answer at its scale."""
    _, replica, accounting = opened
    for share in (0.001, 0.1, 1.0):
        found = asked(replica, f"s{share}", noise={"share": share})
        assert share * (1 - 1e-4) < found["worst_case_share"] <= share
    if accounting is PURE:
        found = asked(replica, "all", noise={"scale": 1.0})
        assert found["worst_case_share"] == 1.0


def test_a_whole_budget_counts_everybody_once() -> None:
    """Epsilon 1 and a scale of the clip: the charge is the limit, exactly, and a second answer counts nobody."""
    store = MemoryStore()
    with surveyed(store, PEOPLE, **registered_under({"kind": "pure"})) as replica:
        first = asked(replica, "a", noise={"scale": 1.0})
        asked(replica, "b", noise={"scale": 1.0}, reuse=False)
    assert [entry.charged_count for entry in entries_of(store)] == [3, 0]
    assert first["coverage_certified"]


@pytest.mark.parametrize(
    ("stated", "given", "said"),
    [
        ({"kind": "pure"}, {"epsilon": "1", "delta": "1e-5"}, "of pure differential privacy is epsilon alone"),
        ({"kind": "pure"}, {"rho": "1"}, "of pure differential privacy is epsilon alone"),
        ("gdp", {"epsilon": "1"}, "state either epsilon and delta, or rho"),
        ({"kind": "zcdp"}, {"epsilon": "1"}, "state either epsilon and delta, or rho"),
    ],
)
def test_a_guarantee_of_another_accounting_is_refused(stated: Any, given: dict[str, str], said: str) -> None:
    """Epsilon without delta is of pure differential privacy alone."""
    with open_replica(MemoryStore()) as replica, pytest.raises(InvalidRequest, match=f"^guarantee: {said}"):
        register(replica, guarantee=given, accounting=stated)


def test_a_ledger_of_laplace_noise_under_another_accounting() -> None:
    """Its numbers are priced again; a Gaussian has no price under pure."""
    store = MemoryStore()
    with surveyed(store, PEOPLE, **registered_under("gdp")) as replica:
        for number in range(12):
            asked(replica, f"k{number}", noise={"scale": 10.0}, reuse=False)
        own = what_if(store, "survey")
        assert own.kept == own.kept_here == 3 * 4  # of .0359 each costs .0075
        pure = what_if(store, "survey", accounting=PURE, guarantee=epsilon_alone("1"))
        assert pure.kept == 3 * 9  # of 1 each costs .1, rounded up
        assert pure.largest_epsilon == pytest.approx(0.9, rel=1e-9)
        ask(replica, analyst(replica, "g"), "g")
        with pytest.raises(NoBudget, match="ledger row 13 is of a Gaussian, which has no finite charge under pure"):
            what_if(store, "survey", accounting=PURE, guarantee=epsilon_alone("1"))


def epsilon_alone(epsilon: str) -> StatedGuarantee:
    """The guarantee of pure differential privacy."""
    return StatedGuarantee(epsilon=Decimal(epsilon))


def test_the_noise_is_laplace_noise() -> None:
    """The 5,000 numbers are without people, tested by Kolmogorov and Smirnov; a Gaussian as wide is rejected."""
    tables = {"people": {"kind": "individuals", "key": "id", "columns": {"place": {"type": "category", "size": 5000}}}}
    with open_replica(MemoryStore()) as replica:
        register(replica, **registered_under({"kind": "pure"}), tables=tables)
        found = asked(replica, "a", select=[{"histogram": {"column": "place"}}], noise={"scale": 1000.0})
    assert stats.kstest(found["values"], stats.laplace(0, 1000.0).cdf).pvalue > 1e-4
    assert stats.kstest(found["values"], stats.norm(0, found["sigma"]).cdf).pvalue < 1e-6


def test_an_entry_that_another_accounting_has_priced_is_found() -> None:
    """Verification compares each entry's mechanism with the dataset's accounting, and its charges with the prices."""
    store = MemoryStore()
    with surveyed(store, PEOPLE, **registered_under({"kind": "zcdp"})) as replica:
        asked(replica, "a", noise={"scale": 10.0})
        ask(replica, analyst(replica, "b"), "b")
    assert findings(store) == []
    kept = store.kept[1]
    sound, *others = kept.entries
    for mechanism in ("laplace gdp", "laplace pure", "laplace", "discrete"):
        kept.entries = (replace(sound, mechanism=mechanism).sealed(), *others)
        (report,) = verify_all(store)
        said = f"says mechanism {mechanism}, which the accounting of its dataset does not price"
        assert {f"ledger row 1: {said}", "ledger row 1: its charges cannot be read"} & set(report.findings)
