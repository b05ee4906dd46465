"""A fit through a running service: its accounts, its ledger and the same charges worked out in this process."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clients.papers.tests.served_fits import fit_elsewhere
from service.accounting.accountings import GAUSSIAN
from sparing_papers.descent import area_under_curve
from sparing_papers.figure import DELTA
from sparing_papers.koskela_served import ACTIVE_SHARES, Asked, ServedFit, recomputed_units
from sparing_papers.tabular import BRACKETS, read_people, split

ROOT = Path(__file__).parents[3]
CERTIFIED = 12
PEOPLE, TESTS = split(read_people(), 1)
SOME = PEOPLE.of(np.arange(600))


@pytest.fixture(scope="module")
def fitted() -> ServedFit:
    """Six hundred people, and twice as many queries as use the budget up; a clip that shortens some gradients."""
    return fit_elsewhere(SOME, certified=CERTIFIED, clip=0.75)


def test_the_accounts_add_up_to_the_ledger(fitted: ServedFit) -> None:
    """Exactly in units: in sum, and individual by individual; and nobody has spent more than the limit."""
    assert int(fitted.ledger_by_slot.sum()) == int(fitted.spent_units.sum()) > int(fitted.spent_by_fit.sum()) > 0
    assert np.array_equal(fitted.ledger_by_slot, fitted.spent_units)
    assert fitted.spent_units.max() <= fitted.limit_units
    assert len(fitted.asked) == 2 * CERTIFIED


def test_each_charge_is_that_of_the_own_norm(fitted: ServedFit) -> None:
    """Released parameters give it within the bound of the service's rounding, a thousandth of what is spent."""
    spent, off = recomputed_units(SOME, fitted)

    assert (np.abs(fitted.spent_by_fit - spent) <= off).all()
    assert off.sum() < 2e-3 * spent.sum()
    is_exhausted = 1000 * (fitted.limit_units - fitted.spent_by_fit) < fitted.limit_units
    assert 20 < np.count_nonzero(is_exhausted) < 500
    assert (fitted.limit_units - fitted.spent_by_fit[is_exhausted] <= off[is_exhausted]).all()


@pytest.mark.parametrize("change", ["sigma", "clip", "step", "people"])
def test_another_charge_would_be_noticed(fitted: ServedFit, change: str) -> None:
    """A sigma larger by a percent, a clip by three, one query left out, or two individuals exchanged."""
    people, other = SOME, fitted
    if change == "sigma":
        other = replace(fitted, asked=[replace(each, sigma=1.01 * each.sigma) for each in fitted.asked])
    elif change == "clip":
        other = replace(fitted, clip=1.03 * fitted.clip)
    elif change == "step":
        other = replace(fitted, asked=fitted.asked[:-1])
    else:
        spent = fitted.spent_by_fit
        exchanged = np.arange(len(people))
        exchanged[[int(spent.argmin()), int(spent.argmax())]] = int(spent.argmax()), int(spent.argmin())
        people = people.of(exchanged)
    spent_otherwise, off = recomputed_units(people, other)

    assert (np.abs(fitted.spent_by_fit - spent_otherwise) > off).any()


def test_active_answers_what_the_accounts_say(fitted: ServedFit) -> None:
    """By bracket and share left, within six standard deviations of the noise; a wrong bracket would be beyond."""
    for active in fitted.active.values():
        assert len(active.answered) == len(active.counted) == len(BRACKETS)
        assert np.array(active.answered) == pytest.approx(np.array(active.counted), abs=3.1 * active.half_width)
        assert all(count <= of for count, of in zip(active.counted, np.bincount(SOME.bracket), strict=True))
    totals = [sum(fitted.active[share].counted) for share in ACTIVE_SHARES]
    assert totals == sorted(totals, reverse=True)
    assert 0 < totals[-1] < totals[0] < len(SOME)


def test_the_model_predicts(fitted: ServedFit) -> None:
    """Better than chance on others: its coefficients are in the order of our features."""
    assert area_under_curve(TESTS.features, TESTS.has_account, fitted.coefficients[None, :]) > 0.6


def test_a_charge_by_hand() -> None:
    """One individual: moments of features and a one, and a gradient that the clip shortens."""
    one = PEOPLE.of(np.arange(1))
    x = one.features[0].astype(float)
    products = np.outer([*x, 1], [*x, 1])[np.triu_indices(12)]
    asked = [
        Asked(sigma=30.0, grid=2.0**-20, parameters=None),
        Asked(sigma=2.0, grid=2.0**-26, parameters=np.zeros(11)),
    ]
    found = ServedFit(
        coefficients=x,
        clip=0.5,
        asked=asked,
        spent_by_fit=np.zeros(1, dtype=np.int64),
        spent_units=np.zeros(1, dtype=np.int64),
        limit_units=2**50,
        ledger_by_slot=np.zeros(1, dtype=np.int64),
        active={},
    )
    assert 0.5 * np.linalg.norm(x) > 0.5
    expected = (float(products @ products) / (2 * 30.0**2) + 0.5**2 / (2 * 2.0**2)) * 2**40

    assert recomputed_units(one, found)[0] == pytest.approx([expected], rel=1e-12)
    assert recomputed_units(one, replace(found, limit_units=1000))[0] == [1000]


def kept() -> dict[tuple[str, float], tuple[float, float]]:
    """The numbers of the run that the page shows, by curve and place."""
    with (ROOT / "clients" / "papers" / "kept" / "koskela-tabular-service.csv").open(
        encoding="utf-8", newline=""
    ) as opened:
        return {(name, float(at)): (float(value), float(off)) for name, at, value, off in list(csv.reader(opened))[1:]}


def test_the_numbers_of_the_page_are_those_of_the_kept_run() -> None:
    """Sums, differences, exhausted, and what `active` answered."""
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").partition("### A fit through the service")[2]
    found = kept()
    accounts, ledger = (found[f"units, sum of {name}", 0][0] for name in ("accounts", "the ledger"))
    own, (again, off) = found["units of the fit, sum of accounts", 0][0], found["units of the fit, recomputed", 0]
    largest = found["difference of an individual, largest part of its bound", 0][0]
    exhausted = found["individuals with less than a thousandth of the budget left", 0][0]
    first, last = BRACKETS[0], BRACKETS[-1]
    of_first, of_last = (found[f"people, {name}", 0][0] for name in (first, last))
    left = {name: found[f"accounts, {name}", 0.75][0] for name in (first, last)}
    (answered, half_width), (answered_last, _) = (found[f"active, {name}", 0.75] for name in (first, last))
    shares = [(at, value[0]) for (name, at), value in found.items() if name == "individuals, share"]
    below = sum(share for edge, share in shares if edge <= 1.4375)

    assert accounts == ledger
    assert f"{accounts:,.0f} both" in page
    assert f"no difference is above {np.ceil(100 * largest):.0f} % of that bound" in page
    assert f"it is {1e7 * abs(own - again) / own:.0f} parts in ten million" in page
    assert f"add up to {100 * off / own:.2f} %" in page
    assert f"the test set is {found['area under the curve', 0][0]:.3f}; {exhausted:.0f} individuals" in page
    assert below == pytest.approx(0.75, abs=1e-3)
    assert "a quarter of all are above an epsilon of 1.4375" in page
    assert f"{left[first]:,.0f} of {of_first:,.0f} in the lowest" in page
    assert f"{left[last]:.0f} of {of_last:.0f} in the highest" in page
    assert f"answered {answered:,.0f} and {answered_last:.0f}, ± {half_width:.0f} each" in page


def test_the_epsilons_of_the_kept_run_add_up() -> None:
    """All are in a bin, the exhausted in the last; and the limit is the budget of (2.75, 1e-5)."""
    found = kept()
    shares = [value for (name, _), (value, _) in found.items() if name == "individuals, share"]
    people = sum(found[f"people, {name}", 0][0] for name in BRACKETS)
    limit = int(found["units, limit of an individual", 0][0])

    assert sum(shares) == pytest.approx(1)
    assert people == len(PEOPLE)
    assert shares[-1] * people >= found["individuals with less than a thousandth of the budget left", 0][0]
    assert GAUSSIAN.epsilon_of_units(limit, DELTA) <= 2.75 < GAUSSIAN.epsilon_of_units(limit + 1, DELTA)
