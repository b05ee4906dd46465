"""Rényi differential privacy of Poisson-subsampled Gaussian noise, for each individual's own norm. No filter.

An individual with a vector of norm C is sampled with probability q into a sum with noise sigma. With the individual,
the output is (1 - q) N(0, 1) + q N(mu, 1), and without it N(0, 1), where mu = C / sigma is one over the noise
multiplier. For an order a > 1 the divergence is ln(A) / (a - 1) with

    A = E (1 + u)^a,  u = q (e^(mu t - mu^2 / 2) - 1),  t ~ N(0, 1)

for removing the individual, and no larger for adding it (Mironov, Talwar and Zhang 2019, Theorems 4 and 5). The larger
divergence is returned. As u has mean zero, A - 1 is a sum or an integral of positive terms alone. It is computed
instead of A, so that nothing cancels if the divergence is small.

- Whole orders: the sum over k >= 2 of C(a, k) q^k (1 - q)^(a - k) (e^((k^2 - k) mu^2 / 2) - 1).
- Others: the integral of the normal density times (1 + u)^a - 1 - a u by the trapezoidal rule, whose error falls
  exponentially: with steps of at most .45 and .45 / mu it is far below the rounding. (u + 1 vanishes at pi / mu from
  the real line.)

A row of a result depends, to the last bit, on that row's mu alone, as all operations are elementwise or sum along a
row.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

SAMPLED_ORDER_MAX: Final = 10_000
MU_MAX: Final = 20.0
"""The largest mu that is computed; a larger shift, in standard deviations, is no longer hidden by the noise."""
RATE_MIN: Final = 1e-12

_REACH: Final = 12.0  # a normal number is farther out with probability 4e-33
_STEP: Final = 0.45
_SMALL: Final = 0.2  # below it (1 + u)^a - 1 - a u is its series
_TERMS: Final = 24
_LARGE: Final = 40.0  # e^40 hides what is taken off it but for a u
_BLOCK: Final = 2**20  # numbers in one temporary array
_LN_ROOT_2_PI: Final = math.log(2 * math.pi) / 2

Reals = NDArray[np.float64]


def subsampled_divergences(mus: Reals, *, rate: float, orders: Sequence[float]) -> Reals:
    """The Rényi divergences (n, orders) of one step for individuals with these mus (n,), to a relative 1e-12.

    `mus` are norm / sigma, one over the noise multiplier, and `rate` is the probability of being sampled. The
    divergence is 0 at a mu of 0, and order * mu^2 / 2 at a rate of 1. Raises ValueError for a mu outside [0, MU_MAX], a
    rate that is neither 0 nor in [RATE_MIN, 1], and an order outside (1, SAMPLED_ORDER_MAX].
    """
    refuse_mus(mus)
    refuse_rate(rate)
    refuse_orders(orders)
    divergences = np.zeros((len(mus), len(orders)))
    if rate == 0:
        return divergences
    for column, order in enumerate(orders):
        if rate == 1:
            divergences[:, column] = order * mus * mus / 2
        elif float(order).is_integer():
            divergences[:, column] = _of_whole_order(mus, rate, int(order))
        else:
            divergences[:, column] = _of_any_order(mus, rate, float(order))
    return divergences


def epsilons_of_divergences(divergences: Reals, *, orders: Sequence[float], delta: float) -> Reals:
    """The epsilon (n,) at this delta of individuals with these divergences (n, orders), each at its best order.

    The conversion is the optimal one (Canonne, Kamath and Steinke 2020, Proposition 12), with results of at least 0.
    They are computed in doubles and not rounded up. Raises ValueError for a delta outside (0, 1), and for orders that
    `subsampled_divergences` refuses.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must be above 0 and below 1, got {delta}")
    refuse_orders(orders)
    a = np.array(orders, dtype=np.float64)
    lost = np.log1p(-1 / a) - (math.log(delta) + np.log(a)) / (a - 1)
    found: Reals = np.maximum((divergences + lost).min(axis=1), 0.0)
    return found


def refuse_mus(mus: Reals) -> None:
    """Raise ValueError unless each mu is in [0, MU_MAX]."""
    if not ((mus >= 0) & (mus <= MU_MAX)).all():
        raise ValueError(f"mu, norm / sigma, must be from 0 to {MU_MAX}")


def refuse_rate(rate: float) -> None:
    """Raise ValueError unless the rate is 0 or in [RATE_MIN, 1]."""
    if rate != 0 and not RATE_MIN <= rate <= 1:
        raise ValueError(f"a sampling rate must be 0 or from {RATE_MIN} to 1, got {rate}")


def refuse_orders(orders: Sequence[float]) -> None:
    """Raise ValueError unless each order is above 1 and at most SAMPLED_ORDER_MAX."""
    for order in orders:
        if not 1 < order <= SAMPLED_ORDER_MAX:
            raise ValueError(f"an order must be above 1 and at most {SAMPLED_ORDER_MAX}, got {order}")


def _of_whole_order(mus: Reals, rate: float, order: int) -> Reals:
    """The divergences (n,) of a whole order, by the binomial sum."""
    logs, halves = _binomial_logs(order, rate)
    divergences = np.empty(len(mus))
    for rows in _blocks(len(mus), order):
        grown = halves * (mus[rows, None] * mus[rows, None])
        with np.errstate(divide="ignore"):  # ln 0 at a mu of 0
            divergences[rows] = _divergence(logs + grown + np.log(-np.expm1(-grown)), order)
    return divergences


@lru_cache(maxsize=512)  # an accountant asks for the same orders again and again
def _binomial_logs(order: int, rate: float) -> tuple[Reals, Reals]:
    """The numbers ln(C(a, k) q^k (1 - q)^(a - k)) and (k^2 - k) / 2 for k from 2 to the order a; q is the rate."""
    chosen, logs = order, []
    for k in range(2, order + 1):
        chosen = chosen * (order - k + 1) // k
        logs.append(math.log(chosen))
    powers = np.arange(2, order + 1, dtype=np.float64)
    sampled = powers * math.log(rate) + (order - powers) * math.log1p(-rate)
    return np.array(logs) + sampled, powers * (powers - 1) / 2


def _of_any_order(mus: Reals, rate: float, order: float) -> Reals:
    """The divergences (n,) of any order, by the trapezoidal rule; each mu gets the points it needs, a power of two."""
    widths = 2 * _REACH + order * mus
    points = 2 ** np.ceil(np.log2(widths / _STEP * np.maximum(1.0, mus))).astype(np.int64)
    divergences = np.empty(len(mus))
    for count in np.unique(points):
        (group,) = np.nonzero(points == count)
        for rows in _blocks(len(group), int(count)):
            each = group[rows]
            divergences[each] = _integrated(mus[each, None], rate, order, int(count))
    return divergences


def _integrated(mus: Reals, rate: float, order: float, count: int) -> Reals:
    """The divergences (n,) of the mus (n, 1), by the trapezoidal rule with `count` intervals."""
    steps = (2 * _REACH + order * mus) / count
    t = steps * np.arange(count + 1) - _REACH
    heights = _log_excess(order, rate, mus * t - mus * mus / 2) - t * t / 2
    return _divergence(heights + (np.log(steps) - _LN_ROOT_2_PI), order)


def _log_excess(order: float, rate: float, losses: Reals) -> Reals:
    """The numbers ln((1 + u)^a - 1 - a u) for u = q (e^l - 1): by a series, directly, or without overflow by logs."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # of the ways that are not taken
        u = rate * np.expm1(np.minimum(losses, 600.0))
        powers = order * np.log1p(u)
        series = u * u * np.polynomial.polynomial.polyval(u, _series(order))
        near = np.where(np.abs(order * u) <= _SMALL, series, np.expm1(np.minimum(powers, _LARGE)) - order * u)
        grown = order * np.logaddexp(math.log1p(-rate), math.log(rate) + losses)
        taken = np.logaddexp(0.0, math.log(order * rate) + losses)
        logs: Reals = np.where(powers < _LARGE, np.log(near), grown + np.log1p(-np.exp(taken - grown)))
    return logs


@lru_cache(maxsize=512)
def _series(order: float) -> Reals:
    """The coefficients C(a, k) for k from 2 on; at |a u| <= .2, each term is less than a fifth of the term before."""
    coefficients = [order * (order - 1) / 2]
    for k in range(3, 3 + _TERMS):
        coefficients.append(coefficients[-1] * (order - k + 1) / k)
    return np.array(coefficients)


def _divergence(log_terms: Reals, order: float) -> Reals:
    """The divergence (n,) of each row, ln(1 + sum of the terms) / (a - 1), from the logarithms of the terms."""
    largest = log_terms.max(axis=1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        excess = largest[:, 0] + np.log(np.exp(log_terms - largest).sum(axis=1))
    found: Reals = np.logaddexp(0.0, excess) / (order - 1)
    return found


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices of rows, of at least one row each, that keep temporary arrays small."""
    height = max(1, _BLOCK // columns)
    return (slice(start, min(start + height, rows)) for start in range(0, rows, height))
