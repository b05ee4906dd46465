"""The errors of fitted linear models: directions that noise hides, unsettled descents, and errors of coefficients.

Everything follows from released numbers, and costs nothing. Moments are those of d features, of which the intercept is
one, as a symmetric matrix M (d, d) whose upper triangle is released once, with independent noise in each entry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isnan, sqrt
from typing import Final

import numpy as np

from sparing._answers import Interval
from sparing._design import Doubles
from sparing._normal import chi_square_tail, two_sided_quantile
from sparing._printable import printable
from sparing._rounding import rounded
from sparing._text_tables import Cell, text_table

_AVERAGED: Final = 4
"""The result of a descent is the mean of the parameters over the last quarter of the steps."""
_MOVED_MAX: Final = 0.1
"""The largest root mean square change of log-odds in the last steps of a settled descent: 1/40 in probability."""
_CHANCE_MIN: Final = 0.001
"""The chance below which a change is more than noise."""
_STATIONARY: Final = 4
"""The largest variance of one released gradient of a settled descent, in variances of its noise (`drift`)."""
_HIDDEN: Final = (
    "No interval: an eigenvalue of the moments was raised to the size of the noise. It always is where one-hot features"
    " add up to the intercept or to each other; one alone has intervals with fit_intercept=False."
)
_UNCERTIFIED: Final = "No interval for the population: people may be missing, or be shortened by the rule clip."
_UNCOUNTED: Final = "No interval for the population: noise hides the number of individuals."


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The standard error of a coefficient, in its own units, and the interval around it."""

    standard_error: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A coefficient and how far it may be off, None where that is not known (`Summary.notes`)."""

    label: Mapping[str, object]  # {"feature": "level"}, of the intercept "intercept"; of several classes also "class"
    value: float
    noise: Spread | None = None  # around the coefficient that the same data gives without noise
    population: Spread | None = None  # around the coefficient of the population: of noise and sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The coefficients of a fit, the intercept last; `print(summary)` shows them as a table with the notes below.

    Intervals of the noise are about the data that was counted. Those of the population also cover the sampling of the
    individuals, if these are independent, the mean of the target is linear in the features, and the residuals have the
    same variance everywhere. Both are by the delta method, for noise that is small beside the moments: in simulations
    95 % intervals of the noise held 94 % or more where the least eigenvalue of the moments without noise was at least
    twice `floor_of`, and 84 % or more at the floor itself.
    """

    rows: tuple[Coefficient, ...]
    n_individuals: float  # with noise
    notes: tuple[str, ...]  # sentences: of hidden directions, of missing people, and of missing intervals
    confidence: float = 0.95  # of each interval by itself
    residual_variance: float | None = None  # in squared units of the target; None where it is not known

    def __str__(self) -> str:
        """The table and the notes, as lines of text."""
        names = list(self.rows[0].label)
        header = [*names, "coefficient"]
        for title, spread in (("noise", self.rows[0].noise), ("population", self.rows[0].population)):
            header += [f"se, {title}", f"{100 * self.confidence:.12g} % interval"] if spread else []
        lines = [text_table(header, [_cells(row) for row in self.rows]), ""]
        lines += [f"{self.n_individuals:,.0f} individuals", *map(printable, self.notes)]
        return "\n".join(lines)


def floor_of(size: int, sigma: float) -> float:
    """The least eigenvalue that is left in moments (size, size), 2 sigma sqrt(size); smaller ones are raised to it.

    A symmetric matrix of independent noise with this sigma in each entry has eigenvalues up to about this bound
    (Wigner's semicircle law).
    """
    return 2 * sigma * sqrt(size)


def raised_in(moments: Doubles, sigma: float, parts: Sequence[slice]) -> tuple[int, int]:
    """The number of directions that noise hides, and the number of all directions that data could fill.

    A direction is hidden if its eigenvalue is below `floor_of`. The features of each of `parts` add up to 1, as the
    intercept and the numbers of a one-hot feature do. Their differences are 0 by construction and not counted, neither
    as hidden nor among all. The eigenvalues are those of the moments among all other directions.

    Args:
        moments: the noisy moments (d, d).
        sigma: the standard deviation of the noise in each entry.
        parts: disjoint places of features.
    """
    free = _free(len(moments), parts)
    eigenvalues = np.linalg.eigvalsh(free.T @ moments @ free)
    return int((eigenvalues < floor_of(len(moments), sigma)).sum()), free.shape[1]


def _free(size: int, parts: Sequence[slice]) -> Doubles:
    """An orthonormal basis (size, k) of the directions orthogonal to the differences of parts."""
    if len(parts) < 2:
        return np.eye(size)
    sums = np.zeros((len(parts), size))
    for row, part in zip(sums, parts, strict=True):
        row[part] = 1
    basis: Doubles = np.linalg.svd(sums[1:] - sums[0])[2][len(parts) - 1 :].T
    return basis


def drift(gradients: Doubles, variance: float, direction: Doubles, moments: Doubles, count: float) -> float | None:
    """The root mean square change of log-odds in the last steps of a descent that has not settled, else None.

    A step is x' = x - D (H x + e), where x is the distance from the parameters at which the gradient is 0, D the step
    matrix, H the curvature, and e the noise, of variance s^2. Let D H = a I, as for a curvature proportional to the
    moments; by the choice of D, a is at most 3/2. A descent has settled once x has its stationary law, with the mean 0
    and in each direction the variance D^2 s^2 / (a (2 - a)). As the sum of the last q released gradients is
    D^-1 (x_{T-q} - x_T), its variance is then

        2 s^2 (1 - (1 - a)^q) / (a (2 - a)) <= max(q, 4) s^2.

    So the squared length of the sum, divided by max(q, 4) s^2, is at most chi-square with one degree for each number.
    The descent has not settled if such a length has a chance below 0.001, and if the same steps together moved the
    log-odds by more than 0.1 in root mean square over the individuals, which is 1/40 of a probability. Without noise,
    eleven steps towards a rate of 0.05 move by 0.013 in the end and are 0.01 off; towards 0.02 they move by 0.1 and are
    0.2 off, and towards 0.01 they are 0.6 off.

    Args:
        gradients: the released gradients of the last q steps, (q, rows, d).
        variance: of the noise in each number of a gradient.
        direction: the step matrix D (d, d).
        moments: the noisy moments (d, d).
        count: the noisy number of individuals.
    """
    together = gradients.sum(axis=0)
    scaled = float((together**2).sum()) / (max(len(gradients), _STATIONARY) * variance)
    change = together @ direction
    moved = sqrt(max(float(np.trace(change @ moments @ change.T)), 0.0) / max(count, 1.0))
    return moved if moved > _MOVED_MAX and chi_square_tail(scaled, together.size) < _CHANCE_MIN else None


def last_steps(steps: int) -> int:
    """The number of last steps whose parameters are averaged."""
    return ceil(steps / _AVERAGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastSquares:
    """A linear regression from noisy moments: of its d features M (d, d), with the target b (d,), of the target y."""

    moments: Doubles
    products: Doubles
    squares: float
    count: float  # of the individuals
    variance: float  # of the noise in each of these numbers
    floor: float  # below which an eigenvalue of the moments was raised
    parameters: Doubles  # (d,) M^-1 b

    @property
    def noise_covariance(self) -> Doubles:
        """The covariance (d, d) of the parameters by the noise alone, to first order.

        With the noise E of M and f of b, the parameters t move by M^-1 u with u = f - E t. Entries of E above the
        diagonal occur twice and are independent otherwise, so that the covariance of (E t)_i and (E t)_k is v t_i t_k
        for i != k, by the one shared entry E_ik = E_ki, and v |t|^2 for i = k. Hence

            cov u = v ((1 + |t|^2) I + t t^T - diag(t_1^2, ..., t_d^2)).
        """
        at = self.parameters
        of_sums = (1 + at @ at) * np.eye(len(at)) + np.outer(at, at) - np.diag(at**2)
        inverse = np.linalg.inv(self.moments)
        found: Doubles = self.variance * inverse @ of_sums @ inverse
        return found

    @property
    def residual_variance(self) -> float | None:
        """The mean squared residual (y - 2 t b + t M t) / (count - d), at least 0; None if the count is at most d.

        With features of at most 1, its own noise changes the variance of a coefficient by at most about
        (1 + 2 |t|^2) / sigma of what the noise of M and b adds: where noise hides the residuals, it hides sampling too.
        """
        at, freedom = self.parameters, self.count - len(self.parameters)
        squares = float(self.squares - 2 * at @ self.products + at @ self.moments @ at)
        return max(squares, 0.0) / freedom if freedom > 0 else None

    def sampling_covariance(self, residual_variance: float) -> Doubles:
        """The covariance (d, d) of the parameters by the sampling of the individuals: residual variance times M^-1."""
        found: Doubles = np.multiply(residual_variance, np.linalg.inv(self.moments))
        return found

    def summary(
        self,
        labels: Sequence[Mapping[str, object]],
        confidence: float,
        *,
        coverage_certified: bool,
        notes: Sequence[str],
    ) -> Summary:
        """The table of the parameters under these labels, with all intervals that are known, and words on the others.

        Raises ValueError for a confidence not above 0 and below 1.
        """
        quantile = two_sided_quantile(confidence)
        noise: Doubles = np.full(len(self.parameters), np.nan)
        whole, residual = noise, None
        if np.linalg.eigvalsh(self.moments)[0] < self.floor:
            notes = [*notes, _HIDDEN]
        else:
            noise, residual = self.noise_covariance.diagonal(), self.residual_variance
            if not coverage_certified:
                notes = [*notes, _UNCERTIFIED]
            elif residual is None:
                notes = [*notes, _UNCOUNTED]
            else:
                whole = noise + self.sampling_covariance(residual).diagonal()
        rows = zip(labels, self.parameters.tolist(), noise.tolist(), whole.tolist(), strict=True)
        return Summary(
            rows=tuple(
                Coefficient(
                    label=label,
                    value=value,
                    noise=_spread(value, of_noise, quantile),
                    population=_spread(value, of_both, quantile),
                )
                for label, value, of_noise, of_both in rows
            ),
            n_individuals=self.count,
            notes=tuple(notes),
            confidence=confidence,
            residual_variance=residual,
        )


def _spread(value: float, variance: float, quantile: float) -> Spread | None:
    """The standard error and the interval of a value; None if the variance is NaN, which stands for not known."""
    if isnan(variance):
        return None
    error = sqrt(variance)
    return Spread(standard_error=error, interval=Interval(low=value - quantile * error, high=value + quantile * error))


def _cells(row: Coefficient) -> list[Cell]:
    """The cells of a row, with the digits that standard errors leave significant."""
    texts = [rounded(row.value, row.noise.standard_error) if row.noise else f"{row.value:.4g}"]
    for spread in filter(None, (row.noise, row.population)):
        error, low, high = (
            rounded(each, spread.standard_error)
            for each in (spread.standard_error, spread.interval.low, spread.interval.high)
        )
        texts += [error, f"({low}, {high})"]
    return [*((printable(each), False) for each in row.label.values()), *((text, True) for text in texts)]
