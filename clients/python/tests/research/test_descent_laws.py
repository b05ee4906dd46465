"""Laws of descent on Poisson samples: own norms alone, the chance of being sampled, and no sample anywhere."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from types import TracebackType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparing.research import descent
from sparing.research.descent import (
    GaussianFilter,
    Loss,
    PoissonDescent,
    PoissonFilter,
    PoissonRun,
    RenyiFilter,
    _Accounts,
    _Descent,
    descend,
    products_with_rows,
    squares_of_rows,
)
from tests.logged import records_of

SETTINGS = PoissonDescent(
    loss="squared", l2_clip=1.0, noise_multiplier=4.0, sampling_rate=0.25, learning_rate=0.5, steps=20, intervals=30
)
LIMITS = [RenyiFilter(order=14, epsilon=1.2, delta="1e-5"), GaussianFilter(epsilon=2.5, delta="1e-5")]
SEEDS = st.integers(0, 2**32)


def norms_of(seed: int, steps: int, people: int) -> np.ndarray:
    """Norms (steps, people) up to the clip: zeros, whole clips and shares of it, whose sizes differ by individual."""
    source = np.random.default_rng(seed)
    norms: np.ndarray = source.random((steps, people)) ** source.choice([0.1, 1.0, 4.0], people)
    norms[source.random(norms.shape) < 0.05] = 0.0
    norms[source.random(norms.shape) < 0.05] = 1.0
    return norms


def accounts_of(limit: PoissonFilter, norms: np.ndarray) -> tuple[_Accounts, np.ndarray]:
    """The accounts after these norms, and who was active (steps, people)."""
    accounts = _Accounts(SETTINGS, limit, norms.shape[1], np.arange(norms.shape[1]))
    active = []
    for lengths in norms:
        active.append(accounts.charge(lengths))
        accounts.count(np.where(active[-1], lengths, 0.0))
    return accounts, np.array(active)


@given(seed=SEEDS, people=st.integers(2, 9), place=st.integers(0, 8), limit=st.sampled_from(LIMITS))
@settings(max_examples=40)
def test_an_account_is_a_function_of_the_own_norms_alone(
    seed: int, people: int, place: int, limit: PoissonFilter
) -> None:
    """Alone and among others bit by bit: charges, steps, and the epsilons by orders."""
    norms, place = norms_of(seed, 25, people), place % people
    together, active = accounts_of(limit, norms)
    alone, own_active = accounts_of(limit, norms[:, [place]])
    both = [each.own.divergences(rate=0.25, orders=[1.5, 14]) for each in (together, alone)]

    assert own_active[:, 0].tolist() == active[:, place].tolist()
    assert alone.spent_units.tolist() == together.spent_units[[place]].tolist()
    assert alone.own.counts.tolist() == together.own.counts[[place]].tolist()
    assert both[1].tobytes() == both[0][[place]].tobytes()


@pytest.mark.parametrize("columns", [1, 4096, 4097, 8193, 20_000])
def test_a_row_alone_is_worked_out_as_among_others(columns: int) -> None:
    """Bit by bit, for one class and several, of any number of columns: numpy sums long rows in another order."""
    source = np.random.default_rng(columns)
    matrix = source.normal(size=(5, columns))
    for kept in ([0], [4], [1, 3], [0, 1, 2]):
        assert squares_of_rows(matrix[kept]).tobytes() == squares_of_rows(matrix)[kept].tobytes()
        for classes in (1, 3):
            parameters = source.normal(size=(classes, columns))
            among = products_with_rows(matrix, parameters)
            assert products_with_rows(matrix[kept], parameters).tobytes() == among[kept].tobytes()


@given(seed=SEEDS, people=st.integers(1, 9), limit=st.sampled_from(LIMITS))
@settings(max_examples=40)
def test_a_filter_admits_what_fits_and_nothing_else(seed: int, people: int, limit: PoissonFilter) -> None:
    """An individual at a time, in Python's integers: none is ever beyond the budget, and a step that fits is made."""
    norms = norms_of(seed, 60, people)
    accounts, active = accounts_of(limit, norms)
    for place, own in enumerate(norms.T):
        cells = SETTINGS.grid.cells(own, sigma=SETTINGS.sigma).tolist()
        spent = 0
        for step, cell in enumerate(cells):
            price = int(accounts.charge_units[cell])
            fits = spent + price <= limit.budget_units
            assert bool(active[step, place]) == fits
            spent += price if fits else 0
        assert spent == accounts.spent_units[place] <= limit.budget_units


@pytest.mark.parametrize("limit", LIMITS, ids=["order", "gdp"])
def test_shorter_gradients_are_charged_after_a_longer_one_did_not_fit(limit: PoissonFilter) -> None:
    """Until they do not fit either; a gradient of nothing is always in."""
    certified = limit.certified_steps(SETTINGS)
    norms = np.array([*[1.0] * (certified + 2), *[0.1] * 3, 1.0, 0.0, *[0.3] * 1000, 0.0])[:, None]
    _, active = accounts_of(limit, norms)
    shown = active[:, 0].tolist()

    assert shown[: certified + 2] == [True] * certified + [False] * 2
    assert shown[certified + 2 : certified + 7] == [True] * 3 + [False, True]
    assert shown[-2:] == [False, True]
    assert certified >= 5


def charges_alike(descent: type[_Descent], seed: int, loss: Loss, *, people: int, width: int, out: int) -> bool:
    """Tell whether, at the parameters of a path, no other account and no other's place moves without one individual."""
    source = np.random.default_rng(seed)
    classes = 3 if loss == "softmax" else None
    chosen = replace(SETTINGS, loss=loss, classes=classes)
    features = source.normal(size=(people, width)) * source.uniform(0.1, 1, (people, 1))
    labels = source.integers(0, 2, people)
    path = source.normal(size=(25, classes or 1, width)).cumsum(axis=0)
    rest = np.delete(np.arange(people), out)
    limit = LIMITS[seed % 2]
    whole = descent(features, labels, chosen, limit, None)
    fewer = descent(features[rest], labels[rest], chosen, limit, None)
    for parameters in path:
        if (whole.charge(parameters)[rest] != fewer.charge(parameters)).any():
            return False
    same_spent = np.array_equal(whole.accounts.spent_units[rest], fewer.accounts.spent_units)
    return same_spent and np.array_equal(whole.accounts.own.counts[rest], fewer.accounts.own.counts)


@given(
    seed=SEEDS,
    loss=st.sampled_from(["squared", "logistic", "softmax"]),
    people=st.integers(2, 12),
    width=st.integers(1, 40),
    out=st.integers(0, 11),
)
@settings(max_examples=40)
def test_without_one_individual_no_other_is_charged_otherwise(
    seed: int, loss: Loss, people: int, width: int, out: int
) -> None:
    """A run is frozen and replayed on a neighbouring dataset, bit by bit."""
    assert charges_alike(_Descent, seed, loss, people=people, width=width, out=out % people)


class ChargesTheMean(_Descent):
    """Everybody pays for the mean length."""

    def gradients(self, rows: Any, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        errors, lengths = super().gradients(rows, parameters)
        return errors, np.full_like(lengths, lengths.mean())


def test_charges_that_depend_on_others_are_noticed() -> None:
    """Nearly all of 20 neighbouring pairs differ."""
    alike = [charges_alike(ChargesTheMean, seed, "squared", people=6, width=3, out=2) for seed in range(20)]
    assert sum(alike) <= 2


@pytest.mark.parametrize("width", [1, 7, 392])
@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_a_row_is_worked_out_by_itself(loss: Loss, width: int) -> None:
    """Alone and among 300, bit by bit; a library's product of matrices has other last digits alone."""
    source = np.random.default_rng(width)
    classes = 10 if loss == "softmax" else None
    features, labels = source.normal(size=(300, width)), source.integers(0, 2, 300)
    descent = _Descent(features, labels, replace(SETTINGS, loss=loss, classes=classes, l2_clip=1e9), None, None)
    parameters = source.normal(size=(classes or 1, width)) / width
    together = descent.gradients(slice(None), parameters)
    for rows in np.arange(0, 300, 7)[:, None]:
        alone = descent.gradients(rows, parameters)
        assert [each.tobytes() for each in alone] == [each[rows].tobytes() for each in together]


def has_charged_for_the_chance(seed: int, limit: PoissonFilter | None) -> bool:
    """Each individual, hardly ever sampled, has paid at still parameters for all steps that it could pay for."""
    source = np.random.default_rng(seed)
    still = replace(SETTINGS, sampling_rate=0.02, learning_rate=0.0)
    features, labels = source.uniform(0.2, 1, (12, 2)), source.uniform(0.3, 1, 12)
    run = descend(features, labels, still, seed=seed, limit=limit)
    norms = np.minimum(labels * np.linalg.norm(features, axis=1), 1.0)
    cells = still.grid.cells(norms, sigma=still.sigma)
    steps = np.full(12, still.steps)
    if limit is not None:
        prices = limit.prices(still.grid.charged, still.sampling_rate)[cells]
        steps = np.minimum(steps, np.floor(limit.budget_units / 2**40 / prices))
        if not np.allclose(run.spent, steps * prices, rtol=1e-6):
            return False
    return bool((run.own.counts[np.arange(12), cells] == steps).all() and (run.own.counts.sum(axis=1) == 20).all())


class ChargesTheSampled(_Descent):
    """Individuals pay for the steps that they were sampled into."""

    def charge(self, parameters: np.ndarray) -> np.ndarray:
        coins = np.random.default_rng(int(self.accounts.own.counts.sum())).random(len(self.features))
        _, lengths = self.gradients(slice(None), parameters)
        lengths = np.where(coins < self.settings.sampling_rate, lengths, 0.0)
        is_active = np.ones(len(lengths), dtype=np.bool_)
        if self.accounts.limit is not None:
            is_active = self.accounts.charge(lengths)
        self.accounts.count(np.where(is_active, lengths, 0.0)[self.shown])
        return is_active


@pytest.mark.parametrize("limit", [None, *LIMITS], ids=["none", "order", "gdp"])
def test_everybody_is_charged_whether_sampled_or_not(
    limit: PoissonFilter | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a descent that charges the sampled alone is noticed, each time."""
    assert all(has_charged_for_the_chance(seed, limit) for seed in range(10))
    monkeypatch.setattr(descent, "_Descent", ChargesTheSampled)
    assert not any(has_charged_for_the_chance(seed, limit) for seed in range(10))


def contents(run: PoissonRun) -> tuple[bytes, ...]:
    """All that a run says, but for its parameters."""
    arrays = (run.active, run.spent, run.followed, run.own.counts, run.epsilons(delta=1e-5, orders=[2, 8, 20.5]))
    return (*(each.tobytes() for each in arrays), repr((run.budget, run.settings, run.own.grid)).encode())


@pytest.mark.parametrize("limit", [None, *LIMITS], ids=["none", "order", "gdp"])
def test_samples_are_in_nothing_but_the_parameters(
    limit: PoissonFilter | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Runs of equal norms are equal bit by bit, whatever the samples and the parameters; and nothing is logged."""
    caplog.set_level(logging.DEBUG)
    source = np.random.default_rng(1)
    features, labels = source.normal(size=(30, 4)), source.choice([-1e6, 1e6], 30)  # each gradient is as the clip
    runs = [descend(features, labels, SETTINGS, seed=seed, limit=limit) for seed in range(6)]

    assert len({contents(run) for run in runs}) == 1
    assert len({run.parameters.tobytes() for run in runs}) == 6
    assert set(PoissonRun.__dataclass_fields__) - {"parameters"} == {
        *("settings", "active", "budget", "spent", "followed", "own")
    }
    assert vars(runs[0].own).keys() == {"grid", "counts", "_begins"}
    assert records_of(caplog, "sparing") == []


def test_equal_seeds_give_equal_runs() -> None:
    """Bit by bit, where parameters move; another seed gives another run."""
    source = np.random.default_rng(2)
    features, labels = source.normal(size=(40, 4)) / 3, source.normal(size=40)
    runs = [descend(features, labels, SETTINGS, seed=seed, limit=LIMITS[0]) for seed in (1, 1, [1, 5], 2)]

    assert contents(runs[0]) == contents(runs[1])
    assert runs[0].parameters.tobytes() == runs[1].parameters.tobytes()
    assert len({run.parameters.tobytes() for run in runs}) == len({contents(run) for run in runs}) == 3


class Stop(Exception):
    """Raised after some step."""


def arrays_within(value: object, depth: int = 3) -> Iterator[np.ndarray]:
    """The arrays of a local variable, and of what it holds."""
    if isinstance(value, np.ndarray):
        yield value
    elif depth and isinstance(value, list | tuple):
        for each in value:
            yield from arrays_within(each, depth - 1)
    elif depth and type(value).__module__.startswith(("sparing.", "service.", __name__)):
        for name in dir(value):
            if not name.startswith("__"):
                yield from arrays_within(getattr(value, name, None), depth - 1)


def shows(trace: TracebackType | None, coins: list[np.ndarray]) -> bool:
    """A frame below the test's own has the sample of a step, as rows or as a mask."""
    wanted = {each.tobytes() for mask in coins for each in (mask, np.flatnonzero(mask))}
    while trace is not None:
        if trace.tb_frame.f_globals["__name__"] == descent.__name__:
            found = (each for value in trace.tb_frame.f_locals.values() for each in arrays_within(value))
            if any(each.tobytes() in wanted for each in found):
                return True
        trace = trace.tb_next
    return False


class KeepsTheSample(_Descent):
    """The last sample lies in an attribute."""

    def noisy_sum(self, parameters: np.ndarray, is_active: np.ndarray, source: np.random.Generator) -> np.ndarray:
        before = source.bit_generator.state
        self.sampled = np.flatnonzero(source.random(len(self.features)) < self.settings.sampling_rate)
        source.bit_generator.state = before
        return super().noisy_sum(parameters, is_active, source)


def test_no_sample_is_in_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error after a step shows it neither in its words nor in its frames; one that is kept is noticed."""
    source = np.random.default_rng(2)
    features, labels = source.normal(size=(40, 4)) / 3, source.normal(size=40)
    shapes = (1, 4)
    draws = np.random.default_rng(9)
    coins = []
    for _ in range(5):
        coins.append(draws.random(40) < SETTINGS.sampling_rate)
        draws.normal(0, SETTINGS.sigma, shapes)
    assert all((first != second).any() for first, second in pairwise(coins))

    def stop(step: int, _: np.ndarray) -> None:
        if step == 5:
            raise Stop

    with pytest.raises(Stop) as stopped:
        descend(features, labels, SETTINGS, seed=9, after_step=stop)
    assert not shows(stopped.value.__traceback__, coins)
    monkeypatch.setattr(descent, "_Descent", KeepsTheSample)
    with pytest.raises(Stop) as kept:
        descend(features, labels, SETTINGS, seed=9, after_step=stop)
    assert shows(kept.value.__traceback__, coins)
